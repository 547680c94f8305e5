"""Calls of the file's own functions, with the body of the function in their place.

A compiler does the same to small functions; here it is done in the syntax tree, before anything else reads it. Inlined
are functions that have neither labels nor `static` variables, return at the end of a block only, and call nothing but
such functions, those of <math.h> and, without loops of their own, such as are not in the file. One that has loops is
inlined where an argument depends on a variable of a loop around the call, and where it is declared `inline`, also
outside of loops: other functions with loops have nests that stand on their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.standard_headers import ASSEMBLY, FOREIGN, is_known_function
from kernmodel.source.parse.tree import LOOPS, Node, called_name, copied, declarator, slots, walk, written_names

_MOST_NODES = 20_000
"""Nodes of the syntax tree that inlining may add to a function."""
_BARRED = (c_ast.Goto, c_ast.Label, c_ast.Switch, c_ast.EllipsisParam)


def inline_calls(functions: Sequence[Node]) -> None:
    """Inline the calls of these functions among each other."""
    known = {function.decl.name: function for function in functions}
    called = {name for function in functions for name in _called(function.body)}
    fitting = {name: copied(known[name]) for name in known if name in called and _fits(name, known, ())}
    if fitting:
        for function in functions:
            _Inliner(function, fitting).inline()


def _fits(name: str, known: Mapping[str, Node], within: tuple[str, ...]) -> bool:
    """Whether a function can be inlined."""
    if name in within or name not in known:
        return False
    function = known[name]
    loops = any(isinstance(node, LOOPS) for node in walk(function.body))
    for node in walk(function):
        static = isinstance(node, c_ast.Decl) and "static" in (node.storage or ()) and node is not function.decl
        if static or isinstance(node, _BARRED):
            return False
        if isinstance(node, c_ast.FuncCall):
            called = called_name(node)
            # with loops the call would come to stand around nests
            elsewhere = called not in ("", ASSEMBLY, FOREIGN, *known) and not loops
            if not is_known_function(called) and not elsewhere and not _fits(called, known, (*within, name)):
                return False
    return _with_result(function.body, None) is not None


def _called(node: Node) -> set[str]:
    """The names of the functions that are called."""
    return {called_name(part) for part in walk(node) if isinstance(part, c_ast.FuncCall)}


class _Inliner:
    """Inlines the calls in one function."""

    def __init__(self, function: Node, known: Mapping[str, Node]) -> None:
        self._function, self._known = function, known
        self._names = {part.name for part in walk(function) if isinstance(part, (c_ast.ID, c_ast.Decl)) and part.name}
        self._left = _MOST_NODES
        self._moved: frozenset[str] = frozenset()
        self._within: tuple[str, ...] = (function.decl.name,)

    def inline(self) -> None:
        """Inline all of them."""
        self._function.body = self._statement(self._function.body, loop=False)

    def _statement(self, node: Node, *, loop: bool) -> Node:
        """A statement after inlining; `loop`: whether it stands in a loop."""
        if isinstance(node, c_ast.Compound):
            node.block_items = [part for item in node.block_items or () for part in self._item(item, loop=loop)]
            return node
        found = self._item(node, loop=loop)
        return found[0] if len(found) == 1 else c_ast.Compound(found, node.coord)

    def _item(self, node: Node, *, loop: bool) -> list[Node]:
        """What a statement of a block becomes."""
        if isinstance(node, c_ast.Compound):
            return [self._statement(node, loop=loop)]
        if isinstance(node, LOOPS):
            outside = self._moved
            self._moved |= {name for name, _ in written_names(node)}
            node.stmt = self._statement(node.stmt, loop=True)
            self._moved = outside
            return [node]
        before: list[Node] = []
        if not _called(node) & self._known.keys():
            return [node]
        if isinstance(node, c_ast.If):
            node.cond = self._expression(node.cond, before, loop=True) if loop else node.cond
            node.iftrue = self._statement(node.iftrue, loop=loop) if node.iftrue else None
            node.iffalse = self._statement(node.iffalse, loop=loop) if node.iffalse else None
        elif not isinstance(node, (c_ast.Switch, c_ast.Label, c_ast.Pragma)):
            if isinstance(node, c_ast.FuncCall) and (body := self._body(node, None, loop=loop)) is not None:
                return [body]
            node = self._expression(node, before, loop=loop)
        return [*before, node]

    def _expression(self, node: Node, before: list[Node], *, loop: bool) -> Node:
        """An expression with the values of inlined calls in their place; their bodies go to `before`."""
        _each_part(node, lambda part: self._expression(part, before, loop=loop))
        function = self._known.get(called_name(node)) if isinstance(node, c_ast.FuncCall) else None
        if function is None or _is_void(function) or _only_returns_scalars(function):
            return node
        result = self._fresh(f"{function.decl.name}_value")
        body = self._body(node, result, loop=loop)
        if body is None:
            return node
        kind = copied(function.decl.type.type)
        declarator(kind).declname = result
        before += [c_ast.Decl(result, [], [], [], [], kind, None, None, node.coord), body]
        return c_ast.ID(result, node.coord)

    def _body(self, call: Node, result: str | None, *, loop: bool) -> Node | None:
        """What a call executes, with its value in the variable `result`; None where it is not inlined.

        Args:
            loop: whether the call stands in a loop.
        """
        name = called_name(call)
        function = self._known.get(name)
        arguments = list(call.args.exprs) if call.args else []
        if function is None or name in self._within or len(_parameters(function)) != len(arguments):
            return None
        used = {part.name for argument in arguments for part in walk(argument) if isinstance(part, c_ast.ID)}
        looped = any(isinstance(part, c_ast.For) for part in walk(function.body))
        if not (looped and "inline" in function.decl.funcspec) and (not loop or (looped and not used & self._moved)):
            return None
        size = sum(1 for _ in walk(function.body))
        if size > self._left:
            return None
        self._left -= size
        body = _with_result(self._instance(function, arguments), result)
        if body is None:
            return None
        self._within += (name,)
        body = self._statement(body, loop=loop)
        self._within = self._within[:-1]
        return body

    def _instance(self, function: Node, arguments: Sequence[Node]) -> Node:
        """The body of a function with its arguments: in place of its parameters, or as variables set to them."""
        body = copied(function.body)
        changed = {name for name, _ in written_names(body)}
        declared = {part.name for part in walk(body) if isinstance(part, c_ast.Decl) and part.name}
        places: dict[str, Node] = {name: c_ast.ID(self._fresh(name)) for name in sorted(declared)}
        set_first: list[Node] = []
        for parameter, argument in zip(_parameters(function), arguments, strict=True):
            pointer = isinstance(parameter.type, (c_ast.ArrayDecl, c_ast.PtrDecl))
            simple = isinstance(argument, (c_ast.ID, c_ast.Constant))
            if parameter.name not in changed and (pointer or simple):
                places[parameter.name] = argument
                continue
            own = copied(parameter)
            own.name, own.init, own.storage = self._fresh(parameter.name), argument, []
            if isinstance(own.type, c_ast.ArrayDecl):
                own.type = c_ast.PtrDecl([], own.type.type)
            declarator(own.type).declname = own.name
            places[parameter.name] = c_ast.ID(own.name, argument.coord)
            set_first.append(own)
        body = replaced(body, places)
        body.block_items = [*set_first, *(body.block_items or ())]
        return body

    def _fresh(self, name: str) -> str:
        """A name like this one that the function does not use."""
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name}_{number}"
        self._names.add(found)
        return found


def _parameters(function: Node) -> list[Node]:
    declared = function.decl.type.args
    return [part for part in (declared.params if declared else ()) if isinstance(part, c_ast.Decl)]


def _is_void(function: Node) -> bool:
    kind = function.decl.type.type
    return isinstance(kind, c_ast.TypeDecl) and getattr(kind.type, "names", None) == ["void"]


def _only_returns_scalars(function: Node) -> bool:
    """Whether a function only returns an expression of scalars: such a call is read as an expression."""
    items: list[Node] = list(function.body.block_items or ())
    plain = all(isinstance(part.type, c_ast.TypeDecl) for part in _parameters(function))
    return plain and len(items) == 1 and isinstance(items[0], c_ast.Return)


def _with_result(node: Node, result: str | None) -> Node | None:
    """A statement that sets the variable `result` where it returned; None where it returns elsewhere than at the end of
    a block.

    What follows an `if` that returns becomes its other side.
    """
    if isinstance(node, c_ast.Return):
        if node.expr is None or result is None:
            return c_ast.EmptyStatement(node.coord) if node.expr is None else node.expr
        return c_ast.Assignment("=", c_ast.ID(result, node.coord), node.expr, node.coord)
    if not _returns(node):
        return node
    if isinstance(node, c_ast.If):
        yes = _with_result(node.iftrue, result)
        no = None if node.iffalse is None else _with_result(node.iffalse, result)
        wrong = yes is None or (no is None and node.iffalse is not None)
        return None if wrong else c_ast.If(node.cond, yes, no, node.coord)
    items: list[Node] = list(node.block_items or ()) if isinstance(node, c_ast.Compound) else []
    if not items:
        return None
    place = next(number for number, item in enumerate(items) if _returns(item))
    first, rest = items[place], items[place + 1 :]
    if rest and isinstance(first, c_ast.If) and _ends(first.iftrue):
        other = [*([first.iffalse] if first.iffalse is not None else []), *rest]
        first = c_ast.If(first.cond, first.iftrue, c_ast.Compound(other, first.coord), first.coord)
    elif rest:
        return None
    last = _with_result(first, result)
    return None if last is None else c_ast.Compound([*items[:place], last], node.coord)


def _returns(node: Node) -> bool:
    return any(isinstance(part, c_ast.Return) for part in walk(node))


def _ends(node: Node) -> bool:
    """Whether a statement ends in a `return`, and has no other."""
    last = node.block_items[-1] if isinstance(node, c_ast.Compound) and node.block_items else node
    return isinstance(last, c_ast.Return) and sum(isinstance(part, c_ast.Return) for part in walk(node)) == 1


def _each_part(node: Node, change: Callable[[Node], Node]) -> None:
    """Put what `change` makes of each part of a node in its place."""
    for slot in slots(node):
        child = getattr(node, slot)
        if isinstance(child, c_ast.Node):
            setattr(node, slot, change(child))
        elif isinstance(child, list):
            setattr(node, slot, [change(part) if isinstance(part, c_ast.Node) else part for part in child])


def replaced(node: Node, places: Mapping[str, Node]) -> Node:
    """A tree with other expressions in the place of names, also where it declares them."""
    if isinstance(node, c_ast.ID):
        return copied(places[node.name]) if node.name in places else node
    if isinstance(node, c_ast.StructRef):
        node.name = replaced(node.name, places)
        return _through_address(node)
    if isinstance(node, c_ast.Decl) and node.name in places:
        node.name = places[node.name].name
        declarator(node.type).declname = node.name
    _each_part(node, lambda part: replaced(part, places))
    return _through_address(node)


def _through_address(node: Node) -> Node:
    """`(&a[i])[k]` as `a[i + k]`, `*&x` as `x`, `(&s)->m` as `s.m`; other nodes as they are."""
    if isinstance(node, c_ast.StructRef) and node.type == "->" and (inner := _addressed(node.name)) is not None:
        return c_ast.StructRef(inner, ".", node.field, node.coord)
    moved: Node | None = None
    if isinstance(node, c_ast.ArrayRef):
        pointer, moved = node.name, node.subscript
    elif isinstance(node, c_ast.UnaryOp) and node.op == "*":
        pointer = node.expr
        if isinstance(pointer, c_ast.BinaryOp) and pointer.op == "+" and _addressed(pointer.left) is not None:
            pointer, moved = pointer.left, pointer.right
    else:
        return node
    inner = _addressed(pointer)
    if inner is None:
        return node
    if moved is None or getattr(moved, "value", None) == "0":
        return inner
    if not isinstance(inner, c_ast.ArrayRef):
        return node
    return c_ast.ArrayRef(inner.name, _sum(inner.subscript, moved), node.coord)


def _addressed(node: Node) -> Node | None:
    return node.expr if isinstance(node, c_ast.UnaryOp) and node.op == "&" else None


def _sum(left: Node, right: Node | None) -> Node:
    if right is None or getattr(left, "value", None) == "0":
        return left if right is None else right
    return c_ast.BinaryOp("+", left, right, left.coord)
