"""The answer of `kernmodel ecm` as text: one point, or a table over sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel.models.outside import NEGLIGIBLE
from kernmodel.report.caches import STORES, byte_tables, evasion_section, level_table, sampling_section
from kernmodel.report.comparison import comparison_section
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import MISSING, count, decimal, time_in, with_interval
from kernmodel.report.sections import (
    code_fields,
    kernel_fields,
    loop_section,
    machine_fields,
    notes_section,
    parameters_section,
    sources_section,
    unit_of_work,
)
from kernmodel.report.traffic import access_table, carried_by, holds_text, inequality, path_table
from kernmodel.report.traffic_sweep import size_columns
from kernmodel.traffic.model import SYMBOLIC, reuse_in, strongest
from kernmodel.units import meaningful_units

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.traffic.model import LayerCondition, Traffic


def ecm_report(answer: EcmAnswer, unit: str, *, verbose: bool = False) -> tuple[Block, ...]:
    """The whole answer for one point; `unit` (one of `units.TIME_UNITS`) is the unit of the headline.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    return (
        *_inputs(answer),
        *_model(answer.prediction, unit),
        *_levels(answer.prediction),
        *_reuse(answer.traffic, verbose=verbose),
        *evasion_section(answer.traffic, answer.machine),
        *_saturation(answer),
        *_scaling(answer, unit),
        *(_details(answer) if verbose else ()),
        *notes_section(answer.notes),
    )


def _inputs(answer: EcmAnswer) -> tuple[Block, ...]:
    traffic = answer.traffic
    unit = unit_of_work(traffic)
    pairs = (
        *kernel_fields(answer.nest, answer.sizes),
        *machine_fields(answer.machine),
        *code_fields(answer.origin),
        *_traffic_fields(traffic),
        ("unit of work", unit),
    )
    return (Heading(f"ECM prediction of {answer.nest.name} on {answer.machine.name}"), Fields(pairs))


def _traffic_fields(traffic: Traffic) -> tuple[tuple[str, str], ...]:
    """How the traffic was found and which stores it has, where it is not as usual."""
    method = () if traffic.method == SYMBOLIC else (("traffic", f"by {traffic.method}"),)
    stores = () if traffic.stores == "regular" else (("stores", STORES[traffic.stores]),)
    return (*method, *stores)


def _model(prediction: EcmPrediction, unit: str) -> tuple[Block, ...]:
    terms = " | ".join(("T_nOL", *(transfer.name for transfer in prediction.transfers)))
    levels = " ⌉ ".join(f"T_{level}" for level, _ in prediction.levels)
    pairs = (
        ("ECM model", prediction.shorthand()),
        ("", f"{{T_OL ‖ {terms}}}"),
        ("prediction", prediction.level_shorthand()),
        ("", f"{{{levels}}}"),
        *outside_fields(prediction),
        ("composition", prediction.overlap),
        ("bottleneck", prediction.bottleneck),
    )
    return (Heading("Single core"), Line(f"  T_ECM = {_headline(prediction, unit)}", "strong"), Fields(pairs))


def _headline(prediction: EcmPrediction, unit: str, *, cause: bool = True) -> str:
    """T_ECM in a unit, with its interval."""
    work, interval = prediction.work, prediction.cycles_interval
    return with_interval(prediction.cycles, interval, lambda value: time_in(value, unit, work), cause=cause)


def outside_fields(prediction: EcmPrediction) -> tuple[tuple[str, str], ...]:
    """T_out and what it consists of, where it is not negligible, or that it is left out."""
    outside = prediction.outside
    if outside is None:
        return (("outside", "left out (--classic): the textbook prediction, of the body of the innermost loop alone"),)
    if max(outside.cycles, outside.overlap_cycles) < NEGLIGIBLE:
        return ()
    exits = "exits, if mispredicted" if outside.exit == "unknown" else "mispredicted exits"
    parts = (
        (outside.remainder_cycles, "remainder"),
        (outside.outer_cycles, "outer loops"),
        (outside.entry_cycles, exits),
    )
    listed = " + ".join(f"{cycles:.2f} {name}" for cycles, name in parts if cycles >= NEGLIGIBLE) or "in small parts"
    each = f"each entry of the inner loop has {outside.length:.4g} iterations"
    text = f"T_out = {outside.cycles:.2f} cy/CL, in T_OL and in T_nOL ({listed}; {each}); --classic leaves it out"
    if outside.overlap_cycles >= NEGLIGIBLE:
        text += f". Chains of several rows overlap: {outside.overlap_cycles:.2f} cy/CL less of T_OL"
    return (("outside", text),)


