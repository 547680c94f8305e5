"""A roofline in characters, for a terminal or a pipe: no colours, any width."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernmodel.plot.roofline import GIGA, TITLES, Chart, limits_of
from kernmodel.units import format_si

if TYPE_CHECKING:
    from kernmodel.studies.roofline import CarmAnswer, RooflineAnswer

_LEAST, _MOST, _ROWS = 40, 110, 22
_SCALE = 8
"""Columns of the vertical axis."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class _Grid:
    """Characters by row (top first) and column, and the limits in decades."""

    cells: list[list[str]]
    left: float
    right: float
    bottom: float
    top: float

    def column(self, x: float) -> float:
        return (math.log10(x) - self.left) / (self.right - self.left) * (len(self.cells[0]) - 1)

    def row(self, y: float) -> float:
        return (self.top - math.log10(y)) / (self.top - self.bottom) * (len(self.cells) - 1)

    def put(self, x: float, y: float, sign: str) -> None:
        column, row = round(self.column(x)), round(self.row(y))
        if 0 <= row < len(self.cells) and 0 <= column < len(self.cells[0]):
            self.cells[row][column] = sign

    def intensity(self, column: int) -> float:
        return float(10 ** (self.left + (self.right - self.left) * column / (len(self.cells[0]) - 1)))


def roofline_text(answer: RooflineAnswer, width: int = 80, ascii_only: bool = False) -> str:
    """All charts of an answer, one below the other."""
    names = tuple(kernel.subject.name for kernel in answer.kernels)
    charts = (Chart(names, tuple(one.rooflines[n] for one in answer.kernels)) for n in range(len(answer.models)))
    return "\n".join(chart_text(chart, width, ascii_only) for chart in charts)


def carm_text(answer: CarmAnswer, width: int = 80, ascii_only: bool = False) -> str:
    """The cache-aware chart and the scaled one below it."""
    name, reading = (answer.subject.name,), answer.reading
    charts = (Chart(name, (reading.beside,)), Chart(name, (reading.roofline,)))
    return "\n".join(chart_text(chart, width, ascii_only) for chart in charts)


def chart_text(chart: Chart, width: int, ascii_only: bool = False) -> str:
    """One chart with its legend; `width` is in columns, at least 40 are taken."""
    columns = max(_LEAST, min(width, _MOST)) - _SCALE
    limits = tuple(math.log10(value) for value in limits_of((chart,)))
    grid = _Grid([[" "] * columns for _ in range(_ROWS)], *limits)
    slanted, level = ("/", "-") if ascii_only else ("╱", "─")
    _draw_roofs(grid, chart, slanted, level)
    letters: dict[int, str] = {}
    for number, point in chart.points:
        letters[number] = _LETTERS[number % len(_LETTERS)]
        grid.put(point.intensity or 1.0, point.flop_per_second / GIGA, letters[number])
    lines = [TITLES[chart.charts[0].model] + ": GFLOP/s (FMA = 2) over FLOP/B", *_framed(grid, ascii_only)]
    lines += [f"  {_bytes(chart)}", *_legend(chart, letters, slanted, level)]
    return "\n".join(lines) + "\n"


def _bytes(chart: Chart) -> str:
    return f"bytes: {chart.charts[0].bytes_meant}"


def _draw_roofs(grid: _Grid, chart: Chart, slanted: str, level: str) -> None:
    """All roofs; the name of a level stands at the left end of its line."""
    compute = chart.compute_roofs
    peak = max((roof.flop_per_second / GIGA for roof in compute), default=math.inf)
    steepest = chart.memory_roofs[0].bytes_per_second / GIGA
    for one in compute:
        for column in range(len(grid.cells[0])):
            if grid.intensity(column) * steepest >= one.flop_per_second / GIGA:
                grid.put(grid.intensity(column), one.flop_per_second / GIGA, level)
    for roof in chart.memory_roofs:
        slope = roof.bytes_per_second / GIGA
        columns = [c for c in range(len(grid.cells[0])) if 10**grid.bottom <= grid.intensity(c) * slope <= peak]
        for column in columns:
            grid.put(grid.intensity(column), grid.intensity(column) * slope, slanted)
        for offset, letter in enumerate(roof.level if columns else ""):
            grid.put(grid.intensity(columns[0] + offset), grid.intensity(columns[0]) * slope, letter)


def _framed(grid: _Grid, ascii_only: bool) -> list[str]:
    """The rows with the decades of the axes beside and below them."""
    bar, corner, line = ("|", "+", "-") if ascii_only else ("│", "└", "─")
    marks = {round(grid.row(10.0**k)): f"{10.0**k:g}" for k in range(math.ceil(grid.bottom), math.floor(grid.top) + 1)}
    rows = [
        f"{marks.get(number, ''):>{_SCALE - 2}} {bar}{''.join(cells).rstrip()}"
        for number, cells in enumerate(grid.cells)
    ]
    below = [" "] * (len(grid.cells[0]) + _SCALE)
    for k in range(math.ceil(grid.left), math.floor(grid.right) + 1):
        text, at = f"{10.0**k:g}", round(grid.column(10.0**k))
        below[_SCALE + at : _SCALE + at + len(text)] = text
    return [*rows, " " * (_SCALE - 1) + corner + line * len(grid.cells[0]), "".join(below).rstrip()]


def _legend(chart: Chart, letters: dict[int, str], slanted: str, level: str) -> list[str]:
    lines = [f"  {slanted} {roof.level}: {format_si(roof.bytes_per_second, 'B/s')}" for roof in chart.memory_roofs]
    lines += [f"  {level} {roof.name}: {format_si(roof.flop_per_second, 'FLOP/s')}" for roof in chart.compute_roofs]
    why = dict(chart.without_place())
    for number, name in enumerate(chart.names):
        if number in why:
            lines.append(f"    {name}: {why[number]}")
            continue
        points = [point for n, point in chart.points if n == number]
        where = ", ".join(f"{point.level} {point.intensity:.4g}".strip() for point in points)
        lines.append(f"  {letters[number]} {name}: {where} FLOP/B, {format_si(points[0].flop_per_second, 'FLOP/s')}")
    return lines
