/* transpose: a matrix, and added to itself. */
#include "suite.h"
#define N 44
#define STEPS 50

DATA double A[N][N], B[N][N];

KERNEL void kernel(double a[restrict N][N], double b[restrict N][N])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j)
                b[i][j] += 0.5 * a[j][i];
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(&B[0][0], N * N);
        kernel(A, B);
        use(B[3][5]);
    }
    return 0;
}
