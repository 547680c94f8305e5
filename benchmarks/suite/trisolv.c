/* trisolv: forward substitution with a lower triangular matrix. */
#include "suite.h"
#define N 56
#define STEPS 24

DATA double L[N][N], X[N], B[N];

KERNEL void kernel(const double l[restrict N][N], double x[restrict N], double b[restrict N])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 0; i < N; ++i) {
            double rest = b[i];
            for (int j = 0; j < i; ++j)
                rest -= l[i][j] * x[j];
            x[i] = rest / l[i][i];
        }
        b[t] = 0.5 * x[N - 1 - t] + 1.0;
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&L[0][0], N * N);
        fill(B, N);
        for (int i = 0; i < N; ++i)
            L[i][i] += 2.0 * N;
        kernel(L, X, B);
        use(X[3]);
    }
    return 0;
}
