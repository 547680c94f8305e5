"""What speaks against taking layer conditions at their word, for a nest at given sizes on a machine.

Layer conditions are formulas with assumptions (docs/layer-conditions.md); each doubt names an assumption that may fail
here. A doubt proves nothing: it says where a simulation is worth its time. Where there is none, layer conditions hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil
from typing import Literal, get_args

from kernmodel.cachesim.model import Hierarchy
from kernmodel.traffic.comparison.agreement import SMALL, TOLERANCE
from kernmodel.traffic.model import LayerCondition, Traffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.array_layout import lay_out
from kernmodel.traffic.simulation.working_set import (
    ReferenceGroup,
    WorkingSet,
    lines_over_sets,
    live_stretches,
    set_lines,
)
from kernmodel.units import format_bytes
from kernmodel.value_types import dataclass

DoubtCode = Literal["index-patterns", "triangle", "few-sets", "structure", "short-rows", "threshold", "layout"]

SPAN = (0.8, 1.25)
"""Required over available cache between which measured transitions lie: there single sets decide what stays."""

_LEAST, _MOST = 0.3, 1.7
"""The same where sets are counted: they may fill unevenly, but not more than that unless rows share them."""

_ALMOST = 0.97
"""From this share on sets may all be full."""

_LEAST_FEW, _MOST_FEW = 0.1, 8.0
"""The same where data fall into few sets by themselves: others may come to these sets, or to none of them."""

_SHORT = 2e5
"""References that a sweep executes, up to which it is simulated wherever a volume is near a threshold."""

_REGULAR = SimulationOptions()

_FEW = 0.005
"""Share of the lines that are used again that may lie in sets of the other kind."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason why layer conditions may be wrong here.

    Attributes:
        code: stable, for machines.
        text: what it is about, as a clause.
        cache: the cache whose misses it is about; None for all.
    """

    code: DoubtCode
    text: str
    cache: str | None = None


def doubts(symbolic: Traffic, working_set: WorkingSet, hierarchy: Hierarchy) -> tuple[Doubt, ...]:
    """All doubts about the layer conditions of a nest, the weightiest first.

    Args:
        symbolic: what they say.
        working_set: of the same nest at the same sizes.
        hierarchy: the caches that one core has.
    """
    line_bytes = hierarchy.levels[0].line_bytes
    found = (
        *_of_notes(symbolic),
        *_of_volumes(symbolic, working_set, hierarchy),
        *_of_rows(_moving(working_set, symbolic), line_bytes),
    )
    return tuple(sorted(found, key=lambda doubt: get_args(DoubtCode).index(doubt.code)))


_NOTED: dict[str, DoubtCode] = {
    "several-index-patterns": "index-patterns",
    "meeting-loops": "index-patterns",
    "mean-trip-count": "triangle",
    "varying-trip-count": "triangle",
}


def _of_notes(symbolic: Traffic) -> Iterator[Doubt]:
    """What layer conditions themselves say that they leave out."""
    for note in symbolic.notes:
        if note.code in _NOTED:
            yield Doubt(_NOTED[note.code], note.text)


@dataclass(frozen=True, slots=True)
class _Filling:
    """How what a loop uses again fills the sets of a cache: the share of these lines that lie in overfull sets, and the
    lines in the fullest set over its ways (`most`). `kept` stays in any case: of a victim cache, which
    lines of a set are in the cache that fills it differs from set to set. `victims`: it is one, which a hit takes its
    line from, so that overfull sets keep some lines all the same."""

    lost: float
    kept: float
    most: float
    victims: bool


def _of_volumes(symbolic: Traffic, working_set: WorkingSet, hierarchy: Hierarchy) -> Iterator[Doubt]:
    """Conditions that decide, about which the sets of their cache say anything else than the volume."""
    bases = lay_out(working_set.arrays, hierarchy, _REGULAR)
    caches = {spec.name: number for number, spec in enumerate(hierarchy.levels)}
    # where memory is run through from one end to the other, every line waits equally long for its reuse
    moving = [[abs(stride) for stride in group.strides if stride] for group in working_set.groups]
    counted = not _is_short(symbolic) and all(strides == sorted(strides, reverse=True) for strides in moving)
    # of lines that a group skips, some sets have fewer than the mean that is counted for them
    line_bytes = hierarchy.levels[0].line_bytes
    skips = any(group.strides and abs(group.strides[-1]) > line_bytes for group in working_set.groups)
    uneven = (_LEAST, _MOST) if skips and _is_short(symbolic) else SPAN
    looked_at: set[tuple[int, int]] = set()
    for condition in _deciding(symbolic):
        share, number = condition.required / condition.capacity_bytes, caches[condition.cache]
        for name in dict.fromkeys(reuse.carried_by for reuse in condition.reuses):
            loop = working_set.variables.index(name) if name in working_set.variables else -1
            looked_at.add((number, loop))
            filling = _filling(working_set, bases, hierarchy, number, loop) if _LEAST <= share <= _MOST else None
            known = filling if counted or not uneven[0] <= share <= uneven[1] else None
            if _leaves_twice(condition, symbolic, hierarchy, number):
                cache, sets = condition.cache, condition.few_sets
                text = f"modified lines in {sets} of {cache} may leave it before they leave the cache inside, and again"
                yield Doubt("few-sets", text, cache)
            elif not _shown(condition, share, known, uneven):
                yield _near(condition, share, filling)
    innermost = len(working_set.trips) - 1
    for number, spec in enumerate(hierarchy.levels):
        filling = (
            None if (number, innermost) in looked_at else _filling(working_set, bases, hierarchy, number, innermost)
        )
        if filling and filling.lost > _FEW:
            lines, variable = round(filling.most * spec.ways), working_set.variables[-1]
            text = f"{lines} lines that loop {variable} uses at once fall into one set of {spec.name}"
            text += f", which has {spec.ways} ways"
            yield Doubt("few-sets", text, spec.name)


def _is_short(symbolic: Traffic) -> bool:
    """Whether a sweep is so short that simulating it costs no more than the layer conditions."""
    return (symbolic.iterations_per_sweep or 0) * len(symbolic.accesses) <= _SHORT


def _deciding(symbolic: Traffic) -> Iterator[LayerCondition]:
    """The conditions on which lines depend that count."""
    busiest = max((value for path in symbolic.paths for value in (path.loads, path.stores)), default=0.0)
    for condition in symbolic.conditions:
        saved = sum(reuse.lines_saved for reuse in condition.reuses)
        if saved > SMALL * max(busiest, saved):
            yield condition


def _shown(condition: LayerCondition, share: float, filling: _Filling | None, span: tuple[float, float] = SPAN) -> bool:
    """Whether volume and sets say the same of a condition; where sets say nothing, whether it is outside the span."""
    if condition.few_sets:
        return not _LEAST_FEW <= share <= _MOST_FEW
    if not _LEAST <= share <= _MOST:
        return True
    if filling is None:
        return not span[0] <= share <= span[1]
    if condition.holds:
        # where all sets are full to the last line, one more comes by now and then
        return filling.kept >= 1 - _FEW and (filling.most < 1 or share <= _ALMOST)
    return filling.lost >= 1 - _FEW and not (filling.victims and share <= span[1])


def _leaves_twice(condition: LayerCondition, symbolic: Traffic, hierarchy: Hierarchy, number: int) -> bool:
    """Whether modified lines may leave a cache twice, where a victim cache takes what leaves it: first as they were
    loaded, then as the cache inside gives them up.

    Stores that hit the cache inside do not renew a line in this one. Of few sets it keeps no more lines than the cache
    inside, so that those which both lose may leave it first.
    """
    evicts = hierarchy.levels[number].victim_level is not None and any(path.stores for path in symbolic.paths)
    return bool(condition.few_sets) and not condition.holds and number > 0 and evicts


def _filling(
    working_set: WorkingSet, bases: Mapping[str, int], hierarchy: Hierarchy, number: int, loop: int
) -> _Filling | None:
    """How what an iteration of a loop uses again fills a cache; None where it uses nothing again."""
    spec = hierarchy.levels[number]
    stretches = live_stretches(working_set, loop, spec.sets * spec.line_bytes, spec.line_bytes)
    if not stretches:
        return None
    runs = lines_over_sets(set_lines(stretches, spec.sets, spec.line_bytes), bases, spec.sets, spec.line_bytes)
    inside = [level for level in hierarchy.levels if level.victim_level == spec.name]
    most_ways = spec.ways + sum(ceil(level.ways * level.sets / spec.sets) for level in inside)
    again = sum(reused * count for _, reused, count in runs) or 1.0
    lost = sum(reused * count for lines, reused, count in runs if lines > most_ways)
    kept = sum(reused * count for lines, reused, count in runs if lines <= spec.ways)
    return _Filling(lost / again, kept / again, max(lines for lines, _, _ in runs) / spec.ways, bool(inside))


def _near(condition: LayerCondition, share: float, filling: _Filling | None) -> Doubt:
    along = ", ".join(dict.fromkeys(reuse.carried_by for reuse in condition.reuses))
    over = "repeated sweeps" if along == "sweep" else f"loop {along}"
    sets = f" in {condition.few_sets}" if condition.few_sets else ""
    text = (
        f"reuse over {over} needs {format_bytes(condition.required)} of the {format_bytes(condition.capacity_bytes)}"
        f"{sets} of {condition.cache}"
    )
    if filling is not None and not condition.few_sets:
        text += f", and {filling.lost:.0%} of the lines lie in sets that are too full"
    code: DoubtCode = "few-sets" if condition.few_sets else "threshold" if share >= SPAN[0] else "layout"
    return Doubt(code, text, condition.cache)


def _moving(working_set: WorkingSet, symbolic: Traffic) -> WorkingSet:
    """The same without arrays of which next to no lines move: what multiplies these does not matter either."""
    moved: dict[str, float] = {}
    for row in symbolic.accesses:
        beyond_first = list(row.served_by.values())[1:]
        moved[row.array] = moved.get(row.array, 0.0) + sum(beyond_first)
    least = SMALL * max(moved.values(), default=0.0)
    kept = tuple(group for group in working_set.groups if moved.get(group.array, 0.0) > least)
    return replace(working_set, groups=kept)


def _of_rows(working_set: WorkingSet, line_bytes: int) -> Iterator[Doubt]:
    share = boundary_share(working_set, line_bytes)
    if share > TOLERANCE * (1 + share):  # two numbers differ relative to the larger one
        yield Doubt("short-rows", f"loops are short: lines at the ends of rows and planes {can_add(share)}")
    straddling = straddling_arrays(working_set, line_bytes)
    if straddling:
        names = ", ".join(straddling)
        yield Doubt("structure", f"{names}: structures that lie across lines, so that members share lines in part")


def boundary_share(working_set: WorkingSet, line_bytes: int) -> float:
    """By how much lines at the ends of loops can increase traffic: what references reach beyond the loops' ranges.

    Per loop, the reach of the references of one array over the trip count; at the ends of rows that stand alone a line
    more, and of rows that follow one another at once what boundaries leave of a row. What reaches beyond the part that
    one core has of a loop is left out: layer conditions count that.
    """
    arrays: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for group in working_set.groups:
        arrays.setdefault((group.array, group.strides), []).extend(group.places)
    divided = [variable in working_set.divided for variable in working_set.variables]
    shares = (
        _share(places, strides, working_set.trips, divided, line_bytes) for (_, strides), places in arrays.items()
    )
    return max(shares, default=0.0)


def can_add(share: float) -> str:
    """What lines at the ends of loops can do to traffic, in words."""
    return f"can add {share:.0%}" if share < 1 else "can be most of all lines"


def _share(
    places: list[int], strides: tuple[int, ...], trips: tuple[int, ...], divided: list[bool], line_bytes: int
) -> float:
    loops = sorted(((abs(s), t, part) for s, t, part in zip(strides, trips, divided, strict=True) if s), reverse=True)
    reaches = _reaches(places, [(stride, trip) for stride, trip, _ in loops])
    factor, around = 1.0, None
    for (stride, trip, part), reach in zip(loops, reaches, strict=True):
        steps = 0 if part else reach
        extent = (trip + steps) * stride
        if around is not None and trip * stride > around:
            factor *= (trip + steps) / trip  # in one row with those of the loop around
        elif around is not None and stride < line_bytes and extent <= around < extent + line_bytes:
            factor *= around / (trip * stride)
        else:
            ends = line_bytes / stride if stride < line_bytes else 0.0
            factor *= (trip + steps + ends) / trip
        around = stride
    return factor - 1


def _reaches(places: list[int], loops: list[tuple[int, int]]) -> list[int]:
    """How many steps of each loop lie between the outermost of these places.

    Args:
        loops: strides and trip counts, the largest stride first.
    """
    middle = sorted(places)[len(places) // 2]
    rests, reaches = [place - middle for place in places], []
    for number, (stride, _) in enumerate(loops):
        steps = [round(rest / stride) for rest in rests]
        reaches.append(max(steps) - min(steps))
        rests = [rest - step * stride for rest, step in zip(rests, steps, strict=True)]
        if number + 1 < len(loops):
            rests = _within_rows(rests, stride, loops[number + 1])
    return reaches


def _within_rows(rests: list[int], stride: int, inner: tuple[int, int]) -> list[int]:
    """Where places lie in the rows that they are in, where a step of a loop passes over several rows of the next one
    further in."""
    row = inner[0] * inner[1]
    if stride < 1.5 * row:
        return rests
    found, before, begin = {}, None, 0
    for rest in sorted(set(rests)):
        begin = rest if before is None or rest - before > row / 2 else begin
        found[rest], before = rest - begin, rest
    return [found[rest] for rest in rests]


def straddling_arrays(working_set: WorkingSet, line_bytes: int) -> tuple[str, ...]:
    """The arrays of structures of which the innermost loop touches several members that share a line now and then."""
    found = (group.array for group in working_set.groups if _straddles(group, working_set, line_bytes))
    return tuple(dict.fromkeys(found))


def _straddles(group: ReferenceGroup, working_set: WorkingSet, line_bytes: int) -> bool:
    """Whether the innermost loop touches several places of structures, some of which do not begin where a line does."""
    stride = abs(group.strides[-1])
    places = {
        place % stride
        for other in working_set.groups
        if (other.array, other.strides) == (group.array, group.strides)
        for place in other.places
        if stride
    }
    uneven = any(2 * abs(other) > line_bytes and other % line_bytes != 0 for other in group.strides)
    return 2 * stride > line_bytes and uneven and len(places) > 1
