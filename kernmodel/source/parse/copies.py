"""Calls that copy and fill arrays, as the loops over their elements that they stand for.

`memcpy(to, from, bytes)`, `memmove`, `memset` and `bzero` move what `for (k = 0; k < bytes / sizeof *to; ++k)
to[k] = from[k];` moves. They are written so in the syntax tree before anything else reads it; arrays of rows have a
loop for each dimension, and few bytes an assignment for each element. Of elements whose type is not known, or differs
between both arrays, the call stays: whoever reads it says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.source.parse.c_types import element_type
from kernmodel.source.parse.preprocess import Preprocessed, integer_literal
from kernmodel.source.parse.standard_headers import MOST_STRAIGHT_BYTES
from kernmodel.source.parse.structures import MOST_PARTS, Rewriter, Types, UnknownLayoutError, is_structure
from kernmodel.source.parse.tree import LOOPS, Node, called_name, copied, walk, without_casts, written
from kernmodel.value_types import dataclass

_COPIES = frozenset({"memcpy", "memmove", "__builtin___memcpy_chk", "__builtin___memmove_chk"})
_FILLS = frozenset({"memset", "__builtin___memset_chk"})
_CLEARS = frozenset({"bzero"})


class LibraryLoop(c_ast.For):  # type: ignore[misc]  # pycparser has no types
    """The loop over elements that a call of the library stands for.

    Attributes:
        function: the name of the function that is called.
    """

    __slots__ = (*(slot for slot in c_ast.For.__slots__ if slot != "__weakref__"), "function")

    def __init__(self, function: str, *parts: Node) -> None:
        super().__init__(*parts)
        self.function = function


@dataclass(frozen=True, slots=True)
class _Place:
    """What a call is given: the pointer or array, how many of its elements are passed over, and its type.

    Attributes:
        rows: the extents of the rows that an element is, outermost first; () where it is a number or a structure.
        element: the type of the numbers, or structures, without names; size: their bytes.
    """

    base: Node
    first: Node | None
    rows: tuple[Node, ...]
    element: Node
    size: int

    def at(self, indices: Sequence[Node]) -> Node:
        """The element at these indices behind its place."""
        first, *others = indices
        if self.first is not None:
            first = c_ast.BinaryOp("+", self.first, first, first.coord)
        found = c_ast.ArrayRef(self.base, first, first.coord)
        for index in others:
            found = c_ast.ArrayRef(found, index, index.coord)
        return found


def copies_as_loops(functions: Sequence[Node], globals_: Sequence[Node], preprocessed: Preprocessed) -> None:
    """Write the calls in all functions of a program as loops."""
    for function in functions:
        if any(map(_is_call, walk(function.body))):
            _Copies(Rewriter(Types.of(preprocessed, globals_), globals_, function)).function(function)


def is_copying(name: str) -> bool:
    """Whether a function is one of those."""
    return _plain(name) in _COPIES | _FILLS | _CLEARS


def _is_call(node: Node) -> bool:
    return isinstance(node, c_ast.FuncCall) and is_copying(called_name(node))


def _plain(name: str) -> str:
    return name if name.endswith("_chk") else name.removeprefix("__builtin_")


class _Copies:
    """Writes the calls of one function as loops."""

    def __init__(self, names: Rewriter) -> None:
        self._names, self._types = names, names.types
        self._loops = 0

    def function(self, function: Node) -> None:
        """Write those in the body of a function."""
        for node in list(walk(function.body)):
            if isinstance(node, c_ast.Compound):
                node.block_items = [self._statement(item) for item in node.block_items or ()]
            elif isinstance(node, (*LOOPS, c_ast.If, c_ast.Label)):
                for slot in ("stmt", "iftrue", "iffalse"):
                    if getattr(node, slot, None) is not None:
                        setattr(node, slot, self._statement(getattr(node, slot)))

    def _statement(self, node: Node) -> Node:
        """What a statement becomes."""
        call = without_casts(node)
        if not _is_call(call) or not call.args:
            return node
        name, arguments = _plain(called_name(call)), call.args.exprs
        with suppress(UnknownLayoutError):
            found: Node | None = None
            if name in _COPIES and len(arguments) >= 3:
                found = self._copy(call, *arguments[:3])
            elif name in _FILLS and len(arguments) >= 3:
                found = self._fill(call, *arguments[:3])
            elif name in _CLEARS and len(arguments) == 2:
                found = self._fill(call, arguments[0], c_ast.Constant("int", "0", call.coord), arguments[1])
            return node if found is None else found
        return node

    def _copy(self, call: Node, target: Node, source: Node, size: Node) -> Node | None:
        to, of = self._place(target), self._place(source)
        if to is None or of is None or not self._alike(to, of):
            return None
        return self._loop(call, to, of, size)

    def _fill(self, call: Node, target: Node, value: Node, size: Node) -> Node | None:
        to = self._place(target)
        return None if to is None else self._loop(call, to, value, size)

    def _alike(self, to: _Place, of: _Place) -> bool:
        """Whether two places hold elements of one type, in rows of one length where both have rows."""
        if is_structure(to.element) or is_structure(of.element):
            return to.element is of.element and not to.rows and not of.rows
        kinds = [element_type(place.element.names) for place in (to, of)]
        same = to.size == of.size and None not in kinds and kinds[0].kind == kinds[1].kind  # type: ignore[union-attr]
        return same and (not to.rows or not of.rows or list(map(written, to.rows)) == list(map(written, of.rows)))

    def _loop(self, call: Node, to: _Place, of: _Place | Node, size: Node) -> Node:
        """The loops over what `size` bytes hold; `of`: where it comes from, or the value that all elements take."""
        sources = of if isinstance(of, _Place) else None
        value = None if isinstance(of, _Place) else of
        rows = to.rows or (sources.rows if sources is not None else ())
        number = self._bytes(size)

        def assigned(indices: Sequence[Node]) -> Node:
            def at(place: _Place) -> Node:
                return copied(place.at(indices if place.rows or not rows else [_flat(indices, rows)]))

            if sources is not None:
                return c_ast.Assignment("=", at(to), at(sources), call.coord)
            each = [c_ast.Assignment("=", part, value, call.coord) for part in self._numbers_of(at(to), to.element)]
            return each[0] if len(each) == 1 else c_ast.Compound(each, call.coord)

        if number is not None and number <= MOST_STRAIGHT_BYTES and not rows and number % to.size == 0:
            each = [assigned([c_ast.Constant("int", str(k), call.coord)]) for k in range(number // to.size)]
            return c_ast.Compound(each, call.coord)
        extents = [self._count(size, to.size, rows), *rows]
        names = [f"element_{self._loops + k}" for k in range(len(extents))]
        self._loops += len(extents)
        made = assigned([c_ast.ID(name, call.coord) for name in names])
        for name, extent in reversed(list(zip(names, extents, strict=True))):
            made = _counting(_plain(called_name(call)), name, copied(extent), made, call.coord)
        return made

    def _numbers_of(self, node: Node, kind: Node) -> list[Node]:
        """The number that an element is, or those of the structure that it is.

        Raises:
            UnknownLayoutError: it has pointers, or is too large to be written out.
        """
        kind = self._types.resolved(kind)
        parts: list[tuple[Node, Node]]
        if is_structure(kind):
            named = [(part.name, part.type) for part in kind.decls or ()]
            parts = [
                (node if name is None else c_ast.StructRef(node, ".", c_ast.ID(name), node.coord), inner)
                for name, inner in named
            ]
        elif isinstance(kind, c_ast.ArrayDecl):
            places = (c_ast.Constant("int", str(k), node.coord) for k in range(self._types.extent(kind)))
            parts = [(c_ast.ArrayRef(node, place, node.coord), kind.type) for place in places]
        elif isinstance(kind, c_ast.IdentifierType):
            return [node]
        else:
            raise UnknownLayoutError
        found = [number for part, inner in parts for number in self._numbers_of(part, inner)]
        if len(found) > MOST_PARTS:
            raise UnknownLayoutError
        return found

    # What a call is given

    def _place(self, argument: Node) -> _Place | None:
        """Where an argument points; None where that is not known."""
        argument = without_casts(argument)
        if isinstance(argument, c_ast.UnaryOp) and argument.op == "&":
            inner = argument.expr
            if not isinstance(inner, c_ast.ArrayRef):
                return None
            return self._of(inner.name, inner.subscript)
        if isinstance(argument, c_ast.BinaryOp) and argument.op in ("+", "-"):
            if argument.op == "-":
                return self._of(argument.left, c_ast.UnaryOp("-", argument.right, argument.coord))
            return self._of(argument.left, argument.right) or self._of(argument.right, argument.left)
        return self._of(argument, None)

    def _of(self, base: Node, first: Node | None) -> _Place | None:
        """The place `first` elements behind a pointer or array."""
        if isinstance(base, c_ast.BinaryOp) and base.op == "+" and first is not None:
            return self._of(base.left, c_ast.BinaryOp("+", base.right, first, base.coord))
        declared = self._names.type_of(base)
        kind = None if declared is None else self._types.resolved(declared)
        if not isinstance(kind, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            return None
        rows: list[Node] = []
        element = self._types.resolved(kind.type)
        while isinstance(element, c_ast.ArrayDecl):
            rows.append(element.dim)
            element = self._types.resolved(element.type)
        if None in rows or isinstance(element, c_ast.PtrDecl):
            return None
        return _Place(base, first, tuple(rows), element, self._types.size(element))

    # How much

    def _bytes(self, size: Node) -> int | None:
        """The bytes, where they are a number."""
        with suppress(UnknownLayoutError):
            return self._types.constant(self._numbers(size))
        return None

    def _numbers(self, size: Node) -> Node:
        """A size with each `sizeof` of what has a known type as a product of extents and bytes."""
        if isinstance(size, c_ast.UnaryOp) and size.op == "sizeof":
            return self._size_of(size)
        if isinstance(size, c_ast.BinaryOp):
            return c_ast.BinaryOp(size.op, self._numbers(size.left), self._numbers(size.right), size.coord)
        return self._numbers(size.expr) if isinstance(size, c_ast.Cast) else size

    def _size_of(self, node: Node) -> Node:
        declared = node.expr if isinstance(node.expr, c_ast.Typename) else self._names.type_of(node.expr)
        kind = None if declared is None else self._types.resolved(declared)
        if kind is None:
            return node
        extents = []
        while isinstance(kind, c_ast.ArrayDecl) and kind.dim is not None:
            extents.append(kind.dim)
            kind = self._types.resolved(kind.type)
        found: Node = c_ast.Constant("int", str(self._types.size(kind)), node.coord)
        for extent in extents:
            found = c_ast.BinaryOp("*", extent, found, node.coord)
        return found

    def _count(self, size: Node, element: int, rows: Sequence[Node]) -> Node:
        """How many elements, or rows of elements, a number of bytes holds."""
        factors = _factors(self._numbers(size))
        whole = c_ast.Constant("int", str(element))
        number, rest = 1, list[Node]()
        for factor in factors:
            known = integer_literal(factor.value) if isinstance(factor, c_ast.Constant) else None
            number *= 1 if known is None else known
            rest += [factor] if known is None else []
        for row in rows:
            same = next((factor for factor in rest if written(factor) == written(row)), None)
            if same is not None:
                rest.remove(same)
            else:
                whole = c_ast.BinaryOp("*", whole, row)
        if isinstance(whole, c_ast.Constant) and number % element == 0:
            number, whole = number // element, None
        if number != 1 or not rest:
            rest.append(c_ast.Constant("int", str(number)))
        found = rest[0]
        for factor in rest[1:]:
            found = c_ast.BinaryOp("*", found, factor, size.coord)
        return found if whole is None else c_ast.BinaryOp("/", found, whole, size.coord)


def _counting(function: str, name: str, extent: Node, body: Node, coord: object) -> Node:
    """`for (long name = 0; name < extent; ++name) body`."""
    kind = c_ast.TypeDecl(name, [], None, c_ast.IdentifierType(["long"]))
    start = c_ast.Decl(name, [], [], [], [], kind, c_ast.Constant("int", "0", coord), None, coord)
    variable = c_ast.ID(name, coord)
    test = c_ast.BinaryOp("<", variable, extent, coord)
    step = c_ast.UnaryOp("p++", c_ast.ID(name, coord), coord)
    return LibraryLoop(function, c_ast.DeclList([start], coord), test, step, body, coord)


def _flat(indices: Sequence[Node], rows: Sequence[Node]) -> Node:
    """The number of the element at these indices of rows."""
    found = indices[0]
    for index, row in zip(indices[1:], rows, strict=True):
        found = c_ast.BinaryOp("+", c_ast.BinaryOp("*", found, row, index.coord), index, index.coord)
    return found


def _factors(node: Node) -> list[Node]:
    """The factors of a product."""
    if isinstance(node, c_ast.BinaryOp) and node.op == "*":
        return [*_factors(node.left), *_factors(node.right)]
    return [node]
