/* two-products: D = (A B) C, the first product kept. */
#include "suite.h"
#define N 26
#define STEPS 8

DATA double A[N][N], B[N][N], C[N][N], T[N][N], D[N][N];

KERNEL void kernel(const double a[restrict N][N], const double b[restrict N][N], const double c[restrict N][N],
                   double t[restrict N][N], double d[restrict N][N])
{
    for (int step = 0; step < STEPS; ++step) {
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j) {
                t[i][j] = 0.0;
                for (int k = 0; k < N; ++k)
                    t[i][j] += a[i][k] * b[k][j];
            }
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j) {
                d[i][j] *= 0.5;
                for (int k = 0; k < N; ++k)
                    d[i][j] += t[i][k] * c[k][j];
            }
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        fill(&B[0][0], N * N);
        fill(&C[0][0], N * N);
        fill(&D[0][0], N * N);
        kernel(A, B, C, T, D);
        use(D[3][5]);
    }
    return 0;
}
