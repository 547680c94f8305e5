/* bicg: q = A p and s = A^T r in one pass over the matrix. */
#include "suite.h"
#define N 44
#define M 48
#define STEPS 30

DATA double A[N][M], P[M], Q[N], R[N], S[M];

KERNEL void kernel(const double a[restrict N][M], double p[restrict M], double q[restrict N], const double r[restrict N],
                   double s[restrict M])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 0; i < N; ++i) {
            q[i] = 0.0;
            for (int j = 0; j < M; ++j) {
                s[j] += r[i] * a[i][j];
                q[i] += a[i][j] * p[j];
            }
        }
        p[t] = 1e-3 * q[t];
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * M);
        fill(P, M);
        fill(R, N);
        fill(S, M);
        kernel(A, P, Q, R, S);
        use(Q[3] + S[5]);
    }
    return 0;
}
