"""What was counted, as traffic per unit of work: lines on each path, and what each cache sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction

from kernmodel.cachesim.model import MEMORY
from kernmodel.formulas.formula import counted
from kernmodel.machine.model import Machine
from kernmodel.traffic.model import LevelTraffic, PathLines, PathTraffic
from kernmodel.traffic.simulation.program import NumericNest
from kernmodel.traffic.simulation.rates import STREAMED, Rates

_COUNTS = tuple(field.name for field in fields(LevelTraffic) if field.name != "level")


def simulated_paths(machine: Machine, nest: NumericNest, rates: Rates, unit: Fraction) -> tuple[PathTraffic, ...]:
    """Lines on each path per unit of work, innermost first."""
    paths = []
    moved = moved_lines(machine, rates, _store_share(nest))
    for index, (path, lines) in enumerate(zip(machine.paths, moved, strict=True)):
        outer = machine.beyond(index)
        passing = outer is not None and outer.filled_by == "victims" and outer.loads_pass_by
        allocates = _stored_from(nest, rates, index + 1, 1 if passing else None)
        loads, stores, clean = (float(unit) * number for number in lines)
        allocated = min(float(unit) * allocates, loads) if machine.levels[0].write_allocate else 0.0
        paths.append(path_traffic(path.name, PathLines(loads, stores, clean), allocated))
    return tuple(paths)


def path_traffic(name: str, lines: PathLines, write_allocates: float = 0.0) -> PathTraffic:
    """Lines over a path that were counted, with numbers for formulas."""
    loads, stores, clean = map(counted, lines)
    return PathTraffic(name, *lines, loads, stores, clean, write_allocates)


def moved_lines(machine: Machine, rates: Rates, store_share: float) -> tuple[PathLines, ...]:
    """Lines on each path, innermost first.

    Toward a victim cache cross the lines that the level inside evicts; from it those found there, and where they do
    not pass it by also those from further out.

    Args:
        store_share: the part of a line that a store writes, for caches that pass on each by itself.
    """
    found = []
    for index in range(len(machine.paths)):
        inner = machine.levels[index]
        outer = machine.beyond(index)
        if outer is not None and outer.filled_by == "victims":
            loads = rates.of(outer.name, "load_hits" if outer.loads_pass_by else "loads")
            stores = rates.of(inner.name, "dirty_evictions")
            clean = rates.of(inner.name, "clean_evictions") if outer.clean_victims else 0.0
        else:
            name = outer.name if outer is not None else MEMORY
            loads, clean = rates.of(name, "loads"), 0.0
            stores = rates.of(name, "stores") * (1.0 if inner.write_back else store_share)
            stores += rates.of(MEMORY, STREAMED) if outer is None else 0.0
        found.append(PathLines(loads, stores, clean))
    return tuple(found)


def _stored_from(nest: NumericNest, rates: Rates, level: int, count: int | None) -> float:
    """Lines that stores miss and that come from `count` levels, from this one on outward."""
    columns = slice(level, None if count is None else level + count)
    return sum(sum(rates.served[number][columns]) for number in stored(nest))


def stored(nest: NumericNest) -> tuple[int, ...]:
    """The references that store into the caches."""
    return tuple(number for number, each in enumerate(nest.references) if each.reference.kind == "store")


def _store_share(nest: NumericNest) -> float:
    """Part of a line that a store writes, where each is passed on by itself."""
    sizes = [nest.references[number].reference.size_bytes for number in stored(nest)]
    return sum(sizes) / len(sizes) / nest.line_bytes if sizes else 1.0


def simulated_levels(
    machine: Machine, nest: NumericNest, rates: Rates, executions: Sequence[float], unit: Fraction
) -> tuple[LevelTraffic, ...]:
    """What each cache sees per unit of work; repeated reads of one element count in the first, as hits."""
    repeated = sum(
        (each.access.count - 1) * executed
        for each, executed in zip(nest.references, executions, strict=True)
        if each.reference.kind == "load"
    )
    factor = float(unit)
    levels = []
    for index, level in enumerate(machine.levels):
        extra = dict.fromkeys(("loads", "load_hits"), repeated if index == 0 else 0.0)
        counts = {name: factor * (rates.of(level.name, name) + extra.get(name, 0.0)) for name in _COUNTS}
        levels.append(LevelTraffic(level.name, **counts))
    return tuple(levels)


def evadable(nest: NumericNest) -> tuple[int, ...]:
    """The stores whose lines the innermost loop writes from end to end, and which nobody reads.

    Several references may do it together (the components of a structure).
    """
    read = {each.access.array for each in nest.references if each.reference.kind == "load"}
    unread = (number for number in stored(nest) if nest.references[number].access.array not in read)
    return tuple(number for number in unread if _writes_whole_lines(nest, number))


def _writes_whole_lines(nest: NumericNest, number: int) -> bool:
    own = nest.references[number].reference
    stride = abs(own.address.coefficients[-1] * nest.loops[-1].step) if nest.loops else 0
    if not stride or own.depth < len(nest.loops) or own.indirections or stride > nest.line_bytes:
        return False
    array, stores = nest.references[number].access.array, [nest.references[other] for other in stored(nest)]
    alike = [
        each.reference
        for each in stores
        if (each.access.array, each.reference.address.coefficients) == (array, own.address.coefficients)
    ]
    places = {(other.address.constant - own.address.constant) % stride for other in alike}
    return len(places) * own.size_bytes >= stride
