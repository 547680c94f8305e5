"""Up to how many passes a core foresees the end of a loop: `foreseen loop passes` of the files of microarchitectures.

    python benchmarks/loop_exits.py [--most 256] [--samples 400]

Rows of a loop of n passes are run one behind the other: of the same length, and of lengths that grow by one from row to
row and start again (a triangle, as the rows of LU). The counter itself is the chain, three cycles a pass, so that
nothing hides a misprediction, and a sibling thread on the core has room beside it. What a row takes beyond its passes
is printed over n: a predictor that foresees the end takes a few cycles (the load of the next length), one that does not
also the misprediction penalty. The figure is the last n before a row first takes half of that penalty.

Times are cycles of the core: the time stamp counter beside a chain of dependent additions, the smallest of many short
samples of each, so that whatever else runs on the host matters little.
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Sequence
from statistics import median

from timed_code import compiled, cycle_ticks, declare, row_cycles

_SOURCE = r"""
uint64_t rows(const int *lengths, long count)
{
    uint64_t begin = now();
    const int *end = lengths + count;
    /* the counter is the chain: three cycles a pass, and a row begins when the last one has ended */
    __asm__ volatile("xor %%ecx, %%ecx\n"
                     ".p2align 6\n1: mov (%0,%%rcx), %%ecx\n add $4, %0\n"
                     ".p2align 5\n2: ror $16, %%ecx\n ror $16, %%ecx\n dec %%ecx\n jne 2b\n"
                     "cmp %1, %0\n jne 1b"
                     : "+r"(lengths) : "r"(end) : "rcx", "cc", "memory");
    return now() - begin;
}
"""
_PASSES = 10_000
"""Passes of a sample, some 10 µs: short enough that many samples are not interrupted."""
_PASS_CYCLES = 3
_FEW = 8


def extra_cycles(made: ctypes.CDLL, lengths: Sequence[int], samples: int) -> float:
    """Cycles that a row takes beyond its passes."""
    cycle = cycle_ticks(made, samples)
    return row_cycles(made.rows, lengths, samples, cycle=cycle, pass_cycles=_PASS_CYCLES, passes=_PASSES)


def reach(extra: dict[int, float]) -> int:
    """The last number of passes before a row first takes half of what mispredicted ends add."""
    sizes, cycles = list(extra), list(extra.values())
    foreseen, surprised = median(cycles[:_FEW]), median(cycles[-_FEW:])
    beyond = (n for n in sizes if extra[n] > (foreseen + surprised) / 2)
    first = next(beyond, sizes[-1] + 1)
    return max((n for n in sizes if n < first), default=0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=256, help="the longest row")
    parser.add_argument("--samples", type=int, default=400, help="of which the smallest counts")
    options = parser.parse_args()
    sizes = [n for n in range(4, options.most + 1) if n % 4 == 0 and (n <= 64 or n % 8 == 0)]
    made = compiled(_SOURCE)
    declare(made, "rows", ctypes.c_void_p, ctypes.c_long)
    constant = {n: extra_cycles(made, [n], options.samples) for n in sizes}
    growing = {n: extra_cycles(made, range(1, n + 1), options.samples) for n in sizes}
    print("passes  cycles beyond them in a row of n passes / in rows of 1 to n passes")
    for n in sizes:
        print(f"{n:6d}  {constant[n]:6.1f} {growing[n]:6.1f}")
    print(f"foreseen up to {reach(constant)} passes of one length; half of the triangle's ends up to {reach(growing)}")


if __name__ == "__main__":
    main()
