"""Integers that wrap around, rewritten as ones that advance for ever, of which the remainder is used.

`k = (k + 1) % n;`, `if (++k == n) k = 0;`, `k++; if (k >= n) k = 0;`, `k = k == n - 1 ? 0 : k + 1;`,
`k += c; if (k >= n) k -= n;`, and for two places in turn `t = 1 - t;`, `t ^= 1;`, `t = !t;`: each becomes an advance,
and where `k` is used stands `k % n`. What `k` is set to outside of the loop is taken to be less than `n`, as it must be
for the code to make sense.
"""

from __future__ import annotations

from collections.abc import Sequence

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.tree import LOOPS, STEPS, Node, slots, walk, written, written_names
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class _Wrap:
    """An advance of a variable that wraps around at a modulus, and how many statements of the block it takes."""

    name: str
    amount: Node
    modulus: Node
    statements: int = 1


def unwrap(function: Node) -> None:
    """Rewrite the integers that wrap around in the loops of a function."""
    for loop in [node for node in walk(function.body) if isinstance(node, LOOPS)]:
        for block in [node for node in walk(loop.stmt) if isinstance(node, c_ast.Compound)]:
            for place, wrap in list(_wraps(block.block_items or ())):
                if _alone(wrap, block, place, loop, function):
                    _rewrite(wrap, block, place, function)


def _wraps(items: Sequence[Node]) -> list[tuple[int, _Wrap]]:
    """The advances that wrap around in a block, the last first, so that places stay."""
    found = []
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else None
        wrap = _by_remainder(item) or _in_turn(item) or _chosen(item) or _reset(item, None) or _stepped(item, following)
        if wrap is not None:
            found.append((place, wrap))
    return found[::-1]


def _alone(wrap: _Wrap, block: Node, place: int, loop: Node, function: Node) -> bool:
    """Whether nothing else in the loop writes the variable or its modulus, and nothing elsewhere advances it."""
    own = {id(node) for item in block.block_items[place : place + wrap.statements] for node in walk(item)}
    names = {node.name for node in walk(wrap.modulus) if isinstance(node, c_ast.ID)}
    if wrap.name in names or any(name in names for name, _ in written_names(loop)):
        return False
    if any(name == wrap.name and id(node) not in own for name, node in written_names(loop)):
        return False
    others = [node for name, node in written_names(function) if name == wrap.name and id(node) not in own]
    integer = any(isinstance(node, c_ast.Decl) and node.name == wrap.name and _whole(node) for node in walk(function))
    return integer and all(isinstance(node, c_ast.Decl) or getattr(node, "op", "") == "=" for node in others)


def _whole(declaration: Node) -> bool:
    kind = getattr(declaration.type, "type", None)
    return isinstance(kind, c_ast.IdentifierType) and not {"float", "double"} & set(kind.names)


def _rewrite(wrap: _Wrap, block: Node, place: int, function: Node) -> None:
    _use_remainders(function.body, wrap)
    coord = block.block_items[place].coord
    advance = c_ast.Assignment("+=", c_ast.ID(wrap.name, coord), wrap.amount, coord)
    block.block_items[place : place + wrap.statements] = [advance]


def _use_remainders(node: Node, wrap: _Wrap) -> None:
    """Put `k % n` in the place of `k`, but where it is set."""
    for slot in slots(node):
        child = getattr(node, slot)
        if slot == "lvalue" and isinstance(child, c_ast.ID):
            continue
        if isinstance(child, list):
            setattr(node, slot, [_remainder(part, wrap) for part in child])
        elif isinstance(child, c_ast.Node):
            setattr(node, slot, _remainder(child, wrap))


def _remainder(node: Node, wrap: _Wrap) -> Node:
    if isinstance(node, c_ast.ID) and node.name == wrap.name:
        return c_ast.BinaryOp("%", node, wrap.modulus, node.coord)
    if isinstance(node, c_ast.Node):
        _use_remainders(node, wrap)
    return node


def _by_remainder(item: Node) -> _Wrap | None:
    """`k = (k + c) % n;`"""
    name, value = _assigned(item)
    if name is None or not isinstance(value, c_ast.BinaryOp) or value.op != "%":
        return None
    inner = value.left
    if not isinstance(inner, c_ast.BinaryOp) or inner.op != "+":
        return None
    for own, amount in ((inner.left, inner.right), (inner.right, inner.left)):
        if _is(own, name) and not any(_is(part, name) for part in walk(amount)):
            return _Wrap(name, amount, value.right)
    return None


