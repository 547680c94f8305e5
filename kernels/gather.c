/*
 * gather: y = x at the places that idx names, N elements from a table of M (double, 32-bit indices).
 */
#ifndef N
#define N 20000000
#endif
#ifndef M
#define M 20000000
#endif

void gather(double y[restrict N], const double x[restrict M], const int idx[restrict N])
{
    for (int i = 0; i < N; ++i)
        y[i] = x[idx[i]];
}
