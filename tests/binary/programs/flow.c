/* Functions with the kinds of control flow that are told apart. */
#include <stdio.h>
#include <stdlib.h>

double A[24][24], B[24][24], C[24][24];

__attribute__((noinline)) void gemm(int n, double alpha)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += A[i][k] * B[k][j];
            C[i][j] += alpha * sum;
        }
}

__attribute__((noinline)) int choose(const int *codes, int n)
{
    int r = 0;
    for (int i = 0; i < n; i++)
        switch (codes[i]) {
        case 0: r += 3; break;
        case 1: r ^= i; break;
        case 2: r -= 7 * i; break;
        case 3: r *= 5; break;
        case 4: r += abs(r); break;
        case 5: r = ~r; break;
        case 6: r >>= 1; break;
        default: r++;
        }
    return r;
}

__attribute__((noinline, cold)) void complain(double x)
{
    fprintf(stderr, "%g is negative\n", x);
}

__attribute__((noinline)) double guarded(double x)
{
    if (x < 0) {
        complain(x);
        x = -x;
    }
    return 2 * x;
}

__attribute__((noinline)) long fib(int n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main(int count, char **arguments)
{
    int n = count > 1 ? atoi(arguments[1]) : 20, codes[90];
    for (int i = 0; i < 24; i++)
        for (int j = 0; j < 24; j++)
            A[i][j] = i + j, B[i][j] = i - j;
    for (int i = 0; i < 90; i++)
        codes[i] = i % 9;
    for (int times = 0; times < 3; times++)
        gemm(n, 1.5);
    printf("%g %d %g %ld\n", C[3][4], choose(codes, 90), guarded(n), fib(10));
    return 0;
}