def _in_turn(item: Node) -> _Wrap | None:
    """`t = 1 - t;`, `t ^= 1;`, `t = !t;`"""
    one, two = c_ast.Constant("int", "1", item.coord), c_ast.Constant("int", "2", item.coord)
    if isinstance(item, c_ast.Assignment) and item.op == "^=" and _number(item.rvalue, "1"):
        return _Wrap(str(item.lvalue.name), one, two) if isinstance(item.lvalue, c_ast.ID) else None
    name, value = _assigned(item)
    turned = isinstance(value, c_ast.UnaryOp) and value.op == "!" and _is(value.expr, name)
    less = isinstance(value, c_ast.BinaryOp) and value.op == "-" and _number(value.left, "1") and _is(value.right, name)
    return _Wrap(name, one, two) if name is not None and (turned or less) else None


def _chosen(item: Node) -> _Wrap | None:
    """`k = k == n - 1 ? 0 : k + 1;`, `k = k + 1 < n ? k + 1 : 0;`"""
    name, value = _assigned(item)
    if name is None or not isinstance(value, c_ast.TernaryOp) or not isinstance(value.cond, c_ast.BinaryOp):
        return None
    test, yes, no = value.cond, value.iftrue, value.iffalse
    if test.op in ("<", "!="):
        yes, no = no, yes
    elif test.op not in ("==", ">="):
        return None
    if not _number(yes, "0") or not _one_more(no, name):
        return None
    if _one_more(test.left, name):
        return _Wrap(name, no.right, test.right)
    last = test.right
    if _is(test.left, name) and isinstance(last, c_ast.BinaryOp) and last.op == "-" and _number(last.right, "1"):
        return _Wrap(name, no.right, last.left)
    return None


def _reset(item: Node, stepped: str | None, by: Node | None = None) -> _Wrap | None:
    """`if (++k == n) k = 0;`, or after a step `if (k == n) k = 0;`; `k -= n` in place of `k = 0` also after steps by
    more than one."""
    test = item.cond if isinstance(item, c_ast.If) and item.iffalse is None else None
    if not isinstance(test, c_ast.BinaryOp) or test.op not in (("==", ">=") if by is None else (">=",)):
        return None
    items = (item.iftrue.block_items or []) if isinstance(item.iftrue, c_ast.Compound) else [item.iftrue]
    name, value = _assigned(items[0]) if len(items) == 1 else (None, None)
    if not (by is None and name is not None and _number(value, "0")):
        name = _lessened(items[0], test.right) if len(items) == 1 else None
    if name is None:
        return None
    moves = isinstance(test.left, c_ast.UnaryOp) and test.left.op == "++" and _is(test.left.expr, name)
    if not (moves if stepped is None else stepped == name and _is(test.left, name)):
        return None
    return _Wrap(name, by or c_ast.Constant("int", "1", item.coord), test.right)


def _lessened(item: Node, modulus: Node) -> str | None:
    """The variable of `k -= n` and `k = k - n`."""
    if not isinstance(item, c_ast.Assignment) or not isinstance(item.lvalue, c_ast.ID):
        return None
    amount = item.rvalue if item.op == "-=" else None
    if item.op == "=" and isinstance(item.rvalue, c_ast.BinaryOp) and item.rvalue.op == "-":
        amount = item.rvalue.right if _is(item.rvalue.left, item.lvalue.name) else None
    return None if amount is None or written(amount) != written(modulus) else str(item.lvalue.name)


def _stepped(item: Node, following: Node | None) -> _Wrap | None:
    """`k++; if (k == n) k = 0;`, `k += c; if (k >= n) k -= n;`"""
    by, name = None, ""
    if isinstance(item, c_ast.UnaryOp) and item.op in STEPS and "+" in item.op:
        name = getattr(item.expr, "name", "")
    elif isinstance(item, c_ast.Assignment) and item.op == "+=":
        by, name = item.rvalue, getattr(item.lvalue, "name", "")
    found = _reset(following, name, by) if name and following is not None else None
    return None if found is None else _Wrap(found.name, found.amount, found.modulus, 2)


def _assigned(item: Node) -> tuple[str | None, Node]:
    """Variable and value of a plain assignment."""
    if isinstance(item, c_ast.Assignment) and item.op == "=" and isinstance(item.lvalue, c_ast.ID):
        return str(item.lvalue.name), item.rvalue
    return None, None


def _is(node: Node, name: str | None) -> bool:
    return isinstance(node, c_ast.ID) and node.name == name


def _number(node: Node, value: str) -> bool:
    return isinstance(node, c_ast.Constant) and node.value == value


def _one_more(node: Node, name: str) -> bool:
    """`k + 1`."""
    return isinstance(node, c_ast.BinaryOp) and node.op == "+" and _is(node.left, name) and _number(node.right, "1")
