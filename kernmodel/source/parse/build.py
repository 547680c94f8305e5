"""From a syntax tree to a `LoopNest`: choose the function and the nest, read its loops and its body."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from kernmodel.errors import Location, Note, SeveralNestsError, SourceError, UnsupportedKernelError
from kernmodel.formulas.formula import ZERO, Formula, constant, of_atom
from kernmodel.limits import REFERENCES
from kernmodel.source.model import ROW_LENGTH, Access, Array, Loop, LoopNest
from kernmodel.source.parse.body import Body, Reference
from kernmodel.source.parse.chains import Chain, Level, chains, holds_loop
from kernmodel.source.parse.conditions import condition_notes, refuse_jumps
from kernmodel.source.parse.copies import LibraryLoop
from kernmodel.source.parse.delinearise import access, inner_invariant, shape_array
from kernmodel.source.parse.inductions import (
    Induction,
    advance_over,
    advancing,
    at_entry,
    at_start,
    counters,
    inductions,
    with_unit_steps,
    wrap_around,
)
from kernmodel.source.parse.loops import loop_steps, read_loop, take_repeating
from kernmodel.source.parse.openmp import parallel_of
from kernmodel.source.parse.pragmas import updates_said
from kernmodel.source.parse.scope import Scope, View
from kernmodel.source.parse.selections import RARE
from kernmodel.source.parse.syntax import Node, Program, c_ast, pragma_words, walk, written_names


def choose_function(program: Program, wanted: str | None) -> Node:
    """The function that holds the kernel: the one named, else the only one with a loop, those of headers apart.

    Raises:
        SourceError: no such function, or none with a loop; SeveralNestsError: several to choose from.
    """
    if wanted is not None and not program.bare:
        return _named_function(program, wanted)
    looped = [function for function in program.listed if holds_loop(function.body)]
    file = program.preprocessed.file
    marked = [function for function in looped if any(map(_is_marked, walk(function.body)))]
    looped = marked if len(marked) == 1 else looped
    if not looped:
        _refuse_other_loops(program, *program.listed)
        raise SourceError("has no loop", where=file, todo="give a kernel with at least one for-loop")
    unread = [] if looped is marked else [one for one in program.unread if one.loops]
    if len(looped) + len(unread) > 1:
        places = [f"{function.decl.name} at {program.location(function.decl)}" for function in looped]
        listed = ", ".join([*places, *(f"{one.name} (not read: {one.error})" for one in unread)])
        raise SeveralNestsError(
            f"{len(places) + len(unread)} functions have loops: {listed}",
            where=file,
            todo="choose one with --function NAME",
        )
    return looped[0]


def _named_function(program: Program, wanted: str) -> Node:
    for one in program.unread:
        if one.name == wanted:
            raise one.error
    names = [function.decl.name for function in program.functions]
    if wanted not in names:
        near = get_close_matches(wanted, names, n=3) or names
        raise SourceError(
            f"there is no function {wanted}", where=program.preprocessed.file, todo=f"choose among {', '.join(near)}"
        )
    return program.functions[names.index(wanted)]


def _is_marked(node: Node) -> bool:
    """Whether a pragma says that the kernel stands here, as polyhedral tools mark it."""
    return pragma_words(node)[:1] == ["scop"]


def _refuse_other_loops(program: Program, *functions: Node) -> None:
    for function in functions:
        for node in walk(function.body):
            if isinstance(node, (c_ast.While, c_ast.DoWhile)):
                raise refused_loop(program, function, node)


def refused_loop(program: Program, function: Node, loop: Node) -> UnsupportedKernelError:
    """Why a `while` or `do` that has not become a `for` is no nest."""
    todo = "write it as a for-loop with a counter"
    if (line := program.location(loop).line) is not None:
        todo += f", or say how many iterations it has: --trip-count {line}=N"
    what = "a while loop is not supported where nothing tells how often it runs"
    return Scope.of(program, function).unsupported(what, loop, todo)


def choose_nest(program: Program, function: Node, wanted: int | None) -> Chain:
    """The chain of loops of the kernel: number `wanted` (from 1) of its function, else the only one.

    Raises:
        SourceError: none, or not this one; SeveralNestsError: several to choose from.
    """
    found = chains(function, program)
    name = program.preprocessed.file if program.bare else f"{program.preprocessed.file}: {function.decl.name}"
    if not found:
        _refuse_other_loops(program, function)
        raise SourceError("has no loop", where=name, todo="give a kernel with at least one for-loop")
    listed = ", ".join(f"{k} at {program.location(chain.inner)}" for k, chain in enumerate(found, 1))
    if wanted is None and len(found) > 1:
        raise SeveralNestsError(f"{len(found)} loop nests: {listed}", where=name, todo="choose one with --nest K")
    if wanted is not None and not 1 <= wanted <= len(found):
        raise SourceError(f"there is no loop nest {wanted}", where=name, todo=f"choose among {listed}")
    return found[(wanted or 1) - 1]


def nest_at_line(program: Program, line: int) -> tuple[Node, Chain]:
    """The function and the chain of loops whose innermost loop stands at a line of the file.

    Raises:
        SourceError: none does.
    """
    found = [(function, chain) for function in program.functions for chain in chains(function, program)]
    for function, chain in found:
        first, last = lines_of(chain.inner, program) or (0, -1)
        if first <= line <= last and program.location(chain.inner).file == program.preprocessed.file:
            return function, chain
    where = Location(program.preprocessed.file, line)
    raise SourceError("no innermost loop stands at this line", where=where, todo="see them with kernmodel kernel loops")


def build_nest(program: Program, function: Node, found: Chain, text: str, name: str) -> LoopNest:
    """The `LoopNest` of this chain of loops.

    Raises:
        UnsupportedKernelError: the nest holds what the models do not cover.
        SourceError: an undeclared name, a step without value.
    """
    scope, chain, statement = Scope.of(program, function), found.levels, found.levels[0].statement
    refuse_jumps(found, scope)
    scope.moving, scope.counters = advancing(found), counters(found)
    before = _read_until(found, scope)
    scope.fixed |= _fixed_steps(found, scope)
    moving = inductions(found, scope)
    for other in scope.moving - set(moving):
        scope.values.pop(other, None)
    scope.moving = frozenset(moving)
    scope.enter()
    loops = _read_loops(chain, moving, scope)
    if not scope.rows and not scope.indirect and not all(_starts(moving, loops, scope).values()):
        loops = with_unit_steps(loops, scope)
    _start_moving(moving, loops, scope)
    left, left_out = wrap_around(chain[-1].before, loops[-1], before, scope)
    loops = (*loops[:-1], replace(loops[-1], start=loops[-1].start + left_out * loops[-1].step))
    body = _read_body(chain, Body(scope, loops, moving), left)
    _refuse_views(body.references, scope)
    arrays, accesses, notes = _arrays(body.references, loops, scope)
    if REFERENCES.exceeded(len(accesses)):
        todo = REFERENCES.todo("split the loop")
        raise scope.unsupported(f"the nest has {len(accesses):,} different array references", statement, todo)
    symbols = _symbols(loops, arrays, accesses)
    values, operations = program.preprocessed.values, body.operations()
    return LoopNest(
        name=name if program.bare else function.decl.name,
        loops=loops,
        arrays=arrays,
        accesses=accesses,
        operations=replace(operations, updates=updates_said(program, function, statement)),
        symbols=symbols,
        defaults={n: v for n, v in {**scope.given, **values}.items() if n in symbols} | scope.fixed,
        file=program.preprocessed.file,
        text=text,
        function=None if program.bare else function.decl.name,
        notes=(
            *_chain_notes(found, scope, {one.location: one.taken for one in operations.branches}, body.counted),
            *_taken_notes(scope, body, symbols),
            *_header_notes(program),
            *_step_notes(scope, chain, loops),
            *_left_out_notes(left, left_out, loops[-1]),
            *_between_notes(body.flops_between),
            *notes,
        ),
        between=tuple(_between(found, scope)),
        inner_lines=lines_of(found.inner, program),
        parallel=parallel_of(program, function, found),
        counted_at=frozenset(symbols) if body.counted or body.chosen or scope.decided else frozenset(),
    )


def _between_notes(places: Sequence[Location]) -> Iterator[Note]:
    """That floating-point operations between loops are not counted."""
    if places:
        are, of = ("are", "operations") if len(places) > 1 else ("is", "operation")
        text = (
            f"{len(places)} floating-point {of} between loops {are} not counted: FLOP are those of the innermost loop"
        )
        yield Note("flop-between-loops", text, "assumption", places[0])


def lines_of(node: Node, program: Program) -> tuple[int, int] | None:
    """The first and the last line of a statement in its file, as far as its parts tell; what was put into it, as the
    value that an earlier loop leaves, may stand before it."""
    first = program.location(node)
    places = [program.location(part) for part in walk(node) if part.coord is not None]
    lines = [place.line for place in places if place.file == first.file and place.line is not None]
    own = [line for line in lines if first.line is None or line >= first.line]
    return (min(own), max(own)) if own else None


def _between(found: Chain, scope: Scope) -> Iterator[tuple[int, Location]]:
    """The statements between loops that are more than index arithmetic, with the number of loops around them; the loops
    that stand beside those of the chain are such statements too."""
    for depth, level in enumerate(found.levels[:-1], 1):
        for statement in (*level.before, *level.after):
            if not _is_index_arithmetic(statement, scope):
                yield depth, scope.location(statement)
        inside = {id(node) for node in walk(found.levels[depth].statement)}
        mine = {id(node) for node in walk(level.statement)} - inside
        for loop in found.beside:
            if id(loop) in mine:
                yield depth, scope.location(loop)


def _chain_notes(
    found: Chain, scope: Scope, decided: Mapping[Location, float], counted: Mapping[Location, float]
) -> Iterator[Note]:
    """What is assumed of loops around and beside the chain, and of branches."""
    for loop in found.repeated:
        text = (
            "this loop only repeats the nest (it calls functions, counts nothing, multiplies its variable, or changes "
            "by what a loop in it steps): nothing stays in caches between"
        )
        yield Note("repeating-loop", text, "assumption", scope.location(loop))
    for loop in found.beside:
        text = (
            "the loop beside it is a nest of its own: what both find in caches of one another is counted for the whole "
            "function (without --nest), not here"
        )
        yield Note("loops-beside", text, where=scope.location(loop))
    called = [level.statement for level in found.levels if isinstance(level.statement, LibraryLoop)]
    for loop in called[:1]:
        text = (
            f"{loop.function} is taken as a loop over its elements, and in the core over vectors: what a call takes "
            "besides is not counted, nor streaming stores, which C libraries may take for more than the caches hold "
            "(--stores nt)"
        )
        yield Note("library-loop", text, "assumption", scope.location(loop))
    yield from condition_notes(found, scope, decided, counted)


def _is_index_arithmetic(statement: Node, scope: Scope) -> bool:
    """Whether the statement only names an integer expression of sizes and loop variables, or declares a scalar."""
    if isinstance(statement, c_ast.DeclList):
        return all(_is_index_arithmetic(part, scope) for part in statement.decls)
    if isinstance(statement, c_ast.Decl):
        name, silent = statement.name, statement.init is None
    elif isinstance(statement, c_ast.Assignment) and statement.op == "=" and isinstance(statement.lvalue, c_ast.ID):
        name, silent = statement.lvalue.name, False
    else:
        return False
    value = scope.values.get(name)
    return silent or (value is not None and not any(symbol in scope.indirect for symbol in value.free_symbols))


def _read_until(found: Chain, scope: Scope) -> dict[str, Formula]:
    """Take what is declared and set before the nest into the scope, and the variables of loops that only repeat it.

    Returns:
        What integers that one loop writes are before it.
    """
    scope.changing = frozenset(name for name, _ in scope.program.writes(found.levels[0].statement))
    for loop in found.repeated:
        take_repeating(loop, scope)
    repeated = frozenset[int]().union(*(scope.program.once(_inside, loop.stmt) for loop in found.repeated[:1]))
    entered = False
    anew: set[str] = set()
    for statement in found.passed:
        if not entered and id(statement) in repeated:
            # what an iteration before has left, unless this one sets it before the nest
            entered = True
            _forget(found.repeated[0], scope, moving=True)
        _take_integers(statement, scope, outside=True)
        _take_pointers(statement, scope, anew if entered else None)
    if found.repeated and not entered:
        _forget(found.repeated[0], scope, moving=True)
    before = dict(scope.values) if len(found.levels) == 1 else {}
    _forget(found.levels[0].statement, scope)
    return before


def _inside(node: Node) -> frozenset[int]:
    """The `id` of each part of a node."""
    return frozenset(map(id, walk(node)))


def _forget(loop: Node, scope: Scope, *, moving: bool = False) -> None:
    """Forget the integers that a loop writes, and that are written elsewhere too; `moving`: also those that advance."""
    for name, _ in scope.program.writes(loop.stmt):
        if scope.writes(name) > 1 and name in scope.scalars and (moving or name not in scope.moving):
            scope.values.pop(name, None)


def _take_pointers(statement: Node, scope: Scope, anew: set[str] | None) -> None:
    """Note which pointers a statement before the nest lets point elsewhere; declarations have been read.

    Args:
        anew: of a loop that repeats the nest and this statement, the pointers that each iteration sets anew before:
            others that advance begin elsewhere each time. None: it is executed once.
    """
    if isinstance(statement, (c_ast.Decl, c_ast.DeclList)):
        if anew is not None:
            anew |= {name for name, _ in written_names(statement)}
        return
    target = statement.lvalue if isinstance(statement, c_ast.Assignment) else None
    if isinstance(target, c_ast.ID) and target.name in scope.arrays:
        known = anew is None or target.name in anew
        if not known or (moved := advance_over(statement, target.name, scope)) is None:
            scope.point(target.name, statement.rvalue if statement.op == "=" else None, statement)
            if anew is not None and statement.op == "=":
                anew.add(target.name)
        else:
            scope.advance(target.name, moved)
        return
    written = {name for name, _ in scope.program.writes(statement) if name in scope.arrays}
    found = {name: advance_over(statement, name, scope) for name in (written if anew is None else written & anew)}
    followed = {name: moved for name, moved in found.items() if moved is not None}
    for name, moved in followed.items():
        scope.advance(name, moved)
    scope.point_perhaps(statement, followed)


def _refuse_views(references: Sequence[Reference], scope: Scope) -> None:
    """An array of the nest that was made of another one of the nest by a call: both may be the same lines."""
    used = {reference.array for reference in references}
    for reference in references:
        for other, place in scope.arrays[reference.array].derived:
            if other in used:
                raise UnsupportedKernelError(
                    f"{reference.array} comes from a call that is given {other}, which the nest uses too: whether "
                    "their lines are the same is not known",
                    where=place,
                    todo=f"use one name in the nest, {other} or {reference.array}",
                )


def _take_integers(statement: Node, scope: Scope, *, outside: bool = False) -> None:
    """Take what a statement declares and sets: of what is executed one after the other the last counts.

    Args:
        outside: it stands in no loop of the nest, or beside the next one: what it adds to a variable counts too.
    """
    scope.declare(statement)
    value = statement.init if isinstance(statement, c_ast.Decl) else None
    if isinstance(statement, c_ast.Assignment) and statement.op == "=":
        value = statement.rvalue
    target = getattr(statement, "name", None) or getattr(getattr(statement, "lvalue", None), "name", None)
    for name in dict.fromkeys(name for name, _ in scope.program.writes(statement)):
        known = scope.scalars.get(name)
        if known is None or known.kind != "integer" or scope.writes(name) <= 1:
            continue
        if name == target and value is not None:
            if name not in scope.moving:
                scope.set_now(name, value)
        elif outside and name in scope.values and (moved := advance_over(statement, name, scope)) is not None:
            scope.values[name] += moved
        elif outside or name not in scope.moving:
            scope.values.pop(name, None)
    if isinstance(statement, c_ast.Assignment) and statement.op == "=" and isinstance(statement.lvalue, c_ast.ID):
        name = statement.lvalue.name
        if name in scope.scalars and scope.scalars[name].kind == "integer":
            scope.assign(name, statement.rvalue)


def _fixed_steps(found: Chain, scope: Scope) -> dict[str, int]:
    """The sizes that loops step by: a step must be a number, so their values are taken now."""
    fixed = {}
    parts = [part for level in found.levels for part in (*level.passed, *level.before)]
    declared = {part.name: part.init for part in parts if isinstance(part, c_ast.Decl) and scope.writes(part.name) == 1}
    for expression in loop_steps(found.levels):
        for node in walk(expression):
            for name in _sizes_behind(node, scope, declared) if isinstance(node, c_ast.ID) else ():
                value = scope.program.preprocessed.values.get(name)
                if value is None:
                    todo = f"give -D {name}=…"
                    if any(name in _moved(loop) for loop in found.repeated):
                        todo = f"give one of its values, -D {name}=…, or several, as -D {name}=1-1024:log2"
                    what = f"macro or parameter {name}, by which a loop steps, has no value"
                    raise SourceError(what, where=scope.location(node), todo=todo)
                fixed[name] = value
    for name in fixed.keys() & scope.values.keys() if fixed else ():
        scope.values.pop(name)
    known = {name: constant(value) for name, value in fixed.items()}
    scope.values = {name: value.substitute(known) for name, value in scope.values.items()} if fixed else scope.values
    return fixed


def _sizes_behind(node: Node, scope: Scope, declared: Mapping[str, Node | None]) -> Collection[str]:
    """The sizes on which the value of a name depends that a loop steps by; none where it is no formula of sizes.

    Args:
        declared: what variables are set to that are declared between the loops.
    """
    if (value := declared.get(node.name)) is not None:
        others = {name: other for name, other in declared.items() if name != node.name}
        names = [part for part in walk(value) if isinstance(part, c_ast.ID)]
        return sorted({size for part in names for size in _sizes_behind(part, scope, others)})
    if node.name in scope.values:
        value = scope.values[node.name]
        return sorted(value.free_symbols) if value.of_sizes else ()
    known = node.name in scope.arrays or (node.name in scope.scalars and node.name in scope.changing)
    return () if known else (node.name,)


def _moved(loop: Node) -> set[str]:
    """The variables that a loop writes."""
    return {name for name, _ in written_names(loop)}


def _left_out_notes(names: Mapping[str, Formula], left_out: int, loop: Loop) -> Iterator[Note]:
    """That the first iterations of a loop differ from the others, because variables come from the iteration before."""
    if left_out:
        which = "iteration is" if left_out == 1 else f"{left_out} iterations are"
        text = f"{', '.join(names)} come from the iteration before: the first {which} left out"
        yield Note("first-iterations", text, "assumption", loop.location)


def _step_notes(scope: Scope, chain: Sequence[Level], loops: Sequence[Loop]) -> tuple[Note, ...]:
    where = loops[0].location
    notes = [
        Note(
            "fixed-step",
            f"{name} is {'an exponent' if name in scope.shifting else 'the step of a loop'}, so its value {value} was "
            "taken as a number",
            "assumption",
            where,
        )
        for name, value in scope.fixed.items()
    ]
    for level, loop in zip(chain, loops, strict=True):
        if getattr(level.statement.cond, "op", "") == "!=" and abs(loop.step) > 1:
            text = f"the loop over {loop.variable} is taken to meet its bound {loop.stop} exactly"
            notes.append(Note("exact-end", text, "assumption", loop.location))
    return tuple(notes)


def _read_loops(chain: Sequence[Level], moving: Mapping[str, Induction], scope: Scope) -> tuple[Loop, ...]:
    loops: list[Loop] = []
    for level in chain:
        kept = {name: scope.values[name] for name in moving if name in scope.values}
        scope.values |= {
            name: at_entry(moving[name], value, tuple(loops), chain, scope) for name, value in kept.items() if loops
        }
        loops.append(read_loop(level.statement, scope))
        scope.values |= kept
        if len(loops) > 1:
            _forget(level.statement, scope)
        for statement in level.passed:
            _take_integers(statement, scope, outside=True)
            _take_pointers(statement, scope, None)
        for statement in level.before:
            # bounds of inner loops may use integers that are set between the loops
            _take_integers(statement, scope)
    return tuple(loops)


def _start_moving(moving: Mapping[str, Induction], loops: tuple[Loop, ...], scope: Scope) -> None:
    """Give variables that advance with a loop their values at the start of an iteration."""
    for name, value in _starts(moving, loops, scope).items():
        if name not in scope.arrays:
            scope.values.pop(name, None)
            if value is not None:
                scope.values[name] = value
        elif value is not None:
            scope.views[name] = replace(scope.views.get(name) or View(name, (), ZERO), offset=value)
        else:
            scope.views.pop(name, None)  # where it moves, it is refused


def _starts(moving: Mapping[str, Induction], loops: tuple[Loop, ...], scope: Scope) -> dict[str, Formula | None]:
    """At the start of an iteration, the value of each integer, and how far each pointer has moved; None: no formula."""
    found: dict[str, Formula | None] = {}
    for name, induction in moving.items():
        if name in scope.arrays:
            view = scope.views.get(name)
            found[name] = at_start(induction, ZERO if view is None else view.offset, loops)
        else:
            found[name] = at_start(induction, scope.values[name], loops) if name in scope.values else None
    return found


def _taken_notes(scope: Scope, body: Body, symbols: Mapping[str, Formula]) -> Iterator[Note]:
    """What is assumed of sizes that come from outside, and of pointers that change places."""
    for name, place in scope.asked.items():
        if name in symbols:
            text = f"{name} comes from outside, or what it is set to is not followed: it is a size"
            yield Note("size-from-outside", text, "assumption", place)
    for name, loop in scope.rows.items():
        text = f"rows over which {name} runs are taken to lie one after the other, with {ROW_LENGTH} entries each"
        yield Note("rows", text, "assumption", scope.location(loop))
    for name, place in scope.in_turn.items():
        text = (
            f"loops over {name} begin in turn at different places within one step: all are taken to begin at the first"
        )
        yield Note("starts-in-turn", text, "assumption", place)
    for place, (reference, left_out) in body.chosen.items():
        text = f"a condition chooses the index of {reference}: each case is a reference of its own"
        if left_out:
            text += f"; cases that hold in less than {RARE:.1%} of the iterations, or never, are left out"
        yield Note("chosen-index", text, "assumption", place)
    for name, place in body.not_followed.items():
        text = (
            f"the code of {name} is not in this file: what it reads and writes and its FLOP are not counted, its time "
            "is that of a called function"
        )
        yield Note("call-not-followed", text, where=place)
    for place in body.exchanged:
        text = "pointers change places here: each is taken to stay with its array"
        yield Note("pointers-exchanged", text, "assumption", place)


def _header_notes(program: Program) -> Iterator[Note]:
    """That headers of the user are missing, whose macros and types are not known."""
    for name, place in program.preprocessed.missing:
        if name.startswith('"'):
            text = f"{name} is not found (give its folder with -I): what it defines is not known"
            yield Note("missing-header", text, where=place)


def _read_body(chain: Sequence[Level], body: Body, left: Mapping[str, Formula]) -> Body:
    """Read the statements of a chain; `left`: what iterations of the innermost body leave to the next."""
    for depth, level in enumerate(chain, 1):
        body.forget([part for inner in chain[depth - 1 :] for part in (*inner.before, *inner.after)])
        body.share, body.guards = 1.0, ()
        if depth == len(chain):
            body.scope.values |= {name: value for name, value in left.items() if name not in body.scope.values}
        for statement in level.before:
            body.read(statement, depth)
        if depth < len(chain) and (inner := chain[depth].statement) in body.scope.rows.values():
            body.read_bounds(inner, depth)
    for depth, level in reversed(tuple(enumerate(chain, 1))):
        body.share, body.guards = 1.0, ()
        if depth < len(chain):
            body.leave(body.loops[depth])
        for statement in level.after:
            body.read(statement, depth, after_inner=True)
    return body


def _arrays(
    references: Sequence[Reference], loops: tuple[Loop, ...], scope: Scope
) -> tuple[dict[str, Array], tuple[Access, ...], tuple[Note, ...]]:
    """Arrays by name, accesses in the order of the references with repetitions counted, and notes."""
    arrays: dict[str, Array] = {}
    found: dict[Reference, Access] = {}
    notes: list[Note] = []
    for name in dict.fromkeys(reference.array for reference in references):
        own = [reference for reference in references if reference.array == name]
        shaped = shape_array(scope.arrays[name], own, loops, scope)
        arrays[name] = shaped.array
        _refuse_changing(shaped.array, loops)
        notes += shaped.notes
        for reference, index in zip(own, shaped.indices, strict=True):
            found[reference] = access(reference, shaped.array, index, loops, scope)
        inner = [found[reference] for reference in own if reference.depth == len(loops)]
        if inner and not any(item.moves(loops) for item in inner):
            notes.append(inner_invariant(name, inner[0].location, loops[-1]))
    accesses = _counted([found[reference] for reference in references])
    return arrays, accesses, (*notes, *_index_array_notes(accesses))


def _refuse_changing(array: Array, loops: tuple[Loop, ...]) -> None:
    """Refuse an array that is another one in every iteration.

    Raises:
        UnsupportedKernelError: its extents depend on a loop.
    """
    changing = {symbol for extent in array.shape for symbol in extent.free_symbols & {loop.variable for loop in loops}}
    if changing:
        what = f"the length of {array.name} changes with {', '.join(sorted(changing))}"
        todo = "declare it before the loops, with the largest length"
        raise UnsupportedKernelError(what, where=array.location, todo=todo)


def _index_array_notes(accesses: Sequence[Access]) -> Iterator[Note]:
    """Warnings about index arrays that the nest writes.

    Raises:
        UnsupportedKernelError: an index that is read before the nest.
    """
    written = {item.array: item for item in accesses if item.kind == "write"}
    read = {item.array for item in accesses if item.kind == "read"}
    placed = {entry.array: (item, entry.text) for item in accesses for entry in item.indirect if entry.array}
    for array, (user, index) in placed.items():
        if array not in read:
            raise UnsupportedKernelError(
                f"the index of {user.text} is read from {index} before the loops",
                where=user.location,
                todo="read it inside of the loops, or take an integer parameter for it",
            )
        if array in written:
            text = f"{written[array].text} is written in the nest and used as an index: its values are taken to stay"
            yield Note("index-array-written", text, where=written[array].location)


def _counted(accesses: Sequence[Access]) -> tuple[Access, ...]:
    """References that repeat literally become one access with their count."""
    groups: dict[tuple[object, ...], list[Access]] = {}
    for item in accesses:
        key = (item.array, item.kind, item.index, item.depth, item.after_inner, item.guard, item.element_bytes)
        groups.setdefault(key, []).append(item)
    return tuple(
        replace(group[0], count=len(group), share=sum(item.share for item in group) / len(group))
        for group in groups.values()
    )


def _symbols(loops: Sequence[Loop], arrays: Mapping[str, Array], accesses: Sequence[Access]) -> dict[str, Formula]:
    """The size symbols that bounds, shapes, offsets, and quotients and remainders in these use, by name."""
    expressions = [bound for loop in loops for bound in (loop.start, loop.stop)]
    expressions += [extent for array in arrays.values() for extent in array.shape]
    expressions += [item.offset for item in accesses]
    divided = [entry for item in accesses for entry in item.indirect if not entry.array]
    expressions += [part for one in divided for part in (one.position, one.divisor, one.modulus) if part is not None]
    known = {loop.variable for loop in loops} | {entry.name for item in accesses for entry in item.indirect}
    free = {symbol for expression in expressions for symbol in expression.free_symbols} - known
    return {symbol: of_atom(symbol) for symbol in sorted(free)}
