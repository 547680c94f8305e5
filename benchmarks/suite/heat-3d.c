/* heat-3d: the seven-point heat equation on a small cube, back and forth between two arrays. */
#include "suite.h"
#define N 12
#define STEPS 32

DATA double A[N][N][N], B[N][N][N];

KERNEL void kernel(double a[restrict N][N][N], double b[restrict N][N][N])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 1; i < N - 1; ++i)
            for (int j = 1; j < N - 1; ++j)
                for (int k = 1; k < N - 1; ++k)
                    b[i][j][k] = a[i][j][k] + 0.1 * (a[i + 1][j][k] - 2.0 * a[i][j][k] + a[i - 1][j][k])
                        + 0.1 * (a[i][j + 1][k] - 2.0 * a[i][j][k] + a[i][j - 1][k])
                        + 0.1 * (a[i][j][k + 1] - 2.0 * a[i][j][k] + a[i][j][k - 1]);
        for (int i = 1; i < N - 1; ++i)
            for (int j = 1; j < N - 1; ++j)
                for (int k = 1; k < N - 1; ++k)
                    a[i][j][k] = b[i][j][k];
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0][0], N * N * N);
        fill(&B[0][0][0], N * N * N);
        kernel(A, B);
        use(A[3][5][7]);
    }
    return 0;
}
