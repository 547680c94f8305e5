"""Longest paths and cycles of a dependency graph, exactly and without enumerating paths.

Vertices are numbered so that within one pass of the loop every edge goes from a lower to a higher number. An edge that
reaches into a later pass says how many passes it spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_TINY = 1e-9


class Edge(NamedTuple):
    """`target` can be ready `latency` cycles after `source`, which stems from `passes` passes of the loop earlier."""

    source: int
    target: int
    latency: float
    passes: int


class Cycle(NamedTuple):
    """A cycle of the graph, edges in order; its latency per pass bounds the time of one pass of the loop."""

    edges: tuple[Edge, ...]

    @property
    def passes(self) -> int:
        """Passes of the loop that the cycle spans (at least 1)."""
        return sum(edge.passes for edge in self.edges)

    @property
    def latency(self) -> float:
        """Cycles along all edges."""
        return sum(edge.latency for edge in self.edges)

    @property
    def ratio(self) -> float:
        """Cycles per pass of the loop."""
        return self.latency / self.passes


def maximum_cycle_ratio(vertices: int, edges: Sequence[Edge]) -> Cycle | None:
    """The cycle with the most latency per pass, None if no cycle has any latency.

    Newton's method on the ratio: a cycle is better than the best so far if its edges, weighted with
    latency - ratio × passes, sum to more than zero (Dasdan: Experimental analysis of the fastest optimum cycle ratio
    and mean algorithms, ACM TODAES 9(4), 2004). Every step finds a strictly better cycle, the last one proves that
    there is none.

    Raises:
        ValueError: an edge within a pass goes backwards, so that a cycle might span no pass at all.
    """
    if any(edge.passes < 1 and edge.source >= edge.target for edge in edges):
        raise ValueError("an edge within a pass must go from a lower to a higher vertex")
    best: Cycle | None = None
    ratio = 0.0
    ordered = sorted(edges)
    while cycle := _better_cycle(vertices, ordered, ratio):
        best, ratio = cycle, cycle.ratio
    return best


def _better_cycle(vertices: int, edges: Sequence[Edge], ratio: float) -> Cycle | None:
    """A cycle with more than `ratio` cycles per pass, by label correction (Bellman, Ford) in program order."""
    weighted = [(edge.source, edge.target, edge.latency - ratio * edge.passes, edge) for edge in edges]
    ready = [0.0] * vertices
    via: list[Edge | None] = [None] * vertices
    changed = True
    while changed:
        changed = False
        back = False
        for source, target, weight, edge in weighted:
            time = ready[source] + weight
            if time > ready[target] + _TINY:
                ready[target] = time
                via[target] = edge
                changed = True
                back |= edge.passes > 0
        # every cycle has an edge into a later pass, so only such a change can have closed one
        if back and (cycle := _closed(via)):
            return cycle
    return None


def _closed(via: Sequence[Edge | None]) -> Cycle | None:
    """The first cycle among the edges by which each vertex was reached last."""
    seen = [-1] * len(via)
    for start in range(len(via)):
        vertex = start
        while seen[vertex] == -1:
            seen[vertex] = start
            edge = via[vertex]
            if edge is None:
                break
            vertex = edge.source
        else:
            if seen[vertex] == start:
                return _follow(via, vertex)
    return None


def _follow(via: Sequence[Edge | None], start: int) -> Cycle:
    edges: list[Edge] = []
    vertex = start
    while not edges or vertex != start:
        edge = via[vertex]
        if edge is None:
            raise ValueError(f"vertex {start} is on no cycle")
        edges.append(edge)
        vertex = edge.source
    return Cycle(_from_lowest(edges[::-1]))


def _from_lowest(edges: list[Edge]) -> tuple[Edge, ...]:
    """The cycle started at its lowest source, so that equal cycles look equal."""
    first = min(range(len(edges)), key=lambda number: edges[number].source)
    return tuple(edges[first:] + edges[:first])


def longest_path(entry: Sequence[float], edges: Sequence[Edge]) -> tuple[float, int | None, tuple[Edge, ...]]:
    """The longest path within one pass: its length in cycles, its first vertex (None without vertices), its edges.

    Args:
        entry: per vertex, when it is ready counting only what is there before the pass begins.
        edges: those that span a pass are passed over.
    """
    if not entry:
        return 0.0, None, ()
    ready = list(entry)
    via: list[Edge | None] = [None] * len(entry)
    for edge in sorted(edge for edge in edges if not edge.passes):
        time = ready[edge.source] + edge.latency
        # an equally long way through another instruction tells more than a start at this one
        if time > ready[edge.target] + _TINY or (via[edge.target] is None and time > ready[edge.target] - _TINY):
            ready[edge.target] = time
            via[edge.target] = edge
    vertex = max(range(len(ready)), key=ready.__getitem__)
    length = ready[vertex]
    path: list[Edge] = []
    while (step := via[vertex]) is not None:
        path.append(step)
        vertex = step.source
    return length, vertex, tuple(reversed(path))
