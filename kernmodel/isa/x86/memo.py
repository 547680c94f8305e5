"""The memo of decoded x86-64 instructions: which are alike, and how one of them becomes another.

Only general-purpose and vector registers are renamed; instructions that use others than they name stand for themselves.
"""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count

import iced_x86 as iced
from iced_x86 import Code, EncodingKind, OpKind, Register

from kernmodel.isa.memo import MOST_KNOWN, NEAR, Decoded, DecodeMemo, Key, Representative
from kernmodel.isa.model import Encoding, Instruction, MemoryReference, Operand
from kernmodel.isa.x86.decode import (
    HIGH_BYTES,
    IMPLICIT_MEMORY,
    REGISTERS,
    VECTORS,
    decode_raw,
    disassemble,
    signed,
    translate,
    used_registers,
)
from kernmodel.isa.x86.encoding import encoding_of
from kernmodel.value_types import NamedTuple

_PLAIN, _VECTOR = 1, 2
_GENERAL = ("r64", "r32", "r16", "r8")
_FIXED = frozenset({"rsp", "rip"})
_RENAMED = (
    ("rax", "rcx", "rdx", "rbx"),
    ("r8", "r9", "r10", "r11"),
)
"""Registers of representatives: those with high bytes, since these can more than others. The second ones are no
instruction's own, and show which registers it uses besides those that it names."""
_LEA_PADDED: frozenset[int] = frozenset({Register.RBP, Register.R13, Register.EBP, Register.R13D})
"""With an index, these take a displacement, on which the time of a lea depends."""
_LIKE_HIGH_BYTES = frozenset(
    {Register.SPL, Register.BPL, Register.SIL, Register.DIL, Register.R12L, Register.R13L, Register.R14L, Register.R15L}
)
_BYTE_EXTENSIONS = frozenset({Code.MOVZX_R16_RM8, Code.MOVZX_R32_RM8, Code.MOVZX_R64_RM8})
_LEA = frozenset({Code.LEA_R16_M, Code.LEA_R32_M, Code.LEA_R64_M})
_EVEX_BYTES = 4
"""An opcode so far behind the start looks like that of an EVEX encoding."""


class _Class(NamedTuple):
    """What of a register may be renamed: general-purpose or vector, its width, its full register's name."""

    kind: int
    width: str
    name: str


def _classes() -> dict[iced.Register_, _Class]:
    found: dict[iced.Register_, _Class] = {}
    for number, facts in REGISTERS.items():
        if facts.name in _FIXED or number in HIGH_BYTES:
            continue
        if facts.kind in _GENERAL:
            found[number] = _Class(_PLAIN, facts.kind, facts.name)
        elif facts.kind in VECTORS:
            found[number] = _Class(_VECTOR, facts.kind, facts.name)
    return found


_CLASSES = _classes()
_BY_NAME = {(own.width, own.name): number for number, own in _CLASSES.items()}


class _Alike(NamedTuple):
    """What instructions share that are alike, and the full names of the registers that one of them names."""

    shape: Hashable
    registers: tuple[str, ...]


