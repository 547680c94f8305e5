/* trmm: B = A^T B with a unit lower triangular A, in place. */
#include "suite.h"
#define N 32
#define M 30
#define STEPS 8

DATA double A[N][N], B[N][M];

KERNEL void kernel(const double a[restrict N][N], double b[restrict N][M], double alpha)
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < M; ++j) {
                for (int k = i + 1; k < N; ++k)
                    b[i][j] += a[k][i] * b[k][j];
                b[i][j] *= alpha;
            }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(&B[0][0], N * M);
        kernel(A, B, 0.05);
        use(B[3][5]);
    }
    return 0;
}
