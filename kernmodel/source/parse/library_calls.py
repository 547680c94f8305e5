"""Calls of the standard library that kernels hold, rewritten in the syntax tree before anything else reads it.

- `if (…) { fprintf(…); exit(1); }`: where the program ends, nothing else is executed on a run that goes on. A function
  of the file that ends with such a call ends the program too.
- `assert(x);` is a branch that ends the program where `x` does not hold; with NDEBUG it is nothing.
- `memcpy(&x, &y, n);` of two variables copies bits, as `x = y` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.standard_headers import ASSERTION, ENDING_FUNCTIONS
from kernmodel.source.parse.tree import Node, is_call_of, slots, statements, walk, without_casts

_COPIES = frozenset({"memcpy", "memmove", "__builtin_memcpy"})


def rewrite_library_calls(functions: Sequence[Node], *, asserts: bool) -> None:
    """Rewrite them in all functions; `asserts`: whether assertions are compiled (no NDEBUG)."""
    ending = _ending(functions)
    for function in functions:
        for node in list(walk(function.body)):
            for slot in slots(node):
                child = getattr(node, slot)
                if isinstance(child, list):
                    setattr(node, slot, [_rewritten(part, ending, asserts=asserts) for part in child])
                elif isinstance(node, _AROUND) and slot in _BODIES and child is not None:
                    setattr(node, slot, _rewritten(child, ending, asserts=asserts))


_AROUND = (c_ast.If, c_ast.For, c_ast.While, c_ast.DoWhile, c_ast.Label)
_BODIES = frozenset({"iftrue", "iffalse", "stmt"})


def _ending(functions: Sequence[Node]) -> frozenset[str]:
    """The functions that end the program, those of the file that do nothing else in the end among them."""
    ending = set(ENDING_FUNCTIONS)
    bodies = {function.decl.name: list(statements(function.body)) for function in functions}
    returning = {function.decl.name for function in functions if any(map(_returns, walk(function.body)))}
    while True:
        new = {name for name, body in bodies.items() if body and is_call_of(body[-1], ending) and name not in returning}
        if new <= ending:
            return frozenset(ending)
        ending |= new


def _returns(node: Node) -> bool:
    return isinstance(node, c_ast.Return)


def _rewritten(node: Node, ending: frozenset[str], *, asserts: bool) -> Node:
    """What a statement becomes."""
    if isinstance(node, c_ast.If):
        node.iftrue, node.iffalse = (_cut(side, ending) for side in (node.iftrue, node.iffalse))
    elif is_call_of(node, {"assert"}) and node.args and len(node.args.exprs) == 1:
        return _branch(node) if asserts else c_ast.EmptyStatement(node.coord)
    elif is_call_of(node, _COPIES) and node.args and len(node.args.exprs) == 3:
        target, source, _ = node.args.exprs
        if (to := _variable(target)) is not None and (of := _variable(source)) is not None:
            return c_ast.Assignment("=", to, of, node.coord)
    return node


def _cut(side: Node | None, ending: frozenset[str]) -> Node | None:
    """A side of a branch: the call alone where that ends the program."""
    body = list(statements(side))
    if not body or not is_call_of(body[-1], ending) or any(isinstance(part, c_ast.Return) for part in walk(side)):
        return side
    return c_ast.FuncCall(c_ast.ID("abort", body[-1].coord), None, body[-1].coord)


def _branch(node: Node) -> Node:
    """An assertion as a branch; what it calls is not looked into."""
    condition = node.args.exprs[0]
    if any(isinstance(part, c_ast.FuncCall) for part in walk(condition)):
        return c_ast.EmptyStatement(node.coord)
    fails = c_ast.FuncCall(c_ast.ID(ASSERTION, node.coord), None, node.coord)
    return c_ast.If(c_ast.UnaryOp("!", condition, node.coord), fails, None, node.coord)


def _variable(address: Node) -> Node | None:
    """The variable of which this is the address."""
    address = without_casts(address)
    plain = isinstance(address, c_ast.UnaryOp) and address.op == "&" and isinstance(address.expr, c_ast.ID)
    return address.expr if plain else None
