/* spmv: a sparse matrix in compressed rows times a vector, rows of different lengths. */
#include "suite.h"
#define N 120
#define MOST 9
#define STEPS 60

DATA int ROW[N + 1], COLUMN[N * MOST];
DATA double VALUE[N * MOST], X[N], Y[N];

KERNEL void kernel(const int row[restrict N + 1], const int column[restrict N * MOST], const double value[restrict N * MOST],
                   double x[restrict N], double y[restrict N])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 0; i < N; ++i) {
            double sum = 0.0;
            for (int k = row[i]; k < row[i + 1]; ++k)
                sum += value[k] * x[column[k]];
            y[i] = sum;
        }
        x[t] = 0.1 * y[t];
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        int entries = 0;
        for (int i = 0; i < N; ++i) {
            ROW[i] = entries;
            entries += 3 + (int)(number() % (MOST - 3));
        }
        ROW[N] = entries;
        fill_int(COLUMN, entries, N);
        fill(VALUE, entries);
        fill(X, N);
        kernel(ROW, COLUMN, VALUE, X, Y);
        use(Y[3]);
    }
    return 0;
}
