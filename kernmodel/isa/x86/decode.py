"""From machine code to `Instruction` values, by iced-x86.

What an instruction reads and writes is iced's knowledge (Intel SDM vol. 2), brought to four rules of this project:

* A write that leaves part of the old value in place also reads it: 8- and 16-bit registers, scalar SSE results, merge
  masks, conditional writes. A 32-bit write clears the upper half, so it reads nothing (SDM vol. 1, 3.4.1.1).
* The architectural meaning is given, not what a core recognises: `xor eax,eax` reads eax; `same_register` marks it as a
  candidate for the zero idioms of a microarchitecture.
* Address registers stand in the memory references only, unless the instruction also advances them (push, movs).
* `vzeroupper` is no reader and writer of every vector register, although it touches them: it orders nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import cast

import iced_x86 as iced
from iced_x86 import (
    FlowControl,
    FormatMnemonicOptions,
    FormatterSyntax,
    MemorySizeExt,
    Mnemonic,
    OpAccess,
    OpCodeOperandKind,
    OpKind,
    Register,
    RegisterExt,
    RflagsBits,
)

from kernmodel.isa.model import Branch, Encoding, Instruction, MemoryReference, Operand
from kernmodel.isa.x86.encoding import encoding_of
from kernmodel.patterns import pattern
from kernmodel.value_types import NamedTuple, dataclass

_READS = frozenset(
    {OpAccess.READ, OpAccess.COND_READ, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE, OpAccess.COND_WRITE}
)
"""Accesses of a register that need its old value: what is perhaps not written is kept."""
_WRITES = frozenset({OpAccess.WRITE, OpAccess.COND_WRITE, OpAccess.READ_WRITE, OpAccess.READ_COND_WRITE})
_MEMORY_READS = _READS - {OpAccess.COND_WRITE}

_FLAGS = (
    ("C", RflagsBits.CF),
    ("P", RflagsBits.PF),
    ("A", RflagsBits.AF),
    ("Z", RflagsBits.ZF),
    ("S", RflagsBits.SF),
    ("O", RflagsBits.OF),
)
_BRANCHES: dict[int, Branch] = {
    FlowControl.CONDITIONAL_BRANCH: "conditional",
    FlowControl.UNCONDITIONAL_BRANCH: "jump",
    FlowControl.INDIRECT_BRANCH: "indirect",
    FlowControl.CALL: "call",
    FlowControl.INDIRECT_CALL: "call",
    FlowControl.RETURN: "return",
}
_IMMEDIATE_KINDS = {
    OpKind.IMMEDIATE8: "i8",
    OpKind.IMMEDIATE8_2ND: "i8",
    OpKind.IMMEDIATE8TO16: "i8",
    OpKind.IMMEDIATE8TO32: "i8",
    OpKind.IMMEDIATE8TO64: "i8",
    OpKind.IMMEDIATE16: "i16",
    OpKind.IMMEDIATE32: "i32",
    OpKind.IMMEDIATE32TO64: "i32",
    OpKind.IMMEDIATE64: "i64",
}
_NEAR_BRANCHES = frozenset({OpKind.NEAR_BRANCH16, OpKind.NEAR_BRANCH32, OpKind.NEAR_BRANCH64})
IMPLICIT_MEMORY = frozenset(
    {
        OpKind.MEMORY_SEG_SI,
        OpKind.MEMORY_SEG_ESI,
        OpKind.MEMORY_SEG_RSI,
        OpKind.MEMORY_SEG_DI,
        OpKind.MEMORY_SEG_EDI,
        OpKind.MEMORY_SEG_RDI,
        OpKind.MEMORY_ESDI,
        OpKind.MEMORY_ESEDI,
        OpKind.MEMORY_ESRDI,
    }
)
"""Operands in memory that no byte of the instruction names: those of string instructions and of maskmovq."""
HIGH_BYTES = frozenset({Register.AH, Register.BH, Register.CH, Register.DH})


_CONTINUED = tuple(bytes([byte]) * 15 for byte in (0x00, 0x10, 0x58, 0xC0))
"""Bytes that complete nearly every instruction whose beginning is given: opcodes, addresses and registers in turn."""


class RegisterFacts(NamedTuple):
    """Full register name, operand kind, and width in bytes of one architectural register name."""

    name: str
    kind: str
    size: int


_KIND_TESTS = (
    ("r64", RegisterExt.is_gpr64),
    ("r32", RegisterExt.is_gpr32),
    ("r16", RegisterExt.is_gpr16),
    ("r8", RegisterExt.is_gpr8),
    ("xmm", RegisterExt.is_xmm),
    ("ymm", RegisterExt.is_ymm),
    ("zmm", RegisterExt.is_zmm),
    ("k", RegisterExt.is_k),
    ("mm", RegisterExt.is_mm),
    ("st", RegisterExt.is_st),
    ("seg", RegisterExt.is_segment_register),
    ("bnd", RegisterExt.is_bnd),
    ("cr", RegisterExt.is_cr),
    ("dr", RegisterExt.is_dr),
    ("tmm", RegisterExt.is_tmm),
)
VECTORS = frozenset({"xmm", "ymm", "zmm"})
"""Kinds of the vector registers that are not those of MMX."""
_VECTOR_KINDS = VECTORS | {"mm"}
_PARTIAL_KINDS = frozenset({"r8", "r8h", "r16"})


def _register_facts() -> dict[iced.Register_, RegisterFacts]:
    """The facts of every register that iced knows, by its number."""
    names = {value: name.lower() for name, value in vars(Register).items() if isinstance(value, int)}
    facts: dict[iced.Register_, RegisterFacts] = {}
    for number in cast("list[iced.Register_]", list(names)):
        kind = next((kind for kind, test in _KIND_TESTS if test(number)), "reg")
        kind = "r8h" if number in HIGH_BYTES else kind
        facts[number] = RegisterFacts(names[RegisterExt.full_register(number)], kind, RegisterExt.size(number))
    return facts


REGISTERS = _register_facts()
"""What there is to know of the registers, by iced's number."""
_RIP_OPERAND = pattern(r"\[rip[^\]]*\]")
_INFO = iced.InstructionInfoFactory()
_FORMATTER = iced.Formatter(FormatterSyntax.INTEL)
_FORMATTER.use_pseudo_ops = False
_FORMATTER.rip_relative_addresses = True
_FORMATTER.branch_leading_zeros = False
_FORMATTER.show_branch_size = False
_FORMATTER.hex_prefix = "0x"
_FORMATTER.hex_suffix = ""
_NO_PREFIX = FormatMnemonicOptions.NO_PREFIXES
_MNEMONICS: dict[int, str] = {}  # by iced's code, as they are met: iced is slow to format them


