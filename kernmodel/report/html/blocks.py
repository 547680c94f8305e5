"""The blocks of a report as elements of a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kernmodel.report.html.elements import Html, element, html
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table


def blocks_html(blocks: Iterable[Block], heading: str = "h3") -> Html:
    """The blocks one below the other; titles in elements called `heading`."""
    return html(_elements(blocks, heading))


def _elements(blocks: Iterable[Block], heading: str) -> Iterator[Html]:
    title = ""
    for block in blocks:
        match block:
            case Heading(text):
                title = text
                yield element(heading, text)
            case Line(text, style):
                if text.strip():
                    yield element("p", text.strip("\n"), class_=None if style == "plain" else style)
            case Fields():
                yield fields_html(block)
            case Table():
                yield table_html(block, title)


def fields_html(block: Fields) -> Html:
    """Labels and values; a label that is empty goes on with the value before it."""
    return element("dl", [[element("dt", label), element("dd", value)] for label, value in block.pairs])


def table_html(block: Table, name: str = "") -> Html:
    """A table, which scrolls by itself where the page is too narrow."""
    head = element("tr", [element("th", one.header, scope="col", class_=_kind(one)) for one in block.columns])
    rows = element("tbody", [_row(block, row) for row in block.rows])
    sums = element("tfoot", [_row(block, row) for row in block.sums]) if block.sums else None
    table = element("table", element("thead", head), rows, sums)
    return element("div", table, class_="table", tabindex=0, role="region", aria_label=name or "table")


def _kind(column: Column) -> str:
    return f"{column.align} fold" if column.fold else column.align


def _row(block: Table, row: tuple[str, ...]) -> Html:
    cells = zip(row, block.columns, strict=True)
    return element("tr", [element("td", cell, class_=_kind(column)) for cell, column in cells])
