/* fdtd-2d: electric and magnetic field on a staggered grid, some steps in time. */
#include "suite.h"
#define NX 28
#define NY 32
#define STEPS 48

DATA double EX[NX][NY], EY[NX][NY], HZ[NX][NY];

KERNEL void kernel(double ex[restrict NX][NY], double ey[restrict NX][NY], double hz[restrict NX][NY])
{
    for (int t = 0; t < STEPS; ++t) {
        for (int i = 1; i < NX; ++i)
            for (int j = 0; j < NY; ++j)
                ey[i][j] -= 0.5 * (hz[i][j] - hz[i - 1][j]);
        for (int i = 0; i < NX; ++i)
            for (int j = 1; j < NY; ++j)
                ex[i][j] -= 0.5 * (hz[i][j] - hz[i][j - 1]);
        for (int i = 0; i < NX - 1; ++i)
            for (int j = 0; j < NY - 1; ++j)
                hz[i][j] -= 0.7 * (ex[i][j + 1] - ex[i][j] + ey[i + 1][j] - ey[i][j]);
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(&EX[0][0], NX * NY);
        fill(&EY[0][0], NX * NY);
        fill(&HZ[0][0], NX * NY);
        kernel(EX, EY, HZ);
        use(HZ[3][5]);
    }
    return 0;
}
