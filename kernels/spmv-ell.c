/*
 * spmv-ell: sparse matrix times vector, N rows with K stored entries each (ELLPACK form; double, 32-bit columns).
 *
 * Short rows are padded with zeros. The rows of compressed row storage (CRS) end where an array says, so that their
 * iterations cannot be counted; with K as the mean number of entries this kernel stands for it.
 */
#ifndef N
#define N 1000000
#endif
#ifndef K
#define K 32
#endif

void spmv_ell(double y[restrict N], double val[restrict N][K], int col[restrict N][K], const double x[restrict N])
{
    for (int j = 0; j < N; ++j) {
        double sum = 0.0;
        for (int k = 0; k < K; ++k)
            sum += val[j][k] * x[col[j][k]];
        y[j] = sum;
    }
}
