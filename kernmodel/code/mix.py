"""The instruction mix of loops: memory instructions by access size, floating-point instructions by operation.

The inputs of the application-driven cache-aware roofline (Marques, Ilic, Matveev, Sousa, FGCS 107 (2020) 257, section
4.1): R_i^β and #β_i of memory instructions, R_i^φ and #φ_i of floating-point instructions. Counts are per source
iteration (or per whatever unit the mix was given for; only ratios enter the roofs). What counts, and as what, stands in
docs/instruction-mix.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import InputError, Location, Note
from kernmodel.isa import isa_of
from kernmodel.isa.model import FpOperation, Instruction, MemoryReference, Precision
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class MemoryClass:
    """Memory instructions that move data in the same way.

    Attributes:
        size_bytes: bytes of one access (1 to 64; of a gather or scatter, of one element).
        kind: "scalar" (general-purpose, x87, or one element of up to 8 bytes), "vector", "gather", "scatter".
        store: whether it stores; a read-modify-write instruction counts once as a load and once as a store.
        streaming: non-temporal stores.
        masked: an AVX-512 or AVX mask applies (gathers and scatters always have one, and are not marked).
    """

    size_bytes: int
    kind: Literal["scalar", "vector", "gather", "scatter"]
    store: bool
    streaming: bool = False
    masked: bool = False


@dataclass(frozen=True, slots=True)
class FpClass:
    """Floating-point instructions of one operation, precision and width.

    Attributes:
        operation: what it computes; compare and convert count no FLOP.
        precision: of the elements.
        lanes: elements of one instruction (1: scalar).
        masked: an AVX-512 mask applies.
    """

    operation: FpOperation
    precision: Precision
    lanes: int
    masked: bool = False

    @property
    def flops(self) -> int:
        """#φ_i: FLOP of one instruction, every lane active; FMA counts 2 per lane."""
        weight = {"add": 1, "mul": 1, "fma": 2, "div": 1, "sqrt": 1}
        return weight.get(self.operation, 0) * self.lanes


@dataclass(frozen=True, slots=True)
class InstructionMix:
    """How many instructions of each class one source iteration executes.

    Attributes:
        memory: (class, instructions), largest share first; of gathers and scatters, (class, elements).
        fp: (class, instructions), largest share first; an instruction that does several operations on each lane (a dot
            product multiplies and adds) counts once for each.
        other: all other instructions.
        source: where it comes from ("loop .L3 of triad.s", "file mix.yml", …).
        notes: assumptions and warnings.
        per: what the counts are for: "source iteration", "pass of the loop", or as a file says.
        shares_only: memory and fp are shares, each of its own sum, so no arithmetic intensity follows from them.
        served: (level, share of the bytes of load and store instructions that it served), as measured; empty: not.
    """

    memory: tuple[tuple[MemoryClass, float], ...]
    fp: tuple[tuple[FpClass, float], ...]
    other: float
    source: str
    notes: tuple[Note, ...] = ()
    per: str = "source iteration"
    shares_only: bool = False
    served: tuple[tuple[str, float], ...] = ()

    @property
    def loads(self) -> float:
        """Load instructions; a gather counts one for each element (it moves each on its own)."""
        return math.fsum(count for kind, count in self.memory if not kind.store)

    @property
    def stores(self) -> float:
        """Store instructions; a scatter counts one for each element."""
        return math.fsum(count for kind, count in self.memory if kind.store)

    @property
    def bytes(self) -> float:
        """Bytes that load and store instructions move between registers and the first cache (CARM's bytes)."""
        return math.fsum(kind.size_bytes * count for kind, count in self.memory)

    @property
    def flops(self) -> float:
        """FLOP of all instructions, masked ones at full width."""
        return math.fsum(kind.flops * count for kind, count in self.fp)

    @property
    def load_store_ratio(self) -> float | None:
        """Loads per store: infinite without stores, None without memory instructions."""
        if not self.stores:
            return math.inf if self.loads else None
        return self.loads / self.stores

    @property
    def load_share(self) -> float | None:
        """Loads over all memory instructions, None without any."""
        return self.loads / (self.loads + self.stores) if self.memory else None

    @property
    def intensity(self) -> float | None:
        """FLOP per byte of load and store instructions; None where no bytes are moved or only shares are known."""
        return None if self.shares_only or not self.bytes else self.flops / self.bytes


def instruction_mix(loop: AssemblyLoop) -> InstructionMix:
    """The mix of one loop per source iteration (per pass where the source is not known).

    Every instruction of the body counts once for each pass; what is not counted stands in the notes.
    """
    memory: Counter[MemoryClass] = Counter()
    fp: Counter[FpClass] = Counter()
    other = 0
    for instruction in loop.instructions:
        accesses, work = tuple(_accesses(instruction)), fp_classes(instruction)
        for access, elements in accesses:
            memory[access] += elements
        for kind, times in work:
            fp[kind] += times
        other += not (accesses or work)
    passes = 1.0 / (loop.iterations_per_pass or 1.0)
    return InstructionMix(
        memory=_ordered(memory, passes),
        fp=_ordered(fp, passes),
        other=other * passes,
        source=f"loop {loop.label} of {loop.file}" if loop.label else f"{loop.role} code of {loop.file}",
        notes=loop.notes + _notes(loop),
        per="source iteration" if loop.iterations_per_pass else "pass of the loop",
    )


