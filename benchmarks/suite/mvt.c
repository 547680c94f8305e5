/* mvt: x1 += A y1 and x2 += A^T y2, the second one by columns. */
#include "suite.h"
#define N 48
#define STEPS 24

DATA double A[N][N], X1[N], X2[N], Y1[N], Y2[N];

KERNEL void kernel(const double a[restrict N][N], double x1[restrict N], double x2[restrict N],
                   const double y1[restrict N], const double y2[restrict N])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j)
                x1[i] += a[i][j] * y1[j];
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j)
                x2[i] += a[j][i] * y2[j];
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(X1, N);
        fill(X2, N);
        fill(Y1, N);
        fill(Y2, N);
        kernel(A, X1, X2, Y1, Y2);
        use(X1[3] + X2[5]);
    }
    return 0;
}
