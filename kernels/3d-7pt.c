/*
 * 3d-7pt: 7-point Jacobi sweep in three dimensions, L planes of M rows of N points (double).
 *
 * The centre and its six neighbours along the axes, with one coefficient for the centre and one for the neighbours.
 */
#ifndef N
#define N 400
#endif
#ifndef M
#define M 400
#endif
#ifndef L
#define L 400
#endif

void stencil_3d_7pt(double a[restrict L][M][N], double b[restrict L][M][N], double c0, double c1)
{
    for (int k = 1; k < L - 1; ++k)
        for (int j = 1; j < M - 1; ++j)
            for (int i = 1; i < N - 1; ++i)
                b[k][j][i] = c0 * a[k][j][i]
                           + c1 * (a[k][j][i - 1] + a[k][j][i + 1]
                                 + a[k][j - 1][i] + a[k][j + 1][i]
                                 + a[k - 1][j][i] + a[k + 1][j][i]);
}
