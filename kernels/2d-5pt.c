/*
 * 2d-5pt: 5-point Gauss-Seidel sweep in place, M rows of N points (double).
 *
 * Each point is replaced by the mean of its neighbours; the left and the lower one have their new values already, so that
 * every iteration waits for the one before it.
 */
#ifndef N
#define N 5000
#endif
#ifndef M
#define M 5000
#endif

void gauss_seidel(double a[restrict M][N], double s)
{
    for (int j = 1; j < M - 1; ++j)
        for (int i = 1; i < N - 1; ++i)
            a[j][i] = (a[j][i - 1] + a[j][i + 1] + a[j - 1][i] + a[j + 1][i]) * s;
}
