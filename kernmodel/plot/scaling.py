"""Pictures of performance over cores: of `kernmodel scaling`, and what `kernmodel ecm --cores` shares with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.plot import style
from kernmodel.plot.caption import answers_caption, draw_caption, on_machine
from kernmodel.plot.terminal_lines import TextLine, lines_text
from kernmodel.studies.scaling import rate_in
from kernmodel.studies.sweep.values import varying_names
from kernmodel.units import convert_cycles
from kernmodel.value_types import dataclass
from kernmodel.words import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.models.ecm import ScalingPoint
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.scaling import ScalingAnswer

GIGA = 1e9
_CORES = "cores (ccNUMA domains filled one after the other)"
_BORDER = "#bbbbbb"
_CHANGE = "#8c6d00"


@dataclass(frozen=True, slots=True)
class Curve:
    """Performance over cores.

    Attributes:
        values: in 10⁹ of the rate; number: of its colour and marker.
        saturation: cores that saturate the first domain, None where they do not or it is not among `cores`.
        most: the most that the values may be where they are not known; empty where all are.
    """

    label: str
    cores: tuple[int, ...]
    values: tuple[float, ...]
    number: int
    saturation: int | None
    most: tuple[float, ...] = ()


def performance(cycles: float, rate: str, answer: EcmAnswer) -> float:
    """10⁹ of the rate from cycles per unit of work of all cores together; 0 where nothing takes time."""
    return convert_cycles(cycles, rate, answer.prediction.work) / GIGA if cycles else 0.0


def draw_curve(axes: Axes, curve: Curve, saturation: str = "saturation") -> None:
    """Line and markers, a ring at the saturation point of the first domain (`saturation` in the legend), and the
    interval above the line."""
    shade = style.colour(curve.number)
    marker = style.marker(curve.number)
    axes.plot(curve.cores, curve.values, "-", color=shade, marker=marker, markersize=4, label=curve.label)
    if curve.most:
        axes.fill_between(curve.cores, curve.values, curve.most, color=shade, alpha=0.2, linewidth=0, label="interval")
    if curve.saturation in curve.cores:
        draw_saturation(axes, curve, shade, saturation)


def draw_saturation(axes: Axes, curve: Curve, shade: str, label: str, sign: str = "o") -> None:
    """A ring at the saturation point, and a dotted line down to the axis."""
    cores = curve.saturation
    assert cores is not None
    value = curve.values[curve.cores.index(cores)]
    axes.vlines(cores, 0, value, linestyles=":", colors=shade, linewidth=1.0)
    text = f"{label}, {count(cores, 'core')}"
    axes.plot([cores], [value], sign, color=shade, markersize=10, fillstyle="none", label=text)


def frame_cores(axes: Axes, domain: int, most: int, rate: str) -> None:
    """Axes of cores and performance, and a grey line at the end of every ccNUMA domain."""
    from matplotlib.ticker import MaxNLocator

    for edge in range(domain, most, domain):
        axes.axvline(edge + 0.5, color=_BORDER, linewidth=0.8, zorder=0)
    flops = "; an FMA counts 2" if rate == "FLOP/s" else ""
    axes.set(xlabel=_CORES, ylabel=f"performance (G{rate}{flops})")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def scaling_figure(answers: Sequence[ScalingAnswer], unit: str | None) -> Figure:
    """Performance over cores by both rules, linear scaling, saturation points, domains, and what changes in shared
    caches. Several points of sizes are drawn by the recursive rule alone."""
    with style.settings():
        figure = style.new_figure(8.0, 4.4)
        axes = figure.add_axes((0.09, 0.13, 0.60, 0.78))
        first = answers[0].single
        rate = rate_in(unit, first.prediction.work)
        drawn = curves(answers, rate)
        for curve in drawn:
            draw_curve(axes, curve, "saturation" if len(answers) > 1 else "saturation, recursive rule")
        if len(answers) == 1:
            _draw_simple(axes, answers[0], rate)
        _draw_changes(axes, answers, drawn)
        most = max(row.point.cores for answer in answers for row in answer.rows)
        frame_cores(axes, first.machine.topology.cores_per_numa_domain, most, rate)
        axes.set_xlim(0, most + 1)
        axes.set_ylim(0, 1.12 * (max(value for curve in drawn for value in curve.most or curve.values) or 1.0))
        _draw_linear(axes, answers, rate, most)
        singles = [answer.single for answer in answers]
        draw_caption(figure, answers_caption(on_machine(first.nest.name, first.machine), singles))
        style.legend_beside(axes)
        return figure


def curves(answers: Sequence[ScalingAnswer], rate: str) -> list[Curve]:
    """Performance by the recursive rule, a curve for each point of sizes."""
    singles = [answer.single for answer in answers]
    alone = "both rules" if rules_agree(answers[0]) else "recursive latency-aware rule"
    return [
        curve_of(
            answer.single,
            [row.point for row in answer.rows],
            rate,
            number,
            label,
            _saturation(answer, answer.saturation_recursive),
        )
        for number, (answer, label) in enumerate(zip(answers, size_labels(singles, alone), strict=True))
    ]


def _saturation(answer: ScalingAnswer, found: int | None) -> int | None:
    """A saturation point that is drawn: one that is known."""
    return None if answer.single.prediction.saturation_is_least else found


def curve_of(
    answer: EcmAnswer, points: Sequence[ScalingPoint], rate: str, number: int, label: str, saturation: int | None
) -> Curve:
    """Performance of a prediction at some core counts."""
    cores = tuple(point.cores for point in points)
    values = tuple(performance(point.cycles, rate, answer) for point in points)
    unsure = any(point.cycles_interval for point in points)
    most = tuple(performance(point.least_cycles, rate, answer) for point in points) if unsure else ()
    return Curve(label, cores, values, number, saturation, most)


def size_labels(answers: Sequence[EcmAnswer], alone: str) -> list[str]:
    """What tells the predictions apart ("N=4000"); of a single one `alone`."""
    if len(answers) == 1:
        return [alone]
    names = varying_names([answer.sizes for answer in answers]) or list(answers[0].sizes)
    return [", ".join(f"{name}={answer.sizes[name]}" for name in names) for answer in answers]


def curves_text(drawn: Iterable[Curve], answer: EcmAnswer, rate: str, width: int, ascii_only: bool) -> str:
    """Curves over cores in characters."""
    drawn = tuple(drawn)
    lines = [TextLine(curve.label, curve.cores, curve.values) for curve in drawn]
    lines += [TextLine(f"{curve.label}, at most", curve.cores, curve.most) for curve in drawn if curve.most]
    title = f"{answer.nest.name} on {answer.machine.name}: performance (G{rate})"
    return lines_text(lines, title, width, ascii_only, x_label=_CORES)


def rules_agree(answer: ScalingAnswer) -> bool:
    """Whether both rules give the same performance at every core count."""
    return all(math.isclose(row.point.cycles, row.simple_cycles, rel_tol=1e-9) for row in answer.rows)


def simple_curve(answer: ScalingAnswer, rate: str) -> Curve:
    """Performance by the simple rule."""
    cores = tuple(row.point.cores for row in answer.rows)
    values = tuple(performance(row.simple_cycles, rate, answer.single) for row in answer.rows)
    return Curve("simple rule min(n·P(1), P_sat)", cores, values, 1, _saturation(answer, answer.saturation_simple))


def linear_values(answer: ScalingAnswer, rate: str, cores: Sequence[int]) -> tuple[float, ...]:
    """Performance of one core, times the cores."""
    one = performance(answer.single.prediction.cycles, rate, answer.single)
    return tuple(n * one for n in cores)


def _draw_simple(axes: Axes, answer: ScalingAnswer, rate: str) -> None:
    curve = simple_curve(answer, rate)
    shade = style.colour(1)
    if not rules_agree(answer):
        axes.plot(curve.cores, curve.values, "--", color=shade, linewidth=1.2, label=curve.label)
    if curve.saturation in curve.cores:
        draw_saturation(axes, curve, shade, "saturation, simple rule", "D")


def _draw_linear(axes: Axes, answers: Sequence[ScalingAnswer], rate: str, most: int) -> None:
    """n times the performance of one core, as far as the axes go."""
    for number, answer in enumerate(answers):
        ends = (0, most)
        label = "linear, n·P(1)" if number == 0 else None
        shade = style.GREY if len(answers) == 1 else style.colour(number)
        axes.plot(ends, linear_values(answer, rate, ends), "-", color=shade, linewidth=0.6, label=label, zorder=1)


def _draw_changes(axes: Axes, answers: Sequence[ScalingAnswer], drawn: Sequence[Curve]) -> None:
    """An arrowhead below each core count from which another reuse fits into the shared caches."""
    places = [
        (row.point.cores, value)
        for answer, curve in zip(answers, drawn, strict=True)
        for row, value in zip(answer.rows, curve.values, strict=True)
        if row.fits
    ]
    if places:
        xs, ys = zip(*places, strict=True)
        label = "reuse in shared caches changes"
        axes.scatter(xs, [0.93 * y for y in ys], marker="^", color=_CHANGE, s=26, zorder=4, label=label)


def scaling_text(answers: Sequence[ScalingAnswer], unit: str | None, width: int = 80, ascii_only: bool = False) -> str:
    """In characters: both rules and linear scaling of one point of sizes; of several points the recursive rule."""
    first = answers[0].single
    rate = rate_in(unit, first.prediction.work)
    drawn = curves(answers, rate)
    if len(answers) == 1:
        simple = simple_curve(answers[0], rate)
        highest = max(*drawn[0].values, *drawn[0].most, *simple.values)
        linear = linear_values(answers[0], rate, simple.cores)
        below = tuple(n for n, value in zip(simple.cores, linear, strict=True) if value <= 1.05 * highest)
        if not rules_agree(answers[0]):
            drawn.append(simple)
        drawn.append(Curve("linear, n·P(1)", below, linear[: len(below)], 2, None))
    return curves_text(drawn, first, rate, width, ascii_only)
