/* fir: a filter of sixteen coefficients over a signal. */
#include "suite.h"
#define N 1000
#define TAPS 16
#define STEPS 40

DATA float X[N + TAPS], Y[N], H[TAPS];

KERNEL void kernel(const float x[restrict N + TAPS], float y[restrict N], const float h[restrict TAPS])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i) {
            float sum = 0.0f;
            for (int k = 0; k < TAPS; ++k)
                sum += h[k] * x[i + k];
            y[i] += sum;
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_float(X, N + TAPS);
        fill_float(Y, N);
        fill_float(H, TAPS);
        kernel(X, Y, H);
        use(Y[3]);
    }
    return 0;
}
