"""What every reader of a syntax tree needs: its nodes, the statements of a body, what is read and written."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pycparser import c_ast, c_generator  # type: ignore[import-untyped]

from kernmodel.patterns import pattern

# Several syntax trees of pycparser have no common typed base class worth naming.
Node = Any

LOOPS = (c_ast.For, c_ast.While, c_ast.DoWhile)
STEPS = ("++", "--", "p++", "p--")
COMPARED = ("<", "<=", ">", ">=", "!=")
"""The comparisons by which loops end."""
OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
"""By comparison of integers, the one that holds where it does not."""


_LEAVES = frozenset({c_ast.ID, c_ast.Constant, c_ast.IdentifierType})
"""Nodes without parts, which are half of those of a file."""


def walk(node: Node) -> Iterator[Node]:
    """The node and all nodes below it, in source order; without recursion, since sums of many terms nest deeply."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if type(top) not in _LEAVES:
            stack.extend(reversed([*top]))  # `children` would make a name for each


def statements(node: Node | None) -> Iterator[Node]:
    """The statements of a body, blocks opened, without pragmas and empty statements."""
    if isinstance(node, c_ast.Compound):
        for item in node.block_items or ():
            yield from statements(item)
    elif node is not None and not isinstance(node, (c_ast.Pragma, c_ast.EmptyStatement)):
        yield node


def subscripts(node: Node) -> tuple[Node, list[Node]]:
    """The base of `a[x][y]`, `*p`, `*(p + x)` or `(*a)[y]`, and its subscripts from the outermost dimension on."""
    if isinstance(node, c_ast.ArrayRef):
        return _moved(node.name, node.subscript)
    if isinstance(node, c_ast.UnaryOp) and node.op == "*":
        return _moved(node.expr, c_ast.Constant("int", "0", node.coord))
    return node, []


def _moved(pointer: Node, index: Node) -> tuple[Node, list[Node]]:
    """Base and subscripts of the element of a pointer, which may be a sum."""
    while isinstance(pointer, c_ast.BinaryOp) and pointer.op == "+":
        zero = getattr(index, "value", None) == "0"
        index = pointer.right if zero else c_ast.BinaryOp("+", pointer.right, index, index.coord)
        pointer = pointer.left
    base, indices = subscripts(pointer)
    return base, [*indices, index]


def memory_reads(node: Node) -> Iterator[Node]:
    """The array elements that an expression reads, without those that stand within the index of another."""
    if isinstance(node, c_ast.ArrayRef) or (isinstance(node, c_ast.UnaryOp) and node.op == "*"):
        yield node
        return
    for _, child in node.children():
        yield from memory_reads(child)


def called_name(call: Node) -> str:
    """The function that a call names; "" where it is called through a pointer or a member."""
    return str(call.name.name) if isinstance(call.name, c_ast.ID) else ""


def is_call_of(node: Node | None, names: Collection[str]) -> bool:
    """Whether a statement or an expression is a call of one of these functions."""
    return isinstance(node, c_ast.FuncCall) and called_name(node) in names


def declarator(kind: Node) -> Node:
    """The part of a type that holds the name of what is declared."""
    while not isinstance(kind, c_ast.TypeDecl):
        kind = kind.type
    return kind


def without_casts(node: Node) -> Node:
    """What is cast."""
    while isinstance(node, c_ast.Cast):
        node = node.expr
    return node


def written_names(node: Node) -> Iterator[tuple[str, Node]]:
    """The variables that assignments, `++`, `--`, initialisers and functions that are given their address write below
    the node (array elements not counted)."""
    for part in walk(node):
        if isinstance(part, c_ast.Assignment) and isinstance(part.lvalue, c_ast.ID):
            yield part.lvalue.name, part
        elif isinstance(part, c_ast.UnaryOp) and part.op in STEPS:
            if isinstance(part.expr, c_ast.ID):
                yield part.expr.name, part
        elif isinstance(part, c_ast.Decl) and part.init is not None and part.name:
            yield part.name, part
        elif isinstance(part, c_ast.FuncCall) and part.args:
            for one in part.args.exprs:
                if isinstance(one, c_ast.UnaryOp) and one.op == "&" and isinstance(one.expr, c_ast.ID):
                    yield one.expr.name, one


def copied(node: Node) -> Node:
    """A copy of a tree that has the places in common with it; parts that it holds twice it holds twice again."""
    return _copied(node, {})


def _copied(part: Any, made: dict[int, Node]) -> Any:
    if isinstance(part, list):
        return [_copied(one, made) for one in part]
    if not isinstance(part, c_ast.Node):
        return part
    if id(part) not in made:
        copy = made[id(part)] = object.__new__(type(part))
        copy.coord = part.coord
        for slot in slots(part):
            setattr(copy, slot, _copied(getattr(part, slot), made))
    return made[id(part)]


def slots(node: Node) -> list[str]:
    """The names under which a node holds its parts."""
    return [slot for slot in node.__slots__ if slot not in ("coord", "__weakref__")]


_SPACED = pattern(r"\s*([-+*/,%<>])\s*")


def written(node: Node) -> str:
    """An expression as C text, with as few spaces as it needs."""
    return _SPACED.sub(r"\1", _Written(reduce_parentheses=True).visit(node))


class _Written(c_generator.CGenerator):  # type: ignore[misc]  # pycparser has no types
    """C text in which members of structures stand as they were written."""

    def visit_MemberRef(self, node: Node) -> str:  # noqa: N802  # the name decides what it is called for
        """A member as it was written."""
        return str(node.text or self.visit_ArrayRef(node))
