"""Whether the places of the arrays in memory decide the traffic of a nest: lines that share sets, counted per layout.

A line that is used again has to stay in its set until then. How many others come to that set meanwhile depends on where
the arrays begin, which the source does not say. The test counts the lines that a nest keeps in use while each of its
loops iterates, per set and for each layout that is usual, and holds them against the ways. It simulates nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations

from kernmodel.cachesim.model import CacheSpec, Hierarchy
from kernmodel.traffic.options import Layout, SimulationOptions
from kernmodel.traffic.simulation.array_layout import lay_out
from kernmodel.traffic.simulation.working_set import (
    LiveStretch,
    SetLines,
    WorkingSet,
    lines_over_sets,
    live_stretches,
    set_lines,
)
from kernmodel.value_types import dataclass

LAYOUTS: tuple[Layout, ...] = ("padded", "packed", "pages", "heap")
"""The layouts over which numbers are given; the words: `SimulationOptions.layout`."""

CAUSE = "array layout"

_DECIDES = 0.05
"""Share of the lines in use that one layout loses and another keeps, from which the layout counts."""

_KEEPS = 0.5
"""A cache from which even the best layout loses this share has no room for what is used again, wherever it lies."""

_FULL = (0.9, 1.1)
"""Lines in use over lines of the cache between which it is as good as full."""

_ALIKE = 0.01
"""Up to this difference of the same share two layouts count as one."""

_FEW_LAYOUTS = 2
"""As many layouts are simulated where that takes long."""

_FEW_ARRAYS = 4
"""Up to so many arrays all orders in memory are looked at."""


@dataclass(frozen=True, slots=True)
class LayoutRisk:
    """A cache in which the layout decides whether lines stay that a loop uses again.

    Attributes:
        cache: its name.
        loop: variable of the loop; "sweep" for the repetition of the nest.
        least, most: share of the lines used again that lie in overfull sets, in the best and in the worst layout.
        lines: most lines in one set, in the worst layout.
        ways: of the cache.
    """

    cache: str
    loop: str
    least: float
    most: float
    lines: int
    ways: int

    @property
    def reason(self) -> str:
        """The same for people."""
        over = "a sweep of the nest" if self.loop == "sweep" else f"an iteration of loop {self.loop}"
        return (
            f"what {over} uses again puts {self.lines} lines into one set of {self.cache}, which has {self.ways} ways, "
            f"or spreads them, as the arrays are laid out: {self.least:.0%} to {self.most:.0%} of these lines are in "
            "sets that are too full"
        )


@dataclass(frozen=True, slots=True)
class LayoutJudgement:
    """What the test finds.

    Attributes:
        assumed: the options with the layout that is assumed.
        risks: where the layout decides, in each cache at most the loop for which it does most; empty for most nests.
        caches: names of those in which only a simulation of other layouts tells: those at risk, those that keep little
            in any layout, and those that are as good as full, where a line more or less in a set counts (but for the
            last one, which takes long).
        others: the layouts besides the assumed one that are to be simulated then: the usual ones with the arrays as
            declared, and of other orders in memory the best and the worst; where the last cache is concerned, few of
            those that fill its sets differently.
    """

    assumed: SimulationOptions
    risks: tuple[LayoutRisk, ...] = ()
    caches: tuple[str, ...] = ()
    others: tuple[SimulationOptions, ...] = ()


def judge_layouts(working_set: WorkingSet, hierarchy: Hierarchy, options: SimulationOptions) -> LayoutJudgement:
    """Whether the layout may decide on the traffic of a nest, where, and which layouts differ.

    Args:
        working_set: what the nest touches (`working_set_of_streams`, `working_set_of_program`).
        hierarchy: the caches.
        options: with the layout that is assumed.
    """
    crowded = tuple(_crowded(working_set, hierarchy))
    if not crowded:
        return LayoutJudgement(options)
    layouts = list(_layouts(working_set, options))
    placed = [lay_out(working_set.arrays, hierarchy, layout) for layout in layouts]
    losses = [tuple(_loss(place, bases) for place in crowded) for bases in placed]
    last = hierarchy.levels[-1]
    full = [number for number, place in enumerate(crowded) if place.is_full and place.cache is not last]
    shares = [[loss[number].share for loss in losses] for number in range(len(crowded))]
    doubtful = [number for number, each in enumerate(shares) if number in full or max(each) - min(each) > _DECIDES]
    if not doubtful:
        return LayoutJudgement(options)
    caches = tuple(dict.fromkeys(crowded[number].cache.name for number in doubtful))
    others = _different(layouts, [[loss[number].share for number in doubtful] for loss in losses])
    if last.name in caches:
        others = others[:_FEW_LAYOUTS]
    else:
        others = tuple(layout for layout in layouts[1:] if not layout.order or layout in others)
    risks = [_risk(number, crowded[number], layouts, losses, working_set) for number in doubtful]
    decided = [risk for risk in risks if risk.most - risk.least > _DECIDES and risk.least < _KEEPS]
    heaviest = {risk.cache: risk for risk in sorted(decided, key=lambda risk: risk.most - risk.least)}
    return LayoutJudgement(options, tuple(risk for risk in decided if heaviest[risk.cache] is risk), caches, others)


def _risk(
    number: int,
    place: _Crowded,
    layouts: Sequence[SimulationOptions],
    losses: Sequence[Sequence[_Loss]],
    working_set: WorkingSet,
) -> LayoutRisk:
    shares = [loss[number].share for loss in losses]
    worst = max(range(len(layouts)), key=shares.__getitem__)
    return LayoutRisk(
        cache=place.cache.name,
        loop=working_set.variables[place.loop] if place.loop >= 0 else "sweep",
        least=min(shares),
        most=shares[worst],
        lines=losses[worst][number].lines,
        ways=place.cache.ways,
    )


class _Crowded:
    """Stretches that must stay in a cache while a loop iterates, and of which too many may come to one set."""

    def __init__(self, cache: CacheSpec, loop: int, stretches: Sequence[LiveStretch]) -> None:
        self.cache = cache
        self.loop = loop
        self.stretches = stretches
        self._lines: dict[int, dict[str, SetLines]] = {}

    @property
    def is_full(self) -> bool:
        """Whether the stretches take about as many lines as the cache has."""
        lines = sum(array.lines for array in self._shifted(0).values())
        return _FULL[0] <= lines / (self.cache.sets * self.cache.ways) <= _FULL[1]

    def lines(self, bases: Mapping[str, int]) -> list[tuple[float, float, int]]:
        """How many lines share each set where the arrays begin at these addresses: see `lines_over_sets`."""
        arrays = {name: self._shifted(bases[name] % self.cache.line_bytes)[name] for name in self._shifted(0)}
        return lines_over_sets(arrays, bases, self.cache.sets, self.cache.line_bytes)

    def _shifted(self, phase: int) -> dict[str, SetLines]:
        """The lines of the arrays where they begin so many bytes behind the begin of a line."""
        if phase not in self._lines:
            moved = [replace(each, begin=each.begin + phase) for each in self.stretches]
            self._lines[phase] = set_lines(moved, self.cache.sets, self.cache.line_bytes)
        return self._lines[phase]

    def most_lines(self) -> float:
        """The lines in one set if the fullest sets of all arrays meet, each array from the begin of a line."""
        sets, size = self.cache.sets, self.cache.line_bytes
        alone = (lines_over_sets({name: array}, {name: 0}, sets, size) for name, array in self._shifted(0).items())
        return sum(max(lines for lines, _, _ in runs) for runs in alone)


@dataclass(frozen=True, slots=True)
class _Loss:
    """The share of the lines used again that are in overfull sets, and the most lines in one set."""

    share: float
    lines: int


def _crowded(working_set: WorkingSet, hierarchy: Hierarchy) -> Iterator[_Crowded]:
    for cache in hierarchy.levels:
        if cache.hashed:
            continue
        for loop in range(len(working_set.trips) - 1, -2, -1):
            stretches = live_stretches(working_set, loop, cache.sets * cache.line_bytes, cache.line_bytes)
            arrays = {each.array for each in stretches}
            if len(arrays) > 1 and _may_differ(stretches, cache):
                place = _Crowded(cache, loop, stretches)
                if place.is_full or place.most_lines() > cache.ways:
                    yield place


def _may_differ(stretches: Sequence[LiveStretch], cache: CacheSpec) -> bool:
    """Whether there may be a set with too many lines, but not in any case in all sets."""
    turns = [(each.weight, (each.length - 2) // cache.line_bytes + 2) for each in stretches]
    most = sum(weight * ((lines - 1) // cache.sets + 1) for weight, lines in turns)
    least = sum(weight * ((lines - 2) // cache.sets) for weight, lines in turns)
    return least <= cache.ways < most


def _layouts(working_set: WorkingSet, options: SimulationOptions) -> Iterator[SimulationOptions]:
    """The assumed layout, the usual ones, and these in other orders."""
    yield options
    usual = [replace(options, layout=layout, order=(), alias=False, pad_bytes=0) for layout in LAYOUTS]
    yield from (layout for layout in usual if layout != options)
    for order in _orders([array.name for array in working_set.arrays]):
        yield replace(options, layout="packed", order=order, alias=False, pad_bytes=0)


def _orders(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Other orders of the arrays: all of few; of many the reverse, and with any one array in front."""
    declared = tuple(names)
    if len(names) <= _FEW_ARRAYS:
        yield from (order for order in permutations(declared) if order != declared)
        return
    yield tuple(reversed(names))
    yield from ((name, *(other for other in names if other != name)) for name in names[1:])


def _loss(place: _Crowded, bases: Mapping[str, int]) -> _Loss:
    runs = place.lines(bases)
    lost = sum(again * sets for lines, again, sets in runs if lines > place.cache.ways)
    whole = sum(again * sets for _, again, sets in runs)
    return _Loss(lost / whole if whole else 0.0, round(max(lines for lines, _, _ in runs)))


def _different(
    layouts: Sequence[SimulationOptions], losses: Sequence[Sequence[float]]
) -> tuple[SimulationOptions, ...]:
    """One layout of each group that loses the same, without the first; of the other orders the best and the worst."""
    declared = [number for number, layout in enumerate(layouts) if number and not layout.order]
    ordered = sorted((number for number, layout in enumerate(layouts) if layout.order), key=lambda n: sum(losses[n]))
    taken = [0]
    for number in (*declared, *ordered[-1:], *ordered[:1]):
        pairs = (zip(losses[number], losses[other], strict=True) for other in taken)
        if not any(all(abs(a - b) <= _ALIKE for a, b in pair) for pair in pairs):
            taken.append(number)
    return tuple(layouts[number] for number in taken[1:])
