"""The prepared nest at given sizes: trip counts, and the references as streams with strides and shifts.

Everything is counted in *execution order*: τ_ℓ = 0, 1, … is the τ-th iteration of loop ℓ, whatever its start, step and
direction, so that a backward loop is a forward one with mirrored addresses. A reference touches the address
Σ_ℓ stride_ℓ × (τ_ℓ + shift_ℓ) + offset; references of one stream differ in their shifts only, which makes the reuse
vector between two of them the difference of their shifts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from math import floor

from kernmodel.errors import InputError, Note
from kernmodel.formulas.formula import ZERO
from kernmodel.formulas.terms import Number, exact
from kernmodel.source.model import Access
from kernmodel.traffic.conditions.iteration_space import IterationSpace, iteration_space
from kernmodel.traffic.conditions.quantities import NOTHING, ONE, Rate, Size, fixed, product, sized, total
from kernmodel.traffic.conditions.symbolic_nest import (
    Affine,
    Bound,
    ReferenceClass,
    SymbolicLoop,
    SymbolicNest,
    SymbolicReference,
)
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """An array reference within its stream: `shift` in iterations per loop, `offset` in bytes beside the shifts."""

    access: Access
    order: int
    shift: tuple[Size, ...]
    offset: Size


@dataclass(frozen=True, slots=True)
class Stream:
    """References that touch the same cache lines, some iterations apart; the one that touches a line first leads.

    Attributes:
        array: name of the array.
        element_bytes: size of an element.
        strides: bytes per iteration of each loop, outermost first, signed; 0 where the loop does not move it.
        references: in order of first touch.
        start: address of the first of them in the first iteration, in bytes from the start of the array.
    """

    array: str
    element_bytes: int
    strides: tuple[Size, ...]
    references: tuple[Reference, ...]
    start: Number

    @property
    def held_from(self) -> int:
        """The outermost of the innermost loops that do not move it: while they run, it is held in a register."""
        loop = len(self.strides)
        while loop and not self.strides[loop - 1].value:
            loop -= 1
        return loop

    def start_of(self, reference: Reference) -> Number:
        """Address of one of its references in the first iteration, in bytes from the start of the array."""
        first = self.references[0]
        steps = zip(self.strides, reference.shift, first.shift, strict=True)
        ahead = sum(stride.value * (own.value - its.value) for stride, own, its in steps)
        return self.start + ahead + reference.offset.value - first.offset.value

    @property
    def is_written(self) -> bool:
        """Whether any of its references writes."""
        return any(reference.access.kind == "write" for reference in self.references)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What a nest finds lines after that others have left (see `siblings`).

    Attributes:
        array: of which array; "" where the nest itself finds lines of any of them again.
        loop: the shared loop of which one iteration, or two in a row, hold both touches; −1: the whole sequence.
        label: how messages call what left the lines.
        volume: bytes that are touched from all of the earlier nest to all of this one.
        least: bytes that are touched between two touches of a line at least.
        again: whether the earlier touch is in the iteration of the loop before.
        serving: the nests that left the lines, by their numbers.
        partial: whether they left only a part of them; then nothing is counted.
        writes: whether it is a later nest that writes lines which this one has read.
    """

    array: str
    loop: int
    label: str
    volume: Size
    least: Size
    again: bool
    serving: frozenset[int] = frozenset()
    partial: bool = False
    writes: bool = False


