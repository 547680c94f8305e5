"""What a sibling thread that mostly waits costs loops of one cycle a pass, and which of them show that it is there.

    python benchmarks/sibling_states.py [--seconds N]

All loops are timed within some 40 µs, again and again, and the groups are put together by what the most sensitive loop
took. Where the rows of the table differ and their order is the same for all loops, what makes the difference is a state
of the core, not of a loop. Samples in which the clock changed or others ran are left out, and nothing else is.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from statistics import median

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.host import Case, Harness
from kernmodel.measure.samples import CLOCK_TOLERANCE

LOAD, OTHER, STORE = "vmovupd ymm0, [r8]", "vmovupd ymm1, [r9]", "vmovupd [r10], ymm15"
LOOPS = {
    "4 nops": ["nop"] * 4,
    "3 additions": ["add rax, 1", "add rbx, 1", "add rcx, 1"],
    "store": [STORE],
    "2 vaddpd": ["vaddpd ymm0, ymm15, ymm14", "vaddpd ymm1, ymm15, ymm14"],
    "2 loads of 8 B": ["mov rax, [r8]", "mov rbx, [r8]"],
    "2 loads": [LOAD, OTHER],
    "load, store": [LOAD, STORE],
    "load, store of 8 B": ["mov rax, [r8]", "mov [r8 + 64], rcx"],
    "load, vmulpd, store": ["vmulpd ymm0, ymm15, [r8]", "vmovupd [r10], ymm0"],
    "2 loads, store": [LOAD, OTHER, STORE],
}
"""Each with `dec`, `jnz` behind it."""
PASSES, SAMPLES, AROUND = 8000, 40, 100
"""AROUND: cycles of a call beside its loop."""
LEAST, BUSY = 0.02, 1.65
"""Share of groups that a row has at least; cycles of the last loop from which on the sibling is busy all the time."""


def code() -> bytes:
    """All loops: the number of one stands in the upper half of the argument, its passes in the lower one."""
    lines = ["mov r15d, dword ptr ds:[{0}]", "mov r14d, dword ptr ds:[{0} + 4]"]
    lines = [line.format(x86.SAVE + 16) for line in lines]
    for number, body in enumerate(LOOPS.values()):
        lines += [f"cmp r14d, {number}", "jne 5f", ".p2align 6", "9:", *body, "dec r15", "jnz 9b", "jmp 6f", "5:"]
    return x86.function("\n".join([*lines, "6:"]))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long (5)")
    end = time.monotonic() + parser.parse_args().seconds
    cases = [Case(1, PASSES | number << 32) for number in range(len(LOOPS))]
    groups: dict[float, list[list[float]]] = defaultdict(list)
    with Harness() as harness:
        clock = harness.brackets().clock_cycles
        harness.load(code())
        while time.monotonic() < end:
            for processor in harness.processors:
                harness.pin(processor)
                found = harness.run(cases, SAMPLES)
                for at in range(0, len(found), len(cases)):
                    group = found[at : at + len(cases)]
                    if all(one.steady(CLOCK_TOLERANCE) and not one.switches for one in group):
                        row = [(one.cycles(clock) - AROUND) / PASSES for one in group]
                        groups[round(row[-1], 2)].append(row)
    told = {last: rows for last, rows in groups.items() if last < BUSY}
    total = sum(map(len, told.values()))
    busy = sum(map(len, groups.values())) - total
    print(
        f"cycles of a pass, medians of {total} groups; {busy} others beside a busy sibling\n{'groups':>6}",
        *LOOPS,
        sep="  ",
    )
    for _, rows in sorted(told.items()):
        if len(rows) >= LEAST * total:
            medians = [
                f"{median(times):{len(name)}.2f}" for name, times in zip(LOOPS, zip(*rows, strict=True), strict=True)
            ]
            print(f"{len(rows):6}", *medians, sep="  ")


if __name__ == "__main__":
    main()
