/* axpy: y += a x, some times over. */
#include "suite.h"
#define N 1000
#define STEPS 300

DATA double X[N], Y[N];

KERNEL void kernel(const double x[restrict N], double y[restrict N], double a)
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i)
            y[i] += a * x[i];
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(X, N);
        fill(Y, N);
        kernel(X, Y, 0.01);
        use(Y[3]);
    }
    return 0;
}
