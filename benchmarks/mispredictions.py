"""What a mispredicted branch takes on this host: the figure `branch misprediction` of the files of microarchitectures.

    python benchmarks/mispredictions.py [--samples 200]

Each line is a loop with a branch over random bytes, of which a predictor is wrong about one half, behind a load and a
number of multiplications. Printed are the cycles of a pass with bytes that are all alike, with random bytes, and what
that makes for each misprediction. From that, the load (5 cycles with its index), the multiplications (3 each), the
comparison and what the predictor gets right behind it are to be taken off: the penalty is what a simulation has to put
between the execution of a branch and of what follows it, so that the same loops take as long there. The smallest of
many short samples counts, each with bytes of its own.
"""

from __future__ import annotations

import argparse
import ctypes
import random

from timed_code import compiled, cycle_ticks, declare

_LOOP = r"""
uint64_t branches_%d(const unsigned char *taken, long count)
{
    uint64_t begin = now(), place = 0, sum = 0;
    __asm__ volatile(".p2align 6\n1: movzbl (%%2,%%0), %%%%eax\n %s test %%%%eax, %%%%eax\n je 2f\n add $1, %%1\n"
                     "2: inc %%0\n cmp %%3, %%0\n jne 1b" : "+r"(place), "+r"(sum) : "r"(taken), "r"(count)
                     : "rax", "cc", "memory");
    return now() - begin;
}
"""
_MULTIPLICATIONS = (0, 1, 2, 4, 8)
_COUNT = 4096


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200, help="of each figure")
    options = parser.parse_args()
    draw = random.Random(1)
    made = compiled("".join(_LOOP % (n, r"imul %%eax, %%eax\n " * n) for n in _MULTIPLICATIONS))
    cycle = cycle_ticks(made, options.samples)
    print("multiplications   alike  random  a misprediction (cycles)")
    for n in _MULTIPLICATIONS:
        declare(made, f"branches_{n}", ctypes.c_char_p, ctypes.c_long)
        timed = getattr(made, f"branches_{n}")
        alike = min(timed(bytes(_COUNT), _COUNT) for _ in range(options.samples))
        texts = (bytes(draw.getrandbits(1) for _ in range(_COUNT)) for _ in range(options.samples))
        drawn = min(timed(text, _COUNT) for text in texts)
        known, unknown = (ticks / cycle / _COUNT for ticks in (alike, drawn))
        print(f"{n:15d} {known:7.2f} {unknown:7.2f} {2 * (unknown - known):7.2f}")


if __name__ == "__main__":
    main()
