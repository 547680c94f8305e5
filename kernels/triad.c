/*
 * triad: a = b + s * c over N elements (double), the fourth of the STREAM kernels.
 */
#ifndef N
#define N 20000000
#endif

void triad(double *restrict a, const double *restrict b, const double *restrict c, double s)
{
    for (int i = 0; i < N; ++i)
        a[i] = b[i] + s * c[i];
}
