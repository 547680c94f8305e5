"""AArch64 (A64 of Armv8-A and Armv9-A): listings, machine code, registers, behind the members of `Isa`.

The length of SVE's vectors decides how far loops step and how much an access moves, so that it is part of the
instruction set's name: `aarch64` is without SVE, `aarch64-sve512` has vectors of 512 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from kernmodel.isa.aarch64 import effects
from kernmodel.isa.aarch64.floating import fp_kind
from kernmodel.isa.aarch64.forms import NEON_BYTES, access_forms, fp_forms, row_candidates, stand_ins
from kernmodel.isa.aarch64.instructions import Context
from kernmodel.isa.linear import MemoryValues, RegisterValues
from kernmodel.isa.model import (
    PRECISION_BYTES,
    Condition,
    FpKind,
    FpOperation,
    Instruction,
    Listing,
    Operand,
    Precision,
)
from kernmodel.isa.protocol import Effect, Isa, ObjectCode

SVE_BITS = (128, 256, 512)
_VECTOR_FLAG = re.compile(r"(-msve-vector-bits=)\d+")
_CONDITIONS: dict[str, Condition] = {
    "b.eq": "e", "b.ne": "ne", "b.lt": "l", "b.ge": "ge", "b.le": "le", "b.gt": "g",
    "b.lo": "b", "b.hs": "ae", "b.ls": "be", "b.hi": "a", "b.mi": "s", "b.pl": "ns",
    "cbz": "e", "cbnz": "ne", "b.vs": "u", "b.vc": "o",
}  # fmt: skip
_ADDITIONS = frozenset({"fadd", "fsub", "fsubr", "fabd"})
_PRIVILEGED = frozenset({"eret", "smc", "hvc", "tlbi"})
_TRAPS = frozenset({"brk", "hlt", "udf"})
_IACA_NUMBERS = frozenset({111, 222})
_ELEMENTS = {"b": 1, "h": 2, "w": 4, "d": 8}


class AArch64(Isa):
    """The 64-bit instruction set of Arm, with or without vectors of the Scalable Vector Extension."""

    registers = effects.REGISTERS
    elf_machine = 183
    hosts = ("aarch64", "arm64")
    cross_prefix = "aarch64-linux-gnu-"
    # STNP is a hint that need not keep lines out of the caches (DDI 0487, load/store non-temporal pair)
    streaming_stores = False

    def __init__(self, sve_bytes: int = 0) -> None:
        self.sve_bytes = sve_bytes
        self.name = f"aarch64-sve{8 * sve_bytes}" if sve_bytes else "aarch64"
        self.vector_bytes = (sve_bytes, NEON_BYTES) if sve_bytes > NEON_BYTES else (NEON_BYTES,)
        self.vector_names = {NEON_BYTES: "NEON"} | (
            {sve_bytes: f"SVE-{8 * sve_bytes}"} if sve_bytes > NEON_BYTES else {}
        )
        # a program of the user starts with vectors of 512 bits otherwise (QEMU's documentation of CPU features)
        self.emulated_cpu = f"max,sve-default-vector-length={sve_bytes}" if sve_bytes else "max"
        self._context = Context(self.name, sve_bytes)

    @property
    def family(self) -> str:
        return "aarch64"

    def with_vectors(self, bits: int, flags: tuple[str, ...] = ()) -> tuple[str, tuple[str, ...]] | None:
        if self.sve_bytes and not bits:
            return "aarch64", flags
        if not self.sve_bytes or bits not in SVE_BITS:
            return None
        told = tuple(_VECTOR_FLAG.sub(rf"\g<1>{bits}", flag) for flag in flags)
        return f"aarch64-sve{bits}", told

    @property
    def widest_access(self) -> int:
        """Four vectors: LD4 and its like are one instruction."""
        return 4 * self.vector_bytes[0]

    def read_listing(self, text: str, file: str, syntax: str | None) -> Listing:
        from kernmodel.isa.aarch64.listing import read_listing

        return read_listing(text, file, self._context)

    def evidence(self, text: str) -> int:
        from kernmodel.isa.aarch64.evidence import evidence

        return evidence(text)

    def decode(self, code: bytes, address: int = 0) -> Iterator[Instruction]:
        from kernmodel.isa.aarch64.image import decode

        return decode(code, address, self._context)

    def is_cut_off(self, code: bytes) -> bool:
        from kernmodel.isa.aarch64.instructions import LENGTH

        return 0 < len(code) < LENGTH

    def read_object(self, data: bytes, file: str) -> ObjectCode:
        from kernmodel.isa.aarch64.image import read_image

        return read_image(data, file, self._context)

    def marker(self, instructions: Sequence[Instruction], index: int) -> tuple[int, int]:
        """The markers that OSACA writes for AArch64: `mov x1, #111` and the bytes 213, 3, 32, 31, which are a nop."""
        item = instructions[index]
        if item.form != "mov x,#imm" or item.operands[0].register != "x1" or index + 1 >= len(instructions):
            return 0, 0
        number = item.operands[1].immediate
        marks = number in _IACA_NUMBERS and instructions[index + 1].mnemonic == "nop"
        return (number or 0, 2) if marks else (0, 0)

    def effect(self, instruction: Instruction, registers: RegisterValues, memory: MemoryValues) -> Effect:
        return effects.effect(instruction, registers, memory, self.sve_bytes)

    def holds_address(self, operand: Operand) -> bool:
        return operand.kind in ("x", "w") and operand.register is not None

    def is_vector(self, operand: Operand) -> bool:
        return operand.register is not None and operand.register[0] == "v"

    def is_mask(self, operand: Operand) -> bool:
        return operand.register is not None and operand.register[0] == "p"

    def condition(self, instruction: Instruction) -> Condition | None:
        return _CONDITIONS.get(instruction.mnemonic)

    def is_padding(self, instruction: Instruction) -> bool:
        return instruction.mnemonic == "nop"

    def stops(self, instruction: Instruction) -> bool:
        return instruction.mnemonic in _TRAPS

    def fp_work(self, instruction: Instruction) -> tuple[FpKind, int] | None:
        kind = fp_kind(instruction.form)
        return None if kind is None else (kind, kind.lanes(self.sve_bytes))

    def packed_element(self, instruction: Instruction) -> int:
        kind = fp_kind(instruction.form)
        return 0 if kind is None else kind.lane_bytes or (kind.fixed_lanes > 1) * PRECISION_BYTES[kind.precision]

    def element_bytes(self, instruction: Instruction) -> int:
        """Bytes of an element of a gather or scatter of SVE, which name a vector in their address."""
        indexed = any(self._is_lane(one.base) or self._is_lane(one.index) for one in instruction.memory)
        letter = instruction.mnemonic[-1]
        return _ELEMENTS.get(letter, 0) if indexed else 0

    @staticmethod
    def _is_lane(register: str | None) -> bool:
        return register is not None and register[0] == "v"

    def divides(self, instruction: Instruction) -> bool:
        return "div" in instruction.mnemonic or "sqrt" in instruction.mnemonic

    def generation(self, instructions: Sequence[Instruction]) -> str:
        kinds = {operand.kind.lstrip("{")[:1] for one in instructions for operand in one.operands}
        return "SVE" if kinds & {"z"} else "NEON" if "v" in kinds else "scalar"

    def is_privileged(self, instruction: Instruction) -> bool:
        return instruction.mnemonic in _PRIVILEGED

    def is_fp_addition(self, instruction: Instruction) -> bool:
        return instruction.mnemonic in _ADDITIONS

    def row_candidates(self, form: str) -> Iterator[tuple[str, str]]:
        return row_candidates(form)

    def kind_class(self, kind: str) -> str:
        bare = kind.lstrip("{")
        if bare[:1] == "p":
            return "mask"
        return "vector" if bare[:1] in ("v", "z", "b", "h", "s", "d", "q") else bare[:1]

    def stand_ins(self, instruction: Instruction) -> Iterator[str]:
        return stand_ins(instruction)

    def fp_forms(self, operation: FpOperation, precision: Precision, lanes: int) -> tuple[str, ...]:
        return fp_forms(operation, precision, lanes, self.sve_bytes)

    def access_forms(self, kind: Literal["load", "store"]) -> Mapping[int, tuple[str, ...]]:
        return access_forms(kind, self.sve_bytes)


ISA = AArch64()
SVE128 = AArch64(16)
SVE256 = AArch64(32)
SVE512 = AArch64(64)
