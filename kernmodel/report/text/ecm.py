"""The answer of `kernmodel ecm` as text: one point, or a table over sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.code.calls import named
from kernmodel.models.ecm import AT_LEAST, UNKNOWN
from kernmodel.models.outside import NEGLIGIBLE
from kernmodel.report.layout import Blocks, Column, Line, Pair, entry, fields, left, lines, right, table
from kernmodel.report.number_text import as_text, decimal, time_in
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.report.text.caches import (
    STORES,
    byte_tables,
    comparison_section,
    evasion_section,
    level_table,
    sampling_section,
)
from kernmodel.report.text.sections import (
    code_fields,
    kernel_fields,
    loop_section,
    machine_fields,
    notes_section,
    parameters_section,
    sources_section,
    unit_of_work,
)
from kernmodel.report.text.traffic import (
    CONDITIONS,
    access_table,
    condition_columns,
    path_table,
    reuse_columns,
    size_columns,
    transfer_table,
)
from kernmodel.traffic.model import SYMBOLIC, strongest
from kernmodel.uncertainty import with_interval
from kernmodel.units import Work, meaningful_units
from kernmodel.value_types import NamedTuple
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.traffic.model import Traffic
    from kernmodel.uncertainty import Interval


def ecm_report(answer: EcmAnswer, unit: str, *, verbose: bool = False) -> Blocks:
    """The whole answer for one point; `unit` (one of `units.TIME_UNITS`) is the unit of the headline.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    pairs = (
        *kernel_fields(answer.nest, answer.sizes),
        *machine_fields(answer.machine),
        *code_fields(answer.origin),
        *_traffic_fields(answer.traffic),
        ("unit of work", unit_of_work(answer.traffic)),
    )
    return (
        *fields(f"ECM prediction of {answer.nest.name} on {answer.machine.name}", *pairs),
        *_model(answer.prediction, unit),
        *_levels(answer.prediction),
        *_reuse(answer.traffic, verbose=verbose),
        *evasion_section(answer.traffic, answer.machine),
        *_saturation(answer),
        *_scaling(answer, unit),
        *(_details(answer) if verbose else ()),
        *notes_section(answer.notes),
    )


def _traffic_fields(traffic: Traffic) -> tuple[Pair, ...]:
    """How the traffic was found and which stores it has, where it is not as usual."""
    method = () if traffic.method == SYMBOLIC else (("traffic", f"by {traffic.method}"),)
    stores = () if traffic.stores == "regular" else (("stores", STORES[traffic.stores]),)
    return (*method, *stores)


def _model(prediction: EcmPrediction, unit: str) -> Blocks:
    terms = " | ".join(("T_nOL", *(transfer.name for transfer in prediction.transfers)))
    levels = " ⌉ ".join(f"T_{level}" for level, _ in prediction.levels)
    heading, found = fields(
        "Single core",
        ("ECM model", prediction.shorthand()),
        ("", f"{{T_OL ‖ {terms}}}"),
        ("prediction", prediction.level_shorthand()),
        ("", f"{{{levels}}}"),
        *call_fields(prediction),
        *outside_fields(prediction),
        ("composition", prediction.overlap),
        ("bottleneck", bottleneck_text(prediction)),
    )
    equals = "" if prediction.unknown else "= "
    return (heading, Line(f"  T_ECM {equals}{headline(prediction, unit)}", "strong"), found)


def headline(prediction: EcmPrediction, unit: str, *, cause: bool = True) -> str:
    """T_ECM in a unit, with its interval; a bound where a time is not known."""
    found = cycles_text(prediction.cycles, prediction.cycles_interval, unit, prediction.work, cause=cause)
    return bound_sign(unit, prediction) + found


def bound_sign(unit: str, prediction: EcmPrediction) -> str:
    """The sign before T_ECM in a unit where a time is not known; nothing where all are."""
    return _bound(unit, least=bool(prediction.unknown))


def _bound(unit: str, *, least: bool) -> str:
    """The sign before a time of which a part is not known, and before the rate that it makes."""
    return "" if not least else "≤ " if unit.endswith("/s") else AT_LEAST


def call_fields(prediction: EcmPrediction) -> tuple[Pair, ...]:
    """T_call and the functions that it consists of, where the loop calls any."""
    calls = prediction.calls
    if calls is None:
        return ()
    each = [
        f"{one.per_unit:.4g} × {named(one.name)} of {UNKNOWN if one.cycles is None else decimal(one.cycles)} cy"
        for one in calls.functions
    ]
    sign = "=" if calls.known else AT_LEAST.strip()
    return (("calls", f"T_call {sign} {calls.cycles:.1f} cy/CL, beside T_OL ({' + '.join(each)})"),)


