/*
 * histogram: how often each of M values occurs among N keys (32-bit integers).
 *
 * A count is read and written through an index, so that no compiler can exclude that iterations depend on one another.
 */
#ifndef N
#define N 20000000
#endif
#ifndef M
#define M 65536
#endif

void histogram(int count[restrict M], const int key[restrict N])
{
    for (int i = 0; i < N; ++i)
        count[key[i]] += 1;
}
