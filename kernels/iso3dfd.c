/*
 * iso3dfd: isotropic finite differences of 8th order in three dimensions (float), on flat arrays.
 *
 * The time step of acoustic wave propagation that the application-driven cache-aware roofline is shown with (Marques, Ilic,
 * Sousa, "Application-driven Cache-Aware Roofline Model", FGCS 2020, section 5.1), without its cache blocking. next holds the
 * previous time step and receives the next one, vel is the squared velocity times the squared time step.
 */
#ifndef N
#define N 400
#endif
#ifndef M
#define M 400
#endif
#ifndef L
#define L 400
#endif

void iso3dfd(float *restrict next, const float *restrict prev, const float *restrict vel,
             float c0, float c1, float c2, float c3, float c4)
{
    for (int k = 4; k < L - 4; ++k)
        for (int j = 4; j < M - 4; ++j)
            for (int i = 4; i < N - 4; ++i) {
                int here = (k * M + j) * N + i;
                float value = c0 * prev[here]
                    + c1 * (prev[here + 1] + prev[here - 1]
                          + prev[here + N] + prev[here - N]
                          + prev[here + N * M] + prev[here - N * M])
                    + c2 * (prev[here + 2] + prev[here - 2]
                          + prev[here + 2 * N] + prev[here - 2 * N]
                          + prev[here + 2 * N * M] + prev[here - 2 * N * M])
                    + c3 * (prev[here + 3] + prev[here - 3]
                          + prev[here + 3 * N] + prev[here - 3 * N]
                          + prev[here + 3 * N * M] + prev[here - 3 * N * M])
                    + c4 * (prev[here + 4] + prev[here - 4]
                          + prev[here + 4 * N] + prev[here - 4 * N]
                          + prev[here + 4 * N * M] + prev[here - 4 * N * M]);
                next[here] = 2.0f * prev[here] - next[here] + value * vel[here];
            }
}
