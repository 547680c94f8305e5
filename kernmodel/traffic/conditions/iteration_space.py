"""The iterations of a nest as a set of points, for nests in which trip counts follow outer loops (triangles, bands).

A loop's variable is taken as it stands in the source where its step is 1 or −1; where it is another, iterations are
counted. A reference that a loop does not move stands still, wherever the loops inside begin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import gcd, lcm

from kernmodel.traffic.conditions.affine_sets import AffineSet, Linear, total_of, variable
from kernmodel.traffic.conditions.quantities import Size, sized
from kernmodel.traffic.conditions.symbolic_nest import Affine, Bound, SymbolicLoop, SymbolicNest
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class IterationSpace:
    """The iterations of a nest at given sizes.

    Attributes:
        points: one variable per loop, outermost first.
        indices: per array reference (by `order`), its index per dimension as a form of those variables.
        periods: per loop, after how many of its iterations the loops inside come to the same values again (2 for `j` in
            `i = j; i < N; i += 2`).
        varying: the source's names of the loops whose bounds depend on outer loops.
        values: the number of each size symbol.
    """

    points: AffineSet
    indices: Mapping[int, tuple[Linear, ...]]
    periods: tuple[int, ...]
    varying: tuple[str, ...]
    values: Mapping[str, int]

    def executions(self, depth: int) -> Size:
        """How often the body of the outermost `depth` loops is executed in a sweep."""
        return self.count(self.points.onto(depth))

    def count(self, points: AffineSet) -> Size:
        """The points of a set of loop variables."""
        return total_of(points.count(0), self.values)


def iteration_space(
    prepared: SymbolicNest, values: Mapping[str, int], *, always: bool = False
) -> IterationSpace | None:
    """The iterations of a nest whose trip counts or starts follow outer loops; None for others, unless it is `always`
    asked for.

    None too where they follow them in a way that is not covered: blocks of loops (`i = ii; i < ii + 16`), coefficients
    that are sizes, a minimum where the greatest counts.
    """
    names = tuple(f"@{loop.variable}" for loop in prepared.loops)  # sizes may be called like loops
    reader = _Reader(names, values)
    varying = tuple(loop.variable for loop in prepared.loops if loop.start.outer_loops() | loop.stop.outer_loops())
    if not (varying or always) or _is_blocked(prepared.loops):
        return None
    try:
        for loop, name in zip(prepared.loops, names, strict=True):
            reader.enter(loop, name)
        indices = {
            reference.order: tuple(reader.form(part) for part in reference.index)
            for members in prepared.classes
            for reference in members.references
        }
    except _NotCoveredError:
        return None
    points = AffineSet(names, reader.constraints)
    return None if points.is_empty else IterationSpace(points, indices, tuple(reader.periods), varying, values)


class _NotCoveredError(Exception):
    """Bounds or indices that are no affine forms with numbers for coefficients."""


class _Reader:
    """Reads the loops of a nest from the outermost on."""

    def __init__(self, names: Sequence[str], values: Mapping[str, int]) -> None:
        self.names = names
        self.values = values
        self.constraints: list[Linear] = []
        self.periods: list[int] = [1] * len(names)
        self._variables: list[Linear] = []

    def enter(self, loop: SymbolicLoop, name: str) -> None:
        """Take in a loop's bounds."""
        starts, stops = self._parts(loop.start, loop.step > 0), self._parts(loop.stop, loop.step < 0)
        if abs(loop.step) == 1:
            own, low, high = variable(name), starts, [stop.plus(-1) for stop in stops]
            if loop.step < 0:
                low, high = [stop.plus(1) for stop in stops], starts
            self._variables.append(own)
            self.constraints += [own - bound for bound in low] + [bound - own for bound in high]
            return
        if len(starts) > 1:
            raise _NotCoveredError
        count = variable(name)
        for outer, other in enumerate(self.names):
            period = abs(loop.step) // gcd(loop.step, int(starts[0].terms.get(other, 0)))
            self.periods[outer] = lcm(self.periods[outer], period if other in starts[0].terms else 1)
        self._variables.append(starts[0] + count.scaled(loop.step))
        toward = 1 if loop.step > 0 else -1
        lengths = [(stop - starts[0]).scaled(toward).plus(-1) for stop in stops]
        self.constraints += [count, *(length - count.scaled(abs(loop.step)) for length in lengths)]

    def form(self, affine: Affine) -> Linear:
        """An affine form of the loop variables."""
        result = Linear({}, sized(affine.constant, self.values))
        for coefficient, own in zip(affine.coefficients, self._variables, strict=False):
            if coefficient.terms:
                if not coefficient.is_constant:
                    raise _NotCoveredError
                result += own.scaled(coefficient.terms[()])
        return result

    def _parts(self, bound: Bound, is_lower: bool) -> list[Linear]:
        """The forms of a bound, all of which hold."""
        if len(bound.parts) > 1 and bound.pick != ("max" if is_lower else "min"):
            raise _NotCoveredError
        forms = []
        for part in bound.parts:
            forms += self._parts(part, is_lower) if isinstance(part, Bound) else [self.form(part)]
        return forms


def _is_blocked(loops: Sequence[SymbolicLoop]) -> bool:
    """Whether a loop runs through one block in each iteration of an outer loop, whose step is the block's length, or
    more: then blocks have gaps between them, as halves of them in the butterflies of a Fourier transform."""
    return any(
        abs(loops[outer].step) > abs(loop.step) and _ends_with(loop, outer, abs(loops[outer].step))
        for loop in loops
        for outer in loop.start.outer_loops()
    )


def _ends_with(loop: SymbolicLoop, outer: int, length: int) -> bool:
    """Whether a loop's stop is its start and at most the length of a block, or less at the border."""
    both = product(loop.start.forms(), loop.stop.forms())
    pairs = ((a, b) for a, b in both if a.coefficients[outer].terms and b.coefficients[outer].terms)
    apart = (b.constant - a.constant for a, b in pairs if a.coefficients == b.coefficients)
    return any(one.is_constant and 1 <= abs(float(one)) <= length + 1 for one in apart)
