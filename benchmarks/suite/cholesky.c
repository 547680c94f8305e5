/* cholesky: the lower factor of a positive definite matrix, in place. */
#include "suite.h"
#define N 56

DATA double A[N][N];

KERNEL void kernel(double a[restrict N][N])
{
    for (int i = 0; i < N; ++i) {
        for (int j = 0; j < i; ++j) {
            for (int k = 0; k < j; ++k)
                a[i][j] -= a[i][k] * a[j][k];
            a[i][j] /= a[j][j];
        }
        for (int k = 0; k < i; ++k)
            a[i][i] -= a[i][k] * a[i][k];
        a[i][i] = __builtin_sqrt(a[i][i]);
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        for (int i = 0; i < N; ++i)
            A[i][i] += 2.0 * N;
        kernel(A);
        use(A[7][3]);
    }
    return 0;
}
