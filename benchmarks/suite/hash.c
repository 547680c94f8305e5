/* hash: many short keys, byte by byte. */
#include "suite.h"
#define N 120
#define LENGTH 24
#define STEPS 14

DATA unsigned char KEY[N][LENGTH];
DATA unsigned HASH[N];

KERNEL void kernel(const unsigned char key[restrict N][LENGTH], unsigned hash[restrict N])
{
    for (int t = 0; t < STEPS; ++t)
        for (int i = 0; i < N; ++i) {
            unsigned h = 2166136261u + (unsigned)t;
            for (int j = 0; j < LENGTH; ++j) {
                h ^= key[i][j];
                h *= 16777619u;
            }
            hash[i] = h;
        }
}

int main(void)
{
    for (int call = 0; call < CALLS; ++call) {
        for (int i = 0; i < N * LENGTH; ++i)
            KEY[i / LENGTH][i % LENGTH] = (unsigned char)number();
        kernel(KEY, HASH);
        use(HASH[3]);
    }
    return 0;
}
