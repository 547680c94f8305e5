"""Parameters of type `void *` that a function uses as pointers to one type: they become parameters of that type.

Tasks, callbacks and libraries hand arrays over so: `double *x = (double *)p`, or `((double *)p)[i]`. A parameter that
is used as pointers to several types, or otherwise than by such a conversion, stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pycparser import c_ast, c_generator  # type: ignore[import-untyped]

from kernmodel.source.parse.tree import Node, copied, declarator, slots, walk

Pointee = tuple[str, ...]
"""The specifiers of what a pointer points at, without qualifiers: `("unsigned", "char")`, `("struct", "point")`; the
lengths of rows come before: `("[m]", "double")`."""

_VOID: Pointee = ("void",)


def type_void_parameters(functions: Sequence[Node]) -> None:
    """Give these parameters their types, in all functions."""
    for function in functions:
        declared = function.decl.type.args
        parameters = [p for p in (declared.params if declared else ()) if isinstance(p, c_ast.Decl)]
        for parameter in parameters:
            if pointee_of(parameter.type) == _VOID:
                _type(parameter, function.body)


def pointee_of(kind: Node) -> Pointee | None:
    """What a pointer points at; None for another type, and for pointers to pointers and functions."""
    if not isinstance(kind, c_ast.PtrDecl):
        return None
    rows: list[str] = []
    kind = kind.type
    while isinstance(kind, c_ast.ArrayDecl):
        rows.append(f"[{c_generator.CGenerator().visit(kind.dim)}]" if kind.dim else "[]")
        kind = kind.type
    inner: Node = kind.type if isinstance(kind, c_ast.TypeDecl) else None
    if isinstance(inner, c_ast.IdentifierType):
        return (*rows, *inner.names)
    named = isinstance(inner, (c_ast.Struct, c_ast.Union)) and inner.name
    return (*rows, type(inner).__name__.lower(), inner.name) if named else None


def _type(parameter: Node, body: Node) -> None:
    declared = {n.name: n.type for n in walk(body) if isinstance(n, c_ast.Decl) and n.name}
    if parameter.name in declared:
        return
    uses = list(_uses(body, parameter.name, declared))
    found = {pointee_of(kind) for kind in uses if kind is not _ANY}
    if len(found) != 1 or None in found or _VOID in found:
        return
    kind = copied(next(kind for kind in uses if kind is not _ANY).type)
    if any(isinstance(part, c_ast.ID) and part.name in declared for part in walk(kind)):
        return  # rows as long as a variable of the body says
    declarator(kind).declname = parameter.name
    parameter.type.type = kind
    _drop_casts(body, parameter.name)


_ANY = object()
"""The type of a use that converts to none: an argument of a call, or a comparison."""


def _uses(node: Node, name: str, declared: Mapping[str, Node], kind: Node = None) -> Iterator[Node]:
    """The type to which each use of a parameter converts it; None where a use is no conversion.

    Args:
        declared: the types of the variables of the function.
        kind: to which the node is converted.
    """
    if isinstance(node, c_ast.ID):
        if node.name == name:
            yield kind
        return
    of: dict[str, Node] = {}
    if isinstance(node, c_ast.Cast):
        of = {"expr": node.to_type.type}
    elif isinstance(node, c_ast.Decl):
        of = {"init": node.type}
    elif isinstance(node, c_ast.Assignment) and node.op == "=" and isinstance(node.lvalue, c_ast.ID):
        of = {"rvalue": declared.get(node.lvalue.name)}
    elif isinstance(node, c_ast.BinaryOp) and node.op in ("==", "!=", "&&", "||"):
        of = {"left": _ANY, "right": _ANY}
    elif isinstance(node, c_ast.UnaryOp) and node.op in ("!", "sizeof"):
        of = {"expr": _ANY}
    elif isinstance(node, c_ast.If):
        of = {"cond": _ANY}
    elif isinstance(node, c_ast.FuncCall) and node.args is not None:
        for argument in node.args.exprs:
            yield from _uses(argument, name, declared, _ANY)
        return
    for slot in slots(node):
        child = getattr(node, slot)
        for part in child if isinstance(child, list) else [child]:
            if isinstance(part, c_ast.Node):
                yield from _uses(part, name, declared, of.get(slot))


def _drop_casts(node: Node, name: str) -> None:
    """Take the conversions of a parameter away, all of which are to its type now."""
    for part in walk(node):
        for slot in slots(part):
            child = getattr(part, slot)
            if isinstance(child, list):
                setattr(part, slot, [_without(item, name) for item in child])
            elif isinstance(child, c_ast.Cast):
                setattr(part, slot, _without(child, name))


def _without(node: Node, name: str) -> Node:
    converts = isinstance(node, c_ast.Cast) and isinstance(node.expr, c_ast.ID) and node.expr.name == name
    return node.expr if converts else node
