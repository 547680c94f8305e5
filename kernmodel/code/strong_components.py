"""The cyclic parts of a control-flow graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence


def cyclic_components(nodes: Iterable[int], successors: Callable[[int], Sequence[int]]) -> list[frozenset[int]]:
    """The strongly connected parts of a graph that have at least one edge, by ascending lowest node.

    R. Tarjan, "Depth-First Search and Linear Graph Algorithms", SIAM J. Comput. 1 (1972), without recursion.

    Args:
        nodes: addresses of blocks; successors: the blocks after one, all of them among the nodes.
    """
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    parts: list[frozenset[int]] = []
    work: list[tuple[int, Iterator[int]]] = []

    def enter(node: int) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        waiting.add(node)
        work.append((node, iter(successors(node))))

    for root in sorted(nodes):
        if root not in order:
            enter(root)
        while work:
            node, following = work[-1]
            successor = next(following, None)
            if successor is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    part = frozenset(stack[stack.index(node) :])
                    del stack[len(stack) - len(part) :]
                    waiting -= part
                    if len(part) > 1 or node in successors(node):
                        parts.append(part)
            elif successor not in order:
                enter(successor)
            elif successor in waiting:
                low[node] = min(low[node], order[successor])
    return sorted(parts, key=min)
