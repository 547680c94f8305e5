/*
 * sum: sum of a vector of N elements (double).
 */
#ifndef N
#define N 20000000
#endif

double sum(const double *restrict a)
{
    double s = 0.0;
    for (int i = 0; i < N; ++i)
        s += a[i];
    return s;
}
