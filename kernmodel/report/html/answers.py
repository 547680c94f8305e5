"""The page of any answer: its charts, and its report."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.report.html.blocks import blocks_html
from kernmodel.report.html.charts import Chart, figure
from kernmodel.report.html.elements import Html, element, html
from kernmodel.report.html.page import Section, page
from kernmodel.report.layout import Block, Blocks, Fields, Heading, Line


def answer_page(blocks: Blocks, charts: Sequence[Chart], command: str = "") -> str:
    """The page of an answer.

    Args:
        blocks: its report, which begins with its title.
        command: that gave the answer, "" for none.
    """
    title, lead, rest = _opened(blocks)
    sections = [Section("Charts", "charts", html(map(figure, charts)))] if charts else []
    sections.append(Section("Report", "report", blocks_html(rest)))
    if command:
        sections.append(Section("To repeat it", "repeat", element("pre", command, tabindex=0)))
    return page(title, lead, sections)


def _opened(blocks: Blocks) -> tuple[str, Html, Sequence[Block]]:
    """The title, what stands directly below it, and the rest."""
    if not blocks or not isinstance(blocks[0], Heading):
        return "kernmodel", Html(), blocks
    lead = 1
    while lead < len(blocks) and isinstance(blocks[lead], Fields | Line):
        lead += 1
    return blocks[0].text, blocks_html(blocks[1:lead]), blocks[lead:]
