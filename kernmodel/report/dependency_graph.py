"""The dependency graph of a block in the DOT language of Graphviz; the chain that binds is drawn bold."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import pairwise
from shutil import which
from typing import TYPE_CHECKING

from kernmodel.errors import ToolError

if TYPE_CHECKING:
    from kernmodel.incore.dependences.cycles import Edge
    from kernmodel.incore.dependences.graph import Graph
    from kernmodel.incore.model import InCore

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": " "})
_BOLD = ', color="#b3261e", penwidth=2'


def dot_text(incore: InCore, graph: Graph, title: str) -> str:
    """The graph: a node per instruction, an edge per dependency with its carrier and cycles; dashed ones lead to a
    later pass."""
    lines = ["digraph dependencies {", "  rankdir=TB;", f"  label={_quoted(title)};", "  labelloc=t;"]
    lines += ['  node [shape=box, fontname="monospace"];', '  edge [fontname="sans-serif", fontsize=10];']
    lines += [*_nodes(incore, graph), *_edges(incore, graph), "}"]
    return "\n".join(lines) + "\n"


def _nodes(incore: InCore, graph: Graph) -> Iterator[str]:
    """The instructions; of one with a memory operand, also the cycles from its loaded data to its result."""
    on_chain = set(incore.lcd.members) if incore.lcd else set()
    inside = {graph.owners[e.target]: e.latency for e in graph.edges if _is_inside(graph, e)}
    for number, row in enumerate(incore.rows):
        style = _BOLD if number in on_chain else ""
        after = f" (load, then {inside[number]:g} cy)" if number in inside else ""
        yield f"  i{number} [label={_quoted(f'{number + 1}: {row.instruction.text.strip()}{after}')}{style}];"


def _is_inside(graph: Graph, edge: Edge) -> bool:
    """Whether an edge leads from the data that an instruction loads to its own result."""
    return graph.owners[edge.source] == graph.owners[edge.target] and not edge.passes


def _edges(incore: InCore, graph: Graph) -> Iterator[str]:
    """The edges between instructions."""
    chain = _chain_links(incore)
    drawn: dict[tuple[int, int, str, int], float] = {}
    for edge in graph.edges:
        if not _is_inside(graph, edge):
            key = (graph.owners[edge.source], graph.owners[edge.target], graph.carriers[edge.source], edge.passes)
            drawn[key] = max(edge.latency, drawn.get(key, 0.0))
    for (source, target, carrier, passes), cycles in drawn.items():
        later = ", style=dashed" if passes else ""
        bold = _BOLD if (source, target) in chain else ""
        span = f", {passes} passes on" if passes > 1 else ", next pass" if passes else ""
        yield f"  i{source} -> i{target} [label={_quoted(f'{carrier}: {cycles:g} cy{span}')}{later}{bold}];"


def _chain_links(incore: InCore) -> set[tuple[int, int]]:
    """Pairs of instructions that follow each other on the longest loop-carried dependency."""
    if incore.lcd is None or not incore.lcd.members:
        return set()
    members = incore.lcd.members
    return {*pairwise(members), (members[-1], members[0])}


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def svg_of(dot: str) -> str:
    """The drawing of a graph in DOT, by Graphviz.

    Raises:
        ToolError: Graphviz is not installed, or fails.
    """
    program = which("dot")
    if program is None:
        raise ToolError("Graphviz (dot) is not installed", where="--graph", todo="install it, or write OUT.dot")
    done = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True, check=False, encoding="utf-8")
    if done.returncode:
        raise ToolError(f"Graphviz failed: {done.stderr.strip()}", where="--graph", todo="write OUT.dot instead")
    return done.stdout
