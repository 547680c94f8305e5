"""The answer of `kernmodel scaling` as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.ecm import outside_fields, saturation_cores
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count, decimal, time_in
from kernmodel.report.sections import (
    code_fields,
    kernel_fields,
    machine_fields,
    merged_notes,
    notes_section,
    unit_of_work,
)
from kernmodel.units import meaningful_units

if TYPE_CHECKING:
    from kernmodel.studies.scaling import ScalingAnswer, ScalingRow
    from kernmodel.units import Work


def scaling_report(answers: Sequence[ScalingAnswer], unit: str, *, verbose: bool = False) -> tuple[Block, ...]:
    """One or more points of sizes, one below the other; performance is in `unit` (one of `units.TIME_UNITS`).

    Raises:
        UsageError: the unit has no meaning for the kernel.
    """
    blocks = [block for answer in answers for block in _one(answer, unit, verbose=verbose)]
    return (*blocks, *notes_section(merged_notes(note for answer in answers for note in answer.notes)))


def _one(answer: ScalingAnswer, unit: str, *, verbose: bool) -> tuple[Block, ...]:
    single = answer.single
    pairs = (
        *kernel_fields(single.nest, single.sizes),
        *machine_fields(single.machine),
        ("ccNUMA domains", _domains(answer)),
        *code_fields(single.origin),
        ("unit of work", unit_of_work(single.traffic)),
        ("one core", f"{single.prediction.shorthand()}, T_ECM = {single.prediction.cycles:.2f} cy/CL"),
        *outside_fields(single.prediction),
        ("bottleneck", single.prediction.bottleneck),
    )
    return (
        Heading(f"Scaling of {single.nest.name} on {single.machine.name}"),
        Fields(pairs),
        *_summary(answer, unit),
        *_table(answer, unit, verbose=verbose),
        *_cache_effects(answer),
    )


def _domains(answer: ScalingAnswer) -> str:
    topology = answer.single.machine.topology
    domain = topology.cores_per_numa_domain
    return f"{topology.cores // domain} of {count(domain, 'core')} each, filled one after the other"


def _summary(answer: ScalingAnswer, unit: str) -> tuple[Block, ...]:
    """Both saturation points, the best performance of a domain and of the table, and what most of it takes."""
    in_one_domain = [row for row in answer.rows if row.point.domains == 1]
    enough = next(row for row in answer.rows if row.point.cores == answer.best_cores)
    work = answer.single.prediction.work

    def told(row: ScalingRow) -> str:
        return f"{time_in(row.point.cycles, unit, work)} on {count(row.point.cores, 'core')}"

    pairs = (
        ("simple rule ⌈T_ECM/T_Mem⌉", _saturation(answer, answer.saturation_simple)),
        ("recursive latency-aware rule", _saturation(answer, answer.saturation_recursive)),
        *((("best of one domain", told(_best(in_one_domain))),) if in_one_domain else ()),
        ("best of all", told(_best(answer.rows))),
        ("95 % of it", told(enough)),
    )
    title = "Saturation point of a ccNUMA domain, and best performance of the core counts below by the recursive rule"
    return (Heading(title), Fields(pairs))


def _best(rows: Sequence[ScalingRow]) -> ScalingRow:
    """The fastest row, of several with the fewest cores."""
    highest = max(row.point.units_per_cycle for row in rows)
    return next(row for row in rows if row.point.units_per_cycle >= highest * (1 - 1e-9))


def _saturation(answer: ScalingAnswer, cores: int | None) -> str:
    if answer.single.prediction.memory_cycles <= 0:
        return "none: nothing moves over the memory path"
    domain = answer.single.machine.topology.cores_per_numa_domain
    return saturation_cores(cores, domain)


def _table(answer: ScalingAnswer, unit: str, *, verbose: bool) -> tuple[Block, ...]:
    work = answer.single.prediction.work
    rates = (name for name in meaningful_units(work) if name.endswith("/s"))
    units = tuple(dict.fromkeys((unit, *rates))) if verbose else (unit,)
    names = ("cores", "domains", *units, "simple rule", "speed-up", "efficiency", "utilisation", "saturated")
    more = (Column("T_ECM of a core"),) if verbose else ()
    columns = (*map(Column, names), *more, Column("what limits", "left", fold=True))
    rows = tuple(_row(row, units, work, verbose=verbose) for row in answer.rows)
    title = "Performance by the recursive rule, and by the simple rule beside it; utilisation of the first domain"
    return (Heading(title), Table(columns, rows))


def _row(row: ScalingRow, units: Iterable[str], work: Work, *, verbose: bool) -> tuple[str, ...]:
    point = row.point
    units = tuple(units)
    return (
        str(point.cores),
        str(point.domains),
        *(time_in(point.cycles, unit, work) for unit in units),
        time_in(row.simple_cycles, units[0], work),
        decimal(row.speedup),
        f"{row.efficiency:.0%}",
        f"{point.utilization:.0%}",
        "yes" if point.saturated else "no",
        *((decimal(point.single_core_cycles),) if verbose else ()),
        row.limit,
    )


def _cache_effects(answer: ScalingAnswer) -> Iterator[Block]:
    """Where more cores change what fits into a core's share of the shared caches."""
    shared = [level for level in answer.single.machine.levels if level.cores_sharing > 1]
    if not shared:
        return
    changes = [f"  from {count(row.point.cores, 'core')}: {row.fits}" for row in answer.rows if row.fits]
    names = " and ".join(level.name for level in shared)
    yield Heading(f"Reuse as the share of {names} shrinks with the cores")
    for text in changes or ["  unchanged: the same reuse fits for every number of cores"]:
        yield Line(text)
