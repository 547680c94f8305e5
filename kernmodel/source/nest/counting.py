"""Exact iteration counts and index ranges of a nest at given sizes, without walking through all iterations.

Loops whose bounds do not depend on one another (directly or through others) multiply, so the nest falls into groups. In
a group the iterations inside a loop are a polynomial in its variable where bounds are affine and every loop inside has
at least its trip count of 0: their sum is that of a few values. Elsewhere the variables that inner bounds use are
enumerated, and the innermost loop is summed in closed form where it is triangular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import comb, prod

from kernmodel.formulas.formula import Formula
from kernmodel.source.model import Loop
from kernmodel.value_types import dataclass

Environment = dict[str, int]
Bound = Callable[[Environment], int]

ENUMERATION_LIMIT = 1_000_000
"""Most values of loop variables that are enumerated for one count (about a second)."""

RANGE_LIMIT = 100_000
"""Most values of loop variables that are enumerated for one index range: a kernel asks for several of them."""


class TooManyValues(Exception):  # noqa: N818  # a signal within the package, turned into a SourceError by `sizes`
    """An exact answer would need the enumeration of more values than the limits allow."""


@dataclass(frozen=True, slots=True)
class NumericLoop:
    """A loop with numbers for the sizes.

    Attributes:
        start, stop: bounds as functions of the outer variables.
        uses: the outer loop variables that the bounds use.
        slope: coefficients of the outer variables in (stop − start), with the rest under ""; None where a minimum or
            maximum stands in the way.
        first: the same of the start.
    """

    variable: str
    start: Bound
    stop: Bound
    step: int
    uses: frozenset[str]
    slope: Mapping[str, int] | None
    first: Mapping[str, int] | None

    def values(self, environment: Environment) -> range:
        """The values that the variable takes."""
        return range(self.start(environment), self.stop(environment), self.step)


def numeric_loops(loops: Sequence[Loop], sizes: Mapping[str, int]) -> tuple[NumericLoop, ...]:
    """The loops with the sizes put in."""
    return tuple(_numeric_loop(loop, [outer.variable for outer in loops[:k]], sizes) for k, loop in enumerate(loops))


def _numeric_loop(loop: Loop, outer: Sequence[str], sizes: Mapping[str, int]) -> NumericLoop:
    start, stop = put_in(loop.start, sizes, outer), put_in(loop.stop, sizes, outer)
    slope, first = _coefficients(stop - start, outer), _coefficients(start, outer)
    uses = frozenset[str](start.free_symbols | stop.free_symbols)
    return NumericLoop(loop.variable, _function(start), _function(stop), loop.step, uses, slope, first)


def _coefficients(form: Formula, variables: Sequence[str]) -> dict[str, int] | None:
    """Those of an affine form in the variables, with its constant under ""; None for others."""
    parts = form.linear(variables)
    if parts is None or not parts[1].is_integer:
        return None
    return {name: int(factor) for name, factor in parts[0].items()} | {"": int(parts[1])}


def put_in(formula: Formula, sizes: Mapping[str, int], variables: Iterable[str]) -> Formula:
    """The formula with numbers for the sizes (every symbol that is not one of the loop variables)."""
    return formula.substitute({name: sizes[name] for name in formula.free_symbols - set(variables)})


def _function(bound: Formula) -> Bound:
    if bound.is_integer:
        number = int(bound)
        return lambda environment: number
    return lambda environment: int(bound.value(environment))


# Counting


def count_iterations(loops: Sequence[NumericLoop]) -> int:
    """How often the body of the innermost of these loops is executed.

    Raises:
        TooManyValues: the bounds depend on one another so deeply that the count would take too long.
    """
    return prod(_Count(group).total(0, {}) for group in _groups(loops))


def iterations_inside(loops: Sequence[NumericLoop], depth: int, environment: Environment) -> int:
    """How often the innermost body is executed within one iteration of the loops around, given their variables.

    Raises:
        TooManyValues: as `count_iterations`.
    """
    return _Count(loops).total(depth, environment)


def _groups(loops: Sequence[NumericLoop]) -> list[list[NumericLoop]]:
    """The loops in groups that do not depend on one another, each with the outermost first."""
    groups: list[list[NumericLoop]] = []
    for loop in loops:
        mine = [group for group in groups if any(outer.variable in loop.uses for outer in group)]
        groups = [group for group in groups if group not in mine]
        order = {outer.variable: k for k, outer in enumerate(loops)}
        merged = sorted((outer for group in mine for outer in group), key=lambda outer: order[outer.variable])
        groups.append([*merged, loop])
    return groups


class _Count:
    """Counts the iterations of one group; what inner loops yield is remembered per value of the variables they use."""

    def __init__(self, loops: Sequence[NumericLoop]) -> None:
        self.loops = loops
        self.inner_uses = [frozenset().union(*(loop.uses for loop in loops[k:])) for k in range(len(loops) + 1)]
        self.deciding = [
            [outer.variable for outer in loops[:k] if outer.variable in uses] for k, uses in enumerate(self.inner_uses)
        ]
        self.known: dict[tuple[int, ...], int] = {}
        self.enumerated = 0

    def total(self, depth: int, environment: Environment) -> int:
        """Iterations of the loops from `depth` on, given the variables of those outside."""
        if depth == len(self.loops):
            return 1
        key = (depth, *(environment[name] for name in self.deciding[depth]))
        if key not in self.known:
            self.known[key] = self._count(depth, environment)
        return self.known[key]

    def _count(self, depth: int, environment: Environment) -> int:
        loop = self.loops[depth]
        values = loop.values(environment)
        if loop.variable not in self.inner_uses[depth + 1]:
            return len(values) * self.total(depth + 1, environment) if values else 0
        if depth + 2 == len(self.loops):
            series = _triangular(loop.variable, values, self.loops[depth + 1], environment)
            if series is not None:
                return series
        degree = len(self.loops) - depth - 1
        if len(values) > degree + 1 and self._is_polynomial(depth, values, environment):
            inside = [self.total(depth + 1, environment | {loop.variable: value}) for value in values[: degree + 1]]
            return _sum_of_polynomial(inside, len(values))
        self.enumerated += len(values)
        if self.enumerated > ENUMERATION_LIMIT:
            raise TooManyValues
        return sum(self.total(depth + 1, environment | {loop.variable: value}) for value in values)

    def _is_polynomial(self, depth: int, values: range, environment: Environment) -> bool:
        """Whether the iterations inside a loop are a polynomial in its variable: all trip counts inside are affine and
        nowhere negative."""
        inside = self.loops[depth + 1 :]
        if any(loop.slope is None or loop.first is None or abs(loop.step) != 1 for loop in inside):
            return False
        own = self.loops[depth].variable
        return all(
            _least_trips(inside[:number], loop, own, values, environment) >= 0 for number, loop in enumerate(inside)
        )


def _least_trips(
    around: Sequence[NumericLoop], loop: NumericLoop, own: str, values: range, environment: Environment
) -> int:
    """The least trip count of a loop, before it is taken as 0 where it is negative.

    Each variable of the loops around it, the innermost first, stands at that end of its range where the count is less;
    `own`, the variable of the loop around these, takes the values.
    """
    form = {name: loop.step * factor for name, factor in (loop.slope or {}).items()}
    for outer in reversed(around):
        factor = form.pop(outer.variable, 0)
        for end in (outer.first, *(() if factor * outer.step > 0 else (outer.slope, {"": -outer.step}))):
            for name, coefficient in (end or {}).items():
                form[name] = form.get(name, 0) + factor * coefficient
    factor, known = form.pop(own, 0), {"": 1, **environment}
    return min(factor * values[0], factor * values[-1]) + sum(f * known[name] for name, f in form.items())


def _sum_of_polynomial(first: list[int], count: int) -> int:
    """Σ of a polynomial over 0 … count − 1, of which the first values are given, one more than its degree (Newton)."""
    result, differences = 0, first
    for order in range(len(first)):
        result += differences[0] * comb(count, order + 1)
        differences = [after - before for before, after in pairwise(differences)]
    return result


def _triangular(own: str, values: range, inner: NumericLoop, environment: Environment) -> int | None:
    """Σ over the `values` of variable `own` of an inner loop's iterations; None unless step ±1 and affine bounds.

    The iterations are max(0, a·v + b): an arithmetic series over those v for which they are positive.
    """
    if inner.slope is None or abs(inner.step) != 1:
        return None
    a = inner.step * inner.slope.get(own, 0)
    b = inner.step * sum(f * environment.get(name, 1) for name, f in inner.slope.items() if name != own)
    # the k-th value gives a·(start + k·step) + b iterations, a line in k that is positive on one side of its zero
    slope, constant = a * values.step, a * values.start + b
    low, high = 0, len(values) - 1
    if slope > 0:
        low = max(low, -constant // slope + 1)
    elif slope < 0:
        high = min(high, (constant - 1) // -slope)
    elif constant <= 0:
        return 0
    terms = max(0, high - low + 1)
    return terms * constant + slope * (low + high) * terms // 2


# Index ranges


def index_range(coefficients: Mapping[str, int], constant: int, loops: Sequence[NumericLoop]) -> tuple[int, int] | None:
    """Smallest and largest value of `Σ coefficient × variable + constant` in the nest, None if it is never reached.

    Raises:
        TooManyValues: as `count_iterations`.
    """
    low = high = constant
    for group in _groups(loops):
        found = _group_range(coefficients, group)
        if found is None:
            return None
        low, high = low + found[0], high + found[1]
    return low, high


def _group_range(coefficients: Mapping[str, int], loops: Sequence[NumericLoop]) -> tuple[int, int] | None:
    used = frozenset().union(*(loop.uses for loop in loops))
    lowest: int | None = None
    highest: int | None = None
    for count, (low, high) in enumerate(_ranges(coefficients, loops, used, {})):
        if count > RANGE_LIMIT:
            raise TooManyValues
        lowest = low if lowest is None else min(low, lowest)
        highest = high if highest is None else max(high, highest)
    return None if lowest is None or highest is None else (lowest, highest)


def _ranges(
    coefficients: Mapping[str, int], loops: Sequence[NumericLoop], used: frozenset[str], environment: Environment
) -> Iterator[tuple[int, int]]:
    """Ranges whose union covers the group; only variables that bounds use are enumerated."""
    if not loops:
        yield 0, 0
        return
    loop, inner = loops[0], loops[1:]
    values = loop.values(environment)
    if not values:
        return
    factor = coefficients.get(loop.variable, 0)
    if loop.variable in used:
        for value in values:
            for low, high in _ranges(coefficients, inner, used, environment | {loop.variable: value}):
                yield low + factor * value, high + factor * value
    else:
        ends = (factor * values[0], factor * values[-1])
        for low, high in _ranges(coefficients, inner, used, environment):
            yield low + min(ends), high + max(ends)
