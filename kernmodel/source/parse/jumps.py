"""Loops that are written with `goto`, rewritten in the syntax tree as `do` and `while`.

`again: …; if (i < n) goto again;` is a `do`, and `again: if (i >= n) goto done; …; goto again; done:` a `while`, where
nothing else jumps to `again`. Others stay as they are, and are refused where a nest holds them. `do { … } while (0)`,
as macros of several statements are written, becomes its block.
"""

from __future__ import annotations

from collections import Counter

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.tree import LOOPS, OPPOSITE, Node, slots, walk


def structure_jumps(function: Node) -> None:
    """Rewrite the loops of a function that jump back to a label of the same block, and those that never do."""
    _unwrap_blocks(function.body)
    jumps = Counter(node.name for node in walk(function.body) if isinstance(node, c_ast.Goto))
    if not jumps:
        return
    for block in [node for node in walk(function.body) if isinstance(node, c_ast.Compound)]:
        while (span := _shortest(block.block_items or [], jumps)) is not None:
            first, last = span
            block.block_items[first : last + 1] = [_loop(block.block_items, first, last)]


def _unwrap_blocks(body: Node) -> None:
    """Put the block of each `do { … } while (0)` that nothing leaves in its place."""
    nodes = list(walk(body))
    if not any(map(_runs_once, nodes)):
        return
    for node in reversed(nodes):  # what is inside first
        for slot in slots(node):
            child = getattr(node, slot)
            if isinstance(child, list):
                setattr(node, slot, [part.stmt if _runs_once(part) else part for part in child])
            elif _runs_once(child):
                setattr(node, slot, child.stmt)


def _runs_once(node: Node) -> bool:
    return isinstance(node, c_ast.DoWhile) and getattr(node.cond, "value", "") == "0" and not _is_left(node.stmt)


def _is_left(node: Node) -> bool:
    """Whether a `break` or `continue` of a statement leaves the loop around it."""
    if isinstance(node, (c_ast.Break, c_ast.Continue)):
        return True
    inside = (part for _, part in node.children() if not isinstance(part, LOOPS))
    if isinstance(node, c_ast.Switch):
        return any(isinstance(part, c_ast.Continue) for part in walk(node))
    return any(map(_is_left, inside))


def _shortest(items: list[Node], jumps: Counter[str]) -> tuple[int, int] | None:
    """Label and jump back with the fewest statements between them: a loop further in comes first."""
    spans = [
        (last - first, first, last)
        for first, label in enumerate(items)
        if isinstance(label, c_ast.Label) and jumps[label.name] == 1
        for last, item in enumerate(items[first + 1 :], first + 1)
        if _jumps_to(item) == label.name and (isinstance(item, c_ast.If) or _leaves(items, first, last) is not None)
    ]
    return min(spans)[1:] if spans else None


def _jumps_to(item: Node) -> str | None:
    """Where a statement jumps, that is a `goto`, or one under a condition without another side."""
    if isinstance(item, c_ast.If) and item.iffalse is None:
        item = item.iftrue
        if isinstance(item, c_ast.Compound) and len(item.block_items or ()) == 1:
            item = item.block_items[0]
    return str(item.name) if isinstance(item, c_ast.Goto) else None


def _leaves(items: list[Node], first: int, last: int) -> Node | None:
    """The condition under which a loop that jumps back always is left at its head, to the label behind it."""
    head = items[first].stmt
    behind = items[last + 1] if last + 1 < len(items) else None
    left = isinstance(head, c_ast.If) and isinstance(behind, c_ast.Label) and _jumps_to(head) == behind.name
    return head.cond if left else None


def _loop(items: list[Node], first: int, last: int) -> Node:
    label, jump = items[first], items[last]
    inside = [label.stmt, *items[first + 1 : last]]
    if isinstance(jump, c_ast.If):
        return c_ast.DoWhile(jump.cond, c_ast.Compound(inside, label.coord), label.coord)
    condition = _not(_leaves(items, first, last))
    return c_ast.While(condition, c_ast.Compound(inside[1:], label.coord), label.coord)


def _not(condition: Node) -> Node:
    if isinstance(condition, c_ast.BinaryOp) and condition.op in OPPOSITE:
        return c_ast.BinaryOp(OPPOSITE[condition.op], condition.left, condition.right, condition.coord)
    return c_ast.UnaryOp("!", condition, condition.coord)
