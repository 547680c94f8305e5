from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.incore.dependences.cycles import Edge, longest_path, maximum_cycle_ratio

VERTICES = 5
vertex = st.integers(0, VERTICES - 1)
latency = st.sampled_from([0.0, 0.5, 1.0, 3.0, 4.0, 13.0])


@st.composite
def graphs(draw: st.DrawFn) -> list[Edge]:
    edges = []
    for _ in range(draw(st.integers(0, 9))):
        source, target = draw(vertex), draw(vertex)
        passes = draw(st.integers(0 if source < target else 1, 3))
        edges.append(Edge(source, target, draw(latency), passes))
    return edges


def simple_cycles(edges: list[Edge]) -> Iterator[list[Edge]]:
    """All simple cycles, each from its lowest vertex."""

    def extend(path: list[Edge]) -> Iterator[list[Edge]]:
        for edge in edges:
            if edge.source != path[-1].target or edge.target < path[0].source:
                continue
            if edge.target == path[0].source:
                yield [*path, edge]
            elif all(edge.target != step.target for step in path):
                yield from extend([*path, edge])

    for first in edges:
        if first.target == first.source:
            yield [first]
        elif first.target > first.source:
            yield from extend([first])


@given(graphs())
def test_maximum_cycle_ratio_is_that_of_the_best_simple_cycle(edges: list[Edge]) -> None:
    ratios = [sum(e.latency for e in cycle) / sum(e.passes for e in cycle) for cycle in simple_cycles(edges)]
    best = maximum_cycle_ratio(VERTICES, edges)
    assert (best.ratio if best else 0.0) == pytest.approx(max(ratios, default=0.0))


@given(graphs())
def test_the_binding_cycle_is_a_cycle_of_the_graph(edges: list[Edge]) -> None:
    best = maximum_cycle_ratio(VERTICES, edges)
    if best is None:
        return
    following = best.edges[1:] + best.edges[:1]
    assert all(edge in edges for edge in best.edges)
    assert all(edge.target == after.source for edge, after in zip(best.edges, following, strict=True))
    assert best.passes >= 1
    assert best.edges[0].source == min(edge.source for edge in best.edges)


@given(graphs(), st.lists(latency, min_size=VERTICES, max_size=VERTICES))
def test_longest_path_against_enumeration(edges: list[Edge], entry: list[float]) -> None:
    def from_vertex(start: int) -> float:
        onward = [e.latency + from_vertex(e.target) for e in edges if e.source == start and not e.passes]
        return max(onward, default=0.0)

    length, first, path = longest_path(entry, edges)
    assert first is not None
    assert length == pytest.approx(max(entry[v] + from_vertex(v) for v in range(VERTICES)))
    assert length == pytest.approx(entry[first] + sum(edge.latency for edge in path))
    assert all(edge in edges and not edge.passes for edge in path)


def test_a_cycle_over_two_passes_counts_half() -> None:
    swap = [Edge(0, 1, 4.0, 1), Edge(1, 0, 4.0, 1)]
    best = maximum_cycle_ratio(2, swap)
    assert best is not None
    assert (best.latency, best.passes, best.ratio) == (8.0, 2, 4.0)


def test_cycles_without_latency_bind_nothing() -> None:
    assert maximum_cycle_ratio(2, [Edge(0, 1, 0.0, 0), Edge(1, 0, 0.0, 1)]) is None
    assert maximum_cycle_ratio(0, []) is None
    assert longest_path([], []) == (0.0, None, ())


def test_many_parallel_ways_are_no_enumeration() -> None:
    """2^200 simple paths: what made a peer run into a timeout (OSACA issue 72)."""
    edges = [Edge(k, k + 1, weight, 0) for k in range(200) for weight in (1.0, 2.0)]
    edges += [Edge(k, k + 2, 3.0, 0) for k in range(199)]
    best = maximum_cycle_ratio(201, [*edges, Edge(200, 0, 1.0, 1)])
    assert best is not None
    assert best.ratio == 401.0
    assert longest_path([0.0] * 201, edges)[0] == 400.0


def test_a_cycle_within_one_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="lower to a higher"):
        maximum_cycle_ratio(2, [Edge(0, 1, 1.0, 0), Edge(1, 0, 1.0, 0)])
