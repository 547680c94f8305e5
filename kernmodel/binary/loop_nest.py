"""Natural loops of a control-flow graph and how they nest (Aho, Lam, Sethi, Ullman: Compilers, 2nd ed., 9.6).

A branch back to a block that dominates it makes a natural loop: all blocks from which it is reached without passing
that block, the header. Branches back to one header make one loop. What is still cyclic without these branches is an
irreducible region, with several ways in; it counts as a loop of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernmodel.binary.program import Loop
from kernmodel.code.strong_components import cyclic_components

Graph = Mapping[int, Sequence[int]]
"""Successors by block."""


def natural_loops(graph: Graph, entry: int) -> tuple[Loop, ...]:
    """The loops of a graph, outer before inner, by ascending header; of blocks that nothing reaches from the entry the
    lowest count as entries too."""
    predecessors: dict[int, list[int]] = {node: [] for node in graph}
    for node, following in graph.items():
        for successor in following:
            predecessors[successor].append(node)
    dominators, order = _dominators(graph, predecessors, entry)
    back = [
        (node, successor)
        for node, following in graph.items()
        for successor in following
        if _dominates(dominators, order, successor, node)
    ]
    bodies: dict[int, set[int]] = {}
    for latch, header in back:
        bodies.setdefault(header, {header}).update(_natural_body(predecessors, header, latch))
    rest = {
        node: tuple(one for one in following if (node, one) not in set(back)) for node, following in graph.items()
    } if back else graph  # fmt: skip
    irreducible = {min(_entered(part, predecessors)): part for part in cyclic_components(rest, rest.__getitem__)}
    for header, part in irreducible.items():
        bodies.setdefault(header, set()).update(part)
    return _nested(bodies, frozenset(irreducible))


def _entered(part: frozenset[int], predecessors: Mapping[int, Sequence[int]]) -> list[int]:
    """The blocks through which a cyclic part is entered."""
    return [node for node in part if any(one not in part for one in predecessors[node])] or [min(part)]


def _reverse_postorder(graph: Graph, entry: int) -> list[int]:
    seen: set[int] = set()
    order: list[int] = []
    for root in (entry, *sorted(graph)):
        if root in seen:
            continue
        seen.add(root)
        part: list[int] = []
        work = [(root, iter(graph[root]))]
        while work:
            node, following = work[-1]
            successor = next((one for one in following if one not in seen), None)
            if successor is None:
                part.append(node)
                work.pop()
            else:
                seen.add(successor)
                work.append((successor, iter(graph[successor])))
        order += reversed(part)
    return order


def _dominators(
    graph: Graph, predecessors: Mapping[int, Sequence[int]], entry: int
) -> tuple[dict[int, int | None], dict[int, int]]:
    """The immediate dominator of each block, None for entries, and the number of each in reverse postorder (K. Cooper,
    T. Harvey, K. Kennedy: A Simple, Fast Dominance Algorithm, 2001)."""
    sequence = _reverse_postorder(graph, entry)
    order = {node: number for number, node in enumerate(sequence)}
    reached = set()
    immediate: dict[int, int | None] = {}
    for node in sequence:
        if all(one not in reached for one in predecessors[node]):
            immediate[node] = None
        reached.add(node)
    changed = True
    while changed:
        changed = False
        for node in sequence:
            if immediate.get(node, 0) is None and node in immediate:
                continue
            known = [one for one in predecessors[node] if one in immediate]
            best: int | None = known[0]
            for one in known[1:]:
                best = _common(immediate, order, best, one)
            if node not in immediate or immediate[node] != best:
                immediate[node] = best
                changed = True
    return immediate, order


def _common(
    immediate: Mapping[int, int | None], order: Mapping[int, int], first: int | None, second: int | None
) -> int | None:
    while first != second:
        if first is None or second is None:
            return None
        if order[first] > order[second]:
            first = immediate[first]
        else:
            second = immediate[second]
    return first


def _dominates(immediate: Mapping[int, int | None], order: Mapping[int, int], above: int, below: int) -> bool:
    node: int | None = below
    while node is not None and order[node] >= order[above]:
        if node == above:
            return True
        node = immediate[node]
    return False


def _natural_body(predecessors: Mapping[int, Sequence[int]], header: int, latch: int) -> set[int]:
    body, work = {header, latch}, [latch] if latch != header else []
    while work:
        for one in predecessors[work.pop()]:
            if one not in body:
                body.add(one)
                work.append(one)
    return body


def _nested(bodies: Mapping[int, set[int]], irreducible: frozenset[int]) -> tuple[Loop, ...]:
    """The loops with the innermost one around each."""
    outside_in = sorted(bodies, key=lambda header: (-len(bodies[header]), header))
    found: dict[int, Loop] = {}
    for header in outside_in:
        around = [one for one in found.values() if header in one.blocks and bodies[header] <= one.blocks]
        parent = max(around, key=lambda one: one.depth, default=None)
        depth = parent.depth + 1 if parent is not None else 1
        body = frozenset(bodies[header])
        found[header] = Loop(header, body, parent.header if parent else None, depth, header in irreducible)
    return tuple(_outer_first(found, None))


def _outer_first(found: Mapping[int, Loop], parent: int | None) -> list[Loop]:
    listed: list[Loop] = []
    for loop in sorted((one for one in found.values() if one.parent == parent), key=lambda one: one.header):
        listed += [loop, *_outer_first(found, loop.header)]
    return listed
