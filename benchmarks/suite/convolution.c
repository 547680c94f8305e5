/* convolution: of a small image with a mask of 5 x 5 points, single precision. */
#include "suite.h"
#define H 28
#define W 40
#define K 5
#define STEPS 14

DATA float IN[H + K][W + K], OUT[H][W], MASK[K][K];

KERNEL void kernel(const float in[restrict H + K][W + K], float out[restrict H][W], const float mask[restrict K][K])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < H; ++i)
            for (int j = 0; j < W; ++j) {
                float sum = 0.0f;
                for (int k = 0; k < K; ++k)
                    for (int l = 0; l < K; ++l)
                        sum += mask[k][l] * in[i + k][j + l];
                out[i][j] += sum;
            }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        fill_float(&IN[0][0], (H + K) * (W + K));
        fill_float(&MASK[0][0], K * K);
        kernel(IN, OUT, MASK);
        use(OUT[3][5]);
    }
    return 0;
}
