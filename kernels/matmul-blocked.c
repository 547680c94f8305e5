/*
 * matmul-blocked: C = C + A B for N by N matrices (double), with blocks of T by T elements of B.
 *
 * The loops of the kernel matmul, cut so that a block of B is used for all rows of A while it is in a cache.
 */
#ifndef N
#define N 2000
#endif
#ifndef T
#define T 64
#endif
#define MIN(x, y) ((x) < (y) ? (x) : (y))

void matmul_blocked(double C[restrict N][N], double A[restrict N][N], double B[restrict N][N])
{
    for (int kk = 0; kk < N; kk += T)
        for (int ii = 0; ii < N; ii += T)
            for (int j = 0; j < N; ++j)
                for (int k = kk; k < MIN(kk + T, N); ++k)
                    for (int i = ii; i < MIN(ii + T, N); ++i)
                        C[j][i] += A[j][k] * B[k][i];
}
