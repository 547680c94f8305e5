/* horner: a polynomial of low degree at many points: short chains that start anew. */
#include "suite.h"
#define N 500
#define DEGREE 11
#define STEPS 48

DATA double X[N], Y[N], C[DEGREE + 1];

KERNEL void kernel(const double x[restrict N], double y[restrict N], const double c[restrict DEGREE + 1])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i) {
            double p = c[DEGREE];
            for (int k = DEGREE - 1; k >= 0; --k)
                p = p * x[i] + c[k];
            y[i] += p;
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(X, N);
        fill(Y, N);
        fill(C, DEGREE + 1);
        kernel(X, Y, C);
        use(Y[3]);
    }
    return 0;
}
