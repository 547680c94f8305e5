"""A C `for` statement as a normalised `Loop`."""

from __future__ import annotations

from kernmodel.errors import UnsupportedKernelError
from kernmodel.formulas.formula import (
    ONE,
    ZERO,
    Formula,
    constant,
    maximum,
    minimum,
    of_atom,
    pushed_in,
    size,
    variable,
)
from kernmodel.source.model import ROW_LENGTH, Loop
from kernmodel.source.parse.c_types import INT
from kernmodel.source.parse.chains import Level, stepped_variable
from kernmodel.source.parse.scope import Scope
from kernmodel.source.parse.syntax import Node, c_ast, walk

_SUPPORTED = "write the loop as for (i = start; i < stop; i += constant), with <, <=, >, >= or != in either direction"
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


def loop_steps(nest: tuple[Level, ...]) -> tuple[Node, ...]:
    """The expressions by which the loops of the nest step."""
    return tuple(step for level in nest if (step := _step_parts(level.statement)[1]) is not None)


def read_loop(statement: Node, scope: Scope) -> Loop:
    """The normalised loop of a `for` statement; its variable gets its symbol in the scope.

    Raises:
        UnsupportedKernelError: a form of start, condition or step that is not covered.
    """
    name, start_node = _start(statement, scope)
    for inner in walk(statement.stmt):
        if isinstance(inner, c_ast.For) and _step_parts(inner)[0] == name:
            raise scope.unsupported(f"two loops of the nest use the variable {name}", inner, "give each its own")
    row = _row_start(statement, name, start_node, scope)
    start = ZERO if row is not None else _start_value(statement, name, start_node, scope)
    if name in start.free_symbols:
        raise scope.unsupported(f"the loop over {name} starts from another variable {name}", statement, _SUPPORTED)
    scope.values[name] = variable(name) if row is None else row + variable(name)
    step = _step(statement, name, scope)
    for written, node in scope.program.writes(statement.stmt):
        if written == name:
            raise scope.unsupported(f"the loop variable {name} is changed in the loop's body", node, _SUPPORTED)
    _refuse_moving_bound(statement, name, scope)
    stop = None
    if row is not None and step == 1:
        stop = size(ROW_LENGTH)
        scope.rows[name] = statement
    elif statement.cond is not None:
        stop = _stop(statement.cond, name, step, scope)
    if stop is None:
        raise scope.unsupported(f"the loop over {name} has no condition", statement, _SUPPORTED)
    loop = Loop(name, start, stop, step, scope.location(statement))
    _refuse_curved_bounds(loop, statement, scope)
    return loop


def _start_value(statement: Node, name: str, node: Node, scope: Scope) -> Formula:
    """Where a loop starts; if that alternates within one step, as in red-black sweeps, `1 + (j & 1)` by steps of two,
    the first of the values: rows have at most one iteration fewer then."""
    start = scope.index(node)
    turns = [entry for symbol in start.free_symbols if (entry := scope.moved_entry(symbol)) is not None]
    if len(turns) != 1 or turns[0].array or turns[0].modulus is None or not turns[0].modulus.is_integer:
        return pushed_in(scope.integer(node))
    parts = start.linear([turns[0].name])
    factor = parts[0].get(turns[0].name, ZERO) if parts else ZERO
    _, by, direction = _step_parts(statement)
    step = ONE if by is None else scope.integer(by)
    reach = int(turns[0].modulus) - 1
    if not (factor.is_integer and step.is_integer and 0 < abs(int(factor)) * reach < abs(int(step))):
        return pushed_in(scope.integer(node))
    scope.in_turn[name] = scope.location(node)
    first = 0 if (int(factor) > 0) == (direction > 0) else reach
    return pushed_in(start.substitute({turns[0].name: constant(first)}))


def _refuse_moving_bound(statement: Node, name: str, scope: Scope) -> None:
    """Refuse a loop that changes what its condition compares its variable with."""
    if statement.cond is None:
        return
    used = {node.name for node in walk(statement.cond) if isinstance(node, c_ast.ID)} - {name}
    for written, node in scope.program.writes(statement.stmt):
        if written in used:
            text = f"{written}, which bounds the loop over {name}, is changed in the loop's body"
            todo = "write the loop with a bound that stays, or say how many iterations it has with --trip-count"
            raise scope.unsupported(text, node, todo)


def _row_start(statement: Node, name: str, start_node: Node, scope: Scope) -> Formula | None:
    """Where a row of compressed storage begins, if the loop runs over one: its bounds are elements of index arrays that
    other loops move. Rows lie one after the other, all of the same length; None: its bounds are formulas."""
    test = statement.cond
    if not isinstance(test, c_ast.BinaryOp) or test.op not in ("<", "<=", "!="):
        return None
    if getattr(test.left, "name", None) != name:
        return None
    begin, end = scope.index(start_node), scope.index(test.right)
    entries = ((symbol, scope.moved_entry(symbol)) for symbol in begin.free_symbols | end.free_symbols)
    moving = {symbol: entry for symbol, entry in entries if entry is not None and entry.array}  # no quotients
    if not moving:
        return None
    inside = [symbol for symbol in begin.free_symbols if symbol in moving]
    if not inside:
        return None if test.op == "<=" else pushed_in(scope.integer(start_node))
    rest = begin - of_atom(inside[0])
    if len(inside) > 1 or rest.free_symbols:
        return None
    if test.op == "<=" and not any(end + 1 - of_atom(symbol) == rest for symbol in moving):
        return None  # a row that takes the first entry of the next one too
    return size(ROW_LENGTH) * moving[inside[0]].position + rest


