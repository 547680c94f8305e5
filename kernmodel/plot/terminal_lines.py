"""Lines and bars in characters, for a terminal or a pipe: no colours, any width."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kernmodel.plot.text_grid import MARGIN, Grid, Scale, axis_text, columns_of, nice_step
from kernmodel.value_types import dataclass

_LEAST = 1e-90
_ROWS = 20
_SIGNS = "*o+x#@%&"
"""Of the lines; letters where there are more."""
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NEAR = 0.6
"""The vertical axis begins at 0 unless the lowest value is above this share of the highest."""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a drawing: label, and points with x ascending."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class TextBar:
    """A bar to the left and to the right of an origin: label, its two ends, and the text behind it."""

    label: str
    low: float
    high: float
    text: str = ""


def lines_text(
    lines: Sequence[TextLine],
    title: str,
    width: int = 80,
    ascii_only: bool = False,
    *,
    x_label: str = "",
    log_x: bool = False,
) -> str:
    """All lines in one frame with a legend below; `width` is in columns, at least 40 are taken.

    A step within one column is drawn as a vertical bar, and where two lines share a place their signs alternate. Points
    that have no place (not finite; x not above 0 on a logarithmic axis) leave a gap.
    """
    columns = columns_of(width)
    runs = [list(_runs(line, log_x)) for line in lines]
    points = [point for of_line in runs for run in of_line for point in run]
    if not points:
        return f"{title}\n  nothing to draw\n"
    x_scale = _x_scale([x for x, _ in points], log_x)
    grid = Grid.blank(columns - MARGIN, _ROWS, x_scale, _y_scale([y for _, y in points]))
    step = "|" if ascii_only else "│"
    for number, of_line in enumerate(runs):
        for run in of_line:
            _draw(grid, run, _sign(number), step)
    drawing = [title, *grid.framed(ascii_only)]
    if x_label:
        drawing.append(" " * MARGIN + x_label.center(columns - MARGIN).rstrip())
    return "\n".join([*drawing, *_legend([line.label for line in lines], columns)]) + "\n"


def _sign(number: int) -> str:
    signs = _SIGNS + _LETTERS
    return signs[number % len(signs)]


def _runs(line: TextLine, log_x: bool) -> Iterator[list[tuple[float, float]]]:
    """The stretches of a line whose points all have a place."""
    x_kind, y_kind = Scale(1, 2, log_x), Scale(1, 2)
    run: list[tuple[float, float]] = []
    for x, y in zip(map(_or_zero, line.x), map(_or_zero, line.y), strict=True):
        if x_kind.shows(x) and y_kind.shows(y):
            run.append((x, y))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _or_zero(value: float) -> float:
    """The value; 0 for one so small that its exponent would not fit beside an axis."""
    return 0.0 if abs(value) < _LEAST else value


def _x_scale(values: Sequence[float], log: bool) -> Scale:
    """From the first to the last value; around a single one."""
    low, high = min(values), max(values)
    if low < high:
        return Scale(low, high, log)
    return Scale(low / 2, high * 2, log) if log else Scale(low - 1, high + 1)


def _y_scale(values: Sequence[float]) -> Scale:
    """Round limits that hold all values, from 0 where that hides nothing."""
    low, high = min(values), max(values)
    if 0 <= low <= _NEAR * high:
        low = 0.0
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0) or float(low == 0)
    return _round_scale(low, high, 5)


def _round_scale(low: float, high: float, steps: int) -> Scale:
    """Limits around both values that are multiples of a round step, about so many steps apart."""
    step = nice_step((high - low) / steps)
    return Scale(step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9))


def _draw(grid: Grid, run: Sequence[tuple[float, float]], sign: str, step: str) -> None:
    """A stretch of a line: a sign in each column, and bars where it rises or falls by more than a row."""
    places: dict[int, list[int]] = {}
    for column, row in _places(grid, run):
        places.setdefault(column, []).append(row)
    before = None
    for column, rows in places.items():
        reached = rows if before is None else [before, *rows]
        for between in range(min(reached) + 1, max(reached)):
            if grid.cells[between][column] == " ":
                grid.cells[between][column] = step
        for row in {min(rows), max(rows)}:
            # where lines coincide, each shows in every other column
            if grid.cells[row][column] in (" ", step, sign) or column % 2:
                grid.cells[row][column] = sign
        before = rows[-1]


def _places(grid: Grid, run: Sequence[tuple[float, float]]) -> Iterator[tuple[int, int]]:
    """The cells of a line, column by column; several in a column that holds several points."""
    for (left, y), (right, after) in pairwise(run):
        first, last = grid.column(left), grid.column(right)
        begin, end = grid.y.share(y), grid.y.share(after)
        for column in range(first, max(last, first + 1)):
            share = begin + (end - begin) * (column - first) / max(last - first, 1)
            yield column, grid.row(grid.y.value(share))
    yield grid.column(run[-1][0]), grid.row(run[-1][1])


def _legend(labels: Sequence[str], columns: int) -> Iterator[str]:
    """Signs and labels, as many on a line as fit."""
    line = ""
    for number, label in enumerate(labels):
        entry = f"  {_sign(number)} {label}"
        if line and len(line) + len(entry) + 1 > columns:
            yield line
            line = ""
        line += entry if not line else " " + entry
    if line:
        yield line


def bars_text(
    bars: Sequence[TextBar], title: str, width: int = 80, ascii_only: bool = False, *, origin: float = 1.0
) -> str:
    """Horizontal bars around an origin (a tornado), one a line, with a scale below.

    From the origin to `low` a bar is light, to `high` dark; both may lie on the same side. An end that is not finite is
    left out.
    """
    ends = [end for bar in bars for end in (bar.low, bar.high) if math.isfinite(end)]
    if not ends:
        return f"{title}\n  nothing to draw\n"
    columns = columns_of(width)
    names = min(max(len(bar.label) for bar in bars), columns // 3)
    texts = min(max(len(bar.text) for bar in bars), columns // 3)
    grid = columns - names - texts - 4
    scale = _bar_scale([*ends, origin])
    rows = [f"{_shortened(bar.label, names, ascii_only):<{names}}  {_bar(bar, scale, grid, origin, ascii_only)}"
            f"  {bar.text}".rstrip() for bar in bars]  # fmt: skip
    line, mark = ("-", "+") if ascii_only else ("─", "┴")
    at = _cell(scale, origin, grid)
    below = " " * (names + 2) + line * at + mark + line * (grid - at - 1)
    return "\n".join([title, *rows, below, axis_text(scale, grid, names + 2)]) + "\n"


def _bar_scale(values: Sequence[float]) -> Scale:
    """Round limits around all values."""
    low, high = _or_zero(min(values)), _or_zero(max(values))
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _round_scale(low, high, 10)


def _cell(scale: Scale, value: float, columns: int) -> int:
    return round(scale.share(value) * (columns - 1))


def _bar(bar: TextBar, scale: Scale, columns: int, origin: float, ascii_only: bool) -> str:
    """The cells of one bar; an end that is not at the origin takes a cell at least."""
    light, dark, axis = ("-", "#", "|") if ascii_only else ("░", "█", "│")
    at = _cell(scale, origin, columns)
    cells = [" "] * columns
    sides = [(bar.low, light), (bar.high, dark)]
    # the longer side first, so that the shorter one stays visible on the same side
    for end, sign in sorted(sides, key=lambda side: -abs(side[0] - origin) if math.isfinite(side[0]) else 0.0):
        if not math.isfinite(end) or end == origin:
            continue
        last = _cell(scale, end, columns)
        covered = range(min(last, at - 1), at) if end < origin else range(at + 1, max(last, at + 1) + 1)
        for column in covered:
            if 0 <= column < columns:
                cells[column] = sign
    cells[at] = axis
    return "".join(cells)


def _shortened(text: str, most: int, ascii_only: bool) -> str:
    sign = "..." if ascii_only else "…"
    return text if len(text) <= most else text[: most - len(sign)] + sign
