/* gesummv: y = alpha A x + beta B x. */
#include "suite.h"
#define N 40
#define STEPS 30

DATA double A[N][N], B[N][N], X[N], Y[N];

KERNEL void kernel(const double a[restrict N][N], const double b[restrict N][N], double x[restrict N],
                   double y[restrict N], double alpha, double beta)
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 0; i < N; ++i) {
            double first = 0.0, second = 0.0;
            for (int j = 0; j < N; ++j) {
                first += a[i][j] * x[j];
                second += b[i][j] * x[j];
            }
            y[i] = alpha * first + beta * second;
        }
        x[t] += 0.001 * y[t];
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(&B[0][0], N * N);
        fill(X, N);
        kernel(A, B, X, Y, 0.1, 0.2);
        use(Y[3]);
    }
    return 0;
}