@dataclass(frozen=True, slots=True)
class Fixup:
    """What a relocation says about the field of an instruction that it fills.

    Attributes:
        symbol: the symbol whose address is meant, None where only an address in the code is.
        offset: bytes from the symbol, or the address itself where there is no symbol.
        in_displacement: whether it fills the displacement of the memory operand, else the immediate or the distance.
        target: address in the code that it resolves to, None if it lies outside.
    """

    symbol: str | None
    offset: int
    in_displacement: bool
    target: int | None


def decode(code: bytes, address: int) -> Iterator[Instruction]:
    """The instructions of machine code that starts at `address`; bytes that are none are passed over one by one."""
    for item, encoding in decode_raw(code, address):
        yield translate(item, encoding, disassemble(item), 0, None)


def is_cut_off(code: bytes) -> bool:
    """Whether `code`, which is no instruction, is the beginning of one."""
    return any(not iced.Decoder(64, code + more).decode().is_invalid for more in _CONTINUED)


def decode_raw(code: bytes, address: int) -> Iterator[tuple[iced.Instruction, Encoding]]:
    """iced's instructions of `code` at `address` with the layout of their bytes, passing over bytes that are none."""
    decoder = iced.Decoder(64, code, ip=address)
    while decoder.can_decode:
        start = decoder.position
        instruction = decoder.decode()
        if instruction.is_invalid:
            decoder.position = start + 1
            decoder.ip = address + start + 1
        else:
            yield instruction, encoding_of(code, start, decoder.get_constant_offsets(instruction))


def used_registers(instruction: iced.Instruction) -> set[str]:
    """Full names of all registers that an instruction uses, named or not."""
    return {REGISTERS[used.register].name for used in _INFO.info(instruction).used_registers()}


