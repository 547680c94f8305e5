"""Which pipe a vector operation waits for on this host, read one by one.

    python benchmarks/vector_places.py [--only WORD] [--turns | --chains | --loops | --window] [--core NAME]

A block begins with an `lfence`, and all its operations wait for one value that a chain of loads brings long after the
last of them was dispatched. What is printed for each is its place: how many cycles after the value it starts, which a
chain of loads of its result tells, that is how many others are before it in the pipe that it was given. Where a place
has two values the samples have two states; both are printed, and what the difference of two calls gives that are in
different ones (-2, 8). The letters, a slot each, six of which are dispatched in a cycle:

    A vaddpd (FP2, FP3), M vmulpd (FP0, FP1), L vpsllq (FP2, FP3), U vunpcklpd (FP1 to FP3), P vpaddd (FP0 to FP3)
    V a load of a vector, . an eliminated move; of these nothing is read

`--turns` prints the sides that multiplications get where eleven additions have made the schedulers uneven, 1 for that
of odd slots: a block that leaves the start at this side comes before each, and five multiplications there, so that
their places tell the sides. The last two slots of these letters are the first ones of the next cycle.
`--chains` prints instead what a pass takes of a chain of multiplications (c) where each also multiplies into something
else (m), dispatched as a whole before it begins: from the second to the sixth pass, and from there to the tenth.
`--loops` prints what a pass of loops takes, and what the model of a core says of it: of such chains (C of additions, a
an addition of its value, x and y operations of other values, l a lea), one step a pass, and of independent operations.
`--window` does so for chains of n multiplications and additions in turn, begun anew in each pass, a pair of them.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from statistics import median

from alu_places import COPIES, WIDTH, load_copies

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.blocks import measure_block
from kernmodel.measure.host import Case, Effort, Harness
from kernmodel.measure.samples import ISSUE_TOLERANCE, counts

_HEAD = 4 * WIDTH + 1
"""Lines before the letters, which so begin with a cycle: dispatch begins anew behind `lfence`."""
_LINES = {
    "A": "vaddpd xmm{}, xmm0, xmm0",
    "M": "vmulpd xmm{}, xmm0, xmm0",
    "L": "vpsllq xmm{}, xmm0, 1",
    "U": "vunpcklpd xmm{}, xmm0, xmm0",
    "P": "vpaddd xmm{}, xmm0, xmm0",
    "V": "vmovapd xmm14, [rsi+256]",
    "m": "vmulsd xmm{}, xmm1, xmm15",
    "c": "vmulsd xmm15, xmm15, xmm0",
    ".": "mov r15, r14",
    "l": "lea r8, [r9+1]",
    "a": "vaddsd xmm{}, xmm1, xmm15",
    "C": "vaddsd xmm15, xmm15, xmm0",
    "x": "vmulsd xmm{}, xmm1, xmm2",
    "y": "vaddsd xmm{}, xmm1, xmm2",
}
_LATENCY = {"A": 3, "M": 3, "L": 1, "U": 1, "P": 1}
_FIRST = ("vpxor xmm0, xmm0, xmm0", "mov [rsi], rsi", "mov qword ptr [rsi+128], 0", "mov qword ptr [rsi+136], 0")
_VALUE, _CHAIN = 16, 6
"""Loads of the chain that brings the value, and of that behind a result."""
_SAMPLES, _REPETITIONS, _EFFORT = 40, 27, Effort(60, 2, 3.0)
_UNEVEN = ".M...." * 5 + "A....." * 11 + "......" * 4
"""Five multiplications in odd slots, then more additions in even ones than slots are asked about."""
_MARKED = 5
_SETTLING = 31
"""Additions, one a cycle: the first eleven go to the side of even slots, the last ones to the other one in any case."""


def blocks() -> Iterator[str]:
    """Those that show the parts of the rule, each alone."""
    yield from ("AAAA..", "A.A.A.", "A..A..", "AVA...", "AVVA..", "VVVVA." * 3, "VVVVVA" * 3)
    yield from ("AAU..." * 3, "UMU..." * 3, "A.....U....." * 4, "MMU..." * 3)
    yield from ("A....." * 36, "A..........." * 14, "P....." * 24, "A.....M....." * 14, "A.....A.....M....." * 8)
    for number in (8, 9, 12):
        yield "A....." * number + "." * 4 * WIDTH + "M....." * 3 + ".M...." * 3
    for number in (2, 4, 5, 6):
        yield "L....." * number + "." * 10 * WIDTH + "P....." * 4


def chains() -> Iterator[str]:
    """Passes of one and of two other products beside the chain, at equal and at different places of a cycle."""
    yield from ("c.....", "mc....", "m.c...", "m.c..", "mmc...", "m.mc..", "m.m.c.")


def turns() -> Iterator[str]:
    """Multiplications in so many and in these slots of four cycles."""
    yield from (4 * letters for letters in ("M.....", "MM....", "..MM..", "M.M...", ".MM...", "M....M", "MMM..."))
    yield from (4 * letters for letters in ("M.M.M.", "...MMM", "MMMM..", "..MMMM", "MMMMM.", "MMMMMM"))
    yield "MMM..." + "M....." * 4
    yield "MMM..." + "......" * 4 + "M....." * 3 + "MMM..." * 2


def chains_with_moves() -> Iterator[str]:
    """One or two products at so many slots before the step of the chain, in passes of so many slots."""
    for slots in (12, 13, 17, 18):
        for begin in ("m", "mm", "m.m"):
            yield from ((begin + "." * apart + "c").ljust(slots - 1, ".") for apart in range(6))


def small_chains() -> Iterator[str]:
    """Steps of a chain and a few other operations."""
    yield from ("mc", "cm", "mmc", "mcm", "cmm", "mlc", "mllc", "lmlc", "mlmc", "mmmc", "mmlc", "ac", "mac", "amc")
    yield from ("xmc", "xc", "xmmc", "ymc", "mxc", "mxxc", "myc", "mlllc", "mmllc", "mlmlc", "mllmc", "mmcl", "mcl")
    yield from ("mcll", "mclll", "mmcll", "aC", "aaC", "aCl", "alC", "aalC", "mC", "xaC", "yaC", "ayC", "ayyC")
    yield from ("aylC", "mmmmc", "mmmcl", "mllllc", "mlllllc", "aalllC", "alllC", "ammC", "amC", "aamC")


def chains_with_leas() -> Iterator[str]:
    """The same at random slots of six to seventeen, with `lea` in the others."""
    draw, found = Random(5), set[str]()
    for slots in (6, 8, 9, 11, 12, 13, 15, 17):
        for begin in ("m", "mm", "ma", "mma"):
            for _ in range(5):
                letters = ["l"] * (slots - 1)
                places = sorted(draw.sample(range(slots - 1), len(begin) + 1))
                for place, own in zip(places, begin + "c", strict=True):
                    letters[place] = own
                found.add("".join(letters))
    yield from sorted(found)


def independent() -> Iterator[str]:
    """Additions, multiplications, shuffles and additions of integers that nothing binds but their pipes."""
    yield from ("AU", "AAU", "AUA", "AAAU", "AAUA", "AAUU", "AUAU", "AAAAUU", "AAMU", "AAMMU", "AAMMUU", "AMAMUU")
    yield from ("UMUU", "UUUM", "AAAP", "PPUUU", "PUPPU.PU", "UAU.AA", "U.UUU.P", "AUAUAUAAUA.")
    draw = Random(7)
    for _ in range(100):
        yield "".join(draw.choices("AUMP.", (4, 3, 2, 1, 2), k=draw.randint(3, 14))).strip(".") or "A"


_LOOPS = (
    ("chains, with moves", chains_with_moves),
    ("small chains", small_chains),
    ("chains, with lea", chains_with_leas),
    ("independent operations", independent),
)


def compare(harness: Harness, lines: Sequence[str], core: Core) -> tuple[float, float]:
    """What a pass of the loop takes here, and what the model says."""
    code = bytes(x86.assembled("\n".join(["1:", *lines, "dec rcx", "jnz 1b"])))
    measured = measure_block(harness, code, notion="loop", effort=_EFFORT).cycles.value
    predicted = analyse_block(block_of_bytes(code, file="loop"), core, Settings(notion="loop")).prediction
    return measured, predicted


def error_of(measured: float, predicted: float) -> float:
    """What part of the measured cycles of a loop is predicted too much; of one cycle 0.03 are the harness's."""
    return predicted / (measured - 0.03 * (measured < 1.1)) - 1