def loop_variable(statement: Node) -> str | None:
    """The variable that a `for` steps, None where it steps none."""
    return _step_parts(statement)[0]


def take_repeating(statement: Node, scope: Scope) -> None:
    """Take the variable of a loop that only repeats the nest into the scope: for the nest it is a size."""
    name = stepped_variable(statement)
    if name is not None:
        scope.scalars[name] = INT
        scope.values[name] = size(name)


def _start(statement: Node, scope: Scope) -> tuple[str, Node]:
    init = statement.init
    if isinstance(init, c_ast.DeclList):
        for extra in init.decls[1:]:
            scope.declare(extra)
        scope.declare(init.decls[0])
        if init.decls[0].init is not None:
            return _integer_variable(init.decls[0].name, init.decls[0], scope), init.decls[0].init
    if isinstance(init, c_ast.Assignment) and init.op == "=" and isinstance(init.lvalue, c_ast.ID):
        return _integer_variable(init.lvalue.name, init, scope), init.rvalue
    raise scope.unsupported("the loop does not set one variable to its start value", statement, _SUPPORTED)


def _integer_variable(name: str, node: Node, scope: Scope) -> str:
    declared = scope.scalars.get(name)
    if declared is None:
        raise scope.undeclared(c_ast.ID(name, node.coord))
    if declared.kind != "integer" or not declared.size_bytes:
        scope.refuse_unknown_type(name)
        raise scope.unsupported(f"the loop variable {name} is no integer", node, _SUPPORTED)
    return name


def _step_parts(statement: Node) -> tuple[str | None, Node | None, int]:
    """Variable, step expression (None for ++ and --) and direction of the increment; no variable for other forms."""
    node = getattr(statement, "next", None)
    if (
        isinstance(node, c_ast.UnaryOp)
        and node.op.removeprefix("p") in ("++", "--")
        and isinstance(node.expr, c_ast.ID)
    ):
        return node.expr.name, None, 1 if "+" in node.op else -1
    if not isinstance(node, c_ast.Assignment) or not isinstance(node.lvalue, c_ast.ID):
        return None, None, 0
    name, value = node.lvalue.name, node.rvalue
    if node.op in ("+=", "-="):
        return name, value, 1 if node.op == "+=" else -1
    if node.op == "=" and isinstance(value, c_ast.BinaryOp) and value.op in ("+", "-"):
        if isinstance(value.left, c_ast.ID) and value.left.name == name:
            return name, value.right, 1 if value.op == "+" else -1
        if value.op == "+" and isinstance(value.right, c_ast.ID) and value.right.name == name:
            return name, value.left, 1
    return None, None, 0


def _step(statement: Node, name: str, scope: Scope) -> int:
    variable, expression, direction = _step_parts(statement)
    if variable != name:
        raise scope.unsupported(f"the loop does not step {name} by a constant", statement, _SUPPORTED)
    step = ONE if expression is None else scope.integer(expression)
    if not step.is_integer or not step:
        raise scope.unsupported(f"the step of {name} is not a constant other than 0", statement, _SUPPORTED)
    return direction * int(step)


def _stop(condition: Node, name: str, step: int, scope: Scope) -> Formula:
    """The exclusive bound of a condition; several joined by && give the tightest."""
    if isinstance(condition, c_ast.BinaryOp) and condition.op == "&&":
        tightest = minimum if step > 0 else maximum
        return tightest(_stop(condition.left, name, step, scope), _stop(condition.right, name, step, scope))
    if not isinstance(condition, c_ast.BinaryOp) or condition.op not in _SWAPPED:
        raise scope.unsupported(f"the condition does not compare {name}", condition, _SUPPORTED)
    operator, bound = _bound(condition, name, scope)
    if operator != "!=" and (operator in ("<", "<=")) != (step > 0):
        raise scope.unsupported(
            f"the loop over {name} steps away from its bound ({operator} with step {step})", condition, _SUPPORTED
        )
    if operator in ("<=", ">="):
        return pushed_in(bound + (1 if operator == "<=" else -1))
    return bound


def _bound(condition: Node, name: str, scope: Scope) -> tuple[str, Formula]:
    """The condition as `symbol operator bound`."""
    left, right = pushed_in(scope.integer(condition.left)), pushed_in(scope.integer(condition.right))
    if left == variable(name) and name not in right.free_symbols:
        return condition.op, right
    if right == variable(name) and name not in left.free_symbols:
        return _SWAPPED[condition.op], left
    parts = (left - right).linear([name])
    factor = parts[0].get(name) if parts else None
    if parts is None or factor not in (1, -1):
        raise scope.unsupported(f"the condition does not bound {name} itself", condition, _SUPPORTED)
    return (condition.op, -parts[1]) if factor == 1 else (_SWAPPED[condition.op], parts[1])


def _refuse_curved_bounds(loop: Loop, statement: Node, scope: Scope) -> None:
    """Bounds must be affine in the outer loop variables, or minima and maxima of such."""
    for bound, node in ((loop.start, statement.init), (loop.stop, statement.cond)):
        if not _piecewise_affine(bound):
            raise UnsupportedKernelError(
                f"the bound {bound} of the loop over {loop.variable} is not affine in the outer loop variables",
                where=scope.location(node) if node.coord else loop.location,
                todo="bounds may be sums of constants, sizes and multiples of outer variables, and min or max of such",
            )


def _piecewise_affine(bound: Formula) -> bool:
    if bound.extreme is not None:
        return all(map(_piecewise_affine, bound.extreme.parts))
    return bound.linear([symbol for symbol in bound.free_symbols if not symbol.positive]) is not None
