"""The dependency graph of a loop as arcs beside its instructions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from kernmodel.report.html.blocks import table_html
from kernmodel.report.html.elements import Html, element
from kernmodel.report.layout import filled, left, right
from kernmodel.value_types import NamedTuple
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.incore.dependences.graph import Graph
    from kernmodel.incore.model import InCore

_ROW, _ARC, _LEAST_ARC, _MOST_ARC, _LETTER = 22, 9, 18, 230, 7.6
"""Pixels: height of a row, width of an arc for each row that it spans, its least and greatest, width of a letter."""


class Dependence(NamedTuple):
    """An instruction that waits for another one, by number from 0; `passes` of the loop later."""

    source: int
    target: int
    carrier: str
    cycles: float
    passes: int


def dependences_of(graph: Graph) -> tuple[Dependence, ...]:
    """The dependences between instructions, each once with its longest latency."""
    found: dict[tuple[int, int, str, int], float] = {}
    for edge in graph.edges:
        source, target = graph.owners[edge.source], graph.owners[edge.target]
        if source != target or edge.passes:
            key = (source, target, graph.carriers[edge.source], edge.passes)
            found[key] = max(edge.latency, found.get(key, 0.0))
    return tuple(Dependence(*key[:3], cycles, key[3]) for key, cycles in found.items())


def graph_figure(incore: InCore, graph: Graph) -> Html:
    """The instructions one below the other, an arc for each dependence, dashed into a later pass; the longest
    loop-carried chain stands out. Behind it the table."""
    found = dependences_of(graph)
    chain = _chain(incore)
    widest = max((_width(one) for one in found), default=_LEAST_ARC)
    texts = [row.instruction.text.strip() for row in incore.rows]
    x = widest + 12
    width = x + 14 + round(_LETTER * max(map(len, texts), default=1))
    height = _ROW * len(texts) + 8
    on_chain = {number for link in chain for number in link}
    nodes = [_node(number, text, x, on=number in on_chain) for number, text in enumerate(texts)]
    arcs = [_arc(one, x, texts, on=(one.source, one.target) in chain) for one in found]
    longest = (
        f"The longest loop-carried chain takes {incore.lcd.cycles:g} cy per pass"
        if incore.lcd
        else "Nothing is carried from pass to pass"
    )
    about = f"{count(len(texts), 'instruction')}, {count(len(found), 'dependence')}. {longest}."
    drawing = element(
        "svg", arcs, nodes, viewBox=f"0 0 {width} {height}", width=width, height=height, role="img", aria_label=about
    )
    columns = (
        left("from", lambda one: texts[one.source]),
        left("to", lambda one: texts[one.target]),
        left("carried by", "carrier"),
        right("cycles", "cycles"),
        right("passes later", "passes"),
    )
    return element(
        "figure",
        element("figcaption", "Dependences between instructions"),
        element(
            "p", f"{about} Solid: within a pass; dashed: into a later pass; thick: the longest loop-carried chain."
        ),
        element("div", drawing, class_="table graph", tabindex=0, role="region", aria_label="Dependency graph"),
        element(
            "details", element("summary", "Table of this chart"), table_html(filled(columns, found), "Dependences")
        ),
        class_="chart-still",
    )


def _chain(incore: InCore) -> frozenset[tuple[int, int]]:
    """The pairs of instructions that follow each other on the longest loop-carried dependency."""
    if incore.lcd is None or not incore.lcd.members:
        return frozenset()
    members = incore.lcd.members
    return frozenset({*pairwise(members), (members[-1], members[0])})


def _width(one: Dependence) -> int:
    return min(_MOST_ARC, _LEAST_ARC + _ARC * abs(one.target - one.source))


def _node(number: int, text: str, x: int, *, on: bool) -> Html:
    y = _ROW * number + _ROW // 2 + 4
    dot = element("circle", cx=x, cy=y, r=4, class_="chain" if on else None)
    return element("g", dot, element("text", text, x=x + 12, y=y + 4), class_="node")


def _arc(one: Dependence, x: int, texts: list[str], *, on: bool) -> Html:
    start, end = (_ROW * number + _ROW // 2 + 4 for number in (one.source, one.target))
    if start == end:  # waits for itself, a pass later
        start, end = start - 5, end + 5
    reach = x - _width(one)
    later = "" if not one.passes else ", next pass" if one.passes == 1 else f", {one.passes} passes later"
    said = f"{texts[one.source]} → {texts[one.target]}\n{one.carrier}: {one.cycles:g} cy{later}"
    kind = " ".join(word for word, there in (("later", one.passes > 0), ("chain", on)) if there)
    path = f"M{x - 5},{start}C{reach},{start} {reach},{end} {x - 5},{end}"
    return element("path", element("title", said), d=path, class_=f"arc {kind}".strip())
