/* life: Conway's cells on a small board, back and forth between two boards. */
#include "suite.h"
#define N 40
#define STEPS 14

DATA unsigned char A[N][N], B[N][N];

KERNEL void kernel(unsigned char a[restrict N][N], unsigned char b[restrict N][N])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 1; i < N - 1; ++i)
            for (int j = 1; j < N - 1; ++j) {
                int around = a[i - 1][j - 1] + a[i - 1][j] + a[i - 1][j + 1] + a[i][j - 1] + a[i][j + 1]
                    + a[i + 1][j - 1] + a[i + 1][j] + a[i + 1][j + 1];
                b[i][j] = (unsigned char)(around == 3 || (around == 2 && a[i][j]));
            }
        for (int i = 1; i < N - 1; ++i)
            for (int j = 1; j < N - 1; ++j)
                a[i][j] = b[i][j];
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        for (int i = 0; i < N * N; ++i)
            A[i / N][i % N] = (unsigned char)(number() & 1u);
        kernel(A, B);
        use(A[3][5]);
    }
    return 0;
}
