"""Which ALU gets an operation at dispatch on this host: places in the queues of integer schedulers, read one by one.

    python benchmarks/alu_places.py [--random N] [--seed N] [--only WORD] [--released] [--started] [--room]
        [--accesses]

A block begins with an `lfence`. All its operations wait for one of two values that chains of vectors bring after the
last of them was dispatched. What is printed for each operation that waits for the later value is how many cycles after
it it starts: a chain of loads of its result ends the block, so that it is the time of the block less that of a block
whose chain begins with the value itself. Operations of one queue start one a cycle, so that this is their place in it;
on a Zen 3 it is one more in ALU2, since the value comes over its path. Beside it stands the place that the rule of
docs/front-end.md says (`places`). How many moves before the letters let these begin with a cycle, and whether the value
takes that path, is read first. The letters, a slot each, six of which are dispatched in a cycle:

    F any ALU, M ALU1 (imul), S ALU1 or ALU2 (rorx), C ALU0 or ALU3 (cmov), P an operation with a load (ALU0 to ALU2),
    f any ALU, L a load, W a store, B a comparison fused with a branch, which wait for the earlier value; . nothing

`--random N` adds N blocks of random letters. `--released` tells instead when an entry that an operation has left is
seen to be free: where a last F finds two f in ALU0's queue and one F in each other's, its place is 1 until one f has
started, then 0. Beside it stands how much longer a block takes whose only f is dispatched in that cycle: it grows by 1
a cycle behind the last one whose f may start as soon as the value is there. `--started` tells how
long an operation counts that starts at once: in which cycle behind it an F avoids its queue. `--room` tells how many
waiting operations find entries: how much later than without them what stands behind N of them is dispatched. Samples
beside which another thread of the
core was busy do not count. `--accesses` tells how many of 1, 4, 7, 10 and 13 F, one a cycle, go to ALU1's queue behind
loads and stores that wait (V a load of a vector), and whether an S avoids that queue.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle as endless
from math import isnan, nan
from random import Random

from kernmodel.incore.engine.queues import assigned
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.blocks import slope
from kernmodel.measure.host import Effort, Harness

WIDTH, SEEN_AFTER = 6, 3
QUEUES = {"F": (0, 1, 2, 3), "f": (0, 1, 2, 3), "M": (1,), "S": (1, 2), "C": (0, 3), "P": (0, 1, 2), "B": (0, 3)}
"""Queues by letter; that of loads and stores are the first three."""
_READ = "FMSCP"
_LINES = {
    "F": "lea {}, [rcx+8]",
    "M": "imul {}, rcx, 1",
    "S": "rorx {}, rcx, 0",
    "C": "cmovne {}, rcx",
    "P": "andn {}, rcx, [rsi+24]",
    "f": "lea {}, [rdx+8]",
    "Q": "lea {}, [rsi+8]",
    "L": "mov r9, [rdx]",
    "V": "vmovupd xmm9, [rdx]",
    "W": "mov [rdx+64], rsi",
    "B": "cmp rdx, 1\njb 7f",
    ".": "mov r15, r14",
}
_LATENCY = {"M": 3, "P": 2}
"""From the start to the first load of the chain, 1 for others; that of P has an index."""
_ADDRESSES = {"F": "[r8-8]", "f": "[r8-8]", "P": "[rbp+r8]"}
"""Of the value again, by what was made of it: 8 more, and its complement, to which rbp adds twice the value and one."""
COPIES = 8
"""Of a block, whose times differ by what is around them."""
_CHAIN, _EFFORT = 6, Effort(40, 2, 3.0)
_STEP = "vpmulld xmm0, xmm0, xmm1"
_FIRST = (
    *("mov [rsi], rsi", "mov qword ptr [rsi+24], -1", "mov [rsi+64], rsi"),
    *("vmovq xmm0, rsi", "vpcmpeqd xmm1, xmm1, xmm1", "vpabsd xmm1, xmm1", "lea rbp, [rsi+rsi+1]"),
)
_ACCESSES = (
    *(".", "L", "V", "W", "VV", "VL", "VW", "WW"),
    *("VVV", "LLL", "VVW", "WVV", "VVVV", "LLLL", "V.....V", "VVV...VVV"),
)


@dataclass
class Begin:
    """What differs between cores before the letters: moves until these begin with a cycle, with what is before them,
    and cycles that the value's path keeps ALU2 from starting anything."""

    head: int = 4 * WIDTH
    path: int = 1


_begin = Begin()
_PAUSE, _PROBE = "." * 30, "F....." * 6
"""Until what was dispatched is seen; one operation a cycle, which goes to the least occupied queues one by one."""


