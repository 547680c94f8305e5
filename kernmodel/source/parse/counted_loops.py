"""Loops that count as plain `for` loops, rewritten in the syntax tree before anything else reads them.

- `while (i < n) { …; i++; }`, `do { …; i++; } while (i < n);` and `for (; i < n; i++)`, where the variable is set
  before the loop in the same block, also by a loop that counts with it (the rest of an unrolled loop), or is a
  parameter that nothing else changes;
- `while (n--)`, `for (i = n; --i >= 0; p++)`, `while (++i < n)`, `do { … } while (--n);`: a test that steps its
  variable;
- `for (p = a; p < end; ++p)`, `while (first != last) … *first++ …`: as `walking_loops` says;
- `for (i = 0, p = a; i < n; i++, p++)`: what is beside the loop's own variable stands before the loop, or ends its
  body;
- `for (i = 0, j = n - 1; i < j; i++, j--)`: two variables that meet; the bound is where the first one is then.

Loops that are none of these stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.preprocess import integer_literal
from kernmodel.source.parse.tree import COMPARED, LOOPS, STEPS, Node, slots, walk
from kernmodel.source.parse.walking_loops import as_counting, pointers_of
from kernmodel.value_types import dataclass


def rewrite_loops(function: Node) -> None:
    """Rewrite the loops in a function that count."""
    parameters = getattr(function.decl.type, "args", None)
    known = {part.name for part in (parameters.params if parameters else ()) if getattr(part, "name", None)}
    _count_in_turn(known - pointers_of(function), function)
    _inside(function.body, known - pointers_of(function), function)


def _count_in_turn(parameters: set[str], function: Node) -> None:
    """Let parameters that several loops count with, one after the other, be variables: what one loop leaves, the next
    one starts from."""
    loops = [part for part in walk(function.body) if isinstance(part, LOOPS)]
    counting = [name for name in sorted(parameters) if sum(_counts_with(loop, name) for loop in loops) > 1]
    for name in counting:
        own, coord = f"{name}_left", function.body.coord
        for part in walk(function.body):
            if isinstance(part, c_ast.ID) and part.name == name:
                part.name = own
        kind = c_ast.TypeDecl(own, [], None, c_ast.IdentifierType(["long"]))
        start = c_ast.Decl(own, [], [], [], [], kind, c_ast.ID(name, coord), None, coord)
        function.body.block_items.insert(0, start)


def _counts_with(loop: Node, name: str) -> bool:
    """Whether a loop tests a variable and steps it."""
    stepping = _stepping(loop.cond)
    return stepping.name == name if stepping else _tested(loop.cond) == name and name in map(_stepped, walk(loop))


def state_trips(function: Node, trips: Callable[[Node], int | None]) -> None:
    """Let loops have as many iterations as are stated.

    Args:
        trips: the number for a loop; None where nothing is stated.
    """
    for node in list(walk(function.body)):
        for slot in slots(node):
            child = getattr(node, slot)
            if isinstance(child, LOOPS) and (number := trips(child)) is not None:
                setattr(node, slot, _with_trips(child, number))
            elif isinstance(child, list):
                stated = [(part, trips(part) if isinstance(part, LOOPS) else None) for part in child]
                setattr(node, slot, [part if number is None else _with_trips(part, number) for part, number in stated])


def _with_trips(node: Node, number: int) -> Node:
    """A loop with this number of iterations: of its own variable, where it has one, else of one that counts them."""
    count = c_ast.Constant("int", str(number), node.coord)
    if isinstance(node, c_ast.For) and node.init is not None and node.next is not None:
        first = node.init.decls[0] if isinstance(node.init, c_ast.DeclList) else node.init
        name, start = _set(first), first.init if isinstance(first, c_ast.Decl) else getattr(first, "rvalue", None)
        if name is not None and start is not None and _stepped(node.next) == name:
            up = "+" in node.next.op or (node.next.op == "=" and node.next.rvalue.op == "+")
            step = getattr(node.next, "rvalue", None)
            if isinstance(step, c_ast.BinaryOp) and node.next.op == "=":
                step = step.right if getattr(step.left, "name", None) == name else step.left
            length = count if step is None else c_ast.BinaryOp("*", count, step, node.coord)
            end = c_ast.BinaryOp("+" if up else "-", start, length, node.coord)
            node.cond = c_ast.BinaryOp("<" if up else ">", c_ast.ID(name, node.coord), end, node.coord)
            return node
    own = f"iteration_{node.coord.line}"
    kind = c_ast.TypeDecl(own, [], None, c_ast.IdentifierType(["long"]))
    start = c_ast.Decl(own, [], [], [], [], kind, c_ast.Constant("int", "0", node.coord), None, node.coord)
    variable = c_ast.ID(own, node.coord)
    init, after = getattr(node, "init", None), getattr(node, "next", None)
    first = getattr(init, "decls", None) or getattr(init, "exprs", None) or ([] if init is None else [init])
    extra = getattr(after, "exprs", None) or ([] if after is None else [after])
    items = [*_items(node.stmt), *extra]
    items = [*items, node.cond] if isinstance(node, c_ast.DoWhile) else [node.cond, *items]
    body = c_ast.Compound([item for item in items if item is not None], node.coord)
    test, step = c_ast.BinaryOp("<", variable, count, node.coord), c_ast.UnaryOp("p++", variable, node.coord)
    counting = c_ast.For(c_ast.DeclList([start], node.coord), test, step, body, node.coord)
    return c_ast.Compound([*first, counting], node.coord) if first else counting


def _inside(node: Node, parameters: set[str], function: Node) -> None:
    """Rewrite the loops below a node, the innermost first."""
    for _, child in node.children():
        _inside(child, parameters, function)
    if isinstance(node, c_ast.Compound) and node.block_items:
        items: list[Node] = []
        for item in node.block_items:
            items += _rewritten(item, items, parameters, function)
        node.block_items = items
    elif isinstance(node, (*LOOPS, c_ast.If)):
        for slot in ("stmt", "iftrue", "iffalse"):
            body = getattr(node, slot, None)
            if isinstance(body, LOOPS):
                found = _rewritten(body, [], parameters, function)
                setattr(node, slot, found[0] if len(found) == 1 else c_ast.Compound(found, body.coord))


def _rewritten(node: Node, before: Sequence[Node], parameters: set[str], function: Node) -> list[Node]:
    """What a statement of a block becomes; `before` stands before it in the block."""
    if isinstance(node, LOOPS) and (walking := as_counting(node, before, function)) is not None:
        return walking
    if isinstance(node, c_ast.For):
        return _split(node, before, parameters, function)
    if isinstance(node, (c_ast.While, c_ast.DoWhile)):
        found = _while(node, before, parameters, function)
        return [node] if found is None else [found]
    return [node]


def _split(node: Node, before: Sequence[Node], parameters: set[str], function: Node) -> list[Node]:
    """A `for` with the parts beside its own variable outside of it."""
    result: list[Node] = []
    if isinstance(node.cond, c_ast.ID) and node.next is not None and _stepped(node.next) == node.cond.name:
        node.cond = _binary("!=", node.cond, 0)
    name = _tested(node.cond)
    if isinstance(node.next, c_ast.ExprList) and name is not None and not _continues(node.stmt):
        own = [part for part in node.next.exprs if _stepped(part) == name]
        others = [part for part in node.next.exprs if _stepped(part) != name]
        if len(own) == 1:
            node.next = own[0]
            node.stmt = c_ast.Compound([*_items(node.stmt), *others], node.coord)
    several = getattr(node.init, "exprs", None) or getattr(node.init, "decls", None) or ()
    own = [part for part in several if _set(part) == name]
    if name is not None and len(several) > 1 and len(own) == 1:
        result = [part for part in several if part is not own[0]]
        node.init = own[0] if isinstance(node.init, c_ast.ExprList) else c_ast.DeclList(own, node.init.coord)
    stepping = _stepping(node.cond)
    if stepping is not None and (node.next is None or not _continues(node.stmt)):
        beside = () if node.next is None else (getattr(node.next, "exprs", None) or (node.next,))
        if not any(_stepped(part) == stepping.name for part in beside):
            node.stmt, node.next = c_ast.Compound([*_items(node.stmt), *beside], node.coord), None
            return [*result, _stepping_in_test(node, stepping, before, parameters, function) or node]
    if node.init is None and name is not None and node.next is not None and _stepped(node.next) == name:
        node.init = _start_of(name, before) or _own_counter(node, name, parameters, function)
    _bound_where_met(node, [*before, *result])
    return [*result, node]


def _while(node: Node, before: Sequence[Node], parameters: set[str], function: Node) -> Node | None:
    """A `while` or `do` that counts as a `for`; None: it does not."""
    stepping = _stepping(node.cond)
    if stepping is not None:
        return _stepping_in_test(node, stepping, before, parameters, function)
    name = _tested(node.cond)
    items = _items(node.stmt)
    if name is None or _continues(node.stmt) or not items or not _is_comparison(node.cond):
        return None
    if any(isinstance(part, c_ast.Decl) and part.name == name and _is_floating(part) for part in walk(function)):
        return None
    places = [number for number, item in enumerate(items) if _stepped(item) == name]
    writes = [part for part in walk(node.stmt) if _stepped(part) == name or _set(part) == name]
    if len(places) != 1 or len(writes) != 1:
        return None
    step, after = items[places[0]], items[places[0] + 1 :]
    if any(isinstance(part, c_ast.ID) and part.name == name for item in after for part in walk(item)):
        return None
    start = _start_of(name, before) or _own_counter(node, name, parameters, function)
    if start is None:
        return None
    body = c_ast.Compound([item for item in items if item is not step], node.coord)
    loop = c_ast.For(start, node.cond, step, body, node.coord)
    _bound_where_met(loop, before)
    return loop


def _bound_where_met(loop: Node, before: Sequence[Node]) -> None:
    """Bound a `for` whose variable is compared with another one that comes towards it, by where the two meet."""
    test, own = loop.cond, _amount(loop.next)
    if not _is_comparison(test) or not own or getattr(test.left, "name", None) != _stepped(loop.next):
        return
    other = getattr(test.right, "name", "")
    writes = [part for part in walk(loop.stmt) if other and other in (_stepped(part), _set(part))]
    towards = _amount(writes[0]) if len(writes) == 1 and writes[0] in _items(loop.stmt) else 0
    first = loop.init.decls[0] if isinstance(loop.init, c_ast.DeclList) else loop.init
    start = getattr(first, "init", None) or getattr(first, "rvalue", None)
    met = _start_of(other, before)
    up = own > 0
    if towards * own >= 0 or start is None or met is None or test.op not in (("<", "<=") if up else (">", ">=")):
        return
    closer = abs(own) + abs(towards)
    apart = _binary("-", met.rvalue, start) if up else _binary("-", start, met.rvalue)
    trips = _binary("/", _binary("+", apart, closer - (1 if test.op in ("<", ">") else 0)), closer)
    end = _binary("+" if up else "-", start, _binary("*", trips, abs(own)))
    loop.cond = _binary("<" if up else ">", test.left, end)


def _amount(node: Node | None) -> int:
    """By how much a statement advances a variable; 0 where that is no number."""
    if isinstance(node, c_ast.UnaryOp) and node.op in STEPS:
        return 1 if "+" in node.op else -1
    amount = getattr(node, "rvalue", None) if getattr(node, "op", "") in ("+=", "-=") else None
    number = integer_literal(amount.value) if isinstance(amount, c_ast.Constant) else None
    return 0 if number is None or node is None else number if node.op == "+=" else -number


@dataclass(frozen=True, slots=True)
class _Stepping:
    """A condition that steps a variable, by 1 or −1, and compares what it is then with a bound."""

    name: str
    by: int
    compared: str
    bound: Node


def _stepping_in_test(
    node: Node, stepping: _Stepping, before: Sequence[Node], parameters: set[str], function: Node
) -> Node | None:
    """A loop whose condition steps its variable, as a `for` from one step behind the value before (of a `do`, from that
    value)."""
    name = stepping.name
    if any(name in (_stepped(part), _set(part)) for part in (*walk(node.stmt), *walk(stepping.bound))):
        return None
    start = getattr(node, "init", None) or _start_of(name, before)
    if start is None:
        start = _own_counter(node, name, parameters, function)
    declared = start.decls[0] if isinstance(start, c_ast.DeclList) and len(start.decls) == 1 else None
    value = getattr(start, "rvalue", None) if declared is None else declared.init
    if start is None or value is None:
        return None
    variable = c_ast.ID(getattr(declared, "name", name), node.coord)
    stepped = value if isinstance(node, c_ast.DoWhile) else _binary("+" if stepping.by > 0 else "-", value, 1)
    if declared is None:
        first: Node = c_ast.Assignment("=", variable, stepped, node.coord)
    else:
        first = copy(start)
        first.decls = [copy(declared)]
        first.decls[0].init = stepped
    test = _binary(stepping.compared, variable, stepping.bound)
    return c_ast.For(first, test, c_ast.UnaryOp("p++" if stepping.by > 0 else "p--", variable), node.stmt, node.coord)


def _own_counter(node: Node, name: str, parameters: set[str], function: Node) -> Node | None:
    """The start of a loop that counts with a parameter: another variable counts in its place, which then is a size.

    None where something else writes the parameter, uses it behind the loop, or a loop around repeats this one.
    """
    parts = list(walk(function.body))
    place = next((number for number, part in enumerate(parts) if part is node), None)
    if name not in parameters or place is None:
        return None
    inside = {id(part) for part in walk(node)}
    outside = [part for part in parts[place:] if id(part) not in inside]
    writes = [part for part in parts if id(part) not in inside and name in (_set(part), _stepped(part))]
    used = [part for part in outside if isinstance(part, c_ast.ID) and part.name == name]
    repeated = any(isinstance(part, LOOPS) and any(one is node for one in walk(part)) for part in parts[:place])
    if writes or used or repeated:
        return None
    own = f"{name}_left"
    for part in walk(node):
        if isinstance(part, c_ast.ID) and part.name == name:
            part.name = own
    kind = c_ast.TypeDecl(own, [], None, c_ast.IdentifierType(["long"]))
    start = c_ast.Decl(own, [], [], [], [], kind, c_ast.ID(name, node.coord), None, node.coord)
    return c_ast.DeclList([start], node.coord)


def _binary(operator: str, left: Node, right: Node | int) -> Node:
    other = c_ast.Constant("int", str(right), left.coord) if isinstance(right, int) else right
    return c_ast.BinaryOp(operator, left, other, left.coord)


def _left_by(loop: Node, name: str) -> Node | None:
    """What a variable is after a `for` that counts with it by a number, as a C expression; None of other loops.

    The loop is taken to reach its bound from its start.
    """
    ends = (c_ast.Break, c_ast.Return, c_ast.Goto)
    written = [part for part in walk(loop.stmt) if name in (_set(part), _stepped(part))]
    if not isinstance(loop, c_ast.For) or written or any(isinstance(part, ends) for part in walk(loop.stmt)):
        return None
    start, left = getattr(loop.init, "rvalue", None), getattr(loop.cond, "left", None)
    bound = getattr(loop.cond, "right", None)
    length, compared = _amount(loop.next), getattr(loop.cond, "op", "")
    if _set(loop.init) != name or start is None or bound is None or _stepped(loop.next) != name or not length:
        return None
    beyond = {"<=": 1, ">=": -1}.get(compared, 0)
    if _tested(loop.cond) != name or compared not in (("<", "<=", "!=") if length > 0 else (">", ">=", "!=")):
        return None
    end = _binary("+" if beyond > 0 else "-", bound, 1) if beyond else bound
    if isinstance(left, c_ast.BinaryOp):
        end = _binary("-" if left.op == "+" else "+", end, left.right)
    if abs(length) == 1:
        return end
    apart = _binary("-", end, start) if length > 0 else _binary("-", start, end)
    trips = _binary("/", _binary("+", apart, abs(length) - 1), abs(length))
    return _binary("+" if length > 0 else "-", start, _binary("*", trips, abs(length)))


def _start_of(name: str, before: Sequence[Node]) -> Node | None:
    """Where the block sets a variable before a loop: as the start of the loop."""
    for number in range(len(before) - 1, -1, -1):
        item = before[number]
        value: Node | None
        if isinstance(item, (*LOOPS, c_ast.If, c_ast.Switch)):
            if not any(name in (_set(part), _stepped(part)) for part in walk(item)):
                continue
            value = _left_by(item, name) if isinstance(item, LOOPS) else None
            if value is None:
                return None
        elif _set(item) == name:
            value = item.init if isinstance(item, c_ast.Decl) else item.rvalue
        else:
            continue
        used = {part.name for part in walk(value) if isinstance(part, c_ast.ID)}
        since = before[number:] if isinstance(item, LOOPS) else before[number + 1 :]
        if any({_set(part), _stepped(part)} & used for later in since for part in walk(later)):
            return None
        return c_ast.Assignment("=", c_ast.ID(name, item.coord), value, item.coord)
    return None


def _is_floating(declaration: Node) -> bool:
    kind = getattr(declaration.type, "type", None)
    return isinstance(kind, c_ast.IdentifierType) and not {"float", "double"}.isdisjoint(kind.names)


def _items(node: Node) -> list[Node]:
    return list(node.block_items or ()) if isinstance(node, c_ast.Compound) else [node]


def _tested(condition: Node | None) -> str | None:
    """The variable that a condition compares: the left side of its first comparison, or its right side."""
    while isinstance(condition, c_ast.BinaryOp) and condition.op == "&&":
        condition = condition.left
    if not _is_comparison(condition):
        return None
    assert condition is not None
    left = condition.left
    if isinstance(left, c_ast.BinaryOp) and left.op in ("+", "-") and isinstance(left.right, c_ast.Constant):
        left = left.left
    return getattr(left, "name", None) or getattr(condition.right, "name", None)


def _is_comparison(condition: Node | None) -> bool:
    return isinstance(condition, c_ast.BinaryOp) and condition.op in COMPARED


def _stepping(condition: Node | None) -> _Stepping | None:
    """What `i--`, `i-- > 0`, `--i >= 0`, `++i < n` and `i++ != n` step; None of what steps away from its bound."""
    compared, left, bound = "!=", condition, None
    if isinstance(condition, c_ast.BinaryOp) and condition.op in COMPARED:
        compared, left, bound = condition.op, condition.left, condition.right
    if not isinstance(left, c_ast.UnaryOp) or left.op not in STEPS or not isinstance(left.expr, c_ast.ID):
        return None
    by = 1 if "+" in left.op else -1
    if compared == "!=":
        compared = "<" if by > 0 else ">"
    if (compared in ("<", "<=")) != (by > 0):
        return None
    bound = c_ast.Constant("int", "0", left.coord) if bound is None else bound
    if left.op.startswith("p"):  # the value before the step is compared
        bound = _binary("+" if by > 0 else "-", bound, 1)
    return _Stepping(str(left.expr.name), by, compared, bound)


def _stepped(node: Node) -> str | None:
    """The variable that an expression advances."""
    if isinstance(node, c_ast.UnaryOp) and node.op in STEPS:
        return getattr(node.expr, "name", None)
    if not isinstance(node, c_ast.Assignment) or not isinstance(node.lvalue, c_ast.ID):
        return None
    name = str(node.lvalue.name)
    if node.op in ("+=", "-="):
        return name
    value = node.rvalue
    if node.op != "=" or not isinstance(value, c_ast.BinaryOp) or value.op not in ("+", "-"):
        return None
    sides = (value.left, value.right) if value.op == "+" else (value.left,)
    return name if any(getattr(side, "name", None) == name for side in sides) else None


def _set(node: Node) -> str | None:
    """The variable that a statement sets."""
    if isinstance(node, c_ast.Decl) and node.init is not None:
        return str(node.name)
    if isinstance(node, c_ast.Assignment) and isinstance(node.lvalue, c_ast.ID) and _stepped(node) is None:
        return str(node.lvalue.name)
    return None


def _continues(node: Node) -> bool:
    """Whether a `continue` may pass over what stands at the end of a body, or a call may do anything."""
    return any(isinstance(part, c_ast.Continue) for part in walk(node))
