/*
 * uxx: velocity update of an earthquake simulation on a staggered grid, 4th order in space (double).
 *
 * u1 moves by the divergence of the stresses xx, xy and xz over the mean density d1 of the four surrounding points; the
 * division makes it a kernel that the divider can bound.
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

void uxx(double u1[restrict L][M][N], double d1[restrict L][M][N], double xx[restrict L][M][N],
         double xy[restrict L][M][N], double xz[restrict L][M][N], double c1, double c2, double dth)
{
    for (int k = 2; k < L - 2; ++k)
        for (int j = 2; j < M - 2; ++j)
            for (int i = 2; i < N - 2; ++i) {
                double d = 0.25 * (d1[k][j][i] + d1[k][j - 1][i] + d1[k - 1][j][i] + d1[k - 1][j - 1][i]);
                u1[k][j][i] = u1[k][j][i] + (dth / d)
                    * (c1 * (xx[k][j][i] - xx[k][j][i - 1]) + c2 * (xx[k][j][i + 1] - xx[k][j][i - 2])
                     + c1 * (xy[k][j][i] - xy[k][j - 1][i]) + c2 * (xy[k][j + 1][i] - xy[k][j - 2][i])
                     + c1 * (xz[k][j][i] - xz[k - 1][j][i]) + c2 * (xz[k + 1][j][i] - xz[k - 2][j][i]));
            }
}