def blocks() -> Iterator[str]:
    """Those that show the parts of the rule, each alone."""
    yield from (f"F{'.' * 5}" * 7, f"FF{'.' * 4}" * 5, f"FFF{'.' * 3}" * 5, "FFFFFF")
    yield from ("FFFS", "SFFF", "FS", "FFS", "...S", "FC", "FFC", "FFFC", "CCFF", "SSFF", "FFSS", "FFM", "FFFP")
    for shown in ("L.....", "W.....", "B.....", "f....."):
        yield shown * 6 + _PAUSE + _PROBE
    for shown in ("LLLLLL", "LLWW..", "LF....", "PL....", "PLL...", "FB....", "FFB...", "FFFB..", "FFFFB.", "BB...."):
        yield shown + _PAUSE + _PROBE
    for shown in (
        "CFFFF.",
        "FFFFC.",
        "CFFFC.",
        "FCCFF.",
        "CFFCF.",
        "BCFFF.",
        "CFFFB.",
        "BBFFF.",
        "FFFBB.",
        "FCFF..",
        "FFCF..",
    ):
        yield shown + _PAUSE + _PROBE
    yield from ("P....." * 9, "f....." * 3 + _PAUSE + "CF....", "f....." * 3 + _PAUSE + "PF....")


def random_blocks(random: Random, number: int) -> Iterator[str]:
    """Four cycles of random letters, a pause, and four more."""
    letters = "FFFFMSCPfLWB" + "." * 12
    for _ in range(number):
        halves = ["".join(random.choice(letters) for _ in range(4 * WIDTH)) for _ in range(2)]
        yield _PAUSE.join(halves)


def cycle(letters: Sequence[str], occupied: Sequence[int]) -> tuple[int, list[int]]:
    """How many of these letters a cycle dispatches, and their queues, -1 for none. Loads and stores take one queue each
    without regard to the ALUs."""
    free = sorted(range(3), key=lambda q: occupied[q])
    for end in range(min(WIDTH, len(letters)), 0, -1):
        own = letters[:end]
        wanted = [letter for letter in own if letter in QUEUES]
        accesses = sum(letter in "LW" for letter in own)
        bits = [sum(1 << queue for queue in QUEUES[letter]) for letter in wanted]
        found = assigned(bits, [letter == "B" for letter in wanted], occupied, beside=3)
        if found is None or accesses > len(free):
            continue
        queues, loads = iter(found), iter(sorted(free[:accesses]))
        return end, [next(queues) if letter in QUEUES else next(loads) if letter in "LW" else -1 for letter in own]
    raise ValueError("a letter fits into no cycle")


def places(letters: str) -> list[int]:
    """By the rule, the places of the letters that are read."""
    history, waiting, found, at = [[0] * 4], [0, 0, _begin.path, 0], [], 0
    while at < len(letters):
        taken, queues = cycle(letters[at:], history[max(0, len(history) - SEEN_AFTER)])
        history.append(list(history[-1]))
        for letter, queue in zip(letters[at : at + taken], queues, strict=True):
            if queue >= 0:
                history[-1][queue] += 1
            if letter in _READ:
                found.append(waiting[queue])
                waiting[queue] += 1
        at += taken
    return found


def text(letters: str, read: int | None, steps: tuple[int, int]) -> str:
    """The block whose last chain begins with the result of this letter, or with the value itself; so many steps of a
    chain bring the earlier value, so many more the later one."""
    earlier, later = ([_STEP] * number for number in steps)
    head = ["lfence", *earlier, "vmovq rdx, xmm0", *later, *["vmovq rcx, xmm0"] * 2]
    lines = [*head, *["mov r15, r14"] * (_begin.head - len(head))]
    kept = endless(
        ("r10", "r11", "r12", "r13", "rbx", "rdi")
    )  # cmov reads what it writes, so that it writes nothing else's
    names = [next(kept) if letter == "C" else "r9" for letter in letters]
    lines += [_LINES[letter].format("r8" if k == read else names[k]) for k, letter in enumerate(letters)]
    begin = "[rcx]" if read is None else _ADDRESSES.get(letters[read], "[r8]")
    return "\n".join([*lines, f"mov rax, {begin}", *["mov rax, [rax]"] * (_CHAIN - 1), "7:"])


def cycles(harness: Harness, letters: str, read: int | None, steps: tuple[int, int] = (11, 8)) -> float:
    """Cycles of the block; not a number where no two rounds agree."""
    return timed(harness, text(letters, read, steps))


def timed(harness: Harness, lines: str) -> float:
    """Cycles of a block in assembly; not a number where no two rounds agree."""
    load_copies(harness, lines, _FIRST)
    figure = slope(harness, (1, 2), COPIES, _EFFORT)
    return figure.value if figure.confirmed else nan


def load_copies(harness: Harness, lines: str, first: Sequence[str]) -> None:
    """Load code that executes so many copies of a block for argument 1, twice as many for 2; `first` before them."""
    once = f".rept {COPIES}\n.p2align 6\n{x86.as_bytes(x86.assembled(lines))}\n.endr"
    harness.load(x86.function(f"cmp qword ptr ds:[{x86.SAVE + 16}], 2\njne 8f\n{once}\n8:\n{once}", first=first))


