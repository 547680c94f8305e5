"""What the rest of kernmodel asks of an instruction set.

An instruction set is an instance of a subclass of `Isa`, found by its name (`kernmodel.isa.isa_of`). All that is
outside its folder goes by these members and by the values of `kernmodel.isa.model`, and knows no mnemonic or register.
Members without a body of their own have to be given; the others say that the instruction set has nothing of the kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from kernmodel.errors import AssemblyError
from kernmodel.isa.counting import CountedBlock, CountedCopy, TracedCopy
from kernmodel.isa.linear import Comparison, Linear, MemoryValues, RegisterValues
from kernmodel.isa.memo import DecodeMemo, PlainMemo
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
from kernmodel.isa.timing import TimedCode
from kernmodel.limits import DECODED_BYTES
from kernmodel.value_types import NamedTuple, dataclass


@dataclass(frozen=True, slots=True)
class Registers:
    """The registers that have a part to play, by their full names.

    Attributes:
        stack_pointer: the stack pointer.
        frame: those by which compilers address the stack frame, the stack pointer among them.
        general: those that can hold addresses and counters.
        program_counter: the base of addresses relative to the code, "" where there are none.
        clobbered: what a called function may overwrite of the general ones.
        arguments: those of the first integer and pointer arguments of a function, in their order.
        vectors: those of its first floating-point and vector arguments, in their order; the first has the result.
        kept_vectors: the vector registers that a called function leaves as they are.
        halved: those whose second byte some cores rename apart (ah of rax).
        advanced: pointers that instructions advance beside what they do; these wait for nothing but themselves.
    """

    stack_pointer: str
    frame: frozenset[str]
    general: frozenset[str]
    program_counter: str = ""
    clobbered: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    kept_vectors: frozenset[str] = frozenset()
    halved: frozenset[str] = frozenset()
    advanced: frozenset[str] = frozenset()


class Effect(NamedTuple):
    """What an instruction does to registers and memory, as far as addresses and counters are made of it.

    A register that the instruction writes and that is not among `registers` holds something unknown after it; so does
    memory that it writes.

    Attributes:
        addresses: of its memory references, in their order; None where one is no linear expression (gathers).
        registers: new values of registers, where these are known.
        stores: (number of the memory reference, value), where the value is known.
        compared: what the flags stand for after it, or what a branch that compares by itself tests; None where that
            is not known.
        transfer: "copy" where all it does is hand on a register, extended or not; "address" where all it does is to
            compute the address of its memory reference; None for all others.
        bits: width of what it hands on or computes.
    """

    addresses: tuple[Linear | None, ...] = ()
    registers: tuple[tuple[str, Linear], ...] = ()
    stores: tuple[tuple[int, Linear], ...] = ()
    compared: Comparison | None = None
    transfer: Literal["copy", "address"] | None = None
    bits: int = 64


class StackUse(NamedTuple):
    """What an instruction has to do with the stack pointer.

    A stack engine `moves` it for the instruction (push, pop, call, return; Intel Optimization Reference Manual, stack
    pointer tracker; A. Fog, microarchitecture.pdf). The instruction `reads` and `writes` it beyond that, so that the
    core has to bring in what the engine keeps to itself.
    """

    moves: bool
    reads: bool
    writes: bool


class RegisterForm(NamedTuple):
    """A form with a register in place of a memory operand, and the forms that load and store that register alone."""

    form: str
    load: str
    store: str


class CodeSection(NamedTuple):
    """A stretch of machine code in an object or executable: its number in the file, name, address and bytes.

    `alignment`: bytes modulo which its address is known; a linker may put it at any multiple of them.
    """

    number: int
    name: str
    address: int
    data: bytes
    alignment: int = 1


class CodeSymbol(NamedTuple):
    """A name of a place in the code: where it is, how many bytes it names, whether it is a function."""

    name: str
    section: int
    address: int
    size: int
    is_function: bool


class ObjectCode(ABC):
    """The machine code of an object or executable, laid out and with its relocations resolved."""

    __slots__ = ()

    @property
    @abstractmethod
    def sections(self) -> tuple[CodeSection, ...]:
        """The sections that hold code."""

    @property
    @abstractmethod
    def symbols(self) -> tuple[CodeSymbol, ...]:
        """The names of places in these sections, by section and address."""

    @abstractmethod
    def instructions(self, section: CodeSection, first: int, end: int) -> Iterator[Instruction]:
        """The instructions at addresses `first` up to `end` of a section, with the symbols that relocations name.

        Raises:
            What `kernmodel.isa.elf.damage_reported` reports.
        """

    def refuse_large(self, file: str, todo: str) -> None:
        """Refuse more code than is decoded at once; `todo` is what to do about it.

        Raises:
            AssemblyError: it is too much.
        """
        size = sum(len(section.data) for section in self.sections)
        if DECODED_BYTES.exceeded(size):
            raise AssemblyError(f"holds {size:,} bytes of code", where=file, todo=DECODED_BYTES.todo(todo))


class Isa(ABC):
    """An instruction set.

    Attributes:
        name: as listings, machine files and parameter files of cores give it ("x86-64").
        registers: those with a part to play.
        elf_machine: number in the header of its ELF files (e_machine), 0 where these cannot be read.
        vector_bytes: widths of its vector registers, the widest first.
        streaming_stores: whether each of its processors has stores past the caches.
        vector_names: what operations of such a width are called; others by their lanes.
        hosts: machines, as `platform.machine` names them, whose own compilers make its code; () where none is known to.
        emulated_cpu: the processor that qemu is told to be.
        cross_prefix: what the commands of compilers for it begin with elsewhere ("aarch64-linux-gnu-").
        alias_variant: variant of rows of moves that fewer cores eliminate, "" where there are none.
    """

    name: str
    registers: Registers
    elf_machine: int = 0
    vector_bytes: tuple[int, ...] = ()
    streaming_stores: bool = False
    vector_names: Mapping[int, str] = MappingProxyType({})
    hosts: tuple[str, ...] = ()
    cross_prefix: str = ""
    emulated_cpu: str = "max"
    alias_variant: str = ""

    @property
    def family(self) -> str:
        """The name that instruction sets share which read the same code, as with vectors of several lengths."""
        return self.name

    def with_vectors(self, bits: int, flags: tuple[str, ...] = ()) -> tuple[str, tuple[str, ...]] | None:
        """The name of this instruction set with vectors of so many bits, 0 for a length that is not known, and flags
        of a compiler for it; None where the length of its vectors is no matter of choice."""
        return None

    @property
    def widest_access(self) -> int:
        """Bytes of the widest access that is one load or store; instructions that move more save the state."""
        return max(16, *self.vector_bytes, 0)

    def fills_widest(self, instruction: Instruction) -> bool:
        """Whether it uses vector registers in their full width."""
        return self.vector_bytes[:1] == (instruction.vector_bytes,)

    # ---- reading code ----

    @abstractmethod
    def read_listing(self, text: str, file: str, syntax: str | None) -> Listing:
        """The instructions of an assembly listing; `file` names it in messages, `syntax` is found by evidence if None.

        Raises:
            AssemblyError: it is no listing of this instruction set.
            ToolError: the assembler that reading it takes is missing.
        """

    def assemble(self, text: str, file: str, syntax: str | None = None) -> bytes:
        """The machine code of lines of assembly; `file` names them in messages, `syntax` is found by evidence if None.

        Raises:
            AssemblyError: a line is rejected; ToolError: the assembler is missing.
        """
        raise AssemblyError(f"{self.name} code cannot be assembled", where=file, todo="give machine code")

    def evidence(self, text: str) -> int | None:
        """How many lines of a listing can be of this instruction set; None: by its text it is not told from others."""
        return None

    def decode(self, code: bytes, address: int = 0) -> Iterator[Instruction]:
        """The instructions of machine code that starts at `address`; bytes that are none are passed over one by one."""
        raise AssemblyError(f"{self.name} machine code cannot be decoded", todo="give an assembly listing")

    def is_cut_off(self, code: bytes) -> bool:
        """Whether `code`, which is no instruction, is the beginning of one."""
        return False

    def read_object(self, data: bytes, file: str) -> ObjectCode:
        """The code of an ELF file.

        Raises:
            AssemblyError: damaged, or of another architecture.
        """
        raise AssemblyError(f"{self.name} objects cannot be read", where=file, todo="give an assembly listing")

    def marker(self, instructions: Sequence[Instruction], index: int) -> tuple[int, int]:
        """The number in the marker of a region (IACA's 111 begins, 222 ends one) that starts at an instruction, and
        how many instructions it has; 0 and 0 where none starts."""
        return 0, 0

    def memo(self) -> DecodeMemo:
        """A new memo for the blocks of a batch."""
        return PlainMemo(self.decode)

    # ---- registers, addresses, control flow ----

    @abstractmethod
    def effect(self, instruction: Instruction, registers: RegisterValues, memory: MemoryValues) -> Effect:
        """What an instruction does to registers and memory, given what these hold before it."""

    def holds_address(self, operand: Operand) -> bool:
        """Whether an operand is a register wide enough for addresses and counters."""
        return operand.register in self.registers.general

    def is_vector(self, operand: Operand) -> bool:
        """Whether an operand is a vector register."""
        return False

    def is_mask(self, operand: Operand) -> bool:
        """Whether an operand is a register that holds one bit a lane."""
        return False

    def condition(self, instruction: Instruction) -> Condition | None:
        """When a conditional branch is taken, None where that is no comparison."""
        return None

    def is_padding(self, instruction: Instruction) -> bool:
        """Whether the instruction does nothing, so that alignment may consist of it."""
        return False

    def stops(self, instruction: Instruction) -> bool:
        """Whether nothing behind the instruction is executed, as it ends in a trap."""
        return False

    def repeats(self, instruction: Instruction) -> bool:
        """Whether the instruction repeats itself as often as a register says."""
        return False

    # ---- counting ----

    def counted_copy(
        self,
        blocks: Sequence[CountedBlock],
        entry: int,
        place: int,
        counters: int,
        *,
        shift: int = 0,
        shared: bool = False,
    ) -> CountedCopy | None:
        """A copy of a function that does the same and counts its blocks; None where no such copies are made.

        Args:
            blocks: of the function, by ascending address; entry: address of the one that is called.
            place: address at which the copy will be; counters: that of the first counter.
            shift: what is added to the addresses of blocks where the process has them.
            shared: whether several threads or processes count at once.

        Raises:
            AssemblyError: code that does the same cannot stand there.
        """
        return None

    def traced_copy(
        self,
        blocks: Sequence[CountedBlock],
        entry: int,
        place: int,
        pointer: int,
        *,
        shift: int = 0,
        path: bool = False,
    ) -> TracedCopy | None:
        """A copy of a function that does the same and records the addresses that it accesses; None where no such copies
        are made.

        Args:
            blocks, entry, place, shift: as for `counted_copy`.
            pointer: address of the word that says where the next record goes; where the buffer ends, writing faults.
            path: record the beginning of each block, too.

        Raises:
            AssemblyError: code that does the same cannot stand there.
        """
        return None

    def timed_code(self, code: bytes, address: int, place: int, data: int, *, shift: int = 0) -> TimedCode | None:
        """Code that times the calls of a function; None where no such code is made or the function is too short.

        Args:
            code: the first block of the function, at `address`.
            place: address at which the timing code will be; data: where its words will be (`timing.TimedData`).
            shift: what is added to the function's address where the process has it.

        Raises:
            AssemblyError: its first instructions cannot stand elsewhere.
        """
        return None

    def jump(self, place: int, target: int) -> bytes:
        """The instruction that goes from `place` to `target`, b"" where one cannot; as copies need it."""
        return b""

    # ---- work ----

    def fp_kind(self, mnemonic: str) -> FpKind | None:
        """What a mnemonic computes with floating-point numbers; None for any other, and where that is not known of the
        mnemonic alone. An instruction set whose operands tell the precision gives `fp_work` instead."""
        return None

    def is_unclassified(self, mnemonic: str) -> bool:
        """Whether it computes with floating-point numbers, but it is not known what."""
        return False

    def fp_work(self, instruction: Instruction) -> tuple[FpKind, int] | None:
        """What an instruction computes, and on how many lanes: those of its widest operand."""
        kind = self.fp_kind(instruction.mnemonic)
        if kind is None:
            return None
        widths = [instruction.vector_bytes, *(reference.size_bytes for reference in instruction.memory)]
        return kind, kind.lanes(max(widths))

    def packed_element(self, instruction: Instruction) -> int:
        """Bytes of an element of a packed floating-point operation that is no move, 0 for others."""
        kind = self.fp_kind(instruction.mnemonic)
        return 0 if kind is None else kind.lane_bytes

    def element_bytes(self, instruction: Instruction) -> int:
        """Bytes of one element of a gather or scatter, 0 for other instructions."""
        return 0

    def is_masked_move(self, instruction: Instruction) -> bool:
        """Whether it loads or stores the lanes that a vector register selects."""
        return False

    def is_streaming(self, instruction: Instruction) -> bool:
        """Whether it stores past the caches (a non-temporal store)."""
        return False

    def divides(self, instruction: Instruction) -> bool:
        """Whether it divides or takes a root, of integers too."""
        return False

    def generation(self, instructions: Sequence[Instruction]) -> str:
        """The newest of the instruction set's generations that a block uses ("AVX"), "scalar" without vectors."""
        return "vector" if any(item.vector_bytes for item in instructions) else "scalar"

    # ---- what cores make of it ----

    def features(self, instruction: Instruction) -> frozenset[str]:
        """Names of the extensions without which a processor does not know the instruction."""
        return frozenset()

    def is_privileged(self, instruction: Instruction) -> bool:
        """Whether user code may not execute it."""
        return False

    def moves_stack(self, instruction: Instruction) -> bool:
        """Whether a stack engine can change the stack pointer for it (push, pop, call, return)."""
        return False

    def stack_use(self, instruction: Instruction) -> StackUse:
        """What an instruction has to do with the stack pointer."""
        top, moves = self.registers.stack_pointer, self.moves_stack(instruction)
        reads = writes = False
        for operand in instruction.operands:
            if operand.register == top:
                reads |= operand.read
                writes |= operand.written
            elif operand.memory is not None:
                reads |= top in (operand.memory.base, operand.memory.index)
        if not moves:
            reads |= top in instruction.implicit_reads or any(one.base == top for one in instruction.memory)
            writes |= top in instruction.implicit_writes
        return StackUse(moves, reads, writes)

    def part_of_register(self, operand: Operand) -> Literal["whole", "low byte", "high byte"]:
        """Which part of its register an operand is, as far as cores rename parts apart."""
        return "whole"

    def overwrites(self, instruction: Instruction) -> bool:
        """Whether an operation on a part of a register needs nothing of what it overwrites there."""
        return True

    def loads_pointer(self, instruction: Instruction) -> Literal["whole", "extended"] | None:
        """Whether the instruction, if it loads, does nothing but load a register that can hold an address: all of it,
        or fewer bytes that it extends."""
        return None

    def only_stores(self, instruction: Instruction) -> bool:
        """Whether the instruction does nothing but store a general-purpose register or a constant."""
        return False

    def is_nop(self, instruction: Instruction) -> bool:
        """Whether the instruction does nothing at all."""
        return False

    def reads_beside_address(self, instruction: Instruction) -> bool:
        """Whether what it reads without naming it is an operand, even where that register forms its address too."""
        return False

    def writes_constant(self, instruction: Instruction) -> bool:
        """Whether its result is the same whatever the registers hold that it reads, as of `xor` with itself."""
        return False

    def third_vector(self, instruction: Instruction) -> int | None:
        """The number of the operand that enters a unit as the third vector; None where fewer do."""
        return None

    def is_fp_addition(self, instruction: Instruction) -> bool:
        """Whether a floating-point adder executes it."""
        return False

    def vector_domain(self, instruction: Instruction) -> VectorDomain | None:
        """Whether units for floating-point numbers or for integers execute it, where it makes a vector of vectors; None
        for all others, and where that is not known."""
        return None

    def pops_stack_pointer(self, instruction: Instruction) -> bool:
        """Whether decoders take it for a pop into the stack pointer."""
        return False

    def row_variant(self, instruction: Instruction) -> str:
        """What rows of the instruction table are told apart by beside the form: "" or a suffix such as " [b+d]"."""
        return ""

    def row_candidates(self, form: str) -> Iterator[tuple[str, str]]:
        """Forms whose rows stand for `form`, in the order of growing doubt, with the reason ("" for spellings)."""
        return iter(())

    def kind_class(self, kind: str) -> str:
        """What an operand of this kind is, whatever its width: memory, register, immediate, …"""
        return kind[:1]

    def stand_ins(self, instruction: Instruction) -> Iterator[str]:
        """Additions and moves with operands like those of the instruction, the best first, to estimate its row by."""
        return iter(())

    def register_forms(self, instruction: Instruction, position: int) -> Iterator[RegisterForm]:
        """Forms that have a register in place of the memory operand at `position`, to compose its row with."""
        return iter(())

    def names_by_top(self, instruction: Instruction) -> bool:
        """Whether the instruction names registers by their distance from a moving top, or moves it."""
        return False

    def with_named_registers(self, instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
        """The instructions with one name for each register throughout, where the code names them by a moving top."""
        return tuple(instructions)

    # ---- forms that set ceilings ----

    def fp_forms(self, operation: FpOperation, precision: Precision, lanes: int) -> tuple[str, ...]:
        """Forms between registers that do one floating-point operation on so many lanes, the best first."""
        return ()

    def access_forms(self, kind: Literal["load", "store"]) -> Mapping[int, tuple[str, ...]]:
        """Forms that stand for all loads or stores of a size, by bytes, the widest first, but pairs of
        registers last; each the best first."""
        return {}
