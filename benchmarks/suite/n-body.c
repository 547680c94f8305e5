/* n-body: accelerations of all bodies by all others, with a softening length. */
#include "suite.h"
#define N 140

DATA double X[N], Y[N], Z[N], MASS[N], AX[N], AY[N], AZ[N];

KERNEL void kernel(const double x[restrict N], const double y[restrict N], const double z[restrict N],
                   const double mass[restrict N], double ax[restrict N], double ay[restrict N], double az[restrict N])
{
    for (int i = 0; i < N; ++i) {
        double sx = 0.0, sy = 0.0, sz = 0.0;
        for (int j = 0; j < N; ++j) {
            double dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
            double square = dx * dx + dy * dy + dz * dz + 0.01;
            double weight = mass[j] / (square * __builtin_sqrt(square));
            sx += weight * dx;
            sy += weight * dy;
            sz += weight * dz;
        }
        ax[i] = sx;
        ay[i] = sy;
        az[i] = sz;
    }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill(X, N);
        fill(Y, N);
        fill(Z, N);
        fill(MASS, N);
        kernel(X, Y, Z, MASS, AX, AY, AZ);
        use(AX[3] + AY[5] + AZ[7]);
    }
    return 0;
}
