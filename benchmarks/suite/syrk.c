/* syrk: the lower half of C = beta C + alpha A A^T, by rows of the transpose. */
#include "suite.h"
#define N 32
#define M 30
#define STEPS 10

DATA double C[N][N], A[N][M];

KERNEL void kernel(double c[restrict N][N], const double a[restrict N][M], double alpha, double beta)
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i) {
            for (int j = 0; j <= i; ++j)
                c[i][j] *= beta;
            for (int k = 0; k < M; ++k)
                for (int j = 0; j <= i; ++j)
                    c[i][j] += alpha * a[i][k] * a[j][k];
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * M);
        fill(&C[0][0], N * N);
        kernel(C, A, 0.01, 0.5);
        use(C[5][3]);
    }
    return 0;
}
