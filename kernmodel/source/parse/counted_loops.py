"""Loops that count as plain `for` loops, rewritten in the syntax tree before anything else reads them.

- `while (i < n) { …; i++; }`, `do { …; i++; } while (i < n);` and `for (; i < n; i++)`, where the variable is set
  before the loop in the same block;
- `while (n--)`, `for (i = n; i--;)`, `while (i-- > 0)`: the value is tested, then made smaller before the body;
- `for (i = 0, p = a; i < n; i++, p++)`: what is beside the loop's own variable stands before the loop, or ends its
  body.

Loops that are none of these stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.tree import LOOPS, STEPS, Node, slots, walk

_COMPARED = ("<", "<=", ">", ">=", "!=")


def rewrite_loops(function: Node) -> None:
    """Rewrite the loops in a function that count."""
    parameters = getattr(function.decl.type, "args", None)
    known = {part.name for part in (parameters.params if parameters else ()) if getattr(part, "name", None)}
    _inside(function.body, known, function)


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
    extra = [part for part in (getattr(node, "next", None),) if part is not None]
    items = [*_items(node.stmt), *extra]
    items = [*items, node.cond] if isinstance(node, c_ast.DoWhile) else [node.cond, *items]
    body = c_ast.Compound([item for item in items if item is not None], node.coord)
    test, step = c_ast.BinaryOp("<", variable, count, node.coord), c_ast.UnaryOp("p++", variable, node.coord)
    return c_ast.For(c_ast.DeclList([start], node.coord), test, step, body, node.coord)


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
    if isinstance(node, c_ast.For):
        return _split(node, before, parameters, function)
    if isinstance(node, (c_ast.While, c_ast.DoWhile)):
        found = _while(node, before, parameters, function)
        return [node] if found is None else [found]
    return [node]


def _split(node: Node, before: Sequence[Node], parameters: set[str], function: Node) -> list[Node]:
    """A `for` with the parts beside its own variable outside of it."""
    result: list[Node] = []
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
    down = _counted_down(node.cond)
    if node.next is None and down is not None:
        start = node.init if node.init is not None else _start_of(down, before, parameters, function)
        found = None if start is None else _down(node, down, start)
        return [*result, node if found is None else found]
    if node.init is None and name is not None and node.next is not None and _stepped(node.next) == name:
        node.init = _start_of(name, before, parameters, function)
    return [*result, node]


def _while(node: Node, before: Sequence[Node], parameters: set[str], function: Node) -> Node | None:
    """A `while` or `do` that counts as a `for`; None: it does not."""
    down = _counted_down(node.cond)
    if down is not None and isinstance(node, c_ast.While):
        start = _start_of(down, before, parameters, function)
        if start is None and down in parameters:
            return _down_from_parameter(node, down, function)
        return None if start is None else _down(node, down, start)
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
    start = _start_of(name, before, parameters, function)
    if start is None:
        return None
    body = c_ast.Compound([item for item in items if item is not step], node.coord)
    return c_ast.For(start, node.cond, step, body, node.coord)


def _down(node: Node, name: str, start: Node) -> Node | None:
    """`while (i-- > 0)`: from the value before, less one, down to 0."""
    if any(_stepped(part) == name or _set(part) == name for part in walk(node.stmt)):
        return None
    value = start.init if isinstance(start, c_ast.Decl) else getattr(start, "rvalue", None)
    if isinstance(start, c_ast.DeclList) and len(start.decls) == 1:
        value = start.decls[0].init
    if value is None:
        return None
    one, variable = c_ast.Constant("int", "1", node.coord), c_ast.ID(name, node.coord)
    less = c_ast.BinaryOp("-", value, one, node.coord)
    if isinstance(start, c_ast.DeclList):
        first: Node = copy(start)
        first.decls = [copy(start.decls[0])]
        first.decls[0].init = less
    else:
        first = c_ast.Assignment("=", variable, less, node.coord)
    test = c_ast.BinaryOp(">=", variable, c_ast.Constant("int", "0", node.coord), node.cond.coord)
    return c_ast.For(first, test, c_ast.UnaryOp("p--", variable, node.coord), node.stmt, node.coord)


def _down_from_parameter(node: Node, name: str, function: Node) -> Node | None:
    """`while (n--)` of a parameter that nothing else names: another variable counts, and the parameter is a size."""
    uses = sum(isinstance(part, c_ast.ID) and part.name == name for part in walk(function.body))
    if uses != 1:
        return None
    own = f"{name}_left"
    kind = c_ast.TypeDecl(own, [], None, c_ast.IdentifierType(["long"]))
    start = c_ast.Decl(own, [], [], [], [], kind, c_ast.ID(name, node.coord), None, node.coord)
    return _down(node, own, c_ast.DeclList([start], node.coord))


def _start_of(name: str, before: Sequence[Node], parameters: set[str], function: Node) -> Node | None:
    """Where the block sets a variable before a loop: as the start of the loop."""
    for number in range(len(before) - 1, -1, -1):
        item = before[number]
        if isinstance(item, (*LOOPS, c_ast.If, c_ast.Switch)):
            if any(_set(part) == name or _stepped(part) == name for part in walk(item)):
                return None
            continue
        if _set(item) != name:
            continue
        value = item.init if isinstance(item, c_ast.Decl) else item.rvalue
        used = {part.name for part in walk(value) if isinstance(part, c_ast.ID)}
        if any(_set(part) in used or _stepped(part) in used for later in before[number + 1 :] for part in walk(later)):
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
    return getattr(condition.left, "name", None) or getattr(condition.right, "name", None)


def _is_comparison(condition: Node | None) -> bool:
    return isinstance(condition, c_ast.BinaryOp) and condition.op in _COMPARED


def _counted_down(condition: Node | None) -> str | None:
    """The variable of `i--`, `i-- > 0` and `i-- != 0`."""
    if isinstance(condition, c_ast.BinaryOp) and condition.op in (">", "!="):
        if not isinstance(condition.right, c_ast.Constant) or condition.right.value != "0":
            return None
        condition = condition.left
    if isinstance(condition, c_ast.UnaryOp) and condition.op == "p--" and isinstance(condition.expr, c_ast.ID):
        return str(condition.expr.name)
    return None


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
