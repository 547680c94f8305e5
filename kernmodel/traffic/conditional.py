"""What references under conditions move: fewer lines than those executed in every iteration.

Layer conditions and simulation take both sides of a branch as executed each time. A line of an array whose references
all stand under conditions is touched if any of the iterations that reach it executes one: of n iterations with
probability p, independent of one another, with 1 − (1 − p)^n. So most lines move unless p is small or n is 1. What is
said of writes holds for the lines that are modified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.source.model import Access, Guard, LoopNest
from kernmodel.source.nest.strides import access_strides
from kernmodel.traffic.model import PathTraffic, Traffic, arithmetic_intensity

_SAME = 1e-6


def executed_traffic(traffic: Traffic, nest: LoopNest, sizes: Mapping[str, int], machine: Machine) -> Traffic:
    """The traffic of a nest with the lines that its conditions leave out."""
    if all(access.share >= 1 for access in nest.accesses):
        return traffic
    touched = _shares(nest, sizes, machine.line_bytes, lambda access: True)
    modified = _shares(nest, sizes, machine.line_bytes, lambda access: access.kind == "write")
    least = min((*touched.values(), *modified.values()), default=1.0)
    text = (
        "references under conditions move the lines of which any iteration executes one, as if each were independent "
        f"of the others: {least:.1%} of the lines of the array that they touch least; formulas have all lines"
    )
    thinned = _with_shares(traffic, machine, touched, modified)
    return replace(thinned, notes=(*thinned.notes, Note("conditional-lines", text, "assumption")))


def _with_shares(
    traffic: Traffic, machine: Machine, touched: Mapping[str, float], modified: Mapping[str, float]
) -> Traffic:
    """The traffic with a share of the lines of each array.

    Args:
        touched: by array; modified: the same of its modified lines, of every array that is written.
    """
    paths = tuple(
        _thinned(path, traffic, machine, touched, modified, number) for number, path in enumerate(traffic.paths)
    )
    flops = traffic.flops_per_iteration * traffic.iterations_per_unit
    registers = traffic.register_loads_bytes + traffic.register_stores_bytes
    return replace(
        traffic,
        paths=paths,
        accesses=tuple(
            replace(row, served_by={level: lines * touched[row.array] for level, lines in row.served_by.items()})
            for row in traffic.accesses
        ),
        arithmetic_intensity=arithmetic_intensity(flops, registers, paths, machine),
    )


def _shares(
    nest: LoopNest, sizes: Mapping[str, int], line_bytes: int, counts: Callable[[Access], bool]
) -> dict[str, float]:
    """By array, the share of its lines that any of these references touches."""
    strides = dict(access_strides(nest, sizes, len(nest.loops) - 1))
    left: dict[tuple[str, Guard], float] = {}
    for access in filter(counts, nest.accesses):
        # what jumps comes to a line once, what stays comes to it all the time
        stride = abs(strides.get(access, line_bytes))
        visits = max(1.0, line_bytes / max(stride, 1))
        within = access.executed / access.guard[1] if access.guard[1] else 0.0
        untouched = max(0.0, 1 - min(1.0, within)) ** visits
        key = access.array, access.guard
        left[key] = left.get(key, 1.0) * untouched
    shares: dict[str, float] = {}
    for (array, (_, guarded)), untouched in left.items():
        # ranges of loop variables that differ, as on both sides of a branch, are taken to have no line in common
        shares[array] = min(1.0, shares.get(array, 0.0) + guarded * (1 - untouched))
    return shares


def _thinned(
    path: PathTraffic,
    traffic: Traffic,
    machine: Machine,
    touched: Mapping[str, float],
    modified: Mapping[str, float],
    number: int,
) -> PathTraffic:
    """A path without the lines that are left out, array by array as the table of references has them."""
    beyond = machine.residence_levels[number + 1 :]
    fewer_loads = fewer_stores = 0.0
    for row in traffic.accesses:
        lines = sum(row.served_by.get(level, 0.0) for level in beyond)
        fewer_loads += lines * (1 - touched.get(row.array, 1.0))
        if row.array in modified:
            fewer_stores += lines * (1 - modified[row.array])
    if fewer_loads + fewer_stores < _SAME:
        return path
    loads = path.loads * _kept(fewer_loads, _loaded(traffic, beyond))
    stores = path.stores * _kept(fewer_stores, _loaded(traffic, beyond, modified))
    # a victim cache takes what the inner level has loaded from anywhere, modified or not
    clean = path.clean_victims and max(0.0, path.evictions - fewer_loads - stores)
    kept = {"loads": (loads, path.loads), "stores": (stores, path.stores), "clean_victims": (clean, path.clean_victims)}
    intervals = {
        name: interval and replace(interval, low=interval.low * now / was, high=interval.high * now / was)
        for name, interval in path.intervals.items()
        for now, was in (kept[name] if kept[name][1] else (1.0, 1.0),)
    }
    return replace(path, loads=loads, stores=stores, clean_victims=clean, intervals=intervals)


def _loaded(traffic: Traffic, beyond: tuple[str, ...], arrays: Mapping[str, float] | None = None) -> float:
    """Lines that references take from beyond a path; of some arrays only, where these are given."""
    rows = [row for row in traffic.accesses if arrays is None or row.array in arrays]
    return sum(row.served_by.get(level, 0.0) for row in rows for level in beyond)


def _kept(fewer: float, whole: float) -> float:
    return max(0.0, 1 - fewer / whole) if whole else 1.0