def combined_mix(mixes: Sequence[tuple[InstructionMix, float]]) -> InstructionMix:
    """Several loops' mixes, each weighted by its trips: the mean over all their iterations.

    Args:
        mixes: each mix with the number of its units (source iterations or passes) that are executed.

    Raises:
        InputError: no mixes, a weight that is negative or not finite, or none above zero.
    """
    weights = [weight for _, weight in mixes]
    total = math.fsum(weights)
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not total > 0:
        raise InputError("the loops' trip counts are no numbers above zero", todo="give each loop its trips")
    memory: dict[MemoryClass, float] = {}
    fp: dict[FpClass, float] = {}
    for mix, weight in mixes:
        _add(memory, mix.memory, weight / total)
        _add(fp, mix.fp, weight / total)
    units = dict.fromkeys(mix.per for mix, _ in mixes)
    return InstructionMix(
        memory=_ordered(memory),
        fp=_ordered(fp),
        other=math.fsum(mix.other * weight / total for mix, weight in mixes),
        source=", ".join(dict.fromkeys(mix.source for mix, _ in mixes)),
        notes=tuple(dict.fromkeys(note for mix, _ in mixes for note in mix.notes)),
        per=next(iter(units)) if len(units) == 1 else "unit of work",
        shares_only=any(mix.shares_only for mix, _ in mixes),
    )


def fp_classes(instruction: Instruction) -> tuple[tuple[FpClass, int], ...]:
    """The floating-point work of an instruction: its classes, and how often it does each; empty if it does none."""
    found = isa_of(instruction.isa).fp_work(instruction)
    if found is None:
        return ()
    kind, lanes = found
    return tuple((FpClass(name, kind.precision, lanes, instruction.has_mask), times) for name, times in kind.work)


Class = TypeVar("Class", MemoryClass, FpClass)


def _accesses(instruction: Instruction) -> Iterator[tuple[MemoryClass, int]]:
    """The loads and stores of an instruction, with the elements of gathers and scatters; a push counts as a store."""
    isa = isa_of(instruction.isa)
    for reference in instruction.memory:
        element = isa.element_bytes(instruction)
        indexed, size = element > 0, element or reference.size_bytes
        if not _is_counted(instruction, reference):
            continue
        for store in [store for store, does in ((False, reference.read), (True, reference.written)) if does]:
            masked = instruction.has_mask or isa.is_masked_move(instruction)
            access = MemoryClass(
                size_bytes=size,
                kind=_access_kind(instruction, reference, indexed, store),
                store=store,
                streaming=store and isa.is_streaming(instruction),
                masked=masked and not indexed,
            )
            yield access, reference.size_bytes // size


def _access_kind(
    instruction: Instruction, reference: MemoryReference, indexed: bool, store: bool
) -> Literal["scalar", "vector", "gather", "scatter"]:
    if indexed:
        return "scatter" if store else "gather"
    vector = instruction.vector_bytes or any(map(isa_of(instruction.isa).is_mask, instruction.operands))
    return "vector" if vector and reference.size_bytes > _LARGEST_ELEMENT else "scalar"


_LARGEST_ELEMENT = 8
"""Bytes; a wider scalar access is of x87 (ten bytes) or a pair (cmpxchg16b)."""


def _is_counted(instruction: Instruction, reference: MemoryReference) -> bool:
    """Whether it loads or stores as many bytes as one access can: not so lea, prefetches, and saving the state."""
    moved = reference.read or reference.written
    return moved and 0 < reference.size_bytes <= isa_of(instruction.isa).widest_access


def _add(into: dict[Class, float], counts: Iterable[tuple[Class, float]], weight: float) -> None:
    for kind, count in counts:
        into[kind] = into.get(kind, 0.0) + count * weight


def _ordered(counts: Mapping[Class, float], factor: float = 1.0) -> tuple[tuple[Class, float], ...]:
    """Classes with their counts, largest first; those that never occur are left out."""
    found = [(kind, count * factor) for kind, count in counts.items() if count]
    return tuple(sorted(found, key=lambda item: (-item[1], repr(item[0]))))


def _notes(loop: AssemblyLoop) -> tuple[Note, ...]:
    """What the mix leaves out or assumes, one note for each kind, at the first instruction."""
    found = []
    for code, kind, applies, text in _DOUBTS:
        doubtful = [instruction for instruction in loop.instructions if applies(instruction)]
        if doubtful:
            names = ", ".join(dict.fromkeys(instruction.mnemonic for instruction in doubtful))
            where = Location(loop.file, doubtful[0].line or None)
            found.append(Note(code, f"{names}: {text}", kind, where))
    return tuple(found)


def _is_unclassified(instruction: Instruction) -> bool:
    return isa_of(instruction.isa).is_unclassified(instruction.mnemonic)


def _is_repeated(instruction: Instruction) -> bool:
    return isa_of(instruction.isa).repeats(instruction)


def _moves_state(instruction: Instruction) -> bool:
    moved = [reference for reference in instruction.memory if reference.read or reference.written]
    return any(not _is_counted(instruction, reference) for reference in moved)


def _is_masked(instruction: Instruction) -> bool:
    return any(kind.masked for kind, _ in fp_classes(instruction)) or any(
        access.masked for access, _ in _accesses(instruction)
    )


_DOUBTS: tuple[tuple[str, Literal["assumption", "warning"], Callable[[Instruction], bool], str], ...] = (
    ("unclassified-instruction", "warning", _is_unclassified, "floating-point work that is not known is not counted"),
    ("repeated-instruction", "warning", _is_repeated, "how often it repeats is not known: one element is counted"),
    ("unknown-access-size", "warning", _moves_state, "moves no data of a known size: its bytes are not counted"),
    ("full-masks", "assumption", _is_masked, "masked instructions count at full width, as if every lane were active"),
)
"""Code, kind of note, the instructions it is about, and what is not known of them."""
