"""Members of structures as plain arrays and scalars, rewritten in the syntax tree before anything else reads it.

- A member of one structure (`grid.u[j][i]`, `ctx->n`) is an array, or a scalar, of its own: `grid.u`, `ctx_n`.
- An array of structures (`p[i].x`) is an array with one dimension more, the parts of a structure, all of one size: the
  largest that divides the size and place of every member. So the members that nothing uses move with their lines.
- Unions have their members at the same place.

What cannot be rewritten stays a member in the tree; whoever reads it says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import gcd
from typing import Any

from pycparser import c_ast  # type: ignore[import-untyped]
from pycparser.c_parser import CParser, ParseError  # type: ignore[import-untyped]

from kernmodel.patterns import pattern
from kernmodel.source.model import ElementType
from kernmodel.source.parse.attributes import NO_ATTRIBUTES, Attributes, place_of
from kernmodel.source.parse.c_types import DOUBLE, FLOAT, element_type, part_of
from kernmodel.source.parse.preprocess import Preprocessed, integer_literal
from kernmodel.source.parse.tree import LOOPS, STEPS, Node, slots, walk, without_casts, written
from kernmodel.value_types import dataclass

_FOLDED: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,
    "%": operator.mod,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
"""Operators of constant expressions that give extents; their operands are no negative numbers."""
_PACK = pattern(r"#[ \t]*pragma[ \t]+pack\b")
_POINTER_BYTES = 8
_LARGEST_ALIGNMENT = 16
MOST_PARTS = 64
"""Parts of a structure that is copied or filled as a whole, which are written out."""


class MemberRef(c_ast.ArrayRef):  # type: ignore[misc]  # pycparser has no types
    """A part of an element of an array of structures: as an `ArrayRef` its last index counts parts.

    Attributes:
        element: the type of the member; text: the reference as written, None: as an `ArrayRef` is.
    """

    __slots__ = ("element", "text")

    def __init__(self, name: Node, subscript: Node, coord: Any, element: ElementType, text: str | None) -> None:
        super().__init__(name, subscript, coord)
        self.element = element
        self.text = text


class UnknownLayoutError(Exception):
    """The layout of a type that is not known: an incomplete one, a bit field, an extent without a number."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A member that is no structure: its place in bytes, its type (None: a pointer), the extents of an array."""

    offset: int
    element: ElementType | None
    extents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Step:
    """A step from a variable to what is accessed: a member by name, or an index."""

    member: str | None = None
    index: Node | None = None
    plain: bool = False
    """Whether the index is that of `*p` and `p->`."""


