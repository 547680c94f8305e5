"""How long a loop is each time that it is entered: the distribution of its trip counts at given sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kernmodel.source.model import LoopNest
from kernmodel.source.nest.counting import Environment, NumericLoop, numeric_loops

MOST_VALUES = 256
"""Executions of a loop that are looked at; of more, evenly spread ones, an odd number apart, so that all remainders of
their lengths by vector lengths are met alike."""

Lengths = tuple[tuple[int, float], ...]
"""Iterations of one execution, and the share of the executions that are so long; shares add up to 1."""


def lengths(nest: LoopNest, sizes: Mapping[str, int], variable: str | None = None) -> Lengths:
    """The iterations of a loop over its executions, those without any left out; by default of the innermost loop.

    Empty where it is never entered.
    """
    loops = numeric_loops(nest.loops, sizes)
    place = next((k for k, loop in enumerate(loops) if loop.variable == variable), len(loops) - 1)
    deciding = _deciding(loops[: place + 1])
    counted = Counter[int]()
    most = int(MOST_VALUES ** (1 / max(1, len(deciding) - 1))) if len(deciding) > 1 else 1
    _count(deciding, {}, 1, most, counted)
    total = sum(counted.values())
    return tuple((length, weight / total) for length, weight in sorted(counted.items()))


def _deciding(loops: Sequence[NumericLoop]) -> list[NumericLoop]:
    """The last loop and those whose variables decide its bounds, outermost first."""
    wanted = set(loops[-1].uses)
    found = [loops[-1]]
    for loop in reversed(loops[:-1]):
        if loop.variable in wanted:
            wanted |= loop.uses
            found.insert(0, loop)
    return found


def _count(
    loops: Sequence[NumericLoop], environment: Environment, weight: int, most: int, counted: Counter[int]
) -> None:
    """Add the lengths of the last of these loops, each with its weight."""
    loop, *inner = loops
    values = loop.values(environment)
    if not inner:
        if values:
            counted[len(values)] += weight
        return
    apart = 1 if len(values) <= most else -(-len(values) // most) | 1
    for value in values[apart // 2 :: apart]:
        _count(inner, environment | {loop.variable: value}, weight * apart, most, counted)
