/*
 * What the kernels of the suite share: data for them, and a function that is called as it stands.
 *
 * Every call gets new numbers from one deterministic sequence: two runs do the same, but no call repeats the branches of
 * the one before.
 */
#ifndef SUITE_H
#define SUITE_H

#ifndef CALLS
#define CALLS 100
#endif

#ifdef __clang__
#define KERNEL __attribute__((noinline))
#else
#define KERNEL __attribute__((noinline, noclone))
#endif
#define DATA static __attribute__((aligned(64)))

static unsigned sequence = 1u;

static inline unsigned number(void)
{
    sequence = sequence * 1664525u + 1013904223u;
    return sequence >> 8;
}

/* Numbers from 0.5 to 1.5: normal ones, of which neither sums nor differences nor products come near the ends of the range. */
static inline void fill(double *a, int n)
{
    for (int i = 0; i < n; ++i)
        a[i] = 0.5 + number() / 16777216.0;
}

static inline void fill_float(float *a, int n)
{
    for (int i = 0; i < n; ++i)
        a[i] = 0.5f + (float)number() / 16777216.0f;
}

/* Integers from 0 to below `range`. */
static inline void fill_int(int *a, int n, int range)
{
    for (int i = 0; i < n; ++i)
        a[i] = (int)(number() % (unsigned)range);
}

static volatile double used;

/* Lets no compiler leave out what computed this. */
static inline void use(double x)
{
    used += x;
}

#endif