def share_of(errors: Sequence[float]) -> str:
    """How many of these errors are within 5 %, and the mean of all, whatever their signs."""
    near = sum(abs(error) <= 0.05 for error in errors)
    mean = sum(map(abs, errors)) / max(1, len(errors))
    return f"{near} of {len(errors)} within 5 %, mean {100 * mean:.1f} %"


def compare_all(harness: Harness, core: Core, only: str) -> None:
    """Print both of all loops, and how many of each kind are within 5 %."""
    for name, listed in _LOOPS:
        chosen = [letters for letters in listed() if only in letters]
        errors = list[float]()
        for letters in chosen:
            lines = [_LINES[letter].format(3 + k % 11) for k, letter in enumerate(letters)]
            measured, predicted = compare(harness, lines, core)
            errors.append(error_of(measured, predicted))
            print(f"{letters:18} {measured:6.2f} {predicted:6.2f}", flush=True)
        if chosen:
            print(f"{name}: {share_of(errors)}", flush=True)


def window(harness: Harness, pairs: int, core: Core) -> str:
    """What a pair takes of a chain of so many that each pass begins anew."""
    first, pair = "vmulsd xmm1, xmm2, xmm3", ["vaddsd xmm1, xmm1, xmm3", "vmulsd xmm1, xmm1, xmm3"]
    measured, predicted = compare(harness, [first, *(pair * pairs)[:-1]], core)
    return f"{pairs:2} pairs {measured / pairs:6.2f} {predicted / pairs:6.2f}"


