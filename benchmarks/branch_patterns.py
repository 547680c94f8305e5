"""What the branch predictor of this host remembers: the rules of `kernmodel.binary.branch_history`.

    python benchmarks/branch_patterns.py [--samples 200]

Three tables, in cycles of the core:

- *Rows* of a loop that go on by a branch that is taken, or by a jump behind one that is not: what a row takes beyond
  its passes. A predictor whose history has no entry for a branch that is not taken cannot tell the second ones apart.
- *Beside* the loop's own branch, in every pass: branches that are never taken, jumps, or a branch that is always taken.
  Of rows of n passes, those are foreseen that the history holds: what is part of it makes it shorter.
- *Patterns* of random branches, n of them, the first, second ... time that they come: cycles of a branch. Twice as many
  random ones that do not repeat: cycles over the share of those taken.

The smallest of many short samples counts (of patterns the lower quarter), beside a chain of dependent additions that
tells the clock, so that whatever else runs on the host matters little.
"""

from __future__ import annotations

import argparse
import ctypes
import random
from statistics import quantiles

from timed_code import compiled, cycle_ticks, declare, row_cycles

_SOURCE = r"""
#define ROWS(name, beside, on) uint64_t name(const int *lengths, long count) { \
    uint64_t begin = now(); const int *end = lengths + count; \
    __asm__ volatile("xor %%ecx, %%ecx\n .p2align 6\n1: mov (%0,%%rcx), %%ecx\n add $4, %0\n" \
                     ".p2align 5\n2: ror $16, %%ecx\n ror $16, %%ecx\n ror $16, %%ecx\n ror $16, %%ecx\n" \
                     beside "dec %%ecx\n jne 2b\n cmp %1, %0\n" on \
                     : "+r"(lengths) : "r"(end) : "rcx", "cc", "memory"); return now() - begin; }
ROWS(rows_branch, "", "jne 1b\n")
ROWS(rows_jump, "", "je 3f\n jmp 1b\n 3:\n")
ROWS(rows_never, "test %%ecx, %%ecx\n js 2b\n test %%ecx, %%ecx\n js 2b\n test %%ecx, %%ecx\n js 2b\n", "jne 1b\n")
ROWS(rows_jumps, "jmp 4f\n nop\n 4:\n", "jne 1b\n")
ROWS(rows_always, "test %%ecx, %%ecx\n jns 4f\n nop\n 4:\n", "jne 1b\n")
uint64_t pattern(const unsigned char *taken, long count)
{
    uint64_t begin = now(), chain = 3;
    const unsigned char *end = taken + count;
    __asm__ volatile(".p2align 6\n1: cmpb $0, (%1)\n je 2f\n ror $7, %0\n ror $3, %0\n2: inc %1\n ror $2, %0\n"
                     "cmp %2, %1\n jne 1b" : "+r"(chain), "+r"(taken) : "r"(end) : "cc", "memory");
    return now() - begin;
}
"""
_PASS_CYCLES = 5
_PASSES = 20_000
_LENGTHS = ((3, 5), (4, 9), (20, 30), (50, 60))
_GROWING = (16, 32, 40, 48, 56, 64)
_ROWS = (16, 32, 40, 48, 64, 72, 80, 88, 96, 112, 128, 160)
_PATTERNS = (32, 128, 512, 2048, 4096, 8192, 16384)
_TIMES = 6
_RANDOM = 1 << 14
_SHARES = (0, 1, 5, 10, 20, 30, 50, 70, 90)


class Clock:
    """Times functions of the library in cycles."""

    def __init__(self, made: ctypes.CDLL, samples: int) -> None:
        self._made, self._samples = made, samples
        for name in ("pattern", "rows_jump", *_KINDS):
            declare(made, name, ctypes.c_void_p, ctypes.c_long)
        self._tick = cycle_ticks(made, samples)

    def row(self, name: str, lengths: list[int]) -> float:
        """Cycles that a row takes beyond its passes, rows of these lengths over and over."""
        rows = getattr(self._made, name)
        return row_cycles(rows, lengths, self._samples, cycle=self._tick, pass_cycles=_PASS_CYCLES, passes=_PASSES)

    def branches(self, taken: bytes) -> float:
        """Cycles of one of these branches, once."""
        data = ctypes.create_string_buffer(taken, len(taken))
        return float(self._made.pattern(ctypes.addressof(data), len(taken)) / self._tick / len(taken))


_KINDS = {
    "rows_branch": "alone",
    "rows_never": "3 branches never taken",
    "rows_jumps": "a jump",
    "rows_always": "a branch always taken",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200, help="of each figure")
    options = parser.parse_args()
    draw = random.Random(1)
    clock = Clock(compiled(_SOURCE), options.samples)
    print("rows that go on by a branch / by a jump")
    for lengths in (*map(list, _LENGTHS), *(list(range(1, n + 1)) for n in _GROWING)):
        named = f"{lengths[0]} and {lengths[1]}" if len(lengths) == 2 else f"1 to {lengths[-1]}"
        print(f"{named:>10}  {clock.row('rows_branch', lengths):5.1f} {clock.row('rows_jump', lengths):5.1f}")
    print("beside the loop's branch, rows of" + "".join(f"{n:5d}" for n in _ROWS))
    for name, what in _KINDS.items():
        print(f"{what:33}" + "".join(f"{clock.row(name, [n]):5.0f}" for n in _ROWS))
    print("random patterns, the first, second ... time")
    for length in _PATTERNS:
        times: list[list[float]] = [[] for _ in range(_TIMES)]
        for _ in range(options.samples):
            taken = bytes(draw.random() < 0.5 for _ in range(length))
            for found in times:
                found.append(clock.branches(taken))
        print(f"{length:6d}" + "".join(f"{quantiles(found, n=4)[0]:6.2f}" for found in times))
    print("random branches, percent taken: cycles of one")
    for share in _SHARES:
        found = [
            clock.branches(bytes(draw.random() < share / 100 for _ in range(_RANDOM)))
            for _ in range(max(2, options.samples // 10))
        ]
        print(f"{share:6d} {min(found):6.2f}")


if __name__ == "__main__":
    main()
