"""A frame of characters with two axes: what all drawings for a terminal or a pipe share. No colours, any width."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernmodel.value_types import dataclass

LEAST, MOST = 40, 110
"""Columns of a drawing, the vertical axis included."""
MARGIN = 8
"""Columns of the vertical axis."""
_LABEL = MARGIN - 2
_NICE = (1.0, 2.0, 5.0, 10.0)


def columns_of(width: int) -> int:
    """The columns that a drawing takes where so many are there."""
    return max(LEAST, min(width, MOST))


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, linear or logarithmic (both ends above 0 then)."""

    low: float
    high: float
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high end."""
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """The value at a share of the axis."""
        if self.log:
            return math.exp(math.log(self.low) + share * (math.log(self.high) - math.log(self.low)))
        return self.low + share * (self.high - self.low)

    def shows(self, value: float) -> bool:
        """Whether a value has a place on an axis of this kind."""
        return math.isfinite(value) and (value > 0 or not self.log)

    def ticks(self, most: int) -> list[float]:
        """Round values on the axis, at most so many: decades or 1, 2, 5 of each, or multiples of 1, 2 or 5."""
        if not self.log or self.high < 10 * self.low:
            return self._multiples(most)
        decades = range(math.floor(math.log10(self.low) - 1e-9), math.ceil(math.log10(self.high) + 1e-9) + 1)
        for factors in ((1.0, 2.0, 5.0), (1.0,)):
            found = self._within([factor * 10.0**k for k in decades for factor in factors])
            few = len([value for value in found if _is_decade(value)]) < 3
            if len(found) <= most and (few or len(factors) == 1):
                return found if len(found) > 1 else self._multiples(most)
        return found[:: -(-len(found) // most)]

    def _multiples(self, most: int) -> list[float]:
        step = nice_step((self.high - self.low) / max(1, most - 1))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{number * step:.12g}") for number in range(first, last + 1)]

    def _within(self, values: Sequence[float]) -> list[float]:
        return [value for value in values if self.low * (1 - 1e-9) <= value <= self.high * (1 + 1e-9)]


def _is_decade(value: float) -> bool:
    return math.isclose(value, 10.0 ** round(math.log10(value)))


def nice_step(least: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below `least` (> 0)."""
    power = 10.0 ** math.floor(math.log10(least))
    return power * next(factor for factor in _NICE if factor * power >= least * (1 - 1e-9))


def tick_text(value: float) -> str:
    """A value beside an axis, short enough for its margin."""
    text = f"{value:g}"
    return text if len(text) <= _LABEL else f"{value:.0e}"


@dataclass(frozen=True, slots=True)
class Grid:
    """Characters by row (top first) and column, over two axes."""

    cells: list[list[str]]
    x: Scale
    y: Scale

    @classmethod
    def blank(cls, columns: int, rows: int, x: Scale, y: Scale) -> Grid:
        """An empty grid."""
        return cls([[" "] * columns for _ in range(rows)], x, y)

    @property
    def columns(self) -> int:
        """Width."""
        return len(self.cells[0])

    def column(self, x: float) -> int:
        """The column of a value, outside the grid for one outside the axis."""
        return round(self.x.share(x) * (self.columns - 1))

    def row(self, y: float) -> int:
        """The row of a value, outside the grid for one outside the axis."""
        return round((1 - self.y.share(y)) * (len(self.cells) - 1))

    def value_at(self, column: int) -> float:
        """The value of the horizontal axis in a column."""
        return self.x.value(column / (self.columns - 1))

    def holds(self, column: int, row: int) -> bool:
        """Whether there is such a cell."""
        return 0 <= row < len(self.cells) and 0 <= column < self.columns

    def put(self, x: float, y: float, sign: str) -> None:
        """Write a sign at a point, nothing where it is outside."""
        column, row = self.column(x), self.row(y)
        if self.holds(column, row):
            self.cells[row][column] = sign

    def write(self, column: int, row: int, text: str, *, over: int) -> bool:
        """Write a text into a row where it fits and nothing stands behind its first `over` cells; whether it did."""
        if not (self.holds(column, row) and self.holds(column + len(text) - 1, row)):
            return False
        cells = slice(column, column + len(text))
        if any(sign != " " for sign in self.cells[row][cells][over:]):
            return False
        self.cells[row][cells] = text
        return True

    def framed(self, ascii_only: bool) -> list[str]:
        """The rows as text with the values of the axes beside and below them."""
        bar, corner, line = ("|", "+", "-") if ascii_only else ("│", "└", "─")
        marks = {self.row(value): tick_text(value) for value in self.y.ticks(len(self.cells) // 3 + 1)}
        rows = [
            f"{marks.get(number, ''):>{_LABEL}} {bar}{''.join(cells).rstrip()}"
            for number, cells in enumerate(self.cells)
        ]
        below = " " * (MARGIN - 1) + corner + line * self.columns
        return [*rows, below, axis_text(self.x, self.columns, MARGIN)]


def axis_text(scale: Scale, columns: int, margin: int) -> str:
    """The values of a horizontal axis in one line, each below its column; what would touch another is left out."""
    below = ""
    for value in scale.ticks(max(2, columns // 6)):
        text, middle = tick_text(value), margin + round(scale.share(value) * (columns - 1))
        at = max(0, min(middle - len(text) // 2, margin + columns - len(text)))
        if not below or len(below) + 1 < at:
            below = below.ljust(at) + text
    return below
