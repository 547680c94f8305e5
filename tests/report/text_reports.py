"""Reports as text, and lines of them."""

from __future__ import annotations

from kernmodel.report.layout import Blocks
from kernmodel.report.text.render import Style, render


def text_of(blocks: Blocks, *, ascii_only: bool = False) -> str:
    return render(blocks, Style(ascii_only=ascii_only))


def line_with(text: str, part: str) -> str:
    """The first line that holds a part."""
    return next(line for line in text.splitlines() if part in line)
