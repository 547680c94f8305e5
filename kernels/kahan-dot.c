/*
 * kahan-dot: scalar product of two vectors of N elements (double) with Kahan's compensated summation.
 *
 * c carries the low part that each addition loses into the next iteration: a chain of four dependent additions. Compile
 * without -ffast-math, which would fold the compensation away.
 */
#ifndef N
#define N 20000000
#endif

double kahan_dot(const double *restrict a, const double *restrict b)
{
    double sum = 0.0;
    double c = 0.0;
    for (int i = 0; i < N; ++i) {
        double prod = a[i] * b[i];
        double y = prod - c;
        double t = sum + y;
        c = (t - sum) - y;
        sum = t;
    }
    return sum;
}
