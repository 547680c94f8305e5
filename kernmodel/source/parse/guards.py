"""Conditions of sizes and loop variables: in how many iterations they hold, counted at the sizes that are known.

A condition is a formula of affine inequalities. One inequality restricts the loop of the innermost variable in it, so
that several together are a nest of their own, whose iterations are counted like those of any other; `||` is counted by
inclusion and exclusion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kernmodel.formulas.formula import Formula, constant, maximum, minimum
from kernmodel.source.model import Loop
from kernmodel.source.nest.counting import TooManyValues, count_iterations, numeric_loops, put_in
from kernmodel.source.parse.inequalities import Condition
from kernmodel.source.parse.scope import Scope
from kernmodel.source.parse.syntax import Node, c_ast
from kernmodel.source.parse.tree import without_casts

_MOST_PARTS = 12
"""Inequalities of a condition that are counted: inclusion and exclusion takes up to 2^n nests."""


def without_null_tests(condition: Node, scope: Scope) -> Node:
    """The condition with 1 in place of each test that holds for pointers to something, 0 of each that holds for null
    pointers: what a nest reads and writes is there. The node itself where there is no such test."""
    if isinstance(condition, c_ast.UnaryOp) and condition.op == "!":
        inner = without_null_tests(condition.expr, scope)
        return condition if inner is condition.expr else c_ast.UnaryOp("!", inner, condition.coord)
    if isinstance(condition, c_ast.BinaryOp) and condition.op in ("&&", "||"):
        sides = [without_null_tests(side, scope) for side in (condition.left, condition.right)]
        same = sides[0] is condition.left and sides[1] is condition.right
        return condition if same else c_ast.BinaryOp(condition.op, *sides, condition.coord)
    if _is_pointer(condition, scope):
        return c_ast.Constant("int", "1", condition.coord)
    if isinstance(condition, c_ast.BinaryOp) and condition.op in ("==", "!="):
        one, other = condition.left, condition.right
        if (_is_pointer(one, scope) and _is_null(other)) or (_is_null(one) and _is_pointer(other, scope)):
            return c_ast.Constant("int", str(int(condition.op == "!=")), condition.coord)
    return condition


def _is_pointer(node: Node, scope: Scope) -> bool:
    return isinstance(node, c_ast.ID) and node.name in scope.arrays


def _is_null(node: Node) -> bool:
    node = without_casts(node)
    return (isinstance(node, c_ast.Constant) and node.value == "0") or (
        isinstance(node, c_ast.ID) and node.name == "NULL"
    )


def iterations_under(conditions: Sequence[Condition], loops: Sequence[Loop], sizes: Mapping[str, int]) -> int | None:
    """In how many iterations of the loops all conditions hold; None where that cannot be counted: a size is not known,
    an inequality is not affine, bounds depend on one another too deeply."""
    expressions = [bound for loop in loops for bound in (loop.start, loop.stop)]
    unknown = {symbol for one in expressions for symbol in one.free_symbols} - {one.variable for one in loops}
    if not unknown <= sizes.keys() or sum(part.size for part in conditions) > _MOST_PARTS:
        return None
    outer = [loop.variable for loop in loops]
    sized = [
        replace(loop, start=put_in(loop.start, sizes, outer), stop=put_in(loop.stop, sizes, outer)) for loop in loops
    ]
    try:
        return _count(sized, list(conditions), sizes)
    except (TooManyValues, OverflowError):
        return None


def _count(loops: Sequence[Loop], conditions: list[Condition], sizes: Mapping[str, int]) -> int | None:
    if not conditions:
        return count_iterations(numeric_loops(loops, {}))
    first, *rest = conditions
    if first.least is not None:
        restricted = _restricted(loops, first.least, sizes)
        return restricted if not isinstance(restricted, list) else _count(restricted, rest, sizes)
    if first.join == "and":
        return _count(loops, [*first.parts, *rest], sizes)
    one, other = first.parts
    counts = [_count(loops, [*part, *rest], sizes) for part in ((one,), (other,), (one, other))]
    known = [count for count in counts if count is not None]
    return known[0] + known[1] - known[2] if len(known) == len(counts) else None


def _restricted(loops: Sequence[Loop], least: Formula, sizes: Mapping[str, int]) -> list[Loop] | int | None:
    """The loops in which an inequality holds; 0: in no iteration, None: not known."""
    symbols = [loop.variable for loop in loops]
    if not least.free_symbols - set(symbols) <= sizes.keys():
        return None
    parts = put_in(least, sizes, symbols).linear(symbols)
    if parts is None or not parts[1].is_integer:
        return None
    number = max((symbols.index(symbol) for symbol, factor in parts[0].items() if factor != 0), default=-1)
    if number < 0:
        return list(loops) if int(parts[1]) >= 0 else 0
    loop, factor = loops[number], int(parts[0][symbols[number]])
    rest = put_in(least, sizes, symbols) - factor * loop.symbol
    if abs(factor) != 1:
        if not rest.is_integer:
            return None
        rest = constant(int(rest) // abs(factor))
    made = _from_below(loop, -rest) if factor > 0 else _from_above(loop, rest)
    return None if made is None else [*loops[:number], made, *loops[number + 1 :]]


def _from_below(loop: Loop, low: Formula) -> Loop | None:
    """The loop over values from `low` on."""
    if loop.step < 0:
        return replace(loop, stop=maximum(loop.stop, low - 1))
    start = _first(loop, low, maximum)
    return None if start is None else replace(loop, start=start)


def _from_above(loop: Loop, high: Formula) -> Loop | None:
    """The loop over values up to `high`."""
    if loop.step > 0:
        return replace(loop, stop=minimum(loop.stop, high + 1))
    start = _first(loop, high, minimum)
    return None if start is None else replace(loop, start=start)


def _first(loop: Loop, bound: Formula, pick: Callable[..., Formula]) -> Formula | None:
    """The first value of a loop that is not before a bound."""
    if abs(loop.step) == 1:
        return pick(loop.start, bound)
    if not (loop.start.is_integer and bound.is_integer):
        return None
    steps = -((int(loop.start) - int(bound)) // loop.step)
    return loop.start + loop.step * max(0, steps)