@dataclass(frozen=True, slots=True)
class SizedNest:
    """A nest at given sizes.

    Attributes:
        prepared: what it came from.
        variables: the loop variables, outermost first.
        trips: trip count per loop, (stop − start) / step without rounding; a mean where it depends on outer loops.
        space: the iterations, where trip counts or starts follow outer loops.
        streams: in source order of their first reference.
        values: the number of each size symbol.
        notes: what was assumed.
        neighbours: what it finds of the nests that are executed with it; `shared_loops` of its loops are around them.
    """

    prepared: SymbolicNest
    variables: tuple[str, ...]
    trips: tuple[Size, ...]
    streams: tuple[Stream, ...]
    values: Mapping[str, int]
    notes: tuple[Note, ...]
    space: IterationSpace | None = None
    neighbours: tuple[Neighbour, ...] = ()
    shared_loops: int = 0

    def runs(self, depth: int) -> Rate:
        """How often the body of the outermost `depth` loops is executed, per iteration of the nest."""
        if self.space is None:
            return Rate(ONE, product(self.trips[depth:]))
        return Rate(self.space.executions(depth), self.space.executions(len(self.trips)))

    def whole_bytes(self, array: str) -> Size | None:
        """Bytes of an array; None where its extent is not declared."""
        members = next(members for members in self.prepared.classes if members.array == array)
        if members.elements is None:
            return None
        return sized(members.elements, self.values).scaled(members.element_bytes)


@dataclass(frozen=True, slots=True)
class _Space:
    """Per loop: trip count, first value of the variable, and how its start follows the outer loop variables.

    `averaged` are the loops of which a mean trip count is taken, `varying` those whose iterations are known as a set.
    """

    trips: tuple[Size, ...]
    firsts: tuple[Size, ...]
    starts: tuple[Affine, ...]
    averaged: tuple[str, ...] = ()
    varying: tuple[str, ...] = ()


def at_sizes(prepared: SymbolicNest, sizes: Mapping[str, int], line_bytes: int) -> SizedNest:
    """Put numbers in.

    Raises:
        InputError: a size is missing, or a loop makes no iteration.
    """
    values = _values(prepared, sizes)
    iterations = iteration_space(prepared, values)
    space = _space(prepared, values) if iterations is None else _varying_space(prepared, values, iterations)
    streams = [
        stream for members in prepared.classes for stream in _streams(prepared, members, space, values, line_bytes)
    ]
    streams.sort(key=lambda stream: min(reference.order for reference in stream.references))
    variables = tuple(loop.variable for loop in prepared.loops)
    meeting = tuple(dict.fromkeys(one.array for one in streams if _meets(one, space.trips, line_bytes)))
    if iterations is None and meeting:
        iterations = iteration_space(prepared, values, always=True)
    notes = _notes(prepared, space, () if iterations else meeting)
    return SizedNest(prepared, variables, space.trips, tuple(streams), values, notes, iterations)


def steps_to_meet(stream: Stream, trips: Sequence[Size], outer: int, line_bytes: int) -> int:
    """The fewest steps of a loop that lead to the line to which steps of a loop inside of it lead, as one does of both
    in a[i + j][j]; 1 where none do."""
    return min(_meetings(stream, trips, outer, line_bytes), default=1)


def _meetings(stream: Stream, trips: Sequence[Size], outer: int, line_bytes: int) -> Iterator[int]:
    """How many steps of a loop lead to a line to which steps of a loop inside of it do, for each that does."""
    stride, repeats = stream.strides[outer].magnitude, trips[outer].value
    if stride < line_bytes:
        return
    for inner in range(outer + 1, len(trips)):
        other = stream.strides[inner].magnitude
        if other < line_bytes:
            continue
        steps, back = max(1, round(Fraction(other, stride))), max(1, round(Fraction(stride, other)))
        apart = steps * stride - back * other
        if steps < repeats and back < trips[inner].value and -line_bytes < apart < line_bytes:
            yield steps


def _meets(stream: Stream, trips: Sequence[Size], line_bytes: int) -> bool:
    """Whether steps of any two loops lead to the same lines."""
    return any(True for outer in range(len(trips)) for _ in _meetings(stream, trips, outer, line_bytes))


