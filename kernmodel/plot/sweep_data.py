"""What a picture of a sweep shows: which axis is which, curves with their values, and where layer conditions break.

Rows are enough to draw: nothing here needs an answer. Light on purpose: matplotlib is not imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isnan, log, prod, sqrt
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Literal

from kernmodel.errors import UsageError
from kernmodel.models.calls import CALLS, IN_CORE
from kernmodel.models.outside import OUTSIDE
from kernmodel.studies.sweep.rows import (
    ALL_CORES,
    CORE,
    ERROR,
    REUSE,
    T_ECM,
    TIME,
    WHILE,
    coordinate,
    coordinate_name,
    interval_of_all_cores,
)
from kernmodel.studies.sweep.values import numeric_values
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.studies.sweep.grid import Axis, Grid, Row

FEW = 6
"""Values of a numeric axis that are drawn as curves."""
_MOST_CURVES, _MOST_BARS = 16, 120
_HITS = "hits "


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Which axis is which.

    Attributes:
        kind: "lines" over `x`, one for each value of `curves`; "heat map" over `x` and `y`; "bars".
    """

    kind: Literal["lines", "heat map", "bars"]
    x: Axis | None = None
    curves: Axis | None = None
    y: Axis | None = None


def check_axes(axes: Sequence[Axis]) -> Arrangement:
    """How a sweep over these axes is drawn.

    Raises:
        UsageError: nothing varies, more than two axes vary, or more is to be drawn than can be told apart.
    """
    names = [_option(axis) for axis in axes]
    if not axes:
        raise UsageError("nothing varies", where="--plot", todo="give several values, such as -D N=100-10000:20log")
    if len(axes) > 2:
        what = f"{len(axes)} axes vary ({', '.join(names)}), but a picture shows two"
        raise UsageError(what, where="--plot", todo=f"fix {len(axes) - 2} of them to one value, such as {names[0]}")
    numeric = [axis for axis in axes if numeric_values(axis) is not None]
    if not numeric:
        if prod(len(axis.values) for axis in axes) > _MOST_BARS:
            raise UsageError(f"more than {_MOST_BARS} bars", where="--plot", todo=f"give fewer values of {names[0]}")
        return Arrangement("bars")
    if len(axes) == 1:
        return Arrangement("lines", numeric[0])
    # of two numeric axes the one with more values is x, and the later one where they have as many
    x = max(reversed(numeric), key=lambda axis: len(axis.values))
    other = axes[0] if axes[1] is x else axes[1]
    if other in numeric and len(other.values) > FEW:
        return Arrangement("heat map", x, y=other)
    if len(other.values) > _MOST_CURVES:
        what = f"{len(other.values)} curves cannot be told apart"
        raise UsageError(what, where="--plot", todo=f"give at most {_MOST_CURVES} values of {_option(other)}")
    return Arrangement("lines", x, other)


def _option(axis: Axis) -> str:
    """How the user wrote an axis."""
    forms = {"size": "-D {}", "block": "--block {}", "change": "--set {}", "machine": "-m"}
    return forms.get(axis.kind, f"--{axis.kind}").format(axis.name)


@dataclass(frozen=True, slots=True)
class Quantity:
    """What is drawn: the column of the rows, its divisor, its name with unit, whether it is of all cores, its unit."""

    column: str
    divisor: float
    label: str
    whole: bool
    unit: str

    def ends(self, row: Row) -> tuple[float, float]:
        """Between which values it lies at a row; the same twice where it is known, no numbers where it has none."""
        value = value_of(row, self.column, self.divisor)
        held = interval_of_all_cores(row, self.unit) if self.whole else None
        return (value, value) if held is None else (held.low / self.divisor, held.high / self.divisor)


def quantity_of(grid: Grid, unit: str) -> Quantity:
    """T_ECM in the unit, of all cores where their number varies; rates in 10⁹."""
    cores = any(axis.kind == "cores" for axis in grid.axes)
    column = (ALL_CORES if cores else CORE)[unit]
    of = " of all cores" if cores else ""
    if unit.endswith("/s"):
        return Quantity(column, 1e9, f"performance{of} (G{unit})", whole=cores, unit=unit)
    name = {"cy/CL": "cycles per unit of work", "cy/It": "cycles per iteration", "s": "time of a sweep"}[unit]
    return Quantity(column, 1.0, f"{name}{of} ({unit})", whole=cores, unit=unit)


def value_of(row: Row, name: str, divisor: float = 1.0) -> float:
    """A number of a row; not a number where it has none."""
    value = row.get(name)
    return value / divisor if isinstance(value, int | float) else float("nan")


def numbers(axis: Axis) -> tuple[tuple[float, ...], str]:
    """The values of a numeric axis and their unit."""
    found = numeric_values(axis)
    if found is None:
        raise ValueError(f"{axis.label} is no numeric axis")
    return found


def is_logarithmic(values: Sequence[float]) -> bool:
    """Whether the values are spaced more evenly in the logarithm."""
    ordered = sorted(values)
    if len(ordered) < 3 or ordered[0] <= 0:
        return False
    return _unevenness([log(value) for value in ordered]) < _unevenness(ordered)


def _unevenness(values: Sequence[float]) -> float:
    steps = [after - before for before, after in pairwise(values)]
    mean = fmean(steps)
    return pstdev(steps) / mean if mean else 0.0


