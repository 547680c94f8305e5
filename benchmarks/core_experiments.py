"""What single mechanisms of this host's core cost: banks of the first cache, loads across lines, adders, vectors of
floating-point numbers beside those of integers, lines of code, ALUs behind loads and beside multiplications, loads at
dispatch, the order in which loads get generators, stored vectors beside fused multiplications and additions or what
else reads three vectors, accesses of 512 bits, address generators.

    python benchmarks/core_experiments.py [--samples N] [--core NAME] [--only HEADING]

Each line is one loop: what it is, its cycles per pass here, and what the model of a core says of it. A loop is bound by
the mechanism that its heading names and by nothing else, so that a figure of a parameter file can be read off it. Where
other work shares the host, run it again: the median of the samples counts, since some loops have more than one state.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from timed_code import compiled, cycle_ticks, declare

from kernmodel.code.listing import decode_bytes
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.dependences.addresses import BodyAccesses, address_step
from kernmodel.incore.dependences.line_splits import Places
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

PASSES = 1200
"""Of the shorter of the two calls whose difference counts."""
_LINE = 64
_VECTORS = ", ".join(f'"xmm{number}"' for number in range(16))


@dataclass(frozen=True)
class Experiment:
    """A loop: its heading, what it is, its lines in Intel syntax, bytes by which it walks, its address modulo 64."""

    heading: str
    name: str
    lines: tuple[str, ...]
    step: int = 0
    offset: int = 0

    def text(self, *, around: bool) -> str:
        """Its body and end. r8 counts passes up to r9, rax walks from the array at rdx; `around`: in 1 KiB, as
        where it is timed, not where its addresses are to be known."""
        walk = (f"add rax, {self.step}", *(("and eax, 1023",) if around else ())) if self.step else ()
        return "\n".join([*self.lines, *walk, "add r8, 1", "cmp r8, r9", "jne 1b"])


def _loads(offsets: Sequence[int], register: str = "r1{}", move: str = "mov") -> tuple[str, ...]:
    return tuple(f"{move} {register.format(n % 4)}, [rdx+{offset}]" for n, offset in enumerate(offsets))


def experiments() -> Iterator[Experiment]:
    """All of them."""
    banks = {
        "one address": [0] * 12,
        "8 bytes apart": [0, 8] * 6,
        "one in 4": [0, 0, 0, 8] * 3,
        "one in 5": [0, 0, 0, 0, 8] * 3,
    }
    for name, offsets in {**banks, "4 bytes apart": [0, 4] * 6}.items():
        wide = name != "4 bytes apart"
        loads = _loads(offsets, "r1{}" if wide else "r1{}d")
        yield Experiment("banks", f"{len(offsets)} loads of {64 if wide else 32} bits, {name}", loads)
    for lines in ("AA", "AB", "ABAB", "AABB", "ABA", "AAAB"):
        places = [64 * (line == "B") + 8 * lines[:n].count(line) for n, line in enumerate(lines)]
        yield Experiment("stores", f"to lines {', '.join(lines)}", tuple(f"mov [rdx+{own}], r10" for own in places))
    for register, size in (("xmm", 16), ("ymm", 32)):
        for count in (6, 9, 12):
            lines = [f"vmovups {register}{n}, [rdx+rax+{4352 * (n % 3) + size * (n // 3)}]" for n in range(count)]
            name = f"{count} loads of {8 * size} bits from three arrays"
            yield Experiment("walks", name, tuple(lines), size * (count // 3))
    for register, size in (("xmm", 16), ("ymm", 32), ("zmm", 64)):
        for count in (1, 3, 5, 7, 9):
            places = [64 - size // 2, *(128 * n + 32 * (n % 2) * (size < 64) for n in range(1, count))]
            yield Experiment(
                "across lines", f"one of {count} loads of {8 * size} bits", _loads(places, register + "{}", "vmovups")
            )
    for count in range(1, 7):
        lines = [f"vaddps ymm{n}, ymm{n}, ymm15" for n in range(count)]
        yield Experiment("adders", f"{count} chains in registers", tuple(lines))
    for count in range(1, 6):
        lines = [f"vaddps ymm{n}, ymm{n}, [rdx+rax+{32 * n}]" for n in range(count)]
        yield Experiment("adders", f"{count} chains over a walk", tuple(lines), 32 * count)
    yield Experiment(
        "adders", "add, move, add", ("addsd xmm0, xmm15", "movapd xmm1, xmm0", "addsd xmm1, xmm15", "movapd xmm0, xmm1")
    )
    yield from _crossing()
    yield from _ordered()
    yield from _domains()
    yield from _extended()
    yield from _multiplied()
    yield from _dispatched()
    yield from _stored()
    yield from _destinations()
    yield from _wide()
    for count in (2, 3, 4, 5, 7):
        for offset in (0, 56):
            nops = ("nop dword ptr [rax+0x11111111]",) * (count - 2)
            yield Experiment("lines of code", f"{count} µops at {offset}", nops, offset=offset)


def _crossing() -> Iterator[Experiment]:
    """256-bit loads of which some cross lines (x; others: a) among moves (m), in passes that begin at each slot of a
    cycle in turn; and loads that all cross lines, over arrays."""
    random, seen = Random(5), set[str]()
    for slots in (5, 7, 11, 13, 17, 19) * 16:
        loads = random.randint(2, slots * 3 // 5)
        kinds = ["m"] * (slots - 2 - loads) + ["a"] * loads
        kinds[slots - 2 - loads : slots - 2 - loads // 2] = "x" * (loads - loads // 2)
        random.shuffle(kinds)
        name = "".join(kinds)
        if name in seen or 3 * (loads + kinds.count("x")) <= slots:  # else dispatch takes longer than the loads
            continue
        seen.add(name)
        loaded = "vmovupd ymm{}, [rdx+{}]"
        lines = [
            "mov r12, r13" if kind == "m" else loaded.format(place % 14, 128 * place + 48 * (kind == "x"))
            for place, kind in enumerate(kinds)
        ]
        yield Experiment("crossing", name, tuple(lines))
    for register, size in (("ymm", 32), ("zmm", 64)):
        for count in (2, 4):
            lines = [f"vmovupd {register}{k}, [rdx+rax+{4352 * k + 64 - size // 2 + 8}]" for k in range(count)]
            yield Experiment("crossing", f"{count} loads of {8 * size} bits over arrays", tuple(lines), 64)


def _ordered() -> Iterator[Experiment]:
    """Which generator each load gets: 256-bit loads that cross lines (x) or do not (a) and stores (s) among moves (m),
    which take other times in order than by how many wait; loads (A) and stores (S) of 512 bits."""
    random, seen = Random(7), set[str]()
    while len(seen) < 90:
        loads, stores = random.choice((2, 2, 4, 4, 5, 6)), random.choice((0, 0, 0, 1))
        kinds = ["m"] * random.randint(0, 9) + [random.choice("ax") for _ in range(loads)] + ["s"] * stores
        random.shuffle(kinds)
        if len(kinds) <= 10 and len(kinds) + 2 < 3 * (loads + kinds.count("x")):  # else dispatch takes longer
            seen.add("".join(kinds))
    wide = ("AAS", "AASm", "AASmm", "AASmmm", "AAS" * 4, "A" * 8 + "S" * 4)
    for name in (*sorted(seen, key=lambda own: (len(own), own)), *wide):
        yield Experiment("ordered", name, tuple(_access(kind, place) for place, kind in enumerate(name)))


def _access(kind: str, place: int) -> str:
    """A move, or a load or store that stays in one place, near enough for short code."""
    own, register = 64 * (place % 2), place % 14
    return {
        "m": "mov ecx, r13d",
        "a": f"vmovupd ymm{register}, [rdx+{own}]",
        "x": f"vmovupd ymm{register}, [rdx+{own + 48}]",
        "s": "vmovupd [rdx+512], ymm15",
        "A": f"vmovupd zmm{register}, [rdx+{64 * place}]",
        "S": f"vmovupd [rdx+{64 * place + 1024}], zmm15",
    }[kind]


def _domains() -> Iterator[Experiment]:
    """Chains of a floating-point addition and another operation: more than both latencies where the core keeps vectors
    of floating-point numbers and of integers apart."""
    adds, copies = "vaddpd xmm0, xmm0, xmm15", 4
    others = (
        "vmulpd xmm0, xmm0, xmm15",
        "vminpd xmm0, xmm0, xmm15",
        "vcmppd xmm0, xmm0, xmm15, 1",
        "vandpd xmm0, xmm0, xmm15",
        "vblendvpd xmm0, xmm0, xmm15, xmm14",
        "vunpcklpd xmm0, xmm0, xmm15",
        "vshufpd xmm0, xmm0, xmm0, 0",
        "vpermilpd xmm0, xmm0, 1",
        "vpshufd xmm0, xmm0, 0",
        "vpaddd xmm0, xmm0, xmm15",
        "vpxor xmm0, xmm0, xmm15",
        "vpslld xmm0, xmm0, 1",
        "vpmulld xmm0, xmm0, xmm15",
    )
    for other in others:
        yield Experiment("domains", f"{copies} vaddpd, {other.split()[0]}", (adds, other) * copies)
    for first, second in (("vandpd", "vunpcklpd"), ("vminpd", "vunpcklpd"), ("vpaddd", "vunpcklpd")):
        lines = (f"{first} xmm0, xmm0, xmm15", f"{second} xmm0, xmm0, xmm15")
        yield Experiment("domains", f"{copies} {first}, {second}", lines * copies)


def _extended() -> Iterator[Experiment]:
    """Two loads and three additions, which with the end fill the ALUs, if the loads need none."""
    moves = {
        "mov r32,m32": "mov {}, dword ptr [rdx+{}]",
        "movzx r32,m8": "movzx {}, byte ptr [rdx+{}]",
        "movsx r32,m8": "movsx {}, byte ptr [rdx+{}]",
        "movsx r32,m16": "movsx {}, word ptr [rdx+{}]",
        "movsxd r64,m32": "movsxd {}, dword ptr [rdx+{}]",
        "mov r16,m16": "mov {}, word ptr [rdx+{}]",
    }
    names = {"movsxd r64,m32": ("r10", "r11"), "mov r16,m16": ("r10w", "r11w")}
    for name, move in moves.items():
        loads = [move.format(register, 8 * n) for n, register in enumerate(names.get(name, ("r10d", "r11d")))]
        yield Experiment("extended", f"2 {name} and 3 additions", (*loads, *("lea r13, [r12+8]",) * 2))


def _multiplied() -> Iterator[Experiment]:
    """Groups of six slots again and again: multiplications, which one ALU executes, beside operations of any ALU."""
    lines = {"M": "imul r10, r12, 7", "F": "lea r11, [r12+8]", "S": "rorx r13, r12, 5", ".": "mov r13, r12"}
    for group in ("FF.F.M", "F.FMFF", "MFFFFF", "MSFFF.", "S..S.M", "S..SMM", "MSMSF.", "MFSFSM"):
        yield Experiment("multiplied", f"16 of {group}", tuple(lines[one] for one in group) * 16)


def _dispatched() -> Iterator[Experiment]:
    """Loads behind one another, in loops of so many slots that dispatch alone binds."""
    kinds = {
        "4 vector loads": _loads(range(0, 64, 16), "xmm{}", "vmovups"),
        "6 general loads": _loads(range(0, 48, 8)),
        "2 vector stores": ("vmovups [rdx], xmm0", "vmovups [rdx+16], xmm1"),
    }
    for name, accesses in kinds.items():
        for slots in (13, 14, 15, 16, 18):
            moves = ("mov r10, r11",) * (slots - 2 - len(accesses))
            yield Experiment("dispatch", f"{name} of {slots} slots", (*accesses, *moves))


def _stored() -> Iterator[Experiment]:
    """Four chains of fused multiplications and additions of constants, and four stores of them or of something else."""
    for steps in (4, 6):
        chains = [f"vfmadd213pd ymm{n}, ymm15, ymm{14 - step % 2}" for step in range(steps) for n in range(4)]
        begin = [f"vmovapd ymm{n}, ymm12" for n in range(4)]
        for name, stored in (("results", "{}"), ("another vector", "11")):
            stores = [f"vmovupd [rdx+{32 * n}], ymm{stored.format(n)}" for n in range(4)]
            yield Experiment("stored", f"4 chains of {steps}, {name}", (*begin, *chains, *stores))


def _destinations() -> Iterator[Experiment]:
    """Operations that read their destination beside two vectors, none of which was just computed, and stores."""
    operations = {
        "vpternlogd": "vpternlogd ymm{}, ymm14, ymm15, 150",
        "vpaddd into a mask's rest": "vpaddd ymm{}{{k1}}, ymm14, ymm15",
        "vpaddd that clears the rest": "vpaddd ymm{}{{k1}}{{z}}, ymm14, ymm15",
    }
    selection, fused = operations["vpternlogd"], "vfmadd231pd ymm{}, ymm14, ymm15"
    for name, operation in operations.items():
        for count in (2, 4):
            lines = (*_into_copies(operation, range(count)), "vmovupd [rdx], ymm15")
            yield Experiment("destinations", f"{count} {name}, a store", lines)
    both = (*_into_copies(fused, range(2)), *_into_copies(selection, range(2, 4)))
    yield Experiment("destinations", "2 fused, 2 vpternlogd", both)
    yield Experiment("destinations", "8 copies, vpternlogd", tuple(_into_copies(selection, range(8))))
    for count in (8, 12):
        chains = [selection.format(n) for n in range(count)]
        yield Experiment("destinations", f"{count} chains of vpternlogd", tuple(chains))
        yield Experiment("destinations", f"{count} chains of vpternlogd, a store", (*chains, "vmovupd [rdx], ymm15"))
    for count in (8, 10, 12):
        sums = [fused.format(n) for n in range(count)]
        stores = [f"vmovupd [rdx+{32 * n}], ymm15" for n in range(count // 2)]
        lines = [one for n, store in enumerate(stores) for one in (*sums[2 * n : 2 * n + 2], store)]
        yield Experiment("destinations", f"{count} chains of FMAs, {count // 2} stores", tuple(lines))
    yield from _blends_and_turns()


def _into_copies(operation: str, numbers: Iterable[int]) -> Iterator[str]:
    """An operation into copies of one register, of these numbers."""
    for number in numbers:
        yield f"vmovapd ymm{number}, ymm14"
        yield operation.format(number)


def _blends_and_turns() -> Iterator[Experiment]:
    """Blends by a third vector beside what takes a path of stored vectors; two operations in turn or one by one."""
    for count in (2, 4, 6):
        blends = [f"vblendvpd ymm{n}, ymm13, ymm14, ymm15" for n in range(count)]
        for name, last in (("a store", "vmovupd [rdx], ymm15"), ("a move to r10", "vmovq r10, xmm15")):
            yield Experiment("blends", f"{count} vblendvpd, {name}", (*blends, last))
    shuffle, add, multiply = (f"{name} ymm{{}}, ymm14, ymm15" for name in ("vpshufb", "vpaddd", "vmulpd"))
    for name, pair in (("vpshufb, vpaddd", (shuffle, add)), ("vmulpd, vpaddd", (multiply, add))):
        turns = [pair[n % 2].format(n) for n in range(8)]
        yield Experiment("turns", f"{name} in turn", tuple(turns))
        yield Experiment("turns", f"{name}, four of each", (*turns[::2], *turns[1::2]))


def _wide() -> Iterator[Experiment]:
    """Loads of 512 bits from lines and places between; what they and such stores leave of address generators."""
    load, store = "vmovupd zmm{}, [rdx+{}]", "vmovupd [rdx+512], zmm8"
    for place in (0, 8, 32):
        lines = [load.format(n, 64 * n + place) for n in range(2)]
        yield Experiment("middle", f"two loads of 512 bits at {place} of a line", tuple(lines))
        walks = [f"vaddpd zmm{n}, zmm8, [rdx+rax+{64 * n + place}]" for n in range(2)]
        yield Experiment("middle", f"two operands of 512 bits at {place} of a line, moving", tuple(walks), 128)
    for count in (4, 5, 6):
        yield Experiment(
            "wide", f"a store of 512 bits, {count} general loads", (store, *_loads(range(0, 8 * count, 8)))
        )
    for count in (2, 3):
        loads = (load.format(0, 64), *_loads(range(0, 8 * count, 8)))
        yield Experiment("wide", f"a load and a store of 512 bits, {count} general loads", (store, *loads))
    narrow = [f"vmovupd ymm{n}, [rdx+{32 * n}]" for n in range(4)]
    yield Experiment("wide", "a store of 512 bits, 4 loads of 256 bits", (store, *narrow))
    yield from _address_generators()


def _address_generators() -> Iterator[Experiment]:
    """Loops of 12 slots with four vector loads and two vector stores at places that differ, the end being two slots."""
    random = Random(5)
    for _ in range(24):
        places = random.sample([*"LLLLSS", *"...."], 10)
        loads, stores, lines = iter(range(4)), iter(range(2)), []
        for place in places:
            if place == "L":
                lines.append(f"movups xmm{(own := next(loads))}, [rdx+{64 * own}]")
            elif place == "S":
                lines.append(f"movups [rdx+{256 + 64 * next(stores)}], xmm8")
            else:
                lines.append("mov r10, r11")
        yield Experiment("generators", "".join(places), tuple(lines))


def function(number: int, experiment: Experiment) -> str:
    """C that runs the loop so often and returns ticks."""
    text = experiment.text(around=True).replace("{", "%{").replace("}", "%}")
    body = "".join(f'"{line}\\n"\n' for line in text.splitlines())
    return f"""
