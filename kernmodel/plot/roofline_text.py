"""A roofline in characters, for a terminal or a pipe: no colours, any width."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.models.chart import TITLES
from kernmodel.plot.roofline_chart import (
    GIGA,
    Chart,
    carm_charts_of,
    charts_of,
    limits_of_each,
    most_of,
    roof_label,
)
from kernmodel.plot.text_grid import MARGIN, Grid, Scale, columns_of
from kernmodel.uncertainty import with_interval
from kernmodel.units import format_si

if TYPE_CHECKING:
    from kernmodel.models.chart import ComputeRoof, MemoryRoof, Point
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer

_ROWS = 22
_MEASURED, _STEP, _MOST = "*", ".", ":"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def roofline_text(answer: RooflineAnswer, width: int = 80, ascii_only: bool = False) -> str:
    """All charts of an answer, one below the other."""
    return _texts(charts_of(answer), width, ascii_only)


def carm_text(answer: CarmAnswer, width: int = 80, ascii_only: bool = False) -> str:
    """The cache-aware chart and the scaled one below it."""
    return _texts(carm_charts_of(answer), width, ascii_only)


def _texts(charts: Sequence[Chart], width: int, ascii_only: bool) -> str:
    pairs = zip(charts, limits_of_each(charts), strict=True)
    return "\n".join(chart_text(chart, width, ascii_only, limits) for chart, limits in pairs)


def chart_text(
    chart: Chart, width: int, ascii_only: bool = False, limits: tuple[float, float, float, float] | None = None
) -> str:
    """One chart with its legend.

    Args:
        width: in columns, at least 40 are taken; limits: left, right, bottom, top in FLOP/B and GFLOP/s, None: its own.
    """
    left, right, bottom, top = limits or limits_of_each((chart,))[0]
    axes = Scale(left, right, log=True), Scale(bottom, top, log=True)
    grid = Grid.blank(columns_of(width) - MARGIN, _ROWS, *axes)
    slanted, level = ("/", "-") if ascii_only else ("╱", "─")
    _draw_roofs(grid, chart, slanted, level)
    _name_roofs(grid, chart)
    for before, after, _ in chart.joined:
        _draw_step(grid, before, after)
    letters: dict[int, str] = {}
    for number, point in chart.points:
        letters[number] = _LETTERS[number % len(_LETTERS)]
        grid.put(point.intensity or 1.0, point.flop_per_second / GIGA, letters[number])
    for mark in (mark for one in chart.charts for mark in one.measured):
        grid.put(mark.intensity, mark.flop_per_second / GIGA, _MEASURED)
    lines = [TITLES[chart.charts[0].model] + ": GFLOP/s (FMA = 2) over FLOP/B", *grid.framed(ascii_only)]
    lines += [f"  {_bytes(chart)}", *_legend(chart, letters, slanted, level)]
    return "\n".join(lines) + "\n"


def _bytes(chart: Chart) -> str:
    return f"bytes: {chart.charts[0].bytes_meant}"


def _draw_roofs(grid: Grid, chart: Chart, slanted: str, level: str) -> None:
    """All roofs."""
    compute = chart.compute_roofs
    peak = max((roof.flop_per_second / GIGA for roof in compute), default=math.inf)
    steepest = chart.memory_roofs[0].bytes_per_second / GIGA
    for one in compute:
        for column in range(grid.columns):
            if grid.value_at(column) * steepest >= one.flop_per_second / GIGA:
                grid.put(grid.value_at(column), one.flop_per_second / GIGA, level)
    for roof in chart.memory_roofs:
        for rate, sign in ((most_of(roof), _MOST), (roof.bytes_per_second, slanted)):
            slope = (rate or 0.0) / GIGA
            for column in range(grid.columns):
                if grid.y.low <= grid.value_at(column) * slope <= peak:
                    grid.put(grid.value_at(column), grid.value_at(column) * slope, sign)


def _name_roofs(grid: Grid, chart: Chart) -> None:
    """The names of roofs on their lines: of memory at the left end, of computing at the right one."""
    for roof in chart.memory_roofs:
        slope = roof.bytes_per_second / GIGA
        column = max(0, math.ceil(grid.x.share(grid.y.low / slope) * (grid.columns - 1)))
        full = roof_label(roof)
        if column < grid.columns:
            row = grid.row(grid.value_at(column) * slope)
            if not grid.write(column, row, full, over=len(roof.level)):
                grid.write(column, row, roof.level, over=len(roof.level))
    rows: dict[int, list[str]] = {}
    for one in chart.compute_roofs:
        name = f"{one.name} {format_si(one.flop_per_second, 'FLOP/s')}"
        rows.setdefault(grid.row(one.flop_per_second / GIGA), []).append(name)
    for row, names in rows.items():
        texts = (", ".join(names), f"{names[0]} and {len(names) - 1} more", names[0])
        text = next((f" {text}" for text in texts if len(text) < grid.columns // 2), "")
        grid.write(grid.columns - len(text), row, text, over=len(text))


def _draw_step(grid: Grid, before: Point, after: Point) -> None:
    """Dots from a version to the next where nothing else stands."""
    start, end = ((grid.column(p.intensity or 1.0), grid.row(p.flop_per_second / GIGA)) for p in (before, after))
    count = max(abs(end[0] - start[0]), abs(end[1] - start[1]))
    for k in range(1, count):
        column, row = (round(start[n] + k / count * (end[n] - start[n])) for n in (0, 1))
        grid.write(column, row, _STEP, over=0)


def _legend(chart: Chart, letters: dict[int, str], slanted: str, level: str) -> list[str]:
    lines = [f"  {slanted} {roof_label(roof).replace(' ', ': ', 1)}{_of(chart, roof)}" for roof in chart.memory_roofs]
    if any(map(most_of, chart.memory_roofs)):
        lines.append(f"  {_MOST} the most that the roof may be")
    lines += [f"  {level} {roof.name}: {format_si(roof.flop_per_second, 'FLOP/s')}{_of(chart, roof)}"
              for roof in chart.compute_roofs]  # fmt: skip
    for before, after, step in chart.joined:
        at = f" at {before.level}" if before.level else ""
        gain = "" if step.flop_rate is None else f", {step.flop_rate:.3g} times the performance"
        intensity = f"{before.intensity:.4g} to {after.intensity:.4g} FLOP/B"
        lines.append(f"  {_STEP * 3} {step.before} to {step.after}: {intensity}{at}{gain}")
    if any(one.measured for one in chart.charts):
        lines.append(f"  {_MEASURED} measured")
    why = dict(chart.without_place())
    for number, name in enumerate(chart.names):
        if number in why:
            lines.append(f"    {name}: {why[number]}")
            continue
        points = [point for n, point in chart.points if n == number]
        where = ", ".join(f"{point.level} {point.intensity:.4g}".strip() for point in points)
        held = points[0].flop_per_second_interval
        reached = with_interval(points[0].flop_per_second, held, lambda one: format_si(one, "FLOP/s"))
        kind = "predicted" if points[0].predicted else "the bound, nothing is predicted"
        over = dict.fromkeys(point.above_roof for point in points if point.above_roof)
        above = f"; above its own roof of {', '.join(over)}" if over else ""
        lines.append(f"  {letters[number]} {name}: {where} FLOP/B, {reached} ({kind}){above}{chart.share_text(number)}")
    return lines


def _of(chart: Chart, roof: MemoryRoof | ComputeRoof) -> str:
    """How a roof was found, and the kernels that it belongs to where it is not of all."""
    names = chart.named(chart.owners(roof))
    return f", {roof.basis}" + (f" ({names})" if names else "")
