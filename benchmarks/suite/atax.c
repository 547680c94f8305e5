/* atax: y = A^T (A x), row by row. */
#include "suite.h"
#define N 44
#define M 48
#define STEPS 30

DATA double A[N][M], X[M], Y[M];

KERNEL void kernel(const double a[restrict N][M], double x[restrict M], double y[restrict M])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int j = 0; j < M; ++j)
            y[j] = 0.0;
        for (int i = 0; i < N; ++i) {
            double sum = 0.0;
            for (int j = 0; j < M; ++j)
                sum += a[i][j] * x[j];
            for (int j = 0; j < M; ++j)
                y[j] += a[i][j] * sum;
        }
        x[t] = 1e-4 * y[t];
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * M);
        fill(X, M);
        kernel(A, X, Y);
        use(Y[3]);
    }
    return 0;
}
