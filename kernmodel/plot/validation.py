"""The picture of `kernmodel validate`: predicted over measured cycles, by level and class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.plot import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kernmodel.evaluate.validation_model import Validation

_FAR = 0.3
"""Share of the measured time by which the outer lines are off."""


def validation_figure(validation: Validation) -> Figure:
    """A scatter plot, logarithmic in both; on the line a prediction is right, on the dashed ones 30 % off."""
    levels = list(dict.fromkeys(point.level for point in validation.points))
    kinds = list(dict.fromkeys(point.kind for point in validation.points))
    with style.settings():
        figure = style.new_figure(6.4, 4.6)
        axes = figure.subplots()
        every = [value for point in validation.points for value in (point.judged.measured, point.judged.predicted)]
        ends = [0.8 * min(every), 1.25 * max(every)]
        axes.plot(ends, ends, color=style.GREY, linewidth=1.0)
        for factor in (1 - _FAR, 1 + _FAR):
            axes.plot(ends, [factor * end for end in ends], "--", color=style.GREY, linewidth=0.7)
        for number, level in enumerate(levels):
            for kind in kinds:
                chosen = [point for point in validation.points if (point.level, point.kind) == (level, kind)]
                if not chosen:
                    continue
                axes.plot(
                    [point.judged.measured for point in chosen],
                    [point.judged.predicted for point in chosen],
                    style.MARKERS[kinds.index(kind)],
                    color=style.colour(number),
                    markersize=5,
                    label=f"{level} {kind}",
                )
        axes.set(xlabel="measured cy/CL", ylabel="predicted cy/CL", xscale="log", yscale="log", xlim=ends, ylim=ends)
        style.title(axes, f"{validation.machine}: mean error {_mean(validation):.1f} %")
        style.legend_beside(axes)
        figure.tight_layout()
        return figure


def _mean(validation: Validation) -> float:
    return sum(abs(point.error_percent) for point in validation.points) / len(validation.points)
