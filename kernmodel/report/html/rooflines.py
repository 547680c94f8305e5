"""Charts of the roofline family, and of memory share and memory impact."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.models.chart import TITLES
from kernmodel.report.html.charts import Axis, Bar, BarChart, Chart, LineChart, Series, stacked
from kernmodel.report.number_text import prefixed, short
from kernmodel.report.text.roofline import (
    at_most,
    chart_blocks,
    limiting_roof,
    rate_text,
    roof_text,
    share_of_roof,
    shares_section,
    steps_section,
    time_section,
    times_text,
)
from kernmodel.studies.predict.arranged import UNARRANGED, Arrangement, AxisLimits, step_ends
from kernmodel.uncertainty import with_interval
from kernmodel.units import format_si
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.models.chart import ComputeRoof, LevelShare, MemoryRoof, Roofline
    from kernmodel.studies.predict.arranged import Step
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer, Subject

Charted = tuple["Subject", "Roofline"]
_PEAKS = ("peak", "scaled")
_FIRST_COLOUR = 4
"""Of points: those before it are of levels."""
_ROOM = 8.0
"""Factor by which the axes go beyond points and ridge points."""


def roofline_charts(answers: Sequence[RooflineAnswer]) -> tuple[Chart, ...]:
    """A chart of each model with all kernels; memory share and impact of those whose traffic is known."""
    answer = answers[0]
    shares = (shares_chart(one.shares, one.subject.name) for one in answer.kernels if one.shares)
    return (*models_charts(answer), *shares)


def models_charts(answer: RooflineAnswer) -> tuple[LineChart, ...]:
    """A chart of each model with all kernels."""
    charts = []
    for number in range(len(answer.models)):
        charted = [(one.subject, one.rooflines[number]) for one in answer.kernels]
        charts.append(model_chart(charted, answer.arrangement))
    axes = answer.arrangement.axes
    if isinstance(axes, AxisLimits):
        return tuple(replace(chart, limits=(*axes.intensity, *axes.flop_per_second)) for chart in charts)
    return same_axes(charts) if axes == "same" else tuple(charts)


def carm_charts(answers: Sequence[CarmAnswer]) -> tuple[Chart, ...]:
    """The application-driven chart and the cache-aware one beside it on the same axes, memory share and impact."""
    subject, findings = answers[0].subject, answers[0].findings
    charts = same_axes([model_chart([(subject, one)]) for one in (findings.roofline, findings.beside)])
    shares = [shares_chart(findings.shares, subject.name)] if findings.shares else []
    return (*charts, *shares)


def same_axes(charts: Sequence[LineChart]) -> tuple[LineChart, ...]:
    """The charts, whose axes are logarithmic, with limits that hold all that any of them shows."""
    points = [point for chart in charts for one in chart.series for point in one.points]
    (left, right), (bottom, top) = ((min(values), max(values)) for values in zip(*points, strict=True))
    limits = (left / _EDGE, right * _EDGE, bottom / _EDGE, top * _EDGE)
    return tuple(replace(chart, limits=limits) for chart in charts)


_EDGE = 1.3
"""Factor by which common axes go beyond what they hold."""


def model_chart(charted: Sequence[Charted], arrangement: Arrangement = UNARRANGED) -> LineChart:
    """One model: roofs with their values, a point for each kernel and level, and arrows from version to version."""
    chart = charted[0][1]
    points = [
        (subject.name, point)
        for subject, one in charted
        for point in one.points
        if point.intensity and point.flop_per_second > 0
    ]
    rooflines = [one for _, one in charted]
    series = [*_roofs(rooflines), *_points(charted, arrangement), *_steps(rooflines, arrangement.steps)]
    bounds = [f"{who.name}: {at_most(one)} by {limiting_roof(one)}" for who, one in charted if one.region]
    bounds += map(_step_text, arrangement.steps)
    none = "" if points else " No kernel has a point: no floating-point work, or no bytes."
    return LineChart(
        title=TITLES[chart.model],
        about=f"{count(chart.cores, 'core')}; intensity of {chart.bytes_meant}. {'; '.join(bounds)}.{none}",
        x=Axis("arithmetic intensity (FLOP/B)", log=True),
        y=Axis("performance", "FLOP/s", log=True),
        series=tuple(series),
        table=(
            *(block for subject, one in charted for block in chart_blocks(one, subject)),
            *steps_section(arrangement.steps),
            *time_section({who.name: share for (who, _), share in zip(charted, arrangement.time_shares, strict=False)}),
        ),
    )


def _range(charts: Sequence[Roofline]) -> tuple[float, float]:
    """Intensities from left of all points and ridge points to right of them."""
    intensities = [point.intensity for one in charts for point in one.points if point.intensity]
    bandwidths = [roof.bytes_per_second for one in charts for roof in one.memory_roofs]
    peaks = [roof.flop_per_second for one in charts for roof in one.compute_roofs]
    ridges = [peak / rate for rate in (min(bandwidths), max(bandwidths)) for peak in (max(peaks, default=0.0),) if peak]
    found = [*intensities, *ridges] or [1.0]
    return min(found) / _ROOM, max(found) * _ROOM


def _roofs(charts: Sequence[Roofline]) -> Iterator[Series]:
    """Memory roofs up to the highest compute roof, compute roofs from the highest memory roof on; of several kernels,
    each roof once."""
    low, high = _range(charts)
    memory = list({(one.level, one.bytes_per_second): one for each in charts for one in each.memory_roofs}.values())
    shown = [one for each in charts for one in each.compute_roofs if _is_shown(one, charts)]
    compute = {(one.name, one.flop_per_second): one for one in shown}
    top = max((height for _, height in compute), default=math.inf)
    widest = max((roof.bytes_per_second for roof in memory), default=0.0)
    for number, level in enumerate(dict.fromkeys(roof.level for roof in memory)):
        for roof in (one for one in memory if one.level == level):
            end = min(high, top / roof.bytes_per_second)
            ends = tuple((x, x * roof.bytes_per_second) for x in (low, end))
            label = f"{roof.level} {roof_text(roof)}"
            yield Series(
                roof.level, ends, (_memory_tip(roof),), colour=number, dashed=roof.basis != "measured", label=label
            )
            if held := roof.bytes_per_second_interval:
                ends = tuple((x, x * held.high) for x in (low, min(high, top / held.high)))
                yield Series(roof.level, ends, (_memory_tip(roof),), colour=number, dashed=True, label="at most")
    for ceiling in compute.values():
        start = max(low, ceiling.flop_per_second / widest) if widest else low
        value = prefixed(ceiling.flop_per_second, "FLOP/s")
        tip = f"{ceiling.name}: {value}\n{ceiling.origin}"
        ends = tuple((x, ceiling.flop_per_second) for x in (start, high))
        own = ceiling.role in ("in-core", "dependency")
        yield Series(ceiling.name, ends, (tip,), colour=7 if own else 6, dashed=own, label=f"{ceiling.name} {value}")


def _is_shown(roof: ComputeRoof, charts: Sequence[Roofline]) -> bool:
    """Whether a compute roof is drawn: peaks always, those of a single kernel's own code unless above all peaks."""
    if roof.role in _PEAKS:
        return True
    peaks = [one.flop_per_second for each in charts for one in each.compute_roofs if one.role in _PEAKS]
    return len(charts) == 1 and roof.flop_per_second <= max(peaks, default=math.inf)


