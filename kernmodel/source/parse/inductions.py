"""Variables that advance with a loop without being its variable: `k += 2`, `*p++`, as formulas of the loop variables.

An integer or a pointer qualifies if it advances by constants in loops of the nest, and is set outside of these. Its
value at the start of an iteration is then what it was set to, plus the advances times the iterations before. Advances
under a condition count as executed, as all statements there do.

An integer that the innermost body sets after it was used (`im1 = i;`, `j = k + 1;`) has at the start of an iteration
what the one before left: `wrap_around` finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kernmodel.errors import KernmodelError
from kernmodel.formulas.formula import ZERO, Formula, constant, floored, variable
from kernmodel.source.model import Loop
from kernmodel.source.parse.chains import Chain, Level, branches
from kernmodel.source.parse.loops import read_loop
from kernmodel.source.parse.scope import Scope
from kernmodel.source.parse.syntax import Node, c_ast, statements, walk, written_names
from kernmodel.source.parse.tree import LOOPS
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Induction:
    """A variable that advances with a loop.

    Attributes:
        advances: by number of a loop, 0 outermost, what each of its iterations adds itself.
        set_at: number of the loop in each of whose iterations it is set anew, −1: it is set before the nest.
        passed: what the loops beside those of the nest add that stand before the next one in loops further in.
    """

    name: str
    advances: Mapping[int, Formula]
    set_at: int
    passed: Formula = ZERO


def advancing(found: Chain) -> frozenset[str]:
    """The names of variables that some statement of a chain adds to, or one beside it in its loops."""
    parts = [statement for part in found.levels for statement in (*part.before, *part.after)]
    parts += [statement for beside in _all_beside(found) for statement in (*beside.before, *beside.after)]
    written = (found for part in parts for found in written_names(part))
    return frozenset(name for name, node in written if is_advance(node, name)) - counters(found)


def counters(found: Chain) -> frozenset[str]:
    """The variables of the loops of a chain, and of those beside it in its loops."""
    return frozenset(name for level in found.levels for name in _counters(level.statement))


@dataclass(frozen=True, slots=True)
class _Beside:
    """What stands in a loop of a chain besides the statements of the chain.

    Attributes:
        before, after: the statements before and after its next inner loop, loops among them.
        unsure: the names that are written beside that loop under the same condition.
    """

    before: tuple[Node, ...] = ()
    after: tuple[Node, ...] = ()
    unsure: frozenset[str] = frozenset()


def _all_beside(found: Chain) -> tuple[_Beside, ...]:
    """What stands beside a chain in each of its loops; nothing in the innermost."""
    if not found.beside:
        return tuple(_Beside() for _ in found.levels)
    inner = [level.statement for level in found.levels[1:]]
    return (*map(_beside, found.levels, inner), _Beside())


def _beside(level: Level, inner: Node) -> _Beside:
    own = {id(part) for part in (*level.before, *level.after)}
    before: list[Node] = []
    after: list[Node] = []
    unsure = frozenset[str]()
    side = before
    for item in statements(level.statement.stmt):
        if item is inner:
            side = after
        elif any(part is inner for part in walk(item)):
            side = after
            inside = {id(part) for part in walk(inner)}
            unsure = frozenset(name for name, node in written_names(item) if id(node) not in inside)
        elif id(item) not in own:
            side.append(item)
    return _Beside(tuple(before), tuple(after), unsure)


def _counters(node: Node) -> set[str]:
    """The variables of the loops in a node."""
    headers = (part for loop in walk(node) if isinstance(loop, c_ast.For) for part in (loop.init, loop.next))
    return {name for header in headers if header is not None for name, _ in written_names(header)}


def inductions(found: Chain, scope: Scope) -> dict[str, Induction]:
    """The variables of a chain that advance by a constant, by name."""
    writes: dict[str, list[tuple[int, Node]]] = {}
    for level, part in enumerate(found.levels):
        for statement in (*part.before, *part.after):
            for name, node in scope.program.writes(statement):
                writes.setdefault(name, []).append((level, node))
    result = {}
    beside = _all_beside(found)
    first = [part for level in found.levels for part in (*level.passed, *level.before)]
    integers = {part.name for part in first if isinstance(part, c_ast.Decl) and _is_integer_type(scope, part)}
    for name in dict.fromkeys((*writes, *sorted(scope.moving))):
        nodes = writes.get(name, [])
        advanced = {level for level, node in nodes if is_advance(node, name)}
        set_at = max((level for level, node in nodes if not is_advance(node, name)), default=-1)
        if name not in scope.moving or not (
            name in scope.arrays or name in integers or _is_integer(scope, name, nodes)
        ):
            continue
        if advanced and set_at >= min(advanced):
            continue
        set_at = max(set_at, *(level for level, other in enumerate(beside) if _sets(other.before, name)), -1)
        others = {level: _advance_beside(other, name, scope) for level, other in enumerate(beside) if level > set_at}
        parts = {level: found.levels[level] for level in sorted(advanced)}
        advances = {level: _advance(name, (*part.before, *part.after), scope) for level, part in parts.items()}
        if None in (*advances.values(), *others.values()):
            continue
        known = {level: (advances.get(level) or ZERO) + (others.get(level) or ZERO) for level in (*others, *advances)}
        passed = [advance_over(part, name, scope) for level in others for part in beside[level].before]
        by_level = {level: by for level, by in known.items() if by or level in advanced}
        result[name] = Induction(name, by_level, set_at, sum((part for part in passed if part is not None), ZERO))
    return {name: one for name, one in result.items() if one.advances}


def _sets(parts: Iterable[Node], name: str) -> bool:
    """Whether one of these statements itself sets a variable to something else."""
    return any(
        written == name and not is_advance(node, name) and node is part
        for part in parts
        for written, node in written_names(part)
    )


def _advance_beside(beside: _Beside, name: str, scope: Scope) -> Formula | None:
    """What the statements beside a chain add to a variable in an iteration; None: that is not known."""
    if name in beside.unsure:
        return None
    each = [advance_over(part, name, scope) for part in (*beside.before, *beside.after)]
    return None if None in each else sum((part for part in each if part is not None), ZERO)


def at_start(induction: Induction, start: Formula, loops: tuple[Loop, ...]) -> Formula | None:
    """The value at the start of an iteration; None where it is no polynomial with integer coefficients.

    Args:
        start: the value that it is set to.
        loops: all loops of the nest.
    """
    inside = {outer.variable for outer in loops}
    passed, each, trips = ZERO, ZERO, ZERO
    for number in range(max(induction.advances), induction.set_at, -1):
        loop = loops[number]
        if trips.free_symbols & inside:
            return None
        # an iteration adds what stands in it, and all that the iterations of the next inner loop do
        each = induction.advances.get(number, 0) + trips * each
        passed += each * (loop.symbol - loop.start) / loop.step
        trips = trips_of(loop)
    value = start + passed
    whole = all(isinstance(coefficient, int) for coefficient in value.terms.values())
    return value if whole and all(kept.of(kept.parts).of_sizes for kept in value.wholes) else None


def at_entry(
    induction: Induction, start: Formula, loops: tuple[Loop, ...], chain: Sequence[Level], scope: Scope
) -> Formula:
    """The value where a loop of the nest is entered, for its bounds.

    Args:
        start: the value that it is set to.
        loops: those around the loop; chain: all of them.

    Raises:
        UnsupportedKernelError: the loop uses it, and nothing tells it.
    """
    name, number = induction.name, len(loops)
    around = {level: by for level, by in induction.advances.items() if level < number}
    inside = len(around) < len(induction.advances) and induction.set_at < number - 1
    statements_around = [part for level in chain[:number] for part in (*level.before, *level.after)]
    chosen = any(
        written == name
        for statement in statements_around
        for part in walk(statement)
        if isinstance(part, (c_ast.If, c_ast.Switch, c_ast.TernaryOp))
        for written, _ in written_names(part)
    )
    value: Formula | None = start
    if around:
        value = at_start(replace(induction, advances=around), start, loops)
    for level in range(induction.set_at + 1, number):
        # what this iteration has added before it enters the loop
        added = _advance(name, chain[level].before, scope)
        value = None if value is None or added is None else value + added
    if value is not None and not inside and not chosen:
        return value
    header = chain[number].statement
    for part in (header.init, header.cond):
        for node in walk(part) if part is not None else ():
            if isinstance(node, c_ast.ID) and node.name == name:
                text = f"{name}, which bounds a loop, changes from one time that it is entered to the next"
                todo = "bounds may advance by a number in each iteration of a loop around, under no condition"
                raise scope.unsupported(text, node, todo)
    return start


def trips_of(loop: Loop) -> Formula:
    """How many iterations a loop has that runs at all."""
    covered = loop.stop - loop.start
    return covered if loop.step == 1 else floored((covered + loop.step - (1 if loop.step > 0 else -1)) / loop.step)


def with_unit_steps(loops: tuple[Loop, ...], scope: Scope) -> tuple[Loop, ...]:
    """The loops as counters of their iterations, 0, 1, 2, …, of which their variables become formulas in the scope."""
    found: list[Loop] = []
    values: dict[str, Formula | int] = {}
    for loop in loops:
        start, stop = loop.start.substitute(values), loop.stop.substitute(values)
        whole = replace(loop, start=start, stop=stop)
        if abs(loop.step) != 1:
            values[loop.variable] = start + loop.step * loop.symbol
            whole = replace(loop, start=ZERO, stop=trips_of(whole), step=1)
        found.append(whole)
    scope.values = {name: value.substitute(values) for name, value in scope.values.items()}
    scope.views = {name: replace(view, offset=view.offset.substitute(values)) for name, view in scope.views.items()}
    return tuple(found)


def wrap_around(
    body: Sequence[Node], loop: Loop, before: Mapping[str, Formula], scope: Scope
) -> tuple[dict[str, Formula], int]:
    """Integers that a body uses before it sets them: their values at the start of an iteration, by name, and the number
    of first iterations in which they are something else.

    Args:
        body: the statements of the innermost loop.
        before: what integers were before the loop; variables that advance through others start from there.
    """
    ends, unknown = _values_at_end(body, scope)
    found: dict[str, tuple[Formula, int]] = {}

    def resolve(name: str, within: tuple[str, ...]) -> tuple[Formula, int] | None:
        if name in found or name in within:
            return found.get(name)
        end = ends[name]
        advance = end - variable(unknown[name])
        if advance.of_sizes and name in before:
            found[name] = before[name] + advance * (loop.symbol - loop.start) / loop.step, 0
            return found[name]
        parts = {
            symbol: resolve(other, (*within, name)) for other, symbol in unknown.items() if symbol in end.free_symbols
        }
        known = {symbol: part for symbol, part in parts.items() if part is not None}
        if len(known) < len(parts):
            return None
        value = end.substitute({symbol: part for symbol, (part, _) in known.items()})
        left_out = 1 + max((number for _, number in known.values()), default=0)
        found[name] = value.substitute({loop.variable: loop.symbol - loop.step}), left_out
        return found[name]

    values = {name: made for name in ends if _used_first(name, body) and (made := resolve(name, ())) is not None}
    left_out = max((number for _, number in values.values()), default=0)
    return {name: value for name, (value, _) in values.items()}, left_out


def _used_first(name: str, body: Sequence[Node]) -> bool:
    """Whether a body reads a variable before it sets it."""
    for statement in body:
        target = statement.lvalue if isinstance(statement, c_ast.Assignment) else None
        if any(isinstance(part, c_ast.ID) and part.name == name and part is not target for part in walk(statement)):
            return True
        if any(written == name for written, _ in written_names(statement)):
            return False
    return False


def _values_at_end(body: Sequence[Node], scope: Scope) -> tuple[dict[str, Formula], dict[str, str]]:
    """The integers that a body sets once, as formulas of the symbols that stand for them at its start."""
    writes = [name for statement in body for name, _ in written_names(statement)]
    set_here: dict[str, Node] = {}
    for statement in body:
        if isinstance(statement, c_ast.Assignment) and statement.op == "=" and isinstance(statement.lvalue, c_ast.ID):
            set_here[statement.lvalue.name] = statement.rvalue
        elif isinstance(statement, c_ast.Decl) and statement.init is not None:
            set_here[statement.name] = statement.init
    names = [name for name in set_here if writes.count(name) == 1 and _is_integer(scope, name, ())]
    names = [name for name in names if name not in scope.moving]
    unknown = {name: f"{name} before" for name in names}
    outside, scope.values = (
        scope.values,
        {**scope.values, **{name: variable(symbol) for name, symbol in unknown.items()}},
    )
    ends = {}
    try:
        for name in names:
            try:
                ends[name] = scope.values[name] = scope.index(set_here[name])
            except KernmodelError:
                scope.values.pop(name)
                continue
            if any(symbol in scope.selected for symbol in ends[name].free_symbols):
                # what is chosen in an iteration is not known as a formula of the one before
                del ends[name], scope.values[name]
    finally:
        scope.values = outside
    return ends, {name: unknown[name] for name in ends}


def is_advance(node: Node, name: str) -> bool:
    """Whether a write adds to the old value."""
    return advance_of(node, name) is not None


def advance_of(node: Node, name: str) -> tuple[int, Node | None] | None:
    """Sign and amount (None: 1) by which a write moves its variable; None where it sets it otherwise."""
    if isinstance(node, c_ast.UnaryOp):
        return None if node.op == "&" else ((1 if "+" in node.op else -1), None)
    if not isinstance(node, c_ast.Assignment):
        return None
    if node.op in ("+=", "-="):
        return (1 if node.op == "+=" else -1), node.rvalue
    value = node.rvalue
    if node.op == "=" and isinstance(value, c_ast.BinaryOp) and value.op in ("+", "-"):
        if getattr(value.left, "name", None) == name and isinstance(value.left, c_ast.ID):
            return (1 if value.op == "+" else -1), value.right
        if value.op == "+" and isinstance(value.right, c_ast.ID) and value.right.name == name:
            return 1, value.left
    return None


def amount(node: Node, name: str, scope: Scope) -> Formula | None:
    """The constant by which a write moves its variable, None where it is none."""
    found = advance_of(node, name)
    if found is None:
        return None
    sign, value = found
    if value is None:
        return constant(sign)
    used = {part.name for part in walk(value) if isinstance(part, c_ast.ID)}
    if name in used or used & (scope.moving | scope.counters):
        return None  # by what itself changes
    try:
        moved = scope.integer(value)
    except KernmodelError:
        return None
    return sign * moved if moved.of_sizes else None


def advance_over(statement: Node, name: str, scope: Scope) -> Formula | None:
    """What executing a statement before the nest, or a loop of it, adds to a variable; None: that is not known."""
    writes = [node for written, node in written_names(statement) if written == name]
    if not writes:
        return ZERO
    declared = scope.arrays.get(name)
    if (declared is not None and declared.computed) or not all(is_advance(node, name) for node in writes):
        return None
    if not isinstance(statement, c_ast.For):
        plain = not any(isinstance(part, (*LOOPS, c_ast.If, c_ast.Switch)) for part in walk(statement))
        return _advance(name, [statement], scope) if plain else None
    if any(isinstance(part, (c_ast.Continue, c_ast.Break, c_ast.Goto, c_ast.Return)) for part in walk(statement)):
        return None
    kept = scope.values, scope.scalars, scope.rows
    scope.values, scope.scalars, scope.rows = dict(scope.values), dict(scope.scalars), dict(scope.rows)
    try:
        loop = read_loop(statement, scope)
        each = [advance_over(part, name, scope) for part in statements(statement.stmt)]
    except KernmodelError:
        return None
    finally:
        scope.values, scope.scalars, scope.rows = kept
    if None in each:
        return None
    total = sum((part for part in each if part is not None), ZERO) * trips_of(loop)
    whole = all(isinstance(coefficient, int) for coefficient in total.terms.values())
    return total if whole and total.of_sizes else None


def _is_integer_type(scope: Scope, declaration: Node) -> bool:
    element = scope.type_of(declaration)
    return element is not None and element.kind == "integer" and element.size_bytes > 0


def _is_integer(scope: Scope, name: str, nodes: Iterable[tuple[int, Any]]) -> bool:
    declared = scope.scalars.get(name)
    if declared is None:
        declarations = [node for _, node in nodes if isinstance(node, c_ast.Decl)]
        return bool(declarations)
    return declared.kind == "integer" and declared.size_bytes > 0


def _advance(name: str, body: Iterable[Node], scope: Scope) -> Formula | None:
    """What an iteration adds; of the sides of a branch, the first that adds anything counts."""
    total: Formula = ZERO
    for statement in body:
        for part in _parts(statement, name, scope):
            if part is None:
                return None
            total += part
    return total


def _parts(statement: Node, name: str, scope: Scope) -> Iterator[Formula | None]:
    if isinstance(statement, (c_ast.If, c_ast.Switch)):
        sides = [_advance(name, statements(part), scope) for part in branches(statement)]
        yield from (amount(node, name, scope) for found, node in written_names(statement.cond) if found == name)
        yield None if None in sides else next((side for side in sides if side), ZERO)
        return
    if isinstance(statement, (c_ast.Case, c_ast.Default, c_ast.Label, c_ast.Compound)):
        for part in branches(statement):
            yield _advance(name, statements(part), scope)
        return
    if any(isinstance(part, c_ast.TernaryOp) for part in walk(statement)):
        yield from (None for found, _ in written_names(statement) if found == name)
        return
    yield from (amount(node, name, scope) for found, node in written_names(statement) if found == name)
