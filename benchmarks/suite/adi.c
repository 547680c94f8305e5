/* adi: one direction of an alternating implicit step: a tridiagonal system along each row. */
#include "suite.h"
#define N 36
#define STEPS 4

DATA double U[N][N], V[N][N], P[N];

KERNEL void kernel(double u[restrict N][N], double v[restrict N][N], double p[restrict N], double a, double b)
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 1; i < N - 1; ++i) {
            v[i][0] = 1.0;
            p[0] = 0.0;
            for (int j = 1; j < N - 1; ++j) {
                p[j] = -a / (a * p[j - 1] + b);
                v[i][j] = (a * u[i - 1][j] + (1.0 - 2.0 * a) * u[i][j] + a * u[i + 1][j] - a * v[i][j - 1])
                    / (a * p[j - 1] + b);
            }
            v[i][N - 1] = 1.0;
            for (int j = N - 2; j >= 1; --j)
                v[i][j] = p[j] * v[i][j + 1] + v[i][j];
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&U[0][0], N * N);
        kernel(U, V, P, 0.2, 2.0);
        use(V[3][5]);
    }
    return 0;
}
