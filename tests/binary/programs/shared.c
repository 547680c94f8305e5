/* A function of a shared library. */
long over_three(const long *values, long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        if (values[i] > 3)
            sum += values[i];
    return sum;
}
