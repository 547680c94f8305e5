"""Instruction forms: reciprocal throughput by parallelism, latency by chains, ports by what stands beside.

A form is that of the instruction tables ("vaddpd ymm,ymm,m256"). Throughput is that of instances which write registers
of their own; latency that of a chain from an operand that is read to one that is written, where both are registers of a
kind (Laukemann, Hammer, Hofmann, Hager, Wellein, PMBS 2018, section II).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kernmodel.errors import AssemblyError, InputError, MeasurementError, Note
from kernmodel.incore.tables.timed import Timing
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.blocks import copies_of, doubts, refuse_unsafe
from kernmodel.measure.host import Effort, FaultError, Harness
from kernmodel.measure.model import InstructionMeasurement, InstructionMeasurements
from kernmodel.measure.samples import Figure

EFFORT = Effort()
_KIND = re.compile(r"(r8|r16|r32|r64|xmm|ymm|zmm|k|mm|m\d+b?|i\d+|cl|1)(\{k\}|\{kz\})?")
_PREFIX = "lock "
_SUFFIXES = {"r8": ("al", "cl", "dl", "bl", "bpl", "sil", "dil"), "r16": ("ax", "cx", "dx", "bx", "bp", "si", "di")}
_SUFFIXES |= {"r32": ("eax", "ecx", "edx", "ebx", "ebp", "esi", "edi"), "r64": x86.GENERAL[:7]}
_ENDINGS = {"r8": "b", "r16": "w", "r32": "d", "r64": ""}
_POINTERS = {
    8: "byte",
    16: "word",
    32: "dword",
    64: "qword",
    128: "xmmword",
    256: "ymmword",
    512: "zmmword",
    80: "tbyte",
}
_BROADCASTS = {16: "word", 32: "dword", 64: "qword"}
_VECTORS = ("xmm", "ymm", "zmm", "mm", "k")
_FILES = {"xmm": (12, (15, 14, 13, 12)), "mm": (6, (7, 7, 6)), "k": (5, (6, 6, 5)), "r": (9, (9, 11, 10, 9))}
"""By kind of register: how many take turns as targets, the first ones, and by position the one that nothing writes.
Twelve vectors, since on two pipelines fused multiply-adds of four cycles take more than the eight of theory."""
_MASK = 7
"""Number of the register that holds the mask, which the operands leave alone."""
_NUMBERED = ("rbx", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16)))
"""General registers as operands are numbered: without those that instructions read which do not name them."""
_CHAINED = 4
BLOCKERS = ("add r64,r64", "imul r64,r64", "shl r64,i8", "mov r64,m64", "mov m64,r64")
"""Forms whose ports are known on every core: integer, multiplier, shifter, load, store."""
_VECTOR_BLOCKERS = {False: ("paddd xmm,xmm", "pshufd xmm,xmm,i8"), True: ("vpaddd xmm,xmm,xmm", "vpshufd xmm,xmm,i8")}
"""Vector integer and shuffle, without and with VEX: SSE code keeps the upper parts, which AVX code fills."""
_BLOCKER_COPIES = 4


def measure_instruction(
    harness: Harness, form: str, *, ports: bool = False, effort: Effort = EFFORT
) -> InstructionMeasurement:
    """Throughput and latencies of a form, and with `ports` which others it takes cycles from.

    Raises:
        InputError: no such form, or one with operands that cannot be set up (branches, x87, gathers).
        MeasurementError: this host does not execute it, or does not let it be measured.
    """
    mnemonic, kinds = _parts(form)
    try:
        decoded = _decoded(_line(mnemonic, kinds, {}))
        if len(decoded.operands) != len(kinds):
            what = f"the assembler takes it for {decoded.form}, whose operands are not those that were named"
            raise InputError(what, where=form, todo="name that form, unless it is x87, which is not measured")
        parallel = parallel_instances(form)
        throughput = copies_of(harness, parallel, effort).scaled(1 / len(parallel))
        latencies = {}
        for source, target in _pairs(decoded, kinds):
            lines = _chain(mnemonic, kinds, source, target)
            latencies[f"{source + 1} → {target + 1}"] = copies_of(harness, lines, effort).scaled(1 / len(lines))
        beside = _beside(harness, form, parallel, effort) if ports else {}
    except FaultError as error:
        raise MeasurementError(f"{form}: {error.what}", todo="this host does not execute it, or it traps") from error
    except AssemblyError as error:
        todo = "name it as `kernmodel instructions list` does"
        raise InputError(f"the assembler knows no such form: {error.what}", where=form or "FORM", todo=todo) from error
    notes = [*doubts(throughput, "throughput")]
    for pair, figure in latencies.items():
        notes += doubts(figure, f"latency {pair}")
    if chained := _implicit_chain(decoded):
        what = f"instances wait for one another through {', '.join(chained)}: the throughput includes that latency"
        notes.append(Note(_CHAINED_NOTE, what, "assumption"))
    return InstructionMeasurement(
        decoded.form, parallel[0], throughput, latencies, beside, harness.clock_hz(), tuple(notes),
        tuple(parallel),
    )  # fmt: skip


def parallel_instances(form: str) -> list[str]:
    """Instances of a form, in Intel syntax, of which none reads what another one writes.

    Raises:
        InputError, AssemblyError: as `measure_instruction`.
    """
    mnemonic, kinds = _parts(form)
    decoded = _decoded(_line(mnemonic, kinds, {}))
    count = min(_turning(decoded).values(), default=_FILES["r"][0])
    return [_line(mnemonic, kinds, _own_targets(decoded, number)) for number in range(count)]


def measure_instructions(
    harness: Harness,
    forms: Sequence[str],
    *,
    ports: bool = False,
    effort: Effort = EFFORT,
    progress: Callable[[str], object] = lambda what: None,
) -> InstructionMeasurements:
    """The same of several forms; those that cannot be measured are left out and named."""
    found, notes = [], []
    for form in dict.fromkeys(forms):
        progress(form)
        try:
            found.append(measure_instruction(harness, form, ports=ports, effort=effort))
        except (InputError, MeasurementError) as error:
            notes.append(Note("form-not-measured", f"{form} is left out: {error.what.removeprefix(f'{form}: ')}"))
    notes += [replace(note, text=f"{one.form}: {note.text}") for one in found for note in one.notes]
    return InstructionMeasurements(tuple(found), tuple(notes))


def timing_of(measured: InstructionMeasurement, source: str) -> Timing | None:
    """What is confirmed of a measurement as instruction tables have it; None where nothing is.

    A throughput that is a chain's through implicit operands is left out: it would count twice.
    """
    kinds = _parts(measured.form)[1]
    latencies = {}
    for pair, figure in measured.latencies.items():
        read, written = (int(number) - 1 for number in pair.split(" → "))
        if figure.confirmed:
            address = "A" if _is_memory(kinds[read]) else ""
            latencies[f"{address}{read}", str(written)] = figure.value
    chained = any(note.code == _CHAINED_NOTE for note in measured.notes)
    throughput = measured.throughput.value if measured.throughput.confirmed and not chained else None
    if throughput is None and not latencies:
        return None
    return Timing(measured.form, throughput, source, latencies)


_CHAINED_NOTE = "implicit-chain"


def _parts(form: str) -> tuple[str, tuple[str, ...]]:
    written = form.strip().lower()
    prefix = _PREFIX if written.startswith(_PREFIX) else ""
    mnemonic, _, text = written.removeprefix(prefix).partition(" ")
    kinds = tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    for kind in kinds:
        if not _KIND.fullmatch(kind) or not _has_size(kind.partition("{")[0]):
            what = f"operands of the kind {kind!r} are not set up for measuring"
            raise InputError(
                what, where=form, todo="registers (r8 to r64, xmm, ymm, zmm, k), memory (m8 to m512), i8 to i64"
            )
    return prefix + mnemonic, kinds


def _has_size(kind: str) -> bool:
    """Whether memory or an immediate operand is of a size that has a name."""
    if _is_memory(kind):
        return int(kind[1:].removesuffix("b")) in (_BROADCASTS if kind.endswith("b") else _POINTERS)
    return kind[0] != "i" or kind == "i8" or kind in _IMMEDIATES


def _is_memory(kind: str) -> bool:
    return kind[0] == "m" and kind[1:2].isdecimal()


def _line(mnemonic: str, kinds: Sequence[str], registers: Mapping[int, int]) -> str:
    """An instance; `registers` numbers the register of an operand, others are the ones nothing writes."""
    operands = []
    for position, kind in enumerate(kinds):
        bare, _, mask = kind.partition("{")
        number = registers.get(position, _FILES[_file(bare)][1][position])
        if _is_memory(bare):
            bits = int(bare[1:].removesuffix("b"))
            size = f"{_BROADCASTS[bits]} bcst" if bare.endswith("b") else f"{_POINTERS[bits]} ptr"
            text = f"{size} [{_NUMBERED[number]}]"
        elif bare[0] == "i":
            text = "3" if bare == "i8" else str(_IMMEDIATES[bare])
        elif bare in ("cl", "1"):
            text = bare
        elif bare in _VECTORS:
            text = f"{bare}{number}"
        else:
            text = _general(bare, x86.GENERAL.index(_NUMBERED[number]))
        operands.append(text + (f"{{k{_MASK}}}{'{z}' if mask == 'kz}' else ''}" if mask else ""))
    return f"{mnemonic} {', '.join(operands)}"


def _file(kind: str) -> str:
    """The registers that an operand of this kind names, as in `_FILES`: of memory those of its address."""
    return "xmm" if kind in ("xmm", "ymm", "zmm") else kind if kind in ("mm", "k") else "r"


_IMMEDIATES = {"i16": 0x1234, "i32": 0x123456, "i64": 0x123456789ABCDE}


def _general(kind: str, number: int) -> str:
    named = _SUFFIXES[kind]
    return named[number] if number < len(named) else f"r{number - len(named) + 8}{_ENDINGS[kind]}"


def _decoded(line: str) -> Instruction:
    code = x86.assembled(line)
    instructions = tuple(isa_of("x86-64").decode(code, 0))
    refuse_unsafe(instructions, code)
    if instructions[0].branch is not None:
        raise InputError("is a branch, which is not measured alone", where=line)
    return instructions[0]


def _turning(decoded: Instruction) -> dict[int, int]:
    """Operands that are other registers in each instance, and how many take turns: those that it writes, and addresses
    of memory that it reads and writes, since instances that change one place wait for one another."""
    found = {
        at: _FILES[_file(operand.kind)][0]
        for at, operand in enumerate(decoded.operands)
        if operand.written and (operand.register or (operand.memory and operand.memory.read))
    }
    return {at: count // len(found) for at, count in found.items()}


def _own_targets(decoded: Instruction, number: int) -> dict[int, int]:
    """Registers of an instance whose targets no other instance of a round writes."""
    return {at: turn * count + number % count for turn, (at, count) in enumerate(_turning(decoded).items())}


def _pairs(decoded: Instruction, kinds: Sequence[str]) -> list[tuple[int, int]]:
    """Operands that are read and written, where a chain can be made of registers of the same kind."""
    found = []
    for source, read in enumerate(decoded.operands):
        pointer = read.memory is not None and read.memory.read and decoded.mnemonic == "mov"
        if not ((read.read and read.register) or pointer):
            continue
        for target, written in enumerate(decoded.operands):
            if not (written.written and written.register):
                continue
            if _class(kinds[source]) == _class(kinds[target]) or (pointer and kinds[target] == "r64"):
                found.append((source, target))
    return found


def _class(kind: str) -> str:
    bare = kind.partition("{")[0]
    return "vector" if bare in ("xmm", "ymm", "zmm") else "general" if bare[0] == "r" else bare


def _chain(mnemonic: str, kinds: Sequence[str], source: int, target: int) -> list[str]:
    """Instances of which each reads with `source` what the one before wrote with `target`."""
    if source == target:
        return [_line(mnemonic, kinds, {target: 0})] * _CHAINED
    # from one register to another and back: moves of a register to itself may never execute
    return [_line(mnemonic, kinds, {target: turn, source: 1 - turn}) for turn in (0, 1)] * (_CHAINED // 2)


def _implicit_chain(decoded: Instruction) -> list[str]:
    found = sorted(set(decoded.implicit_reads) & set(decoded.implicit_writes))
    if set(decoded.flags_read) & set(decoded.flags_written):
        found.append("flags")
    return found


def _beside(harness: Harness, form: str, parallel: Sequence[str], effort: Effort) -> dict[str, Figure]:
    """By known form the cycles that one instance adds to four of that form, beside which it stands."""
    # instances of their own, since one that waits for itself would add its latency; those with other registers, if any
    instances = parallel[_BLOCKER_COPIES:] or parallel
    found = {}
    for blocker in (*BLOCKERS, *_VECTOR_BLOCKERS[form.startswith(("v", "k"))]):
        if blocker == form:
            continue
        mnemonic, kinds = _parts(blocker)
        decoded = _decoded(_line(mnemonic, kinds, {}))
        others = [_line(mnemonic, kinds, _own_targets(decoded, number)) for number in range(_BLOCKER_COPIES)]
        alone = copies_of(harness, others, effort)
        both = copies_of(harness, [line for one in instances for line in (*others, one)], effort)
        both = both.scaled(1 / len(instances))
        found[blocker] = Figure(
            both.value - alone.value, both.low - alone.high, both.high - alone.low,
            alone.accepted + both.accepted, alone.refused + both.refused, alone.confirmed and both.confirmed,
        )  # fmt: skip
    return found
