"""What the C code says: the loop nest, its arrays, its accesses and its operations, as formulas in its sizes.

Offsets and sizes are formulas in the size symbols (macros, parameters: positive integers) and, for indices,
in the loop variables. `kernmodel.source.nest.sizes` puts numbers in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Literal

from kernmodel.errors import Location, Note
from kernmodel.formulas.formula import ONE, Formula, Symbol, variable
from kernmodel.value_types import dataclass

ROW_LENGTH = "row_length"
"""The size that stands for the length of the rows of compressed storage."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What a user states of a source that the source itself does not tell, by lines.

    Attributes:
        taken: with which probability the condition of a branch at a line holds.
        trip_counts: how many iterations a loop at a line has, each time that it is entered.
    """

    taken: tuple[tuple[int, float], ...] = ()
    trip_counts: tuple[tuple[int, int], ...] = ()


NOTHING_STATED = Stated()


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch of the innermost body whose condition the data decide.

    Attributes:
        share: of the iterations, those that come to it; taken: of these, those in which the condition holds.
    """

    location: Location
    share: float
    taken: float


@dataclass(frozen=True, slots=True)
class ElementType:
    """An arithmetic C type: `name` as written ("double", "float", "int", …), `size_bytes` on LP64, kind of number."""

    name: str
    size_bytes: int
    kind: Literal["float", "integer"]


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop, normalised: `variable` takes start, start + step, … while it is before `stop`.

    Attributes:
        variable: the C name; also the name of its symbol in index expressions.
        start: first value (affine in sizes and outer loop variables; may be Max/Min of such for tiled nests).
        stop: the bound, exclusive in the direction of `step` (so `i >= 1; --i` has stop 0, step −1).
        step: non-zero constant.
    """

    variable: str
    start: Formula
    stop: Formula
    step: int
    location: Location

    @property
    def symbol(self) -> Formula:
        """The loop variable as a formula."""
        return variable(self.variable)

    @property
    def bounded_by(self) -> set[Symbol]:
        """The names in its bounds: sizes, and variables of loops around it."""
        return self.start.free_symbols | self.stop.free_symbols


@dataclass(frozen=True, slots=True)
class Array:
    """An array: `shape` in elements, outermost dimension first (1-D for flat pointers whose extent is not declared:
    ())."""

    name: str
    element: ElementType
    shape: tuple[Formula, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class IndirectIndex:
    """A value inside an index that no affine formula gives: read from an index array, as the `idx[i]` of `x[idx[i]]`,
    or a quotient or remainder, as the `i % 4` of `x[i % 4]`.

    Attributes:
        name: name of the symbol that stands for the value in `Access.index` and `Access.offset`.
        array: the index array ("idx"), the read of it is an access of its own; "" where nothing is read.
        position: linear index of the entry, in elements of the index array, affine in the loop variables; of a quotient
            or remainder what is divided.
        text: as written ("idx[i]").
        divisor, modulus: where nothing is read, the value is ⌊position / divisor⌋, and its remainder by the modulus
            where that is not None.
        through: name of the index that says which entry is read, as the `a[i]` of `idx[a[i]]`; `position` is then that
            of the entry of its array. "": the position is that of the entry itself.
    """

    name: str
    array: str
    position: Formula
    text: str
    divisor: Formula = ONE
    modulus: Formula | None = None
    through: str = ""

    @property
    def symbol(self) -> Formula:
        """The value as a formula."""
        return variable(self.name)


Guard = tuple[str, float]
"""Conditions of sizes and loop variables, as text, and the share of the iterations in which they hold."""
ALWAYS: Guard = ("", 1.0)


@dataclass(frozen=True, slots=True)
class Access:
    """One array reference in the innermost body, as the source writes it.

    `a[j][i] += x` is two accesses, a read and a write, with the same index. References that repeat literally in one
    iteration (same array, index and kind) appear once, with `count` saying how often.

    Attributes:
        array: name of the array.
        kind: "read" or "write".
        index: one affine expression per dimension of the (delinearised) array.
        offset: linear offset in elements, affine in the loop variables: Σ index × product of inner extents.
        coefficients: per loop variable of the nest (outermost first), the coefficient of that variable in `offset`
            (elements).
        depth: number of enclosing loops of the nest at this reference (= len(loops) in the innermost body); smaller for
            statements between loops (imperfect nests, accumulators initialised or stored outside the inner loop).
        text: the reference as written, for reports.
        location: where it stands first.
        indirect: the values from index arrays that `index` and `offset` contain; empty for affine accesses.
        after_inner: of an access between loops (depth < number of loops), whether it stands after the inner loop.
        share: how often it is executed in an iteration, on average over its `count`: less than 1 under a condition.
        guard: the part of `share` that is due to conditions of sizes and loop variables, which hold in whole ranges.
        element_bytes: bytes of what is read or written where that is a member of a structure, 0: an element of the
            array.
    """

    array: str
    kind: Literal["read", "write"]
    index: tuple[Formula, ...]
    offset: Formula
    coefficients: tuple[Formula, ...]
    depth: int
    count: int
    text: str
    location: Location
    indirect: tuple[IndirectIndex, ...] = ()
    after_inner: bool = False
    share: float = 1.0
    guard: Guard = ALWAYS
    element_bytes: int = 0

    @property
    def executed(self) -> float:
        """How often an iteration executes it."""
        return self.count * self.share

    def jumps(self, variable: str) -> bool:
        """Whether a step of this loop variable takes another value from an index array, so that no stride is known."""
        return any(variable in index.position.free_symbols for index in self.indirect)

    def moves(self, loops: Sequence[Loop], number: int = -1) -> bool:
        """Whether the element changes with this loop of the nest, by default the innermost."""
        return bool(self.coefficients[number]) or self.jumps(loops[number].variable)


Operation = Literal["add", "mul", "div", "sqrt", "fma", "compare", "function"]


@dataclass(frozen=True, slots=True)
class FlopCount:
    """Floating-point operations of one kind and type per inner iteration. FMA counts 2 FLOP, all others 1 each.

    `operation` is by source: a product whose result is added counts as one mul and one add (the compiler may fuse
    them); "function" counts calls of math functions, which have no FLOP number of their own (`name` says which).
    `share`: of the iterations, those that execute it.
    """

    operation: Operation
    element: ElementType
    count: int
    name: str = ""
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class DistinctOperation:
    """A floating-point operation of the innermost body whose value no other operation of the body yields.

    Attributes:
        variables: the loop variables on which its operands depend: outside of every other loop it can be computed once.
        by_literal: a division by a literal, which a compiler may turn into a product.
    """

    operation: Operation
    variables: frozenset[str]
    by_literal: bool = False


@dataclass(frozen=True, slots=True)
class Operations:
    """What an iteration of the innermost body computes.

    Attributes:
        flops: floating-point operations.
        distinct: those whose value no other operation of the body yields.
        conversions: conversions of integers to floating-point numbers.
        complex_products: products of two complex numbers.
        scalars: scalar variables that are read or written, by name, with their types.
        reductions: names of scalars (or of arrays whose element does not move in the inner loop) that each iteration
            updates from its own previous value.
        carried_scalars: scalars that are read before they are written: their values pass from iteration to iteration
            (reductions, and the `previous = a[i]` of a shift).
        updates: lattice updates, None: the kernel does not say.
        branches: those that the data decide.
        places: the floating-point operators and calls as they are written, and where their right operands, or the
            calls, begin.
    """

    flops: tuple[FlopCount, ...]
    distinct: tuple[DistinctOperation, ...] = ()
    conversions: int = 0
    complex_products: int = 0
    scalars: Mapping[str, ElementType] = field(default_factory=dict)
    reductions: tuple[str, ...] = ()
    carried_scalars: tuple[str, ...] = ()
    updates: float | None = None
    branches: tuple[Branch, ...] = ()
    places: tuple[tuple[str, Location], ...] = field(default=(), compare=False)

    @property
    def flops_per_iteration(self) -> float:
        """FLOP per inner iteration; comparisons and math functions are not counted, FMA counts 2."""
        weight = {"fma": 2, "compare": 0, "function": 0}
        total = sum(weight.get(f.operation, 1) * f.count * f.share for f in self.flops)
        return int(total) if total == int(total) else total


Scheduling = Literal["static", "dynamic", "guided"]


@dataclass(frozen=True, slots=True)
class Parallel:
    """How a pragma divides a loop of a nest over threads.

    Attributes:
        loop: its number, 0 outermost; collapse: how many loops from there on are divided as one.
        schedule: None: the pragma names none, or leaves it to the system.
        chunk: iterations of a chunk, None: not said.
        text: the pragma.
    """

    loop: int
    collapse: int
    schedule: Scheduling | None
    chunk: int | None
    text: str
    location: Location


@dataclass(frozen=True, slots=True)
class LoopNest:
    """A loop nest ready for analysis.

    Attributes:
        name: name of the kernel (function name, or stem of the file).
        loops: outermost first.
        arrays: by name.
        accesses: all array references, in the order of execution (reads of a statement before its write).
        operations: what an iteration of the innermost body computes.
        symbols: the size symbols by C name (macros with an integer value, integer parameters), all positive integers.
        defaults: default values of symbols from the source (`#define N 5000`); parameters have none.
        file: path of the source; text: the source itself.
        function: name of the C function, or None for a bare nest.
        notes: what was assumed (e.g. "index a[j*N+i] was split into a[j][i]").
        between: of every statement between loops that is more than index arithmetic, the number of loops around it and
            its place.
        inner_lines: first and last line of the innermost loop in its file, as far as known.
        counted_at: the sizes at which conditions were counted: at others the nest is read anew.
        parallel: how a pragma divides a loop over threads, None: none does.
        divided: variables of the loops of which it has the iterations of one core only, while others have the rest.
    """

    name: str
    loops: tuple[Loop, ...]
    arrays: Mapping[str, Array]
    accesses: tuple[Access, ...]
    operations: Operations
    symbols: Mapping[str, Formula]
    defaults: Mapping[str, int]
    file: str
    text: str
    function: str | None
    notes: tuple[Note, ...]
    between: tuple[tuple[int, Location], ...] = ()
    inner_lines: tuple[int, int] | None = None
    parallel: Parallel | None = None
    counted_at: frozenset[str] = frozenset()
    divided: frozenset[str] = frozenset()

    @property
    def inner(self) -> Loop:
        """The innermost loop."""
        return self.loops[-1]

    def bytes_of(self, access: Access) -> int:
        """Bytes of what an access reads or writes: an element of its array, or a member of a structure."""
        return access.element_bytes or self.arrays[access.array].element.size_bytes

    @property
    def index_arrays(self) -> tuple[str, ...]:
        """The arrays whose values select elements of others, in order of appearance."""
        return tuple(dict.fromkeys(index.array for access in self.accesses for index in access.indirect if index.array))

    def reads(self) -> tuple[Access, ...]:
        """The read accesses."""
        return tuple(a for a in self.accesses if a.kind == "read")

    def writes(self) -> tuple[Access, ...]:
        """The write accesses."""
        return tuple(a for a in self.accesses if a.kind == "write")
