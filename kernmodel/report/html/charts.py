"""Charts as values, which `page.js` draws, each with its title, its description and the table behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kernmodel.report.html.blocks import blocks_html
from kernmodel.report.html.elements import Html, data, element
from kernmodel.report.layout import Blocks, Column, Table
from kernmodel.report.number_text import MISSING, prefixed, short
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis: its label, and the unit that its numbers take a prefix with ("FLOP/s"; "" for plain numbers)."""

    label: str
    unit: str = ""
    log: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """Something that is drawn over the axes, and switched on and off by its name.

    Attributes:
        points: (x, y); of an area (x, from, to); of an arrow where it begins and ends.
        tips: what is said of each point, or of the whole where there is one.
        colour: number of the colour of the page, from 0; of series with the same name all are the same.
        dashed: of a line.
        label: written along a line, or beside the first mark; "" for none.
        share: of marks: what their size and colour tell, 0 to 1 of the largest; None: they are as all others.
    """

    name: str
    points: tuple[tuple[float, ...], ...]
    tips: tuple[str, ...]
    shape: Literal["line", "area", "arrow", "marks", "crosses"] = "line"
    colour: int = 0
    dashed: bool = False
    label: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines, areas and marks over two axes.

    Attributes:
        about: what it shows, in a sentence or two, for those who do not see it.
        table: the numbers; None: those of its points.
        follows: name of the slider whose place a vertical line marks; "" for none.
        places: x at each place of the slider.
        limits: of both axes, (x from, x to, y from, y to); None: those that hold all series.
    """

    title: str
    about: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    table: Blocks | None = None
    follows: str = ""
    places: tuple[float, ...] = ()
    limits: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a bar, of the part with this number in the legend."""

    part: int
    start: float
    end: float
    tip: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its name, and segments side by side."""

    name: str
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class BarChart:
    """Horizontal bars.

    Attributes:
        about, table: as of line charts.
        legend: names of the parts.
        frames: the bars; several for the places of the slider that the chart follows.
        follows: name of the slider; place: at which it stands first.
        origin: where the line stands from which bars go.
    """

    title: str
    about: str
    x: Axis
    legend: tuple[str, ...]
    frames: tuple[tuple[Bar, ...], ...]
    table: Blocks | None = None
    follows: str = ""
    place: int = 0
    origin: float = 0.0


Chart = LineChart | BarChart


def figure(chart: Chart) -> Html:
    """The chart as an element: without the script its table stands for it."""
    kind = "lines" if isinstance(chart, LineChart) else "bars"
    drawn = {name: getattr(chart, name) for name in _DRAWN[kind]}
    return element(
        "figure",
        element("figcaption", chart.title),
        element("div", class_="plot", data_about=chart.about),
        data(drawn),
        element("details", element("summary", "Table of this chart"), blocks_html(_table(chart))),
        class_="chart",
        data_kind=kind,
    )


_DRAWN = {
    "lines": ("x", "y", "series", "follows", "places", "limits"),
    "bars": ("x", "legend", "frames", "follows", "place", "origin"),
}


def stacked(name: str, parts: Sequence[tuple[int, str, float]], unit: str) -> Bar:
    """A bar of parts one after the other: number in the legend, name and length of each."""
    segments, end = [], 0.0
    for part, label, length in parts:
        if length > 0:
            segments.append(Segment(part, end, end + length, f"{label}: {short(length)} {unit}".rstrip()))
            end += length
    return Bar(name, tuple(segments))


def _table(chart: Chart) -> Blocks:
    if chart.table is not None:
        return chart.table
    return (_of_lines(chart),) if isinstance(chart, LineChart) else (_of_bars(chart),)


def _of_lines(chart: LineChart) -> Table:
    """A row for each x, a column for each line; of an area, its upper end."""
    values = [{point[0]: point[-1] for point in one.points} for one in chart.series]
    columns = (Column(chart.x.label, "right"), *(Column(one.name, "right") for one in chart.series))
    rows = []
    for x in sorted({x for one in values for x in one}):
        cells = (MISSING if x not in one else _written(one[x], chart.y) for one in values)
        rows.append((_written(x, chart.x), *cells))
    return Table(columns, tuple(rows))


def _of_bars(chart: BarChart) -> Table:
    """A row for each stretch of the bars that stand there first."""
    columns = (Column("bar", "left"), Column("part", "left"), Column(f"{chart.x.label}, from", "right"))
    rows = (
        (bar.name, chart.legend[one.part], short(one.start), short(one.end))
        for bar in chart.frames[chart.place if len(chart.frames) > 1 else 0]
        for one in bar.segments
    )
    return Table((*columns, Column("to", "right")), tuple(rows))


def _written(value: float, axis: Axis) -> str:
    return prefixed(value, axis.unit) if axis.unit else f"{value:.6g}"
