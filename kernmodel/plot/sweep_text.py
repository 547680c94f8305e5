"""A sweep in characters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.plot.sweep_data import (
    FEW,
    Curve,
    Quantity,
    breaks_of,
    check_axes,
    curves_of,
    is_logarithmic,
    numbers,
    point_label,
    quantity_of,
    time_names,
    value_of,
)
from kernmodel.plot.terminal_lines import TextBar, TextLine, bars_text, lines_text
from kernmodel.studies.sweep.rows import T_ECM, TIME

if TYPE_CHECKING:
    from kernmodel.studies.sweep.grid import Axis, Grid, Row


def sweep_text(rows: Sequence[Row], grid: Grid, unit: str, width: int = 80, ascii_only: bool = False) -> str:
    """The drawing of a sweep: lines over a numeric axis with the layer conditions that break, or bars. Of two numeric
    axes with many values, a few of one are drawn as lines.

    Raises:
        UsageError: as `check_axes`.
    """
    arrangement, quantity = check_axes(grid.axes), quantity_of(grid, unit)
    if arrangement.kind == "bars":
        return _bars(grid, rows, quantity, width, ascii_only)
    x_axis = arrangement.x
    assert x_axis is not None
    curves = curves_of(grid, rows, replace(arrangement, curves=arrangement.curves or arrangement.y))
    if arrangement.kind == "heat map":
        curves = tuple(curves[k * (len(curves) - 1) // (FEW - 1)] for k in range(FEW))
    xs, x_unit = numbers(x_axis)
    label = f"{x_axis.label} ({x_unit})" if x_unit else x_axis.label
    lines = _lines(curves, quantity)
    drawing = lines_text(lines, quantity.label, width, ascii_only, x_label=label, log_x=is_logarithmic(xs))
    return drawing + _breaks(curves, x_axis)


def _lines(curves: Sequence[Curve], quantity: Quantity) -> list[TextLine]:
    alone = "all cores" if quantity.whole else "T_ECM"
    labels = [curve.label if len(curves) > 1 else alone for curve in curves]
    drawn = list(zip(labels, curves, strict=True))
    lines = [_line(curve, label, quantity.column, quantity.divisor) for label, curve in drawn]
    lines += [line for label, curve in drawn for line in _other_end(label, curve, quantity)]
    if len(curves) > 1:
        return lines
    if quantity.column == T_ECM:
        lines += [_line(curves[0], name.removesuffix(TIME), name) for name in time_names(curves[0].rows)]
    return lines


def _other_end(label: str, curve: Curve, quantity: Quantity) -> Iterator[TextLine]:
    """The end of intervals at which the line itself is not."""
    ends, end = [quantity.ends(row) for row in curve.rows], 1 if quantity.unit.endswith("/s") else 0
    if any(low < high for low, high in ends):
        yield TextLine(f"{label}, at {'most' if end else 'least'}", curve.x, tuple(both[end] for both in ends))


def _line(curve: Curve, label: str, name: str, divisor: float = 1.0) -> TextLine:
    return TextLine(label, curve.x, tuple(value_of(row, name, divisor) for row in curve.rows))


def _breaks(curves: Sequence[Curve], axis: Axis) -> str:
    """What changes in the caches along the axis, one line for each change; with the curves that have it if not all."""
    found: dict[str, list[str]] = {}
    for curve in curves:
        for mark in breaks_of(curve, axis):
            where = f"{axis.label} {'>' if mark.exact else '≈'} {mark.x:.6g}"
            found.setdefault(f"{where}: reuse in {mark.cache} {mark.before} → {mark.after}", []).append(curve.label)
    if not found:
        return ""
    lines = (
        f"  {text}" if len(labels) == len(curves) else f"  {text} ({', '.join(labels)})"
        for text, labels in found.items()
    )
    return "\n".join(("", *lines, ""))


def _bars(grid: Grid, rows: Sequence[Row], quantity: Quantity, width: int, ascii_only: bool) -> str:
    values = [value_of(row, quantity.column, quantity.divisor) for row in rows]
    bars = [
        TextBar(point_label(grid, row), 0.0, value, f"{value:.4g}" if value == value else "-")
        for row, value in zip(rows, values, strict=True)
    ]
    return bars_text(bars, quantity.label, width, ascii_only, origin=0.0)