def _values(prepared: SymbolicNest, sizes: Mapping[str, int]) -> dict[str, int]:
    missing = sorted(prepared.nest.symbols.keys() - sizes.keys())
    if missing:
        raise InputError(
            f"no value for {missing[0]}", where=prepared.nest.file, todo=f"give one with -D {missing[0]}=…"
        )
    return {name: sizes[name] for name in prepared.nest.symbols}


def _space(prepared: SymbolicNest, values: Mapping[str, int]) -> _Space:
    trips: list[Size] = []
    means: list[Size] = []
    firsts: list[Size] = []
    starts: list[Affine] = []
    averaged: list[str] = []
    for loop in prepared.loops:
        start, stop = (_choose(bound, means, values) for bound in (loop.start, loop.stop))
        first = _at(start, means, values)
        trip = (_at(stop, means, values) - first).scaled(Fraction(1, loop.step))
        _require_iterations(loop, trip, values)
        trip = trip if trip.value > 1 else ONE
        if any((a - b).terms for a, b in zip(start.coefficients, stop.coefficients, strict=True)):
            averaged.append(loop.variable)
        trips.append(trip)
        means.append(first + (trip - fixed(1)).scaled(Fraction(loop.step, 2)))
        firsts.append(_at(start, firsts, values))
        starts.append(start)
    return _Space(tuple(trips), tuple(firsts), tuple(starts), tuple(averaged))


def _varying_space(prepared: SymbolicNest, values: Mapping[str, int], iterations: IterationSpace) -> _Space:
    """The same where the iterations are known as a set: variables count as they stand, from their smallest value on."""
    counts = [iterations.executions(depth).value for depth in range(len(prepared.loops) + 1)]
    trips = tuple(fixed(Fraction(inner, outer)) for outer, inner in pairwise(counts))
    still = tuple(Affine(ZERO, (ZERO,) * len(prepared.loops)) for _ in prepared.loops)
    return _Space(trips, (NOTHING,) * len(trips), still, varying=iterations.varying)


def _require_iterations(loop: SymbolicLoop, trip: Size, values: Mapping[str, int]) -> None:
    if trip.value > 0:
        return
    given = ", ".join(f"{name} = {value}" for name, value in sorted(values.items()))
    raise InputError(
        f"loop {loop.variable} makes no iteration with {given or 'these bounds'}",
        where=loop.location,
        todo="give larger sizes with -D",
    )


def _choose(bound: Bound, means: Sequence[Size], values: Mapping[str, int]) -> Affine:
    """The part of a bound that counts in the middle of the outer loops."""
    parts = [_choose(part, means, values) if isinstance(part, Bound) else part for part in bound.parts]
    pick = min if bound.pick == "min" else max
    return pick(parts, key=lambda part: _at(part, means, values).value)


def _at(affine: Affine, means: Sequence[Size], values: Mapping[str, int]) -> Size:
    """An affine form at these values of the outer loop variables."""
    result = sized(affine.constant, values)
    for coefficient, mean in zip(affine.coefficients, means, strict=False):
        if coefficient.terms:
            result += sized(coefficient, values) * mean
    return result


def _notes(prepared: SymbolicNest, space: _Space, meeting: Sequence[str]) -> tuple[Note, ...]:
    notes = [
        Note("meeting-loops", f"array {name}: steps of two loops lead to the same lines; that reuse is not counted")
        for name in meeting
    ]
    notes += [
        Note("mean-trip-count", f"the trip count of loop {name} depends on outer loops; its mean is used", "assumption")
        for name in space.averaged
    ]
    patterns: dict[str, int] = {}
    for members in prepared.classes:
        patterns[members.array] = patterns.get(members.array, 0) + 1
    between = "is not counted" if not space.varying else "counts only where they touch the same in one iteration"
    if space.varying:
        loops = " and ".join(space.varying)
        text = f"the iterations of loop {loops} depend on outer loops: volumes and misses are sums over those"
        notes.append(Note("varying-trip-count", text, "assumption"))
    notes += [
        Note("several-index-patterns", f"array {name} is indexed in {count} ways; reuse between them {between}")
        for name, count in patterns.items()
        if count > 1
    ]
    return tuple(notes)