class X86Memo(DecodeMemo):
    """Decodes blocks of x86-64 code, and remembers the instructions that it has met."""

    __slots__ = ("_instructions", "_known", "_new_shape", "_own", "_representatives", "_shapes", "_special")

    def __init__(self) -> None:
        self._known: dict[Key, Decoded] = {}
        self._own: dict[int, bool] = {}
        self._special: dict[int, bool] = {}
        self._shapes: dict[Hashable, int] = {}
        self._new_shape = count(1)
        self._representatives: dict[Hashable, Representative] = {}
        self._instructions: dict[Key, Instruction] = {}

    def decode(self, code: bytes) -> list[Decoded] | None:
        """The instructions of a block of which every byte belongs to one; None if not."""
        known = self._known
        if len(known) >= MOST_KNOWN:
            known.clear()
            self._shapes.clear()
            self._representatives.clear()
            self._instructions.clear()
        found = []
        start = 0
        decoder = iced.Decoder(64, code)
        for item in decoder:
            end = start + item.len
            key: Key = code[start:end]
            one = known.get(key)
            if one is None:
                if item.is_invalid:
                    return None
                if item.is_ip_rel_memory_operand:
                    key = (code[start:end], start)
                    one = known.get(key)
                if one is None:
                    one = known[key] = self._new(key, item, decoder, code, start)
            found.append(one)
            start = end
        return found

    def representative(self, one: Decoded) -> Representative:
        """The instruction that stands for all that are like this one, without text."""
        found = self._representatives.get(one.shape)
        if found is None:
            raw, names = _renamed(one.raw, one.registers, _RENAMED[0]) if one.registers else (one.raw, ())
            found = Representative(translate(raw, one.encoding, "", 0, None), names)
            self._representatives[one.shape] = found
        return found

    def instruction(self, one: Decoded) -> Instruction:
        """The instruction itself, without text, at address 0, with the target of a branch from there; at its place if
        it names memory by its own address."""
        found = self._instructions.get(one.key)
        if found is None:
            alike = self.representative(one)
            found = alike.instruction if one.is_its_own else _of_representative(one, alike)
            self._instructions[one.key] = found
        return found

    def text(self, one: Decoded) -> str:
        """The instruction as assembly text."""
        return disassemble(one.raw)

    def _new(self, key: Key, raw: iced.Instruction, decoder: iced.Decoder, code: bytes, start: int) -> Decoded:
        """What was decoded last, from address 0 unless it names memory by its own address."""
        reach = None
        if raw.op_count and OpKind.NEAR_BRANCH16 <= raw.op0_kind <= OpKind.NEAR_BRANCH64:
            raw, encoding = next(decode_raw(code[start : start + raw.len], 0))
            target = raw.near_branch_target
            reach = target - (1 << 64) if target >> 63 else target
        else:
            encoding = encoding_of(code, start, decoder.get_constant_offsets(raw))
            if isinstance(key, bytes):
                raw.ip = 0
        alike = self._alike(raw, encoding)
        shape, registers = (key, ()) if alike is None else (self._number(alike.shape), alike.registers)
        constants = raw.memory_index_scale, signed(raw.memory_displacement)
        return Decoded(key, shape, registers, encoding, raw.len, reach, constants, raw)

    def _number(self, shape: Hashable) -> Hashable:
        """A number in place of a shape: what is known of it is looked up often, and tuples are hashed each time."""
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = next(self._new_shape)
        return found

    def _alike(self, raw: iced.Instruction, encoding: Encoding) -> _Alike | None:
        """What the instruction shares with others; None where it is taken for itself."""
        special = self._special.get(raw.code)
        if special is None:
            special = self._special[raw.code] = _is_special(raw)
        if special:
            return None
        if raw.has_lock_prefix or raw.has_rep_prefix or raw.has_repne_prefix:
            return None
        alike = _alike_by_operands(raw, encoding)
        if alike is None or (alike.registers and self._uses_others(raw, alike.registers)):
            return None
        return alike

    def _uses_others(self, raw: iced.Instruction, registers: tuple[str, ...]) -> bool:
        """Whether instructions of this encoding use registers that they do not name."""
        code = raw.code
        if code not in self._own:
            shown, names = _renamed(raw, registers, _RENAMED[1])
            self._own[code] = not used_registers(shown) <= {*names, *_FIXED}
        return self._own[code]


def _is_special(raw: iced.Instruction) -> bool:
    """Whether instructions of this encoding are taken each for itself."""
    evex = raw.encoding == EncodingKind.EVEX
    return evex or raw.is_vsib or raw.is_string_instruction or raw.is_stack_instruction


def _alike_by_operands(raw: iced.Instruction, encoding: Encoding) -> _Alike | None:
    """The shape by encoding, operands and flags: which of them are one register, and what of constants matters."""
    code = raw.code
    shape: list[object] = [code, raw.rflags_modified, raw.rflags_read, encoding.opcode_offset >= _EVEX_BYTES]
    names: list[str] = []
    for index in range(raw.op_count):
        kind = raw.op_kind(index)
        if kind == OpKind.REGISTER:
            register = raw.op_register(index)
            if register in HIGH_BYTES or (register in _LIKE_HIGH_BYTES and code in _BYTE_EXTENSIONS):
                return None
            shape.append(_place(register, names))
        elif kind == OpKind.MEMORY:
            if code in _LEA and raw.memory_base in _LEA_PADDED and raw.memory_index:
                return None
            shape.extend(_address(raw, names))
        elif kind in IMPLICIT_MEMORY:
            return None
        else:
            shape.append(~kind if kind >= OpKind.IMMEDIATE8 and raw.immediate(index) == 0 else kind)
    return _Alike(tuple(shape), tuple(names)) if len(names) <= len(_RENAMED[0]) else None


