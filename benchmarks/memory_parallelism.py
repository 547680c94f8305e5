"""What lets lines from memory wait on this host: work between them, streams beside them, or the number of streams.

    python benchmarks/memory_parallelism.py [--samples 40]

If only the instructions that a core holds kept lines from memory on their way, a line would take the longer the more
instructions stand between two of them: its latency, divided by the lines that fit into the window. The tables ask for
that, by streams from memory with no-ops between them, by lines of caches and work beside lines from memory, and by the
number of streams, loaded and written. docs/ecm.md tells what follows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, cycles_per_line, level_sizes, walking_on
from kernmodel.measure.host import APART, Buffer, Case, Effort, Harness
from kernmodel.measure.host_topology import host_topology

POSITION, TOTAL, SEGMENT_BYTES = 63, 62, 1 << 18
SKEW_BYTES = 3 * LINE
REGISTERS, COUNTERS = ("r9", "r10"), ("rbx", "rbp")
WORK = {"no-ops": "nop", "multiplications": "vmulpd ymm{0}, ymm15, ymm15"}
KIB = 1024


def loop(streams: int, apart: int, inner: Sequence[tuple[int, int]], work: Sequence[str], written: int) -> bytes:
    """A line of `streams` streams that are `apart` bytes apart, of which the last ones are only written, and of those
    inside, given by their number and the bytes of each (a power of two), with lines of work between the loads."""
    lines = [f"mov r15, [rdx + {8 * POSITION}]", "mov r8, [rdx]", "add r8, r15", "xor eax, eax"]
    begins, tail = [f"r8 + rax + {number * apart}" for number in range(streams - written)], []
    for place, (count, each) in enumerate(inner):
        base, counter = REGISTERS[place], COUNTERS[place]
        lines += [f"mov {base}, [rdx + {8 * (1 + place)}]", f"xor {counter}, {counter}"]
        begins += [f"{base} + {counter} + {number * (each + SKEW_BYTES)}" for number in range(count)]
        tail += [f"add {counter}, {LINE}", f"and {counter}, {each - 1}"]
    loads = [f"vmovups ymm{12 + at // 32}, [{begin} + {at}]" for begin in begins for at in (0, 32)]
    lines += [".p2align 6", "9:"]
    for number, load in enumerate(loads):
        lines += [load, *work[number * len(work) // len(loads) : (number + 1) * len(work) // len(loads)]]
    stores = [f"r8 + rax + {number * apart}" for number in range(streams - written, streams)]
    lines += [f"vmovups [{place} + {at}], ymm1" for place in stores for at in (0, 32)]
    lines += [*tail, f"add rax, {LINE}", "cmp rax, rsi", "jb 9b", *walking_on(POSITION, TOTAL)]
    return x86.function("\n".join(lines), set_up=False)


class Streams(NamedTuple):
    """So many streams of `total` bytes together, of which some are only written; `inner`: those in caches."""

    total: int
    number: int
    written: int = 0
    inner: Sequence[tuple[int, int]] = ()


def cycles(harness: Harness, streams: Streams, kind: str, work: int, effort: Effort) -> str:
    """Cycles of a pass, as text."""
    each = streams.total // streams.number // 4096 * 4096 - 4096
    harness.buffer(0, Buffer(streams.total + LINE))
    for place, (count, size) in enumerate(streams.inner):
        harness.buffer(1 + place, Buffer((size + SKEW_BYTES) * count + LINE, APART * (1 + place)))
    harness.value(POSITION, 0)
    texts = [WORK[kind].format(2 + number % 8) for number in range(work)]
    harness.load(loop(streams.number, each + 5 * LINE, streams.inner, texts, streams.written))
    harness.value(TOTAL, each)
    harness.run([Case(1, each)], 1)  # walked once: what was filled last is cached no more
    segment = SEGMENT_BYTES // streams.number // 512 * 512
    beyond = streams.total > level_sizes(host_topology())["L3"]
    found = cycles_per_line(harness, each, segment if beyond else None, effort)
    return f"{found.value:6.1f}{'' if found.confirmed else '?'}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=40)
    effort = Effort(samples=parser.parse_args().samples, rounds=2, seconds=1.2)
    sizes = level_sizes(host_topology())
    with Harness() as harness:
        memory, nothing = sizes["Mem"], "no-ops"

        def row(name: str, found: Iterable[str]) -> None:
            print(f"{name:20s}", *found, flush=True)

        print("k streams from memory: cycles of one line of each of them with 0, 20, 40, 80 no-ops to a line")
        for k in (1, 2, 4, 8, 16, 24):
            row(str(k), (cycles(harness, Streams(memory, k), "no-ops", k * work, effort) for work in (0, 20, 40, 80)))
        print("3 lines from memory beside so many of L3 and of L2 or L1: 0, 100, 400 no-ops, 120 multiplications")
        for name, inner in (
            ("none", ()),
            ("8 of L3", ((8, 128 * KIB),)),
            ("8 of L3, 8 of L1", ((8, 128 * KIB), (8, 256))),
            ("8 of L3, 8 of L2", ((8, 128 * KIB), (8, 16 * KIB))),
            ("16 of L3", ((16, 128 * KIB),)),
        ):
            asked = ((nothing, 0), ("no-ops", 100), ("no-ops", 400), ("multiplications", 120))
            row(name, (cycles(harness, Streams(memory, 3, 0, inner), *work, effort) for work in asked))
        print("lines from memory, loaded and written, beside 0, 4, 8, 12, 14, 16, 20 of L2, and of L3")
        for loaded, written in ((1, 0), (2, 0), (1, 1), (3, 0), (3, 1), (6, 0)):
            for level, each in (("L2", 16 * KIB), ("L3", 128 * KIB)):
                beside = (((k, each),) if k else () for k in (0, 4, 8, 12, 14, 16, 20))
                both = (Streams(memory, loaded + written, written, inner) for inner in beside)
                row(f"{loaded} and {written}, {level}", (cycles(harness, one, nothing, 0, effort) for one in both))
        print("lines from L3, loaded and written, beside 0, 1, 2, 3, 4, 6 of L2")
        for loaded, written in ((1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (3, 1)):
            beside = (((k, 64 * KIB),) if k else () for k in (0, 1, 2, 3, 4, 6))
            several = (Streams(sizes["L3"], loaded + written, written, inner) for inner in beside)
            row(f"{loaded} and {written}", (cycles(harness, one, nothing, 0, effort) for one in several))
        print("8 lines of L3: 0, 16, 48 multiplications, 0, 90, 270 no-ops")
        counts = {"multiplications": (0, 16, 48), "no-ops": (0, 90, 270)}
        for kind, numbers in counts.items():
            row(kind, (cycles(harness, Streams(sizes["L3"], 8), kind, count, effort) for count in numbers))


if __name__ == "__main__":
    main()
