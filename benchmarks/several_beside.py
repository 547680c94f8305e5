"""Several lines from memory beside lines of caches, and work of the core beside both, on this host.

    python benchmarks/several_beside.py [--samples 40]

The first table has passes over lines from memory, some of them only written, and lines of streams that lie in L2 or in
L3; the second has lines of both caches; the third has work of the core between the loads: multiplications, or loads
from L1. docs/ecm.md tells what follows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product

from memory_parallelism import COUNTERS, POSITION, SEGMENT_BYTES, SKEW_BYTES, TOTAL, Streams, loop

from kernmodel.measure.bandwidth import LINE, cycles_per_line, level_sizes
from kernmodel.measure.host import APART, Buffer, Case, Effort, Harness
from kernmodel.measure.host_topology import host_topology

COUNTS = (0, 1, 2, 3, 4, 6, 8)
WORK = (0, 6, 12, 20, 30, 40, 60)
DATA_BYTES = {"L2": 256 << 10, "L3": 4 << 20}
"""Of all streams in a cache together: half of a small L2, and beyond a large one."""
NEAR = 2 + len(COUNTERS)
"""The buffer that lies in L1."""


def inner(level: str, count: int) -> tuple[tuple[int, int], ...]:
    """So many streams of a cache, and the bytes of each, a power of two."""
    return ((count, 1 << (DATA_BYTES[level] // count).bit_length() - 1),) if count else ()


def work(kind: str, cycles: int) -> list[str]:
    """Two operations a cycle, none of which waits for another."""
    if kind == "multiplications":
        return [f"vmulpd ymm{2 + number % 8}, ymm15, ymm15" for number in range(2 * cycles)]
    loads = [f"vmovups ymm{2 + number % 8}, [r11 + {32 * number % 1024}]" for number in range(2 * cycles)]
    return [f"mov r11, [rdx + {8 * NEAR}]", *loads]


def timed(harness: Harness, streams: Streams, lines: Sequence[str], effort: Effort) -> str:
    """Cycles of a pass, as text; `?` where no two rounds confirm it."""
    each = streams.total // streams.number // 4096 * 4096 - 4096
    harness.buffer(0, Buffer(streams.total + LINE))
    for place, (count, size) in enumerate(streams.inner):
        harness.buffer(1 + place, Buffer((size + SKEW_BYTES) * count + LINE, (1 + place) * APART))
    harness.buffer(NEAR, Buffer(4096, NEAR * APART))
    harness.value(POSITION, 0)
    harness.value(TOTAL, each)
    harness.load(loop(streams.number, each + 5 * LINE, streams.inner, lines, streams.written))
    harness.run([Case(1, each)], 1)  # walked once: what was filled last is cached no more
    found = cycles_per_line(harness, each, SEGMENT_BYTES // streams.number // LINE * LINE, effort)
    return f"{found.value:6.1f}{' ' if found.confirmed else '?'}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=40)
    effort = Effort(samples=parser.parse_args().samples, rounds=2, seconds=1.2)
    memory = level_sizes(host_topology())["Mem"]
    with Harness() as harness:

        def row(name: str, rows: Sequence[tuple[Streams, Sequence[str]]]) -> None:
            print(f"{name:36s}", *(timed(harness, streams, lines, effort) for streams, lines in rows), flush=True)

        print(f"lines from memory, loaded and written, beside {COUNTS} of a cache")
        for written, loaded, level in product((0, 1, 2), (1, 2, 3, 4, 6), DATA_BYTES):
            beside = (Streams(memory, loaded + written, written, inner(level, count)) for count in COUNTS)
            row(f"{loaded} and {written}, {level}", [(streams, ()) for streams in beside])
        print("the same beside 0, 1, 2, 4, 6 of L2 and others of L3")
        for written, loaded, others in product((0, 1), (1, 2), (1, 2, 4)):
            both = [(*inner("L3", others), *inner("L2", count)) for count in (0, 1, 2, 4, 6)]
            row(
                f"{loaded} and {written}, {others} of L3",
                [(Streams(memory, loaded + written, written, one), ()) for one in both],
            )
        print(f"the same with {WORK} cycles of work")
        cases = ((1, 0, "L3", 0), (1, 1, "L3", 0), (1, 0, "L3", 2), (1, 1, "L3", 2), (1, 1, "L2", 4), (2, 1, "L3", 8))
        for (loaded, written, level, count), kind in product(cases, ("multiplications", "loads")):
            streams = Streams(memory, loaded + written, written, inner(level, count))
            row(
                f"{loaded} and {written}, {count} of {level}, {kind}",
                [(streams, work(kind, one) if one else ()) for one in WORK],
            )


if __name__ == "__main__":
    main()