def _memory_tip(roof: MemoryRoof) -> str:
    cause = f"\n{held.cause} is not known" if (held := roof.bytes_per_second_interval) else ""
    return f"{roof.level}: {roof_text(roof)}\n{roof.origin}{cause}"


def _points(charted: Sequence[Charted], arrangement: Arrangement) -> Iterator[Series]:
    shares = arrangement.time_shares or (None,) * len(charted)
    most = max(arrangement.time_shares, default=1.0)
    for number, ((subject, one), share) in enumerate(zip(charted, shares, strict=True)):
        for point in one.points:
            if not point.intensity or point.flop_per_second <= 0:
                continue
            name = f"{subject.name} {point.level}".rstrip()
            what = "predicted" if point.predicted else "bound (nothing is predicted)"
            held = point.flop_per_second_interval
            tip = f"{name}: {short(point.intensity)} FLOP/B\n{what}: {rate_text(point.flop_per_second, held, 'FLOP/s')}"
            if one.bound:
                tip += f", {point.flop_per_second / one.bound:.0%} of the bound"
            if point.above_roof:
                tip += f"\nabove its own roof {point.above_roof}"
            if share is not None:
                tip += f"\n{100 * share:.3g}% of the time"
            label = point.level if len(charted) == 1 and point.level else name
            place = ((point.intensity, point.flop_per_second),)
            size = None if share is None else share / most
            yield Series(subject.name, place, (tip,), "marks", number + _FIRST_COLOUR, label=label, share=size)
            if held is not None:
                ends = ((point.intensity, held.low), (point.intensity, held.high))
                yield Series(subject.name, ends, (tip,), colour=number + _FIRST_COLOUR)
        yield from _measured(one, number + _FIRST_COLOUR)