uint64_t experiment{number}(char *memory, long passes)
{{
    uint64_t begin = now();
    __asm__ volatile(".intel_syntax noprefix\\n"
        "mov rdx, %0\\n mov r9, %1\\n xor r8d, r8d\\n xor eax, eax\\n vzeroall\\n"
        "jmp 1f\\n .p2align 6\\n .fill {experiment.offset}, 1, 0x90\\n 1:\\n"
        {body}
        "vzeroupper\\n .att_syntax\\n" :: "r"(memory), "r"(passes)
        : "rax", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "memory", "cc", {_VECTORS});
    return now() - begin;
}}
"""


def predicted(experiment: Experiment, table: InstructionTable) -> float:
    """What the model of a core says of the loop."""
    with tempfile.TemporaryDirectory() as folder:
        source, made, code = (Path(folder) / name for name in ("loop.s", "loop.o", "loop.bin"))
        source.write_text(f".intel_syntax noprefix\n1:\n{experiment.text(around=False)}\n")
        subprocess.run(["as", "-o", made, source], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".text", made, code], check=True)
        listing = decode_bytes(code.read_bytes())
    body = AssemblyLoop(listing.instructions, listing.isa, "binary", "", "", None, (), "", "marked", ())
    loads = BodyAccesses([address_step(own) for own in listing.instructions]).moving()[0]
    places = Places(starts={load.instruction: (load.address.constant % _LINE,) for load in loads})
    return analyse(body, table.parameters, table, offset=experiment.offset, places=places).prediction


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=400)
    parser.add_argument("--core", default="RWC")
    parser.add_argument("--only", default="", help="the heading of those to make")
    options = parser.parse_args(arguments)
    table = InstructionTable.open(load_parameters(options.core))
    chosen = [own for own in experiments() if options.only in ("", own.heading)]
    made = compiled("".join(function(number, own) for number, own in enumerate(chosen)), "-mavx512vl")
    memory = ctypes.create_string_buffer(1 << 17)
    start = (ctypes.addressof(memory) + 4095) & ~4095
    cycle = cycle_ticks(made, options.samples)
    for number, own in enumerate(chosen):
        declare(made, f"experiment{number}", ctypes.c_void_p, ctypes.c_long)
        run = getattr(made, f"experiment{number}")
        measured = median(run(start, 2 * PASSES) - run(start, PASSES) for _ in range(options.samples)) / PASSES / cycle
        print(f"{own.heading:14} {own.name:42} {measured:6.2f}  {predicted(own, table):6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
