/* syr2k: the lower half of C = C + A B^T + B A^T, sums in the inner loop. */
#include "suite.h"
#define N 28
#define M 30
#define STEPS 6

DATA double C[N][N], A[N][M], B[N][M];

KERNEL void kernel(double c[restrict N][N], const double a[restrict N][M], const double b[restrict N][M], double alpha)
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i)
            for (int j = 0; j <= i; ++j) {
                double sum = 0.0;
                for (int k = 0; k < M; ++k)
                    sum += a[i][k] * b[j][k] + b[i][k] * a[j][k];
                c[i][j] += alpha * sum;
            }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * M);
        fill(&B[0][0], N * M);
        fill(&C[0][0], N * N);
        kernel(C, A, B, 0.1);
        use(C[5][3]);
    }
    return 0;
}
