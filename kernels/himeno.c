/*
 * himeno: Jacobi iteration of a Poisson equation with variable coefficients, 19 points (float).
 *
 * The loop of the Himeno benchmark: coefficient arrays a (4), b (3) and c (3) for each point, pressure p, source wrk1, mask
 * bnd; the squared residual is summed.
 */
#ifndef N
#define N 256
#endif
#ifndef M
#define M 256
#endif
#ifndef L
#define L 256
#endif

float himeno(float a[restrict 4][L][M][N], float b[restrict 3][L][M][N], float c[restrict 3][L][M][N],
             float p[restrict L][M][N], float wrk1[restrict L][M][N], float wrk2[restrict L][M][N],
             float bnd[restrict L][M][N], float omega)
{
    float gosa = 0.0f;
    for (int k = 1; k < L - 1; ++k)
        for (int j = 1; j < M - 1; ++j)
            for (int i = 1; i < N - 1; ++i) {
                float s0 = a[0][k][j][i] * p[k + 1][j][i]
                    + a[1][k][j][i] * p[k][j + 1][i]
                    + a[2][k][j][i] * p[k][j][i + 1]
                    + b[0][k][j][i] * (p[k + 1][j + 1][i] - p[k + 1][j - 1][i] - p[k - 1][j + 1][i] + p[k - 1][j - 1][i])
                    + b[1][k][j][i] * (p[k][j + 1][i + 1] - p[k][j - 1][i + 1] - p[k][j + 1][i - 1] + p[k][j - 1][i - 1])
                    + b[2][k][j][i] * (p[k + 1][j][i + 1] - p[k - 1][j][i + 1] - p[k + 1][j][i - 1] + p[k - 1][j][i - 1])
                    + c[0][k][j][i] * p[k - 1][j][i]
                    + c[1][k][j][i] * p[k][j - 1][i]
                    + c[2][k][j][i] * p[k][j][i - 1]
                    + wrk1[k][j][i];
                float ss = (s0 * a[3][k][j][i] - p[k][j][i]) * bnd[k][j][i];
                gosa += ss * ss;
                wrk2[k][j][i] = p[k][j][i] + omega * ss;
            }
    return gosa;
}
