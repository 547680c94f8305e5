/* gemver: a matrix plus two outer products, then a product with its transpose and one with itself. */
#include "suite.h"
#define N 48
#define STEPS 20

DATA double A[N][N], U1[N], V1[N], U2[N], V2[N], W[N], X[N], Y[N], Z[N];

KERNEL void kernel(double a[restrict N][N], const double u1[restrict N], const double v1[restrict N],
                   const double u2[restrict N], const double v2[restrict N], double w[restrict N], double x[restrict N],
                   const double y[restrict N], const double z[restrict N], double alpha, double beta)
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j)
                a[i][j] += u1[i] * v1[j] + u2[i] * v2[j];
        for (int j = 0; j < N; ++j)
            for (int i = 0; i < N; ++i)
                x[i] += beta * a[j][i] * y[j];
        for (int i = 0; i < N; ++i)
            x[i] += z[i];
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j)
                w[i] += alpha * a[i][j] * x[j];
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(U1, N);
        fill(V1, N);
        fill(U2, N);
        fill(V2, N);
        fill(W, N);
        fill(X, N);
        fill(Y, N);
        fill(Z, N);
        kernel(A, U1, V1, U2, V2, W, X, Y, Z, 1e-3, 1e-3);
        use(W[3]);
    }
    return 0;
}
