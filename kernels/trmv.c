/*
 * trmv: lower triangular matrix times vector, N rows of an N × N matrix (double).
 *
 * Row j has j + 1 entries: a nest whose inner loop grows with the outer one.
 */
#ifndef N
#define N 5000
#endif

void trmv(double A[restrict N][N], const double *restrict x, double *restrict y)
{
    for (int j = 0; j < N; ++j) {
        double sum = 0.0;
        for (int i = 0; i <= j; ++i)
            sum += A[j][i] * x[i];
        y[j] = sum;
    }
}
