/*
 * daxpy: a = a + s * b over N elements (double), as in the basic linear algebra subprograms.
 */
#ifndef N
#define N 20000000
#endif

void daxpy(double *restrict a, const double *restrict b, double s)
{
    for (int i = 0; i < N; ++i)
        a[i] += s * b[i];
}
