/* argmax: the largest element of each row and where it is. */
#include "suite.h"
#define N 40
#define M 60
#define STEPS 16

DATA float A[N][M], LARGEST[N];
DATA int PLACE[N];

KERNEL void kernel(const float a[restrict N][M], float largest[restrict N], int place[restrict N])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i) {
            float best = a[i][t];
            int where = t;
            for (int j = 0; j < M; ++j)
                if (a[i][j] > best) {
                    best = a[i][j];
                    where = j;
                }
            largest[i] = best;
            place[i] = where;
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_float(&A[0][0], N * M);
        kernel(A, LARGEST, PLACE);
        use(LARGEST[3] + PLACE[5]);
    }
    return 0;
}
