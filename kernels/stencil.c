/*
 * stencil: 5-point Jacobi sweep in two dimensions, M rows of N points (double).
 *
 * Each iteration updates one point of b from the four neighbours in a: 4 loads, 1 store, 3 additions, 1 multiplication.
 */
#ifndef N
#define N 5000
#endif
#ifndef M
#define M 5000
#endif

void stencil(double a[restrict M][N], double b[restrict M][N], double s)
{
    for (int j = 1; j < M - 1; ++j)
        for (int i = 1; i < N - 1; ++i)
            b[j][i] = (a[j][i - 1] + a[j][i + 1] + a[j - 1][i] + a[j + 1][i]) * s;
}
