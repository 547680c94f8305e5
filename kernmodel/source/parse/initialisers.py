"""Arrays and structures that loops initialise, rewritten as assignments of their parts before anything else reads them.

`double t[3] = {x, y, z};` in the body of a loop is a declaration and `t[0] = x; t[1] = y; t[2] = z;`, the rest 0, and
`Vec v = {x, y};`, `v = (Vec){.x = x, .y = y};` likewise by members. Others, and those of more than `MOST_PARTS` parts,
stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.preprocess import Preprocessed
from kernmodel.source.parse.structures import MOST_PARTS, Types, UnknownLayoutError, is_structure
from kernmodel.source.parse.tree import LOOPS, Node, walk


def spread_initialisers(functions: Sequence[Node], globals_: Sequence[Node], preprocessed: Preprocessed) -> None:
    """Rewrite the initialisers in the loops of all functions; the trees are changed."""
    for function in functions:
        if not any(isinstance(part, (c_ast.InitList, c_ast.CompoundLiteral)) for part in walk(function.body)):
            continue
        types = Types.of(preprocessed)
        declared = (
            part for part in walk(function.body) if isinstance(part, (c_ast.Typedef, c_ast.Struct, c_ast.Union))
        )
        for node in (*globals_, *declared):
            types.take(node)
        loops = [part for part in walk(function.body) if isinstance(part, LOOPS)]
        blocks = {id(part): part for loop in loops for part in walk(loop) if isinstance(part, c_ast.Compound)}
        for loop in loops:
            if isinstance(loop.stmt, c_ast.Assignment) and len(written := _spread(loop.stmt, types)) > 1:
                loop.stmt = c_ast.Compound(written, loop.stmt.coord)
        for block in blocks.values():
            block.block_items = [part for item in block.block_items or () for part in _spread(item, types)]


def _spread(item: Node, types: Types) -> list[Node]:
    """What a statement becomes."""
    value = None
    if isinstance(item, c_ast.Decl):
        target, kind, value = c_ast.ID(item.name, item.coord), item.type, item.init
    elif isinstance(item, c_ast.Assignment) and item.op == "=" and isinstance(item.rvalue, c_ast.CompoundLiteral):
        target, value = item.lvalue, item.rvalue
    if isinstance(value, c_ast.CompoundLiteral):
        kind, value = value.type, value.init
    if not isinstance(value, c_ast.InitList):
        return [item]
    try:
        places = list(_parts(target, kind, types))
    except UnknownLayoutError:
        return [item]
    values = list(_values(value))
    named = [one for one in values if isinstance(one, c_ast.NamedInitializer)]
    if len(values) != len(places) and any(isinstance(one, c_ast.InitList) for one in value.exprs):
        return [item]  # a list within, which may leave out its last parts
    if not places or len(places) > MOST_PARTS or len(values) > len(places) or 0 < len(named) < len(values):
        return [item]
    if named:
        of_members = {place.field.name: place for place in places if isinstance(place, c_ast.StructRef)}
        if not all(len(one.name) == 1 and getattr(one.name[0], "name", "") in of_members for one in named):
            return [item]
        given = {id(of_members[one.name[0].name]): one.expr for one in named}
    else:
        given = {id(place): one for place, one in zip(places, values, strict=False)}
    nothing = c_ast.Constant("int", "0", item.coord)
    assigned = [c_ast.Assignment("=", place, given.get(id(place), nothing), item.coord) for place in places]
    if isinstance(item, c_ast.Decl):
        item.init = None
        return [item, *assigned]
    return assigned


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
