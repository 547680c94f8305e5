"""How programs are executed: values of forms and bounds, indices from tables, and the walk over the loops.

Both engines share what is said here: checks, positions, and the limit of addresses. The walk itself is that of the
pure Python engine; the compiled one has its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import mul
from typing import Literal

from kernmodel.cachesim.model import (
    AccessKind,
    Form,
    Hierarchy,
    Indirection,
    Position,
    Program,
    ProgramBound,
    ProgramLoop,
    ProgramReference,
)
from kernmodel.errors import InputError

KINDS: Mapping[AccessKind, int] = {"load": 0, "store": 1, "stream": 2}
MASK64 = (1 << 64) - 1
_LARGEST = (1 << 63) - 1
_LARGEST_NUMBER = 1 << 60
_MOST_LOOPS = 15


def address_limit(hierarchy: Hierarchy) -> int:
    """The first address that is refused."""
    plain = all(spec.line_bytes >= 4 and spec.line_bytes & (spec.line_bytes - 1) == 0 for spec in hierarchy.levels)
    return 1 << (64 if plain else 62)


def mix(value: int) -> int:
    """A 64-bit integer spread evenly over all 64-bit integers (the finalizer of SplitMix64, Steele et al. 2014).

    It is the hash of set indices, of values in index arrays, and of the random replacement.
    """
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK64
    return value ^ (value >> 31)


def seeded(seed: int) -> int:
    """The 64 bits that a seed contributes to a hash."""
    return mix((seed + 0x9E3779B97F4A7C15) & MASK64)


def form_value(form: Form, values: Sequence[int]) -> int:
    """constant + Σ coefficient × value, over the loops that have a value."""
    moved: Iterable[int] = map(mul, form.coefficients, values)
    return sum(moved, form.constant)


def bound_value(bound: ProgramBound, values: Sequence[int]) -> int:
    """The value of a bound.

    Raises:
        InputError: it needs more than 64 bits.
    """
    outer, inner = (min, max) if bound.pick == "min" else (max, min)
    value = outer([inner([form_value(form, values) for form in group]) for group in bound.groups])
    if not -_LARGEST <= value <= _LARGEST:
        raise loop_overflow()
    return value


def trips(start: int, stop: int, step: int) -> int:
    """How many values start, start + step, … lie before `stop` in the direction of `step`."""
    return max(0, -((start - stop) // step))


def indirect_value(indirection: Indirection, values: Sequence[int]) -> int:
    """The value that stands in the index array at the position of these loop variables."""
    # modulo 2⁶⁴, from −2⁶³ to 2⁶³ − 1
    position = ((form_value(indirection.position, values) + _LARGEST + 1) & MASK64) - _LARGEST - 1
    if indirection.kind == "table":
        return indirection.table[position % len(indirection.table)]
    if indirection.kind == "digits":
        return position // indirection.positions % indirection.extent
    spread = mix((seeded(indirection.seed) ^ position) & MASK64)
    if indirection.kind == "uniform":
        return spread * indirection.extent >> 64
    entries = indirection.positions or indirection.extent
    middle = position % entries * indirection.extent // entries
    offset = (spread * (2 * indirection.width + 1) >> 64) - indirection.width
    return min(max(middle + offset, 0), indirection.extent - 1)


def indirect_range(indirection: Indirection) -> tuple[int, int]:
    """The least and greatest value that the index array may hold."""
    if indirection.kind == "table":
        return min(indirection.table), max(indirection.table)
    return 0, indirection.extent - 1


def address_value(reference: ProgramReference, values: Sequence[int]) -> int:
    """The address of a reference in bytes."""
    indirect = sum(each.scale * indirect_value(each, values) for each in reference.indirections)
    return form_value(reference.address, values) + indirect


def address_range(reference: ProgramReference, values: Sequence[int]) -> tuple[int, int]:
    """The least and greatest address that the reference can have, whatever the index arrays hold."""
    low = high = form_value(reference.address, values)
    for each in reference.indirections:
        ends = [each.scale * value for value in indirect_range(each)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def address_overflow(reference: int) -> InputError:
    """The error of an address that leaves the address space."""
    return InputError(
        "the address leaves 64 bits", where=f"reference {reference + 1} of the program", todo="make the sizes smaller"
    )


def loop_overflow() -> InputError:
    """The error of a loop bound that needs more than 64 bits."""
    return InputError("a loop bound or factor leaves 64 bits", where="the program", todo="make the sizes smaller")


def no_iterations() -> InputError:
    """The error of a program whose loops are all empty."""
    return InputError("its loops have no iteration", where="the program", todo="make the sizes larger")


def check_program(program: Program) -> None:
    """Refuse what is no program, and numbers that could not be computed with.

    Raises:
        ValueError: a mistake of the caller: no step, no bound, a depth or size that cannot be.
        InputError: numbers beyond 60 bits, or more than 15 loops.
    """
    for loop in program.loops:
        first, last = loop.start.groups, loop.stop.groups
        if not (loop.step and first and all(first) and last and all(last)):
            raise ValueError("a loop of the program has no step or no bound")
    for reference in program.references:
        if not 0 <= reference.depth <= len(program.loops) or reference.size_bytes < 1:
            raise ValueError("a reference of the program has no size, or stands in loops that are not there")
        for each in reference.indirections:
            if each.extent < 1 or each.width < 0 or each.positions < 0 or _has_no_values(each):
                raise ValueError("an indirection of the program has no values")
    forms = list(_forms(program))
    if {len(form.coefficients) for form in forms} - {len(program.loops)}:
        raise ValueError("a form of the program has not one coefficient per loop")
    if len(program.loops) > _MOST_LOOPS:
        raise InputError(f"{len(program.loops)} loops", where="the program", todo=f"at most {_MOST_LOOPS} are possible")
    numbers = _numbers(program, forms)
    if numbers and (max(numbers) > _LARGEST_NUMBER or -min(numbers) > _LARGEST_NUMBER):
        raise loop_overflow()


def _has_no_values(each: Indirection) -> bool:
    return (each.kind == "table" and not each.table) or (each.kind == "digits" and not each.positions)


def _forms(program: Program) -> Iterator[Form]:
    """All forms of a program."""
    for loop in program.loops:
        for group in (*loop.start.groups, *loop.stop.groups):
            yield from group
    for reference in program.references:
        yield reference.address
        yield from (each.position for each in reference.indirections)


def _numbers(program: Program, forms: list[Form]) -> list[int]:
    """The numbers of a program that are computed with."""
    numbers = [loop.step for loop in program.loops]
    for form in forms:
        numbers += (form.constant, *form.coefficients)
    for reference in program.references:
        numbers.append(reference.size_bytes)
        for each in reference.indirections:
            numbers += (each.scale, each.extent, each.width, each.positions, *each.table)
    return numbers


def with_a_loop(program: Program) -> Program:
    """The program itself, or one with a loop of one iteration around it if it has none."""
    if program.loops:
        return program
    once = ProgramLoop(ProgramBound("max", ((Form(0, (0,)),),)), ProgramBound("min", ((Form(1, (0,)),),)), 1)
    references = tuple(
        ProgramReference(each.kind, each.size_bytes, Form(each.address.constant, (0,)), 1, "before", each.indirections)
        for each in program.references
    )
    return Program((once,), references)


def settled(program: Program, start: Position) -> Position | None:
    """The first iteration at or after `start` in the order of execution; None if there is none.

    A position that is itself an iteration stays as it is; where another takes its place the loops are entered anew.
    """
    values: list[int] = []

    def search(depth: int, exact: bool) -> bool:
        if depth == len(program.loops):
            return True
        loop = program.loops[depth]
        first = bound_value(loop.start, values)
        stop = bound_value(loop.stop, values)
        if exact:
            first += max(0, -((first - start.values[depth]) // loop.step)) * loop.step
        for value in range(first, stop, loop.step):
            values.append(value)
            if search(depth + 1, exact and value == start.values[depth]):
                return True
            values.pop()
        return False

    if not search(0, exact=True):
        return None
    same = tuple(values) == tuple(start.values)
    return Position(tuple(values), start.fresh or not same)


class Walk:
    """One sweep over a program, which stops before each inner iteration.

    Args:
        program: with at least one loop.
        start: the iteration to begin with (`settled`); None: the first one.
        execute: is called with the number of a reference and its address, in the order of execution.
        limit: addresses are below it.
    """

    def __init__(
        self, program: Program, start: Position | None, execute: Callable[[int, int], None], limit: int
    ) -> None:
        self._program = program
        self._execute = execute
        self._limit = limit
        self._values: list[int] = []
        self._resume = list(start.values) if start else []
        self._skip_before = start is not None and not start.fresh
        self._inner = self._at(len(program.loops), "before")

    def _at(self, depth: int, place: Literal["before", "after"]) -> list[tuple[int, ProgramReference]]:
        """The references at a place; in the innermost body all are "before"."""
        innermost = depth == len(self._program.loops)
        return [
            (number, reference)
            for number, reference in enumerate(self._program.references)
            if reference.depth == depth and (innermost or reference.place == place)
        ]

    def iterations(self, depth: int = 0) -> Iterator[tuple[int, ...]]:
        """The values of the loop variables, each before its inner iteration is executed."""
        if depth == len(self._program.loops):
            yield tuple(self._values)
            for number, reference in self._inner:
                self._execute(number, address_value(reference, self._values))
            return
        resumed = bool(self._resume)
        if not (resumed and self._skip_before):
            self._between(depth, "before")
        loop = self._program.loops[depth]
        first, stop = bound_value(loop.start, self._values), bound_value(loop.stop, self._values)
        if resumed:
            first = self._resume.pop(0)
        if depth == len(self._program.loops) - 1:
            self._check_inner(first, trips(first, stop, loop.step), loop.step)
        for value in range(first, stop, loop.step):
            self._values.append(value)
            yield from self.iterations(depth + 1)
            self._values.pop()
        self._between(depth, "after")

    def _between(self, depth: int, place: Literal["before", "after"]) -> None:
        """Execute the references between two loops."""
        for number, reference in self._at(depth, place):
            self._check(number, reference, [self._values])
            self._execute(number, address_value(reference, self._values))

    def _check_inner(self, first: int, count: int, step: int) -> None:
        """Refuse an innermost loop in which an address leaves the address space; forms have their extremes at its
        ends."""
        if count:
            ends = [[*self._values, first], [*self._values, first + (count - 1) * step]]
            for number, reference in self._inner:
                self._check(number, reference, ends)

    def _check(self, number: int, reference: ProgramReference, places: list[list[int]]) -> None:
        for values in places:
            low, high = address_range(reference, values)
            if low < 0 or high + reference.size_bytes > self._limit:
                raise address_overflow(number)
