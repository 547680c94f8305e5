/* A program that calls the library beside it. */
long over_three(const long *, long);

int main(void)
{
    long values[100], sum = 0;
    for (int i = 0; i < 100; i++)
        values[i] = i % 10;
    for (int i = 0; i < 50; i++)
        sum += over_three(values, 100);
    return sum != 50 * 390;
}
