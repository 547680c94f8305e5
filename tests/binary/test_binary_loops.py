"""Natural loops, against a naive search for them."""

from hypothesis import given
from hypothesis import strategies as st

from kernmodel.binary.loop_nest import natural_loops


def graph_of(edges, size):
    return {node: tuple(dict.fromkeys(b for a, b in edges if a == node)) for node in range(size)}


def reached(graph, start, without=None):
    seen, work = set(), [start] if start != without else []
    while work:
        node = work.pop()
        if node not in seen and node != without:
            seen.add(node)
            work += graph[node]
    return seen


@given(
    st.integers(1, 9).flatmap(
        lambda n: st.tuples(st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    )
)
def test_natural_loops_are_those_of_their_definition(drawn):
    size, edges = drawn
    graph = graph_of(edges, size)
    live = reached(graph, 0)
    graph = {node: following for node, following in graph.items() if node in live}
    expected = {}
    for node, following in graph.items():
        for header in following:
            if node not in reached(graph, 0, without=header):
                body = {one for one in graph if node in reached(graph, one, without=header)} | {header, node}
                expected.setdefault(header, set()).update(body)
    found = {loop.header: loop for loop in natural_loops(graph, 0) if not loop.irreducible}
    irreducible = [loop for loop in natural_loops(graph, 0) if loop.irreducible]
    for header, body in expected.items():
        match = found.get(header) or next(one for one in irreducible if one.header == header)
        assert body <= match.blocks
    assert set(found) <= set(expected)
    if not irreducible:
        assert {header: set(loop.blocks) for header, loop in found.items()} == expected
        for loop in found.values():
            around = [one for one in found.values() if loop.blocks < one.blocks]
            assert loop.depth == 1 + len(around)


def test_a_region_with_two_entries_is_irreducible():
    (loop,) = natural_loops({0: (1, 2), 1: (2,), 2: (1, 3), 3: ()}, 0)
    assert loop.irreducible
    assert loop.blocks == {1, 2}


def test_loops_that_nest():
    loops = natural_loops({0: (1,), 1: (2,), 2: (2, 3), 3: (1, 4), 4: ()}, 0)
    assert [(one.header, one.depth, one.parent) for one in loops] == [(1, 1, None), (2, 2, 1)]
