/* jacobi-1d: the mean of three neighbours, back and forth between two arrays. */
#include "suite.h"
#define N 400
#define STEPS 150

DATA double A[N], B[N];

KERNEL void kernel(double a[restrict N], double b[restrict N])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 1; i < N - 1; ++i)
            b[i] = 0.333 * (a[i - 1] + a[i] + a[i + 1]);
        for (int i = 1; i < N - 1; ++i)
            a[i] = 0.333 * (b[i - 1] + b[i] + b[i + 1]);
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(A, N);
        fill(B, N);
        kernel(A, B);
        use(A[3]);
    }
    return 0;
}
