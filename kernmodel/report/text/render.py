"""How blocks of a report become text: plain in a pipe, coloured and folded on a terminal.

On a terminal tables go through rich, which knows how to fold and colour them; in a pipe, where nothing folds, they are
padded here, and rich (a fifth of a cold start) is not imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width, normalize

from kernmodel.patterns import pattern
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table, cells
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_UNLIMITED = 100_000
_LEAST_FOLDED = 24
_ANSI = {"plain": "", "strong": "1", "warning": "33", "heading": "1;4"}
_SIGNS = {
    "‖": "||", "⌉": "\\", "≤": "<=", "≥": ">=", "×": "x", "·": "*", "µ": "u", "→": "->", "–": "-", "−": "-", "…": "...",
    "─": "-", "│": "|", "┴": "+", "└": "+", "╱": "/", "░": "-", "█": "#", "±": "+-", "§": "sec. ", "β": "beta",
    "τ": "tau", "φ": "phi", "η": "eta", "ρ": "rho", "ℓ": "l", "⁴": "^4", "⁶": "^6", "⁷": "^7", "⁹": "^9", "⌈": "ceil(",
    "‘": "'", "↻": "@", "⤨": "&",
    "⌊": "floor(", "⌋": ")", "∞": "inf", "Σ": "sum", "≈": "~", "“": '"', "”": '"', "’": "'", "²": "^2", "³": "^3",
}  # fmt: skip
_CEILING = pattern("⌈([^⌉]*)⌉")


@dataclass(frozen=True, slots=True)
class Style:
    """Where the text goes: width of the terminal (None: no limit), whether it shows colours and the field's signs."""

    width: int | None = None
    color: bool = False
    ascii_only: bool = False


def to_ascii(text: str) -> str:
    """`text` in ASCII: `‖` becomes `||`, `⌉` becomes a backslash, `⌈x⌉` becomes `ceil(x)`."""
    text = _CEILING.sub(r"ceil(\1)", text)
    text = "".join(_SIGNS.get(character, character) for character in text)
    if text.isascii():
        return text
    plain = "".join(character if character.isascii() else _plain(character) for character in text)
    return plain.encode("ascii", "backslashreplace").decode("ascii")


def _plain(character: str) -> str:
    """The letters and digits of a sign that is made of them, without accents; the sign itself where it is not."""
    return normalize("NFKD", character).encode("ascii", "ignore").decode("ascii") or character


def render(blocks: Iterable[Block], style: Style) -> str:
    """The report as text that ends in a line break."""
    parts: list[str] = []
    for block in blocks:
        if isinstance(block, Heading) and parts:
            parts.append("")
        parts.append(_render_block(block, style))
    return "\n".join(parts) + "\n"


def _render_block(block: Block, style: Style) -> str:
    match block:
        case Heading(text):
            return _paint(_signs(text, style), "heading", style)
        case Line(text, kind, fold):
            shown = _signs(text, style)
            return _paint(_folded("", shown, style) if fold else shown, kind, style)
        case Fields(pairs):
            return "\n".join(_field_lines(pairs, style))
        case Table():
            plain = style.width is None and not style.color
            return _plain_table(block, style) if plain else _rich_table_text(block, style)


def _signs(text: str, style: Style) -> str:
    return to_ascii(text) if style.ascii_only else text


def _paint(text: str, kind: str, style: Style) -> str:
    code = _ANSI[kind]
    return f"\x1b[{code}m{text}\x1b[0m" if style.color and code else text


def _field_lines(pairs: tuple[tuple[str, str], ...], style: Style) -> Iterator[str]:
    labels = [_signs(label, style) for label, _ in pairs]
    width = max(map(len, labels), default=0)
    for label, (_, value) in zip(labels, pairs, strict=True):
        yield _folded(f"  {label:<{width}}  ", _signs(value, style), style).rstrip()


def _folded(before: str, text: str, style: Style) -> str:
    """`text` behind `before`, on several lines where the terminal is too narrow; the others begin below the first
    word, in a sentence of its own two columns further in."""
    if style.width is None or len(before) + len(text) <= style.width or "\n" in text:
        return before + text
    from textwrap import TextWrapper  # only for terminals

    indent = len(before) if before else len(text) - len(text.lstrip()) + 2
    width = max(style.width, indent + _LEAST_FOLDED)
    wrapper = TextWrapper(
        width,
        initial_indent=before or " " * (indent - 2),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )
    return wrapper.fill(text.strip() if not before else text)


