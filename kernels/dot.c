/*
 * dot: scalar product of two vectors of N elements (double).
 */
#ifndef N
#define N 20000000
#endif

double dot(const double *restrict a, const double *restrict b)
{
    double sum = 0.0;
    for (int i = 0; i < N; ++i)
        sum += a[i] * b[i];
    return sum;
}