def _steps(charts: Sequence[Roofline], steps: Sequence[Step]) -> Iterator[Series]:
    """Arrows from each version to the next."""
    for number, step in enumerate(steps):
        ends = step_ends(charts[number], charts[number + 1])
        if ends is not None:
            places = tuple((one.intensity or 0.0, one.flop_per_second) for one in ends)
            yield Series("versions", places, (_step_text(step),), "arrow", 6, label=times_text(step.flop_rate) or "")


def _step_text(step: Step) -> str:
    gain = times_text(step.flop_rate)
    return f"{step.before} to {step.after}: {gain} the performance" if gain else f"{step.before} to {step.after}"


def _measured(chart: Roofline, colour: int) -> Iterator[Series]:
    """Measurements as crosses, with their share of the roof above them."""
    for mark in chart.measured:
        name, told = f"{mark.name} {mark.level}".rstrip(), f"{share_of_roof(mark)} of {mark.roof}"
        value = f"{short(mark.intensity)} FLOP/B\nmeasured: {format_si(mark.flop_per_second, 'FLOP/s')}, {told}"
        place = ((mark.intensity, mark.flop_per_second),)
        yield Series("measured", place, (f"{name}: {value}",), "crosses", colour, label=told)


def shares_chart(shares: Sequence[LevelShare], name: str) -> BarChart:
    """Which level serves how much of the bytes, and takes how much of the time."""
    levels = tuple(one.level for one in shares)

    def bar(title: str, parts: Iterable[float]) -> Bar:
        return stacked(title, [(number, levels[number], 100 * part) for number, part in enumerate(parts)], "%")

    impacts = [one.impact for one in shares if one.impact is not None]
    known = len(impacts) == len(shares)
    parts = [f"{one.level} {one.share:.0%} of the bytes" for one in shares]
    if known:
        texts = (with_interval(one.impact or 0.0, one.impact_interval, "{:.0%}".format, cause=False) for one in shares)
        parts = [f"{part}, {impact} of the time" for part, impact in zip(parts, texts, strict=True)]
    told = "; ".join(parts) + ("" if known else "; a bandwidth is not known, and so no impact is")
    bars = (bar("memory share", (one.share for one in shares)), *([bar("memory impact", impacts)] if known else []))
    return BarChart(
        title=f"Memory share and memory impact of {name}",
        about=f"Memory share is of the bytes, memory impact of the time: {told}.",
        x=Axis("%"),
        legend=levels,
        frames=(bars,),
        table=shares_section(shares),
    )
