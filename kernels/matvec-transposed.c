/*
 * matvec-transposed: y = A^T x for a matrix of M rows of N elements (double).
 *
 * The rows of A are read as they lie in memory; all of y is read and written for each of them.
 */
#ifndef N
#define N 5000
#endif
#ifndef M
#define M 5000
#endif

void matvec_transposed(double A[restrict M][N], const double *restrict x, double *restrict y)
{
    for (int j = 0; j < M; ++j)
        for (int i = 0; i < N; ++i)
            y[i] += A[j][i] * x[j];
}
