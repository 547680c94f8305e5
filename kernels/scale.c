/*
 * scale: a = s * b over N elements (double), the second of the STREAM kernels.
 */
#ifndef N
#define N 20000000
#endif

void scale(double *restrict a, const double *restrict b, double s)
{
    for (int i = 0; i < N; ++i)
        a[i] = s * b[i];
}