def settle(harness: Harness) -> None:
    """Read how letters begin on this core."""
    for _begin.head in range(4 * WIDTH, 5 * WIDTH):
        alone = cycles(harness, "FFFF", None)
        read = sorted(round(cycles(harness, "FFFF", k) - alone - 1) for k in range(4))
        if read[:3] == [0, 0, 0] and round(cycles(harness, "FF", 1) - cycles(harness, "FF", None) - 1) == 0:
            _begin.path = read[3]
            return
    raise SystemExit("no number of moves lets four operations begin with a cycle: is another thread of the core busy?")


def accesses(harness: Harness) -> None:
    """Print which queues fill behind loads and stores that wait."""
    behind = (1, 4, 7, 10, 13)
    print(f"{'waiting':10} places of an M behind {', '.join(map(str, behind))} F, and behind an S")
    for letters in _ACCESSES:
        shown = []
        for probe in (*("F....." * number for number in behind), "S....."):
            block = letters.ljust(-(-len(letters) // WIDTH) * WIDTH, ".") + _PAUSE + probe + "M....."
            last = len(block) - WIDTH
            shown.append(cycles(harness, block, last) - cycles(harness, block, None) - _LATENCY["M"])
        print(f"{letters:10} {' '.join(f'{own:4.1f}' for own in shown)}", flush=True)


def released(harness: Harness) -> None:
    """Print when an entry is seen to be free, by the cycle of dispatch, counted from that of the first f."""
    alone, first = cycles(harness, ".", None, (1, 18)), cycles(harness, "f", 0, (1, 1))
    for number in range(3, 15):
        letters = "fFFF..f.....".ljust(WIDTH * number, ".") + "F"
        place = cycles(harness, letters, len(letters) - 1, (1, 18)) - alone - 1
        longer = cycles(harness, "." * WIDTH * number + "f", WIDTH * number, (1, 1)) - first
        print(f"cycle {number:2}: place of F {place:4.1f}, an f alone {longer:4.1f}", flush=True)


def started(harness: Harness) -> None:
    """Print the place of an M behind an F that is dispatched so many cycles after an operation that starts at once in
    ALU0's queue: 1 where the F avoids that queue, so that it is in ALU1's."""
    for number in range(1, 12):
        letters = f"Q{'.' * (WIDTH * number - 1)}F.....{_PAUSE}M....."
        last = len(letters) - WIDTH
        place = cycles(harness, letters, last) - cycles(harness, letters, None) - _LATENCY["M"]
        print(f"cycle {number:2}: place of M {place:4.1f}", flush=True)


def room(harness: Harness) -> None:
    """Print when a chain of vectors behind N operations ends that wait for a value."""
    for letter in "FM":
        for number in (0, 16, 20, 22, 23, 24, 80, 88, 89, 92, 96)[: 6 if letter == "M" else None]:
            late = ["vpxor xmm2, xmm2, xmm2", *[_STEP] * 20, "vmovq rcx, xmm0"]
            kept = endless(("r9", "r10", "r11", "r12", "r13", "rbx", "rdi"))
            waiting = [_LINES[letter].format(next(kept)) for _ in range(number)]
            behind = [*["vpaddd xmm2, xmm2, xmm2"] * 80, "vmovq rax, xmm2", "mov rax, [rsi+rax]", "mov rax, [rax]"]
            time = timed(harness, "\n".join(["lfence", *late, *waiting, *behind, "7:"]))
            print(f"{number:2} times {letter}: {time:6.1f} cycles", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="what the letters of a block contain")
    parser.add_argument("--released", action="store_true")
    parser.add_argument("--started", action="store_true")
    parser.add_argument("--room", action="store_true")
    parser.add_argument("--accesses", action="store_true")
    options = parser.parse_args()
    same = total = 0
    with Harness() as harness:
        settle(harness)
        shown = [own for own in (released, started, room, accesses) if getattr(options, own.__name__)]
        for show in shown:
            show(harness)
        if shown:
            return
        for letters in [*blocks(), *random_blocks(Random(options.seed), options.random)]:
            if options.only not in letters:
                continue
            alone = cycles(harness, letters, None)
            read = [k for k, letter in enumerate(letters) if letter in _READ]
            measured = [cycles(harness, letters, k) - alone - _LATENCY.get(letters[k], 1) for k in read]
            said = places(letters)
            agree = [abs(own - place) < 0.5 for own, place in zip(measured, said, strict=True)]
            same, total = same + sum(agree), total + sum(not isnan(own) for own in measured)
            shown = " ".join(
                f"{letters[k]}{own:.1f}" + ("" if ok else f"({place})")
                for k, own, place, ok in zip(read, measured, said, agree, strict=True)
            )
            print(f"{letters.replace(_PAUSE, ' _ '):40} {shown}", flush=True)
    print(f"{same} of {total} places as the rule says")


if __name__ == "__main__":
    main()
