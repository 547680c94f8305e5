/* bubble-sort: of integers, without an early end. */
#include "suite.h"
#define N 180

DATA int A[N];

KERNEL void kernel(int a[restrict N])
{
    for (int end = N - 1; end > 0; --end)
        for (int i = 0; i < end; ++i)
            if (a[i] > a[i + 1]) {
                int larger = a[i];
                a[i] = a[i + 1];
                a[i + 1] = larger;
            }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_int(A, N, 100000);
        kernel(A);
        use(A[3]);
    }
    return 0;
}
