"""Loops that a pointer walks through, up to another pointer, as loops that count their iterations.

`for (p = a; p < a + n; ++p)`, `while (first != last) s += *first++;`: where start and end are places in one array, the
difference is the number of elements; else it is a size of its own, named `last_minus_first`. The pointer advances in
the body, as it does in other loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.tree import COMPARED, LOOPS, STEPS, Node, copied, walk, without_casts, written_names

_UPWARDS = ("<", "<=", "!=")
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_Place = tuple[str, Node | None]
"""The array that a pointer points into, and how many elements from where that begins; None: 0."""


def pointers_of(function: Node) -> set[str]:
    """The names that a function declares as pointers, parameters among them."""
    declared = (part for part in walk(function) if isinstance(part, c_ast.Decl))
    return {str(part.name) for part in declared if isinstance(part.type, (c_ast.PtrDecl, c_ast.ArrayDecl))}


def as_counting(node: Node, before: Sequence[Node], function: Node) -> list[Node] | None:
    """A loop that ends where a pointer has come to another, as statements with one that counts; None: it is none.

    Args:
        before: what stands before it in its block.
    """
    found = _compared(node.cond, pointers_of(function)) if isinstance(node.cond, c_ast.BinaryOp) else None
    if found is None:
        return None
    name, operator, end = found
    init = getattr(node, "init", None)
    first = list(getattr(init, "decls", None) or getattr(init, "exprs", None) or ([] if init is None else [init]))
    after = getattr(node, "next", None)
    last = list(getattr(after, "exprs", None) or ([] if after is None else [after]))
    items = [*_items(node.stmt), *last]
    moved = _moved_by(items, name)
    jumps = any(isinstance(part, (c_ast.Continue, c_ast.Goto)) for part in walk(node.stmt))
    ends = {part.name for part in walk(end) if isinstance(part, c_ast.ID)}
    if not moved or jumps or any(written in ends for item in items for written, _ in written_names(item)):
        return None
    earlier = [*before, *first]
    start, stop = _resolved(c_ast.ID(name, node.coord), earlier), _resolved(end, earlier)
    if start is None or stop is None:
        return None
    declared, length = _length(name, start, end, stop, node)
    return [*first, *declared, _counting(node, name, length, (moved, operator == "<="), items)]


def _compared(condition: Node, pointers: set[str]) -> tuple[str, str, Node] | None:
    """The pointer that a condition compares, how, and with what."""
    for left, operator, right in (
        (condition.left, condition.op, condition.right),
        (condition.right, _SWAPPED.get(condition.op, ""), condition.left),
    ):
        if condition.op in COMPARED and operator in _UPWARDS and isinstance(left, c_ast.ID) and left.name in pointers:
            return str(left.name), operator, right
    return None


def _items(node: Node) -> list[Node]:
    return list(node.block_items or ()) if isinstance(node, c_ast.Compound) else [node]


def _moved_by(items: Sequence[Node], name: str) -> int:
    """By how many elements an iteration moves a pointer upwards; 0: not by a number, or not in each iteration."""
    total = 0
    for item in items:
        writes = [node for written, node in written_names(item) if written == name]
        if writes and isinstance(item, (*LOOPS, c_ast.If, c_ast.Switch, c_ast.TernaryOp, c_ast.Label)):
            return 0
        for node in writes:
            if isinstance(node, c_ast.UnaryOp) and node.op in STEPS and "+" in node.op:
                total += 1
            elif isinstance(node, c_ast.Assignment) and node.op == "+=" and _number(node):
                total += _number(node)
            else:
                return 0
    return total


def _number(node: Node) -> int:
    """The number that an assignment adds, 0: none."""
    text = getattr(node.rvalue, "value", "")
    return int(text) if text.isdigit() else 0


def _resolved(value: Node, before: Sequence[Node]) -> _Place | None:
    """The place that a pointer points at, through what sets it before."""
    value = without_casts(value)
    if isinstance(value, c_ast.ID):
        for number in range(len(before) - 1, -1, -1):
            writes = [node for name, node in written_names(before[number]) if name == value.name]
            if not writes:
                continue
            node = writes[0]
            set_to = getattr(node, "init", None) or getattr(node, "rvalue", None)
            plain = node is before[number] and len(writes) == 1 and getattr(node, "op", "=") == "="
            if not plain or set_to is None or isinstance(without_casts(set_to), (c_ast.FuncCall, c_ast.StructRef)):
                return f"{value.name} since {number}", None  # a place that nothing tells
            used = {part.name for part in walk(set_to) if isinstance(part, c_ast.ID)}
            if any(name in used for later in before[number + 1 :] for name, _ in written_names(later)):
                return f"{value.name} since {number}", None
            return _resolved(set_to, before[:number])
        return str(value.name), None
    if isinstance(value, c_ast.BinaryOp) and value.op == "+":
        inner = _resolved(value.left, before)
        return None if inner is None else (inner[0], _sum(inner[1], value.right))
    if isinstance(value, c_ast.UnaryOp) and value.op == "&" and isinstance(value.expr, c_ast.ArrayRef):
        inner = _resolved(value.expr.name, before) if isinstance(value.expr.name, c_ast.ID) else None
        return None if inner is None else (inner[0], _sum(inner[1], value.expr.subscript))
    return None


def _sum(left: Node | None, right: Node) -> Node:
    return right if left is None else c_ast.BinaryOp("+", left, right, right.coord)


def _length(name: str, start: _Place, end: Node, stop: _Place, loop: Node) -> tuple[list[Node], Node]:
    """The number of elements from the start to the end, and the declaration of the size that it is where nothing tells
    it."""
    if start[0] == stop[0]:
        zero = c_ast.Constant("int", "0", loop.coord)
        length = stop[1] or zero
        return [], length if start[1] is None else c_ast.BinaryOp("-", length, start[1], loop.coord)
    other = next((str(part.name) for part in walk(end) if isinstance(part, c_ast.ID)), "end")
    own = f"{other}_minus_{name}"
    return [_declared(own, None, loop)], c_ast.ID(own, loop.coord)


def _declared(name: str, value: Node | None, loop: Node) -> Node:
    kind = c_ast.TypeDecl(name, [], None, c_ast.IdentifierType(["long"]))
    return c_ast.Decl(name, [], [], [], [], kind, value, None, loop.coord)


def _counting(loop: Node, name: str, length: Node, step: tuple[int, bool], items: list[Node]) -> Node:
    """The loop that counts; `step`: elements of an iteration, and whether the last element is touched too."""
    each, including = step
    beyond = each - 1 + including
    if beyond:
        length = c_ast.BinaryOp("+", length, c_ast.Constant("int", str(beyond), loop.coord), loop.coord)
    if each > 1:
        length = c_ast.BinaryOp("/", length, c_ast.Constant("int", str(each), loop.coord), loop.coord)
    own = f"{name}_steps"
    variable = c_ast.ID(own, loop.coord)
    start = c_ast.DeclList([_declared(own, c_ast.Constant("int", "0", loop.coord), loop)], loop.coord)
    test = c_ast.BinaryOp("<", variable, copied(length), loop.coord)
    body = c_ast.Compound(items, loop.coord)
    return c_ast.For(start, test, c_ast.UnaryOp("p++", variable, loop.coord), body, loop.coord)
