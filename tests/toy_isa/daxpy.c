/*
 * daxpy: y = y + a * x over N elements.
 */
#ifndef N
#define N 10000000
#endif

void daxpy(double *restrict y, const double *restrict x, double a)
{
    for (int i = 0; i < N; ++i)
        y[i] = y[i] + a * x[i];
}
