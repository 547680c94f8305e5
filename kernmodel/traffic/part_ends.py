"""What one core's part of a nest has at its ends: rows that it reads and other cores have in their parts."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial

from kernmodel.formulas.formula import Formula, LateFormula, counted
from kernmodel.machine.model import Machine
from kernmodel.traffic.model import (
    QUANTITIES,
    SYMBOLIC,
    AccessTraffic,
    LevelTraffic,
    PathTraffic,
    Traffic,
    arithmetic_intensity,
)

_COUNTS = tuple(field.name for field in fields(LevelTraffic) if field.name != "level")


def with_ends(traffic: Traffic, part: Traffic, inside: Traffic, machine: Machine) -> Traffic:
    """The traffic of a nest, or of windows inside of a part of it, with the lines at the ends of the part.

    Args:
        part, inside: the traffic by layer conditions with and without these lines.
    """
    symbolic = traffic.method == SYMBOLIC
    paths = tuple(_path(*each, symbolic) for each in zip(traffic.paths, part.paths, inside.paths, strict=True))
    moved = traffic.register_loads_bytes + traffic.register_stores_bytes
    return replace(
        traffic,
        paths=paths,
        accesses=tuple(map(_row, traffic.accesses, part.accesses, inside.accesses)),
        levels=tuple(map(_level, traffic.levels, part.levels, inside.levels)),
        arithmetic_intensity=arithmetic_intensity(
            traffic.flops_per_iteration * traffic.iterations_per_unit, moved, paths, machine
        ),
    )


def _path(path: PathTraffic, part: PathTraffic, inside: PathTraffic, symbolic: bool) -> PathTraffic:
    loads, stores, clean = (getattr(path, name) + getattr(part, name) - getattr(inside, name) for name in QUANTITIES)
    formulas: list[Formula]
    if symbolic:
        names = [f"{name}_formula" for name in QUANTITIES]
        formulas = [
            LateFormula(partial(_moved, *(getattr(one, name) for one in (path, part, inside)))) for name in names
        ]
    else:
        formulas = [counted(lines) for lines in (loads, stores, clean)]
    more = {name: getattr(part, name) - getattr(inside, name) for name in QUANTITIES}
    intervals = {
        name: known and replace(known, low=known.low + more[name], high=known.high + more[name])
        for name, known in path.intervals.items()
    }
    made = PathTraffic(path.path, loads, stores, clean, formulas[0], formulas[1], formulas[2])
    return replace(made, write_allocates=path.write_allocates, intervals=intervals)


def _moved(path: Formula, part: Formula, inside: Formula) -> Formula:
    return path + part - inside


def _row(row: AccessTraffic, part: AccessTraffic, inside: AccessTraffic) -> AccessTraffic:
    served = {
        level: lines + part.served_by.get(level, 0.0) - inside.served_by.get(level, 0.0)
        for level, lines in row.served_by.items()
    }
    return replace(row, served_by=served)


def _level(level: LevelTraffic, part: LevelTraffic, inside: LevelTraffic) -> LevelTraffic:
    counts = {name: getattr(level, name) + getattr(part, name) - getattr(inside, name) for name in _COUNTS}
    return replace(level, **counts)
