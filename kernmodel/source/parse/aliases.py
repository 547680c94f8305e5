"""Pointers to structures that are set once, to the address of a known one: `t->state.x` for `s->x`, `s = &t->state`."""

from __future__ import annotations

from collections import Counter

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.inlining import replaced
from kernmodel.source.parse.tree import Node, walk, written_names


def follow_structures(function: Node) -> None:
    """Put the structures in the place of the pointers to them that a function sets once, where it declares them."""
    writes = Counter(name for name, _ in written_names(function))
    parameters = function.decl.type.args
    writes.update(part.name for part in (parameters.params if parameters else ()) if isinstance(part, c_ast.Decl))
    declared = Counter(part.name for part in walk(function.body) if isinstance(part, c_ast.Decl))
    for block in [node for node in walk(function.body) if isinstance(node, c_ast.Compound)]:
        for item in list(block.block_items or ()):
            if isinstance(item, c_ast.Decl) and writes[item.name] == declared[item.name] == 1 and _stays(item, writes):
                block.block_items = [part for part in block.block_items if part is not item]
                function.body = replaced(function.body, {item.name: item.init})


def _stays(declaration: Node, writes: Counter[str]) -> bool:
    """Whether a declaration sets a pointer to a structure that stays what it is while the function runs."""
    address = declaration.init
    if not (isinstance(declaration.type, c_ast.PtrDecl) and isinstance(address, c_ast.UnaryOp) and address.op == "&"):
        return False
    parts = list(walk(address.expr))
    plain = all(isinstance(part, (c_ast.StructRef, c_ast.ID)) for part in parts)
    return (
        plain
        and any(isinstance(part, c_ast.StructRef) for part in parts)
        and all(
            # a parameter counts as one write, what a function only reads as none
            writes[part.name] <= 1
            for part in parts
            if isinstance(part, c_ast.ID)
        )
    )
