/* symm: C = alpha A B + beta C with a symmetric A, of which the lower half is read. */
#include "suite.h"
#define N 30
#define STEPS 4

DATA double A[N][N], B[N][N], C[N][N];

KERNEL void kernel(const double a[restrict N][N], const double b[restrict N][N], double c[restrict N][N], double alpha,
                   double beta)
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j) {
                double sum = 0.0;
                for (int k = 0; k < i; ++k) {
                    c[k][j] += alpha * b[i][j] * a[i][k];
                    sum += b[k][j] * a[i][k];
                }
                c[i][j] = beta * c[i][j] + alpha * b[i][j] * a[i][i] + alpha * sum;
            }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(&B[0][0], N * N);
        fill(&C[0][0], N * N);
        kernel(A, B, C, 0.1, 0.2);
        use(C[3][5]);
    }
    return 0;
}
