"""What the names of a kernel stand for: arrays, scalars, sizes, and integers that are expressions of these."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from kernmodel.errors import KernmodelError, Location, SourceError, UnsupportedKernelError
from kernmodel.formulas.division import whole_quotient
from kernmodel.formulas.formula import (
    ONE,
    ZERO,
    Formula,
    constant,
    floored,
    maximum,
    minimum,
    size,
    variable,
)
from kernmodel.patterns import pattern
from kernmodel.source.model import ROW_LENGTH, ElementType, IndirectIndex
from kernmodel.source.parse.c_types import INT, element_type
from kernmodel.source.parse.inequalities import inequalities
from kernmodel.source.parse.preprocess import integer_literal
from kernmodel.source.parse.selections import Selection
from kernmodel.source.parse.standard_headers import MAXIMA, MINIMA, is_known_function
from kernmodel.source.parse.syntax import (
    MemberRef,
    Node,
    Program,
    c_ast,
    memory_reads,
    statements,
    subscripts,
    walk,
)
from kernmodel.source.parse.tree import OPPOSITE, STEPS, called_name, without_casts, written, written_names
from kernmodel.value_types import dataclass

COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
EVEN = 0.5
"""With which probability a condition holds that the data decide, where nothing is stated."""
UNKNOWN = ElementType("struct", 0, "integer")
"""The type of what is no number, or not known to be one."""
_MACRO_NAME = pattern(r"^[A-Z][A-Z0-9_]*$")


@dataclass(frozen=True, slots=True)
class DeclaredArray:
    """An array or pointer as declared.

    Attributes:
        element: its element type, None if it is no arithmetic type (a struct).
        dimensions: the extents as syntax trees, outermost first; None where no extent is declared.
        computed: where its address is computed from another pointer or changed, None if it is not.
        change: the statement or declaration that does so, as written.
        derived: the arrays that are arguments of the call that gives its address (an aligned view of one), each with
            the place of the call.
    """

    name: str
    element: ElementType | None
    dimensions: tuple[Node | None, ...]
    location: Location
    computed: Location | None
    change: str = ""
    derived: tuple[tuple[str, Location], ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """What a pointer points at: `p[x]` is `array[prefix…][offset + x]`."""

    array: str
    prefix: tuple[Formula, ...]
    offset: Formula


MOST_CALLS = 8
"""Functions within functions that are inlined."""


class Scope:
    """The names of one function while its statements are read in order, or those of a file (`function` is None).

    Attributes:
        arrays, scalars: what is declared.
        values: integer names whose value is known: size symbols, loop variables, substituted locals.
        fixed: size symbols that must be numbers because a loop steps by them, or a shift is by them, with their values.
        shifting: those of them that shifts are by.
        indirect: by the name of their symbol, the values from index arrays that integer expressions contain.
        selected: by the name of their symbol, the integers that conditions choose.
        decided: whether the value of a size has chosen one of them.
        given: integer parameters for which the calls in the file give a number, with that number.
        views: by name, the pointers that point into other arrays, or move.
        moving: the names of variables that advance with a loop, whose values are not those they are set to.
        counters: the variables of the loops of the nest, which may have had a value before.
        in_turn: the loops whose first iterations alternate within one step, with where that is written.
        rows: by variable, the loops over rows of compressed storage, whose bounds are read from memory.
        asked: integers whose values come from memory or calls before the nest: sizes to be given, with their places.
        changing: the names of variables that the nest writes.
        stepping: whether `i++` in an index moves i, as it does where the index is read once.
    """

    def __init__(self, program: Program, several: frozenset[str]) -> None:
        """The scope of the file; what variables are set to where they are declared does not count for `several`."""
        self.program = program
        self.function: Node = None
        self.given: dict[str, int] = {}
        self.arrays: dict[str, DeclaredArray] = {}
        self.scalars: dict[str, ElementType] = {}
        self.values: dict[str, Formula] = {}
        self.fixed: dict[str, int] = {}
        self.shifting: set[str] = set()
        self.indirect: dict[str, IndirectIndex] = {}
        self.selected: dict[str, Selection] = {}
        self.decided = False
        self.views: dict[str, View] = {}
        self.moving: frozenset[str] = frozenset()
        self.counters: frozenset[str] = frozenset()
        self.in_turn: dict[str, Location] = {}
        self.asked: dict[str, Location] = {}
        self.rows: dict[str, Node] = {}
        self.changing: frozenset[str] = frozenset()
        self.stepping = False
        self._before = True
        self._within: list[str] = []
        self._unread: dict[str, UnsupportedKernelError] = {}
        self._types: dict[str, Node] = {}
        self._writes = Counter(dict.fromkeys(several, 2))
        for node in program.globals:
            self.declare(node)

    @classmethod
    def of(cls, program: Program, function: Node) -> Scope:
        """The scope of a function: the names of its file, which are read once for all functions, and its parameters."""
        writes = Counter(name for name, _ in program.writes(function))
        elsewhere = program.once(_written_by_functions, program.functions)
        changing = elsewhere | {name for name, count in writes.items() if count > 1}
        several = program.once(_initialised, program.globals) & changing
        scope = copy(program.once(cls, program, several))
        vars(scope).update({name: copy(one) for name, one in vars(scope).items() if isinstance(one, (dict, list))})
        scope.function, scope._writes = function, writes
        scope._take_parameters()
        return scope

    def _take_parameters(self) -> None:
        for known, element in self.scalars.items():
            # a variable of the file that the function only reads is set elsewhere, as a parameter is
            if element.kind == "integer" and element.size_bytes and not self._writes[known]:
                self.values.setdefault(known, size(known))
        parameters = getattr(self.function.decl.type, "args", None)
        for number, node in enumerate(parameters.params if parameters else ()):
            self.declare(node, parameter=True)
            name = getattr(node, "name", None)
            if name in self.values and name not in self.program.preprocessed.values:
                self._take_argument(name, argument_of(self.program, self.function, number))

    def location(self, node: Node) -> Location:
        """Where the node stands in the user's file."""
        return self.program.location(node)

    def unsupported(self, what: str, node: Node, todo: str) -> UnsupportedKernelError:
        """The error that says what is outside of what the models cover, where, and what is supported."""
        return UnsupportedKernelError(what, where=self.location(node), todo=todo)

    # Declarations

    def declare(self, node: Node, *, parameter: bool = False) -> None:
        """Take a declaration, typedef or enumeration into the scope; other nodes declare nothing."""
        if isinstance(node, c_ast.Typedef):
            self._enumerators(node)
            self._types[node.name] = node.type
        elif isinstance(node, c_ast.DeclList):
            for part in node.decls:
                self.declare(part)
        elif isinstance(node, c_ast.Decl):
            self._enumerators(node)
            if node.name and not isinstance(node.type, c_ast.FuncDecl):
                self._declare_variable(node, parameter)

    def _enumerators(self, node: Node) -> None:
        for enumeration in _enumerations(node.type):
            value = constant(-1)
            for item in enumeration.values.enumerators:
                value = value + 1 if item.value is None else self.integer(item.value)
                self.values[item.name] = value

    def _declare_variable(self, node: Node, parameter: bool) -> None:
        element, dimensions = self._resolved(node.type)
        name = node.name
        for known in (self.arrays, self.scalars, self.values, self.views, self._unread):
            known.pop(name, None)
        if dimensions:
            self.arrays[name] = DeclaredArray(name, element, tuple(dimensions), self.location(node), None)
            if dimensions[0] is None and node.init is not None:
                self.point(name, node.init, node)
            return
        self.scalars[name] = element or UNKNOWN
        if element is None and (kind := _type_name(node.type)) and kind not in self._types:
            todo = self.program.preprocessed.advice("declare it, or give the header that does with -I")
            self._unread[name] = self.unsupported(f"the type of {name}, {kind}, is not known", node, todo)
        if element is None or element.kind != "integer":
            return
        if parameter:
            # the call is a write, so that one that the function changes has several
            self._writes[name] += self._writes[name] > 0
            self.values[name] = size(name)
        elif node.init is not None:
            self.assign(name, node.init, final="const" in (node.quals or ()))

    def refuse_unknown_type(self, name: str) -> None:
        """Refuse a name that is declared with a type that nothing declares."""
        if name in self._unread and self.scalars.get(name) == UNKNOWN:
            raise self._unread[name]

    def _take_argument(self, name: str, argument: Node | None) -> None:
        """An integer parameter to which every call in the file gives one size is that size; a number is its default."""
        if isinstance(argument, c_ast.ID) and argument.name in self.program.preprocessed.values:
            self.values[name] = size(argument.name)
        elif isinstance(argument, c_ast.Constant) and (value := integer_literal(argument.value)):
            self.given[name] = value

    def point(self, name: str, value: Node | None, node: Node) -> None:
        """Note that a pointer takes this value at this node; None: it moves on from where it points."""
        seen = None if value is None else self.view(name, value)
        self.views.pop(name, None)
        if seen is not None:
            self.views[name] = seen
            self.arrays[name] = replace(self.arrays[name], computed=None, derived=())
            return
        computed = value is None or _computed_pointer(value)
        called = _arguments(value) if value is not None and not computed else frozenset()
        place = self.location(node)
        others = tuple((other, place) for other in self.arrays if other in called and other != name)
        if isinstance(node, c_ast.Assignment):
            change = f"{name} {node.op} {written(node.rvalue)}"
        else:
            change = written(node) if value is None else f"{name} = {written(value)}"
        known = self.arrays[name]
        self.arrays[name] = replace(known, computed=place if computed else None, change=change, derived=others)

    def view(self, name: str, value: Node) -> View | None:
        """What the pointer `name` points at with this value, where that is an element or a row of a known array."""
        try:
            found = self._pointed(value)
        except (SourceError, UnsupportedKernelError):
            return None
        if found is None or found.array == name:
            return None
        own, other = self.arrays[name], self.arrays[found.array]
        if (
            other.computed
            or (None in other.dimensions[1:] and len(found.prefix) < len(other.dimensions) - 1)
            or len(found.prefix) + len(own.dimensions) != len(other.dimensions)
        ):
            return None
        sizes = [array.element.size_bytes if array.element else 0 for array in (own, other)]
        return found if own.element == other.element or (all(sizes) and len(set(sizes)) == 1) else None

    def _pointed(self, value: Node) -> View | None:
        value = without_casts(value)
        # in the nest, a row may be found through an index array
        integer = self.integer if self._before else self.index
        if isinstance(value, c_ast.ID) and value.name in self.arrays:
            return self.views.get(value.name) or View(value.name, (), ZERO)
        if isinstance(value, c_ast.StructRef) and (name := written(value)) in self.arrays and self._again(name):
            return View(name, (), ZERO)
        if isinstance(value, c_ast.BinaryOp) and value.op in ("+", "-"):
            inner = self._pointed(value.left)
            if inner is not None:
                moved = integer(value.right)
                return replace(inner, offset=inner.offset + (moved if value.op == "+" else -moved))
            inner = self._pointed(value.right) if value.op == "+" else None
            return None if inner is None else replace(inner, offset=inner.offset + integer(value.left))
        address = isinstance(value, c_ast.UnaryOp) and value.op == "&"
        base, nodes = subscripts(value.expr if address else value)
        if not isinstance(base, c_ast.ID) or base.name not in self.arrays or not nodes:
            return None
        place = [integer(node) for node in nodes]
        whole = self.views.get(base.name) or View(base.name, (), ZERO)
        place[0] += whole.offset
        if address:
            return View(whole.array, (*whole.prefix, *place[:-1]), place[-1])
        return View(whole.array, (*whole.prefix, *place), ZERO)

    def address_reads(self, value: Node) -> Iterator[Node]:
        """The elements that are read to compute what a pointer is set to."""
        value = without_casts(value)
        if isinstance(value, c_ast.BinaryOp):
            yield from self.address_reads(value.left)
            yield from self.address_reads(value.right)
            return
        address = isinstance(value, c_ast.UnaryOp) and value.op == "&"
        base, nodes = subscripts(value.expr if address else value)
        known = self.arrays.get(base.name) if isinstance(base, c_ast.ID) else None
        if known is not None and nodes and (address or len(nodes) < len(known.dimensions)):
            yield from (read for node in nodes for read in memory_reads(node))
        else:
            yield from memory_reads(value)

    def _again(self, member: str) -> bool:
        """Whether a function uses a member that is an array more than once, so that pointers may share it."""
        used_in = self.program.functions if self.function is None else (self.function,)
        nodes = (node for function in used_in for node in walk(function.body))
        parts = (node for node in nodes if isinstance(node, (c_ast.ID, c_ast.StructRef)))
        uses = (node.name if isinstance(node, c_ast.ID) else written(node) for node in parts)
        return list(uses).count(member) > 1

    def enter(self) -> None:
        """From here on, what is read stands in the nest."""
        self._before = False

    def advance(self, name: str, amount: Formula) -> None:
        """Note that a pointer has moved on by this number of elements, or rows."""
        view = self.views.get(name) or View(name, (), ZERO)
        self.views[name] = replace(view, offset=view.offset + amount)

    def point_perhaps(self, statement: Node, followed: Collection[str] = ()) -> None:
        """Note the pointers that change within a statement that may be executed any number of times, or never, but for
        those that are `followed`."""
        for name, node in self.program.writes(statement):
            if name in followed:
                continue
            value = getattr(node, "rvalue", None) if getattr(node, "op", "") == "=" else None
            if isinstance(node, c_ast.UnaryOp) and node.op == "&":
                continue  # a call sets it: an array of its own
            if name in self.arrays and not isinstance(node, c_ast.Decl) and (value is None or _computed_pointer(value)):
                self.point(name, None, node)

    def _resolved(self, node: Node) -> tuple[ElementType | None, list[Node | None]]:
        """Element type and dimensions (None: not declared) of a declarator, typedefs followed."""
        dimensions: list[Node | None] = []
        while isinstance(node, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            dimensions.append(node.dim if isinstance(node, c_ast.ArrayDecl) else None)
            node = node.type
        inner = node.type if isinstance(node, (c_ast.TypeDecl, c_ast.Typename)) else node
        if isinstance(inner, c_ast.Enum):
            return INT, dimensions
        if not isinstance(inner, c_ast.IdentifierType):
            return None, dimensions
        if len(inner.names) == 1 and inner.names[0] in self._types:
            element, more = self._resolved(self._types[inner.names[0]])
            return element, dimensions + more
        return element_type(inner.names), dimensions

    def type_of(self, declaration: Node) -> ElementType | None:
        """The arithmetic type of a scalar that is declared so, or of what a function returns; None for others."""
        element, dimensions = self._resolved(declaration.type)
        return None if dimensions else element

    def pointed_type(self, cast: Node) -> ElementType | None:
        """The arithmetic type of what a cast lets a pointer point at; None of other casts."""
        element, dimensions = self._resolved(cast.to_type.type)
        return element if dimensions == [None] else None

    def cast_type(self, node: Node) -> ElementType:
        """The arithmetic type a cast names."""
        element, dimensions = self._resolved(node.to_type.type)
        if element is None or dimensions:
            raise self.unsupported(
                "a cast to a type that is not arithmetic", node, "cast to float, double or integer types"
            )
        return element

    def assign(self, name: str, value: Node, *, final: bool = False) -> None:
        """Remember the value of an integer that is written once in the function, if it is an integer expression."""
        if self._writes[name] > 1 and not final and name not in self.moving:
            return
        self.values.pop(name, None)
        if self._before and _comes_from_outside(value):
            self.values[name] = size(name)
            self.asked[name] = self.location(value)
            return
        try:
            self.values[name] = self._taken(value)
        except UnsupportedKernelError as error:
            # the value matters only if an index or a bound uses the name, which then says why it is not known
            self._unread[name] = error
        except SourceError:
            return

    def set_now(self, name: str, value: Node) -> None:
        """The value that an integer takes in the order of execution, forgotten where it is no integer expression."""
        found: Formula | None = None
        try:
            found = self._taken(value)
        except UnsupportedKernelError as error:
            self._unread[name] = error
        except SourceError:
            pass
        self.values.pop(name, None)
        if found is not None:
            self.values[name] = found

    def _taken(self, value: Node) -> Formula:
        """The value of an integer; elements of index arrays that no loop moves are sizes in it."""
        try:
            return self.integer(value)
        except UnsupportedKernelError:
            if self._before:
                raise
        return self.index(value)

    def writes(self, name: str) -> int:
        """How many statements of the function write a variable."""
        return self._writes[name]

    # Integer expressions

    def integer(self, node: Node) -> Formula:
        """The integer expression of sizes and loop variables that the node stands for: a bound, an extent, a step.

        Raises:
            UnsupportedKernelError: it reads memory, floats, or uses an operation that has no integer formula here.
            SourceError: a name is not declared.
        """
        expression = self.index(node)
        for symbol in expression.free_symbols:
            if symbol in self.selected:
                raise self._no_integer(node, f"{symbol[1:-1]}, which a condition chooses,")
            entry = self.indirect.get(symbol)
            if entry is not None and self.moved_entry(symbol) is None:
                # an element that no loop moves is a size that happens to stand in an array
                name = re.sub(r"\W+", "_", entry.text).strip("_")
                self.asked[name] = self.location(node)
                expression = expression.substitute({symbol: size(name)})
            elif entry is not None and not entry.array:
                raise self._no_integer(node, f"{entry.text}, which loops move,")
            elif entry is not None:
                raise self.unsupported(
                    f"{self.indirect[symbol].text} is read from memory, so bounds and extents cannot be computed "
                    "from it",
                    next(memory_reads(node), node),
                    "take a size in its place; loops from row[i] to row[i + 1] are read (--row-length)",
                )
        return expression

    def moved_entry(self, symbol: str) -> IndirectIndex | None:
        """The value from an index array that a symbol stands for, if a loop moves it to other elements."""
        entry = self.indirect.get(symbol)
        return None if entry is None or entry.position.of_sizes else entry

    def index(self, node: Node) -> Formula:
        """The integer expression that an index stands for: as `integer`, but values from index arrays are symbols too.

        Raises:
            As `integer`.
        """
        handler = _INTEGER_HANDLERS.get(type(node))
        if handler is None:
            raise self._no_integer(node, "this expression")
        found: Formula = handler(self, node)
        return found

    def _no_integer(self, node: Node, what: str) -> UnsupportedKernelError:
        return self.unsupported(
            f"{what} is no integer formula of sizes and loop variables",
            node,
            "indices and bounds may use +, −, ×, constants, sizes, loop variables, min and max",
        )

    def _constant(self, node: Node) -> Formula:
        value = integer_literal(node.value)
        if value is None:
            raise self._no_integer(node, f"the constant {node.value}")
        return constant(value)

    def _name(self, node: Node) -> Formula:
        name = node.name
        if name in self.fixed:
            return constant(self.fixed[name])
        if name in self.values:
            return self.values[name]
        declared = self.scalars.get(name)
        if declared is not None and declared.kind == "integer" and declared.size_bytes and name not in self.changing:
            # set before the nest in a way that is not followed: whatever it is, the nest does not change it
            self.asked[name] = self.location(node)
            return size(name)
        if name in self._unread:
            raise self._unread[name]
        if name in self.scalars:
            changes = "changes or is not known here" if self.scalars[name].kind == "integer" else "is no integer"
            raise self._no_integer(node, f"the variable {name}, which {changes},")
        if name in self.arrays:
            raise self._no_integer(node, f"the pointer {name}")
        if not self.is_size(name):
            raise self.undeclared(node)
        return size(name)

    def is_size(self, name: str) -> bool:
        """Whether an undeclared name is a size: an integer macro, or by its capitals a macro that has no value yet."""
        return name in self.program.preprocessed.values or bool(_MACRO_NAME.match(name))

    def undeclared(self, node: Node, what: str = "variable") -> KernmodelError:
        """The error for a name that nothing declares, or that is declared where it does not help."""
        if node.name in self.arrays:
            todo = "count with an integer, and index the arrays with it"
            return self.unsupported(f"how often the pointer {node.name} moves is not known", node, todo)
        inside = (part for part in walk(self.function.body) if isinstance(part, c_ast.Decl) and part.name == node.name)
        if next(inside, None) is not None:
            text = f"{node.name} is set within the loop that is to end, or to step, by it"
            return self.unsupported(text, node, "write the loop with a bound and a step that are known before it")
        names = [*self.arrays, *self.scalars, *self.values, *self.program.preprocessed.values]
        near = get_close_matches(node.name, names, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"declare it, or define it with -D {node.name}=…"
        hint = self.program.preprocessed.advice(hint)
        return SourceError(f"{what} {node.name} is not declared", where=self.location(node), todo=hint)

    def _unary(self, node: Node) -> Formula:
        if node.op == "+":
            return self.index(node.expr)
        if node.op == "-":
            return -self.index(node.expr)
        if node.op == "~":
            return -self.index(node.expr) - 1
        if node.op == "*":
            return self._memory(node)
        name = getattr(node.expr, "name", None)
        if self.stepping and node.op in STEPS and name in self.moving and name in self.values:
            before = self.values[name]
            self.values[name] = before + (1 if "+" in node.op else -1)
            return before if node.op.startswith("p") else self.values[name]
        raise self._no_integer(node, f"the operator {node.op.removeprefix('p')}")

    def _binary(self, node: Node) -> Formula:
        if node.op not in ("+", "-", "*", "/", "%", "<<", ">>", "&", *COMPARISONS):
            raise self._no_integer(node, f"the operator {node.op}")
        left, right = self.index(node.left), self.index(node.right)
        if (compared := COMPARISONS.get(node.op)) is not None:
            if left.is_integer and right.is_integer:
                return constant(int(compared(int(left), int(right))))
            return self.choose(node, ONE, ZERO)
        if node.op in ("<<", ">>"):
            right = self._exponent(right, node)
        if node.op == "+":
            return left + right
        if node.op == "-":
            return left - right
        if node.op == "*":
            return left * right
        if node.op == "<<" and right.is_integer and int(right) >= 0:
            return left * (1 << int(right))
        if node.op == ">>" and right.is_integer and int(right) >= 0:
            return self._quotient(left, constant(1 << int(right)), node)
        if node.op == "/" and right:
            return self._quotient(left, right, node)
        if node.op == "%" and left.is_integer and right.is_integer and right:
            return constant(abs(int(left)) % abs(int(right)) * (1 if int(left) >= 0 else -1))
        if node.op == "%" and right:
            return self._remainder(left, right, node)
        if node.op == "&":
            return self._masked(left, right, node)
        raise self._no_integer(node, f"this use of the operator {node.op}")

    def _exponent(self, exponent: Formula, node: Node) -> Formula:
        """The number by which is shifted: the sizes in it take their values now, as powers are no formulas."""
        known = self.program.preprocessed.values
        for name in exponent.free_symbols if exponent.of_sizes else ():
            if name not in known:
                raise SourceError(
                    f"macro or parameter {name}, by which {written(node)} shifts, has no value",
                    where=self.location(node),
                    todo=f"give -D {name}=…",
                )
            self.fixed[name] = known[name]
            self.shifting.add(name)
        return exponent.substitute({name: constant(value) for name, value in self.fixed.items()})

    def _masked(self, left: Formula, right: Formula, node: Node) -> Formula:
        """`x & 2^k − 1`, which is a remainder, and `x & −2^k`, what is left without it, of x that are not negative."""
        if left.is_integer and right.is_integer:
            return constant(int(left) & int(right))
        value, mask = (right, left) if left.is_integer else (left, right)
        power = (int(mask) + 1 if int(mask) >= 0 else -int(mask)) if mask.is_integer else 0
        if power <= 0 or power & (power - 1):
            raise self._no_integer(node, f"this use of the operator {node.op}")
        rest = self._remainder(value, constant(power), node)
        return rest if int(mask) >= 0 else value - rest

    def _quotient(self, left: Formula, right: Formula, node: Node) -> Formula:
        if left.of_sizes or not right.of_sizes:
            # C truncates toward zero, which is the floor for the sizes (≥ 0) this is used for
            return floored(left / right)
        if (whole := whole_quotient(left, right)) is not None:
            return whole
        inner = self._computed(left)
        if inner is None:
            return self._divided(left, right, None, node)
        if inner.modulus is None:
            return self._divided(inner.position, inner.divisor * right, None, node)
        if (modulus := whole_quotient(inner.modulus, right)) is not None:
            return self._divided(inner.position, inner.divisor * right, modulus, node)
        raise self._no_integer(node, f"{written(node)}, a quotient of a remainder,")

    def _remainder(self, left: Formula, right: Formula, node: Node) -> Formula:
        if left.of_sizes and right.of_sizes:
            return left - right * floored(left / right)
        if not right.of_sizes:
            raise self._no_integer(node, f"{written(node)}, a remainder by what changes,")
        if whole_quotient(left, right) is not None:
            return ZERO
        inner = self._computed(left)
        if inner is None:
            return self._divided(left, ONE, right, node)
        if inner.modulus is None or whole_quotient(inner.modulus, right) is not None:
            return self._divided(inner.position, inner.divisor, right, node)
        raise self._no_integer(node, f"{written(node)}, a remainder of a remainder,")

    def _computed(self, value: Formula) -> IndirectIndex | None:
        """The quotient or remainder that an expression is, None where it is another."""
        entry = self.indirect.get(str(value))
        return entry if entry is not None and not entry.array else None

    def _divided(self, left: Formula, divisor: Formula, modulus: Formula | None, node: Node) -> Formula:
        """The symbol of a quotient or remainder that loops move; equal ones have equal names."""
        if self.unsettled(left):
            raise self._no_integer(
                node, f"{written(node)}, of what is read from memory, divided or chosen by a condition already,"
            )
        if left.linear([symbol for symbol in left.free_symbols if not symbol.positive]) is None:
            raise self._no_integer(node, f"{written(node)}, of what is not affine in the loop variables,")
        shown = [_as_operand(part) for part in (left, divisor, modulus or ONE)]
        name = shown[0] + (f" / {shown[1]}" if divisor != 1 else "") + (f" % {shown[2]}" if modulus is not None else "")
        name = f"({name})"
        self.indirect.setdefault(name, IndirectIndex(name, "", left, written(node), divisor, modulus))
        return self.indirect[name].symbol

    def _conditional(self, node: Node) -> Formula:
        """`x < y ? x : y` and its seven relatives are a minimum or maximum, others what their condition chooses."""
        test = node.cond
        chosen, other = self.index(node.iftrue), self.index(node.iffalse)
        if isinstance(test, c_ast.BinaryOp) and test.op in ("<", "<=", ">", ">="):
            with suppress(SourceError):
                left, right = self.index(test.left), self.index(test.right)
                if {chosen, other} == {left, right}:
                    smaller = (chosen == left) == (test.op in ("<", "<="))
                    return minimum(left, right) if smaller else maximum(left, right)
        return self.choose(test, chosen, other)

    def choose(self, condition: Node, yes: Formula, no: Formula) -> Formula:
        """The integer that is `yes` where a condition holds, and `no` elsewhere."""
        if yes == no:
            return yes
        holds, fails = (inequalities(condition, self, holds=truth) for truth in (True, False))
        known = {**self.program.preprocessed.values, **self.given, **self.fixed}
        for side, value in ((holds, yes), (fails, no)):
            if side is not None and side.proven(known):
                self.decided |= not side.proven({})
                return value
        name = f"({written(condition) if holds is None else holds} ? {yes} : {no})"
        chance = None if holds is not None else self._chance(condition)
        self.selected.setdefault(name, Selection(name, holds, fails, yes, no, chance))
        return variable(name)

    def _chance(self, condition: Node) -> float | None:
        """How often a condition holds that is no formula: as stated, else half of the times if the data decide it."""
        stated = dict(self.program.stated.taken).get(self.location(condition).line or 0)
        return EVEN if stated is None and self.decided_by_data(condition) else stated

    def decided_by_data(self, condition: Node) -> bool:
        """Whether a condition is none of integer formulas of sizes and loop variables."""
        if isinstance(condition, c_ast.BinaryOp) and condition.op in ("&&", "||"):
            return self.decided_by_data(condition.left) or self.decided_by_data(condition.right)
        if isinstance(condition, c_ast.UnaryOp) and condition.op == "!":
            return self.decided_by_data(condition.expr)
        sides: tuple[Node, ...] = (condition,)
        if isinstance(condition, c_ast.BinaryOp) and condition.op in OPPOSITE:
            sides = (condition.left, condition.right)
        try:
            found = [self.index(side) for side in sides]
        except SourceError:
            return True
        return any(symbol in self.indirect for side in found for symbol in side.free_symbols)

    def unsettled(self, formula: Formula) -> bool:
        """Whether a formula holds what is read from memory, divided, or chosen by a condition."""
        return any(symbol in self.indirect or symbol in self.selected for symbol in formula.free_symbols)

    def behind(self, symbols: Iterable[str]) -> set[str]:
        """The symbols with those on which values from index arrays, quotients and choices among them depend."""
        found, new = set[str](), set(symbols)
        while new:
            found |= new
            inside: list[Iterable[str]] = [self.indirect[s].position.free_symbols for s in new if s in self.indirect]
            inside += [self.selected[s].symbols() for s in new if s in self.selected]
            new = set[str]().union(*inside) - found
        return found

    def _call(self, node: Node) -> Formula:
        name = called_name(node)
        if name in MINIMA or name in MAXIMA:
            arguments = [self.index(argument) for argument in node.args.exprs]
            return minimum(*arguments) if name in MINIMA else maximum(*arguments)
        found, arguments = returned(self.program, name), node.args.exprs if node.args else []
        if found is not None and len(found[0]) == len(arguments) and len(self._within) < MOST_CALLS:
            given = dict(zip(found[0], map(self.index, arguments), strict=True))
            outside, self.values = self.values, {**self.values, **given}
            self._within.append(name)
            try:
                return self.index(found[1])
            finally:
                self.values = outside
                self._within.pop()
        raise self._no_integer(node, f"the call of {name}")

    def _cast(self, node: Node) -> Formula:
        if self.cast_type(node).kind == "float":
            raise self._no_integer(node, "a conversion to floating point")
        return self.index(node.expr)

    def _structure(self, node: Node) -> Formula:
        raise self._no_integer(node, "a member of a struct")

    def _memory(self, node: Node) -> Formula:
        """The symbol of a value that is read from an index array."""
        base, nodes = subscripts(node)
        array = self.arrays.get(base.name) if isinstance(base, c_ast.ID) else None
        text = written(node)
        element = node.element if isinstance(node, MemberRef) else None if array is None else array.element
        if array is None or element is None or element.kind != "integer":
            raise self._no_integer(node, f"{text}, which is read from memory but is no element of an integer array,")
        place = [self.index(part) for part in nodes]
        view = self.views.get(array.name)
        inner = self.indirect.get(str(place[0])) if len(place) == 1 and view is None else None
        if inner is not None and inner.array:
            name = f"{array.name}[{inner.name}]"
            found = IndirectIndex(name, array.name, inner.position, text, through=inner.name)
            self.indirect.setdefault(name, found)
            return found.symbol
        if any(map(self.unsettled, place)):
            chosen = any(symbol in self.selected for part in place for symbol in part.free_symbols)
            how = "chosen by a condition" if chosen else "computed from what is found through an index array"
            raise self.unsupported(
                f"the index {text} is itself {how}",
                node,
                "an element of an index array may be the index of another as it is, x[a[b[i]]]; put others together "
                "before the nest, c[i] = a[b[i] + 1], for x[c[i]]",
            )
        if view is not None:
            array, place = self.arrays[view.array], [*view.prefix, view.offset + place[0], *place[1:]]
        found = self._entry(array, place, text)
        self.indirect.setdefault(found.name, found)
        return found.symbol

    def _entry(self, array: DeclaredArray, place: Sequence[Formula], text: str) -> IndirectIndex:
        """The value at this index of an index array; equal elements have equal names, however they are written."""
        name = array.name + "".join(f"[{part}]" for part in place)
        position = place[0]
        for part, dimension in zip(place[1:], array.dimensions[1:], strict=False):
            # rows behind pointers are as long as those that a loop runs over
            extent = size(ROW_LENGTH) if dimension is None else self.integer(dimension)
            position = position * extent + part
        return IndirectIndex(name, array.name, position, text)


_INTEGER_HANDLERS: Mapping[type[Any], Any] = {
    c_ast.Constant: Scope._constant,
    c_ast.ID: Scope._name,
    c_ast.UnaryOp: Scope._unary,
    c_ast.BinaryOp: Scope._binary,
    c_ast.TernaryOp: Scope._conditional,
    c_ast.FuncCall: Scope._call,
    c_ast.Cast: Scope._cast,
    c_ast.ArrayRef: Scope._memory,
    MemberRef: Scope._memory,
    c_ast.StructRef: Scope._structure,
}


def _initialised(declared: Sequence[Node]) -> frozenset[str]:
    """The variables of a file that have a value where they are declared."""
    parts = [part for node in declared for part in (node.decls if isinstance(node, c_ast.DeclList) else (node,))]
    return frozenset(part.name for part in parts if isinstance(part, c_ast.Decl) and part.init is not None)


def _written_by_functions(functions: Sequence[Node]) -> frozenset[str]:
    """The variables of a file that some function writes."""
    found = set[str]()
    for function in functions:
        own = {part.name for part in walk(function) if isinstance(part, c_ast.Decl)}
        found |= {name for name, _ in written_names(function.body)} - own
    return frozenset(found)


def _type_name(node: Node) -> str:
    """The name of the type that a declarator uses; "" where that is a structure or of several words."""
    names = list(getattr(getattr(node, "type", None), "names", ()))
    return str(names[0]) if len(names) == 1 else ""


def _as_operand(part: Formula) -> str:
    """The text of a formula, in brackets if it is more than a number or a name."""
    text = str(part)
    return text if part.is_constant or part.free_symbols == {text} else f"({text})"


def _computed_pointer(value: Node) -> bool:
    """Whether the value of a pointer is computed from another pointer (a call, such as malloc, gives a new array)."""
    value = without_casts(value)
    if isinstance(value, c_ast.UnaryOp) and value.op == "*":
        return not any(isinstance(part, c_ast.StructRef) for part in walk(value))
    return not isinstance(value, (c_ast.FuncCall, c_ast.InitList, c_ast.Constant, c_ast.StructRef))


def _enumerations(kind: Node) -> Iterator[Node]:
    """The enumerations that a type declares, also for members of structures."""
    while hasattr(kind, "type"):
        kind = kind.type
    if isinstance(kind, c_ast.Enum):
        yield from (kind,) if kind.values is not None else ()
    elif isinstance(kind, (c_ast.Struct, c_ast.Union)):
        for member in kind.decls or ():
            yield from _enumerations(member)


def _comes_from_outside(value: Node) -> bool:
    """Whether an integer is read from a structure, through a cast pointer or from a call, so that nothing tells it."""
    value = without_casts(value)
    if isinstance(value, c_ast.FuncCall):
        return not is_known_function(called_name(value))
    if isinstance(value, c_ast.UnaryOp) and value.op == "*":
        return any(isinstance(part, (c_ast.Cast, c_ast.StructRef)) for part in walk(value))
    return isinstance(value, c_ast.StructRef)


def _arguments(value: Node) -> frozenset[str]:
    """The names in the arguments of the call that gives a value."""
    if isinstance(value, c_ast.StructRef):
        return frozenset()
    return frozenset(node.name for node in walk(value) if isinstance(node, c_ast.ID))


def returned(program: Program, name: str) -> tuple[dict[str, Node], Node, Node] | None:
    """The parameters by name, the value and the type of a function of the file that only returns an expression."""
    function = next((one for one in program.functions if one.decl.name == name), None)
    body = list(statements(function.body)) if function is not None else []
    if function is None or len(body) != 1 or not isinstance(body[0], c_ast.Return) or body[0].expr is None:
        return None
    declared = function.decl.type.args
    parameters = [part for part in (declared.params if declared else ()) if isinstance(part, c_ast.Decl)]
    return {part.name: part for part in parameters}, body[0].expr, function.decl.type


def argument_of(program: Program, function: Node, number: int) -> Node | None:
    """What the calls in the file give a function as its argument `number`, through a variable of the caller that is set
    once; None where there is none, or they differ."""
    found: dict[str, Node] = {}
    for caller, call in program.calls.get(function.decl.name, ()):
        arguments = call.args.exprs if call.args else ()
        value = _followed(arguments[number], caller, program) if number < len(arguments) else None
        if value is None:
            return None
        found[written(value)] = value
    return next(iter(found.values())) if len(found) == 1 else None


def _followed(argument: Node, caller: Node, program: Program) -> Node | None:
    """The argument, or what the variable that it names is set to, once in the caller."""
    if not isinstance(argument, c_ast.ID):
        return argument
    writes = [node for name, node in program.writes(caller) if name == argument.name]
    if not writes:
        return argument
    value = writes[0].init if isinstance(writes[0], c_ast.Decl) else getattr(writes[0], "rvalue", None)
    return value if len(writes) == 1 else None
