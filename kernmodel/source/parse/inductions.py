"""Variables that advance with a loop without being its variable: `k += 2`, `*p++`, as formulas of the loop variables.

An integer or a pointer qualifies if it advances by a constant at one level of the nest only, and is set outside of that
level. Its value at the start of an iteration is then what it was set to, plus the advance times the iterations before.
Advances under a condition count as executed, as all statements there do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import sympy

from kernmodel.errors import KernmodelError
from kernmodel.source.model import Loop
from kernmodel.source.parse.chains import Chain, branches
from kernmodel.source.parse.scope import Scope
from kernmodel.source.parse.syntax import Node, c_ast, statements, walk, written_names


@dataclass(frozen=True, slots=True)
class Induction:
    """A variable that advances with a loop.

    Attributes:
        level: number of the loop, 0 outermost; advance: what each of its iterations adds.
        set_at: number of the loop in each of whose iterations it is set anew, −1: it is set before the nest.
    """

    name: str
    level: int
    advance: sympy.Expr
    set_at: int


def advancing(found: Chain) -> frozenset[str]:
    """The names of variables that some statement of a chain adds to."""
    parts = [statement for part in found.levels for statement in (*part.before, *part.after)]
    return frozenset(name for part in parts for name, node in written_names(part) if is_advance(node, name))


def inductions(found: Chain, scope: Scope) -> dict[str, Induction]:
    """The variables of a chain that advance by a constant, by name."""
    writes: dict[str, list[tuple[int, Node]]] = {}
    for level, part in enumerate(found.levels):
        for statement in (*part.before, *part.after):
            for name, node in written_names(statement):
                writes.setdefault(name, []).append((level, node))
    result = {}
    for name, nodes in writes.items():
        advanced = {level for level, node in nodes if is_advance(node, name)}
        set_at = [level for level, node in nodes if not is_advance(node, name)]
        if len(advanced) != 1 or not (name in scope.arrays or _is_integer(scope, name, nodes)):
            continue
        level = advanced.pop()
        if any(outer >= level for outer in set_at):
            continue
        part = found.levels[level]
        advance = _advance(name, (*part.before, *part.after), scope)
        if advance is not None:
            result[name] = Induction(name, level, advance, max(set_at, default=-1))
    return result


def at_start(induction: Induction, start: sympy.Expr, loops: tuple[Loop, ...]) -> sympy.Expr | None:
    """The value at the start of an iteration; None where it is no polynomial with integer coefficients.

    Args:
        start: the value that it is set to.
        loops: all loops of the nest.
    """
    passed: sympy.Expr = sympy.Integer(0)
    for loop in loops[induction.set_at + 1 : induction.level + 1]:
        inside = {outer.symbol for outer in loops}
        trips = (loop.stop - loop.start) / loop.step
        if loop is not loops[induction.set_at + 1] and trips.free_symbols & inside:
            return None
        passed = passed * trips + (loop.symbol - loop.start) / loop.step
    value = sympy.expand(start + induction.advance * passed)
    whole = all(term.as_coeff_Mul()[0].is_Integer for term in sympy.Add.make_args(value))
    return value if whole and not value.has(sympy.Min, sympy.Max, sympy.floor) else None


def is_advance(node: Node, name: str) -> bool:
    """Whether a write adds to the old value."""
    return advance_of(node, name) is not None


def advance_of(node: Node, name: str) -> tuple[int, Node | None] | None:
    """Sign and amount (None: 1) by which a write moves its variable; None where it sets it otherwise."""
    if isinstance(node, c_ast.UnaryOp):
        return (1 if "+" in node.op else -1), None
    if not isinstance(node, c_ast.Assignment):
        return None
    if node.op in ("+=", "-="):
        return (1 if node.op == "+=" else -1), node.rvalue
    value = node.rvalue
    if node.op == "=" and isinstance(value, c_ast.BinaryOp) and value.op in ("+", "-"):
        if getattr(value.left, "name", None) == name and isinstance(value.left, c_ast.ID):
            return (1 if value.op == "+" else -1), value.right
        if value.op == "+" and isinstance(value.right, c_ast.ID) and value.right.name == name:
            return 1, value.left
    return None


def amount(node: Node, name: str, scope: Scope) -> sympy.Expr | None:
    """The constant by which a write moves its variable, None where it is none."""
    found = advance_of(node, name)
    if found is None:
        return None
    sign, value = found
    if value is None:
        return sympy.Integer(sign)
    try:
        moved = scope.integer(value)
    except KernmodelError:
        return None
    return sign * moved if all(symbol.is_positive for symbol in moved.free_symbols) else None


def _is_integer(scope: Scope, name: str, nodes: Iterable[tuple[int, Any]]) -> bool:
    declared = scope.scalars.get(name)
    if declared is None:
        declarations = [node for _, node in nodes if isinstance(node, c_ast.Decl)]
        return bool(declarations)
    return declared.kind == "integer" and declared.size_bytes > 0


def _advance(name: str, body: Iterable[Node], scope: Scope) -> sympy.Expr | None:
    """What an iteration adds; of the sides of a branch, the first that adds anything counts."""
    total: sympy.Expr = sympy.Integer(0)
    for statement in body:
        for part in _parts(statement, name, scope):
            if part is None:
                return None
            total += part
    return total


def _parts(statement: Node, name: str, scope: Scope) -> Iterator[sympy.Expr | None]:
    if isinstance(statement, (c_ast.If, c_ast.Switch)):
        sides = [_advance(name, statements(part), scope) for part in branches(statement)]
        yield from (amount(node, name, scope) for found, node in written_names(statement.cond) if found == name)
        yield None if None in sides else next((side for side in sides if side), sympy.Integer(0))
        return
    if isinstance(statement, (c_ast.Case, c_ast.Default, c_ast.Label, c_ast.Compound)):
        for part in branches(statement):
            yield _advance(name, statements(part), scope)
        return
    if any(isinstance(part, c_ast.TernaryOp) for part in walk(statement)):
        yield from (None for found, _ in written_names(statement) if found == name)
        return
    yield from (amount(node, name, scope) for found, node in written_names(statement) if found == name)
