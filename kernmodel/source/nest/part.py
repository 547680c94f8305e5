"""The part of a nest that one of several cores executes, where its iterations are divided statically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from kernmodel.formulas.formula import Formula, floored
from kernmodel.source.model import Loop, LoopNest, Parallel
from kernmodel.source.nest.counting import TooManyValues, count_iterations, numeric_loops
from kernmodel.source.nest.dependence import dependences
from kernmodel.source.nest.division import division


class Parts:
    """The parts of a nest at given sizes that one of any number of threads executes.

    Args:
        parallel: how a pragma divides a loop, None: none does, then the loops of `divided_loops` are divided.
    """

    def __init__(self, nest: LoopNest, sizes: Mapping[str, int], parallel: Parallel | None) -> None:
        self._nest, self._sizes, self._parallel = nest, sizes, parallel
        self._first, count = _chosen(nest, parallel)
        self._chosen = nest.loops[self._first : self._first + count]
        divisible = _stand_alone(nest, self._chosen)
        self._trips = [len(loop.values({})) for loop in numeric_loops(self._chosen, sizes)] if divisible else None

    def of(self, threads: int) -> LoopNest | None:
        """The nest of the thread with the most work, as one block of iterations of the divided loop.

        Returns:
            None where the bounds of the divided loop depend on loops around it, so that no part stands for all.
        """
        nest, sizes, first, trips = self._nest, self._sizes, self._first, self._trips
        if trips is None:
            return None
        parallel = self._parallel
        most = -(-prod(trips) // threads) if parallel is None else round(division(nest, parallel, sizes, threads).most)
        shares: list[int] = []
        for number, trip in enumerate(trips):
            share = -(-most // max(1, prod(trips[number + 1 :])))
            # with a single iteration of the innermost loop it would not be known what it moves
            shares.append(min(trip, max(share, 2 if first + number == len(nest.loops) - 1 else 1)))
            if shares[-1] > 1:
                break
        cut = list(zip(self._chosen, trips, shares, strict=False))
        begin = _with_loops(nest, first, [_first(*each, threads) for each in cut])
        inner = nest.loops[first + len(cut) :]
        divided = {loop.variable for loop in self._chosen}
        if not any(divided & loop.bounded_by for loop in inner):
            return begin
        end = _with_loops(nest, first, [_last(*each) for each in cut])
        try:
            return max(begin, end, key=lambda one: count_iterations(numeric_loops(one.loops, sizes)))
        except TooManyValues:
            return begin


def is_divisible(nest: LoopNest, parallel: Parallel | None) -> bool:
    """Whether the bounds of the divided loops depend on no other loop."""
    first, count = _chosen(nest, parallel)
    return _stand_alone(nest, nest.loops[first : first + count])


def _stand_alone(nest: LoopNest, chosen: Sequence[Loop]) -> bool:
    variables = {loop.variable for loop in nest.loops}
    return not any(variables & loop.bounded_by for loop in chosen)


def _chosen(nest: LoopNest, parallel: Parallel | None) -> tuple[int, int]:
    """The first of the divided loops, and how many there are."""
    return divided_loops(nest) if parallel is None else (parallel.loop, parallel.collapse)


def divided_loops(nest: LoopNest) -> tuple[int, int]:
    """Where no pragma says which loop is divided: the outermost whose iterations do not depend on one another, else the
    outermost; and how many loops from there on can be divided as one, where it has fewer iterations than threads."""
    depth = len(nest.loops)
    first = next((number for number in range(depth) if is_independent(nest, number)), 0)
    beyond = (number for number in range(first + 1, depth - 1) if not is_independent(nest, number))
    return first, max(1, next(beyond, depth - 1) - first)


def is_independent(nest: LoopNest, number: int) -> bool:
    """Whether the iterations of a loop do not depend on one another."""
    return all(found.distance[0] == 0 for found in dependences(nest, number))


def _with_loops(nest: LoopNest, first: int, loops: list[Loop]) -> LoopNest:
    inside = first + len(loops)
    cut = (loop.variable for loop, whole in zip(loops, nest.loops[first:inside], strict=True) if loop != whole)
    return replace(nest, loops=(*nest.loops[:first], *loops, *nest.loops[inside:]), divided=frozenset(cut))


def _first(loop: Loop, trips: int, share: int, threads: int) -> Loop:
    """The first `share` of the iterations of a loop; as a formula in the sizes where that is one part of as many."""
    if share == trips:
        return loop
    if share != -(-trips // threads):
        return replace(loop, stop=loop.start + share * loop.step)
    return replace(loop, stop=loop.start + _part_length(loop, trips, threads) * loop.step)


def _part_length(loop: Loop, trips: int, threads: int) -> Formula:
    """The iterations of the longest of as many parts."""
    each = abs(loop.step) * threads
    length = (loop.stop - loop.start).scaled(1 if loop.step > 0 else -1)
    if abs(loop.step) == 1 and trips % threads == 0:
        return length / threads
    return floored((length + each - 1) / each)


def _last(loop: Loop, trips: int, share: int) -> Loop:
    """The last `share` of the iterations of a loop."""
    return replace(loop, start=loop.start + (trips - share) * loop.step)