def disassemble(instruction: iced.Instruction, fixup: Fixup | None = None) -> str:
    """Intel-syntax text of an instruction that no listing names."""
    if instruction.mnemonic == Mnemonic.NOP and not instruction.op_count:
        return "nop"
    text = _FORMATTER.format(instruction)
    if fixup is None or fixup.symbol is None or not fixup.in_displacement:
        return text
    address = fixup.symbol + (f"{fixup.offset:+d}" if fixup.offset else "")
    return _RIP_OPERAND.sub(lambda _: f"[rip+{address}]", text)


def translate(
    instruction: iced.Instruction, encoding: Encoding, text: str, line: int, fixup: Fixup | None
) -> Instruction:
    """The `Instruction` of what iced decoded; `text` and `line` come from the listing, `fixup` from a relocation."""
    info = _INFO.info(instruction)
    operands = () if instruction.is_string_instruction else _operands(instruction, info, fixup)
    memory = _memory(instruction, info, operands)
    reads, writes = _implicit_registers(instruction, info, operands, memory)
    mnemonic = _mnemonic(instruction)
    flags_written = _flag_letters(instruction.rflags_modified)
    flags_read = _flag_letters(instruction.rflags_read | _kept_flags(instruction, operands))
    return Instruction(
        text=text,
        line=line,
        address=instruction.ip,
        length=instruction.len,
        mnemonic=mnemonic,
        form=_form(instruction, mnemonic, operands),
        operands=operands,
        implicit_reads=reads,
        implicit_writes=writes,
        flags_read=flags_read,
        flags_written=flags_written,
        memory=memory,
        branch=_BRANCHES.get(instruction.flow_control),
        target=_branch_target(instruction, fixup),
        same_register=_same_register(instruction, operands),
        vector_bytes=_vector_bytes(instruction),
        has_mask=instruction.has_op_mask,
        encoding=encoding,
    )


def _mnemonic(instruction: iced.Instruction) -> str:
    """The Intel mnemonic; iced writes the short nops with an operand size as `xchg ax,ax`."""
    code = instruction.code
    if code not in _MNEMONICS:
        nop = instruction.mnemonic == Mnemonic.NOP
        _MNEMONICS[code] = "nop" if nop else _FORMATTER.format_mnemonic(instruction, _NO_PREFIX)
    return _MNEMONICS[code]


def _is_vector(instruction: iced.Instruction, index: int) -> bool:
    """Whether explicit operand `index` is a vector register."""
    if instruction.op_kind(index) != OpKind.REGISTER:
        return False
    return REGISTERS[instruction.op_register(index)].kind in _VECTOR_KINDS


def _vector_bytes(instruction: iced.Instruction) -> int:
    """Width of the widest vector register, the index of gathers included."""
    registers = [instruction.op_register(i) for i in range(instruction.op_count) if _is_vector(instruction, i)]
    if instruction.is_vsib:
        registers.append(instruction.memory_index)
    return max((REGISTERS[register].size for register in registers), default=0)


def _operands(instruction: iced.Instruction, info: iced.InstructionInfo, fixup: Fixup | None) -> tuple[Operand, ...]:
    """The explicit operands."""
    return tuple(
        _operand(instruction, info.op_access(i), i, fixup)
        for i in range(instruction.op_count)
        if instruction.op_kind(i) not in IMPLICIT_MEMORY
    )


def _operand(instruction: iced.Instruction, access: int, index: int, fixup: Fixup | None) -> Operand:
    """Explicit operand `index`, accessed as iced's `access` says."""
    kind = instruction.op_kind(index)
    if kind == OpKind.REGISTER:
        return _register_operand(instruction, access, index)
    if kind == OpKind.MEMORY:
        memory = _memory_reference(instruction, access, fixup)
        return Operand(_memory_kind(instruction, access), None, memory, None, memory.read, memory.written)
    if kind in _NEAR_BRANCHES:
        return Operand("rel", None, None, None, False, False)
    immediate = signed(instruction.immediate(index))
    literal_one = instruction.op_code().op_kind(index) == OpCodeOperandKind.IMM8_CONST_1
    return Operand("1" if literal_one else _IMMEDIATE_KINDS.get(kind, "i"), None, None, immediate, False, False)


