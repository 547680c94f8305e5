"""Caches that lose their lines little by little as data grow: why traffic changes gradually around thresholds.

Three things make them. A first cache that gives up other lines than the one that was used longest ago loses some before
it is full, and a cache that other cores and guests use, too, keeps less than it has room for: both were measured, the
share of the lines that is still there where so many bytes pass before they come again (`CacheLevel.kept`). Where that
is not measured, the places of pages do: caches beyond the first find their sets by physical addresses. A page of 4 KiB
fills one of sets × line / 4096 groups of sets, by where the system placed it. With as many pages as the cache has room
for, some groups get more than they have ways, and lose their lines before these come again (least recently used goes
first), while others are not full (R. E. Kessler, M. D. Hill: Page placement algorithms for large real-indexed caches,
ACM TOCS 10(4), 1992). Of n pages at random in g groups of w ways, a page keeps its lines if no more than w − 1 of the
others fall into its group: binomial. Nothing in this is fitted. Huge pages fill all groups alike; a layer condition
then holds for all lines or for none. What was measured holds in either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TypeVar

from kernmodel.errors import Note
from kernmodel.machine.model import CacheLevel, Machine
from kernmodel.traffic.model import QUANTITIES, AccessTraffic, LevelTraffic, PathTraffic, Traffic, arithmetic_intensity
from kernmodel.traffic.simulation.array_layout import PAGE_BYTES
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass

_SHARES = (7 / 8, 5 / 8, 3 / 8, 1 / 8)
"""The middles of four equal parts of the lines, by how much room they need."""

_Row = TypeVar("_Row", PathTraffic, LevelTraffic)


def survival(pages: int, groups: int, ways: int) -> float:
    """The share of pages that keep their lines, of so many at random places."""
    others, p = pages - 1, 1 / groups
    if others < ways:
        return 1.0
    part = total = (1 - p) ** others
    for k in range(1, ways):
        part *= (others - k + 1) / k * p / (1 - p)
        total += part
    return min(1.0, total)


@cache
def usable_share(groups: int, ways: int, share: float) -> float:
    """How full a cache is, 1 where all pages together are as large, when this share of the pages keep their lines."""
    room, low, high = groups * ways, 1, 8 * groups * ways
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if survival(middle, groups, ways) > share else (low, middle)
    return high / room


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a cache loses its lines little by little: the note, what the interval is over, and how the mean takes it."""

    note: Note
    over: str
    mean: str


PLACES = Cause(
    Note(
        "page-placement",
        "data are about as large as a cache: pages of 4 KiB at random places let some of its sets overflow before "
        "others",
        "assumption",
    ),
    "places of pages in memory",
    "at random",
)
OTHERS = Cause(
    Note(
        "shared-cache",
        "data are about as large as what others leave of a shared cache: the share of lines that it keeps was measured",
        "assumption",
    ),
    "what others leave of a shared cache",
    "as measured",
)


REPLACEMENT = Cause(
    Note(
        "gradual-replacement",
        "data are about as large as a cache, which gives up lines before it is full: the share that it keeps was "
        "measured",
        "assumption",
    ),
    "which lines a cache gives up",
    "as measured",
)


def is_mean(traffic: Traffic) -> bool:
    """Whether it is the mean over parts of the lines (`mean_traffic`)."""
    return any(cause.note in traffic.notes for cause in (PLACES, OTHERS, REPLACEMENT))


@dataclass(frozen=True, slots=True)
class GradualCaches:
    """The machine with caches as large as they are for each of four equal parts of the lines, and why they differ."""

    machines: tuple[Machine, ...]
    cause: Cause


def gradual_caches(machine: Machine, traffic: Traffic, *, huge: bool) -> GradualCaches | None:
    """The sizes of caches for parts of the lines; None where no condition depends on which part it is.

    Args:
        traffic: by layer conditions; huge: whether data lie in huge pages.
    """
    shares = {level.name: _shares(level, huge=huge) for level in machine.levels}
    near = {
        one.cache
        for one in traffic.conditions
        if one.reuses
        and one.few_sets is None
        and min(1.0, shares[one.cache][0]) < one.required / one.capacity_bytes < max(1.0, shares[one.cache][-1])
    }
    if not near:
        return None
    machines = tuple(
        replace(machine, levels=tuple(_sized(level, shares[level.name][part]) for level in machine.levels))
        for part in range(len(_SHARES))
    )
    measured = [machine.level(name) for name in near if machine.level(name).kept]
    own = REPLACEMENT if measured else PLACES
    return GradualCaches(machines, OTHERS if any(level != machine.levels[0] for level in measured) else own)


def _shares(level: CacheLevel, *, huge: bool) -> tuple[float, ...]:
    """How large the cache is for each of four equal parts of the lines, of its size."""
    if level.kept:
        return tuple(level.room(share) / level.size_bytes for share in _SHARES)
    groups = level.sets * level.line_bytes // PAGE_BYTES
    if huge or groups <= 1:
        return (1.0,) * len(_SHARES)
    return tuple(usable_share(groups, level.ways, share) for share in _SHARES)


def _sized(level: CacheLevel, share: float) -> CacheLevel:
    return replace(level, size_bytes=level.size_bytes * share)


def mean_traffic(base: Traffic, parts: Sequence[Traffic], machine: Machine, cause: Cause) -> Traffic:
    """The mean over four equal parts of the lines, with intervals between those of them that are all kept and none.

    Args:
        base: by layer conditions on whole caches; parts: on the caches of `gradual_caches`.
    """
    paths = tuple(_path([part.path(path.path) for part in parts], path, cause) for path in base.paths)
    moved = base.register_loads_bytes + base.register_stores_bytes
    flops = base.flops_per_iteration * base.iterations_per_unit
    return replace(
        base,
        paths=paths,
        accesses=tuple(map(_access, zip(*(part.accesses for part in parts), strict=True))),
        levels=tuple(map(_mean, zip(*(part.levels for part in parts), strict=True))),
        arithmetic_intensity=arithmetic_intensity(flops, moved, paths, machine),
        notes=(*base.notes, cause.note),
    )


def _path(parts: Sequence[PathTraffic], base: PathTraffic, cause: Cause) -> PathTraffic:
    mean = _mean(parts)
    intervals = dict(base.intervals)
    for name in QUANTITIES:
        found = [getattr(part, name) for part in (base, *parts)]
        if min(found) < max(found):
            intervals[name] = Interval(min(found), max(found), cause.over, cause.mean)
    return replace(mean, intervals=intervals)


def _access(parts: Sequence[AccessTraffic]) -> AccessTraffic:
    levels = dict.fromkeys(level for part in parts for level in part.served_by)
    served = {level: sum(part.served_by.get(level, 0.0) for part in parts) / len(parts) for level in levels}
    return replace(parts[0], served_by=served)


def _mean(parts: Sequence[_Row]) -> _Row:
    """The mean of all numbers of rows that are alike."""
    first = parts[0]
    numbers = [one.name for one in fields(first) if isinstance(getattr(first, one.name), float)]
    return replace(first, **{name: sum(getattr(part, name) for part in parts) / len(parts) for name in numbers})
