"""What operations of general-purpose registers take on this host where a queue of the schedulers is full.

    python benchmarks/full_queues.py [--letters LETTERS] [--random N] [--seed N] [--core NAME]
    python benchmarks/full_queues.py --cycles LETTERS ...
    python benchmarks/full_queues.py --starts LETTERS ...
    python benchmarks/full_queues.py --slots

Loops of letters, closed by dec and jnz, are timed and set beside the model of a core: those of docs/front-end.md, or N
random ones of 5 to 14 letters, in which a letter comes as often as it stands in --letters. A letter is a slot, of X and
Y two:

    F any ALU (lea), M ALU1 (pext), S ALU1 or ALU2 (shlx), C ALU0 or ALU3 (cmov), . an eliminated move, L a load,
    W a store, X one with an index register, I one of a constant, Y flags to memory (setc), A a chain of additions,
    c an operation of its value

`--cycles` prints how many cycles the dispatch of so many groups of letters takes that all wait for one value: it
begins a new one where they do not fit. `--starts` prints when each of them starts in the last passes of a straight
block, all M of which wait for one value, counted from the end of dispatch: what is below -0.5 started at once.
`--slots` prints what
instructions take beside 3, 4, 8 and 9 moves, unrolled: of two slots, all of which go in one cycle, 1.00, 1.00, 1.67 and
2.00, of one 0.67, 0.83, 1.50 and 1.67.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import cycle as endless
from random import Random

import alu_places
from alu_places import settle
from vector_places import compare, error_of, share_of

from kernmodel.incore.core import Core, Settings
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.blocks import measure_block
from kernmodel.measure.host import Effort, Harness

_LOOP_LINES = {
    "F": "lea r9, [r10+r11]",
    "M": "pext r9, r10, r11",
    "S": "shlx r9, r10, r11",
    "C": "cmovc {}, r10",
    ".": "mov r15, r14",
    "L": "mov r9, [rdi]",
    "W": "mov [rsi+64], r10",
    "X": "mov [rsi+rax], r10",
    "I": "mov qword ptr [rsi+64], 5",
    "Y": "setc [rsi+64]",
    "A": "add r13, r10",
    "c": "lea r9, [r13+r10]",
}
_TARGETS = ("r9", "r11", "r12", "rbx", "rdx", "r8")
_LOOPS = (
    *("MF", "MFF", "MFFF", "MFFFF", "MFFFFF", "MMFFF", "MMFFFF", "MMFFFFF", "MMFFFFFF", "MMMFFFFFF", "MMMFFFFFFF"),
    *("LMLMFF", "LMLMFFW", "LMLMF.F", "FFFW", "FFFX", "FFFI", "FFFY", "FFFFW", "FFFFX", "MFXX", "MFFXX", "MMFFFX"),
    *("AXFF", "AcFF", "AFFF", "AXXF", "AccF", "AXAXFF", "AcAcFF"),
)
_GROUPS = (
    *("FFFF..", "FFFFF.", "CFFFF.", "CFFFFF", "CCFFF.", "CCCFF.", "CCCFFF", "MM....", "MMM...", "MMFFF.", "MMFFFF"),
    *("MMCFFF", "MMCCFF", "MMCCCF", "SS....", "SSS...", "SSFF..", "MS....", "MSS...", "MMSS.."),
)
_WAITING = 14
"""Operations of a queue that can wait."""
_STARTS = ("MMFFFFb:30", "MMMFFFFFFFb:20")
_SLOTS = (
    *("mov r15, r14\nnop", "nop\nnop", "nop dword ptr [rax]"),
    *("mov [rsi+rax], r10d", "mov [rsi], r10d", "test [rsi+rax], r10d", "add [rsi], r10d", "setc [rsi]"),
    *("lea r9d, [r10+r11+5]", "vptest xmm2, xmm3", "vcvtpd2ps xmm2, ymm3", "movzx r9d, word ptr [rsi+rax]"),
)
_EFFORT = Effort(60, 2, 3.0)


def loops(harness: Harness, letters: Sequence[str], core: Core) -> None:
    """Print what each loop takes, and what the model says."""
    errors = []
    for loop in letters:
        kept = endless(_TARGETS)
        lines = [_LOOP_LINES[letter].format(next(kept) if letter == "C" else "") for letter in loop]
        measured, predicted = compare(harness, lines, core)
        errors.append(error_of(measured, predicted))
        print(f"{loop:16} {measured:6.2f} {predicted:6.2f}", flush=True)
    print(share_of(errors))


def random_loops(letters: str, number: int, seed: int) -> list[str]:
    """Loops of 5 to 14 letters."""
    draw = Random(seed)
    return ["".join(draw.choice(letters) for _ in range(draw.randint(5, 14))) for _ in range(number)]


def cycles_of(harness: Harness, letters: str, groups: int) -> float:
    """Cycles that dispatch takes for so many groups of six slots, all of which wait."""

    def block(body: str) -> str:
        late = ["vpxor xmm2, xmm2, xmm2", *["vpmulld xmm0, xmm0, xmm1"] * 20, *["vmovq rcx, xmm0"] * 2]
        head = [*late, *["mov r15, r14"] * (6 - len(late) % 6 + 6)]
        kept = endless(("r9", "r10", "r11", "r12", "r13", "rbx", "rdi"))
        lines = [alu_places._LINES[letter].format(next(kept)) for letter in body]
        return "\n".join(["lfence", *head, *lines, "mov rax, [rsi]", *["mov rax, [rax]"] * 40, "7:"])

    times = [alu_places.timed(harness, block(body)) for body in ("." * 6 * groups, letters * groups)]
    return times[1] - times[0] + groups


def most_groups(letters: str) -> int:
    """Groups whose operations find room in the queues."""
    few = max(letters.count("M"), sum(map(letters.count, "MS")) / 2, letters.count("C") / 2)
    return int(_WAITING / max(few, sum(map(letters.count, "MSCF")) / 4))


def starts(harness: Harness, letters: str) -> None:
    """Print when the operations of the last passes start, behind the end of dispatch."""
    one, passes = letters.split(":")
    block = one * int(passes)
    alone = alu_places.cycles(harness, block, None)
    print(letters)
    for begin in range(len(block) - 9 * len(one), len(block), len(one)):
        read = [k for k in range(begin, begin + len(one)) if block[k] in "FMS"]
        told = [alu_places.cycles(harness, block, k) - alone - alu_places._LATENCY.get(block[k], 1) for k in read]
        print("   ", " ".join(f"{block[k]}{own:5.1f}" for k, own in zip(read, told, strict=True)), flush=True)


def slots(harness: Harness) -> None:
    """Print what instructions take beside moves."""
    for text in _SLOTS:
        told = []
        for moves in (3, 4, 8, 9):
            code = bytes(x86.assembled("\n".join([text, *["mov r15, r14"] * moves])))
            told.append(measure_block(harness, code, notion="unrolled", effort=_EFFORT).cycles.value)
        shown = text.replace("\n", "; ")
        print(f"{shown:32} {' '.join(f'{own:5.2f}' for own in told)}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", default="MMFFFSCL.")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--core", default="ZEN4")
    parser.add_argument("--cycles", nargs="*")
    parser.add_argument("--starts", nargs="*")
    parser.add_argument("--slots", action="store_true")
    options = parser.parse_args()
    alu_places._LINES["b"] = "test rsi, rsi\njs 7f"
    with Harness() as harness:
        if options.slots:
            slots(harness)
        elif options.cycles is not None:
            settle(harness)
            for group in options.cycles or _GROUPS:
                most = most_groups(group)
                told = [cycles_of(harness, group, number) for number in (most // 2, most)]
                print(f"{group} {most // 2:2}: {told[0]:4.1f}  {most:2}: {told[1]:4.1f}", flush=True)
        elif options.starts is not None:
            settle(harness)
            for letters in options.starts or _STARTS:
                starts(harness, letters)
        else:
            chosen = random_loops(options.letters, options.random, options.seed) if options.random else _LOOPS
            loops(harness, chosen, Core.open(options.core, Settings()))


if __name__ == "__main__":
    main()