class Types:
    """The structures and typedefs of a program, and their layout (LP64).

    Args:
        values: of macros that stayed names.
        attributes: of structures, members and typedefs.
        packed: whether some structures may be packed, so that the layout of none is known.
    """

    def __init__(
        self, values: Mapping[str, int], attributes: Attributes = NO_ATTRIBUTES, *, packed: bool = False
    ) -> None:
        self._values = values
        self._attributes = attributes
        self._packed = packed
        self._structures: dict[tuple[str, str], Node] = {}
        self._typedefs: dict[str, Node] = {}
        self._enumerators: dict[str, int] = {}
        self._used: dict[int, set[tuple[int, ElementType]]] = {}

    @staticmethod
    def of(preprocessed: Preprocessed, globals_: Sequence[Node]) -> Types:
        """Those that a program declares at file scope."""
        packed = bool(_PACK.search(preprocessed.text))
        types = Types(preprocessed.values, preprocessed.attributes, packed=packed)
        for node in globals_:
            types.take(node)
        return types

    def use(self, structure: Node, offset: int, kind: Node) -> None:
        """Note that a member at this place of an array of structures is used, or several that are copied together."""
        for leaf in self.leaves(kind, offset):
            element = leaf.element or ElementType("pointer", _POINTER_BYTES, "integer")
            self._used.setdefault(id(structure), set()).add((leaf.offset, element))

    def take(self, node: Node) -> None:
        """Learn the structures and typedefs of a declaration."""
        if isinstance(node, c_ast.Typedef):
            self._typedefs[node.name] = node
        stack = [node]
        while stack:
            part = stack.pop()
            if isinstance(part, (c_ast.Struct, c_ast.Union)) and part.name and part.decls is not None:
                self._structures[type(part).__name__, part.name] = part
            elif isinstance(part, c_ast.EnumeratorList):
                self._enumerate(part)
            stack.extend(child for _, child in part.children())

    def _enumerate(self, values: Node) -> None:
        last = -1
        with suppress(UnknownLayoutError):
            for one in values.enumerators:
                last = last + 1 if one.value is None else self.constant(one.value)
                self._enumerators[one.name] = last

    def resolved(self, node: Node) -> Node:
        """A type without names: an `ArrayDecl`, a `PtrDecl`, a structure, a union or an `IdentifierType`."""
        while True:
            if isinstance(node, (c_ast.TypeDecl, c_ast.Typename, c_ast.Decl)):
                node = node.type
            elif isinstance(node, c_ast.IdentifierType) and len(node.names) == 1 and node.names[0] in self._typedefs:
                node = self._typedefs[node.names[0]].type
            elif isinstance(node, (c_ast.Struct, c_ast.Union)) and node.decls is None:
                known = self._structures.get((type(node).__name__, node.name))
                if known is None:
                    return node
                node = known
            else:
                return node

    def member(self, structure: Node, name: str) -> Node | None:
        """The declared type of a member, also one of a structure without a name within."""
        for part in structure.decls or ():
            if getattr(part, "name", None) == name:
                return part.type
            inner = self.resolved(part)
            if part.name is None and is_structure(inner) and (found := self.member(inner, name)) is not None:
                return found
        return None

    def size(self, node: Node) -> int:
        """Bytes of a type.

        Raises:
            UnknownLayoutError: they are not known.
        """
        return self._layout(node)[0]

    def _layout(self, node: Node) -> tuple[int, int]:
        """Bytes and alignment."""
        size, alignment = self._natural_layout(self.resolved(node))
        return size, max(alignment, *self._said(node))

    def _said(self, node: Node) -> Iterator[int]:
        """The alignments that a declaration asks for, and the typedefs that name its type."""
        yield 1
        while isinstance(node, (c_ast.TypeDecl, c_ast.Typename, c_ast.Decl, c_ast.ArrayDecl)):
            if isinstance(node, c_ast.Decl):
                yield from self._asked(node)
                for one in node.align or ():
                    asked = one.alignment
                    yield self._layout(asked)[1] if isinstance(asked, c_ast.Typename) else self.constant(asked)
            node = node.type
        if isinstance(node, c_ast.IdentifierType) and len(node.names) == 1 and node.names[0] in self._typedefs:
            yield from self._asked(self._typedefs[node.names[0]])
            yield from self._said(self._typedefs[node.names[0]].type)

    def _asked(self, node: Node) -> Iterator[int]:
        """The alignments that attributes of a structure, or of a declared name, ask for."""
        for text in self._attributes.aligned.get(place_of(node), ()):
            try:
                (array,) = CParser().parse(f"int _[{text}];").ext
            except ParseError:
                raise UnknownLayoutError from None
            yield self.constant(array.type.dim)

    def _natural_layout(self, node: Node) -> tuple[int, int]:
        """Bytes and alignment of a type without names."""
        if isinstance(node, c_ast.PtrDecl):
            return _POINTER_BYTES, _POINTER_BYTES
        if isinstance(node, c_ast.ArrayDecl):
            size, alignment = self._layout(node.type)
            return size * self.extent(node), alignment
        if isinstance(node, c_ast.Enum):
            return 4, 4
        if isinstance(node, c_ast.IdentifierType):
            element = element_type(node.names)
            if element is None or not element.size_bytes:
                raise UnknownLayoutError
            return element.size_bytes, min(part_of(element).size_bytes, _LARGEST_ALIGNMENT)
        if not is_structure(node) or not node.decls:
            raise UnknownLayoutError
        end, alignment = 0, max([1, *self._asked(node)])
        for offset, part in self.places(node):
            size, own = self._layout(part)
            end, alignment = max(end, offset + size), max(alignment, own)
        return -(-end // alignment) * alignment, alignment

    def places(self, structure: Node) -> Iterator[tuple[int, Node]]:
        """The members with their offsets in bytes."""
        end, packed = 0, self._attributes.packed
        for part in structure.decls or ():
            if getattr(part, "bitsize", None) is not None or place_of(structure) in packed or place_of(part) in packed:
                raise UnknownLayoutError
            size, alignment = self._layout(part)
            offset = 0 if isinstance(structure, c_ast.Union) else -(-end // alignment) * alignment
            yield offset, part
            end = offset + size

    def extent(self, node: Node) -> int:
        """The number of elements of an array in a structure."""
        return self.constant(node.dim)

    def constant(self, node: Node | None) -> int:
        """The value of an integer constant expression."""
        found: int | None = None
        if isinstance(node, c_ast.Constant):
            found = integer_literal(node.value)
        elif isinstance(node, c_ast.ID):
            found = self._enumerators.get(node.name, self._values.get(node.name))
        elif isinstance(node, c_ast.TernaryOp):
            found = self.constant(node.iftrue if self.constant(node.cond) else node.iffalse)
        elif isinstance(node, c_ast.UnaryOp) and node.op == "sizeof" and isinstance(node.expr, c_ast.Typename):
            found = self.size(node.expr)
        elif isinstance(node, c_ast.BinaryOp) and node.op in _FOLDED:
            left, right = self.constant(node.left), self.constant(node.right)
            found = _FOLDED[node.op](left, right) if right or node.op not in ("/", "%") else None
        if found is None:
            raise UnknownLayoutError
        return found

    def leaves(self, node: Node, offset: int = 0) -> Iterator[_Leaf]:
        """The members that are no structures, each element of an array of structures with its own."""
        node = self.resolved(node)
        if is_structure(node):
            for place, part in self.places(node):
                yield from self.leaves(part, offset + place)
            return
        extents = []
        while isinstance(node, c_ast.ArrayDecl):
            extents.append(self.extent(node))
            node = self.resolved(node.type)
            if is_structure(node):
                count = 1
                for extent in extents:
                    count *= extent
                for number in range(count):
                    yield from self.leaves(node, offset + number * self.size(node))
                return
        element = element_type(node.names) if isinstance(node, c_ast.IdentifierType) else None
        yield _Leaf(offset, element, tuple(extents))

    def part(self, structure: Node) -> ElementType:
        """What an element of an array of these structures consists of: the largest type that divides its size, and the
        size and place of every member that the program uses.

        Raises:
            UnknownLayoutError: the layout is not known.
        """
        used = self._used.get(id(structure), set())
        if not used or self._packed:
            raise UnknownLayoutError
        size = gcd(self.size(structure), *(number for place, element in used for number in (place, element.size_bytes)))
        alike = {element for _, element in used}
        if len(alike) == 1 and (only := alike.pop()).size_bytes == size:
            return only
        return {8: DOUBLE, 4: FLOAT}.get(size) or ElementType(f"{size} B", size, "integer")


def is_structure(node: Node) -> bool:
    """Whether a type is a structure or a union."""
    return isinstance(node, (c_ast.Struct, c_ast.Union))


class Rewriter:
    """Rewrites the members in one function.

    Attributes:
        declared: declarations of the arrays and scalars that members have become, by name.
    """

    def __init__(self, types: Types, globals_: Sequence[Node], function: Node) -> None:
        self.types = types
        self.declared: dict[str, Node] = {}
        self.several: set[str] = set()
        self._variables: dict[str, Node] = {}
        self._arrays: set[str] = set()
        for node in globals_:
            if isinstance(node, c_ast.Decl) and node.name:
                self._variables[node.name] = node.type
        parameters = getattr(function.decl.type, "args", None)
        arrays = (
            one
            for one in (parameters.params if parameters else ())
            if isinstance(getattr(one, "type", None), c_ast.ArrayDecl)
        )
        self._decayed = {one.name for one in arrays}
        for node in walk(function):
            if isinstance(node, c_ast.Decl) and node.name:
                self._variables[node.name] = node.type
                types.take(node)
        for node in walk(function):
            self._note_several(node)
        self._note_copies(function)

    def _note_several(self, node: Node) -> None:
        """A pointer that is indexed, or moves, points at an array of structures, not at one."""
        if isinstance(node, c_ast.ArrayRef) and isinstance(node.name, c_ast.ID):
            self.several.add(node.name.name)
        elif isinstance(node, c_ast.UnaryOp) and node.op in STEPS:
            self.several.add(getattr(node.expr, "name", None) or "")
        elif isinstance(node, c_ast.Assignment) and isinstance(node.lvalue, c_ast.ID):
            self.several.add(node.lvalue.name)
        elif isinstance(node, c_ast.Decl) and node.init is not None and node.name:
            if (isinstance(node.init, c_ast.UnaryOp) and node.init.op == "&") or isinstance(node.init, c_ast.BinaryOp):
                self.several.add(node.name)
        elif isinstance(node, c_ast.BinaryOp) and isinstance(node.left, c_ast.ID):
            self.several.add(node.left.name)

    def _note_copies(self, function: Node) -> None:
        """Of pointers that one is set to, `b = a`, all point at arrays of structures if one does."""
        pairs = []
        for node in walk(function):
            if isinstance(node, c_ast.Decl) and isinstance(node.init, (c_ast.ID, c_ast.Cast)):
                pairs.append({node.name, getattr(without_casts(node.init), "name", None)})
        pairs = [pair for pair in pairs if all(name in self._variables for name in pair)]
        while any(pair & self.several and not pair <= self.several for pair in pairs):
            self.several.update(*(pair for pair in pairs if pair & self.several))

    def look(self, function: Node) -> None:
        """Learn which members of arrays of structures a function uses, which decides into which parts they fall."""
        for node in walk(function.body):
            if isinstance(node, c_ast.StructRef):
                self._place(node)
            self._copied(node)

    def function(self, function: Node) -> None:
        """Rewrite the body and the declarations of arrays of structures."""
        function.body = self._statement(function.body, loop=False)
        for node in walk(function):
            if isinstance(node, c_ast.Decl) and node.name and not isinstance(node.type, c_ast.FuncDecl):
                self.array(node)

    def array(self, declaration: Node) -> None:
        """Let the declaration of an array of structures declare an array of their parts."""
        with suppress(UnknownLayoutError):
            kind = self.types.resolved(declaration.type)
            if isinstance(kind, (c_ast.ArrayDecl, c_ast.PtrDecl)) and self._is_array(declaration.name, kind):
                found = self._of_parts(declaration.name, kind)
                if found is not None:
                    declaration.type = found

    def _is_array(self, name: str, kind: Node) -> bool:
        return isinstance(kind, c_ast.ArrayDecl) or name in self.several or isinstance(kind.type, c_ast.PtrDecl)

    def _of_parts(self, name: str, kind: Node) -> Node | None:
        """The type of an array of structures as an array of their parts; None for other types."""
        chain: list[Node] = []
        while isinstance(kind, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            chain.append(kind)
            kind = self.types.resolved(kind.type)
        if not chain or not is_structure(kind):
            return None
        part = self.types.part(kind)
        number = c_ast.Constant("int", str(self.types.size(kind) // part.size_bytes))
        names = part.name.split() if element_type(part.name.split()) is not None else _BYTES[part.size_bytes]
        plain = c_ast.TypeDecl(name, [], None, c_ast.IdentifierType(names))
        return _wrapped(chain, c_ast.ArrayDecl(plain, number, []))

    # Statements and expressions

    def _statement(self, node: Node, *, loop: bool) -> Node:
        if isinstance(node, c_ast.Compound):
            items: list[Node] = []
            for item in node.block_items or ():
                copied = self._copied(item)
                items += [self._children(item, loop=loop)] if copied is None else copied
            node.block_items = items
            return node
        copied = self._copied(node)
        return self._children(node, loop=loop) if copied is None else c_ast.Compound(copied, node.coord)

    def _children(self, node: Node, *, loop: bool) -> Node:
        if _is_sizeof(node):
            return self._size_of(node)
        if isinstance(node, (c_ast.StructRef, c_ast.ArrayRef)) or (
            isinstance(node, c_ast.UnaryOp) and node.op in ("*", "&")
        ):
            found = self._rewritten(node, loop=loop)
            if found is not None:
                return found
        inside = loop or isinstance(node, LOOPS)
        for slot in slots(node):
            child = getattr(node, slot)
            if isinstance(child, c_ast.Node):
                if not inside and slot in ("init", "rvalue") and self._from_outside(child):
                    continue
                setattr(node, slot, self._statement(child, loop=inside))
            elif isinstance(child, list):
                parts = [self._statement(part, loop=inside) if isinstance(part, c_ast.Node) else part for part in child]
                setattr(node, slot, parts)
        return node

    def _size_of(self, node: Node) -> Node:
        """`sizeof` as a number, where the type is known."""
        with suppress(UnknownLayoutError):
            kind = node.expr if isinstance(node.expr, c_ast.Typename) else self.type_of(node.expr)
            if kind is not None:
                return c_ast.Constant("unsigned long", str(self.types.size(kind)), node.coord)
        return node

    def type_of(self, node: Node) -> Node | None:
        """The declared type of a variable, a member or an element; None for other expressions."""
        if isinstance(node, c_ast.ID):
            kind = self._variables.get(node.name)
            return c_ast.PtrDecl([], kind.type) if kind is not None and node.name in self._decayed else kind
        if isinstance(node, c_ast.ArrayRef) or (isinstance(node, c_ast.UnaryOp) and node.op == "*"):
            inner = self.type_of(node.name if isinstance(node, c_ast.ArrayRef) else node.expr)
            kind = None if inner is None else self.types.resolved(inner)
            return kind.type if isinstance(kind, (c_ast.ArrayDecl, c_ast.PtrDecl)) else None
        if isinstance(node, c_ast.StructRef):
            outer = self.type_of(node.name)
            kind = None if outer is None else self.types.resolved(outer)
            if node.type == "->" and isinstance(kind, (c_ast.ArrayDecl, c_ast.PtrDecl)):
                kind = self.types.resolved(kind.type)
            return self.types.member(kind, node.field.name) if kind is not None and is_structure(kind) else None
        return None

    def _from_outside(self, value: Node) -> bool:
        """Whether a variable is set to a pointer or integer of one structure: then it has a name already."""
        value = without_casts(value)
        if not isinstance(value, c_ast.StructRef):
            return False
        found = self._place(value)
        if found is None:
            return True
        _, indices, kind = found
        if indices:
            return False
        kind = self.types.resolved(kind)
        element = element_type(kind.names) if isinstance(kind, c_ast.IdentifierType) else None
        return isinstance(kind, (c_ast.PtrDecl, c_ast.ArrayDecl)) or (element is not None and element.kind == "integer")

    def _rewritten(self, node: Node, *, loop: bool) -> Node | None:
        """What an expression that names a member becomes; None: it is none, or is not understood."""
        if not any(isinstance(part, c_ast.StructRef) for part in _spine(node)):
            return None
        found = self._place(node)
        if found is None:
            return None
        name, indices, kind = found
        kind = self.types.resolved(kind)
        indices = [self._children(index, loop=loop) for index in indices]
        plain = c_ast.ID(name, node.coord)
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":
            return None
        result: Node = plain
        element = element_type(kind.names) if isinstance(kind, c_ast.IdentifierType) else None
        for number, index in enumerate(indices):
            if number == len(indices) - 1 and element is not None and name in self._arrays:
                result = MemberRef(result, index, node.coord, element, written(node))
            else:
                result = c_ast.ArrayRef(result, index, node.coord)
        return result

    def _copied(self, statement: Node) -> list[Node] | None:
        """A structure that is assigned as a whole, as assignments of its parts."""
        if not isinstance(statement, c_ast.Assignment) or statement.op != "=":
            return None
        sides = []
        for side in (statement.lvalue, statement.rvalue):
            if not isinstance(side, (c_ast.ArrayRef, c_ast.StructRef, c_ast.UnaryOp)):
                return None
            steps = _steps(side)
            found = None if steps is None else self._followed(*steps)
            if found is None or not is_structure(self.types.resolved(found[2])) or not found[1]:
                return None
            sides.append(found)
        try:
            structure = self.types.resolved(sides[0][2])
            self.types.use(structure, 0, structure)
            part = self.types.part(structure)
            number = self.types.size(structure) // part.size_bytes
        except UnknownLayoutError:
            return None
        if number > MOST_PARTS or self.types.resolved(sides[1][2]) is not structure:
            return None
        result = []
        for k in range(number):
            parts = []
            for (name, indices, _), side in zip(sides, (statement.lvalue, statement.rvalue), strict=True):
                shifted = [*indices[:-1], _sum(indices[-1], k)]
                place: Node = c_ast.ID(name, side.coord)
                for index in shifted[:-1]:
                    place = c_ast.ArrayRef(place, index, side.coord)
                parts.append(MemberRef(place, shifted[-1], side.coord, part, None))
            result.append(c_ast.Assignment("=", *parts, statement.coord))
        return result

    # From an expression to a place

    def _place(self, node: Node) -> tuple[str, list[Node], Node] | None:
        """The name, the indices and the type of what an expression names; None where it is not understood."""
        steps = _steps(node)
        return None if steps is None else self._followed(*steps)

    def _followed(self, base: str, steps: Sequence[_Step]) -> tuple[str, list[Node], Node] | None:
        kind = self._variables.get(base)
        if kind is None:
            return None
        try:
            return self._follow(base, kind, list(steps))
        except UnknownLayoutError:
            return None

    def _follow(self, name: str, kind: Node, steps: list[_Step]) -> tuple[str, list[Node], Node] | None:
        """Follow the steps from a variable, or from a member that is one of its own."""
        indices: list[Node] = []
        plain = True
        declared = kind
        while steps and steps[0].member is None:
            kind = self.types.resolved(kind)
            if not isinstance(kind, (c_ast.ArrayDecl, c_ast.PtrDecl)):
                return None
            step = steps.pop(0)
            indices.append(step.index)
            plain = plain and step.plain
            kind = kind.type
        structure = self.types.resolved(kind)
        if not steps:
            if is_structure(structure) and indices:
                self._arrays.add(name)
                return name, [*indices, c_ast.Constant("int", "0")], structure
            return name, indices, kind
        if not is_structure(structure):
            return None
        alone = plain and not (indices and self._is_array(name, self.types.resolved(declared)))
        if alone or (len(steps) > 1 and self._points(structure, steps) and all(map(_is_constant, indices))):
            return self._member(name, structure, steps, indices)
        return self._part_of(name, structure, steps, indices)

    def _points(self, structure: Node, steps: Sequence[_Step]) -> bool:
        """Whether the steps lead through a pointer in the structure."""
        kind: Node | None = structure
        for step in steps:
            kind = self.types.resolved(kind)
            if isinstance(kind, c_ast.PtrDecl):
                return True
            kind = self.types.member(kind, step.member) if step.member and is_structure(kind) else kind.type
            if kind is None:
                return False
        return False

    def _member(
        self, name: str, structure: Node, steps: list[_Step], indices: list[Node]
    ) -> tuple[str, list[Node], Node] | None:
        """A member of one structure: a variable of its own."""
        step = steps.pop(0)
        kind = self.types.member(structure, step.member or "")
        if kind is None:
            return None
        arrow = "->" if indices else "."
        own = f"{name}{arrow}{step.member}"
        resolved = self.types.resolved(kind)
        if is_structure(resolved) and steps and steps[0].member is not None:
            return self._member(own, resolved, steps, [])
        if not isinstance(resolved, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            own = own.replace("->", "_").replace(".", "_")
        found = self._follow(own, kind, steps)
        self._declare(own, kind)
        return found

    def _declare(self, name: str, kind: Node) -> None:
        """Declare a variable of the type of a member."""
        if name in self.declared:
            return
        resolved = self.types.resolved(kind)
        found: Node | None = None
        with suppress(UnknownLayoutError):  # a pointer to one structure, none of whose members is used by place
            found = self._of_parts(name, resolved)
        chain: list[Node] = []
        while isinstance(resolved, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            chain.append(resolved)
            resolved = self.types.resolved(resolved.type)
        if found is None and (chain or not is_structure(resolved)):
            found = _wrapped(chain, c_ast.TypeDecl(name, [], None, resolved))
        if found is not None:
            self.declared[name] = c_ast.Decl(name, [], [], [], [], found, None, None, getattr(kind, "coord", None))

    def _part_of(
        self, name: str, structure: Node, steps: list[_Step], indices: list[Node]
    ) -> tuple[str, list[Node], Node] | None:
        """A member in an array of structures: its place counted in parts."""
        offset, terms = 0, list[tuple[Node, int]]()
        kind: Node = structure
        while steps:
            step = steps.pop(0)
            kind = self.types.resolved(kind)
            if step.member is not None:
                if not is_structure(kind):
                    return None
                found = self._offset(kind, step.member)
                if found is None:
                    return None
                offset, kind = offset + found[0], found[1]
            elif isinstance(kind, c_ast.ArrayDecl):
                terms.append((step.index, self.types.size(kind.type)))
                kind = kind.type
            else:
                return None
        self.types.use(structure, offset, kind)
        part = self.types.part(structure).size_bytes
        place: Node = c_ast.Constant("int", str(offset // part))
        for index, size in terms:
            factor = c_ast.Constant("int", str(size // part))
            scaled = index if size == part else c_ast.BinaryOp("*", factor, index)
            place = c_ast.BinaryOp("+", place, scaled, getattr(index, "coord", None))
        self._arrays.add(name)
        return name, [*indices, place], kind

    def _offset(self, structure: Node, name: str) -> tuple[int, Node] | None:
        for offset, part in self.types.places(structure):
            if part.name == name:
                return offset, part.type
            inner = self.types.resolved(part)
            if part.name is None and is_structure(inner) and (found := self._offset(inner, name)) is not None:
                return offset + found[0], found[1]
        return None


_BYTES = {1: ["char"], 2: ["short"], 4: ["float"], 8: ["double"], 16: ["long", "double"]}


def rewrite_members(globals_: Sequence[Node], functions: Sequence[Node], types: Types) -> tuple[Node, ...]:
    """Rewrite the members in all functions; the declarations at file scope with those that members have become.

    Args:
        globals_: declarations at file scope.
        functions: with a body; they are changed.
        types: of the declarations at file scope.
    """
    if not any(is_structure(part) or _is_sizeof(part) for node in (*globals_, *functions) for part in walk(node)):
        return tuple(globals_)
    declared: dict[str, Node] = {}
    rewriters = []
    for function in functions:
        rewriters.append(Rewriter(types, globals_, function))
        rewriters[-1].look(function)
    for function, rewriter in zip(functions, rewriters, strict=True):
        rewriter.declared.clear()
        rewriter.function(function)
        declared |= rewriter.declared
    last = rewriters[-1]
    last.several |= set().union(*(rewriter.several for rewriter in rewriters))
    for node in globals_:
        if isinstance(node, c_ast.Decl) and node.name:
            last.array(node)
    return (*globals_, *declared.values())


def _is_sizeof(node: Node) -> bool:
    return isinstance(node, c_ast.UnaryOp) and node.op == "sizeof"


def _wrapped(chain: Sequence[Node], inner: Node) -> Node:
    """Arrays of, and pointers to, a type; the outermost comes first."""
    for part in reversed(chain):
        if isinstance(part, c_ast.PtrDecl):
            inner = c_ast.PtrDecl([], inner)
        else:
            inner = c_ast.ArrayDecl(inner, part.dim, [], part.coord)
    return inner


def _steps(node: Node) -> tuple[str, list[_Step]] | None:
    """The variable at the root of an expression, and the steps from it; None for other expressions."""
    if isinstance(node, c_ast.ID):
        return node.name, []
    if isinstance(node, c_ast.Cast):
        return None
    if isinstance(node, c_ast.StructRef):
        found = _steps(node.name)
        if found is None and node.type == "->":
            found = _moved(node.name)
            return None if found is None else (found[0], [*found[1], _Step(member=node.field.name)])
        if found is None:
            return None
        through = [_Step(index=c_ast.Constant("int", "0"), plain=True)] if node.type == "->" else []
        return found[0], [*found[1], *through, _Step(member=node.field.name)]
    if isinstance(node, c_ast.ArrayRef):
        found = _steps(node.name)
        return None if found is None else (found[0], [*found[1], _Step(index=node.subscript)])
    if isinstance(node, c_ast.UnaryOp) and node.op == "*":
        found = _moved(node.expr)
        if found is not None:
            return found
        found = _steps(node.expr)
        return None if found is None else (found[0], [*found[1], _Step(index=c_ast.Constant("int", "0"), plain=True)])
    if isinstance(node, c_ast.UnaryOp) and node.op == "&":
        return _steps(node.expr)
    return None


def _moved(node: Node) -> tuple[str, list[_Step]] | None:
    """`p + i` as the place that it points at."""
    if not isinstance(node, c_ast.BinaryOp) or node.op != "+":
        return None
    found = _steps(node.left)
    return None if found is None else (found[0], [*found[1], _Step(index=node.right)])


def _spine(node: Node) -> Iterator[Node]:
    """The expression and what it is a part of, down to the variable, without indices."""
    while node is not None:
        yield node
        if isinstance(node, (c_ast.StructRef, c_ast.ArrayRef)):
            node = node.name
        elif isinstance(node, c_ast.UnaryOp):
            node = node.expr
        elif isinstance(node, c_ast.BinaryOp):
            node = node.left
        else:
            return


def _is_constant(node: Node) -> bool:
    return isinstance(node, c_ast.Constant)


def _sum(node: Node, more: int) -> Node:
    return node if not more else c_ast.BinaryOp("+", node, c_ast.Constant("int", str(more)))
