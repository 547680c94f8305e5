/*
 * update: a = s * a over N elements (double), one stream that is read and written.
 */
#ifndef N
#define N 20000000
#endif

void update(double *restrict a, double s)
{
    for (int i = 0; i < N; ++i)
        a[i] = s * a[i];
}
