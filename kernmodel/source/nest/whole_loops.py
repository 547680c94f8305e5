"""What a step of a loop executes of the loops within it, for compilers that unroll these entirely.

Of

    for (int n = 0; n < N; ++n)
        for (int i = 0; i < 3; ++i)
            for (int j = i; j < 3; ++j)

a step of n executes the points (i, j) = (0, 0), (0, 1), (0, 2), (1, 1), (1, 2) and (2, 2), and one of i up to three
iterations of j, of which the first one is one further at each step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernmodel.source.model import LoopNest
from kernmodel.source.nest.counting import (
    Environment,
    NumericLoop,
    TooManyValues,
    iterations_inside,
    numeric_loops,
)
from kernmodel.value_types import dataclass

MOST_POINTS = 2048
"""Executions of the innermost body up to which compilers may write out a step, with vectors of 64 bytes."""

_MOST_PLACES = 256
"""Places of the loops around at which the length of a step is looked at, evenly spread."""


@dataclass(frozen=True, slots=True)
class WholeStep:
    """What a step of a loop executes of some loops within it.

    Attributes:
        variables: of these loops, outermost first, up to the innermost of the nest.
        points: of each execution of the innermost body, how many of its steps each variable is from its first value.
        alike: every step executes these; else other steps execute fewer, and these are those of the longest.
        first: values of the variables of these loops and of those around that decide their bounds, where it begins.
        ahead: steps by which each loop begins further at the next step; loops that begin where they did are left out.
    """

    variables: tuple[str, ...]
    points: tuple[tuple[int, ...], ...]
    alike: bool
    first: Mapping[str, int]
    ahead: Mapping[str, int]


def whole_steps(nest: LoopNest, sizes: Mapping[str, int], around: int) -> Iterator[WholeStep]:
    """What a step of the loop number `around` (outermost: 0) executes of the innermost loop, of the two innermost ones,
    and so on up to all within it; none of more than `MOST_POINTS`, or with bounds that are not affine."""
    loops = numeric_loops(nest.loops, sizes)
    for number in range(len(loops) - 1, around, -1):
        found = _whole_step(loops[:number], loops[number:], loops[around].variable, nest)
        if found is None:
            return
        yield found


def _whole_step(
    outside: Sequence[NumericLoop], inside: Sequence[NumericLoop], variable: str, nest: LoopNest
) -> WholeStep | None:
    """None where it is too long, empty, or begins at places that cannot be told."""
    try:
        places = [(iterations_inside(inside, 0, place), place) for place in _places(outside, inside)]
    except TooManyValues:
        return None
    longest, environment = max(places, key=lambda one: one[0], default=(0, {}))
    if not 0 < longest <= MOST_POINTS:
        return None
    values = list(_values(inside, environment))
    steps = {loop.variable: loop.step for loop in nest.loops}
    variables = tuple(loop.variable for loop in inside)
    first = dict(zip(variables, values[0], strict=True))
    ahead = _ahead(inside, variable, steps)
    apart = [[(v - first[n], steps[n]) for v, n in zip(value, variables, strict=True)] for value in values]
    if ahead is None or any(by % step for point in apart for by, step in point):
        return None
    points = tuple(tuple(by // step for by, step in point) for point in apart)
    moved = {name: by // steps[name] for name, by in ahead.items()}
    return WholeStep(variables, points, min(length for length, _ in places) == longest, environment | first, moved)


def _places(outside: Sequence[NumericLoop], inside: Sequence[NumericLoop]) -> Iterator[Environment]:
    """Values of the variables around that decide the bounds of loops, both ends and evenly spread between them."""
    wanted = set[str]().union(*(loop.uses for loop in inside))
    deciding: list[NumericLoop] = []
    for loop in reversed(outside):
        if loop.variable in wanted:
            wanted |= loop.uses
            deciding.insert(0, loop)
    most = max(2, int(_MOST_PLACES ** (1 / len(deciding)))) if deciding else 1
    environments: list[Environment] = [{}]
    for loop in deciding:
        environments = [
            environment | {loop.variable: value}
            for environment in environments
            for value in _spread(loop.values(environment), most)
        ]
    yield from environments


def _spread(values: range, most: int) -> list[int]:
    if len(values) <= most:
        return list(values)
    return [values[(len(values) - 1) * number // (most - 1)] for number in range(most)]


def _values(loops: Sequence[NumericLoop], environment: Environment) -> Iterator[tuple[int, ...]]:
    """The values of the variables of these loops, in the order of execution."""
    if not loops:
        yield ()
        return
    first, *inner = loops
    for value in first.values(environment):
        for values in _values(inner, environment | {first.variable: value}):
            yield (value, *values)


def _ahead(inside: Sequence[NumericLoop], variable: str, steps: Mapping[str, int]) -> dict[str, int] | None:
    """How far the first values of loops move per step of a variable around them; None where that is not told."""
    moved = {variable: steps[variable]}
    for loop in inside:
        if loop.first is None:
            if loop.uses & moved.keys():
                return None
            continue
        by = sum(factor * moved.get(name, 0) for name, factor in loop.first.items())
        if by % loop.step:
            return None
        if by:
            moved[loop.variable] = by
    del moved[variable]
    return moved
