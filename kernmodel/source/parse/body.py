"""What the statements of a nest do: array references, floating-point operations, scalars and reductions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from kernmodel.errors import Location, UnsupportedKernelError
from kernmodel.formulas.formula import ZERO, Formula
from kernmodel.source.model import ALWAYS, Branch, ElementType, FlopCount, Guard, Loop, Operation, Operations
from kernmodel.source.parse.c_types import (
    COMPLEX_FLOAT,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    LONG_DOUBLE,
    common_type,
    is_complex,
    part_of,
    real_operations,
)
from kernmodel.source.parse.chains import branches, holds_loop
from kernmodel.source.parse.copies import is_copying
from kernmodel.source.parse.guards import iterations_under, without_null_tests
from kernmodel.source.parse.inductions import Induction, amount, at_start, is_advance, trips_of
from kernmodel.source.parse.inequalities import Condition, inequalities
from kernmodel.source.parse.scope import EVEN, MOST_CALLS, Scope, View, returned
from kernmodel.source.parse.selections import by_share, cases
from kernmodel.source.parse.standard_headers import (
    ASSEMBLY,
    COMPLEX_PARTS,
    ENDING_FUNCTIONS,
    FLOATING_CONSTANTS,
    FLOATING_FUNCTIONS,
    FOREIGN,
    INTEGER_FUNCTIONS,
    MATH_FUNCTIONS,
    PRINTING_FUNCTIONS,
    STREAMS,
)
from kernmodel.source.parse.syntax import (
    MemberRef,
    Node,
    c_ast,
    memory_reads,
    statements,
    subscripts,
)
from kernmodel.source.parse.tree import called_name, is_call_of, without_casts, written
from kernmodel.source.parse.value_numbers import Origin, ValueNumbers
from kernmodel.value_types import dataclass

Kind = Literal["read", "write"]
_Carried = frozenset[str]

_ARITHMETIC: Mapping[str, Operation] = {"+": "add", "-": "add", "*": "mul", "/": "div"}
_FLOATS = {element.name: element for element in (FLOAT, DOUBLE, LONG_DOUBLE, COMPLEX_FLOAT)}
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_BITS = frozenset({"%", "&", "|", "^", "<<", ">>", "&&", "||"})
_OPERATIONS: Mapping[str, Operation] = {"sqrt": "sqrt", "fma": "fma", "fmin": "compare", "fmax": "compare"}


@dataclass(frozen=True, slots=True)
class Reference:
    """An array reference before its index is linearised: the subscripts as expressions, outermost dimension first."""

    array: str
    kind: Kind
    subscripts: tuple[Formula, ...]
    depth: int
    text: str
    location: Location
    after_inner: bool
    share: float = 1.0
    guard: Guard = ALWAYS
    element_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """What an expression yields: its type, where its value comes from, whether a compiler folds it, and the carried
    variables it depends on."""

    element: ElementType
    origin: Origin
    literal: bool = False
    carried: _Carried = frozenset()


class Body:
    """Reads the statements of a nest in execution order and gathers what they do.

    Attributes:
        references: array references in execution order (what a statement reads before what it writes).
        moving: the variables that advance with a loop; the scope has their values at the start of an iteration.
        exchanged: where pointers to buffers change places.
        chosen: the references in whose index a condition chooses: as written, and how many cases are left out.
        not_followed: functions whose code is elsewhere, with the place of a call of each.
        flops_between: the places of floating-point operations that stand outside of the innermost loop.
        share: of the iterations, those that come to the statement that is read; guards: the conditions of sizes and
            loop variables under which it stands.
        counted: by the place of a branch, in what share of the iterations its condition holds, where that is counted.
    """

    def __init__(self, scope: Scope, loops: Sequence[Loop], moving: Mapping[str, Induction]) -> None:
        self.moving = moving
        self.loops = tuple(loops)
        self.exchanged: list[Location] = []
        self.chosen: dict[Location, tuple[str, int]] = {}
        self.not_followed: dict[str, Location] = {}
        self._bound: list[dict[str, Value]] = []
        self.scope = scope
        self.references: list[Reference] = []
        self._flops: Counter[tuple[Operation, ElementType, str, float]] = Counter()
        self.flops_between: list[Location] = []
        self._operators: dict[tuple[str, Location], None] = {}
        self.share = 1.0
        self.guards: tuple[Condition, ...] = ()
        self.counted: dict[Location, float] = {}
        self._known: dict[tuple[object, ...], int | None] = {}
        self._taken = dict(scope.program.stated.taken)
        self._data_branches: list[Branch] = []
        self._scalars: dict[str, ElementType] = {}
        self._innermost = len(loops)
        self._inner_variable = loops[-1].variable
        self._variables = frozenset(loop.variable for loop in loops)
        self._values = ValueNumbers()
        self._conversions = 0
        self._complex_products = 0
        self._depth = 0
        self._after_inner = False
        self._carried: dict[str, _Carried] = {}
        self._elements: dict[str, str] = {}
        self._written: set[str] = set()
        self._ever_written: set[str] = set()
        self._exposed: dict[str, None] = {}

    def read(self, statement: Node, depth: int, *, after_inner: bool = False) -> None:
        """Read one statement that stands inside `depth` loops, before or after the next inner one.

        Raises:
            UnsupportedKernelError: it does something that the models do not cover.
            SourceError: a name is not declared.
        """
        self._depth, self._after_inner = depth, after_inner
        if isinstance(statement, c_ast.DeclList):
            for part in statement.decls:
                self.read(part, depth, after_inner=after_inner)
        elif isinstance(statement, c_ast.Decl):
            self._declaration(statement)
        elif isinstance(statement, (c_ast.If, c_ast.Switch)):
            self._branches(statement)
        elif isinstance(statement, (c_ast.Case, c_ast.Default, c_ast.Label, c_ast.Compound)):
            for part in branches(statement):
                self._all(part)
        elif type(statement) in _HANDLERS:
            self._effect(statement)
        elif not isinstance(statement, (c_ast.Goto, c_ast.Continue, c_ast.Break, c_ast.Return)):
            what = type(statement).__name__
            raise self.scope.unsupported(
                f"a statement of this kind ({what}) in a loop nest is not supported",
                statement,
                "a nest may hold declarations of scalars, assignments, branches and calls of math functions",
            )

    def read_bounds(self, statement: Node, depth: int) -> None:
        """Read the elements from which the bounds of an inner loop come, inside of `depth` loops."""
        self._depth, self._after_inner = depth, False
        for bound in (statement.init, statement.cond):
            for part in memory_reads(bound):
                self._array(part)

    def _all(self, body: Node | None) -> None:
        for item in statements(body):
            self.read(item, self._depth, after_inner=self._after_inner)

    def _effect(self, statement: Node) -> None:
        """An expression for its own sake; a name or a number alone does nothing."""
        if not isinstance(statement, (c_ast.ID, c_ast.Constant)):
            self.evaluate(statement)

    def _branches(self, statement: Node) -> None:
        """All sides of a branch; what one side alone writes may still have its old value behind it."""
        condition = without_null_tests(statement.cond, self.scope)
        test, chances = self.evaluate(condition), self._chances(statement, condition)
        coming, guards = self.share, self.guards
        formulas = self._formulas(statement)
        written, carried = set(self._written), dict(self._carried)
        sides = []
        places, ends = self._places(), []
        known, after = dict(self.scope.values), []
        views, seen = dict(self.scope.views), []
        for part, chance, formula in zip(branches(statement), chances, formulas, strict=False):
            self.share = coming * chance
            self.guards = guards if formula is None else (*guards, formula)
            self.scope.values, self.scope.views = dict(known), dict(views)
            self._place(places)
            self._written, self._carried = set(written), dict(carried)
            self._all(part)
            sides.append((self._written, self._carried))
            ends.append(self._places())
            after.append(self.scope.values)
            seen.append(self.scope.views)
        passed = _ends_with(statement, c_ast.Continue)
        self.share = coming * chances[1] if passed else coming
        self.guards = (*guards, formulas[1]) if passed and formulas[1] is not None else guards
        if isinstance(statement, c_ast.Switch) or statement.iffalse is None:
            after.append(known)
            seen.append(views)
        self.scope.values, self.scope.views = known, views
        if not passed:
            chosen = self._joined(condition, after) if isinstance(statement, c_ast.If) else {}
            self._join_views(seen, statement)
            same = {name: value for name, value in after[0].items() if all(end.get(name) == value for end in after)}
            self.scope.values = chosen | same
        # of the sides that move a variable the first counts
        self._place({name: next((end[name] for end in ends if end[name] != old), old) for name, old in places.items()})
        if isinstance(statement, c_ast.Switch) or statement.iffalse is None:
            sides.append((written, carried))
        self._written = set.intersection(*(names for names, _ in sides))
        changed = dict.fromkeys(name for _, after in sides for name in after if after[name] is not carried.get(name))
        self._carried = dict(carried)
        for name in changed:
            before = carried.get(name, frozenset({name}))
            self._carried[name] = test.carried.union(*(after.get(name, before) for _, after in sides))
            if name in self.scope.scalars:
                self._values.assign(name, self._values.fresh())

    def _joined(self, condition: Node, ends: Sequence[Mapping[str, Formula]]) -> dict[str, Formula]:
        """The integers that the two sides of a branch leave with other values, as what its condition chooses."""
        yes, no = ends
        names = [name for name in yes if name in no and name in self.scope.scalars and yes[name] != no[name]]
        others = [name for name in names if name not in self.moving and name not in self._variables]
        return {name: self.scope.choose(condition, yes[name], no[name]) for name in others}

    def _join_views(self, ends: Sequence[Mapping[str, View]], statement: Node) -> None:
        """The pointers that sides of a branch let point elsewhere: what the condition chooses within one array, else
        not known."""
        for name in dict.fromkeys(name for end in ends for name in end if name not in self.moving):
            found = [end.get(name) for end in ends]
            first, last = found[0], found[-1]
            if all(one == first for one in found):
                if first is not None:
                    self.scope.views[name] = first
            elif (
                isinstance(statement, c_ast.If)
                and first is not None
                and last is not None
                and (first.array, first.prefix) == (last.array, last.prefix)
            ):
                offset = self.scope.choose(statement.cond, first.offset, last.offset)
                self.scope.views[name] = replace(first, offset=offset)
            else:
                self.scope.views.pop(name, None)
                known = self.scope.arrays[name]
                change = "a branch lets it point elsewhere"
                self.scope.arrays[name] = replace(known, computed=self.scope.location(statement), change=change)

    def _chances(self, statement: Node, condition: Node) -> tuple[float, float]:
        """With which probability the sides of a branch are executed: as stated, one half each where the data decide,
        and both always where neither is so."""
        place = self.scope.location(condition if statement.coord is None else statement)
        taken = self._taken.get(place.line or 0)
        if taken is None:
            if _ends_with(statement, c_ast.Break, c_ast.Return) or is_call_of(
                getattr(statement, "iftrue", None), ENDING_FUNCTIONS
            ):
                return 0.0, 1.0  # the loop is taken to run to its end
            if is_call_of(getattr(statement, "iffalse", None), ENDING_FUNCTIONS):
                return 1.0, 0.0
            if isinstance(statement, c_ast.Switch):
                return 1.0, 1.0
            if not self.scope.decided_by_data(condition):
                return self._counted(condition, place)
            taken = EVEN
        if self._depth == self._innermost:
            self._data_branches.append(Branch(place, self.share, taken))
        return taken, 1.0 - taken

    def _counted(self, condition: Node, place: Location) -> tuple[float, float]:
        """In what share of the iterations that come to it a condition holds, and does not; 1 both where that is not
        known."""
        formula = inequalities(condition, self.scope)
        coming = self._iterations(self.guards)
        if formula is None or coming is None or (holding := self._iterations((*self.guards, formula))) is None:
            return 1.0, 1.0
        share = holding / coming if coming else 0.0
        self.counted[place] = share
        return share, 1.0 - share

    def _iterations(self, guards: tuple[Condition, ...]) -> int | None:
        key = (self._depth, guards)
        if key not in self._known:
            known = {**self.scope.program.preprocessed.values, **self.scope.given, **self.scope.fixed}
            self._known[key] = iterations_under(guards, self.loops[: self._depth], known)
        return self._known[key]

    def _formulas(self, statement: Node) -> tuple[Condition | None, Condition | None]:
        """What holds on both sides of a branch whose condition is counted."""
        place = self.scope.location(statement)
        if place not in self.counted or not isinstance(statement, c_ast.If):
            return None, None
        condition = without_null_tests(statement.cond, self.scope)
        return inequalities(condition, self.scope), inequalities(condition, self.scope, holds=False)

    def _places(self) -> dict[str, Formula]:
        """Where the variables that advance with a loop are now."""
        known = {name: self.scope.values.get(name) for name in self.moving}
        views = {name: self.scope.views[name].offset for name in self.moving if name in self.scope.views}
        return {name: value for name, value in {**known, **views}.items() if value is not None}

    def _place(self, places: Mapping[str, Formula]) -> None:
        for name, value in places.items():
            if name in self.scope.views:
                self.scope.views[name] = replace(self.scope.views[name], offset=value)
            else:
                self.scope.values[name] = value

    def operations(self) -> Operations:
        """What has been read of the innermost body, kinds of operations in the order in which they first occur.

        A reduction is a variable whose new value in an iteration depends, perhaps through others, on its own old one.
        """
        return Operations(
            places=tuple(self._operators),
            flops=tuple(FlopCount(op, of, count, name, share) for (op, of, name, share), count in self._flops.items()),
            distinct=self._values.operations,
            conversions=self._conversions,
            complex_products=self._complex_products,
            scalars=self._scalars,
            reductions=tuple(dict.fromkeys(self._elements.get(n, n) for n in self._carried if n in self._reached(n))),
            carried_scalars=tuple(name for name in self._exposed if name in self._ever_written),
            branches=tuple(self._data_branches),
        )

    def _reached(self, name: str) -> set[str]:
        """What the new value of `name` depends on, followed through the variables that the iteration updates."""
        reached: set[str] = set()
        frontier = set(self._carried.get(name, ()))
        while frontier:
            reached |= frontier
            frontier = {source for n in frontier for source in self._carried.get(n, ())} - reached
        return reached

    # Statements

    def _declaration(self, node: Node) -> None:
        if node.name in self._variables:
            # of a loop further in, which has its symbol already
            if node.init is not None:
                self.evaluate(node.init)
            return
        self.scope.declare(node)
        self._start_moving(node.name)
        if node.name in self.scope.arrays:
            if node.init is not None and node.name not in self.scope.views:
                raise self._pointer_change(node.name, node)
            if node.name in self.scope.moving:
                self._set_moving(node.name, self.scope.views.get(node.name), node)
            self._read_address(node.init)
            return
        value = self.evaluate(node.init) if node.init is not None else Value(INT, self._values.fresh(), True)
        self._values.assign(node.name, value.origin)
        if node.init is not None and node.name not in self.scope.moving and value.element.kind == "integer":
            self._set_integer(node.name, node.init)
        if self._depth == self._innermost:
            self._note_scalar(node.name)
            self._carried[node.name] = value.carried
            self._written.add(node.name)
            self._ever_written.add(node.name)

    def _assignment(self, node: Node) -> Value:
        target, operator = node.lvalue, node.op.removesuffix("=")
        if isinstance(target, c_ast.ID) and target.name in self.scope.arrays:
            return self._pointer(target.name, node)
        place = self._target(target)
        value = self.evaluate(node.rvalue)
        self._move(target, node)
        if isinstance(target, c_ast.ID) and target.name in self.scope.moving and not is_advance(node, target.name):
            self.scope.set_now(target.name, node.rvalue)
            if not self._after_inner:
                self._start_moving(target.name)
        if operator:
            # `a[i] += x` reads a[i] first, as the operand of the operation
            old = self._fetch(target, place)
            value = replace(self._operate(operator, old, value, node), literal=False)
        return self._store(target, place, value, None if operator else node.rvalue)

    def _target(self, target: Node) -> Reference | None:
        """The array element an assignment writes, None for a scalar."""
        if not isinstance(target, c_ast.ID):
            return self._reference(target, "write")
        if target.name not in self.scope.scalars:
            raise self.scope.undeclared(target)
        return None

    def _set_integer(self, name: str, source: Node | None) -> None:
        """The value that an integer takes; None: one that is no formula."""
        if self.scope.scalars[name].kind != "integer" or name in self._variables:
            return  # what a loop further in starts from: its variable has its symbol already
        if source is not None:
            self.scope.set_now(name, source)
        else:
            self.scope.values.pop(name, None)

    def _pointer(self, name: str, node: Node) -> Value:
        """A pointer that moves, or takes another value."""
        plain = isinstance(node, c_ast.Assignment) and node.op == "="
        if name in self.scope.moving and plain and not self._advances(name):
            self._set_moving(name, self.scope.view(name, node.rvalue), node)
        elif name in self.scope.moving and name in self.scope.views:
            if self._advances(name) and (moved := amount(node, name, self.scope)) is not None:
                view = self.scope.views[name]
                self.scope.views[name] = replace(view, offset=view.offset + moved)
        elif plain and self._exchanged(node):
            self.exchanged.append(self.scope.location(node))
        elif plain and (found := self.scope.view(name, node.rvalue)) is not None:
            self.scope.views[name] = found
        else:
            raise self._pointer_change(name, node)
        self._read_address(node.rvalue if plain else None)
        return Value(LONG, self._values.fresh(), True)

    def _read_address(self, value: Node | None) -> None:
        """Note what is read to compute the value of a pointer: elements of index arrays."""
        for read in self.scope.address_reads(value) if value is not None else ():
            self.evaluate(read)

    def _move(self, target: Node, node: Node) -> None:
        """The advance of an integer that advances with a loop."""
        name = target.name if isinstance(target, c_ast.ID) else ""
        if name in self.scope.moving and name in self.scope.values and self._advances(name):
            moved = amount(node, name, self.scope)
            if moved is not None:
                self.scope.values[name] += moved

    def forget(self, statements_: Sequence[Node]) -> None:
        """Forget the integers that these statements of a loop write, whose values at its start are not known."""
        for statement in statements_:
            for name, _ in self.scope.program.writes(statement):
                kept = name in self.scope.moving or name in self._variables
                if name in self.scope.scalars and not kept and self.scope.writes(name) > 1:
                    self.scope.values.pop(name, None)

    def _start_moving(self, name: str) -> None:
        """An integer that advances with an inner loop is set anew: its value in the iterations of that."""
        if name in self.scope.moving and name in self.scope.values:
            own = self.moving[name]
            started = at_start(own, self.scope.values.pop(name) + own.passed, self.loops)
            if started is not None:
                self.scope.values[name] = started

    def _set_moving(self, name: str, view: View | None, node: Node) -> None:
        """A pointer that advances with an inner loop is set anew."""
        own = self.moving[name]
        offset = None if view is None else at_start(own, view.offset + own.passed, self.loops)
        if view is None or offset is None:
            raise self._pointer_change(name, node)
        self.scope.views[name] = replace(view, offset=offset)

    def _exchanged(self, node: Node) -> bool:
        """Whether pointers to buffers change places at the end of an outer loop's iteration."""
        names = (getattr(node.rvalue, "name", ""), node.lvalue.name)
        return self._after_inner and all(name in self.scope.arrays for name in names)

    def _advances(self, name: str) -> bool:
        """Whether the loop around this statement is the one that moves the variable."""
        return self._depth - 1 in self.moving[name].advances

    def _pointer_change(self, name: str, node: Node) -> Exception:
        return self.scope.unsupported(
            f"the pointer {name} changes in the loop nest",
            node,
            "index the arrays themselves; pointers must stay as they are",
        )

    def _fetch(self, target: Node, place: Reference | None) -> Value:
        if place is None:
            return self._scalar(target.name)
        self._note(replace(place, kind="read"))
        return self._element_read(place, target)

    def _element_read(self, place: Reference, node: Node) -> Value:
        variables = self._loop_variables(place)
        origin = self._values.element(place.array, str(place.subscripts), variables)
        return Value(self._element(place.array, node), origin, carried=self._incoming(place))

    def _loop_variables(self, place: Reference) -> frozenset[str]:
        """The variables of the loops on which the place of an element depends."""
        return self._variables & self.scope.behind(s for index in place.subscripts for s in index.free_symbols)

    def _note(self, place: Reference) -> None:
        """Take in a reference: in each of its cases where a condition chooses its subscripts."""
        found = cases(place.subscripts, self.scope.selected)
        if len(found) == 1:
            self.references.append(place)
            return
        if not found:
            raise UnsupportedKernelError(
                f"the index of {place.text} has too many cases",
                where=place.location,
                todo="split the loop at the borders, so that fewer conditions choose its indices",
            )
        whole = self._iterations(self.guards)

        def share(conditions: tuple[Condition, ...]) -> float | None:
            holding = self._iterations((*self.guards, *conditions))
            return None if holding is None or not whole else holding / whole

        kept = by_share(found, share)
        self.chosen.setdefault(place.location, (place.text, len(found) - len(kept)))
        for case, part in kept:
            guards = tuple(dict.fromkeys((*self.guards, *case.conditions)))
            self.references.append(
                replace(
                    place,
                    subscripts=case.subscripts,
                    share=place.share * part * case.chance,
                    guard=self._guard(guards) if guards else ("chosen", 1.0),
                )
            )

    def _store(self, target: Node, place: Reference | None, value: Value, source: Node | None) -> Value:
        if place is not None:
            self._note(place)
            element = self._element(place.array, target)
            self._convert(value, element)
            self._values.store(place.array)
            if self._depth == self._innermost and self._stays(place):
                key = self._key(place)
                self._elements[key] = place.array
                self._carried[key] = value.carried
            return Value(element, value.origin, carried=value.carried)
        name = target.name
        if self._depth == self._innermost:
            self._note_scalar(name)
            self._carried[name] = value.carried
            self._written.add(name)
            self._ever_written.add(name)
        if name not in self.scope.moving:
            self._set_integer(name, source)
        self._values.assign(name, value.origin)
        return Value(self.scope.scalars[name], value.origin, carried=value.carried)

    # Expressions

    def evaluate(self, node: Node) -> Value:
        """Read an expression: count its operations, note its references; the value it yields."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise self.scope.unsupported(
                f"an expression of this kind ({type(node).__name__}) is not supported",
                node,
                "expressions may hold arithmetic, comparisons in ?:, casts, array elements, scalars and math functions",
            )
        return handler(self, node)

    def _constant(self, node: Node) -> Value:
        origin = self._values.constant(node.value)
        if node.type in ("string", "char"):
            return Value(INT, origin, True)
        if node.type in ("float", "double", "long double"):
            suffix = node.value[-1].lower() if not node.value.lower().startswith("0x") else ""
            return Value({"f": FLOAT, "l": LONG_DOUBLE}.get(suffix, DOUBLE), origin, True)
        return Value(LONG if "l" in node.value.lower() else INT, origin, True)

    def _name(self, node: Node) -> Value:
        name = node.name
        if self._bound and name in self._bound[-1]:
            return self._bound[-1][name]
        if name in self.scope.scalars:
            return self._scalar(name)
        if name in self.scope.arrays:
            raise self.scope.unsupported(
                f"the array {name} is used without an index", node, "index it down to one element, as in a[j][i]"
            )
        if name in FLOATING_CONSTANTS and name not in self.scope.program.preprocessed.values:
            return Value(_FLOATS[FLOATING_CONSTANTS[name]], self._values.constant(name), True)
        if name in self.scope.values or self.scope.is_size(name):
            return Value(INT, self._values.scalar(name), True)
        raise self.scope.undeclared(node)

    def _scalar(self, name: str) -> Value:
        if self._depth == self._innermost:
            self._note_scalar(name)
            if name not in self._written:
                self._exposed[name] = None
        known = self.scope.values.get(name)
        variables = self._variables & known.free_symbols if known is not None else frozenset()
        origin = self._values.scalar(name, variables)
        return Value(self.scope.scalars[name], origin, carried=self._carried.get(name, frozenset({name})))

    def _note_scalar(self, name: str) -> None:
        value = self.scope.values.get(name)
        if value is None or not any(symbol == name and not symbol.positive for symbol in value.free_symbols):
            self._scalars.setdefault(name, self.scope.scalars[name])

    def _array(self, node: Node) -> Value:
        if (seen := self._seen_scalar(node)) is not None:
            return seen
        place = self._reference(node, "read")
        self._note(place)
        return self._element_read(place, node)

    def _seen_scalar(self, node: Node) -> Value | None:
        """`*(int *)&s` of a scalar: its bits as a number of another type of the same size; None of other nodes."""
        base, places = subscripts(node)
        inner = without_casts(base)
        address = isinstance(base, c_ast.Cast) and isinstance(inner, c_ast.UnaryOp) and inner.op == "&"
        name = getattr(inner.expr, "name", "") if address and isinstance(inner.expr, c_ast.ID) else ""
        known, seen = self.scope.scalars.get(name), self.scope.pointed_type(base) if name else None
        if known is None or seen is None or known.size_bytes != seen.size_bytes:
            return None
        if [getattr(place, "value", "") for place in places] != ["0"]:
            return None
        return Value(seen, self._values.fresh(), carried=self._scalar(name).carried)

    def _unary(self, node: Node) -> Value:
        operator = node.op.removeprefix("p")
        if operator == "*":
            return self._array(node)
        if operator in ("++", "--") and getattr(node.expr, "name", "") in self.scope.arrays:
            return self._pointer(node.expr.name, node)
        if operator in ("++", "--"):
            self._move(node.expr, node)
            place = self._target(node.expr)
            old = self._fetch(node.expr, place)
            one = Value(INT, self._values.constant("1"))
            return self._store(node.expr, place, self._operate("+", old, one, node), None)
        if operator == "sizeof":
            return Value(LONG, self._values.fresh(), True)
        if operator == "&":
            raise self.scope.unsupported(
                "taking an address in a loop nest is not supported", node, "use array elements"
            )
        value = self.evaluate(node.expr)
        origin = self._values.operation("add", (value.origin,), f"unary {operator}", counted=False)
        return Value(INT if operator == "!" else value.element, origin, value.literal, value.carried)

    def _binary(self, node: Node) -> Value:
        chain = [node]
        while isinstance(chain[-1].left, c_ast.BinaryOp):
            # a sum of many terms nests to the left, deeper than Python's recursion allows
            chain.append(chain[-1].left)
        value = self.evaluate(chain[-1].left)
        for operation in reversed(chain):
            value = self._operate(operation.op, value, self.evaluate(operation.right), operation)
        return value

    def _operate(self, operator: str, left: Value, right: Value, node: Node) -> Value:
        element = common_type(left.element, right.element)
        carried = left.carried | right.carried
        literal = left.literal and right.literal
        if operator in _COMPARISONS:
            for kind, times in real_operations("compare", left.element, right.element):
                self._count(kind, part_of(element), (operator, node.right), literal=literal, times=times)
            return Value(INT, self._computed("compare", (left, right), operator, element), literal, carried)
        if operator in _ARITHMETIC:
            right_node = node.rvalue if isinstance(node, c_ast.Assignment) else getattr(node, "right", node)
            both = _ARITHMETIC[operator] == "mul" and is_complex(left.element) and is_complex(right.element)
            self._complex_products += both and self._depth == self._innermost
            for kind, times in real_operations(_ARITHMETIC[operator], left.element, right.element):
                self._count(kind, part_of(element), (operator, right_node), literal=literal, times=times)
        elif operator not in _BITS:
            raise self.scope.unsupported(
                f"the operator {operator} is not supported", node, "use C arithmetic operators"
            )
        for operand in (left, right):
            self._convert(operand, element)
        origin = self._computed(_ARITHMETIC.get(operator, "function"), (left, right), operator, element)
        return Value(element, origin, literal, carried)

    def _computed(self, kind: Operation, operands: Sequence[Value], symbol: str, element: ElementType) -> Origin:
        """Where the value of an operation comes from."""
        literal = all(operand.literal for operand in operands)
        counted = self._depth == self._innermost and element.kind == "float" and not literal
        return self._values.operation(kind, tuple(operand.origin for operand in operands), symbol, counted=counted)

    def _convert(self, value: Value, element: ElementType) -> None:
        """Count the conversion of an integer that is not known when the code is compiled to a floating-point number."""
        converted = value.element.kind == "integer" and element.kind == "float" and not value.literal
        self._conversions += converted and self._depth == self._innermost

    def _conditional(self, node: Node) -> Value:
        condition = without_null_tests(node.cond, self.scope)
        test, chances, coming = self.evaluate(condition), self._chances(node, condition), self.share
        sides = []
        for part, chance in zip((node.iftrue, node.iffalse), chances, strict=True):
            self.share = coming * chance
            sides.append(self.evaluate(part))
        self.share = coming
        yes, no = sides
        carried = test.carried | yes.carried | no.carried
        origins = (test.origin, yes.origin, no.origin)
        return Value(
            common_type(yes.element, no.element),
            self._values.operation("compare", origins, "?:", counted=False),
            test.literal and yes.literal and no.literal,
            carried,
        )

    def _cast(self, node: Node) -> Value:
        value = self.evaluate(node.expr)
        target = self.scope.cast_type(node)
        self._convert(value, target)
        origin = self._values.operation("function", (value.origin,), f"({target.name})", counted=False)
        return Value(target, origin, value.literal, value.carried)

    def _sequence(self, node: Node) -> Value:
        return [self.evaluate(part) for part in node.exprs][-1]

    def _call(self, node: Node) -> Value:
        written = called_name(node)
        if written in ENDING_FUNCTIONS or written == "assert":
            return Value(INT, self._values.fresh(), True)
        if (inlined := self._inlined(written, node)) is not None:
            return inlined
        name = written.removeprefix("__builtin_")
        if name in COMPLEX_PARTS and node.args is not None and len(node.args.exprs) == 1:
            value = self.evaluate(node.args.exprs[0])
            return value if COMPLEX_PARTS[name] else replace(value, element=part_of(value.element))
        function, element = math_function(name)
        if function is None or element is None:
            return self._not_followed(written, node)
        values = [self.evaluate(argument) for argument in (node.args.exprs if node.args else ())]
        literal = all(value.literal for value in values)
        operation = _OPERATIONS.get(function, "function")
        name = function if operation == "function" else ""
        self._count(operation, element, (written, node), name=name, literal=literal)
        origin = self._computed(operation, values, function, element)
        return Value(element, origin, literal, frozenset().union(*(value.carried for value in values)))

    def _not_followed(self, name: str, node: Node) -> Value:
        """The value of a call of a function whose code is not in the file: it is given numbers and addresses of scalars
        alone, so that it touches no array of the nest, unless that is one of the file."""
        if name in ("", ASSEMBLY, FOREIGN) or any(one.decl.name == name for one in self.scope.program.functions):
            raise self._not_called(name, node)
        carried = frozenset[str]()
        changed: list[Node] = []
        for argument in node.args.exprs if node.args else ():
            plain = without_casts(argument)
            if (
                isinstance(plain, c_ast.UnaryOp)
                and plain.op == "&"
                and getattr(plain.expr, "name", "") in self._loose()
            ):
                changed.append(plain.expr)
            elif isinstance(plain, c_ast.ID) and plain.name in STREAMS:
                continue
            elif (base := _pointed(plain, self.scope)) is not None:
                if name not in PRINTING_FUNCTIONS:
                    raise self._given_array(name, base, node)
            else:
                carried |= self.evaluate(argument).carried
        for target in changed:
            carried |= self._scalar(target.name).carried
        result = Value(self._result_of(name), self._values.fresh(), carried=carried)
        for target in changed:
            self._store(target, None, replace(result, origin=self._values.fresh()), None)
        self.not_followed.setdefault(name, self.scope.location(node))
        return result

    def _loose(self) -> Mapping[str, ElementType]:
        """The scalars that something else than the loops may change."""
        return {name: kind for name, kind in self.scope.scalars.items() if name not in self._variables}

    def _result_of(self, name: str) -> ElementType:
        """The type that a function gives whose code is not in the file; int where nothing declares it."""
        for one in self.scope.program.globals:
            if isinstance(one, c_ast.Decl) and one.name == name and isinstance(one.type, c_ast.FuncDecl):
                return self.scope.type_of(one.type) or INT
        return DOUBLE if name in FLOATING_FUNCTIONS else INT

    def _given_array(self, name: str, array: str, node: Node) -> Exception:
        if is_copying(name):
            what = f"the call of {name}, which is given {array}, is not read: its arrays have other types, or none"
            return self.scope.unsupported(what, node, "write it as a loop over elements")
        return self.scope.unsupported(
            f"the call of {name}, whose code is elsewhere, is given {array}: what it touches is not known",
            node,
            f"give the file that holds {name}, or write its code into the loop",
        )

    def _not_called(self, name: str, node: Node) -> Exception:
        """The refusal of a call that is neither inlined nor one of a known function."""
        own = next((one for one in self.scope.program.functions if one.decl.name == name), None)
        if name == FOREIGN:
            used = node.args.exprs[0].value.strip('"')
            what = f"C++ that is no C ({used}) in a loop nest is not supported"
            todo = "write what it does into the loop as C, or take it out"
        elif own is not None and holds_loop(own.body):
            what = f"the call of {name}, which has loops of its own, is not inlined"
            todo = f"its nests stand on their own (--function {name})"
        elif own is not None:
            what = f"the call of {name} is not inlined: it calls functions that are not known, or has labels or statics"
            todo = "write its code into the loop"
        else:
            what = f"the call of {name or 'a function pointer'}, of which nothing is known, is not supported"
            todo = "write what it does into the loop as C, or take it out"
        return self.scope.unsupported(what, node, todo)

    def _inlined(self, name: str, node: Node) -> Value | None:
        """The value of a function of the file that only returns an expression of its scalar parameters."""
        found = returned(self.scope.program, name)
        arguments = list(node.args.exprs) if node.args else []
        if found is None or len(found[0]) != len(arguments) or len(self._bound) > MOST_CALLS:
            return None
        known = (self.scope.type_of(part) for part in found[0].values())
        types = [element for element in known if element is not None]
        whole = self.scope.type_of(found[2])
        if len(types) != len(arguments) or whole is None:
            return None
        values = {}
        for parameter, argument, element in zip(found[0], arguments, types, strict=True):
            value = self.evaluate(argument)
            self._convert(value, element)
            values[parameter] = replace(value, element=element)
        self._bound.append(values)
        result = self.evaluate(found[1])
        self._bound.pop()
        self._convert(result, whole)
        return replace(result, element=whole)

    def _structure(self, node: Node) -> Value:
        raise self.scope.unsupported(
            f"the member {written(node)} is not supported: its structure is not known, packed, has bit fields, or "
            "stands behind a pointer that changes in the nest",
            node,
            "use one array for each member",
        )

    def _count(
        self,
        operation: Operation,
        element: ElementType,
        place: tuple[str, Node],
        *,
        name: str = "",
        literal: bool = False,
        times: int = 1,
    ) -> None:
        """Count an operation of the innermost body, as often as `times` says, unless it is on integers or any compiler
        folds it; `place`: how it is written, and the node of its right operand or of the call."""
        if element.kind != "float" or literal:
            return
        if self._depth == self._innermost:
            self._flops[operation, element, name, self.share] += times
            self._operators[place[0], self.scope.location(place[1])] = None
        elif operation not in ("compare", "function"):
            self.flops_between.append(self.scope.location(place[1]))

    # References

    def _reference(self, node: Node, kind: Kind) -> Reference:
        base, nodes = subscripts(node)
        if isinstance(base, c_ast.StructRef):
            self._structure(base)
        if isinstance(base, c_ast.UnaryOp) and base.op in ("++", "--", "p++", "p--"):
            return self._walked(base, nodes, node, kind)
        if isinstance(base, c_ast.Cast) and (plain := self._converted(base, nodes)) is not None:
            return replace(self._reference(plain, kind), text=written(node), location=self.scope.location(node))
        if not isinstance(base, c_ast.ID):
            raise self.scope.unsupported("an address that is computed is not supported", node, "index a named array")
        array = self.scope.arrays.get(base.name)
        if array is None:
            if base.name in self.scope.scalars:
                raise self.scope.unsupported(
                    f"{base.name} is indexed, but it is no array", node, "declare it as an array"
                )
            raise self.scope.undeclared(base, "array")
        if array.computed:
            raise UnsupportedKernelError(
                f"the pointer {base.name} is set here ({array.change}) and used in the loop nest ({written(node)}): "
                "pointers are not followed, and its lines would count as those of an array of its own",
                where=array.computed,
                todo="index the array itself in the nest, as in x[i + 1] for x1[i] with x1 = x + 1",
            )
        if len(nodes) != len(array.dimensions):
            raise self.scope.unsupported(
                f"{base.name} has {len(array.dimensions)} dimension(s) but {len(nodes)} index(es)",
                node,
                "index one element",
            )
        for index in nodes:
            for part in memory_reads(index):
                self._array(part)
        self.scope.stepping = not any(True for index in nodes for _ in memory_reads(index))
        try:
            indices = tuple(self.scope.index(index) for index in nodes)
        finally:
            self.scope.stepping = False
        place, name = self.scope.location(node), base.name
        view = self.scope.views.get(name)
        if view is not None:
            name, indices = view.array, (*view.prefix, view.offset + indices[0], *indices[1:])
        return Reference(
            name,
            kind,
            tuple(map(self._outside, indices)),
            self._depth,
            written(node),
            place,
            self._after_inner,
            self.share,
            self._guard(self.guards),
            node.element.size_bytes if isinstance(node, MemberRef) else 0,
        )

    def _outside(self, index: Formula) -> Formula:
        """An index outside of inner loops: what these advance is as before them, or as they leave it."""
        for loop in reversed(self.loops[self._depth :]):
            if loop.variable in index.free_symbols:
                passed = (trips_of(loop) - 1) * loop.step if self._after_inner else ZERO
                index = index.substitute({loop.variable: loop.start + passed})
        return index

    def leave(self, loop: Loop) -> None:
        """What stands behind an inner loop is read next, where its variable has met the bound."""
        value = self.scope.values.get(loop.variable)
        if value is not None and loop.variable not in self.scope.rows:
            left = loop.start + trips_of(loop) * loop.step
            self.scope.values[loop.variable] = value.substitute({loop.variable: left})

    def _guard(self, guards: tuple[Condition, ...]) -> Guard:
        """Conditions of sizes and loop variables, with the share of the iterations in which they hold."""
        if not guards:
            return ALWAYS
        holding, whole = self._iterations(guards), self._iterations(())
        return " and ".join(map(str, guards)), holding / whole if whole and holding is not None else 1.0

    def _converted(self, base: Node, nodes: Sequence[Node]) -> Node | None:
        """`*(int *)&x[i]` and `((int *)x)[i]` as elements of x, where both types have one size; None of other casts."""
        seen, inner = self.scope.pointed_type(base), without_casts(base)
        if isinstance(inner, c_ast.UnaryOp) and inner.op == "&":
            inner = inner.expr
        else:
            inner = c_ast.ArrayRef(inner, c_ast.Constant("int", "0", base.coord), base.coord)
        whole, places = subscripts(inner)
        array = self.scope.arrays.get(whole.name) if isinstance(whole, c_ast.ID) else None
        known = None if array is None else array.element
        if seen is None or known is None or seen.size_bytes != known.size_bytes or len(nodes) != 1:
            return None
        plain: Node = whole
        for index in (*places[:-1], c_ast.BinaryOp("+", places[-1], nodes[0], base.coord)):
            plain = c_ast.ArrayRef(plain, index, base.coord)
        return plain

    def _walked(self, base: Node, nodes: Sequence[Node], node: Node, kind: Kind) -> Reference:
        """`*p++` and its like: the element before or after the pointer moves."""
        if not isinstance(base.expr, c_ast.ID) or base.expr.name not in self.scope.arrays:
            raise self.scope.unsupported("an address that is computed is not supported", node, "index a named array")
        if base.op in ("++", "--"):
            self._pointer(base.expr.name, base)
        plain: Node = base.expr
        for index in nodes:
            plain = c_ast.ArrayRef(plain, index, node.coord)
        found = self._reference(plain, kind)
        if base.op in ("p++", "p--"):
            self._pointer(base.expr.name, base)
        return replace(found, text=written(node), location=self.scope.location(node))

    def _element(self, array: str, node: Node) -> ElementType:
        if isinstance(node, MemberRef):
            return node.element
        base, _ = subscripts(node)
        base = base.expr if isinstance(base, c_ast.UnaryOp) else base
        if isinstance(base, c_ast.Cast):
            element = self.scope.pointed_type(base)
        else:
            # a pointer may see the elements of another array as numbers of its own type
            element = self.scope.arrays[getattr(base, "name", array)].element
        if element is None:
            todo = self.scope.program.preprocessed.advice("use arrays of float, double or integer types")
            raise self.scope.unsupported(f"the elements of {array} are no numbers", node, todo)
        return element

    def _stays(self, place: Reference) -> bool:
        """Whether the element is the same in all iterations of the innermost loop."""
        symbols = self.scope.behind(symbol for index in place.subscripts for symbol in index.free_symbols)
        by_data = any(symbol in self.scope.selected and self.scope.selected[symbol].holds is None for symbol in symbols)
        return self._inner_variable not in symbols and not by_data

    def _key(self, place: Reference) -> str:
        return f"{place.array}[{', '.join(map(str, place.subscripts))}]"

    def _incoming(self, place: Reference) -> _Carried:
        if not self._stays(place):
            return frozenset()
        key = self._key(place)
        return self._carried.get(key, frozenset({key}))


def _ends_with(statement: Node, *kinds: type[Any]) -> bool:
    """Whether a branch without another side ends with a statement of these kinds where its condition holds."""
    side = statement.iftrue if isinstance(statement, c_ast.If) and statement.iffalse is None else None
    if isinstance(side, c_ast.Compound) and side.block_items:
        side = side.block_items[-1]
    return isinstance(side, kinds)


def _pointed(node: Node, scope: Scope) -> str | None:
    """The array that an argument points into, or another address that it is; None for a number or text."""
    if isinstance(node, c_ast.UnaryOp) and node.op == "&":
        return written(node)
    base, indices = subscripts(node)
    if isinstance(base, c_ast.BinaryOp) and base.op in ("+", "-"):
        return _pointed(base.left, scope) or _pointed(base.right, scope)
    if (
        isinstance(base, c_ast.ID)
        and base.name in scope.arrays
        and len(indices) < len(scope.arrays[base.name].dimensions)
    ):
        return str(base.name)
    return None


def math_function(name: str) -> tuple[str | None, ElementType | None]:
    """The double-precision name of a function of <math.h> and the type it computes in; (None, None) if it is none."""
    if name in INTEGER_FUNCTIONS:
        return name, LONG
    if name in MATH_FUNCTIONS:
        return name, DOUBLE
    if name[:-1] in MATH_FUNCTIONS and name[-1] in "fl":
        return name[:-1], FLOAT if name[-1] == "f" else LONG_DOUBLE
    return None, None


_HANDLERS: Mapping[type[Any], Callable[[Body, Node], Value]] = {
    c_ast.Constant: Body._constant,
    c_ast.ID: Body._name,
    c_ast.ArrayRef: Body._array,
    MemberRef: Body._array,
    c_ast.StructRef: Body._structure,
    c_ast.UnaryOp: Body._unary,
    c_ast.BinaryOp: Body._binary,
    c_ast.TernaryOp: Body._conditional,
    c_ast.Cast: Body._cast,
    c_ast.FuncCall: Body._call,
    c_ast.ExprList: Body._sequence,
    c_ast.Assignment: Body._assignment,
}
