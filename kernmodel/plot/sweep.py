"""Pictures of `kernmodel sweep`: lines over a numeric axis, a heat map over two, or bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from kernmodel.plot import style
from kernmodel.plot.caption import Caption, draw_caption, machine_names, version
from kernmodel.plot.sweep_data import (
    Arrangement,
    Break,
    Curve,
    Quantity,
    adds_up,
    breaks_of,
    called,
    check_axes,
    curves_of,
    digits_of,
    is_logarithmic,
    numbers,
    overlapping_time,
    point_label,
    quantity_of,
    stacked_names,
    stepped,
    time_names,
    value_label,
    value_of,
)
from kernmodel.studies.sweep.rows import T_ECM, TIME
from kernmodel.units import format_bytes, format_si

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis as AnyAxis
    from matplotlib.figure import Figure

    from kernmodel.studies.sweep.grid import Axis, Grid, Row

_LEFT, _RIGHT, _BOTTOM, _TOP = 0.09, 0.75, 0.13, 0.92
_MOST_MARKS = 12
_NEAR = 0.022
"""Marks nearer to each other than this share of the axis have one label."""
_LABEL_ROOM = 1.5
"""Height of the axes over the highest value where marks have labels."""


def sweep_figure(rows: Sequence[Row], grid: Grid, unit: str, machines: Sequence[str]) -> Figure:
    """The picture of a sweep; `rows` are those of `studies.sweep.rows`, all of the grid.

    Args:
        unit: of T_ECM; the contributions are drawn too where it is cy/CL.
        machines: titles, for the heading.

    Raises:
        UsageError: as `check_axes`.
    """
    arrangement, quantity = check_axes(grid.axes), quantity_of(grid, unit)
    kernel = grid.base.kernel.kernel.rpartition("/")[2].removesuffix(".c")
    with style.settings():
        if arrangement.kind == "bars":
            figure = _bars(grid, rows, quantity)
        elif arrangement.kind == "heat map":
            figure = _heat_map(grid, rows, quantity, arrangement)
        else:
            figure = _lines(curves_of(grid, rows, arrangement), quantity, arrangement)
        where = machines[0] if len(machines) == 1 else f"{len(machines)} machines"
        draw_caption(figure, Caption(f"{kernel} on {where}", _details(grid, rows)))
        return figure


_MOST_CODES = 3


def _details(grid: Grid, rows: Sequence[Row]) -> tuple[str, ...]:
    """Fixed sizes, the span of each axis, codes and machines of a sweep."""
    varying = {axis.name for axis in grid.axes if axis.kind == "size"}
    sizes = [f"{name} = {value}" for name, value in grid.base.kernel.sizes.items() if name not in varying]
    for axis in grid.axes:
        last = str(axis.values[-1]) if axis.kind in ("size", "cores", "block") else value_label(axis, -1)
        sizes.append(value_label(axis, 0) + (f" … {last}" if len(axis.values) > 1 else ""))
    codes = list(dict.fromkeys(str(row["code"]) for row in rows if row.get("code")))
    more = [f"{len(codes) - _MOST_CODES} more codes"] if len(codes) > _MOST_CODES else []
    names = machine_names(str(row.get("machine") or grid.base.kernel.machine) for row in rows)
    return (*sizes, *codes[:_MOST_CODES], *more, names, version())


def _lines(curves: Sequence[Curve], quantity: Quantity, arrangement: Arrangement) -> Figure:
    figure = style.new_figure(8.0, 4.4)
    axes = figure.add_axes((_LEFT, _BOTTOM, _RIGHT - _LEFT, _TOP - _BOTTOM))
    x_axis = arrangement.x
    assert x_axis is not None
    _scale_x(axes, x_axis)
    tops = [quantity.ends(row)[1] for curve in curves for row in curve.rows]
    if len(curves) == 1 and quantity.column == T_ECM:
        draw = _contributions if adds_up(curves[0].rows) else _times
        tops += draw(axes, stepped(curves[0], x_axis))
    for number, curve in enumerate(curves):
        shown = stepped(curve, x_axis) if len(curves) == 1 else curve
        _curve(axes, shown, quantity, number, alone=len(curves) == 1)
    found: dict[Break, list[int]] = {}
    for number, curve in enumerate(curves):
        for mark in breaks_of(curve, x_axis):
            found.setdefault(mark, []).append(number)
    shades = {m: style.GREY if len(of) == len(curves) else style.colour(of[0]) for m, of in found.items()}
    highest = max((value for value in tops if math.isfinite(value)), default=1.0) or 1.0
    marked = _marks(axes, x_axis, shades, highest)
    axes.set_ylim(0, highest * (_LABEL_ROOM if marked else 1.08))
    axes.set_ylabel(quantity.label)
    style.legend_beside(axes, reverse=len(curves) == 1)
    return figure


def _scale_x(axes: Axes, axis: Axis) -> None:
    """Limits, scale and label of the x axis."""
    values, unit = numbers(axis)
    if is_logarithmic(values):
        axes.set_xscale("log")
    axes.set_xlim(min(values), max(values))
    axes.set_xlabel(_axis_label(axis, unit))
    _ticks(axes.xaxis, values, unit)


def _ticks(line: AnyAxis, values: Sequence[float], unit: str) -> None:
    """Ticks at some of the values, with their unit, where decades would say little."""
    from matplotlib.ticker import MaxNLocator

    logarithmic = is_logarithmic(values)
    if unit in _READABLE or (logarithmic and max(values) < 100 * min(values)):
        shown = sorted(values)[:: -(-len(values) // 7)]
        write = _READABLE.get(unit, _plain_number)
        line.set_ticks(shown, [write(value) for value in shown])
        line.set_ticks([], minor=True)
    elif not logarithmic and all(value.is_integer() for value in values):
        line.set_major_locator(MaxNLocator(integer=True))


def _plain_number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.6g}"


_READABLE: Mapping[str, Callable[[float], str]] = {
    "B": lambda value: format_bytes(float(f"{value:.3g}") if value % 1024 else value),
    "B/s": lambda value: format_si(value, "B/s"),
    "Hz": lambda value: format_si(value, "Hz"),
}
"""How values in these base units are written."""


def _axis_label(axis: Axis, unit: str) -> str:
    named = {"cores": "active cores", "block": f"block size of loop {axis.name}"}.get(axis.kind, axis.name)
    return f"{named} ({unit})" if unit and unit not in _READABLE else named


def _contributions(axes: Axes, curve: Curve) -> list[float]:
    """T_nOL and the transfer times as stacked areas, T_OL as a line; the heights that they reach."""
    names = stacked_names(curve.rows)
    columns = [[value_of(row, name) for row in curve.rows] for name in names]
    stacked = axes.stackplot(
        curve.x, *columns, labels=[name.removesuffix(TIME) for name in names], edgecolor="white", linewidth=0.3
    )
    for number, area in enumerate(stacked):
        area.set_facecolor(style.LEVELS[number % len(style.LEVELS)])
        area.set_hatch(style.HATCHES[number % len(style.HATCHES)])
        area.set_alpha(0.75)
    overlapping = [overlapping_time(row) for row in curve.rows]
    core = style.core_label(called=called(curve.rows))
    axes.plot(curve.x, overlapping, "--", color="#000000", linewidth=1.2, label=f"{core} (overlap)")
    return [*overlapping, *(sum(parts) for parts in zip(*columns, strict=True))]


def _times(axes: Axes, curve: Curve) -> list[float]:
    """The times as lines, for machines on which they overlap; the heights that they reach."""
    reached = []
    for number, name in enumerate(time_names(curve.rows)):
        values = [value_of(row, name) for row in curve.rows]
        pattern = style.PATTERNS[number % len(style.PATTERNS)]
        axes.plot(curve.x, values, linestyle=pattern, color=style.colour(number), label=name.removesuffix(TIME))
        reached += values
    return reached


def _curve(axes: Axes, curve: Curve, quantity: Quantity, number: int, *, alone: bool) -> None:
    values = [value_of(row, quantity.column, quantity.divisor) for row in curve.rows]
    lows, highs = zip(*map(quantity.ends, curve.rows), strict=True)
    if lows != highs:
        shade = style.GREY if alone else style.colour(number)
        axes.fill_between(curve.x, lows, highs, color=shade, alpha=0.25, linewidth=0, label="interval" * alone)
    if alone:
        label = "all cores" if quantity.whole else "T_ECM"
        axes.plot(curve.x, values, "-", color="#000000", linewidth=2.4, label=label, zorder=3)
        return
    every = max(1, len(values) // 12)
    axes.plot(curve.x, values, "-", color=style.colour(number), marker=style.marker(number), markevery=every,
              markersize=4, linewidth=1.6, label=curve.label, clip_on=False)  # fmt: skip


def _marks(axes: Axes, axis: Axis, breaks: Mapping[Break, str], highest: float) -> bool:
    """Vertical lines where layer conditions break, in the colour of the curve where it is not so for all, with labels
    that do not overlap; whether there are any."""
    if not breaks or len(breaks) > _MOST_MARKS:
        return False
    for group in _near_ones(axis, tuple(breaks)):
        for mark in group:
            axes.axvline(mark.x, linestyle=":", color=breaks[mark], linewidth=1.0, zorder=2)
        text = "\n".join(dict.fromkeys(map(str, group)))
        shades = {breaks[mark] for mark in group}
        shade = shades.pop() if len(shades) == 1 else style.GREY
        share = _shares(axis, [group[-1]])[0]
        side = "left" if share < 0.1 else "right"
        axes.text(
            group[0].x if side == "right" else group[-1].x, highest * (_LABEL_ROOM - 0.02), text, rotation=90,
            fontsize=style.TINY, ha=side, va="top", color=shade, linespacing=1.3, zorder=4,
        )  # fmt: skip
    return True


def _near_ones(axis: Axis, breaks: Sequence[Break]) -> list[list[Break]]:
    """The marks in groups: those of a group are too near for labels of their own."""
    ordered = sorted(breaks, key=lambda mark: mark.x)
    places = _shares(axis, ordered)
    groups = [[ordered[0]]]
    for before, place, mark in zip(places, places[1:], ordered[1:], strict=False):
        if place - before < _NEAR * (1 + len(groups[-1])):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


def _shares(axis: Axis, breaks: Sequence[Break]) -> list[float]:
    """Where marks stand, as shares of the axis."""
    values, _ = numbers(axis)
    place = math.log if is_logarithmic(values) else float
    low, high = place(min(values)), place(max(values))
    return [(place(mark.x) - low) / (high - low) for mark in breaks]


def _heat_map(grid: Grid, rows: Sequence[Row], quantity: Quantity, arrangement: Arrangement) -> Figure:
    x_axis, y_axis = arrangement.x, arrangement.y
    assert x_axis is not None
    assert y_axis is not None
    figure = style.new_figure(8.0, 5.0)
    axes = figure.add_axes((0.12, _BOTTOM, 0.81, _TOP - _BOTTOM))
    xs, x_unit = numbers(x_axis)
    ys, y_unit = numbers(y_axis)
    values = [[float("nan")] * len(xs) for _ in ys]
    unsure: list[tuple[float, float]] = []
    for row in rows:
        digits = dict(zip(grid.axes, digits_of(grid, row), strict=True))
        values[digits[y_axis]][digits[x_axis]] = value_of(row, quantity.column, quantity.divisor)
        low, high = quantity.ends(row)
        if low < high:
            unsure.append((xs[digits[x_axis]], ys[digits[y_axis]]))
    columns, lines = (sorted(range(len(places)), key=places.__getitem__) for places in (xs, ys))
    values = [[values[line][column] for column in columns] for line in lines]
    columns_at, lines_at = sorted(xs), sorted(ys)
    x_edges, y_edges = _edges(columns_at), _edges(lines_at)
    mesh = axes.pcolormesh(x_edges, y_edges, values, shading="flat", cmap="viridis", rasterized=True)
    _steps(axes, values, x_edges, y_edges)
    for name, line, places, unit in (("x", axes.xaxis, xs, x_unit), ("y", axes.yaxis, ys, y_unit)):
        if is_logarithmic(places):
            axes.set(**{f"{name}scale": "log"})
        _ticks(line, places, unit)
    axes.set(xlabel=_axis_label(x_axis, x_unit), ylabel=_axis_label(y_axis, y_unit))
    label = quantity.label
    if unsure:
        axes.plot(*zip(*unsure, strict=True), ".", color="white", markersize=3, label="interval")
        label += f"; dots: at {'least' if quantity.unit.endswith('/s') else 'most'}"
    figure.colorbar(mesh, ax=axes, label=label, fraction=0.05, pad=0.02)
    return figure


def _edges(places: Sequence[float]) -> list[float]:
    """The edges of the cells around ascending places: half way to the next one, on the scale of the axis."""
    logarithmic = is_logarithmic(places)
    at = [math.log(place) for place in places] if logarithmic else list(places)
    if len(at) == 1:
        at = [at[0], at[0] + 1.0]
    inner = [(left + right) / 2 for left, right in pairwise(at)]
    edges = [at[0] - (inner[0] - at[0]), *inner, at[-1] + (at[-1] - inner[-1])][: len(places) + 1]
    return [math.exp(edge) for edge in edges] if logarithmic else edges


_STEP = 0.02
"""A relative difference between neighbouring cells that is drawn as a step."""


def _steps(axes: Axes, values: Sequence[Sequence[float]], x_edges: Sequence[float], y_edges: Sequence[float]) -> None:
    """White lines between neighbouring cells whose values differ: the values are steps, and nothing lies between."""
    from matplotlib.collections import LineCollection

    across = [
        [(x_edges[column + 1], y_edges[line]), (x_edges[column + 1], y_edges[line + 1])]
        for line, row in enumerate(values)
        for column, (one, other) in enumerate(pairwise(row))
        if _differ(one, other)
    ]
    up = [
        [(x_edges[column], y_edges[line + 1]), (x_edges[column + 1], y_edges[line + 1])]
        for line, (row, following) in enumerate(pairwise(values))
        for column, (one, other) in enumerate(zip(row, following, strict=True))
        if _differ(one, other)
    ]
    axes.add_collection(LineCollection([*across, *up], colors="white", linewidths=0.8, label="steps"))


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > _STEP * max(abs(one), abs(other))


def _bars(grid: Grid, rows: Sequence[Row], quantity: Quantity) -> Figure:
    """A bar for each point, the first one at the top; of its contributions where it is in cy/CL."""
    height = 1.5 + 0.3 * len(rows)
    labels = [point_label(grid, row) for row in rows]
    figure = style.new_figure(8.0, height)
    left = min(0.4, 0.04 + 0.0085 * max(map(len, labels)))
    axes = figure.add_axes((left, 0.55 / height, 0.76 - left, (height - 0.95) / height))
    places = range(len(rows))
    values = [value_of(row, quantity.column, quantity.divisor) for row in rows]
    if quantity.column == T_ECM and adds_up(rows):
        _stacked(axes, rows)
        axes.plot(values, places, "D", color="#000000", markersize=4, label="T_ECM")
        beside = 1 + 0.6 / (8.0 * (0.76 - left))  # the values take 0.6 inches
        axes.legend(loc="upper left", bbox_to_anchor=(beside, 1.0), fontsize=style.SMALL, frameon=False)
    else:
        axes.barh(places, values, 0.7, color=style.colour(0))
    most = max([value for value in values if math.isfinite(value)] + [axes.get_xlim()[1]])
    for place, value in zip(places, values, strict=True):
        text = f" {value:.4g}" if math.isfinite(value) else " no prediction"
        axes.text(most, place, text, va="center", fontsize=style.SMALL)
    axes.set_xlim(0, most)
    axes.set_yticks(list(places), labels, fontsize=style.SMALL)
    axes.invert_yaxis()
    axes.set_xlabel(quantity.label)
    return figure


def _stacked(axes: Axes, rows: Sequence[Row]) -> None:
    bottoms = [0.0] * len(rows)
    for number, name in enumerate(stacked_names(rows)):
        found = [value_of(row, name) for row in rows]
        values = [value if math.isfinite(value) else 0.0 for value in found]
        axes.barh(
            range(len(rows)), values, 0.7, bottoms, linewidth=0.3, label=name.removesuffix(TIME), **style.part(number)
        )
        bottoms = [bottom + value for bottom, value in zip(bottoms, values, strict=True)]
    overlapping = [overlapping_time(row) for row in rows]
    axes.plot(overlapping, range(len(rows)), linestyle="", marker="|", markersize=11, color="#000000",
              label=f"{style.core_label(called=called(rows))} (overlap)")  # fmt: skip
