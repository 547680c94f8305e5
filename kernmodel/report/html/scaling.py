"""Charts of performance over cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.html.charts import Axis, LineChart, Series
from kernmodel.report.number_text import quantity
from kernmodel.report.text.ecm import performance_text
from kernmodel.studies.scaling import own_rate, rate_in
from kernmodel.studies.sweep.values import varying_names
from kernmodel.units import Work, convert_cycles
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.models.ecm import ScalingPoint
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.scaling import ScalingAnswer


def scaling_charts(answers: Sequence[ScalingAnswer], unit: str | None) -> tuple[LineChart, ...]:
    """Performance over cores by both saturation rules."""
    work = answers[0].single.prediction.work
    rate = rate_in(unit, work)
    series = []
    for number, answer in enumerate(answers):
        name = _name([one.single for one in answers], number)
        cores = [row.point.cores for row in answer.rows]
        by_rule = {
            "recursive rule": [row.point.cycles for row in answer.rows],
            "simple rule": [row.simple_cycles for row in answer.rows],
        }
        for rule, cycles in by_rule.items():
            label = f"{name}{rule}"
            series.append(_curve(label, cores, cycles, rate, work, number, dashed=rule == "simple rule"))
        series += _interval(name, [row.point for row in answer.rows], rate, work, number)
    best = max(answers[0].rows, key=lambda row: row.point.units_per_cycle)
    found = quantity(convert_cycles(best.point.cycles, rate, work), rate)
    about = f"Performance over 1 to {answers[0].rows[-1].point.cores} cores, at best {found}."
    return (LineChart("Performance over cores", about, Axis("cores"), Axis(rate, rate), tuple(series)),)


def curves_chart(answers: Sequence[EcmAnswer]) -> LineChart:
    """The performance of ECM answers over the core counts that were asked for."""
    work = answers[0].prediction.work
    rate = own_rate(work)
    series = []
    for number, answer in enumerate(answers):
        cores, cycles = [one.cores for one in answer.scaling], [one.cycles for one in answer.scaling]
        label = f"{_name(answers, number)}recursive rule"
        series.append(_curve(label, cores, cycles, rate, work, number))
        series += _interval(_name(answers, number), answer.scaling, rate, work, number)
    about = f"Performance in {rate} over the core counts that were asked for."
    return LineChart("Performance over cores", about, Axis("cores"), Axis(rate, rate), tuple(series))


def _name(answers: Sequence[EcmAnswer], number: int) -> str:
    """The sizes in which an answer differs from others, before what is said of it."""
    varying = varying_names([one.sizes for one in answers])
    return "".join(f"{name}={answers[number].sizes.get(name)} " for name in varying)


def _interval(name: str, points: Sequence[ScalingPoint], rate: str, work: Work, colour: int) -> Iterator[Series]:
    """Between which values performance lies, where it is not known on some numbers of cores."""
    if not any(point.cycles_interval for point in points):
        return
    tips = tuple(f"{count(one.cores, 'core')}\n{name}{performance_text(one, rate, work)}" for one in points)
    ends = tuple(
        (float(one.cores), *(convert_cycles(cycles, rate, work) for cycles in (one.cycles, one.least_cycles)))
        for one in points
    )
    yield Series(f"{name}interval", ends, tips, "area", colour)


def _curve(
    label: str,
    cores: Sequence[int],
    cycles: Sequence[float],
    rate: str,
    work: Work,
    colour: int,
    *,
    dashed: bool = False,
) -> Series:
    ys = [convert_cycles(one, rate, work) for one in cycles]
    tips = tuple(f"{count(number, 'core')}\n{label}: {quantity(y, rate)}" for number, y in zip(cores, ys, strict=True))
    points = tuple((float(number), y) for number, y in zip(cores, ys, strict=True))
    return Series(label, points, tips, colour=colour, dashed=dashed)
