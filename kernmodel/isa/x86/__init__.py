"""x86-64: its encodings, registers, listings and mnemonics, behind the members of `kernmodel.isa.protocol.Isa`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from kernmodel.isa.counting import CountedBlock, CountedCopy, TracedCopy
from kernmodel.isa.linear import MemoryValues, RegisterValues
from kernmodel.isa.memo import DecodeMemo
from kernmodel.isa.model import (
    Condition,
    FpKind,
    FpOperation,
    Instruction,
    Listing,
    Operand,
    Precision,
    VectorDomain,
)
from kernmodel.isa.protocol import Effect, Isa, ObjectCode, RegisterForm
from kernmodel.isa.timing import TimedCode
from kernmodel.isa.x86 import decode, effects, features, floating, forms, x87
from kernmodel.patterns import pattern

_CONDITIONS: dict[str, Condition] = {
    "je": "e", "jne": "ne", "jl": "l", "jge": "ge", "jle": "le", "jg": "g",
    "jb": "b", "jae": "ae", "jbe": "be", "ja": "a", "js": "s", "jns": "ns", "jp": "u", "jnp": "o",
}  # fmt: skip
_STACK_ENGINE = frozenset({"push", "pop", "call", "ret"})
_PADDING = frozenset({"nop", "xchg", "int3"})
_TRAPS = frozenset({"ud0", "ud1", "ud2", "hlt", "int3"})
_MASKED_MOVES = ("maskmov", "vmaskmov", "vpmaskmov")
_STREAMING = ("movnt", "vmovnt")
_STREAMING_MASKED = frozenset({"maskmovdqu", "vmaskmovdqu", "maskmovq"})
_STRINGS = frozenset({"cmpsd", "movsd"})
"""String instructions, without operands of their own, that are named like others."""
_BROADCAST = pattern(r"\{1to(\d+)\}")
_PACKED = {"pd": 8, "ps": 4}
_PARTS: dict[str, Literal["low byte", "high byte"]] = {"r8": "low byte", "cl": "low byte", "r8h": "high byte"}
_LOADED_POINTERS = frozenset({"mov", "movsxd", "pop"})
_PLAIN_STORES = frozenset({"mov", "movnti"})
_ADDITIONS = frozenset(f"{kind}{what}" for kind in ("add", "sub", "addsub") for what in ("ps", "pd", "ss", "sd"))
_CONSTANT_WITH_ITSELF = frozenset(
    ["xor", "sub", "xorps", "xorpd", "pxor", "pxord", "pxorq", "pandn", "pandnd", "pandnq", "andnps", "andnpd"]
    + [f"{kind}{size}" for kind in ("psub", "pcmpeq", "pcmpgt") for size in "bwdq"]
)
"""Operations that give zeros or ones where all sources are one register; differences of floats may be NaN."""
_IACA_NOP_LENGTH = 3


class X86(Isa):
    """The 64-bit mode of Intel's and AMD's processors."""

    name = "x86-64"
    registers = effects.REGISTERS
    elf_machine = 62
    hosts = ("x86_64", "amd64", "i686")
    cross_prefix = "x86_64-linux-gnu-"
    vector_bytes = (64, 32, 16)
    # SSE2 belongs to 64-bit mode (Intel 64 and IA-32 Architectures Software Developer's Manual, vol. 1, chapter 11)
    streaming_stores = True
    vector_names = MappingProxyType({64: "AVX-512", 32: "AVX", 16: "SSE"})
    alias_variant = forms.HIGH_BYTE_ALIAS

    def read_listing(self, text: str, file: str, syntax: str | None) -> Listing:
        from kernmodel.isa.x86.listing import read_listing

        return read_listing(text, file, syntax)

    def assemble(self, text: str, file: str, syntax: str | None = None) -> bytes:
        from kernmodel.isa.x86.listing import machine_code

        return machine_code(text, file, syntax)

    def evidence(self, text: str) -> int:
        from kernmodel.isa.x86.syntax import evidence

        return evidence(text)

    def decode(self, code: bytes, address: int = 0) -> Iterator[Instruction]:
        return decode.decode(code, address)

    def is_cut_off(self, code: bytes) -> bool:
        return decode.is_cut_off(code)

    def read_object(self, data: bytes, file: str) -> ObjectCode:
        from kernmodel.isa.x86.image import read_image

        return read_image(data, file)

    def marker(self, instructions: Sequence[Instruction], index: int) -> tuple[int, int]:
        """IACA's markers: a number in ebx and a nop with two useless prefixes (64 67 90); of MSVC a store to gs:."""
        item = instructions[index]
        if item.mnemonic != "mov":
            return 0, 0
        target, value = item.operands
        if item.form == "mov r32,i32" and target.register == "rbx":
            following = instructions[index + 1] if index + 1 < len(instructions) else item
            if following.form == "nop" and following.length == _IACA_NOP_LENGTH:
                return value.immediate or 0, 2
        memory = target.memory
        if memory is not None and memory.segment == "gs" and target.kind == "m8" and memory.base is None:
            return memory.displacement, 1
        return 0, 0

    def memo(self) -> DecodeMemo:
        from kernmodel.isa.x86.memo import X86Memo

        return X86Memo()

    def effect(self, instruction: Instruction, registers: RegisterValues, memory: MemoryValues) -> Effect:
        return effects.effect(instruction, registers, memory)

    def holds_address(self, operand: Operand) -> bool:
        return operand.kind in effects.WIDE

    def is_vector(self, operand: Operand) -> bool:
        return operand.kind in decode.VECTORS

    def is_mask(self, operand: Operand) -> bool:
        return operand.kind == "k"

    def condition(self, instruction: Instruction) -> Condition | None:
        return _CONDITIONS.get(instruction.mnemonic)

    def is_padding(self, instruction: Instruction) -> bool:
        return instruction.mnemonic in _PADDING

    def stops(self, instruction: Instruction) -> bool:
        return instruction.mnemonic in _TRAPS

    def repeats(self, instruction: Instruction) -> bool:
        return instruction.form.startswith(("rep ", "repne "))

    def counted_copy(
        self,
        blocks: Sequence[CountedBlock],
        entry: int,
        place: int,
        counters: int,
        *,
        shift: int = 0,
        shared: bool = False,
    ) -> CountedCopy:
        from kernmodel.isa.x86.counted import counted_copy

        return counted_copy(blocks, entry, place, counters, shift=shift, shared=shared)

    def traced_copy(
        self,
        blocks: Sequence[CountedBlock],
        entry: int,
        place: int,
        pointer: int,
        *,
        shift: int = 0,
        path: bool = False,
    ) -> TracedCopy:
        from kernmodel.isa.x86.traced import traced_copy

        return traced_copy(blocks, entry, place, pointer, shift=shift, path=path)

    def timed_code(self, code: bytes, address: int, place: int, data: int, *, shift: int = 0) -> TimedCode | None:
        from kernmodel.isa.x86.timed import timed_code

        return timed_code(code, address, place, data, shift=shift)

    def jump(self, place: int, target: int) -> bytes:
        distance = target - (place + 5)
        return b"\xe9" + distance.to_bytes(4, "little", signed=True) if -(1 << 31) <= distance < 1 << 31 else b""

    def fp_kind(self, mnemonic: str) -> FpKind | None:
        return floating.fp_kind(mnemonic)

    def is_unclassified(self, mnemonic: str) -> bool:
        return floating.is_unclassified(mnemonic)

    def fp_work(self, instruction: Instruction) -> tuple[FpKind, int] | None:
        if instruction.mnemonic in _STRINGS and not instruction.operands:
            return None
        work = super().fp_work(instruction)
        broadcast = _BROADCAST.search(instruction.text) if work is not None and work[1] > 1 else None
        if work is None or broadcast is None:
            return work
        # a narrowing conversion of a broadcast element shows its lanes only there
        return work[0], int(broadcast[1])

    def packed_element(self, instruction: Instruction) -> int:
        moves = instruction.mnemonic.removeprefix("v").startswith("mov")
        return 0 if moves else _PACKED.get(instruction.mnemonic[-2:], 0)

    def element_bytes(self, instruction: Instruction) -> int:
        gathers = any(operand.kind.startswith("vsib") for operand in instruction.operands)
        return floating.element_bytes(instruction.mnemonic) if gathers else 0

    def is_masked_move(self, instruction: Instruction) -> bool:
        return instruction.mnemonic.startswith(_MASKED_MOVES)

    def is_streaming(self, instruction: Instruction) -> bool:
        """Whether it is a non-temporal store; not so MOVNTDQA, which loads.

        Intel SDM vol. 1, 10.4.6.2; MOVNTSS and MOVNTSD are AMD's (AMD64 Architecture Programmer's Manual, vol. 4).
        """
        name = instruction.mnemonic
        hinted = name.startswith(_STREAMING) or name in _STREAMING_MASKED
        return hinted and any(reference.written for reference in instruction.memory)

    def divides(self, instruction: Instruction) -> bool:
        return "div" in instruction.mnemonic or "sqrt" in instruction.mnemonic

    def generation(self, instructions: Sequence[Instruction]) -> str:
        return features.generation(instructions)

    def features(self, instruction: Instruction) -> frozenset[str]:
        # cores without these two take them for bsf and bsr, whose encoding they share (Intel SDM vol. 2)
        taken_otherwise = instruction.mnemonic in ("tzcnt", "lzcnt")
        return frozenset() if taken_otherwise else features.required_extensions(instruction)

    def is_privileged(self, instruction: Instruction) -> bool:
        return features.is_privileged(instruction)

    def moves_stack(self, instruction: Instruction) -> bool:
        """Whether it pushes or pops (Intel Optimization Reference Manual, stack pointer tracker)."""
        return instruction.mnemonic in _STACK_ENGINE

    def part_of_register(self, operand: Operand) -> Literal["whole", "low byte", "high byte"]:
        return _PARTS.get(operand.kind, "whole")

    def overwrites(self, instruction: Instruction) -> bool:
        return instruction.mnemonic.startswith(("mov", "set"))

    def loads_pointer(self, instruction: Instruction) -> Literal["whole", "extended"] | None:
        loads = instruction.mnemonic in _LOADED_POINTERS and instruction.operands[0].kind in effects.WIDE
        return None if not loads else "extended" if instruction.mnemonic == "movsxd" else "whole"

    def only_stores(self, instruction: Instruction) -> bool:
        return instruction.mnemonic in _PLAIN_STORES and any(r.written for r in instruction.memory)

    def is_nop(self, instruction: Instruction) -> bool:
        return instruction.mnemonic == "nop"

    def reads_beside_address(self, instruction: Instruction) -> bool:
        """mulx reads rdx beside its operands, which may name rdx as a target and as an address."""
        return instruction.mnemonic == "mulx"

    def writes_constant(self, instruction: Instruction) -> bool:
        alike = instruction.same_register and not instruction.has_mask
        return alike and instruction.mnemonic.removeprefix("v") in _CONSTANT_WITH_ITSELF

    def third_vector(self, instruction: Instruction) -> int | None:
        """The addend of a fused multiplication and addition, the choice of a blend, the indices into two vectors, a
        destination that is read beside two more."""
        return floating.third_vector(instruction)

    def is_fp_addition(self, instruction: Instruction) -> bool:
        return instruction.mnemonic.removeprefix("v") in _ADDITIONS

    def vector_domain(self, instruction: Instruction) -> VectorDomain | None:
        return floating.vector_domain(instruction)

    def pops_stack_pointer(self, instruction: Instruction) -> bool:
        """rsp and r12 share the number 4 in the opcode of pop."""
        return instruction.mnemonic == "pop" and instruction.operands[0].register in ("rsp", "r12")

    def row_variant(self, instruction: Instruction) -> str:
        return forms.row_variant(instruction)

    def row_candidates(self, form: str) -> Iterator[tuple[str, str]]:
        return forms.row_candidates(form)

    def kind_class(self, kind: str) -> str:
        return "mask" if kind == "k" else "vector" if kind == "mm" or kind in decode.VECTORS else kind[:1]

    def stand_ins(self, instruction: Instruction) -> Iterator[str]:
        return forms.stand_ins(instruction)

    def register_forms(self, instruction: Instruction, position: int) -> Iterator[RegisterForm]:
        return forms.register_forms(instruction, position)

    def names_by_top(self, instruction: Instruction) -> bool:
        return x87.uses_stack(instruction)

    def with_named_registers(self, instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
        return x87.with_fixed_registers(instructions)

    def fp_forms(self, operation: FpOperation, precision: Precision, lanes: int) -> tuple[str, ...]:
        return forms.fp_forms(operation, precision, lanes)

    def access_forms(self, kind: Literal["load", "store"]) -> Mapping[int, tuple[str, ...]]:
        return forms.ACCESSES[kind]


ISA = X86()
