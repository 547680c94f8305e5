"""What references under conditions move: fewer lines than those executed in every iteration.

Layer conditions and simulation take both sides of a branch as executed each time. A line whose references all stand
under conditions is touched if any of the iterations that reach it executes one: of n iterations with probability p,
independent of one another, with 1 − (1 − p)^n. So most lines move unless p is small or n is 1. What is said of writes
holds for the lines that are modified.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.source.model import Access, Guard, LoopNest
from kernmodel.source.nest.strides import access_strides
from kernmodel.traffic.model import PathTraffic, Traffic, arithmetic_intensity
from kernmodel.value_types import dataclass

_SAME = 1e-6
_FEW = 0.02
"""Of the lines that the busiest of some references brings, what others bring at the ends of rows."""


def executed_traffic(traffic: Traffic, nest: LoopNest, sizes: Mapping[str, int], machine: Machine) -> Traffic:
    """The traffic of a nest with the lines that its conditions leave out."""
    if all(access.share >= 1 for access in nest.accesses):
        return traffic
    paths, least = [], 1.0
    for number, path in enumerate(traffic.paths):
        beyond = machine.residence_levels[number + 1 :]
        bringing = _bringing(traffic, nest, sizes, machine.line_bytes, beyond)
        paths.append(_thinned(path, bringing))
        least = min([least, *(one.touched for one in bringing), *(one.modified for one in bringing if one.written)])
    text = (
        "references under conditions move the lines of which any iteration executes one, as if each were independent "
        f"of the others: {least:.1%} of the lines of the array that they touch least; formulas have all lines"
    )
    inner = {
        row: one
        for one in _bringing(traffic, nest, sizes, machine.line_bytes, machine.residence_levels)
        for row in one.rows
    }
    flops = traffic.flops_per_iteration * traffic.iterations_per_unit
    registers = traffic.register_loads_bytes + traffic.register_stores_bytes
    return replace(
        traffic,
        paths=tuple(paths),
        accesses=tuple(
            replace(row, served_by={level: lines * inner[number].touched for level, lines in row.served_by.items()})
            for number, row in enumerate(traffic.accesses)
        ),
        arithmetic_intensity=arithmetic_intensity(flops, registers, paths, machine),
        notes=(*traffic.notes, Note("conditional-lines", text, "assumption")),
    )


@dataclass(frozen=True, slots=True)
class _Bringing:
    """References to lines that one of them, or several to the same lines, bring over a path.

    Attributes:
        rows: their numbers in the table of references; lines: that all of them bring.
        touched: the share of these that any of them touches; modified: that any of them modifies.
        written: whether any of them writes.
    """

    rows: tuple[int, ...]
    lines: float
    touched: float
    modified: float
    written: bool


def _bringing(
    traffic: Traffic, nest: LoopNest, sizes: Mapping[str, int], line_bytes: int, beyond: Sequence[str]
) -> list[_Bringing]:
    """The references by what brings their lines from beyond a path: each finds them with the nearest one that does and
    is as far apart in all iterations."""
    left: dict[tuple[str, str, str], list[Access]] = {}
    for access in nest.accesses:
        left.setdefault((access.array, access.text, access.kind), []).append(access)
    rows = [left[row.array, row.access, row.kind].pop(0) for row in traffic.accesses]
    lines = [sum(row.served_by.get(level, 0.0) for level in beyond) for row in traffic.accesses]
    groups: dict[object, list[int]] = {}
    for number, access in enumerate(rows):
        groups.setdefault((access.array, access.coefficients, access.indirect), []).append(number)
    found = []
    for group in groups.values():
        most = max(lines[number] for number in group)
        leaders = [number for number in group if lines[number] > _FEW * most] or group[:1]
        around: dict[int, list[int]] = {leader: [] for leader in leaders}
        for number in group:
            nearest = min(leaders, key=lambda leader: _apart(rows[number], rows[leader], sizes))
            around[nearest].append(number)
        for members in around.values():
            those = [rows[number] for number in members]
            writes = [access for access in those if access.kind == "write"]
            touched, modified = (_share(part, nest, sizes, line_bytes) for part in (those, writes))
            brought = sum(lines[number] for number in members)
            found.append(_Bringing(tuple(members), brought, touched, modified, bool(writes)))
    return found


def _apart(one: Access, other: Access, sizes: Mapping[str, int]) -> float:
    """How far apart two references to the same array are, in elements."""
    difference = one.offset - other.offset
    return abs(float(difference.value(sizes))) if difference.free_symbols <= sizes.keys() else inf


def _share(accesses: Sequence[Access], nest: LoopNest, sizes: Mapping[str, int], line_bytes: int) -> float:
    """The share of the lines of these references that any of them touches."""
    strides = dict(access_strides(nest, sizes, len(nest.loops) - 1))
    left: dict[Guard, float] = {}
    for access in accesses:
        # what jumps comes to a line once, what stays comes to it all the time
        stride = abs(strides.get(access, line_bytes))
        visits = max(1.0, line_bytes / max(stride, 1))
        within = access.executed / access.guard[1] if access.guard[1] else 0.0
        untouched = max(0.0, 1 - min(1.0, within)) ** visits
        left[access.guard] = left.get(access.guard, 1.0) * untouched
    # ranges of loop variables that differ, as on both sides of a branch, are taken to have no line in common
    return min(1.0, sum(guarded * (1 - untouched) for (_, guarded), untouched in left.items()))


def _thinned(path: PathTraffic, bringing: Sequence[_Bringing]) -> PathTraffic:
    """A path without the lines that are left out."""
    whole, stored = sum(one.lines for one in bringing), sum(one.lines for one in bringing if one.written)
    fewer_loads = sum(one.lines * (1 - one.touched) for one in bringing)
    fewer_stores = sum(one.lines * (1 - one.modified) for one in bringing if one.written)
    if fewer_loads + fewer_stores < _SAME:
        return path
    loads, stores = path.loads * _kept(fewer_loads, whole), path.stores * _kept(fewer_stores, stored)
    # a victim cache takes what the inner level has loaded from anywhere, modified or not
    clean = path.clean_victims and max(0.0, path.evictions - fewer_loads - stores)
    kept = {"loads": (loads, path.loads), "stores": (stores, path.stores), "clean_victims": (clean, path.clean_victims)}
    intervals = {
        name: interval and replace(interval, low=interval.low * now / was, high=interval.high * now / was)
        for name, interval in path.intervals.items()
        for now, was in (kept[name] if kept[name][1] else (1.0, 1.0),)
    }
    return replace(path, loads=loads, stores=stores, clean_victims=clean, intervals=intervals)


def _kept(fewer: float, whole: float) -> float:
    return max(0.0, 1 - fewer / whole) if whole else 1.0
