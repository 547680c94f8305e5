// A function through which exceptions pass.
#include <cstdio>
#include <stdexcept>

extern "C" __attribute__((noinline)) int passes(int n)
{
    if (n % 3 == 0)
        throw std::runtime_error("three");
    return n;
}

int main()
{
    int sum = 0;
    for (int i = 1; i < 10; i++)
        try {
            sum += passes(i);
        } catch (const std::exception &) {
            sum--;
        }
    std::printf("%d\n", sum);
    return 0;
}
