"""What the compiler made of it: decoded instructions and the loop that executes the kernel.

Registers are named by their full architectural register in lower case ("rax" for eax, ax and al; "zmm3" for xmm3 and
ymm3; "k1"); widths stand in the operand's kind. Nothing here knows a microarchitecture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernmodel.errors import Note


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
        opcode_offset: bytes before the nominal opcode: prefixes, REX, VEX or EVEX and the escapes 0Fh, 0F38h, 0F3Ah.
        length_changing_prefix: a prefix changes the length of what follows (66h with a 16-bit immediate).
        displacement_bytes, immediate_bytes: encoded sizes of the fields, 0 for none; a jump's distance is an immediate.
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
    branch: Literal["conditional", "jump", "indirect", "call", "return"] | None
    target: int | None
    same_register: bool
    vector_bytes: int
    has_mask: bool
    opcode_offset: int = 0
    length_changing_prefix: bool = False
    displacement_bytes: int = 0
    immediate_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """A decoded stretch of code: instructions by ascending address, labels by name with their address."""

    file: str
    isa: str
    syntax: Literal["att", "intel", "binary"]
    instructions: tuple[Instruction, ...]
    labels: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class ExpectedAccess:
    """What the source says an inner-loop reference does, for matching loops of the assembly.

    Attributes:
        array: name; element_bytes: size of an element.
        stride_bytes: bytes the address moves per inner source iteration (negative for downward loops, 0 for
            invariants).
        written: whether it is a store.
        offset_bytes: where it stands in the first iteration, against the other references of its array.
        others: of the other loops around it, the variable and the bytes the address moves per step, None where an index
            array places it anew.
        count: how often the source writes the reference.
    """

    array: str
    element_bytes: int
    stride_bytes: int
    written: bool
    offset_bytes: int = 0
    others: tuple[tuple[str, int | None], ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class AddressStream:
    """How the address of one memory reference of a loop advances.

    `stride_bytes` is per pass of the loop body; None where it is not a constant.
    """

    instruction: int
    reference: MemoryReference
    stride_bytes: int | None


@dataclass(frozen=True, slots=True)
class RemainderLoop:
    """A loop beside the analysed one that executes iterations of the same source loop, fewer in a pass.

    Attributes:
        instructions: its body.
        steps: steps of the source loop that one pass executes.
    """

    instructions: tuple[Instruction, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Way:
    """What is executed once for each entry of the analysed loop, on one way through the loop around it.

    Attributes:
        straight: instructions that execute no iteration of the analysed source loop: addresses, accumulators, tails of
            reductions, statements between the loops of the source.
        before: how many of them come before the loop.
        tail: straight-line instructions that execute `tail_steps` steps of it.
        loops: loops that execute further steps, each at least one pass.
    """

    straight: tuple[Instruction, ...]
    before: int
    tail: tuple[Instruction, ...]
    tail_steps: int
    loops: tuple[RemainderLoop, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The code around the analysed loop, as far as the listing shows it.

    Attributes:
        ways: through the loop around it; empty where there is none.
        outer: the instructions of each loop further out that stand in no loop inside it, from within.
    """

    ways: tuple[Way, ...]
    outer: tuple[tuple[Instruction, ...], ...]


@dataclass(frozen=True, slots=True)
class AssemblyLoop:
    """The loop (or marked block) that is analysed.

    Attributes:
        instructions: the body in execution order, ending in the closing branch where it is a loop.
        isa, syntax, file: as in the listing.
        label: label of the loop head, "" if none.
        iterations_per_pass: source iterations that one pass of the body executes (unrolling × vector length), None
            where no source was matched.
        streams: address streams of its memory references.
        evidence: one sentence: why this loop, and how iterations_per_pass was found and cross-checked.
        role: "main", "peeled", "remainder", "outer", "marked" or "chosen".
        notes: doubts.
        variable: the outer loop variable that the loop runs over, where compilers exchanged loops or unrolled the inner
            one; None for the innermost loop of the source.
        steps: steps of that variable per pass, None where no source was matched.
        around: the code around the loop; None where it is not known (a marked block, a stretch of lines).
        function: the function that holds it, "" where the code names none.
    """

    instructions: tuple[Instruction, ...]
    isa: str
    syntax: str
    file: str
    label: str
    iterations_per_pass: float | None
    streams: tuple[AddressStream, ...]
    evidence: str
    role: str
    notes: tuple[Note, ...]
    variable: str | None = None
    steps: int | None = None
    around: Surroundings | None = None
    function: str = ""
