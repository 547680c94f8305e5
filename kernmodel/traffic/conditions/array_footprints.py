"""What references touch of an array in a part of a nest: sets of elements, and the cache lines under them.

The elements that one reference touches are the image of a set of iterations under its index. Where references touch
nearly the same, one set around both stands for them, if it has no more lines than both together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, gcd

from kernmodel.formulas.terms import Number, exact
from kernmodel.traffic.conditions.affine_sets import (
    AffineSet,
    Linear,
    Piece,
    bound_on,
    total_of,
    variable,
    without,
)
from kernmodel.traffic.conditions.cache_sets import StridedFootprint
from kernmodel.traffic.conditions.quantities import Size, fixed
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array lies in memory.

    Attributes:
        name: of the array.
        element_bytes: size of an element.
        pitches: bytes from one index to the next, per dimension.
        line_bytes: length of a cache line.
    """

    name: str
    element_bytes: int
    pitches: tuple[Size, ...]
    line_bytes: int


@dataclass(frozen=True, slots=True)
class _Rows:
    """Stretches of memory under the elements of a footprint.

    Attributes:
        points: the elements, or stretches of them that follow one another; the last variable runs through a row.
        step: bytes of lines for each of them.
        ends: bytes of whole lines under a row beyond `step` for each.
        lone: whether `step` is that of lines, since each element has its own.
    """

    points: AffineSet
    step: Size
    ends: Number
    lone: bool = False