def outside_fields(prediction: EcmPrediction) -> tuple[Pair, ...]:
    """T_out and what it consists of, where it is not negligible, or that it is left out."""
    outside = prediction.outside
    if outside is None:
        return (("outside", "left out (--classic): the textbook prediction, of the body of the innermost loop alone"),)
    if max(outside.cycles, outside.less_cycles) < NEGLIGIBLE:
        return ()
    exits = "exits, if mispredicted" if outside.exit == "unknown" else "mispredicted exits"
    parts = (
        (outside.remainder_cycles, "remainder"),
        (outside.outer_cycles, "outer loops"),
        (outside.entry_cycles, exits),
    )
    listed = " + ".join(f"{cycles:.2f} {name}" for cycles, name in parts if cycles >= NEGLIGIBLE) or "in small parts"
    each = f"each entry of the inner loop has {outside.length:.4g} iterations"
    text = f"T_out = {outside.cycles:.2f} cy/CL, beside all other times ({listed}; {each}); --classic leaves it out"
    if outside.overlap_cycles >= NEGLIGIBLE:
        text += f". Chains of several rows overlap: {outside.overlap_cycles:.2f} cy/CL less of T_OL"
    if outside.straight_cycles >= NEGLIGIBLE:
        fewer = f"{outside.straight_cycles:.2f} cy/CL less of T_OL"
        text += f". Straight-line code executes most of an entry in place of passes of the loop: {fewer}"
    return (("outside", text),)


def _levels(prediction: EcmPrediction) -> Blocks:
    """The prediction per residence level in all units; T_ECM is marked with a star."""
    units = meaningful_units(prediction.work)
    last = prediction.levels[-1]

    def column(unit: str) -> Column:
        def written(level: tuple[str, float]) -> str:
            name, cycles = level
            return _bound(unit, least=prediction.is_least(name)) + time_in(cycles, unit, prediction.work)

        return right(unit, written)

    columns = (
        left("data in", lambda level: f"* {level[0]}" if level == last else level[0]),
        *map(column, units),
    )
    sweep = "s: one sweep of the nest" if "s" in units else "no time of a sweep: not all sizes are known"
    return table(f"Prediction if the data came from each level (* T_ECM; {sweep})", columns, prediction.levels)


def _reuse(traffic: Traffic, *, verbose: bool) -> Blocks:
    """What is found again in the caches: by layer conditions or by counts."""
    if traffic.method == SYMBOLIC:
        return _conditions(traffic)
    return (
        *comparison_section(traffic.symbolic, traffic, traffic.differences),
        *_conditions(traffic),
        *level_table(traffic),
        *sampling_section(traffic, verbose=verbose),
    )


def _conditions(traffic: Traffic) -> Blocks:
    """Per cache: the strongest layer condition that holds and the weakest that does not."""
    shown = []
    for cache in dict.fromkeys(condition.cache for condition in traffic.conditions):
        here = [condition for condition in traffic.conditions if condition.cache == cache]
        holding = strongest(here)
        failing = next((condition for condition in here if not condition.holds), None)
        shown += [condition for condition in (holding, failing) if condition is not None]
    return table(CONDITIONS, condition_columns("cache", "reuse along", "holds", "condition", "holds for"), shown)


def _saturation(answer: EcmAnswer) -> Blocks:
    title, prediction = "Saturation point of a ccNUMA domain", answer.prediction
    domain = answer.machine.topology.cores_per_numa_domain
    if not prediction.transfers[-1].known:
        return lines(title, ["not known: the machine file has no bandwidth of memory"])
    if prediction.memory_cycles <= 0:
        return lines(title, ["none: nothing moves over the memory path, so performance scales with the cores"])
    return fields(
        title,
        ("simple rule ⌈T_ECM/T_Mem⌉", saturation_cores(prediction.saturation_simple, domain, prediction)),
        ("recursive latency-aware rule", saturation_cores(prediction.saturation_recursive, domain, prediction)),
    )


def saturation_cores(number: int | None, domain: int, prediction: EcmPrediction) -> str:
    """A saturation point in words ("n_S = 5 cores of 10"); None: that of more cores than the domain has."""
    if number is None:
        return f"does not saturate within its {count(domain, 'core')}"
    if prediction.saturation_is_least:
        return f"n_S ≥ {count(number, 'core')} of {domain}: memory was measured on fewer, and all may draw more"
    return f"n_S = {count(number, 'core')} of {domain}"


class _Scaled(NamedTuple):
    """An answer at one of its core counts."""

    answer: EcmAnswer
    point: ScalingPoint


def _scaling(answer: EcmAnswer, unit: str) -> Blocks:
    points = [_Scaled(answer, point) for point in answer.scaling]
    title = "Scaling over cores (ccNUMA domains fill one after the other)"
    return table(title, _scaling_columns(answer.prediction, unit), points)


