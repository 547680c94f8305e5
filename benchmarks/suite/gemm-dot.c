/* gemm-dot: C = A B with a sum in the inner loop, B by columns. */
#include "suite.h"
#define N 30
#define STEPS 6

DATA double C[N][N], A[N][N], B[N][N];

KERNEL void kernel(double c[restrict N][N], const double a[restrict N][N], const double b[restrict N][N])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j) {
                double sum = 0.0;
                for (int k = 0; k < N; ++k)
                    sum += a[i][k] * b[k][j];
                c[i][j] += sum;
            }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(&B[0][0], N * N);
        kernel(C, A, B);
        use(C[3][5]);
    }
    return 0;
}