def _levels(prediction: EcmPrediction) -> tuple[Block, ...]:
    """The prediction per residence level in all units; T_ECM is marked with a star."""
    units = meaningful_units(prediction.work)
    columns = (Column("data in", "left"), *map(Column, units))
    last = prediction.levels[-1][0]
    rows = tuple(
        (f"* {level}" if level == last else level, *(time_in(cycles, name, prediction.work) for name in units))
        for level, cycles in prediction.levels
    )
    sweep = "s: one sweep of the nest" if "s" in units else "no time of a sweep: not all sizes are known"
    return (Heading(f"Prediction if the data came from each level (* T_ECM; {sweep})"), Table(columns, rows))


def _reuse(traffic: Traffic, *, verbose: bool) -> tuple[Block, ...]:
    """What is found again in the caches: by layer conditions or by counts."""
    if traffic.method == SYMBOLIC:
        return _conditions(traffic)
    return (
        *comparison_section(traffic.symbolic, traffic, traffic.differences),
        *_conditions(traffic),
        *level_table(traffic),
        *sampling_section(traffic, verbose=verbose),
    )


def _conditions(traffic: Traffic) -> tuple[Block, ...]:
    """Per cache: the strongest layer condition that holds and the weakest that does not."""
    columns = tuple(Column(name, "left") for name in ("cache", "reuse along", "holds", "condition", "holds for"))
    shown = []
    for cache in dict.fromkeys(condition.cache for condition in traffic.conditions):
        here = [condition for condition in traffic.conditions if condition.cache == cache]
        holding = strongest(here)
        failing = next((condition for condition in here if not condition.holds), None)
        shown += [condition for condition in (holding, failing) if condition is not None]
    if not shown:
        return ()
    rows = tuple(_condition_row(condition) for condition in shown)
    return (Heading("Layer conditions (bytes needed ≤ bytes a core has)"), Table(columns, rows))


def _condition_row(condition: LayerCondition) -> tuple[str, ...]:
    solved = "; ".join(condition.solved.values()) or "for every size"
    return (condition.cache, carried_by(condition), holds_text(condition), inequality(condition), solved)


def _saturation(answer: EcmAnswer) -> tuple[Block, ...]:
    prediction = answer.prediction
    domain = answer.machine.topology.cores_per_numa_domain
    if prediction.memory_cycles <= 0:
        text = "  none: nothing moves over the memory path, so performance scales with the cores"
        return (Heading("Saturation point of a ccNUMA domain"), Line(text))
    pairs = (
        ("simple rule ⌈T_ECM/T_Mem⌉", saturation_cores(prediction.saturation_simple, domain)),
        ("recursive latency-aware rule", saturation_cores(prediction.saturation_recursive, domain)),
    )
    return (Heading("Saturation point of a ccNUMA domain"), Fields(pairs))


def saturation_cores(number: int | None, domain: int) -> str:
    """A saturation point in words ("n_S = 5 cores of 10"); None: that of more cores than the domain has."""
    return (
        f"does not saturate within its {count(domain, 'core')}"
        if number is None
        else f"n_S = {count(number, 'core')} of {domain}"
    )


def _scaling(answer: EcmAnswer, unit: str) -> tuple[Block, ...]:
    if not answer.scaling:
        return ()
    units = _scaling_units(answer.prediction, unit)
    columns = scaling_columns(units)
    rows = tuple(scaling_row(point, answer.prediction, units) for point in answer.scaling)
    return (Heading("Scaling over cores (ccNUMA domains fill one after the other)"), Table(columns, rows))


def _scaling_units(prediction: EcmPrediction, unit: str) -> tuple[str, ...]:
    """The headline's unit and the rates that the kernel has."""
    rates = (name for name in meaningful_units(prediction.work) if name.endswith("/s"))
    return tuple(dict.fromkeys((unit, *rates)))


