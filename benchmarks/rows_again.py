"""What a line from memory takes beside rows that L1 has: such as never leave it, and such as were loaded a row before.

    python benchmarks/rows_again.py [--samples 2]

Each pass loads a line of a large array, as many lines of streams in L3, and the lines of 0 to 8 rows, each a row
further back, as a stencil loads its neighbours in the rows before, and stores a line; for comparison as many rows that
stay where they are. All rows together are smaller than L1, which has their lines when they come again. Printed are
cycles of a pass, the lowest sample, of rows that come again the mean over several lengths, and by how much these take
longer; last the mean of that over all tables (figure `memory line beside rows loaded before` of a core).
"""

from __future__ import annotations

import argparse
import ctypes
from collections.abc import Iterator
from statistics import mean
from typing import NamedTuple

from timed_code import compiled, cycle_ticks, declare

_ROWS, _LENGTHS, _IN_L3, _REGISTERS = range(9), (832, 1088, 1472, 1856, 2368), (0, 1, 2, 4), {32: "ymm", 64: "zmm"}
_MOST_ROWS_BYTES = 20_000
_BYTES, _STREAM, _STILL = 64 << 20, 2 << 20, 576
_CODE = r"""
uint64_t time_%s(char *array, char *store, char *beside, char *still)
{
    uint64_t begin = now();
    __asm__ volatile("xor %%%%ecx, %%%%ecx\n .p2align 6\n 1: %s add $64, %%%%rcx\n cmp $%d, %%%%rcx\n jb 1b\n"
                     "vzeroupper"
                     : : "r"(array), "r"(store), "r"(beside), "r"(still) : "rcx", "rax", "rdx", "memory", "xmm0");
    return now() - begin;
}
"""
_MEMORY = r"""
#include <sys/mman.h>
#include <string.h>
char *memory(long bytes)
{
    char *found = mmap(0, bytes + (1 << 21), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    found = (char *)(((uintptr_t)found + (1 << 21) - 1) & ~(uintptr_t)((1 << 21) - 1));
    madvise(found, bytes, MADV_HUGEPAGE);
    return memset(found, 0, bytes);
}
"""


class Pass(NamedTuple):
    """A pass: bytes of its vectors, lines of L3, rows, and the bytes from one row to the next; 0: they stay."""

    width: int
    in_l3: int
    rows: int
    length: int

    @property
    def name(self) -> str:
        return "_".join(map(str, self))

    @property
    def body(self) -> str:
        register = f"%%{_REGISTERS[self.width]}0"
        lines = ["mov %%rcx, %%rax", f"and ${_STREAM - 1}, %%rax", "mov %%rcx, %%rdx", "and $0x1ff, %%rdx"]
        for at in range(0, 64, self.width):
            places = [f"{at + number * (_STREAM + 8384)}(%2,%%rax)" for number in range(self.in_l3)]
            for row in range(1, self.rows + 1):
                again, still = f"{at - row * self.length}(%0,%%rcx)", f"{at + row * _STILL}(%3,%%rdx)"
                places.append(again if self.length else still)
            lines += [
                f"vmovupd {at}(%0,%%rcx), {register}",
                *(f"vaddpd {one}, {register}, {register}" for one in places),
            ]
            lines.append(f"vmovupd {register}, {at}(%1,%%rcx)")
        return "".join(rf"{line}\n " for line in lines)


def passes() -> Iterator[Pass]:
    """All that are measured."""
    for width in _REGISTERS:
        for in_l3 in _IN_L3:
            for rows in _ROWS:
                yield Pass(width, in_l3, rows, 0)
                yield from (Pass(width, in_l3, rows, one) for one in _LENGTHS if rows * one <= _MOST_ROWS_BYTES)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2, help="of each piece of code")
    given, kinds = parser.parse_args(), [*passes()]
    made = compiled(_MEMORY + "".join(_CODE % (kind.name, kind.body, _BYTES) for kind in kinds), "-mavx512f")
    for kind in kinds:
        declare(made, f"time_{kind.name}", *[ctypes.c_void_p] * 4)
    made.memory.restype, made.memory.argtypes = ctypes.c_void_p, [ctypes.c_long]
    size, cycle = 2 * _BYTES + (32 << 20), cycle_ticks(made, 200)
    array = made.memory(size) + (1 << 20)
    places = array, array + _BYTES + (1 << 20) + 2304, array + size - (24 << 20) + 512, array + size - (4 << 20)
    found = {}
    for kind in kinds:
        timed = getattr(made, f"time_{kind.name}")
        found[kind] = min(timed(*places) for _ in range(given.samples)) / cycle * 64 / _BYTES
    tables = []
    for width in _REGISTERS:
        for in_l3 in _IN_L3:
            still = [found[Pass(width, in_l3, rows, 0)] for rows in _ROWS]
            again = [
                mean(cycles for kind, cycles in found.items() if kind[:3] == (width, in_l3, rows) and kind.length)
                for rows in _ROWS
            ]
            tables.append([after - before for before, after in zip(still, again, strict=True)])
            print(f"vectors of {width} bytes, {in_l3} lines of L3, {_ROWS[0]} to {_ROWS[-1]} rows")
            for what, row in (("still", still), ("again", again), ("more", tables[-1])):
                print(f"  {what:6}", " ".join(f"{cycles:5.1f}" for cycles in row), flush=True)
    print("mean    ", " ".join(f"{mean(column):5.1f}" for column in zip(*tables, strict=True)))


if __name__ == "__main__":
    main()
