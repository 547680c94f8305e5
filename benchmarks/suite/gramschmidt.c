/* gramschmidt: A = Q R by the modified method of Gram and Schmidt, column by column. */
#include "suite.h"
#define M 40
#define N 30

DATA double A[M][N], R[N][N], Q[M][N];

KERNEL void kernel(double a[restrict M][N], double r[restrict N][N], double q[restrict M][N])
{
    for (int k = 0; k < N; ++k) {
        double norm = 0.0;
        for (int i = 0; i < M; ++i)
            norm += a[i][k] * a[i][k];
        r[k][k] = __builtin_sqrt(norm);
        for (int i = 0; i < M; ++i)
            q[i][k] = a[i][k] / r[k][k];
        for (int j = k + 1; j < N; ++j) {
            r[k][j] = 0.0;
            for (int i = 0; i < M; ++i)
                r[k][j] += q[i][k] * a[i][j];
            for (int i = 0; i < M; ++i)
                a[i][j] -= q[i][k] * r[k][j];
        }
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], M * N);
        for (int i = 0; i < N; ++i)
            A[i][i] += 4.0;
        kernel(A, R, Q);
        use(R[3][5]);
    }
    return 0;
}
