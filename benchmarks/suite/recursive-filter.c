/* recursive-filter: a second-order filter along each row, forwards and backwards, and the sum of both. */
#include "suite.h"
#define H 16
#define W 60
#define STEPS 8

DATA float IN[H][W], OUT[H][W], FORWARD[W];

KERNEL void kernel(const float in[restrict H][W], float out[restrict H][W], float forward[restrict W], float a0, float a1,
                   float b1, float b2)
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < H; ++i) {
            float y1 = 0.0f, y2 = 0.0f, x1 = 0.0f;
            for (int j = 0; j < W; ++j) {
                float y = a0 * in[i][j] + a1 * x1 + b1 * y1 + b2 * y2;
                forward[j] = y;
                x1 = in[i][j];
                y2 = y1;
                y1 = y;
            }
            y1 = y2 = x1 = 0.0f;
            for (int j = W - 1; j >= 0; --j) {
                float y = a0 * in[i][j] + a1 * x1 + b1 * y1 + b2 * y2;
                x1 = in[i][j];
                y2 = y1;
                y1 = y;
                out[i][j] = forward[j] + y;
            }
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_float(&IN[0][0], H * W);
        kernel(IN, OUT, FORWARD, 0.2f, 0.1f, 0.5f, 0.2f);
        use(OUT[3][5]);
    }
    return 0;
}
