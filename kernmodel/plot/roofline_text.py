"""A roofline in characters, for a terminal or a pipe: no colours, any width."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kernmodel.plot.roofline import GIGA, TITLES, Chart, limits_of
from kernmodel.plot.text_grid import MARGIN, Grid, Scale, columns_of
from kernmodel.units import format_si

if TYPE_CHECKING:
    from kernmodel.models.chart import ComputeRoof, MemoryRoof
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer

_ROWS = 22
_MEASURED = "*"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def roofline_text(answer: RooflineAnswer, width: int = 80, ascii_only: bool = False) -> str:
    """All charts of an answer, one below the other."""
    names = tuple(kernel.subject.name for kernel in answer.kernels)
    charts = (Chart(names, tuple(one.rooflines[n] for one in answer.kernels)) for n in range(len(answer.models)))
    return "\n".join(chart_text(chart, width, ascii_only) for chart in charts)


def carm_text(answer: CarmAnswer, width: int = 80, ascii_only: bool = False) -> str:
    """The cache-aware chart and the scaled one below it."""
    name, findings = (answer.subject.name,), answer.findings
    charts = (Chart(name, (findings.beside,)), Chart(name, (findings.roofline,)))
    return "\n".join(chart_text(chart, width, ascii_only) for chart in charts)


def chart_text(chart: Chart, width: int, ascii_only: bool = False) -> str:
    """One chart with its legend; `width` is in columns, at least 40 are taken."""
    left, right, bottom, top = limits_of((chart,))
    axes = Scale(left, right, log=True), Scale(bottom, top, log=True)
    grid = Grid.blank(columns_of(width) - MARGIN, _ROWS, *axes)
    slanted, level = ("/", "-") if ascii_only else ("╱", "─")
    _draw_roofs(grid, chart, slanted, level)
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
    """All roofs; the name of a level stands at the left end of its line."""
    compute = chart.compute_roofs
    peak = max((roof.flop_per_second / GIGA for roof in compute), default=math.inf)
    steepest = chart.memory_roofs[0].bytes_per_second / GIGA
    for one in compute:
        for column in range(grid.columns):
            if grid.value_at(column) * steepest >= one.flop_per_second / GIGA:
                grid.put(grid.value_at(column), one.flop_per_second / GIGA, level)
    for roof in chart.memory_roofs:
        slope = roof.bytes_per_second / GIGA
        columns = [c for c in range(grid.columns) if grid.y.low <= grid.value_at(c) * slope <= peak]
        for column in columns:
            grid.put(grid.value_at(column), grid.value_at(column) * slope, slanted)
        for offset, letter in enumerate(roof.level if columns else ""):
            grid.put(grid.value_at(columns[0] + offset), grid.value_at(columns[0]) * slope, letter)


def _legend(chart: Chart, letters: dict[int, str], slanted: str, level: str) -> list[str]:
    lines = [f"  {slanted} {roof.level}: {format_si(roof.bytes_per_second, 'B/s')}{_of(chart, roof)}"
             for roof in chart.memory_roofs]  # fmt: skip
    lines += [f"  {level} {roof.name}: {format_si(roof.flop_per_second, 'FLOP/s')}{_of(chart, roof)}"
              for roof in chart.compute_roofs]  # fmt: skip
    if any(one.measured for one in chart.charts):
        lines.append(f"  {_MEASURED} measured")
    why = dict(chart.without_place())
    for number, name in enumerate(chart.names):
        if number in why:
            lines.append(f"    {name}: {why[number]}")
            continue
        points = [point for n, point in chart.points if n == number]
        where = ", ".join(f"{point.level} {point.intensity:.4g}".strip() for point in points)
        reached = format_si(points[0].flop_per_second, "FLOP/s")
        kind = "predicted" if points[0].predicted else "the bound, nothing is predicted"
        over = dict.fromkeys(point.above_roof for point in points if point.above_roof)
        above = f"; above its own roof of {', '.join(over)}" if over else ""
        lines.append(f"  {letters[number]} {name}: {where} FLOP/B, {reached} ({kind}){above}")
    return lines


def _of(chart: Chart, roof: MemoryRoof | ComputeRoof) -> str:
    """How a roof was found, and the kernels that it belongs to where it is not of all."""
    names = chart.named(chart.owners(roof))
    return f", {roof.basis}" + (f" ({names})" if names else "")
