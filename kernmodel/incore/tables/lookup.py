"""From an instruction to its row: the exact form first, then its nearest relatives, each said in the row's source.

The order is that of growing doubt: another spelling of the same form; the same operation with another width of an
immediate, a byte register or a memory operand; an unmasked, unbroadcast or VEX form for an EVEX one; at last the
register form composed with a load or a store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from kernmodel.incore.model import FrontEnd, InstructionData, Parameters
from kernmodel.isa.model import Instruction, MemoryReference

_MASK = re.compile(r"\{kz?\}")
_SIZES = ("m64", "m32", "m128", "m256", "m512", "m16", "m8", "m", "m80")
_IMMEDIATES = ("i8", "i32", "i16", "i64")
_HIGH_BYTE_ENCODINGS = frozenset({"rsp", "rbp", "rsi", "rdi", "r12", "r13", "r14", "r15"})
"""Registers whose low byte has the number that names ah, ch, dh or bh without REX (Intel SDM vol. 2, table 2-2)."""
_ALIAS = " [high8 alias]"
_SYNONYMS = {"sal": "shl", "movabs": "mov", "endbr64": "nop", "fnop": "nop", "retn": "ret", "wait": "fwait"}
_EVEX_NAMES = re.compile(r"(v\w+?)(8|16|32|64|32x4|64x2|32x8|64x4)$")
_EVEX_TO_VEX = {"vpandd": "vpand", "vpandq": "vpand", "vpandnd": "vpandn", "vpandnq": "vpandn", "vpord": "vpor"}
_EVEX_TO_VEX |= {"vporq": "vpor", "vpxord": "vpxor", "vpxorq": "vpxor", "vextractf64x2": "vextractf128"}
_EVEX_TO_VEX |= {"vinsertf64x2": "vinsertf128", "vinserti64x2": "vinserti128", "vextracti64x2": "vextracti128"}
_REGISTERS = {"m8": ("r8",), "m16": ("r16", "r32"), "m32": ("r32", "xmm"), "m64": ("r64", "xmm", "mm"), "m": ("r64",)}
_REGISTERS |= {"m128": ("xmm",), "m256": ("ymm",), "m512": ("zmm",)}
_BITS = {"zmm": 512, "ymm": 256, "xmm": 128}
_BROADCASTS = frozenset({"m16b", "m32b", "m64b"})


class RowSource(Protocol):
    """What the rules ask of an instruction table: its rows by exact form, and the core it describes."""

    @property
    def parameters(self) -> Parameters:
        """Parameters of the microarchitecture."""

    def row(self, form: str) -> InstructionData | None:
        """The row of exactly this form, or None."""


def lookup_key(instruction: Instruction) -> tuple[str, str]:
    """What a row depends on: the form and what `_variant` says."""
    return instruction.form, _variant(instruction)


def _variant(instruction: Instruction) -> str:
    """The shape of the address of a lea, an immediate that is 0, a source of movzx that is encoded like a high byte."""
    if instruction.mnemonic == "lea" and instruction.memory:
        return f" [{_address_shape(instruction.memory[0])}]"
    operands = instruction.operands
    if instruction.mnemonic == "movzx" and operands[1].kind == "r8" and operands[1].register in _HIGH_BYTE_ENCODINGS:
        return _ALIAS
    return " [0]" if any(operand.kind in _IMMEDIATES and operand.immediate == 0 for operand in operands) else ""


def _address_shape(reference: MemoryReference) -> str:
    """The parts of an address as they are encoded: rbp and r13 as base of an index always take a displacement."""
    if reference.base in ("rip", "eip") or (reference.base is None and reference.index is None):
        return "rip+d" if reference.base else "d"
    parts = ["b"] if reference.base else []
    if reference.index:
        parts.append("i*s" if reference.scale > 1 else "i")
    padded = reference.index is not None and reference.base in ("rbp", "r13")
    if reference.displacement or reference.symbol or not reference.base or padded:
        parts.append("d")
    return "+".join(parts)


def find_row(table: RowSource, instruction: Instruction) -> InstructionData | None:
    """The row for the instruction, exact or approximated, or None.

    Raises:
        InstructionTableError: a row on the way is malformed.
    """
    form, variant = lookup_key(instruction)
    row = (table.row(form + variant) if variant else None) or table.row(form)
    if row is not None:
        stays = variant == _ALIAS and not table.parameters.registers.movzx_alias_eliminated
        return _named(replace(row, eliminated=False) if stays else row, form)
    for candidate, reason in _candidates(form):
        row = table.row(candidate)
        if row is not None:
            return replace(_named(row, form), source=f"{reason} of {candidate}: {row.source}" if reason else row.source)
    return _compose(table, instruction)


def _named(row: InstructionData, form: str) -> InstructionData:
    if row.form == form:
        return row
    return replace(row, form=form, full=_named(row.full, form) if row.full else None)


def _candidates(form: str) -> Iterator[tuple[str, str]]:
    """Forms whose rows stand for `form`, in the order of growing doubt, with the reason (empty for mere spellings)."""
    mnemonic, _, text = form.partition(" ")
    if mnemonic in ("lock", "rep", "repne"):
        prefix, mnemonic, text = mnemonic + " ", *text.partition(" ")[::2]
        yield from (
            (f"{prefix}{other}", why) for other, why in _relatives(mnemonic, tuple(text.split(",")) if text else ())
        )
    kinds = tuple(text.split(",")) if text else ()
    yield from _relatives(mnemonic, kinds)


def _relatives(mnemonic: str, kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if mnemonic in _SYNONYMS:
        mnemonic = _SYNONYMS[mnemonic]
        yield _join(mnemonic, kinds), ""
        yield mnemonic, ""
    if mnemonic == "nop":  # all its operand sizes cost the same, but on some cores more than no operand
        yield from ((_join(mnemonic, other), "") for other in _replaced(kinds, _SIZES, _SIZES))
    if mnemonic == "nop" or (mnemonic == "xchg" and not kinds):  # the two-byte nop is an xchg of ax with itself
        yield "nop", ""
    yield from ((_join(mnemonic, other), "immediate width") for other in _replaced(kinds, _IMMEDIATES, _IMMEDIATES))
    yield from ((_join(mnemonic, other), "low-byte form") for other in _replaced(kinds, ("r8h",), ("r8",)))
    yield from ((_join(mnemonic, other), "other memory width") for other in _replaced(kinds, _SIZES, _SIZES))
    yield from _evex_relatives(mnemonic, kinds)


def _evex_relatives(mnemonic: str, kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Unmasked, unbroadcast and VEX forms for an EVEX one."""
    merged = tuple(kind.replace("{k}", "{kz}") for kind in kinds)
    if merged != kinds:
        yield _join(mnemonic, merged), "zeroing mask"
    unmasked = tuple(_MASK.sub("", kind) for kind in kinds)
    names = dict.fromkeys((mnemonic, *_vex_names(mnemonic)))
    whole = ((other, "full-width memory") for other in _unbroadcast(unmasked))
    for bare, why in ((unmasked, "unmasked form"), *whole):
        for name in names:
            if (name, bare) != (mnemonic, kinds):
                yield _join(name, bare), why if name == mnemonic else "VEX form"