def _streams(
    prepared: SymbolicNest, members: ReferenceClass, space: _Space, values: Mapping[str, int], line_bytes: int
) -> list[Stream]:
    """Divide a class of references into streams: those that never touch a common cache line part."""
    pitches = tuple(sized(pitch, values).scaled(members.element_bytes) for pitch in members.pitches)
    moves = tuple(_moves(form, prepared.loops, space, values) for form in members.references[0].index)
    strides = tuple(
        total(pitch * move[loop] for pitch, move in zip(pitches, moves, strict=True))
        for loop in range(len(prepared.loops))
    )
    # distances between references are iterations within a block, also where they reach beyond it
    within = tuple(_without_blocks(move, space) for move in moves)
    subscripts = _subscripts(pitches, within)
    origin = [subscript.constant(members.references[0].index, values) for subscript in subscripts]
    groups: dict[object, list[Reference]] = {}
    for reference in members.references:
        placed = _place(reference, subscripts, origin, values, line_bytes)
        groups.setdefault(_kinship(placed, strides, line_bytes), []).append(placed)
    streams = []
    for group in groups.values():
        ordered = tuple(sorted(group, key=_first_touch))
        start = _start(members, ordered[0], space, values)
        streams.append(Stream(members.array, members.element_bytes, strides, ordered, start))
    return streams


def _start(members: ReferenceClass, leader: Reference, space: _Space, values: Mapping[str, int]) -> Number:
    """Address of a reference in the first iteration, in bytes from the start of its array."""
    index = next(reference.index for reference in members.references if reference.order == leader.order)
    elements = total(
        _at(form, space.firsts, values) * sized(pitch, values)
        for form, pitch in zip(index, members.pitches, strict=True)
    )
    return elements.value * members.element_bytes


def _moves(form: Affine, loops: Sequence[SymbolicLoop], space: _Space, values: Mapping[str, int]) -> tuple[Size, ...]:
    """How an index moves per iteration of each loop, where inner starts follow outer variables (tiled nests)."""
    coefficients = [sized(c, values) for c in form.coefficients]
    for inner in reversed(range(len(loops))):
        if coefficients[inner].value:
            for outer, follows in enumerate(space.starts[inner].coefficients[:inner]):
                if follows.terms:
                    coefficients[outer] += coefficients[inner] * sized(follows, values)
    # a loop that runs once moves nothing
    repeats = (trip.value > 1 for trip in space.trips)
    return tuple(
        c.scaled(loop.step) if again else NOTHING for c, loop, again in zip(coefficients, loops, repeats, strict=True)
    )


def _without_blocks(move: tuple[Size, ...], space: _Space) -> tuple[Size, ...]:
    """How an index moves with each loop, with none of the loops over blocks of another loop that moves it."""
    blocks = {
        outer
        for inner, start in enumerate(space.starts)
        for outer, follows in enumerate(start.coefficients[:inner])
        if follows.terms and move[inner].value and move[outer].value == move[inner].value * space.trips[inner].value
    }
    return tuple(NOTHING if loop in blocks else step for loop, step in enumerate(move))


@dataclass(frozen=True, slots=True)
class _Subscript:
    """A dimension of an array, or several that a loop moves at the same time, which are one subscript in bytes.

    Attributes:
        dimensions: which ones, with the factor of each in the subscript.
        pitch: bytes per unit of the subscript.
        move: units per iteration of each loop.
    """

    dimensions: tuple[tuple[int, Size], ...]
    pitch: Size
    move: tuple[Size, ...]

    def constant(self, index: Sequence[Affine], values: Mapping[str, int]) -> Size:
        """What does not depend on loops."""
        return total(factor * sized(index[dimension].constant, values) for dimension, factor in self.dimensions)


