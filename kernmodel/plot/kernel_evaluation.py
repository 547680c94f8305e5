"""The picture of `kernmodel evaluate kernels`: stacked ECM terms over the size, measurements as crosses."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from kernmodel.errors import UsageError
from kernmodel.plot import style
from kernmodel.plot.ecm import shown_times, stacks
from kernmodel.studies.sweep.values import is_wide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.evaluate.kernel_model import JudgedPoint, JudgedSeries, KernelEvaluation

MOST_SERIES = 24
_ACROSS = 3


def kernel_evaluation_figure(evaluation: KernelEvaluation) -> Figure:
    """A panel for each series with several points of one core.

    Raises:
        UsageError: there is no such series, or there are too many.
    """
    series = [one for one in evaluation.series if len(_single(one)) > 1]
    if not 0 < len(series) <= MOST_SERIES:
        todo = f"choose 1 to {MOST_SERIES} with --kernel and --machine"
        raise UsageError(f"{len(series)} series to draw", where="--plot", todo=todo)
    across = min(_ACROSS, len(series))
    down = ceil(len(series) / across)
    with style.settings():
        figure = style.new_figure(1.2 + 3.6 * across, 0.6 + 2.8 * down)
        panels = figure.subplots(down, across, squeeze=False).flat
        for axes, one in zip(panels, series, strict=False):
            _draw(axes, one)
        for axes in list(panels)[len(series) :]:
            axes.set_axis_off()
        figure.tight_layout()
        style.legend_beside(figure.axes[across - 1], reverse=True)
        return figure


def _single(one: JudgedSeries) -> list[JudgedPoint]:
    points = [point for point in one.points if point.point.cores == 1]
    return sorted(points, key=_size)


def _size(point: JudgedPoint) -> int:
    return max(point.point.sizes.values(), default=0)


def _draw(axes: Axes, one: JudgedSeries) -> None:
    """The terms that add up as areas on one another (beside one another as lines where they overlap), T_OL with T_out
    as a dashed line, T_ECM as a line, the measurements as crosses."""
    points = _single(one)
    sizes = [_size(point) for point in points]
    shown = [shown_times(point.prediction) for point in points]
    names = list(dict.fromkeys(name for times in shown for name in times))
    values = {name: [times.get(name, 0.0) for times in shown] for name in names}
    if all(stacks(point.prediction) for point in points):
        looks = [style.part(number) for number in range(len(names))]
        axes.stackplot(sizes, *values.values(), labels=names, colors=[look["color"] for look in looks], alpha=0.8)
    else:
        for number, name in enumerate(names):
            axes.plot(sizes, values[name], color=style.colour(number), linewidth=1.0, label=f"{name} (overlaps)")
    core = [point.prediction.core_cycles for point in points]
    label = style.core_label(called=any(point.prediction.t_call for point in points))
    axes.plot(sizes, core, "--", color=style.GREY, linewidth=1.0, label=f"{label} (overlap)")
    axes.plot(sizes, [point.predicted for point in points], color="#000000", linewidth=1.0, label="T_ECM")
    axes.plot(sizes, [point.measured for point in points], "x", color="#000000", markersize=3.5, label="measured")
    if is_wide(sizes):
        axes.set_xscale("log")
    axes.set(xlabel=_label(points), ylabel="cy/CL", ylim=(0, 1.15 * _highest(points)))
    style.title(axes, f"{one.series.kernel}\n{one.machine}")


def _highest(points: Sequence[JudgedPoint]) -> float:
    return max(max(point.measured, point.predicted, point.prediction.core_cycles) for point in points)


def _label(points: Sequence[JudgedPoint]) -> str:
    names = list(points[0].point.sizes)
    return names[0] if len(names) == 1 else "largest size"