def _register_operand(instruction: iced.Instruction, access: int, index: int) -> Operand:
    """Explicit operand `index`, which is a register."""
    facts = REGISTERS[instruction.op_register(index)]
    kind = facts.kind
    if kind == "r8" and instruction.op_code().op_kind(index) == OpCodeOperandKind.CL:
        kind = "cl"
    written = access in _WRITES
    read = access in _READS or (written and kind in _PARTIAL_KINDS) or _hidden_by_idiom(instruction, access, index)
    return Operand(kind, facts.name, None, None, read, written)


def _hidden_by_idiom(instruction: iced.Instruction, access: int, index: int) -> bool:
    """Whether iced leaves out this read because all sources are one register (`xor r,r`)."""
    if access == OpAccess.NONE:
        return True
    return (
        index == 0
        and access == OpAccess.WRITE
        and instruction.op_count == 2
        and instruction.op1_kind == OpKind.REGISTER
        and instruction.op1_register == instruction.op0_register
        and _INFO.info(instruction).op1_access == OpAccess.NONE
    )


def signed(value: int) -> int:
    """The 64-bit pattern `value` as a signed number."""
    return value - (1 << 64) if value >> 63 else value


def _memory_kind(instruction: iced.Instruction, access: int) -> str:
    """The operand kind of the memory operand: its width in bits, `m` where nothing is accessed."""
    if instruction.is_vsib:
        return f"vsib_{REGISTERS[instruction.memory_index].kind}"
    size = MemorySizeExt.size(instruction.memory_size)
    if access in (OpAccess.NO_MEM_ACCESS, OpAccess.NONE) or not size:
        return "m"
    return f"m{8 * size}b" if instruction.is_broadcast else f"m{8 * size}"


def _memory_reference(instruction: iced.Instruction, access: int, fixup: Fixup | None) -> MemoryReference:
    """The explicit memory operand."""
    base, index = instruction.memory_base, instruction.memory_index
    relocated = fixup is not None and fixup.in_displacement
    return MemoryReference(
        base=REGISTERS[base].name if base else None,
        index=REGISTERS[index].name if index else None,
        scale=instruction.memory_index_scale,
        displacement=fixup.offset if fixup and relocated else signed(instruction.memory_displacement),
        symbol=fixup.symbol if fixup and relocated else None,
        segment=REGISTERS[instruction.segment_prefix].name if instruction.has_segment_prefix else None,
        size_bytes=_memory_bytes(instruction, access),
        read=access in _MEMORY_READS,
        written=access in _WRITES,
    )


