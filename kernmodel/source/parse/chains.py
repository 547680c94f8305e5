"""The loop nests of a function: every chain of loops from an outermost loop down to an innermost one.

Loops that stand side by side in a loop give a chain each. A loop that calls functions which are not known, or that runs
until something has converged, only repeats what stands in it: its chains begin inside of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import filterfalse

from kernmodel.source.parse.standard_headers import is_known_function
from kernmodel.source.parse.syntax import Node, Program, c_ast, statements, walk
from kernmodel.source.parse.tree import called_name
from kernmodel.value_types import dataclass

OPENED = (c_ast.If, c_ast.Switch, c_ast.Case, c_ast.Default, c_ast.Label)
"""Statements whose parts are taken as statements of the body around them where they hold loops."""


@dataclass(frozen=True, slots=True)
class Level:
    """One `for` of a chain.

    Attributes:
        statement: the `for`.
        before, after: the statements of its body before and after the next inner loop of the chain (all in `before` for
            the innermost); those between two inner loops belong to the chain of the first.
        passed: what of the body stands before the inner loop and belongs to other chains, loops among it.
    """

    statement: Node
    before: tuple[Node, ...]
    after: tuple[Node, ...]
    passed: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of loops, outermost first.

    Attributes:
        levels: its loops.
        passed: the statements that are executed before it, in the order of the source: the function's and those of the
            loops that repeat it.
        repeated: the loops around it that only repeat it, outermost first.
        beside: other innermost loops that stand in loops of the chain.
        conditions: the branches that it stands under.
    """

    levels: tuple[Level, ...]
    passed: tuple[Node, ...] = ()
    repeated: tuple[Node, ...] = ()
    beside: tuple[Node, ...] = ()
    conditions: tuple[Node, ...] = ()

    @property
    def inner(self) -> Node:
        """The innermost `for`."""
        return self.levels[-1].statement


def chains(function: Node, program: Program) -> tuple[Chain, ...]:
    """The chains of loops of a function in the order of the source."""
    return tuple(_inside(function.body, Chain(()), program.expressions))


def _inside(body: Node | None, above: Chain, known: Collection[str]) -> Iterator[Chain]:
    """The chains in a body that is executed within the loops `above`; `known`: functions that are expressions."""
    opened, conditions = _opened(body)
    places = [place for place, item in enumerate(opened) if _is_loop(item)]
    inner = [innermost(opened[place]) for place in places]
    above = replace(above, conditions=(*above.conditions, *conditions))
    for number, place in enumerate(places):
        loop = opened[place]
        end = places[number + 1] if number + 1 < len(places) else len(opened)
        around = above
        if above.levels:
            level = above.levels[-1]
            # what stands between two inner loops belongs to the chain of the first
            passed, after = tuple(opened[:place]), tuple(opened[place + 1 : end])
            level = Level(level.statement, () if number else passed, after, passed if number else ())
            around = replace(above, levels=(*above.levels[:-1], level))
        else:
            around = replace(above, passed=(*above.passed, *opened[:place]))
        others = [node for found in (*inner[:number], *inner[number + 1 :]) for node in found]
        around = replace(around, beside=(*around.beside, *others))
        yield from _of_loop(loop, around if above.levels else replace(around, beside=()), known)


def _of_loop(loop: Node, above: Chain, known: Collection[str]) -> Iterator[Chain]:
    opened, _ = _opened(loop.stmt)
    if not any(map(_is_loop, opened)):
        level = Level(loop, tuple(statements(loop.stmt)), ())
        yield replace(above, levels=(*above.levels, level))
    elif (
        not _counts(loop)
        or _changes_steps(loop)
        or calls_unknown(known, loop.init, loop.cond, *filterfalse(_is_loop, opened))
    ):
        # how often it runs, or what the call does to caches and variables, is not known: nothing is carried over
        passed = above.passed
        for level in above.levels:
            passed += (*level.passed, *level.before)
        outer = (*above.repeated, *(level.statement for level in above.levels), loop)
        yield from _inside(loop.stmt, Chain((), passed, outer, (), above.conditions), known)
    else:
        yield from _inside(loop.stmt, replace(above, levels=(*above.levels, Level(loop, (), ()))), known)


def _is_loop(item: Node) -> bool:
    """A `for`, or another loop around one."""
    return isinstance(item, c_ast.For) or (isinstance(item, (c_ast.While, c_ast.DoWhile)) and holds_loop(item))


