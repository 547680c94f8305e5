/*
 * matvec: y = A x for a matrix of M rows of N elements (double), row by row.
 */
#ifndef N
#define N 5000
#endif
#ifndef M
#define M 5000
#endif

void matvec(double A[restrict M][N], const double *restrict x, double *restrict y)
{
    for (int j = 0; j < M; ++j) {
        double sum = 0.0;
        for (int i = 0; i < N; ++i)
            sum += A[j][i] * x[i];
        y[j] = sum;
    }
}
