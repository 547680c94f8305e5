/*
 * scatter: y at the places that idx names is set to x, N elements into a table of M (double, 32-bit indices).
 */
#ifndef N
#define N 20000000
#endif
#ifndef M
#define M 20000000
#endif

void scatter(double y[restrict M], const double x[restrict N], const int idx[restrict N])
{
    for (int i = 0; i < N; ++i)
        y[idx[i]] = x[i];
}