def _counts(loop: Node) -> bool:
    """Whether a loop looks like one that steps a variable to a bound; others run until something has converged."""
    if not isinstance(loop, c_ast.For) or loop.init is None or loop.cond is None or loop.next is None:
        return False
    tests = [loop.cond]
    while any(isinstance(test, c_ast.BinaryOp) and test.op == "&&" for test in tests):
        tests = [
            part
            for test in tests
            for part in ((test.left, test.right) if isinstance(test, c_ast.BinaryOp) and test.op == "&&" else (test,))
        ]
    name = stepped_variable(loop)
    multiplied = isinstance(loop.next, c_ast.Assignment) and _multiplies(loop.next)
    return (
        name is not None
        and not multiplied
        and all(any(isinstance(part, c_ast.ID) and part.name == name for part in walk(test)) for test in tests)
    )


def stepped_variable(loop: Node) -> str | None:
    """The variable that the third part of a `for` changes; None where it changes none."""
    step = getattr(loop, "next", None)
    target = step.expr if isinstance(step, c_ast.UnaryOp) else getattr(step, "lvalue", None)
    return getattr(target, "name", None)


def _multiplies(step: Node) -> bool:
    """Whether a step multiplies or divides a variable: `m *= 2`, `m = m << 1`."""
    value = step.rvalue
    whole = step.op == "=" and isinstance(value, c_ast.BinaryOp) and value.op in _FACTORS
    return step.op.removesuffix("=") in _FACTORS or whole


_FACTORS = frozenset({"*", "/", "<<", ">>"})


def _changes_steps(loop: Node) -> bool:
    """Whether a loop in this one steps by what depends on its variable, so that no formula tells its iterations."""
    names = {stepped_variable(loop)}
    known = -1
    while known < len(names):
        known = len(names)
        for part in walk(loop.stmt):
            name, value = None, None
            if isinstance(part, c_ast.Decl):
                name, value = part.name, part.init
            elif isinstance(part, c_ast.Assignment) and isinstance(part.lvalue, c_ast.ID):
                name, value = part.lvalue.name, part.rvalue
            if name and value is not None and _names(value) & names:
                names.add(name)
    loops = (part for part in walk(loop.stmt) if isinstance(part, c_ast.For))
    inner = (part for part in loops if isinstance(part.next, c_ast.Assignment))
    return any(_names(part.next.rvalue) & (names - {stepped_variable(part)}) for part in inner)


def _names(node: Node) -> set[str | None]:
    return {part.name for part in walk(node) if isinstance(part, c_ast.ID)}


def _opened(body: Node | None) -> tuple[list[Node], list[Node]]:
    """The statements of a body, those of branches that hold loops among them, and these branches."""
    found: list[Node] = []
    conditions: list[Node] = []
    for item in statements(body):
        if not isinstance(item, OPENED) or not holds_loop(item):
            found.append(item)
            continue
        if not isinstance(item, c_ast.Label):
            conditions.append(item)
        if isinstance(item, (c_ast.If, c_ast.Switch)):
            found.append(item.cond)
        for part in branches(item):
            more, deeper = _opened(part)
            found += more
            conditions += deeper
    return found, conditions


def branches(node: Node) -> tuple[Node, ...]:
    """The statements that a branch, a case or a label may lead to."""
    if isinstance(node, c_ast.If):
        return tuple(part for part in (node.iftrue, node.iffalse) if part is not None)
    if isinstance(node, (c_ast.Case, c_ast.Default)):
        return tuple(node.stmts or ())
    if isinstance(node, c_ast.Compound):
        return (node,)
    return (node.stmt,)


def holds_loop(node: Node) -> bool:
    """Whether a `for` stands in the node."""
    return any(isinstance(part, c_ast.For) for part in walk(node))


def uncounted_loops(node: Node) -> list[Node]:
    """The `while` and `do` loops outside of every `for` that hold none, and touch memory."""
    if isinstance(node, c_ast.For):
        return []
    if isinstance(node, (c_ast.While, c_ast.DoWhile)) and not holds_loop(node):
        touches = any(isinstance(part, (c_ast.ArrayRef, c_ast.StructRef)) or _is_fetch(part) for part in walk(node))
        return [node] if touches else []
    return [loop for _, child in node.children() for loop in uncounted_loops(child)]


def _is_fetch(node: Node) -> bool:
    return isinstance(node, c_ast.UnaryOp) and node.op == "*"


def innermost(node: Node) -> tuple[Node, ...]:
    """The innermost loops in the node."""
    loops = [part for part in walk(node) if isinstance(part, c_ast.For)]
    return tuple(loop for loop in loops if not holds_loop(loop.stmt))


def calls_unknown(known: Collection[str], *nodes: Node | None) -> bool:
    """Whether a function is called that is neither known nor one of <math.h>, a minimum or maximum."""
    parts = (part for node in nodes if node is not None for part in walk(node))
    names = (called_name(part) for part in parts if isinstance(part, c_ast.FuncCall))
    return any(name not in known and not is_known_function(name) for name in names)
