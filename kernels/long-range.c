/*
 * long-range: time step of a wave equation with a star stencil of radius 4 in three dimensions (double).
 *
 * U holds the previous time step and receives the next one, V is the current one, ROC the squared velocity at each point.
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

void long_range(double U[restrict L][M][N], double V[restrict L][M][N], double ROC[restrict L][M][N],
                double c0, double c1, double c2, double c3, double c4)
{
    for (int k = 4; k < L - 4; ++k)
        for (int j = 4; j < M - 4; ++j)
            for (int i = 4; i < N - 4; ++i) {
                double lap = c0 * V[k][j][i]
                    + c1 * (V[k][j][i + 1] + V[k][j][i - 1]
                          + V[k][j + 1][i] + V[k][j - 1][i]
                          + V[k + 1][j][i] + V[k - 1][j][i])
                    + c2 * (V[k][j][i + 2] + V[k][j][i - 2]
                          + V[k][j + 2][i] + V[k][j - 2][i]
                          + V[k + 2][j][i] + V[k - 2][j][i])
                    + c3 * (V[k][j][i + 3] + V[k][j][i - 3]
                          + V[k][j + 3][i] + V[k][j - 3][i]
                          + V[k + 3][j][i] + V[k - 3][j][i])
                    + c4 * (V[k][j][i + 4] + V[k][j][i - 4]
                          + V[k][j + 4][i] + V[k][j - 4][i]
                          + V[k + 4][j][i] + V[k - 4][j][i]);
                U[k][j][i] = 2.0 * V[k][j][i] - U[k][j][i] + ROC[k][j][i] * lap;
            }
}
