/* base-pairs: most pairs in a folded sequence of four letters, by dynamic programming over its stretches. */
#include "suite.h"
#define N 60

DATA int LETTER[N], TABLE[N][N];

KERNEL void kernel(const int letter[restrict N], int table[restrict N][N])
{
    for (int i = N - 1; i >= 0; --i)
        for (int j = i + 1; j < N; ++j) {
            int best = table[i][j - 1];
            if (i + 1 < N && table[i + 1][j] > best)
                best = table[i + 1][j];
            if (i + 1 < j) {
                int paired = table[i + 1][j - 1] + (letter[i] + letter[j] == 3);
                if (paired > best)
                    best = paired;
            }
            for (int k = i + 1; k < j; ++k) {
                int parts = table[i][k] + table[k + 1][j];
                best = parts > best ? parts : best;
            }
            table[i][j] = best;
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_int(LETTER, N, 4);
        for (int i = 0; i < N * N; ++i)
            TABLE[i / N][i % N] = 0;
        kernel(LETTER, TABLE);
        use(TABLE[0][N - 1]);
    }
    return 0;
}
