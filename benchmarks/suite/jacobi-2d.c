/* jacobi-2d: the mean of five neighbours, back and forth between two arrays. */
#include "suite.h"
#define N 36
#define STEPS 36

DATA double A[N][N], B[N][N];

KERNEL void kernel(double a[restrict N][N], double b[restrict N][N])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 1; i < N - 1; ++i)
            for (int j = 1; j < N - 1; ++j)
                b[i][j] = 0.2 * (a[i][j] + a[i][j - 1] + a[i][j + 1] + a[i + 1][j] + a[i - 1][j]);
        for (int i = 1; i < N - 1; ++i)
            for (int j = 1; j < N - 1; ++j)
                a[i][j] = 0.2 * (b[i][j] + b[i][j - 1] + b[i][j + 1] + b[i + 1][j] + b[i - 1][j]);
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(&B[0][0], N * N);
        kernel(A, B);
        use(A[3][5]);
    }
    return 0;
}