@dataclass(frozen=True, eq=False)
class ArrayFootprint:
    """Elements of an array that are touched while loops run, those further out standing still.

    Attributes:
        layout: of the array.
        scales: per dimension, the index is this many times its variable (loops with steps)…
        offsets: …and this, in the loops that stand still.
        elements: over the variables of the loops that stand still, then one per dimension.
        parameters: how many loops stand still.
        values: the number of each size symbol.
    """

    layout: Layout
    scales: tuple[int, ...]
    offsets: tuple[Linear, ...]
    elements: AffineSet
    parameters: int
    values: Mapping[str, int]

    def bytes_touched(self, *, summed: bool) -> tuple[Piece, ...]:
        """Bytes of the cache lines under the elements: of one visit, as pieces over the loops that stand still; or of
        all visits together."""
        kept, rows = 0 if summed else self.parameters, self._rows
        pieces = _scaled(rows.points.count(kept), rows.step)
        return pieces + _scaled(rows.points.outer.count(kept), fixed(rows.ends)) if rows.ends else pieces

    @cached_property
    def total(self) -> Size:
        """Bytes of all visits together."""
        return total_of(self.bytes_touched(summed=True), self.values)

    @cached_property
    def typical(self) -> Number:
        """Bytes of one visit in the middle of the loops that stand still."""
        outer = self.elements.onto(self.parameters)
        return number_at(self.bytes_touched(summed=False), outer.middle, self.values)

    def strided(self, volume: Size) -> StridedFootprint:
        """The stretches of memory under it, with the bytes of lines at most, and as long as they get."""
        rows = self._rows
        *outside, last = rows.points.variables[self.parameters :]
        stretch = self.layout.element_bytes if rows.lone else int(rows.step.value) * self._count(rows.points, last)
        counts = {name: self._count(rows.points, name) for name in (*outside, *((last,) if rows.lone else ()))}
        steps = {name: int(self._step(number).value) for number, name in enumerate(self._dimensions)}
        repeats = tuple((steps[name], count) for name, count in counts.items() if count > 1)
        return StridedFootprint(self.layout.name, volume, (0,), max(1, stretch), repeats)

    def _count(self, points: AffineSet, name: str) -> int:
        """How many values a dimension's variable takes at most while the loops further out stand still."""
        alone = points.alone(name, self.parameters)
        low, high = nearest_bounds(alone, name)
        least = alone.outer.least((low - high).plus(-1))
        return max(1, ceil(-least)) if least is not None else 1

    @property
    def _dimensions(self) -> tuple[str, ...]:
        return self.elements.variables[self.parameters :]

    @cached_property
    def _rows(self) -> _Rows:
        names, line = self._dimensions, self.layout.line_bytes
        moving = [number for number, name in enumerate(names) if self._fixed_at(name) is None]
        number = moving.pop() if moving else len(names) - 1
        name, step, width = names[number], self._step(number), fixed(self.layout.element_bytes)
        points = self.elements.ending_with(name)
        low, high = nearest_bounds(points, name)
        place = self._address()
        first, end = place.with_variable(name, low), place.with_variable(name, high).plus(width.value)
        hole = self._hole(points, number, moving, step, width)
        if step.value >= line and (hole is None or hole >= line):
            ends = self._ends(place, place.plus(width.value))
            return _Rows(points, fixed(width.value + ends), 0, lone=True)
        contiguous = False
        while hole is not None and hole < line:
            contiguous = True
            if not moving or self._step(moving[-1]).value < step.value:
                break
            number = moving.pop()
            name, width, step = names[number], self._step(number) - fixed(max(hole, 0)), self._step(number)
            points = points.outer.ending_with(name)
            low, high = nearest_bounds(points, name)
            first, end = first.with_variable(name, low), end.with_variable(name, high)
            hole, contiguous = self._hole(points, number, moving, step, width), False
        ends = 0 if contiguous else exact(width.value - step.value + self._ends(first, end))
        return _Rows(points, step, ends)

    def _step(self, number: int) -> Size:
        return self.layout.pitches[number].scaled(self.scales[number])

    def _hole(self, points: AffineSet, number: int, moving: Sequence[int], step: Size, width: Size) -> Number | None:
        """The most bytes that a row along a dimension leaves of the way to the next; None without a next one."""
        further = moving[-1] if moving else number - 1
        if further < 0:
            return None
        # a row ends at the first of its bounds
        lengths = (high - low for low, high in product(*points.bounds(points.variables[-1])))
        covered = (length.scaled(step.value).plus(width.value - self._step(further).value) for length in lengths)
        least = [one for one in map(points.outer.least, covered) if one is not None]
        return -min(least) if least else None

    def _fixed_at(self, name: str) -> Linear | None:
        """Where an index stands while the loops further out stand still; None if it moves."""
        points = self.elements.alone(name, self.parameters)
        low, high = nearest_bounds(points, name)
        least = points.outer.least(low - high)
        return low if least is not None and least > -1 else None

    def _address(self) -> Linear:
        """Bytes from the array's beginning to an element."""
        form = Linear({}, fixed(0))
        for number, name in enumerate(self._dimensions):
            own = self._fixed_at(name) or variable(name)
            form += own.scaled(self._step(number).value)
            form += self.offsets[number].scaled(self.layout.pitches[number].value)
        return form

    def _ends(self, first: Linear, end: Linear) -> Number:
        """Bytes of the lines at both ends of a stretch that it does not cover, on average over where it lies."""
        line = self.layout.line_bytes
        return exact(_mean_remainder(first, line) + _mean_remainder(end.scaled(-1), line))


def _mean_remainder(form: Linear, line: int) -> Number:
    """The mean of a form modulo the length of a line, where its variables take all values alike."""
    grain = line
    for coefficient in form.terms.values():
        grain = gcd(grain, int(coefficient)) if coefficient == int(coefficient) else 1
    return form.constant.value % grain + exact(Fraction(line - grain, 2))


def nearest_bounds(points: AffineSet, name: str) -> tuple[Linear, Linear]:
    """The bounds of the last variable that count in the middle of the set."""
    low, high = points.limits(name)
    return low.form, high.form


def _scaled(pieces: Iterable[Piece], factor: Size) -> tuple[Piece, ...]:
    return tuple(Piece(piece.where, piece.formula * factor.formula) for piece in pieces)


def number_at(pieces: Iterable[Piece], point: Mapping[str, Number], values: Mapping[str, int]) -> Number:
    """The sum of the pieces in which a point lies."""
    numbers: dict[str, Number] = {**values, **point}
    result: Number = 0
    for piece in pieces:
        if piece.where.has(point):
            result += piece.formula.value(numbers)
    return exact(result)


