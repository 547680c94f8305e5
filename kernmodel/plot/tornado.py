"""The picture of `kernmodel what-if --sensitivity`: what each figure of the machine is worth, as a tornado."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernmodel.plot import style
from kernmodel.plot.caption import answers_caption, draw_caption
from kernmodel.plot.terminal_lines import TextBar, bars_text
from kernmodel.uncertainty import with_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.studies.what_if.sensitivity import Sensitivity, SensitivityAnswer

MOST_BARS = 20
"""Figures of one picture; the text has all of them."""
_LESS, _MORE = style.COLOURS[1], style.COLOURS[0]
_LEAST = 5e-3
"""An elasticity that does not print as 0."""
_WIDE, _NARROW = 0.72, 0.34
_ROW, _TOP, _BOTTOM = 0.32, 0.75, 0.55
"""Inches of a row, above, and below all rows."""
_WIDTH, _LEFT, _AXES = 8.0, 1.84, 4.56
"""Inches of the picture, left of the axes, and of them."""


def _interval_room(shown: Sequence[Sensitivity]) -> float:
    """Inches that the intervals of elasticities take."""
    return 1.2 if any(one.elasticity_interval for one in shown) else 0.0


def tornado_figure(answer: SensitivityAnswer) -> Figure:
    """Bars from the runtime as it is to that with half, twice, and one step less or more of a figure; the greatest
    effect on top; a black line where a runtime is not known."""
    shown = answer.figures[:MOST_BARS]
    with style.settings():
        height = _TOP + _BOTTOM + _ROW * max(2, len(shown))
        width = _WIDTH + _interval_room(shown)
        figure = style.new_figure(width, height)
        axes = figure.add_axes((_LEFT / width, _BOTTOM / height, _AXES / width, 1 - (_TOP + _BOTTOM) / height))
        if shown:
            _bars(axes, shown, answer.step)
        else:
            axes.set_axis_off()
            axes.text(0.5, 0.5, "no figure of the machine changes the runtime", ha="center", transform=axes.transAxes)
        caption = answers_caption(f"sensitivity of {_title(answer)}", (answer.before,))
        draw_caption(figure, caption, left=0.16, above=0.3)
        return figure


def _bars(axes: Axes, shown: Sequence[Sensitivity], step: float) -> None:
    percent = f"{100 * step:g} %"
    series: tuple[tuple[list[float | None], str, float, dict[str, Any]], ...] = (
        ([one.less for one in shown], _LESS, _WIDE, {"alpha": 0.45, "hatch": "///", "label": "half the figure"}),
        ([one.more for one in shown], _MORE, _WIDE, {"alpha": 0.45, "label": "twice the figure"}),
        ([one.below for one in shown], _LESS, _NARROW, {"hatch": "///", "label": f"{percent} less"}),
        ([one.above for one in shown], _MORE, _NARROW, {"label": f"{percent} more"}),
    )
    for ratios, colour, thickness, looks in series:
        rows = [(row, ratio - 1) for row, ratio in enumerate(ratios) if ratio is not None and math.isfinite(ratio)]
        if rows:
            places, widths = zip(*rows, strict=True)
            axes.barh(places, widths, thickness, left=1.0, color=colour, edgecolor="white", linewidth=0.5, **looks)
    for row, one in enumerate(shown):
        wide, narrow = (one.less_interval, one.more_interval), (one.below_interval, one.above_interval)
        for intervals, thickness in ((wide, _WIDE), (narrow, _NARROW)):
            for held in (held for held in intervals if held is not None):
                label = "_" if axes.collections else "interval"
                axes.hlines([row + thickness / 2 - 0.04], held.low, held.high, colors="#000000", label=label)
    axes.axvline(1.0, color="#000000", linewidth=0.9)
    axes.set_yticks(range(len(shown)), [one.figure.short for one in shown], fontsize=style.SMALL)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.margins(x=0.04)
    axes.set_xlabel("runtime with the figure changed, × the runtime as it is")
    if axes.containers:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, fontsize=style.TINY, frameon=False,
                    columnspacing=1.2, handlelength=1.6)  # fmt: skip
    _beside(axes, shown)


def _beside(axes: Axes, shown: Sequence[Sensitivity]) -> None:
    """Value and elasticity at the right of each bar."""
    place, end = axes.get_yaxis_transform(), 1.3 + _interval_room(shown) / _AXES
    heading: dict[str, Any] = {"fontsize": style.TINY, "color": style.GREY, "va": "bottom"}
    axes.text(1.03, -0.6, "value", transform=place, **heading)
    axes.text(end, -0.6, "elasticity", transform=place, ha="right", **heading)
    for row, one in enumerate(shown):
        axes.text(1.03, row, one.figure.text, transform=place, va="center", fontsize=style.SMALL)
        axes.text(end, row, elasticity(one), transform=place, va="center", ha="right", fontsize=style.SMALL)


def elasticity(one: Sensitivity) -> str:
    """The elasticity as the picture shows it."""
    if one.elasticity is None:
        return "-"
    return with_interval(one.elasticity, one.elasticity_interval, _signed, cause=False)


def _signed(elasticity: float) -> str:
    return f"{elasticity:+.2f}" if abs(elasticity) >= _LEAST else "0"


def _title(answer: SensitivityAnswer) -> str:
    return f"{answer.before.nest.name} on {answer.before.machine.title}{_cores(answer)}"


def _cores(answer: SensitivityAnswer) -> str:
    cores = answer.before.scaling[0].cores
    return f", {cores} cores" if cores > 1 else ""


def tornado_text(answer: SensitivityAnswer, width: int = 80, ascii_only: bool = False) -> str:
    """The same in characters: light to half the figure, dark to twice, the elasticity behind."""
    subject = f"{answer.before.nest.name} on {answer.before.machine.name}{_cores(answer)}"
    title = f"{subject}: runtime × with half (light), twice (dark) the figure"
    if ascii_only:
        title = title.replace("×", "x")
    shown = answer.figures[:MOST_BARS]
    bars = [TextBar(one.figure.short, _end(one.less), _end(one.more), f"e = {elasticity(one)}") for one in shown]
    return bars_text(bars, title, width, ascii_only)


def _end(ratio: float | None) -> float:
    return math.nan if ratio is None else ratio
