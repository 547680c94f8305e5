"""Pointers into members of elements, `q = x[i].qs`, as that member and an integer that says where in it they point.

`q[l]` is `x[i].qs[q_at + l]`, `q += 32` is `q_at += 32`, and so what follows reads members and integers alone. Followed
are pointers that are set where they are declared, by names that stay as they are in the block, and that are only read
through and moved; others stay, and whoever reads them says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.tree import STEPS, Node, copied, slots, walk, written_names
from kernmodel.value_types import dataclass


class _NotFollowedError(Exception):
    """The pointer is used in another way."""


@dataclass(frozen=True, slots=True)
class _Pointer:
    """A pointer that is declared in a block.

    Attributes:
        base: the member; first: the element of it that the pointer is set to, None: the first one.
        at: the integer that moves, None: the pointer stays.
    """

    name: str
    base: Node
    first: Node | None
    at: str | None

    @property
    def place(self) -> Node | None:
        """Where it points now, in elements behind the first."""
        return c_ast.ID(self.at, self.base.coord) if self.at else self.first


def follow_member_pointers(function: Node) -> None:
    """Put members in the place of the pointers to them in a function."""
    blocks = [node for node in walk(function.body) if isinstance(node, c_ast.Compound)]
    for block in blocks:
        number = 0
        while number < len(block.block_items or ()):
            item = block.block_items[number]
            pointer = _declared(item, block.block_items[number + 1 :], function)
            if pointer is not None:
                try:
                    rest = [_Followed(pointer).node(copied(one)) for one in block.block_items[number + 1 :]]
                except _NotFollowedError:
                    pass
                else:
                    block.block_items[number:] = [*_start(pointer, item), *rest]
                    continue
            number += 1


def _declared(item: Node, rest: list[Node], function: Node) -> _Pointer | None:
    """The pointer to a member that a declaration sets, if it can be followed through the rest of its block."""
    if not isinstance(item, c_ast.Decl) or not isinstance(item.type, c_ast.PtrDecl) or item.init is None:
        return None
    base, first = _place(item.init)
    if not isinstance(base, c_ast.StructRef) or not _is_indexed(base):
        return None
    used = {part.name for part in walk(item.init) if isinstance(part, c_ast.ID)}
    writes = [(name, node) for one in rest for name, node in written_names(one)]
    moves = [node for name, node in writes if name == item.name]
    if used & {name for name, _ in writes} or not all(map(_is_move, moves)):
        return None
    if any(isinstance(part, c_ast.Decl) and part.name == item.name for one in rest for part in walk(one)):
        return None
    if base.field.name in _members_set(rest):
        return None
    names = {part.name for part in walk(function) if isinstance(part, (c_ast.ID, c_ast.Decl))}
    own = next(name for name in _names(item.name) if name not in names) if moves else None
    return _Pointer(item.name, base, first, own)


def _names(name: str) -> Iterator[str]:
    yield f"{name}_at"
    for number in range(2, 1000):
        yield f"{name}_at_{number}"


def _place(value: Node) -> tuple[Node, Node | None]:
    """The member and the element of it that the value of a pointer is."""
    if isinstance(value, c_ast.BinaryOp) and value.op == "+":
        return value.left, value.right
    if isinstance(value, c_ast.UnaryOp) and value.op == "&" and isinstance(value.expr, c_ast.ArrayRef):
        return value.expr.name, value.expr.subscript
    return value, None


def _is_indexed(member: Node) -> bool:
    """Whether a member is one of an element of an array of structures."""
    while isinstance(member, c_ast.StructRef):
        member = member.name
    return isinstance(member, c_ast.ArrayRef)


def _is_move(node: Node) -> bool:
    return isinstance(node, c_ast.UnaryOp) or (isinstance(node, c_ast.Assignment) and node.op in ("+=", "-="))


def _members_set(statements: list[Node]) -> set[str]:
    """The names of members that statements set."""
    parts = (part for one in statements for part in walk(one) if isinstance(part, c_ast.Assignment))
    return {part.lvalue.field.name for part in parts if isinstance(part.lvalue, c_ast.StructRef)}


def _start(pointer: _Pointer, declaration: Node) -> list[Node]:
    """The declaration of the integer that says where a pointer that moves is."""
    if pointer.at is None:
        return []
    kind = c_ast.TypeDecl(pointer.at, [], None, c_ast.IdentifierType(["long"]))
    first = pointer.first or c_ast.Constant("int", "0", declaration.coord)
    return [c_ast.Decl(pointer.at, [], [], [], [], kind, first, None, declaration.coord)]


class _Followed:
    """Rewrites the uses of a pointer."""

    def __init__(self, pointer: _Pointer) -> None:
        self._pointer = pointer

    def node(self, node: Node) -> Node:
        """A statement or expression with the member in the place of the pointer.

        Raises:
            _NotFollowedError: the pointer is used in another way than to read, write or move through it.
        """
        if isinstance(node, c_ast.ID):
            if node.name == self._pointer.name:
                raise _NotFollowedError
            return node
        if self._moves(node):
            return self._moved(node)
        if isinstance(node, c_ast.ArrayRef) and self._is_pointer(node.name):
            return self._element(node.name, self.node(node.subscript), node)
        if isinstance(node, c_ast.UnaryOp) and node.op == "*" and self._is_pointer(node.expr):
            return self._element(node.expr, None, node)
        if isinstance(node, c_ast.Decl) and node.init is not None and self._is_pointer(node.init):
            node.init = c_ast.UnaryOp("&", self._element(node.init, None, node.init), node.coord)
            return node
        for slot in slots(node):
            child = getattr(node, slot)
            if isinstance(child, c_ast.Node) and not (isinstance(node, c_ast.StructRef) and slot == "field"):
                setattr(node, slot, self.node(child))
            elif isinstance(child, list):
                setattr(node, slot, [self.node(one) if isinstance(one, c_ast.Node) else one for one in child])
        return node

    def _names_it(self, node: Node) -> bool:
        return isinstance(node, c_ast.ID) and node.name == self._pointer.name

    def _moves(self, node: Node) -> bool:
        step = isinstance(node, c_ast.UnaryOp) and node.op in STEPS and self._names_it(node.expr)
        return step or (isinstance(node, c_ast.Assignment) and self._names_it(node.lvalue))

    def _moved(self, node: Node) -> Node:
        place = self._pointer.place
        if isinstance(node, c_ast.UnaryOp):
            return c_ast.UnaryOp(node.op, place, node.coord)
        return c_ast.Assignment(node.op, place, self.node(node.rvalue), node.coord)

    def _is_pointer(self, node: Node) -> bool:
        """Whether an expression is the pointer, or the pointer and a number of elements."""
        if isinstance(node, c_ast.BinaryOp) and node.op in ("+", "-"):
            return self._is_pointer(node.left)
        step = isinstance(node, c_ast.UnaryOp) and node.op in STEPS
        return self._names_it(node.expr if step else node)

    def _element(self, pointer: Node, index: Node | None, node: Node) -> Node:
        place = self._sum(self._offset(pointer), index, node)
        zero = c_ast.Constant("int", "0", node.coord)
        return c_ast.ArrayRef(copied(self._pointer.base), zero if place is None else place, node.coord)

    def _offset(self, pointer: Node) -> Node | None:
        """Where an expression points, in elements behind the first of the member."""
        if isinstance(pointer, c_ast.BinaryOp):
            moved = self.node(pointer.right)
            moved = c_ast.UnaryOp("-", moved, pointer.coord) if pointer.op == "-" else moved
            return self._sum(self._offset(pointer.left), moved, pointer)
        if isinstance(pointer, c_ast.UnaryOp):
            return self._moved(pointer)
        place = self._pointer.place
        return None if place is None else copied(place)

    def _sum(self, one: Node | None, other: Node | None, node: Node) -> Node | None:
        if one is None or other is None:
            return other if one is None else one
        return c_ast.BinaryOp("+", one, other, node.coord)
