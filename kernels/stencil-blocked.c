/*
 * stencil-blocked: 5-point Jacobi sweep in two dimensions, M rows of N points in column blocks of T points (double).
 *
 * The sweep of the kernel stencil, cut so that three rows of a block fit a cache where three whole rows do not.
 */
#ifndef N
#define N 5000
#endif
#ifndef M
#define M 5000
#endif
#ifndef T
#define T 512
#endif
#define MIN(x, y) ((x) < (y) ? (x) : (y))

void stencil_blocked(double a[restrict M][N], double b[restrict M][N], double s)
{
    for (int ii = 1; ii < N - 1; ii += T)
        for (int j = 1; j < M - 1; ++j)
            for (int i = ii; i < MIN(ii + T, N - 1); ++i)
                b[j][i] = (a[j][i - 1] + a[j][i + 1] + a[j - 1][i] + a[j + 1][i]) * s;
}
