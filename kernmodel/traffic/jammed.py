"""What code moves that executes several iterations of an outer loop at once (unroll-and-jam, vector lanes).

Its traffic is that of the nest in the order of the code (`source.nest.jammed`), of which an iteration executes several
of the source's. Numbers of references are those of the source, of all their copies together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from functools import partial

from kernmodel.formulas.formula import Formula, LateFormula
from kernmodel.machine.model import Machine
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.jammed import Jam, copies_of, in_order
from kernmodel.source.nest.sizes import iterations_per_sweep
from kernmodel.source.nest.strides import updates_per_iteration
from kernmodel.traffic.model import AccessTraffic, LayerCondition, LevelTraffic, PathTraffic, Traffic
from kernmodel.traffic.stream_runs import Runs, contiguous_runs

_COUNTS = tuple(field.name for field in fields(LevelTraffic) if field.name != "level")


def runs_of(nest: LoopNest, sizes: Mapping[str, int], machine: Machine, jam: Jam | None = None) -> Runs | None:
    """How far each reference, or each of its copies, walks contiguously, where the machine knows what short runs cost;
    else None.

    Args:
        jam: of code that executes several iterations at once, which `source.nest.jammed` can write out.
    """
    if not any(path.run_length for path in machine.paths):
        return None
    runs = contiguous_runs(in_order(nest, jam), sizes, machine.line_bytes)
    if jam is None:
        return runs
    found: dict[tuple[str, str], tuple[float, ...]] = {}
    for access, moved in copies_of(nest, jam):
        key = access.array, access.text
        found[key] = found.get(key, ()) + runs.get((moved.array, moved.text), ())
    return {key: each for key, each in found.items() if each}


def per_source_iteration(traffic: Traffic, nest: LoopNest, sizes: Mapping[str, int], jam: Jam) -> Traffic:
    """The traffic of code that executes several iterations of a nest at once, for as many iterations of the nest as a
    unit of its work was of the code.

    Args:
        traffic: that of the nest that `source.nest.jammed` makes of `nest`.
    """
    symbolic, copies = traffic.symbolic and per_source_iteration(traffic.symbolic, nest, sizes, jam), jam.copies
    return replace(
        traffic,
        iterations_per_sweep=iterations_per_sweep(nest, sizes),
        updates_per_iteration=updates_per_iteration(nest),
        flops_per_iteration=traffic.flops_per_iteration / copies,
        register_loads_bytes=traffic.register_loads_bytes / copies,
        register_stores_bytes=traffic.register_stores_bytes / copies,
        paths=tuple(_path(path, copies) for path in traffic.paths),
        accesses=tuple(_rows(traffic, nest, jam)),
        conditions=tuple(_condition(condition, copies) for condition in traffic.conditions),
        levels=tuple(
            replace(level, **{name: getattr(level, name) / copies for name in _COUNTS}) for level in traffic.levels
        ),
        symbolic=symbolic,
        differences=tuple(
            replace(one, symbolic=one.symbolic / copies, simulated=one.simulated / copies)
            for one in traffic.differences
        ),
    )


def _path(path: PathTraffic, copies: int) -> PathTraffic:
    loads, stores, clean = (
        LateFormula(partial(_divided, formula, copies))
        for formula in (path.loads_formula, path.stores_formula, path.clean_victims_formula)
    )
    intervals = {
        name: known and replace(known, low=known.low / copies, high=known.high / copies)
        for name, known in path.intervals.items()
    }
    return PathTraffic(
        path.path, path.loads / copies, path.stores / copies, path.clean_victims / copies, loads, stores, clean,
        path.write_allocates / copies, intervals,
    )  # fmt: skip


def _divided(formula: Formula, copies: int) -> Formula:
    return formula / copies


def _rows(traffic: Traffic, nest: LoopNest, jam: Jam) -> Iterator[AccessTraffic]:
    """A row for each reference of the source, with the lines of all its copies and the reason of the first; those that
    are other references' copies have none."""
    rows = {(row.array, row.access, row.kind): row for row in traffic.accesses}
    served: dict[tuple[str, str, str], dict[str, float]] = {}
    for access, moved in copies_of(nest, jam):
        row = rows.get((moved.array, moved.text, moved.kind))
        lines = served.setdefault((access.array, access.text, access.kind), {})
        for level, number in row.served_by.items() if row else ():
            lines[level] = lines.get(level, 0.0) + number / jam.copies
    for access in nest.accesses:
        key = access.array, access.text, access.kind
        if key in rows:
            yield replace(rows[key], served_by=served[key])


def _condition(condition: LayerCondition, copies: int) -> LayerCondition:
    reuses = tuple(replace(reuse, lines_saved=reuse.lines_saved / copies) for reuse in condition.reuses)
    return replace(condition, reuses=reuses)
