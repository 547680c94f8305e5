"""What a line from memory takes beside lines of L2 or L3 by what is executed meanwhile, on this host.

    python benchmarks/executed_beside.py [--level L2|L3] [--lines 0,1,2,4]

Each pass loads a line of memory and one of each of so many streams of a cache, and executes some instructions more:
products of vectors, additions of general registers, no-ops, products with operands in L1, or loads across lines of L1.
Printed are the cycles of a pass by what it executes, and the vectors that it writes; `?` stands behind what no two
rounds confirm. It needs AVX; docs/ecm.md has figures.
"""

from __future__ import annotations

import argparse

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, cycles_per_line, level_sizes, walking_on
from kernmodel.measure.host import APART, Buffer, Harness
from kernmodel.measure.host_topology import host_topology
from kernmodel.measure.runs import EFFORT

POSITION, TOTAL = 63, 62
SKEW = 3 * LINE
SEGMENT = 1 << 18
REGISTERS = {16: "xmm", 32: "ymm", 64: "zmm"}
KINDS = {
    "products": ("vmulps ymm{0}, ymm14, ymm15", (0, 2, 4, 8, 12, 16, 24)),
    "lea": ("lea r{1}, [rdi + 1]", (8, 16, 24, 40, 80)),
    "nop": ("nop", (8, 24, 40)),
    "products with L1": ("vmulps {2}{0}, {2}14, [rdi]", (4, 8, 16, 24)),
    "256-bit loads across lines": ("vmovups ymm{0}, [rdi + 40]", (4, 8, 16, 24)),
}


def code(each: int, streams: int, width: int, more: list[str]) -> bytes:
    """The loop over passes, with `more` instructions spread among the loads of lines."""
    begins = ["r8 + rax", *(f"r9 + {4096 + number * (each + SKEW)} + rbx" for number in range(streams))]
    lines = [
        f"mov r15, [rdx + {8 * POSITION}]", "mov r8, [rdx]", "add r8, r15", "mov r9, [rdx + 8]", "mov rdi, r9",
        "xor eax, eax", "xor ebx, ebx", ".p2align 6", "9:",
    ]  # fmt: skip
    for number, begin in enumerate(begins):
        lines += [f"vmovups {REGISTERS[width]}{12 + at // width % 2}, [{begin} + {at}]" for at in range(0, LINE, width)]
        lines += more[number * len(more) // len(begins) : (number + 1) * len(more) // len(begins)]
    lines += [f"add rbx, {LINE}", f"and rbx, {each - 1}", f"add rax, {LINE}", "cmp rax, rsi", "jb 9b"]
    return x86.function("\n".join([*lines, *walking_on(POSITION, TOTAL)]), set_up=False)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--level", choices=("L2", "L3"), default="L2")
    parser.add_argument("--lines", default="0,1,2,4")
    given = parser.parse_args()
    sizes, widest = level_sizes(host_topology()), x86.vector_bytes()
    with Harness() as harness:

        def cycles(streams: int, width: int, more: list[str]) -> str:
            each = 1 << (sizes[given.level] // 2 // max(streams, 1)).bit_length() - 1
            harness.buffer(0, Buffer(sizes["Mem"] + LINE))
            harness.buffer(1, Buffer((each + SKEW) * max(streams, 1) + 8192, APART))
            harness.value(POSITION, 0)
            harness.load(code(each, streams, width, more))
            found = cycles_per_line(harness, sizes["Mem"] // 1024 * 1024, SEGMENT, EFFORT)
            return f"{found.value:.1f}{'' if found.confirmed else '?'}"

        for streams in map(int, given.lines.split(",")):
            print(f"beside {streams} lines of {given.level}")
            widths = [width for width in REGISTERS if width <= widest]
            shown = (f"{(streams + 1) * LINE // width}: {cycles(streams, width, [])}" for width in reversed(widths))
            print(f"  loads of {', '.join(f'{8 * width} bits' for width in reversed(widths)):22} {', '.join(shown)}")
            for name, (text, counts) in KINDS.items():
                row = []
                for count in counts:
                    more = [text.format(at % 8, 10 + at % 4, REGISTERS[widest]) for at in range(count)]
                    vectors = (streams + 1) * LINE // widest + (0 if name in ("lea", "nop") else count)
                    row.append(f"{count} ({vectors}): {cycles(streams, widest, more)}")
                print(f"  {name:31} {', '.join(row)}", flush=True)


if __name__ == "__main__":
    main()
