/* gemm: C = beta C + alpha A B, row by row of B, some times over. */
#include "suite.h"
#define NI 24
#define NJ 32
#define NK 28
#define STEPS 20

DATA double C[NI][NJ], A[NI][NK], B[NK][NJ];

KERNEL void kernel(double c[restrict NI][NJ], const double a[restrict NI][NK], const double b[restrict NK][NJ],
                   double alpha, double beta)
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < NI; ++i) {
            for (int j = 0; j < NJ; ++j)
                c[i][j] *= beta;
            for (int k = 0; k < NK; ++k)
                for (int j = 0; j < NJ; ++j)
                    c[i][j] += alpha * a[i][k] * b[k][j];
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], NI * NK);
        fill(&B[0][0], NK * NJ);
        fill(&C[0][0], NI * NJ);
        kernel(C, A, B, 0.01, 0.5);
        use(C[3][5]);
    }
    return 0;
}
