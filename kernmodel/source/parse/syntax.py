"""The syntax tree of a kernel (pycparser), with every place in the user's own lines and columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, partial
from typing import Any, TypeVar

from pycparser import c_ast, c_generator  # type: ignore[import-untyped]
from pycparser.c_lexer import CLexer  # type: ignore[import-untyped]
from pycparser.c_parser import CParser, ParseError  # type: ignore[import-untyped]

from kernmodel.errors import Location, SourceError
from kernmodel.patterns import pattern
from kernmodel.source.model import NOTHING_STATED, Stated
from kernmodel.source.parse.aliases import follow_structures
from kernmodel.source.parse.attributes import retype
from kernmodel.source.parse.copies import copies_as_loops
from kernmodel.source.parse.counted_loops import rewrite_loops, state_trips
from kernmodel.source.parse.declarations import Unread, read_each
from kernmodel.source.parse.initialisers import spread_initialisers
from kernmodel.source.parse.inlining import inline_calls
from kernmodel.source.parse.jumps import structure_jumps
from kernmodel.source.parse.library_calls import rewrite_library_calls
from kernmodel.source.parse.member_pointers import follow_member_pointers
from kernmodel.source.parse.preprocess import Preprocessed, header_of, preprocess
from kernmodel.source.parse.standard_headers import is_known_function
from kernmodel.source.parse.structures import MemberRef, Types, rewrite_members
from kernmodel.source.parse.tree import (
    LOOPS,
    Node,
    called_name,
    memory_reads,
    statements,
    subscripts,
    walk,
    written_names,
)
from kernmodel.source.parse.untyped import type_void_parameters
from kernmodel.source.parse.wrapping import unwrap
from kernmodel.source.text import function_bodies, refuse_other_languages, without_comments
from kernmodel.value_types import dataclass

__all__ = [
    "MemberRef",
    "Node",
    "Program",
    "c_ast",
    "c_generator",
    "memory_reads",
    "parse_program",
    "pragma_words",
    "statements",
    "subscripts",
    "walk",
    "written_names",
]

_Found = TypeVar("_Found")
_BARE = "bare_nest"
_WRAP = f"void {_BARE}(void) {{\n"
_MESSAGE = pattern(r"^(?:.*?:)?(\d+):(?:(\d+):)? *(.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A parsed source file, whose tree does not change any more.

    Attributes:
        globals: declarations at file scope.
        functions: the functions with a body, in source order; one without a name for a bare loop nest.
        bare: whether the text is a bare loop nest with declarations.
        preprocessed: the text the tree was parsed from.
        stated: what the user says of its lines.
        unread: the functions that are no C, or use what headers declare that are missing.
        listed: the functions of the file itself, and those of its headers where they are asked for, or it has no loop.
        left_out: the other functions with loops of its headers, which are not all read: name and header of each.
        known: what `once` has found.
    """

    globals: tuple[Node, ...]
    functions: tuple[Node, ...]
    bare: bool
    preprocessed: Preprocessed
    stated: Stated = NOTHING_STATED
    unread: tuple[Unread, ...] = ()
    listed: tuple[Node, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    known: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def once(self, find: Callable[..., _Found], *arguments: Hashable) -> _Found:
        """What `find` returns for parts of the tree, asked once: hundreds of nests of a file ask the same."""
        key = (find, *arguments)
        if key not in self.known:
            self.known[key] = find(*arguments)
        found: _Found = self.known[key]
        return found

    @property
    def calls(self) -> Mapping[str, Sequence[tuple[Node, Node]]]:
        """By the name of a function, each function that calls it, with the call."""
        return self.once(_calls, self.functions)

    @property
    def expressions(self) -> frozenset[str]:
        """The functions that only return the value of an expression, in which nothing else is called than such."""
        return self.once(_expressions, self.functions)

    def writes(self, node: Node) -> tuple[tuple[str, Node], ...]:
        """The `written_names` of a part of the tree."""
        return self.once(_writes, node)

    def location(self, node: Node) -> Location:
        """Where the node starts in the user's file."""
        coord = node.coord
        if coord is None:
            return Location(self.preprocessed.file)
        return self.preprocessed.location(coord.line - (1 if self.bare else 0), coord.column)


def parse_program(
    text: str,
    file: str,
    defines: Mapping[str, str | int],
    include: Sequence[str] = (),
    stated: Stated = NOTHING_STATED,
    *,
    wanted: str | None = None,
    headers: bool = False,
) -> Program:
    """The program that `text` holds; `include` are folders in which its headers are looked for, `stated` what the user
    says of its lines.

    Functions of headers are read where the file calls them, or has no loop of its own; besides, `wanted`, and all of
    them with `headers`.

    Raises:
        SourceError: empty, C++ or Fortran, a preprocessor line that cannot be read, a syntax error.
    """
    refuse_other_languages(text, file)
    preprocessed = preprocess(text, file, defines, include, wanted=wanted, headers=headers)
    plain = without_comments(preprocessed.text, directives=False)
    _refuse_stray_brace(plain, preprocessed)
    bare = not function_bodies(plain)
    body = f"{_WRAP}{preprocessed.text}\n}}" if bare else preprocessed.text
    source = _Source(text, body, plain, bare, preprocessed)
    nodes, unread = _nodes(source)
    retype(nodes, preprocessed.attributes.below(1 if bare else 0))
    functions = tuple(node for node in nodes if isinstance(node, c_ast.FuncDef))
    others = tuple(node for node in nodes if not isinstance(node, c_ast.FuncDef))
    types = Types.of(preprocessed, others)
    spread_initialisers(functions, types)
    _rewrite_functions(functions, others, source, stated)
    if not bare:
        others = rewrite_members(others, functions, types)
    program = Program(others, functions, bare, preprocessed, stated, tuple(unread), functions)
    return program if headers else _own(program, wanted)


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """The text of a user, what the parser is given of it, and that without comments."""

    text: str
    body: str
    plain: str
    bare: bool
    preprocessed: Preprocessed

    def line_of(self, node: Node) -> int:
        """The line of a node in the user's own file; 0 in a header."""
        place = self.preprocessed.location(node.coord.line - (1 if self.bare else 0), node.coord.column)
        return (place.line or 0) if place.file == self.preprocessed.file else 0


def _nodes(source: _Source) -> tuple[Sequence[Node], Sequence[Unread]]:
    """The declarations and functions of a source, and the functions that cannot be read, while another one with a loop
    can."""
    parser = CParser(lexer=_Lexer)

    def refuse(error: ParseError, last: Any) -> SourceError:
        wrong = _syntax_error(str(error), last, source.preprocessed, source.bare)
        return _known_cause(source.text, wrong) or wrong

    try:
        return parser.parse(source.body, "").ext, ()
    except ParseError as error:
        text = source.preprocessed.text
        nodes, unread = ([], []) if source.bare else read_each(text, source.plain, _Lexer, refuse)
        if not any(isinstance(node, c_ast.FuncDef) and _has_loop(node) for node in nodes):
            first = next((one.error for one in unread if one.loops), None)
            raise first or refuse(error, parser.clex.last) from error
        return nodes, unread


def _rewrite_functions(functions: Sequence[Node], others: Sequence[Node], source: _Source, stated: Stated) -> None:
    """Write loops and accesses of functions in the few forms that the rest reads; the trees are changed."""
    preprocessed, trips = source.preprocessed, dict(stated.trip_counts)
    _refuse_other_lines(functions, stated, source.line_of, preprocessed.file)
    rewrite_library_calls(functions, asserts=preprocessed.asserts)
    type_void_parameters(functions)
    copies_as_loops(functions, others, preprocessed)
    for function in functions:
        follow_structures(function)
        structure_jumps(function)
        if trips:
            state_trips(function, lambda loop: trips.get(source.line_of(loop)))
        rewrite_loops(function)
        unwrap(function)
    inline_calls(functions)
    for function in functions:
        # what was inlined has pointers of its own
        follow_member_pointers(function)


def _own(program: Program, wanted: str | None) -> Program:
    """The program with the functions of its headers apart, where the file itself has one with a loop."""
    header_in = cache(partial(header_of, program.preprocessed.file))
    inside = {function: header_in(program.location(function.decl).file) for function in program.functions}
    unread = [(one, header_in(getattr(one.error.where, "file", ""))) for one in program.unread]
    looped = [header for function, header in inside.items() if _has_loop(function)]
    looped += [header for one, header in unread if one.loops]
    if all(looped):
        return program
    others = [(str(function.decl.name), header) for function, header in inside.items() if _has_loop(function)]
    others += [(one.name, header) for one, header in unread if one.loops]
    return replace(
        program,
        unread=tuple(one for one, header in unread if not header or one.name == wanted),
        listed=tuple(function for function, header in inside.items() if not header),
        left_out=(*program.preprocessed.left_out, *(other for other in others if other[1])),
    )


def _calls(functions: Sequence[Node]) -> dict[str, list[tuple[Node, Node]]]:
    """Who calls what, and where."""
    found: dict[str, list[tuple[Node, Node]]] = {}
    for caller in functions:
        for node in walk(caller.body):
            if isinstance(node, c_ast.FuncCall):
                found.setdefault(called_name(node), []).append((caller, node))
    return found


def _expressions(functions: Sequence[Node]) -> frozenset[str]:
    bodies = {function.decl.name: list(statements(function.body)) for function in functions}
    calls = {
        name: {called_name(part) for part in walk(body[0]) if isinstance(part, c_ast.FuncCall)}
        for name, body in bodies.items()
        if len(body) == 1 and isinstance(body[0], c_ast.Return)
    }
    while True:
        kept = {name: own for name, own in calls.items() if all(one in calls or is_known_function(one) for one in own)}
        if len(kept) == len(calls):
            return frozenset(kept)
        calls = kept


def _writes(node: Node) -> tuple[tuple[str, Node], ...]:
    return tuple(written_names(node))


def _has_loop(function: Node) -> bool:
    return any(isinstance(node, LOOPS) for node in walk(function.body))


def _refuse_other_lines(functions: Sequence[Node], stated: Stated, line_of: Callable[[Node], int], file: str) -> None:
    """Refuse what is stated of lines where there is no such thing."""
    branches = (c_ast.If, c_ast.Switch, c_ast.TernaryOp)
    for what, given, kinds in (("branch", stated.taken, branches), ("loop", stated.trip_counts, LOOPS)):
        if not given:
            continue
        nodes = (node for function in functions for node in walk(function) if isinstance(node, kinds))
        lines = {line_of(node if node.coord is not None else node.cond) for node in nodes}
        for line, _ in given:
            if line not in lines:
                option = "--taken" if what == "branch" else "--trip-count"
                known = ", ".join(map(str, sorted(lines - {0})))
                todo = f"{option} takes the lines {known}" if known else f"leave {option} out"
                raise SourceError(f"no {what} stands at line {line}", where=file, todo=todo)


def _refuse_stray_brace(plain: str, preprocessed: Preprocessed) -> None:
    """Refuse a `}` that nothing opened: what stands behind it would be read as if it stood elsewhere."""
    depth = 0
    for match in re.finditer("[{}]", plain):
        depth += 1 if match[0] == "{" else -1
        if depth < 0:
            line = plain.count("\n", 0, match.start()) + 1
            column = match.start() - plain.rfind("\n", 0, match.start())
            todo = "take it out, or open the block that it ends"
            raise SourceError("a } that nothing opened", where=preprocessed.location(line, column), todo=todo)


class _Lexer(CLexer):  # type: ignore[misc]  # pycparser has no types
    """pycparser's lexer, which remembers the last token: some errors of the parser name no place."""

    last: Any = None

    def token(self) -> Any:
        found = super().token()
        self.last = found or self.last
        return found


def _syntax_error(message: str, last: Any, preprocessed: Preprocessed, bare: bool) -> SourceError:
    """The error at its token; where the parser names none, at the last one it had read."""
    match = _MESSAGE.match(message)
    if match is not None:
        line, column, message = int(match[1]), int(match[2] or 1), match[3]
    else:
        line, column, message = getattr(last, "lineno", 1), getattr(last, "column", 1), message.lstrip(": ")
    where = preprocessed.location(line - (1 if bare else 0), column)
    return SourceError(
        f"syntax error ({message})", where=where, todo=preprocessed.advice("give C that a compiler accepts")
    )


def _known_cause(text: str, wrong: SourceError) -> SourceError | None:
    """A better error for a syntax error in a line that uses a macro without a value, or complex numbers."""
    where = wrong.where
    if not isinstance(where, Location) or where.line is None:
        return None
    bare = without_comments(text)
    line = "".join(bare.splitlines()[where.line - 1 : where.line])
    empty = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]*$", bare, re.MULTILINE)
    for name in empty:
        if use := re.search(rf"\b{name}\b", line):
            place = Location(where.file, where.line, use.start() + 1)
            todo = f"write it behind the #define, or give -D {name}=…, for example -D {name}=1000"
            return SourceError(f"the macro {name} is defined without a value", where=place, todo=todo)
    if use := re.search(r"\bcomplex\b", line):
        place = Location(where.file, where.line, use.start() + 1)
        return SourceError("complex is a macro of <complex.h>", where=place, todo="include it, or write _Complex")
    return None


def pragma_words(node: Node) -> list[str]:
    """The words of a pragma; none of another node."""
    # _Pragma("…") holds its text as a constant
    text = getattr(node.string, "value", node.string) if isinstance(node, c_ast.Pragma) else ""
    return str(text or "").strip('"').split()
