/* insertion-sort: of integers; the inner loop ends where the data say so. */
#include "suite.h"
#define N 500

DATA int A[N];

KERNEL void kernel(int a[restrict N])
{
    for (int i = 1; i < N; ++i) {
        int own = a[i], j = i - 1;
        while (j >= 0 && a[j] > own) {
            a[j + 1] = a[j];
            --j;
        }
        a[j + 1] = own;
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