def _place(register: iced.Register_, names: list[str]) -> object:
    """A register in a shape: its place among those named so far, or itself where it cannot be renamed."""
    own = _CLASSES.get(register)
    if own is None:
        return -1 - register
    if own.name not in names:
        names.append(own.name)
    return names.index(own.name), own.width


def _address(raw: iced.Instruction, names: list[str]) -> tuple[object, ...]:
    """An address in a shape: its registers, and what of scale and displacement matters."""
    base, index, displacement = raw.memory_base, raw.memory_index, raw.memory_displacement
    named = _place(base, names) if base else None, _place(index, names) if index else None
    if raw.code in _LEA:
        return "address", *named, displacement != 0, raw.memory_index_scale > 1
    scaled = bool(index) and raw.memory_index_scale > 1
    return "memory", *named, bool(index) or displacement < NEAR, scaled, raw.segment_prefix


def _renamed(
    raw: iced.Instruction, registers: tuple[str, ...], general: tuple[str, ...]
) -> tuple[iced.Instruction, tuple[str, ...]]:
    """A copy that names other registers, general-purpose ones from those given, and what it names instead."""
    names = tuple(
        f"zmm{8 + place}" if name.startswith("zmm") else general[place] for place, name in enumerate(registers)
    )
    instead = dict(zip(registers, names, strict=True))
    copy = raw.copy()

    def other(register: iced.Register_) -> iced.Register_:
        own = _CLASSES.get(register)
        return register if own is None else _BY_NAME[own.width, instead[own.name]]

    for index in range(raw.op_count):
        if raw.op_kind(index) == OpKind.REGISTER:
            copy.set_op_register(index, other(raw.op_register(index)))
    if OpKind.MEMORY in {raw.op_kind(index) for index in range(raw.op_count)}:
        copy.memory_base, copy.memory_index = other(raw.memory_base), other(raw.memory_index)
    return copy, names


def _of_representative(one: Decoded, alike: Representative) -> Instruction:
    """The representative with the registers, constants and place of one that is like it."""
    raw, encoding, other = one.raw, one.encoding, alike.instruction
    own = dict(zip(alike.names, one.registers, strict=True))
    operands = tuple([_own_operand(raw, index, operand, own) for index, operand in enumerate(other.operands)])
    explicit = {id(theirs.memory): mine.memory for theirs, mine in zip(other.operands, operands, strict=True)}
    return Instruction(
        text="",
        line=0,
        address=raw.ip,
        length=raw.len,
        mnemonic=other.mnemonic,
        form=other.form,
        operands=operands,
        implicit_reads=tuple([own.get(name, name) for name in other.implicit_reads]),
        implicit_writes=tuple([own.get(name, name) for name in other.implicit_writes]),
        flags_read=other.flags_read,
        flags_written=other.flags_written,
        memory=tuple([explicit.get(id(reference)) or reference for reference in other.memory]),
        branch=other.branch,
        target=None if other.target is None else raw.near_branch_target,
        same_register=other.same_register,
        vector_bytes=other.vector_bytes,
        has_mask=other.has_mask,
        encoding=encoding,
    )


def _own_operand(raw: iced.Instruction, index: int, operand: Operand, own: dict[str, str]) -> Operand:
    """An operand of a representative with the register and the constants of the instruction itself."""
    kind, register, memory, immediate, read, written = (
        operand.kind,
        operand.register,
        operand.memory,
        operand.immediate,
        operand.read,
        operand.written,
    )
    if register is not None:
        return Operand(kind, own.get(register, register), None, None, read, written)
    if immediate is not None:
        return Operand(kind, None, None, signed(raw.immediate(index)), read, written)
    return operand if memory is None else Operand(kind, None, _own_memory(raw, memory, own), None, read, written)


def _own_memory(raw: iced.Instruction, memory: MemoryReference, own: dict[str, str]) -> MemoryReference:
    return MemoryReference(
        base=own.get(memory.base, memory.base) if memory.base else None,
        index=own.get(memory.index, memory.index) if memory.index else None,
        scale=raw.memory_index_scale,
        displacement=signed(raw.memory_displacement),
        symbol=None,
        segment=memory.segment,
        size_bytes=memory.size_bytes,
        read=memory.read,
        written=memory.written,
    )
