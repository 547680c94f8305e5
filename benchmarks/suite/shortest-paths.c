/* shortest-paths: between all pairs of nodes, integer lengths, by Floyd and Warshall. */
#include "suite.h"
#define N 40

DATA int PATH[N][N];

KERNEL void kernel(int path[restrict N][N])
{
    for (int k = 0; k < N; ++k)
        for (int i = 0; i < N; ++i)
            for (int j = 0; j < N; ++j) {
                int by = path[i][k] + path[k][j];
                path[i][j] = by < path[i][j] ? by : path[i][j];
            }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_int(&PATH[0][0], N * N, 1000);
        kernel(PATH);
        use(PATH[3][5]);
    }
    return 0;
}
