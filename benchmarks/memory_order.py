"""What it costs that a load was executed before an older store of the same bytes, on this host.

    python benchmarks/memory_order.py [--samples 2000]

A row of n elements is updated two at a time, as clang compiles Floyd's and Warshall's algorithm (`shortest-paths` in
the suite): each of the two loads one element of the row again, which is stored once in a row. Printed are the cycles of
a row beyond those of the same row with that element elsewhere, by where in the row it is. Behind the last element no
load of the row follows its store. Nothing else differs, and what is forwarded takes 8 cycles: what is beyond may be the
time to find out that the load came too early, and to execute again what follows it. No prediction knows it.
"""

from __future__ import annotations

import argparse
import ctypes
import random

from timed_code import compiled, cycle_ticks, declare

_SOURCE = r"""
uint64_t rows(int *all, long n, long count, long k, long again)
{
    uint64_t begin = now();
    static int apart;
    for (long i = 0; i < count; i++) {
        int *from = all + k * n, *row = all + i * n, *element = again ? row + k : &apart;
        long j = 1;
        __asm__ volatile(".p2align 6\n1: mov -4(%1,%0,4), %%eax\n add (%3), %%eax\n mov -4(%2,%0,4), %%edx\n"
                         "mov (%2,%0,4), %%ecx\n cmp %%edx, %%eax\n cmovge %%edx, %%eax\n mov %%eax, -4(%2,%0,4)\n"
                         "mov (%1,%0,4), %%eax\n add (%3), %%eax\n cmp %%ecx, %%eax\n cmovge %%ecx, %%eax\n"
                         "mov %%eax, (%2,%0,4)\n add $2, %0\n cmp %4, %0\n jne 1b"
                         : "+r"(j) : "r"(from), "r"(row), "r"(element), "r"(n + 1)
                         : "rax", "rcx", "rdx", "memory", "cc");
    }
    return now() - begin;
}
"""
_LENGTHS = (20, 40, 80, 160)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000, help="of each figure")
    options = parser.parse_args()
    draw = random.Random(1)
    made = compiled(_SOURCE)
    declare(made, "rows", ctypes.c_void_p, *[ctypes.c_long] * 4)
    cycle = cycle_ticks(made, options.samples)
    print("cycles of a row beyond those without: the element is the first, the second, in the middle, the last")
    for n in _LENGTHS:
        table = (ctypes.c_int * (n * n))(*(draw.randrange(1000) for _ in range(n * n)))
        count = min(n, 3200 // n)
        print(f"{n:4d} elements", end="")
        for k in (0, 1, n // 2, n - 1):
            least = []
            for again in (1, 0):
                place = ctypes.addressof(table)
                least.append(min(made.rows(place, n, count, k, again) for _ in range(options.samples)) / cycle / count)
            print(f"{least[0] - least[1]:7.1f}", end="", flush=True)
        print()


if __name__ == "__main__":
    main()
