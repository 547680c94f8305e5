"""How many streams this host's core follows: passes over 8 to 40 streams, and over planes and rows of one array.

    python benchmarks/many_streams.py [--samples 40]

The first table has passes over one line from memory and others from L2, of as many streams, and of one stream that
walks on by as many lines: only the number of streams differs. The second walks an array larger than all caches at the
places of a star stencil: nine planes, of which one comes from memory and the others from L3, and rows beside the middle
one, which L1 holds; two more arrays from memory, one of them changed. docs/ecm.md tells what follows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, cycles_per_line, level_sizes, walking_on
from kernmodel.measure.host import APART, Buffer, Effort, Harness
from kernmodel.measure.host_topology import host_topology
from kernmodel.measure.lines_beside import timed_pass
from kernmodel.measure.samples import Figure

POSITION, TOTAL, SEGMENT_BYTES = 63, 62, 1 << 17
ARRAY_BYTES, PLANE_BYTES, PLANES = 64 << 20, 207_360, 9
STREAMS = (8, 12, 15, 16, 17, 18, 20, 24, 32, 40)
ROWS = (0, 2, 4, 5, 6, 8)


def star(places: Sequence[int]) -> bytes:
    """A pass that loads a line at each place of the first array and of the second, and changes one of the third."""
    lines = [f"mov r15, [rdx + {8 * POSITION}]"]
    for register, number in (("r8", 0), ("r9", 1), ("r10", 2)):
        lines += [f"mov {register}, [rdx + {8 * number}]", f"add {register}, r15"]
    lines += ["xor eax, eax", ".p2align 6", "9:"]
    begins = [*(f"r8 + rax + {place}" for place in places), "r9 + rax"]
    lines += [f"vmovups ymm{12 + at // 32}, [{begin} + {at}]" for begin in begins for at in (0, 32)]
    for at in (0, 32):
        lines += [f"vaddpd ymm1, ymm2, [r10 + rax + {at}]", f"vmovupd [r10 + rax + {at}], ymm1"]
    lines += [f"add rax, {LINE}", "cmp rax, rsi", "jb 9b", *walking_on(POSITION, TOTAL)]
    return x86.function("\n".join(lines), set_up=False)


def shown(cycles: Figure) -> str:
    """A figure as text; `?` where no two rounds confirm it."""
    return f"{cycles.value:7.1f}{' ' if cycles.confirmed else '?'}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=40)
    effort = Effort(samples=parser.parse_args().samples, rounds=2, seconds=0.8)
    sizes = level_sizes(host_topology())
    with Harness() as harness:
        print("streams, one of them from memory, the others in L2; the same lines of one stream of L2")
        for streams in STREAMS:
            both = (timed_pass(harness, sizes, "L2", 1, streams, single, effort) for single in (False, True))
            print(f"{streams:8d}", *map(shown, both), flush=True)
        print(f"planes of an array and two more arrays, and {ROWS} rows beside the middle plane, by bytes of a row")
        harness.buffer(0, Buffer(ARRAY_BYTES + PLANES * PLANE_BYTES + LINE))
        for number in (1, 2):
            harness.buffer(number, Buffer(ARRAY_BYTES + LINE, APART * number))
        for row in (640, 1280, 2560):
            cycles = []
            for count in ROWS:
                beside = [(-1) ** number * (number // 2 + 1) * row for number in range(count)]
                places = [plane * PLANE_BYTES for plane in range(PLANES)]
                harness.value(POSITION, 0)
                harness.load(star(places + [places[PLANES // 2] + place for place in beside]))
                cycles.append(shown(cycles_per_line(harness, ARRAY_BYTES, SEGMENT_BYTES, effort)))
            print(f"{row:8d}", *cycles, flush=True)


if __name__ == "__main__":
    main()
