/*
 * matmul: C = C + A B for matrices of M by K and K by N elements (double), rows of B in the inner loop.
 *
 * The order of the loops lets all arrays be walked along their rows.
 */
#ifndef N
#define N 2000
#endif
#ifndef M
#define M 2000
#endif
#ifndef K
#define K 2000
#endif

void matmul(double C[restrict M][N], double A[restrict M][K], double B[restrict K][N])
{
    for (int j = 0; j < M; ++j)
        for (int k = 0; k < K; ++k)
            for (int i = 0; i < N; ++i)
                C[j][i] += A[j][k] * B[k][i];
}