def settled(letters: str, read: int | None) -> str:
    """The block behind one that leaves the start at the side of odd slots."""
    head = ["lfence", "mov rdx, [rsi]", *["mov rdx, [rdx]"] * (_VALUE + 5), "vmovapd xmm13, [rdx+128]"]
    lines = [*head, *[_LINES["."]] * (_HEAD - len(head))]
    lines += ["vaddpd xmm14, xmm13, xmm13", *[_LINES["."]] * (WIDTH - 1)] * _SETTLING
    return "\n".join([*lines, block(letters, read)])


def sides(harness: Harness, letters: str) -> str:
    """The side of each multiplication behind uneven ones: its place is the next one of that side."""
    whole, own, following = _UNEVEN + letters, "", [0, _MARKED]
    alone = median(samples(harness, settled(whole, None)))
    for k in range(len(_UNEVEN), len(whole)):
        if whole[k] in _LATENCY:
            place = median(samples(harness, settled(whole, k))) - alone - _LATENCY[whole[k]] - 0.6
            side = min((0, 1), key=lambda side: abs(place - following[side]))
            following[side] += 1
            own += f"{side}" if abs(place - following[side] + 1) < 1 else "?"
    return f"{letters}\n    {own}"


def block(letters: str, read: int | None, begun: str = "xmm0") -> str:
    """The block whose last chain begins with the result of this letter, or with the value itself."""
    head = ["lfence", "mov rcx, [rsi]", *["mov rcx, [rcx]"] * (_VALUE - 1), f"vmovapd {begun}, [rcx+128]"]
    lines = [*head, *[_LINES["."]] * (_HEAD - len(head))]
    lines += [_LINES[letter].format(15 if k == read else 2 + k % 12) for k, letter in enumerate(letters)]
    source = begun if read is None else "xmm15"
    return "\n".join([*lines, f"vmovq rax, {source}", "mov rax, [rsi+rax]", *["mov rax, [rax]"] * (_CHAIN - 1), "7:"])


def samples(harness: Harness, text: str) -> list[float]:
    """Cycles of the block by samples beside which nothing else ran on the core, in order."""
    load_copies(harness, text, _FIRST)
    brackets, found = harness.brackets(), list[float]()
    harness.wait_for(ISSUE_TOLERANCE)
    while len(found) < _SAMPLES:
        shorter: float | None = None
        for sample in harness.run([Case(_REPETITIONS, 1), Case(_REPETITIONS, 2)], 100, wait_ms=200):
            cycles = sample.cycles(brackets.clock_cycles) if counts(sample, brackets, ISSUE_TOLERANCE) else None
            if sample.which == 1 and cycles is not None and shorter is not None:
                found.append((cycles - shorter) / _REPETITIONS / COPIES)
            shorter = cycles if sample.which == 0 else None
    return sorted(found)


def steps(harness: Harness, letters: str) -> str:
    """What passes of a chain take at first, and then."""
    two, six, ten = (median(samples(harness, block(letters * n, None, "xmm15"))) for n in (2, 6, 10))
    return f"{letters:12} {(six - two) / 4:5.2f} {(ten - six) / 4:5.2f}"


def places(harness: Harness, letters: str) -> str:
    """Those of all letters that are read."""
    alone = samples(harness, block(letters, None))[_SAMPLES // 4]
    read = [k for k, letter in enumerate(letters) if letter in _LATENCY]
    return f"{letters}\n    " + " ".join(place(harness, letters, k, alone) for k in read)


def place(harness: Harness, letters: str, read: int, alone: float) -> str:
    """The places of a letter that a fifth of the samples have or more."""
    latency = _LATENCY[letters[read]]
    seen = Counter(round(own - alone - latency - 0.2) for own in samples(harness, block(letters, read)))
    often = sorted(own for own, number in seen.items() if number >= _SAMPLES / 5)
    apart = [own for k, own in enumerate(often) if not k or own > often[k - 1] + 1]  # the rest is what samples scatter
    return letters[read] + "/".join(map(str, apart))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="what the letters of a block contain")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--turns", action="store_true")
    what.add_argument("--chains", action="store_true")
    what.add_argument("--loops", action="store_true")
    what.add_argument("--window", action="store_true")
    parser.add_argument("--core", default="ZEN4")
    options = parser.parse_args()
    with Harness() as harness:
        core = Core.open(options.core, Settings())
        if options.loops:
            compare_all(harness, core, options.only)
            return
        if options.window:
            for pairs in (4, 6, 8, 10, 12, 16, 20, 24, 32):
                print(window(harness, pairs, core), flush=True)
            return
        shown, show = (chains(), steps) if options.chains else (blocks(), places)
        if options.turns:
            shown, show = turns(), sides
        for letters in shown:
            if options.only in letters:
                print(show(harness, letters), flush=True)


if __name__ == "__main__":
    main()
