"""Branches in the body of a loop: both sides are taken as executed, as in code with masks; what is assumed is noted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernmodel.errors import Location, Note
from kernmodel.source.parse.chains import Chain
from kernmodel.source.parse.guards import without_null_tests
from kernmodel.source.parse.scope import Scope
from kernmodel.source.parse.standard_headers import ASSERTION, ENDING_FUNCTIONS
from kernmodel.source.parse.syntax import Node, c_ast, walk
from kernmodel.source.parse.tree import called_name, is_call_of


def refuse_jumps(found: Chain, scope: Scope) -> None:
    """Refuse loops that are no `for`, and jumps back, in the statements of a chain.

    Raises:
        UnsupportedKernelError: there is one.
    """
    for node in _parts(found):
        if isinstance(node, (c_ast.While, c_ast.DoWhile)):
            keyword = "do-while" if isinstance(node, c_ast.DoWhile) else "while"
            line = scope.location(node).line
            todo = f"say how often it runs (--trip-count {line}=N), or write it as a for loop with a counter"
            raise scope.unsupported(f"{keyword} in a loop nest is not supported", node, todo)
    _refuse_unconditional_ends(found, scope)
    passed: set[str] = set()
    for node in _parts(found):
        if isinstance(node, c_ast.Label):
            passed.add(node.name)
        elif isinstance(node, c_ast.Goto) and node.name in passed:
            what = f"goto {node.name} jumps back: a loop that is no for-loop"
            raise scope.unsupported(what, node, "write the loop as a for-loop")


def _refuse_unconditional_ends(found: Chain, scope: Scope) -> None:
    labels = {node.name for node in _parts(found) if isinstance(node, c_ast.Label)}
    for level in found.levels:
        for node in (*level.before, *level.after):
            if isinstance(node, (c_ast.Break, c_ast.Return)) or (
                isinstance(node, c_ast.Goto) and node.name not in labels
            ):
                what = f"{type(node).__name__.lower()} ends the loop in its first iteration"
                raise scope.unsupported(what, node, "take the loop away, or put the statement under its condition")


def condition_notes(
    found: Chain, scope: Scope, decided: Mapping[Location, float], counted: Mapping[Location, float]
) -> Iterator[Note]:
    """What is assumed of the branches of a chain; `decided`: by its place, how often a condition holds that the data
    decide, or of which it is stated; `counted`: of one that is counted."""
    parts = tuple(_parts(found))
    branches = [node for node in (*found.conditions, *parts) if isinstance(node, (c_ast.If, c_ast.Switch))]
    stated = dict(scope.program.stated.taken)
    for node in branches:
        place = scope.location(node)
        if isinstance(node, c_ast.If) and any(
            is_call_of(side, ENDING_FUNCTIONS) for side in (node.iftrue, node.iffalse)
        ):
            continue
        condition = without_null_tests(node.cond, scope)
        if condition is not node.cond:
            yield Note("null-pointer", "pointers that are tested are taken to be no null pointers", "assumption", place)
            if isinstance(condition, c_ast.Constant):
                continue
        if place in counted and place not in decided:
            text = f"the condition of this branch holds in {counted[place]:.4%} of the iterations at these sizes"
        elif place in decided and place.line not in stated:
            text = "the data decide this branch: its condition is taken to hold in half of the cases (--taken LINE=P)"
        elif place in decided:
            text = f"the condition of this branch is taken to hold with probability {decided[place]:g}, as stated"
        else:
            text = (
                "all sides of this branch are taken as executed each time, as in masked code: accesses and FLOP are "
                "bounds"
            )
        yield Note("branch", text, "assumption", place)
    for level in found.levels:
        trips = dict(scope.program.stated.trip_counts).get(scope.location(level.statement).line or 0)
        if trips is not None:
            text = f"this loop is taken to have {trips} iterations, as stated"
            yield Note("stated-trips", text, "assumption", scope.location(level.statement))
    labels = {node.name for node in parts if isinstance(node, c_ast.Label)}
    inside = {id(part) for node in parts if isinstance(node, c_ast.Switch) for part in walk(node)}
    for node in parts:
        leaves = isinstance(node, c_ast.Goto) and node.name not in labels
        if is_call_of(node, ENDING_FUNCTIONS):
            if called_name(node) != ASSERTION:
                yield Note("program-ends", "the program is taken not to end here", "assumption", scope.location(node))
            continue
        if leaves or isinstance(node, c_ast.Return) or (isinstance(node, c_ast.Break) and id(node) not in inside):
            text = "the loop may be left here: it is taken to run to its end (--trip-count LINE=N says otherwise)"
            if any(_is_stated(level.statement, node, scope) for level in found.levels):
                continue
            yield Note("early-exit", text, where=scope.location(node))


def _is_stated(loop: Node, node: Node, scope: Scope) -> bool:
    """Whether the iterations of a loop around a node are stated."""
    stated = dict(scope.program.stated.trip_counts)
    return scope.location(loop).line in stated and any(part is node for part in walk(loop))


def _parts(found: Chain) -> Iterator[Node]:
    """All nodes of the statements of a chain, in the order of the source."""
    for level in found.levels:
        for statement in level.before:
            yield from walk(statement)
    for level in reversed(found.levels):
        for statement in level.after:
            yield from walk(statement)
