"""What a line of an outer level takes beside lines of streams that lie in an inner one, on this host.

    python benchmarks/lines_beside.py [--each 32] [--samples 40] [--streams 4]

Each pass of the measured loop loads one line of a large buffer and one line of each of k streams, which are walked
round. docs/ecm.md tells what models make of it.
"""

from __future__ import annotations

import argparse

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, level_sizes, walking_on
from kernmodel.measure.host import APART, Buffer, Case, Effort, Harness, repetitions
from kernmodel.measure.host_topology import host_topology
from kernmodel.measure.samples import Figure

OUTER, INNER, TOTAL, POSITION = 0, 1, 62, 63
SEGMENT_BYTES = 1 << 18
SKEW_BYTES = 3 * LINE
"""Between streams, so that they do not begin in the same set."""


def loop(each: int, streams: int) -> bytes:
    """The loop: `streams` streams of `each` bytes, a power of two, beside the outer one."""
    lines = [
        f"mov r15, [rdx + {8 * POSITION}]",
        f"mov r8, [rdx + {8 * OUTER}]",
        "add r8, r15",
        f"mov r9, [rdx + {8 * INNER}]",
        "xor eax, eax",
        "xor ebx, ebx",
        ".p2align 6",
        "9:",
    ]
    begins = ["r8 + rax", *(f"r9 + rbx + {number * (each + SKEW_BYTES)}" for number in range(streams))]
    lines += [f"movups xmm{12 + at // 16}, [{begin} + {at}]" for begin in begins for at in range(0, LINE, 16)]
    lines += [f"add rbx, {LINE}", f"and rbx, {each - 1}", f"add rax, {LINE}", "cmp rax, rsi", "jb 9b"]
    return x86.function("\n".join([*lines, *walking_on(POSITION, TOTAL)]), set_up=False)


def timed(harness: Harness, total: int, each: int, streams: int, effort: Effort, *, memory: bool) -> Figure:
    """Cycles of one line of the outer level and what stands beside it."""
    harness.buffer(OUTER, Buffer(total + LINE))
    harness.buffer(INNER, Buffer((each + SKEW_BYTES) * max(streams, 1) + LINE, APART))
    for place, value in ((POSITION, 0), (TOTAL, total if memory else 0)):
        harness.value(place, value)
    harness.load(loop(each, streams))
    if memory:
        return harness.figure([Case(1, SEGMENT_BYTES)], lambda ends: ends[0] / (SEGMENT_BYTES // LINE), effort)
    half = total // 2 // 512 * 512
    times = repetitions(harness.call_cycles([Case(1, half)]))
    cases = [Case(times, half), Case(times, 2 * half)]
    return harness.figure(cases, lambda ends: (ends[1] - ends[0]) / (times * half / LINE), effort)


def main() -> None:
    """Print a table: by outer level and place of the streams the cycles beside 0, 1, … of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=32, help="KiB of each stream in L2, a power of two")
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--streams", type=int, default=4, help="most streams beside the outer one")
    given = parser.parse_args()
    sizes, effort = level_sizes(host_topology()), Effort(samples=given.samples, rounds=2, seconds=2.0)
    inner = {"L2": given.each << 10, "L3": 1 << 20}
    with Harness() as harness:
        for outer, levels in (("L3", ("L2",)), ("Mem", ("L2", "L3"))):
            total = sizes[outer] // 1024 * 1024
            for level in levels:
                found = [
                    timed(harness, total, inner[level], k, effort, memory=outer == "Mem")
                    for k in range(given.streams + 1)
                ]
                cycles = " ".join(f"{one.value:6.2f}{'' if one.confirmed else '?'}" for one in found)
                print(f"a line of {outer} beside 0 to {given.streams} of {level}: {cycles}", flush=True)


if __name__ == "__main__":
    main()
