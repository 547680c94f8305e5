"""Why streams in L1 take longer than their ports: loops of loads, stores and arithmetic, by what a pass holds.

    python benchmarks/stream_passes.py

Each loop walks the same 8 KiB of every array again and again without a fence, so that the store buffer is full and
helps no more. It is timed with its arrays at several distances from one another modulo 4096, and with several passes to
a taken branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.host import Buffer, Case, Effort, Harness
from kernmodel.measure.samples import Figure

BYTES, STEP = 8192, 32
SWEEPS = 32
APART = (0, 96, 512, 2048)
"""Bytes modulo 4096 by which the second array begins behind the first."""
UNROLLED = (1, 2, 4, 8)
EFFORT = Effort(25, 2, 1.0)
LOAD, OTHER, STORE = "vmovupd ymm{a}, [r9+rax+{d}]", "vmovupd ymm{b}, [r8+rax+{d}]", "vmovupd [r8+rax+{d}], ymm15"
BODIES = {
    "store": [STORE],
    "load, store": [LOAD, STORE],
    "2 loads": [LOAD, OTHER],
    "2 loads, store": [LOAD, OTHER, STORE],
    "2 additions": ["vaddpd ymm{a}, ymm14, ymm13", "vaddpd ymm{b}, ymm14, ymm13"],
    "2 loads, add, store": [LOAD, "vaddpd ymm{a}, ymm{a}, [r8+rax+{d}]", STORE],
    "2 loads, fma, store": [LOAD, "vfmadd231pd ymm{a}, ymm14, [r8+rax+{d}]", STORE],
}


def loop(body: Sequence[str], unrolled: int) -> bytes:
    """As many sweeps as the argument says, of so many passes to a branch."""
    lines = ["mov r8, [rdx]", "mov r9, [rdx+8]", "8:", "xor eax, eax", ".p2align 6", "9:"]
    for number in range(unrolled):
        lines += [line.format(a=2 * number % 8, b=(2 * number + 1) % 8, d=number * STEP) for line in body]
    lines += [f"add rax, {unrolled * STEP}", f"cmp rax, {BYTES}", "jb 9b", "dec rsi", "jnz 8b"]
    return x86.function("\n".join(lines), set_up=False)


def cycles(harness: Harness, base: int, apart: int) -> Figure:
    """Cycles of a pass of the loaded loop."""
    for number, start in enumerate((0, 2 * BYTES + apart)):
        harness.value(number, base + start)
    passes = SWEEPS // 2 * BYTES // STEP
    return harness.figure([Case(1, SWEEPS // 2), Case(1, SWEEPS)], lambda ends: (ends[1] - ends[0]) / passes, EFFORT)


def rows(harness: Harness) -> Iterator[list[str]]:
    """The range over all distances, by body and passes to a branch."""
    base = harness.buffer(len(UNROLLED), Buffer(1 << 18)).address
    for name, body in BODIES.items():
        row = [name]
        for unrolled in UNROLLED:
            harness.load(loop(body, unrolled))
            found = [one.value for apart in APART if (one := cycles(harness, base, apart)).confirmed]
            row.append(f"{min(found):.2f} to {max(found):.2f}" if found else "not confirmed")
        yield row


def main() -> None:
    """Print the table."""
    table = Table("a pass", *(f"{number} to a branch" for number in UNROLLED), title="cycles of a pass")
    with Harness() as harness:
        for row in rows(harness):
            table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
