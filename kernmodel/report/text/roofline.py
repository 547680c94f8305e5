"""The answer of `kernmodel roofline` as text: intensities, ceilings, bound, and what limits; or a table of kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel.models.chart import TITLES
from kernmodel.models.ecm import UNKNOWN
from kernmodel.report.layout import Blocks, Column, Fields, Line, Pair, fields, left, lines, right, table
from kernmodel.report.number_text import prefixed, short
from kernmodel.report.text.bottleneck import limit_text
from kernmodel.report.text.sections import (
    code_fields,
    kernel_fields,
    loop_section,
    machine_fields,
    merged_notes,
    notes_section,
)
from kernmodel.uncertainty import Interval, upper_bound, with_interval
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.models.chart import ComputeRoof, LevelShare, MeasuredMark, MemoryRoof, Roofline
    from kernmodel.studies.predict.arranged import Step
    from kernmodel.studies.predict.roofline import Charted, RooflineAnswer, Subject
    from kernmodel.uncertainty import Interval

_ROLES = {
    "peak": "peak of the machine",
    "scaled": "scaled by the kernel's mix",
    "in-core": "the kernel's own code",
    "dependency": "the kernel's own code",
}
FLOP = "an FMA counts 2; all cores together"


def roofline_report(answer: RooflineAnswer, *, verbose: bool = False) -> Blocks:
    """The whole answer."""
    if len(answer.kernels) > 1:
        return _several(answer)
    kernel = answer.kernels[0]
    pairs = (*subject_fields(kernel.subject), *machine_fields(answer.machine), ("FLOP", FLOP))
    return (
        *fields(f"Roofline of {kernel.subject.name} on {answer.machine.name}, {count(answer.cores, 'core')}", *pairs),
        *(block for chart in kernel.rooflines for block in chart_blocks(chart, kernel.subject)),
        *(shares_section(kernel.shares) if verbose else ()),
        *(loop_section(kernel.subject.loop, kernel.subject.origin) if verbose else ()),
        *notes_section(answer.notes),
    )


def subject_fields(subject: Subject) -> tuple[Pair, ...]:
    """Which kernel at which sizes, and which code."""
    source = kernel_fields(subject.nest, subject.sizes) if subject.nest is not None else ()
    mix = subject.case.mix
    given = (("instruction mix", mix.source),) if mix is not None and mix.source.startswith("file ") else ()
    return (*source, *code_fields(subject.origin), *given)


def chart_blocks(chart: Roofline, subject: Subject) -> Blocks:
    """One model of one kernel: what limits, the intensities with their roofs, the compute roofs."""
    bound = f"{at_most(chart, cause=True)}, by {limiting_roof(chart)}"
    headline = "  no bound: the intensity is not known" if chart.bound is None else f"  {bound}"
    known = bool(subject.iterations_per_second)
    region = chart.either(lambda one: one.region and _REGIONS[one.region])
    heading, verdict = fields(
        TITLES[chart.model],
        ("bytes", chart.bytes_meant),
        ("predicted (ECM)", _prediction(chart, subject) if known else None),
        ("measured", "; ".join(map(mark_text, chart.measured)) or None),
        ("limited by", (limit_text(subject) or None) if known else None),
        ("region", region and region + (", of those that are known" if chart.unknown else "")),
        ("not known", f"the roof of {', '.join(chart.unknown)}" if chart.unknown else None),
        ("roof above", region and chart.either(lambda one: one.above or "none")),
        ("below", region and chart.either(lambda one: one.below or "none")),
    )
    return (
        heading,
        Line(headline, "strong"),
        verdict,
        *_intensities(chart),
        *compute_section(chart.compute_roofs),
    )


def mark_text(mark: MeasuredMark) -> str:
    """A measurement with its share of its roof."""
    at = f", {short(mark.intensity)} FLOP/B by measured bytes" if mark.by_bytes else ""
    share = f"{share_of_roof(mark)} of {roof_name(mark.roof)}"
    return f"{prefixed(mark.flop_per_second, 'FLOP/s')}, {share}{at}"


def share_of_roof(mark: MeasuredMark) -> str:
    """What was measured of what its roof allows, in percent."""
    return with_interval(mark.percent_of_roof, mark.percent_interval, "{:.0f} %".format, cause=False)


def limit_of(chart: Roofline) -> str:
    """The bound with its unit, iterations where the kernel computes nothing, and its interval."""
    return rate_text(*_limit(chart))


def at_most(chart: Roofline, *, cause: bool = False) -> str:
    """The bound in a sentence."""
    value, interval, unit = _limit(chart)
    return f"at most {upper_bound(value, interval, lambda one: prefixed(one, unit), cause=cause)}"


def _limit(chart: Roofline) -> tuple[float, Interval | None, str]:
    if chart.bound:
        return chart.bound, chart.bound_interval, "FLOP/s"
    return chart.iterations_per_second, chart.iterations_per_second_interval, "It/s"


def rate_text(value: float, interval: Interval | None, unit: str, *, cause: bool = False) -> str:
    """A rate with an SI prefix, and its interval."""
    return with_interval(value, interval, lambda one: prefixed(one, unit), cause=cause)


def roof_name(name: str | None) -> str:
    """A roof in a sentence."""
    return f"the roof of {name}" if name else "-"


def limiting_roof(chart: Roofline) -> str:
    """What gives the bound, in a sentence."""
    return roof_name(chart.either(lambda one: one.bound_by))


_REGIONS = {
    "memory": "memory: left of every ridge point",
    "compute": "compute: right of every ridge point",
    "in between": "in between: memory and compute roofs cross here",
}


def _prediction(chart: Roofline, subject: Subject) -> str:
    rate, interval = subject.iterations_per_second or 0.0, subject.iterations_per_second_interval
    most = interval.high if interval and chart.most else rate
    shares = sorted((rate / chart.iterations_per_second, most / (chart.most or chart).iterations_per_second))
    of_bound = " to ".join(dict.fromkeys(map("{:.0%}".format, shares)))
    return f"{_performance(subject)}, {of_bound} of the bound"


def _intensities(chart: Roofline) -> Blocks:
    """Each memory roof with the intensity that meets it, and the performance where they meet."""
    intensities = {point.level: point.intensity for point in chart.points}
    highest = max(
        (roof.flop_per_second for roof in chart.compute_roofs if roof.role in ("peak", "scaled")), default=None
    )

    def intensity(roof: MemoryRoof) -> float | None:
        return intensities.get(roof.level, intensities.get(""))

    def ridge(roof: MemoryRoof) -> str | None:
        if highest is None:
            return None
        return roof_text(roof, lambda rate: highest / rate, lambda found: f"{short(found)} FLOP/B")

    columns = (
        left("level", lambda roof: f"* {roof.level}" if roof.level == chart.bound_by else roof.level),
        right("FLOP/B", lambda roof: intensity_text(intensity(roof))),
        right("bandwidth", roof_text),
        right("allows", lambda roof: allowed_text(roof, intensity(roof))),
        right("ridge point", ridge),
        left("origin of the bandwidth", "origin", fold=True),
    )
    return table("Arithmetic intensity and memory roofs (* limits)", columns, chart.memory_roofs, always=True)


def bandwidth_text(value: float) -> str:
    """Bytes per second."""
    return prefixed(value, "B/s")


def roof_text(
    roof: MemoryRoof, of: Callable[[float], float] = float, written: Callable[[float], str] = bandwidth_text
) -> str:
    """What follows from the bandwidth of a roof, with its interval; the bandwidth itself if nothing is said."""
    held = roof.bytes_per_second_interval
    return with_interval(of(roof.bytes_per_second), held and held.map(of), written, cause=False)


def allowed_text(roof: MemoryRoof, intensity: float | None) -> str | None:
    """The performance that a roof allows at an intensity."""
    if not intensity:
        return None
    return roof_text(roof, lambda rate: intensity * rate, lambda found: prefixed(found, "FLOP/s"))


def intensity_text(intensity: float | None) -> str:
    """An intensity; without bytes it is infinite."""
    return "∞" if intensity is None else short(intensity)


def compute_section(roofs: Sequence[ComputeRoof]) -> Blocks:
    """The compute roofs, highest first."""
    columns = (
        left("roof", "name"),
        right("performance", lambda roof: prefixed(roof.flop_per_second, "FLOP/s")),
        left("is", lambda roof: _ROLES[roof.role]),
        left("origin", "origin", fold=True),
    )
    none = lines("Compute roofs", ["none: the kernel has no floating-point work"])
    return table("Compute roofs", columns, roofs) or none


def shares_section(shares: Sequence[LevelShare]) -> Blocks:
    """Memory share and memory impact of each level."""

    def known(value: float | None, interval: Interval | None, written: Callable[[float], str]) -> str:
        return UNKNOWN if value is None else with_interval(value, interval, written, cause=False)

    def percent(share: float) -> str:
        return f"{100 * share:.1f} %"

    columns = (
        left("level", "level"),
        right("B/It served", "bytes_served", short),
        right("bandwidth", lambda one: known(one.bandwidth, one.bandwidth_interval, bandwidth_text)),
        right("memory share", lambda one: percent(one.share)),
        right("memory impact", lambda one: known(one.impact, one.impact_interval, percent)),
    )
    title = "Memory share (of the bytes) and memory impact (of the time) by the level that serves the core"
    return table(title, columns, shares)


def _several(answer: RooflineAnswer) -> Blocks:
    title = f"Rooflines of {len(answer.kernels)} kernels on {answer.machine.name}, {count(answer.cores, 'core')}"
    origin = next((one.subject.origin for one in answer.kernels if one.subject.origin is not None), None)
    return (
        *fields(title, *machine_fields(answer.machine), *code_fields(origin), ("FLOP", FLOP)),
        *(block for number in range(len(answer.models)) for block in _model_table(answer.kernels, number)),
        *steps_section(answer.arrangement.steps),
        *time_section(answer.times),
        *notes_section(merged_notes(answer.notes)),
    )


def steps_section(steps: Sequence[Step]) -> Blocks:
    """What each version of a kernel is to the one before."""
    columns = (
        left("from", "before"),
        left("to", "after"),
        right("FLOP/s", lambda step: times_text(step.flop_rate)),
        right("It/s", lambda step: times_text(step.iteration_rate)),
    )
    return table("Versions (later over earlier)", columns, steps)


def times_text(ratio: float | None) -> str | None:
    """ "1.5×"."""
    return None if ratio is None else f"{ratio:.3g}×"


def time_section(shares: Mapping[str, float]) -> Blocks:
    """Of the time that all kernels take, the share of each, the largest first."""
    columns = (left("kernel", lambda one: one[0]), right("%", lambda one: f"{100 * one[1]:.3g}"))
    return table("Shares of the time", columns, sorted(shares.items(), key=lambda one: -one[1]))


def _model_table(kernels: Sequence[Charted], number: int) -> Blocks:
    """The kernels under the model of this number."""
    first = kernels[0].rooflines[number]

    def intensity(at: int) -> Callable[[tuple[Subject, Roofline]], str]:
        return lambda found: intensity_text(found[1].points[at].intensity)

    columns = (
        left("kernel", lambda found: found[0].name),
        *(right(f"FLOP/B {point.level}".rstrip(), intensity(at)) for at, point in enumerate(first.points)),
        right("predicted", lambda found: _performance(found[0])),
        *_measured_columns(kernels, number),
        right("bound", lambda found: limit_of(found[1])),
        left("limited by", lambda found: found[1].either(lambda chart: chart.bound_by)),
        left("region", lambda found: found[1].either(lambda chart: chart.region)),
    )
    heading, found = table(TITLES[first.model], columns, ((one.subject, one.rooflines[number]) for one in kernels))
    return (heading, Fields((("bytes", first.bytes_meant),)), found)


def _measured_columns(kernels: Sequence[Charted], number: int) -> tuple[Column, ...]:
    """What was measured, where anything was: the first measurement of each kernel."""
    if not any(one.rooflines[number].measured for one in kernels):
        return ()

    def first(found: tuple[Subject, Roofline]) -> MeasuredMark | None:
        return next(iter(found[1].measured), None)

    return (
        right("measured", lambda found: prefixed(mark.flop_per_second, "FLOP/s") if (mark := first(found)) else None),
        right("of its roof", lambda found: share_of_roof(mark) if (mark := first(found)) else None),
    )


def _performance(subject: Subject) -> str | None:
    """What is predicted: iterations where the kernel computes nothing."""
    case, rate = subject.case, subject.iterations_per_second
    if case.performance:
        return rate_text(case.performance, case.performance_interval, "FLOP/s")
    return rate_text(rate, subject.iterations_per_second_interval, "It/s") if rate else None
