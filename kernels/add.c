/*
 * add: a = b + c over N elements (double), the third of the STREAM kernels.
 */
#ifndef N
#define N 20000000
#endif

void add(double *restrict a, const double *restrict b, const double *restrict c)
{
    for (int i = 0; i < N; ++i)
        a[i] = b[i] + c[i];
}
