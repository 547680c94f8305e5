"""How many lines of code the queue behind the op cache holds: loops of eliminated moves, as measured and predicted.

    python benchmarks/queued_lines.py [--uarch ZEN3] [--samples 1600]

Loops of so many `mov r8, r9` and `dec rdi`, `jne`, each placed at 32 addresses of a line, are executed on the host:
nothing but delivery and dispatch can limit them. What is printed are the loops of which the prediction for the core is
off by more than 3 %, and how many are. A loop counts by the difference of two lengths, so that what begins and ends it
does not; the smallest of many samples counts.
"""

from __future__ import annotations

import argparse
import ctypes
from itertools import product
from math import inf
from typing import NamedTuple

from timed_code import compiled, cycle_ticks, declare

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.core import Core, Settings, analyse_block

_TIMED = r"""
uint64_t %s(long passes)
{
    uint64_t begin = now();
    __asm__ volatile(".p2align 6\n .skip 64 + %d, 0x90\n 1: .rept %d\n mov %%%%r9, %%%%r8\n .endr\n dec %%0\n jne 1b"
                     : "+D"(passes) : : "r8");
    return now() - begin;
}
"""
_MOVES = (4, 6, 8, 9, 10, 11, 12, 13, 14, 17, 20)
_PLACES = range(0, 64, 2)
_PASSES = (300, 1500)
_AT_ONCE = 10
_NEAR = 0.03


class Placed(NamedTuple):
    """A loop of so many moves at an address modulo 64."""

    moves: int
    place: int

    @property
    def name(self) -> str:
        """Of its function."""
        return f"loop_{self.moves}_{self.place}"

    @property
    def code(self) -> bytes:
        """What is executed."""
        return b"\x4d\x89\xc8" * self.moves + b"\x48\xff\xcf\x75" + bytes([256 - 3 * self.moves - 5])


def measured(loops: list[Placed], samples: int) -> dict[Placed, float]:
    """Cycles of a pass of each loop on this host."""
    made = compiled("".join(_TIMED % (loop.name, loop.place, loop.moves) for loop in loops))
    for loop in loops:
        declare(made, loop.name, ctypes.c_long)
    least: dict[tuple[Placed, int], float] = {}
    cycle = inf
    for _ in range(samples // _AT_ONCE):  # in rounds, so that what disturbs the host for a while spoils no loop
        cycle = min(cycle, cycle_ticks(made, _AT_ONCE))
        for loop, passes in product(loops, _PASSES):
            timed = getattr(made, loop.name)
            least[loop, passes] = min(least.get((loop, passes), inf), *(timed(passes) for _ in range(_AT_ONCE)))
    short, long = _PASSES
    return {loop: (least[loop, long] - least[loop, short]) / (long - short) / cycle for loop in loops}


def predicted(loop: Placed, core: Core) -> float:
    """Cycles of a pass by the model."""
    settings = Settings(notion="loop", offset=loop.place)
    return analyse_block(block_of_bytes(loop.code, file=loop.name), core, settings).prediction


def main() -> None:
    """Measure, predict and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uarch", default="ZEN3", help="core of the prediction")
    parser.add_argument("--samples", type=int, default=1600, help="of each loop")
    options = parser.parse_args()
    core = Core.open(options.uarch, Settings())
    found = measured([Placed(moves, place) for moves in _MOVES for place in _PLACES], options.samples)
    off = 0
    for loop, cycles in found.items():
        answer = predicted(loop, core)
        if abs(answer / cycles - 1) > _NEAR:
            off += 1
            print(f"{loop.moves + 1:2} macro-ops at {loop.place:2}: {cycles:.2f} measured, {answer:.2f} predicted")
    print(f"{off} of {len(found)} loops are off by more than {_NEAR:.0%}")


if __name__ == "__main__":
    main()
