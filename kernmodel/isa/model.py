"""What is said of instructions, whatever the instruction set: values that decoding yields and everything else reads.

Registers are named by their full architectural register in lower case (on x86-64 "rax" for eax, ax and al; "zmm3" for
xmm3 and ymm3; "k1"); widths stand in the operand's kind. Nothing here knows a microarchitecture.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernmodel.errors import Location
from kernmodel.value_types import NamedTuple, dataclass

FpOperation = Literal["add", "mul", "fma", "div", "sqrt", "compare", "convert", "other"]
Precision = Literal["DP", "SP", "HP", "X87"]
PRECISION_BYTES: Mapping[Precision, int] = {"DP": 8, "SP": 4, "HP": 2, "X87": 10}
"""Bytes of an element."""
VectorDomain = Literal["floating-point", "integer"]
"""Units that make vectors of vectors, by what they are for."""
Branch = Literal["conditional", "jump", "indirect", "call", "return"]
Notion = Literal["loop", "unrolled"]
"""How a block is repeated: as the body of a loop (TP_L), or copied one behind the other (TP_U)."""
Condition = Literal["e", "ne", "l", "ge", "le", "g", "b", "ae", "be", "a", "s", "ns", "u", "o"]
"""When a conditional branch is taken, by what was compared last: equal, not equal; of signed numbers less, greater or
equal, …; of unsigned ones below, above or equal, …; s and ns ask for the sign of the result; of floating-point numbers
unordered (one of them is NaN) and ordered."""


class Encoding(NamedTuple):
    """How the bytes of an instruction are laid out, as far as front ends ask; all 0 where all have one width.

    Attributes:
        opcode_offset: first byte of the nominal opcode: behind prefixes, REX, VEX or EVEX and the escapes 0Fh, 0F38h
            and 0F3Ah.
        length_changing_prefix: whether a prefix changes the length of the rest (66h with a 16-bit immediate, 67h with
            an absolute 64-bit address; Optimization Reference Manual, length-changing prefixes).
        displacement_offset, displacement_bytes: the displacement of the memory operand; 0 bytes where there is none.
        immediate_offset, immediate_bytes: the immediate or jump distance, a second immediate not included.
    """

    opcode_offset: int = 0
    length_changing_prefix: bool = False
    displacement_offset: int = 0
    displacement_bytes: int = 0
    immediate_offset: int = 0
    immediate_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FpKind:
    """What a mnemonic computes with floating-point numbers.

    Attributes:
        work: operations on every lane, and how often one instruction does each (a dot product multiplies and adds).
        precision: of the elements; of a conversion, of its floating-point side (of two, the one it converts from).
        lane_bytes: bytes of the widest register for each lane; 0 where the number of lanes does not depend on it.
        fixed_lanes: that number.
        replaces: the operation that an approximation stands for (a reciprocal for a division).
        selects: whether a comparison hands on one of its operands (minimum, maximum).
    """

    work: tuple[tuple[FpOperation, int], ...]
    precision: Precision
    lane_bytes: int
    fixed_lanes: int = 1
    replaces: FpOperation | None = None
    selects: bool = False

    def lanes(self, width: int) -> int:
        """Lanes of an instruction whose widest vector operand has `width` bytes."""
        return max(1, width // self.lane_bytes) if self.lane_bytes else self.fixed_lanes


@dataclass(frozen=True, slots=True)
class MemoryReference:
    """One memory operand: segment:[base + index × scale + displacement + symbol].

    `size_bytes` is what one execution moves (for gathers: the sum of the lanes; with a broadcast: one element).
    `read` and `written` are both False for address computations (lea, prefetch).
    """

    base: str | None
    index: str | None
    scale: int
    displacement: int
    symbol: str | None
    segment: str | None
    size_bytes: int
    read: bool
    written: bool


@dataclass(frozen=True, slots=True)
class Operand:
    """One explicit operand, in Intel order.

    Attributes:
        kind: as in the form key: r8 r8h r16 r32 r64 mm xmm ymm zmm k st seg, m8 … m512 (m for sizeless), m64b
            (broadcast of 64-bit elements), vsib_xmm …, i8 i16 i32 i64, rel.
        register: full register name, for registers.
        read, written: whether the instruction reads or writes it (a merge into the old value is also a read).
    """

    kind: str
    register: str | None
    memory: MemoryReference | None
    immediate: int | None
    read: bool
    written: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction.

    Attributes:
        text: as the user's listing writes it (comment stripped), else disassembled.
        line: 1-based line in the listing, 0 if decoded from bytes.
        address: offset in the section; length: encoded bytes.
        mnemonic: Intel mnemonic, lower case ("vfmadd231pd").
        form: the key of the instruction tables: mnemonic and operand kinds in Intel order, "vaddpd ymm,ymm,m256".
        operands: explicit operands.
        implicit_reads, implicit_writes: full registers that are not explicit operands (address registers excluded:
            those stand in the memory references).
        flags_read, flags_written: of "CPAZSO"; a flag that becomes undefined counts as written.
        memory: all memory references, implicit ones (push, movs) included.
        branch: kind of control flow, None for others; target: address it jumps to within the section, if known.
        same_register: all register sources are one register (candidate zero idiom or dependency breaker).
        vector_bytes: widest vector register operand in bytes, 0 for none.
        has_mask: an AVX-512 mask other than k0 is applied.
        encoding: how its bytes are laid out.
        isa: name of its instruction set.
    """

    text: str
    line: int
    address: int
    length: int
    mnemonic: str
    form: str
    operands: tuple[Operand, ...]
    implicit_reads: tuple[str, ...]
    implicit_writes: tuple[str, ...]
    flags_read: str
    flags_written: str
    memory: tuple[MemoryReference, ...]
    branch: Branch | None
    target: int | None
    same_register: bool
    vector_bytes: int
    has_mask: bool
    encoding: Encoding = Encoding()
    isa: str = "x86-64"

    @property
    def registers_written(self) -> list[str]:
        """All registers that it writes: those of explicit operands first, as they are named."""
        return [*(one.register for one in self.operands if one.written and one.register), *self.implicit_writes]

    def place_in(self, file: str) -> Location:
        """Where it stands in a file; without a line where it was decoded from bytes."""
        return Location(file, self.line or None)


@dataclass(frozen=True, slots=True)
class Listing:
    """A decoded stretch of code: instructions by ascending address, labels by name with their address.

    `syntax` is "binary" where it was not read from text, else as the instruction set calls it ("att", "intel").
    `alignments`: from an address on, bytes modulo which addresses are known (`CodeSection`), ascending.
    """

    file: str
    isa: str
    syntax: str
    instructions: tuple[Instruction, ...]
    labels: tuple[tuple[str, int], ...]
    alignments: tuple[tuple[int, int], ...] = ()

    def alignment(self, address: int) -> int:
        """Bytes modulo which the place of the instruction at an address is known; 1 where nothing is."""
        return next((known for first, known in reversed(self.alignments) if first <= address), 1)
