/* seidel-2d: the mean of nine neighbours in place, so that each point waits for the one before it. */
#include "suite.h"
#define N 40
#define STEPS 3

DATA double A[N][N];

KERNEL void kernel(double a[restrict N][N])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 1; i < N - 1; ++i)
            for (int j = 1; j < N - 1; ++j)
                a[i][j] = (a[i - 1][j - 1] + a[i - 1][j] + a[i - 1][j + 1] + a[i][j - 1] + a[i][j] + a[i][j + 1]
                           + a[i + 1][j - 1] + a[i + 1][j] + a[i + 1][j + 1]) * (1.0 / 9.0);
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&A[0][0], N * N);
        kernel(A);
        use(A[3][5]);
    }
    return 0;
}
