"""Pictures of rooflines: one set of axes for each model, memory share and impact beside them, a legend below.

What is said of several kernels at once, and why one of them has no point, stands in the legend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.plot import style
from kernmodel.plot.caption import Caption, caption_of, draw_caption, on_machine
from kernmodel.plot.placement import text_width
from kernmodel.plot.roofline_axes import MOST_REGIONS, draw_chart
from kernmodel.plot.roofline_chart import WIDTH, Chart, carm_charts_of, charts_of, limits_of_each, roofs_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.machine.model import Machine
    from kernmodel.models.chart import LevelShare
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer, Subject

_LEFT, _RIGHT, _BOTTOM, _TOP, _GAP = 0.75, 0.2, 0.6, 0.38, 0.85
_HEIGHT, _BARS = 4.2, 2.1
"""Inches."""


def roofline_figure(answer: RooflineAnswer) -> Figure:
    """One chart for each model, with memory share and impact beside cache-aware ones of few kernels."""
    charts = charts_of(answer)
    names = charts[0].names
    shares = [(kernel.subject.name, kernel.shares) for kernel in answer.kernels if kernel.shares]
    wanted = bool({"carm", "adcarm"} & set(answer.models)) and 0 < len(shares) <= _MOST_BARS
    subjects = [kernel.subject for kernel in answer.kernels]
    title = on_machine(", ".join(names), answer.machine, answer.cores)
    return figure_of(charts, shares if wanted else [], subjects_caption(title, subjects, answer.machine))


def carm_figure(answer: CarmAnswer) -> Figure:
    """The cache-aware chart and the application-driven one on the same axes, beside them memory share and impact."""
    name, shares = answer.subject.name, answer.findings.shares
    caption = subjects_caption(on_machine(name, answer.machine, answer.cores), [answer.subject], answer.machine)
    return figure_of(carm_charts_of(answer), [(name, shares)] if shares else [], caption)


def subjects_caption(title: str, subjects: Sequence[Subject], machine: Machine) -> Caption:
    """The caption of charts of these kernels."""
    kernels = [(one.name, [one.sizes] if one.sizes else []) for one in subjects]
    return caption_of(title, kernels, [one.origin for one in subjects], [machine])


_MOST_BARS = 8
_LEGEND_ROW = 0.16
"""Inches."""
_MOST_BESIDE = 3
"""Kernels whose memory shares stand beside the charts; those of more take a row of their own below."""


def figure_of(charts: Sequence[Chart], shares: Sequence[tuple[str, Sequence[LevelShare]]], caption: Caption) -> Figure:
    """Charts in rows, the panel of memory share and impact at the end of the last one, or below where it is wide."""
    with style.settings():
        across = min(len(charts), 3 if len(charts) > 4 else 2)
        down = math.ceil(len(charts) / across)
        panel = max(_BARS, 0.35 + 0.85 * len(shares)) if shares else 0.0
        below = len(shares) > _MOST_BESIDE
        spare = bool(shares) and not below and len(charts) % across
        beside = panel + _GAP if shares and not spare and not below else 0.0
        told = max(charts, key=lambda chart: len(_placed(chart)))
        legend = _legend_height(told, across)
        cell = _BOTTOM + _HEIGHT + _TOP
        width = _LEFT + across * WIDTH + (across - 1) * _GAP + beside + _RIGHT
        height = (down + below) * cell + legend
        figure = style.new_figure(width, height)
        limits = limits_of_each(charts)
        for number, chart in enumerate(charts):
            row, column = divmod(number, across)
            corner = (_LEFT + column * (WIDTH + _GAP), height - (row + 1) * cell + _BOTTOM)
            draw_chart(_axes(figure, (*corner, WIDTH, _HEIGHT)), chart, limits[number])
        if shares:
            column = 0 if below else len(charts) % across if spare else across
            corner = (_LEFT + column * (WIDTH + _GAP), height - (down + below) * cell + _BOTTOM)
            wide = max(WIDTH, min(panel, width - _LEFT - _RIGHT)) if below else panel
            draw_shares(_axes(figure, (*corner, wide, _HEIGHT)), shares)
        draw_caption(figure, caption, left=_LEFT, above=0.35)
        if legend:
            _legend(figure, told, across)
        return figure


def _axes(figure: Figure, inches: tuple[float, float, float, float]) -> Axes:
    width, height = figure.get_size_inches()
    left, bottom, wide, high = inches
    return figure.add_axes((left / width, bottom / height, wide / width, high / height))


def _legend_columns(chart: Chart, across: int) -> int:
    longest = max((text_width(name, style.SMALL) for name in _legend_names(chart).values()), default=1.0) + 0.5
    return max(1, min(len(_placed(chart)), int((across * WIDTH + (across - 1) * _GAP) / longest)))


def _placed(chart: Chart) -> list[int]:
    """Numbers of the kernels that have a point."""
    return sorted({number for number, _ in chart.points})


def _legend_names(chart: Chart) -> dict[int, str]:
    """Of the kernels that have a point, by number."""
    return {number: chart.names[number] + chart.share_text(number) for number in _placed(chart)}


def _legend_height(chart: Chart, across: int) -> float:
    rows = math.ceil(len(_placed(chart)) / _legend_columns(chart, across))
    return (rows + len(_meanings(chart)) + len(chart.without_place())) * _LEGEND_ROW + 0.15


def _meanings(chart: Chart) -> list[str]:
    """What the signs of a chart mean, as far as it has them."""
    points = [point for _, point in chart.points]
    roofs = [roof.basis for one in chart.charts for roof in roofs_of(one)]
    unsure = any(one.most is not None for one in chart.charts)
    derived = "dashed roofs: derived from ports and widths; solid ones: measured"
    found = [
        ("point: predicted; bar above it: bound of the model", any(point.predicted for point in points)),
        ("point: bound of the model, nothing is predicted", any(not point.predicted for point in points)),
        ("cross: measured", any(one.measured for one in chart.charts)),
        ("size and colour of a point: share of the time", bool(chart.arrangement.time_shares)),
        ("arrow: from a version to the next, with what the performance becomes", bool(chart.joined)),
        ("ring: the prediction is above its own roof", any(point.above_roof for point in points)),
        (derived if "derived" in roofs else "all roofs: measured", bool(roofs)),
        ("grey band, line up from a point: what may be, as more cores draw from memory than were measured", unsure),
        ("roofs of several kernels: the highest of each kind, (its kernels)", chart.roofs_differ),
        ("memory regions differ by kernel, see the table", len(chart.regions) > MOST_REGIONS),
    ]
    return [text for text, applies in found if applies]


def _legend(figure: Figure, chart: Chart, across: int) -> None:
    """The kernels below the charts, and under them those without a place on the axes, with the reason."""
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    reasons = [f"{chart.names[number]}: {why}" for number, why in chart.without_place()]
    meanings = _meanings(chart)
    for row, text in enumerate(reversed([*reasons, *meanings])):
        shade = style.GREY if text in meanings else "black"
        figure.text(_LEFT / width, (0.06 + row * _LEGEND_ROW) / height, text, fontsize=style.SMALL, color=shade)
    handles = [
        Line2D([], [], linestyle="", marker=style.marker(number), color=chart.colour(number), label=name)
        for number, name in _legend_names(chart).items()
    ]
    if handles:
        above = (len(reasons) + len(meanings)) * _LEGEND_ROW / height
        figure.legend(
            handles=handles, loc="lower left", ncols=_legend_columns(chart, across), fontsize=style.SMALL,
            frameon=False, bbox_to_anchor=((_LEFT - 0.1) / width, above),
            borderaxespad=0.3, columnspacing=1.2, handletextpad=0.4, labelspacing=0.4,
        )  # fmt: skip


def draw_shares(axes: Axes, shares: Sequence[tuple[str, Sequence[LevelShare]]]) -> None:
    """MS and MI of each kernel as stacked bars."""
    positions, names = [], []
    for number, (_, levels) in enumerate(shares):
        impacts = [one.impact or 0.0 for one in levels]  # no bar where they are not known
        for offset, values in ((0.0, [one.share for one in levels]), (1.0, impacts)):
            position, base = 2.6 * number + offset, 0.0
            positions.append(position)
            names.append("MS" if not offset else "MI")
            for depth, (one, value) in enumerate(zip(levels, values, strict=True)):
                label = one.level if not positions[1:] else None
                axes.bar(position, 100 * value, 0.8, 100 * base, linewidth=0.6, label=label, **style.part(depth))
                if value >= _SHOWN_SHARE:
                    held = one.impact_interval if offset else None
                    text = f"{100 * value:.0f}" if held is None else f"{100 * held.low:.0f} to {100 * held.high:.0f}"
                    axes.text(position, 100 * (base + value / 2), text, ha="center", va="center",
                              fontsize=style.TINY, bbox={"facecolor": "white", "pad": 0.8, "linewidth": 0})  # fmt: skip
                base += value
    axes.set_xticks(positions, names, fontsize=style.SMALL)
    for number, (name, _) in enumerate(shares):
        if len(shares) > 1:
            axes.text(2.6 * number + 0.5, -9.5, name, ha="center", va="top", fontsize=style.TINY)
    axes.set(ylim=(0, 100), xlim=(-0.7, positions[-1] + 0.7), ylabel="% of the bytes (MS), of the time (MI)")
    style.title(axes, "Memory share, impact")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, -0.19 if len(shares) > 1 else -0.17),
                ncols=len(labels), fontsize=style.TINY, frameon=False, handlelength=1.2, columnspacing=0.8)  # fmt: skip


_SHOWN_SHARE = 0.06
"""A share large enough to hold its number."""
