"""Longest paths and cycles of a dependency graph, exactly and without enumerating paths.

Vertices are numbered so that within one pass of the loop every edge goes from a lower to a higher number. An edge that
reaches into a later pass says how many passes it spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernmodel.value_types import NamedTuple

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
    within, crossing = _on_cycles(edges)
    best = max(crossing, key=_own_ratio, default=None)
    ratio = 0.0 if best is None else _own_ratio(best)
    cycle = Cycle((best,)) if best is not None and ratio > 0.0 else None
    if any(edge.source != edge.target for edge in crossing):
        while better := _better_cycle(vertices, within, crossing, ratio):
            cycle, ratio = better, better.ratio
    return cycle


def _own_ratio(edge: Edge) -> float:
    """The ratio of the cycle that the edge closes alone, 0 if it closes none."""
    return edge.latency / edge.passes if edge.source == edge.target else 0.0


def _on_cycles(edges: Sequence[Edge]) -> tuple[list[Edge], list[Edge]]:
    """The edges that may be on a cycle: those within a pass in the order of their sources, and those into later ones.

    What no later pass leads to, and what leads to no later pass, falls away.
    """
    crossing = [edge for edge in edges if edge[3]]
    if not crossing:
        return [], []
    needed = {edge[0] for edge in crossing}
    leading = []
    for edge in sorted((edge for edge in edges if not edge[3]), reverse=True):
        if edge[1] in needed:
            needed.add(edge[0])
            leading.append(edge)
    reached = {edge[1] for edge in crossing}
    within = []
    for edge in reversed(leading):
        if edge[0] in reached:
            reached.add(edge[1])
            within.append(edge)
    return within, [edge for edge in crossing if edge[0] in reached and edge[1] in needed]


def _better_cycle(vertices: int, within: Sequence[Edge], crossing: Sequence[Edge], ratio: float) -> Cycle | None:
    """A cycle with more than `ratio` cycles per pass, by label correction (Bellman, Ford) in program order."""
    ready = [0.0] * vertices
    via: list[Edge | None] = [None] * vertices
    while True:
        for edge in within:
            source, target, latency, _ = edge
            time = ready[source] + latency
            if time > ready[target] + _TINY:
                ready[target] = time
                via[target] = edge
        changed = []
        for edge in crossing:
            source, target, latency, passes = edge
            time = ready[source] + latency - ratio * passes
            if time > ready[target] + _TINY:
                ready[target] = time
                via[target] = edge
                changed.append(target)
        # every cycle has an edge into a later pass, so only such a change can have closed one
        if not changed:
            return None
        if cycle := _closed(via, changed):
            return cycle


def _closed(via: Sequence[Edge | None], starts: Iterable[int]) -> Cycle | None:
    """The first cycle met backwards from the starts, among the edges by which each vertex was reached last."""
    seen = [-1] * len(via)
    for walk, start in enumerate(starts):
        vertex = start
        while seen[vertex] == -1:
            seen[vertex] = walk
            edge = via[vertex]
            if edge is None:
                break
            vertex = edge.source
        else:
            if seen[vertex] == walk:
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
