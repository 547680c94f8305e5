/* durbin: the solution of a Toeplitz system by Durbin's recursion. */
#include "suite.h"
#define N 220

DATA double R[N], Y[N], Z[N];

KERNEL void kernel(const double r[restrict N], double y[restrict N], double z[restrict N])
{
    double alpha = -r[0], beta = 1.0;
    y[0] = -r[0];
    for (int k = 1; k < N; ++k) {
        beta *= 1.0 - alpha * alpha;
        double sum = r[k];
        for (int i = 0; i < k; ++i)
            sum += r[k - i - 1] * y[i];
        alpha = -sum / beta;
        for (int i = 0; i < k; ++i)
            z[i] = y[i] + alpha * y[k - i - 1];
        for (int i = 0; i < k; ++i)
            y[i] = z[i];
        y[k] = alpha;
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(R, N);
        for (int i = 0; i < N; ++i)
            R[i] *= 0.4 / (i + 2);
        kernel(R, Y, Z);
        use(Y[3]);
    }
    return 0;
}
