/* edit-distance: between two words, one row of the table at a time. */
#include "suite.h"
#define N 120
#define M 110

DATA int A[N], B[M], ROW[M + 1];

KERNEL int kernel(const int a[restrict N], const int b[restrict M], int row[restrict M + 1])
{
    for (int j = 0; j <= M; ++j)
        row[j] = j;
    for (int i = 0; i < N; ++i) {
        int diagonal = row[0];
        row[0] = i + 1;
        for (int j = 0; j < M; ++j) {
            int other = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            int best = row[j] < diagonal ? row[j] + 1 : diagonal + 1;
            row[j + 1] = other < best ? other : best;
        }
    }
    return row[M];
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_int(A, N, 4);
        fill_int(B, M, 4);
        use(kernel(A, B, ROW));
    }
    return 0;
}
