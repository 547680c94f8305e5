"""The answer of `kernmodel scaling` as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Column, fields, left, lines, right, table
from kernmodel.report.number_text import decimal
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.report.text.ecm import (
    at_least,
    cycles_text,
    outside_fields,
    percent_or_unknown,
    performance_columns,
    performance_text,
    saturation_cores,
    with_rates,
    yes_or_unknown,
)
from kernmodel.report.text.sections import (
    code_fields,
    kernel_fields,
    machine_fields,
    merged_notes,
    notes_section,
    unit_of_work,
)
from kernmodel.studies.scaling import unit_of_performance
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction
    from kernmodel.studies.scaling import ScalingAnswer, ScalingRow
    from kernmodel.units import Work


def scaling_report(answers: Sequence[ScalingAnswer], unit: str | None, *, verbose: bool = False) -> Blocks:
    """One or more points of sizes, one below the other; performance is in `unit` (None: the rate that the kernel has).

    Raises:
        UsageError: the unit has no meaning for the kernel.
    """
    shown = unit_of_performance(unit, answers[0].single.prediction.work)
    blocks = [block for answer in answers for block in _one(answer, shown, verbose=verbose)]
    return (*blocks, *notes_section(merged_notes(note for answer in answers for note in answer.notes)))


def _one(answer: ScalingAnswer, unit: str, *, verbose: bool) -> Blocks:
    single = answer.single
    pairs = (
        *kernel_fields(single.nest, single.sizes),
        *machine_fields(single.machine),
        ("ccNUMA domains", _domains(answer)),
        ("work", _work(answer)),
        *code_fields(single.origin),
        ("unit of work", unit_of_work(single.traffic)),
        ("one core", f"{single.prediction.shorthand()}, T_ECM = {single.prediction.cycles:.2f} cy/CL"),
        *outside_fields(single.prediction),
        ("bottleneck", bottleneck_text(single.prediction)),
    )
    return (
        *fields(f"Scaling of {single.nest.name} on {single.machine.name}", *pairs),
        *_summary(answer, unit),
        *_table(answer, unit, verbose=verbose),
        *_cache_effects(answer),
    )


def _domains(answer: ScalingAnswer) -> str:
    topology = answer.single.machine.topology
    domain = topology.cores_per_numa_domain
    how = "filled one after the other" if answer.spread.placement == "compact" else "filled in turn"
    return f"{topology.cores // domain} of {count(domain, 'core')} each, {how}"


def _work(answer: ScalingAnswer) -> str:
    static = "the same for every core, so that the slowest decides (static schedule)"
    return "as cores are ready for it (dynamic schedule)" if answer.spread.schedule == "dynamic" else static


def _summary(answer: ScalingAnswer, unit: str) -> Blocks:
    """Both saturation points, the best performance of a domain and of the table, and what most of it takes."""
    in_one_domain = [row for row in answer.rows if row.point.domains == 1]
    enough = next(row for row in answer.rows if row.point.cores == answer.best_cores)
    work = answer.single.prediction.work

    def told(row: ScalingRow) -> str:
        return f"{performance_text(row.point, unit, work)} on {count(row.point.cores, 'core')}"

    return fields(
        "Saturation point of a ccNUMA domain, and best performance of the core counts below by the recursive rule",
        ("simple rule ⌈T_ECM/T_Mem⌉", _saturation(answer, answer.saturation_simple)),
        ("recursive latency-aware rule", _saturation(answer, answer.saturation_recursive)),
        ("its penalty p0", _penalty(answer.single.prediction)),
        ("best of one domain", told(_best(in_one_domain)) if in_one_domain else None),
        ("best of all", told(_best(answer.rows))),
        ("95 % of it", told(enough)),
    )


def _penalty(prediction: EcmPrediction) -> str | None:
    """What p0 of the recursive rule is, and where it is from; None where no core waits for memory."""
    found, fitted = prediction.transfers[-1].bandwidth, prediction.penalties
    if prediction.memory_cycles <= 0:
        return None
    if not fitted or found is None:
        return "T_Mem/2"
    low, high = (f"{value:.2f}" for value in (min(fitted), max(fitted)))
    value = low if low == high else f"{low} to {high}"
    cores = "2" if len(fitted) == 1 else f"2 to {len(fitted) + 1}"
    return f"{value} T_Mem, by what {cores} cores draw of {found.mix.name}"


def _best(rows: Sequence[ScalingRow]) -> ScalingRow:
    """The fastest row, of several with the fewest cores."""
    highest = max(row.point.units_per_cycle for row in rows)
    return next(row for row in rows if row.point.units_per_cycle >= highest * (1 - 1e-9))


def _saturation(answer: ScalingAnswer, cores: int | None) -> str:
    if answer.single.prediction.memory_cycles <= 0:
        return "none: nothing moves over the memory path"
    domain = answer.single.machine.topology.cores_per_numa_domain
    return saturation_cores(cores, domain, answer.single.prediction)


def _division_columns() -> tuple[Column, ...]:
    """How many iterations of a divided loop the busiest core has, and how much of its work the others have."""
    return (
        right("its most iterations", "division.most", "{:.6g}".format),
        right("balance", "division.balance", lambda share: "?" if share is None else f"{share:.0%}"),
    )


def _table(answer: ScalingAnswer, unit: str, *, verbose: bool) -> Blocks:
    work = answer.single.prediction.work
    columns = (
        right("cores", "point.cores"),
        right("domains", "point.domains"),
        *performance_columns(with_rates(unit, work) if verbose else (unit,), work),
        right("simple rule", lambda row: simple_text(row, unit, work)),
        right("speed-up", lambda row: at_least(row.point, row.speedup, decimal)),
        right("efficiency", lambda row: at_least(row.point, row.efficiency, "{:.0%}".format)),
        right("utilisation", "point.utilization", percent_or_unknown),
        right("saturated", "point.saturated", yes_or_unknown),
        *((right("T_ECM of a core", "point.single_core_cycles"),) if verbose else ()),
        *(_division_columns() if answer.rows[0].division is not None else ()),
        left("what limits", "limit", fold=True),
    )
    title = "Performance by the recursive rule, and by the simple rule beside it; utilisation of the first domain"
    return table(title, columns, answer.rows, always=True)


def simple_text(row: ScalingRow, unit: str, work: Work) -> str:
    """The time of all cores by the simple rule, or their performance, with its interval."""
    found = row.point.cycles_interval
    held = None if found is None else replace(found, low=min(found.low, row.simple_cycles), high=row.simple_cycles)
    return cycles_text(row.simple_cycles, held, unit, work, cause=False)


def _cache_effects(answer: ScalingAnswer) -> Blocks:
    """Where more cores change what fits into a core's share of the shared caches."""
    shared = [level.name for level in answer.single.machine.levels if level.cores_sharing > 1]
    changes = [f"from {count(row.point.cores, 'core')}: {row.fits}" for row in answer.rows if row.fits]
    title = f"Reuse as the share of {' and '.join(shared)} shrinks with the cores"
    unchanged = ["unchanged: the same reuse fits for every number of cores"]
    return lines(title, changes or unchanged) if shared else ()