def scaling_columns(units: Sequence[str]) -> tuple[Column, ...]:
    """The columns that `scaling_row` fills."""
    tail = ("speed-up", "utilisation (first domain)", "saturated")
    return tuple(Column(name) for name in ("cores", "domains", *units, *tail))


def scaling_row(point: ScalingPoint, prediction: EcmPrediction, units: Sequence[str]) -> tuple[str, ...]:
    """One core count: performance of all cores, speed-up over one core, utilisation of the memory bandwidth."""
    return (
        str(point.cores),
        str(point.domains),
        *(time_in(point.cycles, unit, prediction.work) for unit in units),
        decimal(point.units_per_cycle * prediction.cycles),
        f"{point.utilization:.0%}",
        "yes" if point.saturated else "no",
    )


def _details(answer: EcmAnswer) -> tuple[Block, ...]:
    from kernmodel.report.incore import chain_section, pressure_section

    return (
        *path_table(answer.traffic, answer.machine),
        *byte_tables(answer.traffic, answer.machine),
        *access_table(answer.traffic),
        *_transfers(answer.prediction),
        *pressure_section(answer.incore),
        *chain_section(answer.incore),
        *loop_section(answer.loop, answer.origin),
        *sources_section(
            answer.machine.sources, f"Sources of {answer.machine.file} (sha256 {answer.machine.sha256[:12]})"
        ),
        *parameters_section(answer.parameters),
    )


def _transfers(prediction: EcmPrediction) -> tuple[Block, ...]:
    columns = (*(Column(name) for name in ("time", "cy/CL", "of it penalty", "B/CL")), Column("bandwidth", "left"))
    rows = []
    for transfer in prediction.transfers:
        found = transfer.bandwidth
        origin = "width of the path in B/cy"
        if found is not None:
            rate = f"{found.bytes_per_second / 1e9:.1f} GB/s"
            origin = f"{rate} measured with {found.mix.name} on {count(found.cores, 'core')}, write-allocates counted"
        cells = (transfer.name, decimal(transfer.cycles), decimal(transfer.penalty_cycles), decimal(transfer.bytes, 1))
        rows.append((*cells, origin))
    return (Heading("Transfer times"), Table(columns, tuple(rows)))


def sweep_inputs(answer: EcmAnswer) -> tuple[Block, ...]:
    """What all points of a sweep share."""
    title = f"ECM prediction of {answer.nest.name} on {answer.machine.name} over sizes (times in cy/CL)"
    pairs = (
        ("kernel", f"{answer.nest.name}, {answer.nest.file}"),
        *machine_fields(answer.machine),
        *code_fields(answer.origin),
        *_traffic_fields(answer.traffic),
        ("composition", answer.prediction.overlap),
    )
    return (Heading(title), Fields(pairs), Line(""))


def sweep_columns(answer: EcmAnswer, unit: str, points: Iterable[Mapping[str, int]]) -> tuple[Column, ...]:
    """The columns of a sweep: sizes, the model's times, the headline, and the layer conditions that hold."""
    symbols = size_columns(points, answer.sizes)
    if answer.scaling:
        units = _scaling_units(answer.prediction, unit)
        return (*symbols, Column("T_ECM cy/CL"), *scaling_columns(units))
    times = (Column(f"{name}") for name in answer.prediction.times)
    levels = (Column(f"T({level})") for level, _ in answer.prediction.levels)
    caches = (Column(f"reuse in {level.name}", "left") for level in answer.machine.levels)
    return (*symbols, *times, *levels, Column(f"T_ECM {unit}"), *caches)


def sweep_rows(answer: EcmAnswer, unit: str) -> Iterator[tuple[str, ...]]:
    """The rows of one point: one, or one per core count where scaling was asked for. Times are in cy/CL."""
    prediction = answer.prediction
    symbols = tuple(str(value) for value in answer.sizes.values())
    if answer.scaling:
        units = _scaling_units(prediction, unit)
        for point in answer.scaling:
            yield (*symbols, decimal(prediction.cycles), *scaling_row(point, prediction, units))
        return
    times = (decimal(value) for value in prediction.times.values())
    levels = (decimal(cycles) for _, cycles in prediction.levels)
    held = (reuse_in(answer.traffic, level.name) or MISSING for level in answer.machine.levels)
    yield (*symbols, *times, *levels, _headline(prediction, unit, cause=False), *held)