def _vex_names(mnemonic: str) -> Iterator[str]:
    if mnemonic in _EVEX_TO_VEX:
        yield _EVEX_TO_VEX[mnemonic]
    if match := _EVEX_NAMES.fullmatch(mnemonic):
        yield match[1]
        yield match[1] + "128"


def _unbroadcast(kinds: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The kinds with a broadcast element replaced by a vector in memory, as wide as the registers
    first: the operand of a conversion may be half or twice as wide.
    """
    if _BROADCASTS.isdisjoint(kinds):
        return
    widest = next((bits for kind, bits in _BITS.items() if kind in kinds), 512)
    for bits in sorted((512, 256, 128, 64), key=lambda bits: (bits != widest, -bits)):
        yield tuple(f"m{bits}" if kind in _BROADCASTS else kind for kind in kinds)


def _replaced(kinds: tuple[str, ...], old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The kinds with the first one that is in `old` replaced by each of `new`."""
    position = next((number for number, kind in enumerate(kinds) if kind in old), None)
    if position is None:
        return
    for kind in new:
        if kind != kinds[position]:
            yield (*kinds[:position], kind, *kinds[position + 1 :])


def _join(mnemonic: str, kinds: tuple[str, ...]) -> str:
    return f"{mnemonic} {','.join(kinds)}" if kinds else mnemonic


def _compose(table: RowSource, instruction: Instruction) -> InstructionData | None:
    """The register form with a load before it, or a store after it, for a memory form without row."""
    position = next((n for n, operand in enumerate(instruction.operands) if operand.memory is not None), None)
    if position is None:
        return None
    operand = instruction.operands[position]
    if operand.kind.startswith("vsib") or not (operand.read or operand.written):
        return None
    kinds = [_MASK.sub("", other.kind) for other in instruction.operands]
    for register in _register_kinds(operand.kind, kinds):
        kinds[position] = register
        form = _join(instruction.mnemonic, tuple(kinds))
        inner = table.row(form) or next((row for name, _ in _candidates(form) if (row := table.row(name))), None)
        if inner is None:
            continue
        load = _plain(table, register, store=False) if operand.read else None
        store = _plain(table, register, store=True) if operand.written else None
        if (load or store) and (load is not None) >= operand.read and (store is not None) >= operand.written:
            return _composed(instruction.form, str(position), inner, load, store)
    return None


def _register_kinds(memory_kind: str, kinds: list[str]) -> tuple[str, ...]:
    """Register kinds that can stand where the memory operand stands; a broadcast stands for a vector."""
    if memory_kind in _BROADCASTS:
        return tuple(kind for kind in _BITS if _BITS[kind] <= max(_BITS.get(other, 0) for other in kinds))
    return _REGISTERS.get(memory_kind, ())


def _plain(table: RowSource, register: str, *, store: bool) -> InstructionData | None:
    """The row of a plain load or store of such a register."""
    size = _BITS.get(register, register[1:] if register[0] == "r" else "64")
    name = "vmovaps" if register in ("ymm", "zmm") else "movaps" if register == "xmm" else "mov"
    return table.row(f"{name} m{size},{register}" if store else f"{name} {register},m{size}")


def _composed(
    form: str, position: str, inner: InstructionData, load: InstructionData | None, store: InstructionData | None
) -> InstructionData:
    parts = [row for row in (inner, load, store) if row is not None]
    pairs = {}
    for (source, target), cycles in inner.latencies.items():
        pairs["M" + source if source == position else source, "M" + target if target == position else target] = cycles
    if load is not None:
        address = load.latencies.get(("A1", "0"), load.default_latency)
        for target in {"0", *(target for _, target in inner.latencies)}:
            data = pairs.setdefault(("M" + position, target), inner.default_latency)
            pairs["A" + position, target] = pairs["X" + position, target] = address + data
    extra = " + load" * (load is not None) + " + store" * (store is not None)
    return replace(
        inner,
        form=form,
        ports=tuple(use for row in parts for use in row.ports),
        latencies=pairs,
        uops=sum(row.uops for row in parts),
        breaks_dependency="no",
        eliminated=False,
        front_end=_joined(inner.front_end, sum(row.uops for row in parts)),
        indexed=None,
        full=_composed(form, position, inner.full, load, store) if inner.full else None,
        source=f"composed: {inner.form}{extra}: {inner.source}",
    )


def _joined(front: FrontEnd | None, uops: int) -> FrontEnd | None:
    """The front-end costs of a composed instruction: not micro-fused, so one slot for each µop."""
    return None if front is None else replace(front, retire_slots=uops, fusible_with=())
