/* covariance: of the columns of a table; the mean is taken off first. */
#include "suite.h"
#define N 52
#define M 36

DATA double D[N][M], COV[M][M], MEAN[M];

KERNEL void kernel(double d[restrict N][M], double cov[restrict M][M], double mean[restrict M])
{
    for (int j = 0; j < M; ++j) {
        mean[j] = 0.0;
        for (int i = 0; i < N; ++i)
            mean[j] += d[i][j];
        mean[j] /= N;
    }
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < M; ++j)
            d[i][j] -= mean[j];
    for (int i = 0; i < M; ++i)
        for (int j = i; j < M; ++j) {
            double sum = 0.0;
            for (int k = 0; k < N; ++k)
                sum += d[k][i] * d[k][j];
            cov[i][j] = sum / (N - 1.0);
            cov[j][i] = cov[i][j];
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&D[0][0], N * M);
        kernel(D, COV, MEAN);
        use(COV[3][5]);
    }
    return 0;
}