def _memory_bytes(instruction: iced.Instruction, access: int) -> int:
    """Bytes that the explicit memory operand moves: 0 for address computations, all lanes for gathers and scatters."""
    if access in (OpAccess.NO_MEM_ACCESS, OpAccess.NONE):
        return 0
    element = MemorySizeExt.size(instruction.memory_size)
    if not instruction.is_vsib:
        return element
    index_lanes = REGISTERS[instruction.memory_index].size // (8 if instruction.is_vsib64 else 4)
    data = next((i for i in range(instruction.op_count) if _is_vector(instruction, i)), None)
    if data is None:  # the gather prefetches have no data register
        return 0
    return element * min(index_lanes, REGISTERS[instruction.op_register(data)].size // element)


def _memory(
    instruction: iced.Instruction, info: iced.InstructionInfo, operands: tuple[Operand, ...]
) -> tuple[MemoryReference, ...]:
    """All memory references: the explicit one and those of the stack and of string instructions; none of padding."""
    if instruction.mnemonic == Mnemonic.NOP:
        return ()
    explicit = tuple(operand.memory for operand in operands if operand.memory is not None)
    if not (instruction.is_stack_instruction or _names_no_memory(instruction)):
        return explicit
    used = list(info.used_memory())
    if explicit and not instruction.is_string_instruction:
        own = next((u for u in used if u.base == instruction.memory_base and u.index == instruction.memory_index), None)
        used = [u for u in used if u is not own]
    return explicit + tuple(_implicit_reference(instruction, u) for u in used)


def _names_no_memory(instruction: iced.Instruction) -> bool:
    """Whether the instruction has an operand in memory that none of its bytes names."""
    return any(instruction.op_kind(i) in IMPLICIT_MEMORY for i in range(instruction.op_count))


def _implicit_reference(instruction: iced.Instruction, used: iced.UsedMemory) -> MemoryReference:
    """A memory reference that is no explicit operand; one element for repeated string instructions."""
    size = MemorySizeExt.size(used.memory_size) or MemorySizeExt.size(instruction.memory_size)
    access = used.access
    return MemoryReference(
        base=REGISTERS[used.base].name if used.base else None,
        index=REGISTERS[used.index].name if used.index else None,
        scale=used.scale,
        displacement=signed(used.displacement),
        symbol=None,
        segment=None,
        size_bytes=size,
        read=access in _MEMORY_READS,
        written=access in _WRITES,
    )


def _implicit_registers(
    instruction: iced.Instruction,
    info: iced.InstructionInfo,
    operands: tuple[Operand, ...],
    memory: tuple[MemoryReference, ...],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Full registers read and written beyond the explicit operands, in the order iced gives them."""
    if instruction.mnemonic == Mnemonic.VZEROUPPER:
        return (), ()
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for used in info.used_registers():
        facts = REGISTERS[used.register]
        written = used.access in _WRITES
        if written:
            writes[facts.name] = None
        if used.access in _READS or (written and facts.kind in _PARTIAL_KINDS):
            reads[facts.name] = None
    addresses = {name for reference in memory for name in (reference.base, reference.index)}
    explicit_reads = {operand.register for operand in operands if operand.read}
    explicit_writes = {operand.register for operand in operands if operand.written}
    explicit_sources = explicit_reads | {name for name in addresses if name not in writes}
    new_writes = tuple(name for name in writes if name not in explicit_writes)
    return tuple(name for name in reads if name not in explicit_sources), new_writes


@cache
def _flag_letters(bits: int) -> str:
    """The flags of `bits` (iced's RflagsBits) as letters of "CPAZSO"."""
    return "".join(letter for letter, bit in _FLAGS if bits & bit)


def _kept_flags(instruction: iced.Instruction, operands: tuple[Operand, ...]) -> int:
    """Flags that survive a count of zero in CL or rcx (SDM: SAL/SAR/SHL/SHR, RCL/…, CMPS, SCAS), hence are read."""
    by_count = any(operand.kind == "cl" for operand in operands)
    repeated = instruction.has_repe_prefix or instruction.has_repne_prefix
    if by_count or (repeated and instruction.is_string_instruction):
        return instruction.rflags_modified
    return 0


def _form(instruction: iced.Instruction, mnemonic: str, operands: tuple[Operand, ...]) -> str:
    """The key of the instruction tables (`Instruction.form`); a mask marks the destination, `lock` and `rep` lead."""
    kinds = [operand.kind for operand in operands]
    if instruction.has_op_mask and kinds:
        kinds[0] += "{kz}" if instruction.zeroing_masking else "{k}"
    name = _prefix(instruction) + mnemonic
    return f"{name} {','.join(kinds)}" if kinds else name


def _prefix(instruction: iced.Instruction) -> str:
    """The prefixes that make another instruction of it."""
    if instruction.has_lock_prefix:
        return "lock "
    if not instruction.is_string_instruction:
        return ""
    if instruction.has_repne_prefix:
        return "repne "
    return "rep " if instruction.has_rep_prefix else ""


def _branch_target(instruction: iced.Instruction, fixup: Fixup | None) -> int | None:
    """Address that a direct branch goes to, None if it leaves the code or is no direct branch."""
    if not instruction.op_count or instruction.op0_kind not in _NEAR_BRANCHES:
        return None
    return fixup.target if fixup is not None else instruction.near_branch_target


def _same_register(instruction: iced.Instruction, operands: tuple[Operand, ...]) -> bool:
    """Whether at least two operands are sources and all of them are one register, of the same width."""
    if len(operands) != instruction.op_count or any(operand.memory is not None for operand in operands):
        return False
    sources = [instruction.op_register(i) for i, operand in enumerate(operands) if operand.register and operand.read]
    return len(sources) > 1 and len(set(sources)) == 1
