"""Arrays and structures that loops initialise or copy, rewritten as assignments of their parts.

`double t[3] = {x, y, z};` in the body of a loop is a declaration and `t[0] = x; t[1] = y; t[2] = z;`, the rest 0, and
`Vec v = {x, y};`, `v = (Vec){.x = x, .y = y};` likewise by members. So is what is copied from or to a structure that is
a variable of its own: `Vec v = a[i];`, `a[i] = v;`. Others, and those of more than `MOST_PARTS` parts, stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.structures import MOST_PARTS, Types, UnknownLayoutError, is_structure
from kernmodel.source.parse.tree import LOOPS, Node, walk


def spread_initialisers(functions: Sequence[Node], types: Types) -> None:
    """Rewrite the initialisers and copies in the loops of all functions; the trees are changed."""
    for function in functions:
        _Spreading(function, types).blocks(function)


class _Spreading:
    """Rewrites one function.

    Args:
        types: of the program; it learns those of the function.
    """

    def __init__(self, function: Node, types: Types) -> None:
        self._types = types
        self._structures: dict[str, Node] = {}
        nodes = list(walk(function))
        for node in nodes:
            if isinstance(node, (c_ast.Typedef, c_ast.Struct, c_ast.Union)):
                types.take(node)
        for node in nodes:
            if isinstance(node, c_ast.Decl) and node.name and is_structure(types.resolved(node.type)):
                self._structures[node.name] = node.type

    def blocks(self, function: Node) -> None:
        """Rewrite the statements of all loops."""
        blocks = dict[int, Node]()
        for loop in [part for part in walk(function.body) if isinstance(part, LOOPS)]:
            if isinstance(loop.stmt, c_ast.Assignment) and len(assigned := self._spread(loop.stmt)) > 1:
                loop.stmt = c_ast.Compound(assigned, loop.stmt.coord)
            blocks |= {id(part): part for part in walk(loop) if isinstance(part, c_ast.Compound)}
        for block in blocks.values():
            block.block_items = [part for item in block.block_items or () for part in self._spread(item)]

    def _spread(self, item: Node) -> list[Node]:
        """What a statement becomes."""
        if isinstance(item, c_ast.Decl):
            target, kind, value = c_ast.ID(item.name, item.coord), item.type, item.init
        elif isinstance(item, c_ast.Assignment) and item.op == "=":
            target, value = item.lvalue, item.rvalue
            named = (getattr(side, "name", None) for side in (target, value) if isinstance(side, c_ast.ID))
            kind = next((self._structures[name] for name in named if name in self._structures), None)
        else:
            return [item]
        if isinstance(value, c_ast.CompoundLiteral):
            kind, value = value.type, value.init
        is_list = isinstance(value, c_ast.InitList)
        if is_list and isinstance(kind, c_ast.ArrayDecl) and kind.dim is None:
            kind.dim = c_ast.Constant("int", str(len(value.exprs or ())), kind.coord)
        if kind is None or not (is_list or (isinstance(value, _PLACES) and is_structure(self._types.resolved(kind)))):
            return [item]
        try:
            places = list(_parts(target, kind, self._types))
            given = _given(value, places) if is_list else list(_parts(value, kind, self._types))
        except UnknownLayoutError:
            return [item]
        if given is None or not 0 < len(places) <= MOST_PARTS:
            return [item]
        assigned = [c_ast.Assignment("=", place, one, item.coord) for place, one in zip(places, given, strict=True)]
        if isinstance(item, c_ast.Decl):
            item.init = None
            return [item, *assigned]
        return assigned


_PLACES = (c_ast.ID, c_ast.ArrayRef, c_ast.StructRef, c_ast.UnaryOp)


def _given(initialiser: Node, places: Sequence[Node]) -> list[Node] | None:
    """What an initialiser gives each of the parts; None where that is not understood."""
    values = list(_values(initialiser))
    named = [one for one in values if isinstance(one, c_ast.NamedInitializer)]
    whole = len(values) == len(places) or not any(isinstance(one, c_ast.InitList) for one in initialiser.exprs or ())
    if not whole or len(values) > len(places) or 0 < len(named) < len(values):
        return None  # a list within may leave out its last parts
    nothing = c_ast.Constant("int", "0", initialiser.coord)
    if not named:
        return [*values, *[nothing] * (len(places) - len(values))]
    numbers = {place.field.name: n for n, place in enumerate(places) if isinstance(place, c_ast.StructRef)}
    given: list[Node] = [nothing] * len(places)
    for one in named:
        name = getattr(one.name[0], "name", "")
        if len(one.name) != 1 or name not in numbers:
            return None
        given[numbers[name]] = one.expr
    return given


def _parts(place: Node, kind: Node, types: Types) -> Iterator[Node]:
    """The numbers that an array or a structure consists of, as expressions; what is neither is one itself."""
    resolved = types.resolved(kind)
    if isinstance(resolved, c_ast.ArrayDecl):
        for number in range(types.extent(resolved)):
            index = c_ast.Constant("int", str(number), place.coord)
            yield from _parts(c_ast.ArrayRef(place, index, place.coord), resolved.type, types)
    elif is_structure(resolved):
        if isinstance(resolved, c_ast.Union) or not resolved.decls:
            raise UnknownLayoutError
        for member in resolved.decls:
            if member.name is None:
                raise UnknownLayoutError
            name = c_ast.ID(member.name, place.coord)
            yield from _parts(c_ast.StructRef(place, ".", name, place.coord), member, types)
    else:
        yield place


def _values(initialiser: Node) -> Iterator[Node]:
    """The values of nested lists, one after the other."""
    for value in initialiser.exprs or ():
        if isinstance(value, c_ast.InitList):
            yield from _values(value)
        else:
            yield value