def _scaling_columns(prediction: EcmPrediction, unit: str) -> tuple[Column, ...]:
    """Performance of all cores in the headline's unit and the rates that the kernel has, speed-up over one core,
    utilisation of the memory bandwidth."""
    return (
        right("cores", "point.cores"),
        right("domains", "point.domains"),
        *performance_columns(with_rates(unit, prediction.work), prediction.work),
        right("speed-up", lambda scaled: at_least(scaled.point, _speedup(scaled), decimal)),
        right("utilisation (first domain)", "point.utilization", percent_or_unknown),
        right("saturated", "point.saturated", yes_or_unknown),
    )


def _speedup(scaled: _Scaled) -> float:
    return scaled.point.units_per_cycle * scaled.answer.prediction.cycles


def performance_columns(units: Iterable[str], work: Work) -> tuple[Column, ...]:
    """A column for each unit, of all cores of an item's `point`."""

    def column(unit: str) -> Column:
        return right(unit, lambda item: performance_text(item.point, unit, work))

    return tuple(map(column, units))


def performance_text(point: ScalingPoint, unit: str, work: Work) -> str:
    """The time of all cores, or their performance, with its interval."""
    return cycles_text(point.cycles, point.cycles_interval, unit, work, cause=False)


def cycles_text(cycles: float, interval: Interval | None, unit: str, work: Work, *, cause: bool) -> str:
    """A time in cycles in any unit, with its interval from the lower number to the higher one, and its cause."""
    if interval is not None and unit.endswith("/s"):
        interval = replace(interval, low=interval.high, high=interval.low)
    return with_interval(cycles, interval, lambda found: time_in(found, unit, work), cause=cause)


def at_least(point: ScalingPoint, value: float, written: Callable[[float], str]) -> str:
    """What follows from performance that is at least so high where it is not known."""
    return f"{AT_LEAST * (point.cycles_interval is not None)}{written(value)}"


def percent_or_unknown(share: float | None) -> str:
    """A share in percent."""
    return UNKNOWN if share is None else f"{share:.0%}"


def yes_or_unknown(found: bool | None) -> str:
    """Whether something is so."""
    return UNKNOWN if found is None else as_text(found)


def with_rates(unit: str, work: Work) -> tuple[str, ...]:
    """A unit and the rates that the kernel has."""
    return tuple(dict.fromkeys((unit, *(name for name in meaningful_units(work) if name.endswith("/s")))))


def _details(answer: EcmAnswer) -> Blocks:
    from kernmodel.report.text.incore import chain_section, pressure_section

    return (
        *path_table(answer.traffic, answer.machine),
        *byte_tables(answer.traffic, answer.machine),
        *access_table(answer.traffic),
        *transfer_table(answer.prediction.transfers),
        *pressure_section(answer.incore),
        *chain_section(answer.incore),
        *loop_section(answer.loop, answer.origin),
        *sources_section(
            answer.machine.sources, f"Sources of {answer.machine.file} (sha256 {answer.machine.sha256[:12]})"
        ),
        *parameters_section(answer.parameters),
    )


def sweep_inputs(answer: EcmAnswer) -> Blocks:
    """What all points of a sweep share."""
    title = f"ECM prediction of {answer.nest.name} on {answer.machine.name} over sizes (times in cy/CL)"
    pairs = (
        ("kernel", f"{answer.nest.name}, {answer.nest.file}"),
        *machine_fields(answer.machine),
        *code_fields(answer.origin),
        *_traffic_fields(answer.traffic),
        ("composition", answer.prediction.overlap),
    )
    return (*fields(title, *pairs), Line(""))


def sweep_items(answer: EcmAnswer) -> tuple[EcmAnswer | _Scaled, ...]:
    """What has a row in a sweep: the answer, or each of its core counts where scaling was asked for."""
    return tuple(_Scaled(answer, point) for point in answer.scaling) or (answer,)


def sweep_columns(answer: EcmAnswer, unit: str, points: Iterable[Mapping[str, int]]) -> tuple[Column, ...]:
    """The columns of a sweep: sizes, the model's times in cy/CL, the headline, and the layer conditions that hold; or
    sizes and scaling."""
    prediction = answer.prediction
    if answer.scaling:
        symbols = size_columns(points, answer.sizes, "answer.sizes")
        return (
            *symbols,
            right("T_ECM cy/CL", "answer.prediction.cycles"),
            *_scaling_columns(prediction, unit),
        )
    return (
        *size_columns(points, answer.sizes),
        *(right(name, entry(_times, name)) for name in prediction.times),
        *(right(f"T({level})", entry(_level_cycles, level)) for level, _ in prediction.levels),
        right(f"T_ECM {unit}", lambda answer: headline(answer.prediction, unit, cause=False)),
        *reuse_columns(answer.machine),
    )


def _times(answer: EcmAnswer) -> dict[str, float | str]:
    prediction = answer.prediction
    return {**prediction.times, **dict.fromkeys(prediction.unknown, UNKNOWN)}


def _level_cycles(answer: EcmAnswer) -> dict[str, str]:
    prediction = answer.prediction
    return {
        level: _bound("cy/CL", least=prediction.is_least(level)) + decimal(cycles)
        for level, cycles in prediction.levels
    }
