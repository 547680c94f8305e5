"""The layout of an answer: a sequence of blocks (headings, lines, labelled values, tables), apart from how it is shown.

A table is declared by its columns: each says what it shows of an item, and how that is written. `report.text.render`
makes text of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Literal

from kernmodel.report.number_text import as_text
from kernmodel.value_types import dataclass

Align = Literal["left", "right"]
Pair = tuple[str, str]
"""A label and its value."""
Value = str | Callable[[Any], object]
"""What a column shows of an item: an attribute ("location.line"), or a function of it."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a section; a blank line goes before it."""

    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """Text as it stands, one or more lines.

    Attributes:
        fold: whether it is a sentence, which is broken into lines where a terminal is too narrow.
    """

    text: str
    style: Literal["plain", "strong", "warning"] = "plain"
    fold: bool = False


@dataclass(frozen=True, slots=True)
class Fields:
    """Labels and their values, one pair a line, values aligned."""

    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        fold: whether cells are broken into lines where a terminal is too narrow.
        least: least width, for tables that are printed before all rows are known.
        value, written: what it shows of the item of a row, and that as text.
    """

    header: str
    align: Align = "right"
    fold: bool = False
    least: int = 0
    value: Value = ""
    written: Callable[[Any], str] = as_text

    def cell(self, item: Any) -> str:
        """What the column shows of an item."""
        return self.written(_getter(self.value)(item))


def _getter(value: Value) -> Callable[[Any], Any]:
    return attrgetter(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `sums` stand below the rows, behind a rule."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    sums: tuple[tuple[str, ...], ...] = ()


Block = Heading | Line | Fields | Table
Blocks = tuple[Block, ...]


def left(
    header: str, value: Value, written: Callable[[Any], str] = as_text, *, fold: bool = False, least: int = 0
) -> Column:
    """A column of text."""
    return Column(header, "left", fold, least, value, written)


def right(header: str, value: Value, written: Callable[[Any], str] = as_text, *, least: int = 0) -> Column:
    """A column of numbers."""
    return Column(header, "right", False, least, value, written)


def entry(mapping: Value, key: str) -> Callable[[Any], Any]:
    """The entry of a mapping of an item; nothing where it has none of this key."""
    of = _getter(mapping)
    return lambda item: of(item).get(key)


def cells(columns: Iterable[Column], item: Any) -> tuple[str, ...]:
    """The row of an item."""
    return tuple(column.cell(item) for column in columns)


def filled(columns: Iterable[Column], items: Iterable[Any], sums: Iterable[tuple[str, ...]] = ()) -> Table:
    """A table with a row for each item."""
    columns = tuple(columns)
    return Table(columns, tuple(cells(columns, item) for item in items), tuple(sums))


def table(
    title: str,
    columns: Iterable[Column],
    items: Iterable[Any],
    sums: Iterable[tuple[str, ...]] = (),
    *,
    always: bool = False,
) -> Blocks:
    """A section that is a table with a row for each item; nothing without items, unless it is `always` shown."""
    found = filled(columns, items, sums)
    return (Heading(title), found) if found.rows or always else ()


def fields(title: str, *pairs: tuple[str, str | None]) -> Blocks:
    """A section of labelled values, of which those that are None are left out; nothing if none is left."""
    found = tuple((label, value) for label, value in pairs if value is not None)
    return (Heading(title), Fields(found)) if found else ()


def lines(title: str, texts: Iterable[str], style: Literal["plain", "strong", "warning"] = "plain") -> Blocks:
    """A section of lines; nothing without any."""
    found = tuple(Line(f"  {text}", style) for text in texts)
    return (Heading(title), *found) if found else ()
