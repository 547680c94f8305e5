/* doitgen: every row of a three-dimensional array times a matrix, by way of a buffer. */
#include "suite.h"
#define NR 8
#define NQ 10
#define NP 20
#define STEPS 6

DATA double A[NR][NQ][NP], C4[NP][NP], SUM[NP];

KERNEL void kernel(double a[restrict NR][NQ][NP], const double c4[restrict NP][NP], double sum[restrict NP])
{
    for (int t = 0; t < STEPS; ++t)
        for (int r = 0; r < NR; ++r)
            for (int q = 0; q < NQ; ++q) {
                for (int p = 0; p < NP; ++p) {
                    sum[p] = 0.0;
                    for (int s = 0; s < NP; ++s)
                        sum[p] += a[r][q][s] * c4[s][p];
                }
                for (int p = 0; p < NP; ++p)
                    a[r][q][p] = sum[p];
            }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0][0], NR * NQ * NP);
        fill(&C4[0][0], NP * NP);
        kernel(A, C4, SUM);
        use(A[3][5][7]);
    }
    return 0;
}