def time_names(rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns of the model's times, T_OL first; without T_call where no function is called."""
    left_out = () if called(rows) else (f"{CALLS}{TIME}",)
    found = (name for name in rows[0] if name.startswith("T_") and name.endswith(TIME) and "T_ECM" not in name)
    return tuple(name for name in found if name not in left_out)


def stacked_names(rows: Sequence[Row]) -> tuple[str, ...]:
    """The columns of those times that do not overlap with all others: all but those of the core."""
    return tuple(name for name in time_names(rows) if name.removesuffix(TIME) not in IN_CORE)


def called(rows: Sequence[Row]) -> bool:
    """Whether any of the loops calls functions that take time."""
    return any(value_of(row, f"{CALLS}{TIME}") > 0 for row in rows)


def adds_up(rows: Sequence[Row]) -> bool:
    """Whether T_ECM is the larger of T_OL with T_call and T_out and the sum of the other times wherever it is known, so
    that a stack shows it; on machines that overlap transfers it is not."""
    return all(
        abs(value_of(row, T_ECM) - max(overlapping_time(row), _sum_of_others(row))) <= 1e-6
        for row in rows
        if row.get(ERROR) is None
    )


def overlapping_time(row: Row) -> float:
    """T_OL, T_call and T_out, which the core spends beside it."""
    beside = (value_of(row, f"{name}{TIME}") for name in (CALLS, OUTSIDE))
    return value_of(row, f"T_OL{TIME}") + sum(0.0 if isnan(cycles) else cycles for cycles in beside)


def _sum_of_others(row: Row) -> float:
    others = [name for name in stacked_names([row]) if row[name] is not None]
    return sum(value_of(row, name) for name in others)


@dataclass(frozen=True, slots=True)
class Curve:
    """Rows over the x axis, x ascending."""

    label: str
    x: tuple[float, ...]
    rows: tuple[Row, ...]


def curves_of(grid: Grid, rows: Sequence[Row], arrangement: Arrangement) -> tuple[Curve, ...]:
    """The curves, in the order of their axis."""
    x_axis, other = arrangement.x, arrangement.curves
    if x_axis is None:
        raise ValueError("bars have no x axis")
    xs, _ = numbers(x_axis)
    groups: dict[int, list[tuple[float, Row]]] = {}
    for row in rows:
        digits = digits_of(grid, row)
        number = digits[grid.axes.index(other)] if other else 0
        groups.setdefault(number, []).append((xs[digits[grid.axes.index(x_axis)]], row))
    curves = []
    for number, pairs in sorted(groups.items()):
        pairs.sort(key=lambda pair: pair[0])
        label = "" if other is None else value_label(other, number)
        curves.append(Curve(label, tuple(x for x, _ in pairs), tuple(row for _, row in pairs)))
    return tuple(curves)


def digits_of(grid: Grid, row: Row) -> tuple[int, ...]:
    """The number of the value on each axis at a row."""
    rest, digits = int(row["point"] or 0), []
    for axis in reversed(grid.axes):
        rest, digit = divmod(rest, len(axis.values))
        digits.append(digit)
    return tuple(reversed(digits))


def value_label(axis: Axis, number: int) -> str:
    """A value of an axis as a legend names it ("N = 4000", "clx")."""
    value = str(coordinate(axis.values[number]))
    named = axis.kind not in ("machine", "compiler", "flags")
    return f"{coordinate_name(axis)} = {value}" if named else value


def point_label(grid: Grid, row: Row) -> str:
    """The values on all axes of a row."""
    digits = digits_of(grid, row)
    return ", ".join(value_label(axis, digit) for axis, digit in zip(grid.axes, digits, strict=True))


@dataclass(frozen=True, slots=True)
class Break:
    """Between two neighbouring points another reuse holds in a cache: at `x` (the last value with the old one where the
    rows say it, else between the two), from the loop `before` to `after`."""

    x: float
    cache: str
    before: str
    after: str
    exact: bool

    def __str__(self) -> str:
        return f"{self.cache}: {self.before} → {self.after}" + (f" ({self.x:g})" if self.exact else "")


def breaks_of(curve: Curve, axis: Axis) -> Iterator[Break]:
    """Where layer conditions break along a curve, x ascending."""
    caches = [name for name in curve.rows[0] if name.startswith(REUSE) and not name.endswith(WHILE)]
    pairs = [pair for pair in zip(curve.x, curve.rows, strict=True) if pair[1].get(ERROR) is None]
    for (x, row), (next_x, next_row) in pairwise(pairs):
        for name in caches:
            before, after = (str(one.get(name) or "none") for one in (row, next_row))
            if before == after or before.startswith(_HITS) or after.startswith(_HITS):
                continue
            limit = _limit(str(row.get(f"{name}{WHILE}") or ""), axis.name)
            exact = limit is not None and x <= limit < next_x
            between = sqrt(x * next_x) if x > 0 else (x + next_x) / 2
            yield Break(float(limit) if exact and limit else between, name.removeprefix(REUSE), before, after, exact)


def stepped(curve: Curve, axis: Axis) -> Curve:
    """The curve with a step where a layer condition breaks at a known value, and nothing else changes before the next
    point."""
    breaks = [mark for mark in breaks_of(curve, axis) if mark.exact]
    xs, rows = [curve.x[0]], [curve.rows[0]]
    for x, row in zip(curve.x[1:], curve.rows[1:], strict=True):
        between = {mark.x for mark in breaks if xs[-1] <= mark.x < x}
        if len(between) == 1:
            place = between.pop()
            xs += [place, place]
            rows += [rows[-1], row]
        xs.append(x)
        rows.append(row)
    return Curve(curve.label, tuple(xs), tuple(rows))


def _limit(text: str, name: str) -> int | None:
    """The largest value of a size for which a condition holds, from its text ("N ≤ 1024, M ≤ 20 (N = 100)")."""
    found = re.search(rf"(?:^|, ){re.escape(name)} ≤ (\d+)", text) if name else None
    return int(found[1]) if found else None
