/*
 * schoenauer: a = b + c * d over N elements (double), the vector triad of Schönauer: three loads and one store.
 */
#ifndef N
#define N 20000000
#endif

void schoenauer(double *restrict a, const double *restrict b, const double *restrict c, const double *restrict d)
{
    for (int i = 0; i < N; ++i)
        a[i] = b[i] + c[i] * d[i];
}