def _subscripts(pitches: Sequence[Size], moves: Sequence[tuple[Size, ...]]) -> tuple[_Subscript, ...]:
    """The dimensions as subscripts of which no two are moved by one loop: a step of it is a step in all of them."""
    groups: list[list[int]] = []
    for dimension, move in enumerate(moves):
        movers = [loop for loop, step in enumerate(move) if step.value]
        coupled = [group for group in groups if any(moves[other][loop].value for other in group for loop in movers)]
        groups = [group for group in groups if group not in coupled]
        groups.append([*chain(*coupled), dimension])
    return tuple(_subscript(group, pitches, moves) for group in groups)


def _subscript(dimensions: list[int], pitches: Sequence[Size], moves: Sequence[tuple[Size, ...]]) -> _Subscript:
    """One dimension in its own unit, in which steps are numbers where the pitch is a formula; several in bytes."""
    first, *others = dimensions
    if not others:
        return _Subscript(((first, ONE),), pitches[first], moves[first])
    steps = zip(*([step * pitches[dimension] for step in moves[dimension]] for dimension in dimensions), strict=True)
    return _Subscript(tuple((each, pitches[each]) for each in dimensions), ONE, tuple(total(each) for each in steps))


def _place(
    reference: SymbolicReference,
    subscripts: Sequence[_Subscript],
    origin: Sequence[Size],
    values: Mapping[str, int],
    line_bytes: int,
) -> Reference:
    """Express the constants of an index as shifts of the loops that move its subscripts; what is left is the offset.

    Shifts count from the `origin`: the constant of each subscript in the first reference of the class.
    """
    shift = [NOTHING] * len(subscripts[0].move) if subscripts else []
    offset = NOTHING
    for subscript, base in zip(subscripts, origin, strict=True):
        move, pitch, constant = subscript.move, subscript.pitch, subscript.constant(reference.index, values)
        movers = sorted(
            (loop for loop, step in enumerate(move) if step.value), key=lambda loop: (-move[loop].magnitude, -loop)
        )
        if not movers:
            offset += constant * pitch
            continue
        rest = constant - base
        last = move[movers[-1]]
        far = (last * pitch).magnitude >= line_bytes
        if far and last.formula.is_constant and base.formula.is_constant:
            rest += fixed(base.value % last.magnitude)
        for loop in movers:
            steps = _steps(rest, move[loop], last=loop == movers[-1], far=far)
            shift[loop] += steps
            rest -= steps * move[loop]
        offset += rest * pitch
    return Reference(reference.access, reference.order, tuple(shift), offset)


def _steps(distance: Size, step: Size, *, last: bool, far: bool) -> Size:
    """How many steps make up a distance: for the last (smallest) step, if that is a number, exactly, else the nearest.

    Of a last step to other lines only whole ones: what is left is a place within it, which may lie in the same line.
    """
    if not last or not step.formula.is_constant:
        return fixed(round(Fraction(distance.value, step.value)))
    if far and distance.formula.is_constant:
        return fixed(floor(Fraction(distance.value, step.magnitude)) * (1 if step.value > 0 else -1))
    return distance.scaled(Fraction(1, step.value))


def _kinship(reference: Reference, strides: Sequence[Size], line_bytes: int) -> object:
    """Equal for references that may touch the same cache line: same phase in long strides, same line of the offset."""
    long = [s.magnitude >= line_bytes for s in strides]
    phases = tuple(exact(d.value - floor(d.value)) if far else 0 for d, far in zip(reference.shift, long, strict=True))
    moving = [s.magnitude for s in strides if s.value]
    if any(phases):
        return phases, reference.offset.value
    block = min(moving) if moving and min(moving) < line_bytes else line_bytes
    return phases, reference.offset.value // block


def _first_touch(reference: Reference) -> tuple[object, ...]:
    """Sort key: the larger shift touches an element in an earlier iteration; within one, source order."""
    return (*(-d.value for d in reference.shift), reference.order)
