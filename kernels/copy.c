/*
 * copy: a = b over N elements (double), the first of the STREAM kernels.
 */
#ifndef N
#define N 20000000
#endif

void copy(double *restrict a, const double *restrict b)
{
    for (int i = 0; i < N; ++i)
        a[i] = b[i];
}