def array_footprint(
    layout: Layout, index: Sequence[Linear], iterations: AffineSet, parameters: int, values: Mapping[str, int]
) -> ArrayFootprint:
    """The elements that a reference touches in a set of iterations while the outermost `parameters` loops stand still.

    Args:
        layout: of the array.
        index: of the reference per dimension, in the variables of the iterations.
        iterations: the iterations, loops from the outermost on.
        parameters: how many loops stand still.
        values: the number of each size symbol.
    """
    kept, running = iterations.variables[:parameters], list(iterations.variables[parameters:])
    constraints, forms = list(iterations.constraints), list(index)
    dimensions, scales, offsets = [f"#{number}" for number in range(len(index))], list[int](), list[Linear]()
    for number, name in enumerate(dimensions):
        scale = gcd(*(int(index[number].terms.get(loop, 0)) for loop in iterations.variables[parameters:])) or 1
        scales.append(scale)
        offsets.append(_offset(index[number], kept, scale))
        equal = (forms[number] - offsets[-1]).scaled(Fraction(1, scale)) - variable(name)
        smallest = sorted((abs(equal.terms[loop]), loop) for loop in running if loop in equal.terms)[:1]
        if not smallest:
            constraints += [equal, equal.scaled(-1)]
            continue
        solved = smallest[0][1]
        running.remove(solved)
        value = bound_on(equal, solved)
        constraints = [constraint.with_variable(solved, value) for constraint in constraints]
        forms = [form.with_variable(solved, value) for form in forms]
    remaining = tuple(constraints)
    for loop in reversed(running):
        remaining = without(remaining, loop)
    elements = iterations.like((*kept, *dimensions), remaining)
    return ArrayFootprint(layout, tuple(scales), tuple(offsets), elements, parameters, values)


def _offset(form: Linear, names: Sequence[str], scale: int) -> Linear:
    """What of an index is no multiple of a scale, so far as the loops that stand still and a constant make it up."""
    apart = {name: form.terms[name] for name in names if form.terms.get(name, 0) % scale}
    return Linear(apart, fixed(form.constant.value % scale))


def united(footprints: Iterable[ArrayFootprint]) -> list[ArrayFootprint]:
    """Images of one array, those together that touch nearly the same."""
    groups: list[ArrayFootprint] = []
    for footprint in footprints:
        new = footprint
        for other in list(groups):
            around = joined(other, new)
            if around is not None:
                groups.remove(other)
                new = around
        groups.append(new)
    return groups


def joined(one: ArrayFootprint, other: ArrayFootprint) -> ArrayFootprint | None:
    """One footprint around both; None if it touches more lines than both."""
    if one.scales != other.scales or not _in_step(one, other):
        return None
    around = [
        relaxed
        for footprint, beside in ((one, other), (other, one))
        for constraint in footprint.elements.constraints
        if (relaxed := _relaxed(constraint, beside)) is not None
    ]
    elements = one.elements.like(one.elements.variables, around)
    if any(not all(elements.bounds(name)) for name in elements.variables):
        return None
    both = ArrayFootprint(one.layout, one.scales, one.offsets, elements, one.parameters, one.values)
    return both if both.typical <= one.typical + other.typical else None


def _in_step(one: ArrayFootprint, other: ArrayFootprint) -> bool:
    """Whether indices with steps go through the same values, or such that share lines."""
    layout = one.layout
    return all(
        a.terms == b.terms and ((a - b).constant * pitch).magnitude < layout.line_bytes
        for a, b, pitch in zip(one.offsets, other.offsets, layout.pitches, strict=True)
    )


def _relaxed(constraint: Linear, footprint: ArrayFootprint) -> Linear | None:
    """A constraint moved until it holds for a footprint too; None where no number of steps is enough."""
    least = footprint.elements.least(constraint)
    if least is not None and least >= 0:
        return constraint
    points, form = footprint.elements, constraint
    while len(points.variables) > footprint.parameters:
        name = points.variables[-1]
        if name in form.terms:
            low, high = nearest_bounds(points, name)
            form = form.with_variable(name, low if form.terms[name] > 0 else high)
        points = points.outer
    return constraint - form