def _cell_width(text: str) -> int:
    """Columns that `text` takes where it is shown: East Asian characters are two wide."""
    return len(text) if text.isascii() else sum(1 + (east_asian_width(character) in "WF") for character in text)


def _padded(cells: Iterable[str], widths: Iterable[int], columns: Iterable[Column]) -> str:
    """One line of a table."""
    parts = []
    for cell, width, column in zip(cells, widths, columns, strict=True):
        space = " " * (width - _cell_width(cell))
        parts.append(cell + space if column.align == "left" else space + cell)
    return "  ".join(parts).rstrip()


def _plain_table(table: Table, style: Style) -> str:
    """The table as it is in a pipe: every cell on one line, columns as wide as their widest cell."""
    header = tuple(_signs(column.header, style) for column in table.columns)
    rows = [tuple(_signs(cell, style) for cell in row) for row in table.rows]
    sums = [tuple(_signs(cell, style) for cell in row) for row in table.sums]
    widths = [max(map(_cell_width, cells)) for cells in zip(header, *rows, *sums, strict=True)]
    rule = "-" * (sum(widths) + 2 * len(widths) - 1)
    lines = [_padded(header, widths, table.columns), rule]
    lines += [_padded(row, widths, table.columns) for row in rows]
    if sums:
        lines += [rule, *(_padded(row, widths, table.columns) for row in sums)]
    return "\n".join(lines)


def _rich_table_text(table: Table, style: Style) -> str:
    """The table by rich: never narrower than its cells that may not fold, so that nothing is cut off."""
    from io import StringIO

    from rich.console import Console
    from rich.measure import Measurement

    out = StringIO()
    console = Console(
        file=out,
        width=_UNLIMITED,
        force_terminal=style.color,
        color_system="standard" if style.color else None,
        no_color=not style.color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    rich_table = _rich_table(table, style)
    measured = Measurement.get(console, console.options, rich_table)
    console.width = (
        measured.maximum if style.width is None else max(measured.minimum, min(style.width, measured.maximum))
    )
    console.print(rich_table)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _rich_table(table: Table, style: Style) -> RichTable:
    from rich.box import Box
    from rich.cells import cell_len
    from rich.table import Table as RichTable
    from rich.text import Text

    rules = Box("    \n    \n -- \n    \n -- \n    \n    \n    \n", ascii=True)
    result = RichTable(box=rules, show_edge=False, padding=(0, 1, 0, 0), header_style="bold" if style.color else "")
    for index, column in enumerate(table.columns):
        header = _signs(column.header, style)
        whole = max(
            cell_len(_signs(text, style)) for text in (header, *(row[index] for row in table.rows + table.sums))
        )
        # rich takes the longest word for the least width, and cuts off what is longer than the table is wide
        least = min(whole, _LEAST_FOLDED) if column.fold else whole
        result.add_column(Text(header), justify=column.align, no_wrap=not column.fold, overflow="fold", min_width=least)
    for row in table.rows:
        result.add_row(*(Text(_signs(cell, style)) for cell in row))
    if table.sums:
        result.add_section()
    for row in table.sums:
        result.add_row(*(Text(_signs(cell, style)) for cell in row))
    return result


def stream(columns: tuple[Column, ...], items: Iterable[Any], style: Style) -> Iterator[str]:
    """A table line by line while its items arrive; the first row sets the widths, with room for longer numbers."""
    rows = (cells(columns, item) for item in items)
    first = next(rows, None)
    headers = tuple(_signs(column.header, style) for column in columns)
    widths = [
        max(len(header), len(cell) + 1, column.least)
        for header, cell, column in zip(headers, first or headers, columns, strict=True)
    ]
    yield _paint(" " + _padded(headers, widths, columns), "strong", style)
    yield "-" * (sum(widths) + 2 * len(widths))
    for row in chain(() if first is None else (first,), rows):
        yield " " + _padded((_signs(cell, style) for cell in row), widths, columns)
