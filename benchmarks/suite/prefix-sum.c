/* prefix-sum: running sums of integers, and of their squares. */
#include "suite.h"
#define N 1200
#define STEPS 40

DATA int X[N], S[N], Q[N];

KERNEL void kernel(const int x[restrict N], int s[restrict N], int q[restrict N])
{
    for (int t = 0; t < STEPS; ++t) {
        int sum = t, squares = t;
        for (int i = 0; i < N; ++i) {
            sum += x[i];
            squares += x[i] * x[i];
            s[i] = sum;
            q[i] = squares;
        }
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_int(X, N, 100);
        kernel(X, S, Q);
        use(S[3] + Q[5]);
    }
    return 0;
}
