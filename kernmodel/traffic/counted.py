"""What was counted, as traffic per unit of work: lines on each path, and what each cache sees."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import sympy

from kernmodel.cachesim.model import MEMORY
from kernmodel.machine.model import Machine
from kernmodel.traffic.model import LevelTraffic, PathTraffic
from kernmodel.traffic.program import NumericNest
from kernmodel.traffic.rates import STREAMED, Rates


def simulated_paths(machine: Machine, nest: NumericNest, rates: Rates, unit: Fraction) -> tuple[PathTraffic, ...]:
    """Lines on each path per unit of work, innermost first.

    Toward a victim cache cross the lines that the level inside evicts; from it those found there, and where they do
    not pass it by also those from further out.
    """
    paths = []
    for index, path in enumerate(machine.paths):
        inner = machine.levels[index]
        outer = machine.levels[index + 1] if index + 1 < len(machine.levels) else None
        beyond = index + 1
        if outer is not None and outer.filled_by == "victims":
            loads = rates.of(outer.name, "load_hits" if outer.loads_pass_by else "loads")
            stores = rates.of(inner.name, "dirty_evictions")
            clean = rates.of(inner.name, "clean_evictions") if outer.clean_victims else 0.0
            allocates = _stored_from(nest, rates, beyond, 1 if outer.loads_pass_by else None)
        else:
            name = outer.name if outer is not None else MEMORY
            loads, clean = rates.of(name, "loads"), 0.0
            stores = rates.of(name, "stores") * (1.0 if inner.write_back else _store_share(nest))
            stores += rates.of(MEMORY, STREAMED) if outer is None else 0.0
            allocates = _stored_from(nest, rates, beyond, None)
        moved = (float(unit) * loads, float(unit) * stores, float(unit) * clean)
        a, b, c = (sympy.Float(number) for number in moved)
        allocated = min(float(unit) * allocates, moved[0]) if machine.levels[0].write_allocate else 0.0
        paths.append(PathTraffic(path.name, *moved, a, b, c, allocated))
    return tuple(paths)


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
        extra = repeated if index == 0 else 0.0
        levels.append(
            LevelTraffic(
                level=level.name,
                loads=factor * (rates.of(level.name, "loads") + extra),
                load_hits=factor * (rates.of(level.name, "load_hits") + extra),
                load_misses=factor * rates.of(level.name, "load_misses"),
                stores=factor * rates.of(level.name, "stores"),
                store_hits=factor * rates.of(level.name, "store_hits"),
                store_misses=factor * rates.of(level.name, "store_misses"),
                dirty_evictions=factor * rates.of(level.name, "dirty_evictions"),
                clean_evictions=factor * rates.of(level.name, "clean_evictions"),
            )
        )
    return tuple(levels)


def evadable(nest: NumericNest) -> tuple[int, ...]:
    """The stores whose lines the innermost loop writes from end to end, and which nobody reads.

    Several references may do it together (the components of a structure).
    """
    numbers = stored(nest)
    return tuple(number for number in numbers if _writes_whole_lines(nest, number) and not _is_read(nest, number))


def _writes_whole_lines(nest: NumericNest, number: int) -> bool:
    own = nest.references[number].reference
    stride = abs(own.address.coefficients[-1] * nest.loops[-1].step) if nest.loops else 0
    if not stride or own.depth < len(nest.loops) or own.indirections or stride > nest.line_bytes:
        return False
    alike = [nest.references[other].reference for other in stored(nest) if _alike(nest, number, other)]
    places = {(other.address.constant - own.address.constant) % stride for other in alike}
    return len(places) * own.size_bytes >= stride


def _alike(nest: NumericNest, one: int, other: int) -> bool:
    """Whether two references run through the same array side by side."""
    a, b = nest.references[one], nest.references[other]
    same_way = a.reference.address.coefficients == b.reference.address.coefficients
    return a.access.array == b.access.array and same_way


def _is_read(nest: NumericNest, number: int) -> bool:
    array = nest.references[number].access.array
    return any(each.access.array == array and each.reference.kind == "load" for each in nest.references)
