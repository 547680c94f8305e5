"""The C preprocessor (pcpp), except that integer macros stay names: they are the sizes of the kernel.

`#define N 5000` leaves `N` in the text and 5000 in `Preprocessed.values`; every other macro is expanded. Each token
keeps the place it has in the user's file, so that messages after the preprocessor still point there.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

import pcpp
from pcpp import evaluator

from kernmodel.errors import Location, SourceError
from kernmodel.limits import MACRO_TOKENS, SOURCE_TOKENS, STATEMENT_TOKENS, Limit
from kernmodel.patterns import pattern
from kernmodel.source.cxx import as_c
from kernmodel.source.parse.attributes import NO_ATTRIBUTES, Attributes, mark_attributes, read_attributes
from kernmodel.source.parse.header_parts import HEADERS, without_unused
from kernmodel.source.parse.standard_headers import HEADER_MACROS, STANDARD_HEADERS, STANDARD_TYPEDEFS
from kernmodel.source.text import read_source, without_assembly
from kernmodel.value_types import dataclass

# GNU spellings that the parser does not know; all of them leave the meaning of a kernel alone.
_SPELLINGS = (
    "__restrict restrict",
    "__restrict__ restrict",
    "__const const",
    "__inline inline",
    "__inline__ inline",
    "__volatile__ volatile",
    "__extension__",
    "__builtin_expect(x,y) (x)",
    "__GNUC__ 12",
    "__GNUC_MINOR__ 2",
    "_Noreturn",
    "__signed__ signed",
    "__typeof__(x) int",
    "__STDC__ 1",
    "__STDC_VERSION__ 201112L",
)
_INTEGER = pattern(r"^(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*$")
_DIVIDING = frozenset(";{},")
_WORD_BITS = 64
_LONGEST_LITERAL = 64
"""Digits; none that C takes has more."""


@dataclass(frozen=True, slots=True)
class Preprocessed:
    """C text for the parser.

    Attributes:
        text: the expanded text; its lines and columns are its own.
        origins: (line, column) in `text` of each token → its place in the user's file.
        values: the integer macros that stayed names, with their values.
        file: name of the user's file, for places that have no token.
        missing: the includes that are neither standard headers nor found, as written, with their places.
        left_out: the functions with loops in headers that nothing uses, which `text` has not: name and header of each.
        hidden: whether a size given with -D is one that the file or its headers define themselves, so that a compiler
            that is given it alone may pass over definitions that stand beside it.
        asserts: whether `assert` is compiled (NDEBUG is not defined).
        attributes: what attributes say of the layout of its data.
    """

    text: str
    origins: Mapping[tuple[int, int], Location]
    values: Mapping[str, int]
    file: str
    missing: tuple[tuple[str, Location], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    hidden: bool = False
    asserts: bool = True
    attributes: Attributes = NO_ATTRIBUTES

    def location(self, line: int | None, column: int | None) -> Location:
        """The user's place of a position in `text`: that of the last token at or before it."""
        key = (line or 0, column or 0)
        origin = self.origins.get(key)
        if origin is not None:
            return origin
        before = [position for position in self.origins if position <= key]
        return self.origins[max(before)] if before else Location(self.file)

    def advice(self, todo: str) -> str:
        """What to do about what is not understood: find the headers that are missing, else `todo`."""
        return _advice(dict(self.missing), todo)


def _advice(missing: Mapping[str, Location], todo: str) -> str:
    if not missing:
        return todo
    names = ", ".join(f"{name} ({place})" for name, place in missing.items())
    return f"headers were not found: {names}; give their folder with -I, else {todo}"


def integer_literal(text: str) -> int | None:
    """The value of a C integer literal (decimal, hexadecimal, octal, with suffix), None if it is none."""
    match = _INTEGER.match(text)
    if match is None:
        return None
    digits = match[1]
    if len(digits) > _LONGEST_LITERAL:
        return None
    if digits[:2] in ("0x", "0X"):
        return int(digits, 16)
    octal = len(digits) > 1 and digits[0] == "0"
    if octal and not set(digits) <= set("01234567"):
        return None
    return int(digits, 8 if octal else 10)


def preprocess(
    text: str,
    file: str,
    defines: Mapping[str, str | int],
    include: Sequence[str] = (),
    *,
    wanted: str | None = None,
    headers: bool = False,
) -> Preprocessed:
    """Expand the text; `defines` act as -D on a compiler's command line and win over `#define` lines of the file.

    Headers are looked for beside the file and in the folders `include`, those in angle brackets too. What tests for a
    size of `defines` that the file or a header defines itself sees it as not defined before: what stands beside that
    definition holds as well. Of headers, what the file does not use is left out, but for the function `wanted`, and
    with `headers` for all functions.

    Raises:
        SourceError: a malformed directive, `#error`.
    """
    preprocessor = _Preprocessor(file, defines, include)
    try:
        preprocessor.parse(text, file)
        tokens = preprocessor.tokens_of()
    except (SourceError, RecursionError):
        raise
    except Exception as error:  # pcpp meets malformed directives with IndexError, AttributeError and the like
        line = getattr(preprocessor.lastdirective, "lineno", None)
        raise SourceError("a preprocessor line cannot be read", where=Location(file, line)) from error
    tokens, said = mark_attributes(tokens)
    tokens, left_out = without_unused(tokens, cache(partial(header_of, file)), wanted, functions=headers)
    used = {token.value for token in tokens}  # of headers, too
    prelude = "".join(f"typedef {meaning} {name};\n" for name, meaning in STANDARD_TYPEDEFS.items() if name in used)
    expanded, origins = _join(_placed(tokens, preprocessor), prelude)
    expanded, attributes = read_attributes(without_assembly(expanded), said)
    missing = tuple(preprocessor.missing.items())
    hidden, asserts = bool(preprocessor.hidden), "NDEBUG" not in {**preprocessor.macros, **preprocessor.values}
    return Preprocessed(expanded, origins, preprocessor.values, file, missing, left_out, hidden, asserts, attributes)


class _Preprocessor(pcpp.Preprocessor):  # type: ignore[misc]  # pcpp has no types
    """pcpp with integer macros kept, system includes left out, and errors raised instead of printed.

    Attributes:
        values: the integer macros that stand for themselves.
        texts: per file read, where its lines start.
        uses: per file, the macro names in the text with their positions, in order.
        missing: headers that are not found.
        hidden: given sizes that a file defines itself, as macros.
    """

    def __init__(self, file: str, defines: Mapping[str, str | int], include: Sequence[str]) -> None:
        self.file = file
        self.missing: dict[str, Location] = {}
        self.hidden: dict[str, Any] = {}
        self.values: dict[str, int] = {}
        self.texts: dict[str, _Lines] = {}
        self.uses: dict[str, list[tuple[int, str]]] = {}
        self._depth = 0
        self._given: frozenset[str] = frozenset()
        self._sizes: frozenset[str] = frozenset()
        super().__init__()  # defines its own macros through `define` below
        for spelling in _SPELLINGS:
            self.define(spelling)
        for name, value in defines.items():
            self.define(f"{name} {value}")
        self._given = frozenset(defines)
        self._sizes = frozenset(name for name, value in defines.items() if isinstance(value, int))
        for folder in (str(Path(file).parent), *include):
            self.add_path(str(Path(folder).absolute()))

    def define(self, tokens: Any) -> None:
        written = isinstance(tokens, str)
        name = tokens.partition(" ")[0] if written else tokens[0].value
        if name in self._given:
            if name in self.hidden:
                self.macros[name] = self.hidden[name]
            return
        super().define(tokens)
        macro = self.macros.get(name)
        value = None if macro is None or macro.arglist is not None else _integer_value(macro.value)
        self.values.pop(name, None)
        # what the file itself defines as zero or negative is a constant; a size given by the user is checked later
        if value is not None and not name.startswith("__") and (value > 0 or written):
            # C expands `#define N N` to N, so the name stays; `#if` gets its value from `values`
            self.values[name] = value
            macro.value = self.tokenize(name)

    def undef(self, tokens: Any) -> None:
        super().undef(tokens)
        self.values.pop(tokens[0].value, None)

    def group_lines(self, text: str, abssource: Any) -> Any:
        self.texts[str(abssource)] = _Lines(text)
        for name in self._sizes - self.hidden.keys():
            if name in self.values and re.search(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b", text, re.MULTILINE):
                self.hidden[name] = self.macros.pop(name)
        return super().group_lines(text, abssource)

    def expand_macros(self, tokens: list[Any], expanding_from: Any = ()) -> Any:
        if self._depth == 0:
            for token in tokens:
                token.place = token.lexpos
                if token.value in self.macros:
                    self.uses.setdefault(str(token.source), []).append((token.lexpos, token.value))
        self._depth += 1
        try:
            expanded = super().expand_macros(tokens, list(expanding_from))
        finally:
            self._depth -= 1
        if self._depth and MACRO_TOKENS.exceeded(len(expanded)):
            raise self._too_long("one macro expands to", MACRO_TOKENS, getattr(self.lastdirective, "lineno", None))
        return expanded

    def evalexpr(self, tokens: list[Any]) -> Any:
        with _bounded_shifts():
            return super().evalexpr(tokens)

    def _too_long(self, what: str, limit: Limit, line: int | None) -> SourceError:
        text = f"{what} more than {limit.text} tokens"
        return SourceError(text, where=Location(self.file, line), todo=limit.todo("split it"))

    def tokens_of(self) -> list[Any]:
        """The tokens that the text stands for.

        Raises:
            SourceError: too many.
        """
        tokens: list[Any] = []
        length = 0
        longest, most = STATEMENT_TOKENS.most, SOURCE_TOKENS.most
        for token in iter(self.token, None):
            tokens.append(token)
            length = 0 if token.value in _DIVIDING else length + (not token.value.isspace())
            if length > longest:
                raise self._too_long("an expression has", STATEMENT_TOKENS, token.lineno)
            if len(tokens) > most:
                raise self._too_long("the source has", SOURCE_TOKENS, token.lineno)
        return tokens

    def on_error(self, file: str, line: int, msg: str) -> NoReturn:
        if "evaluate" in msg:
            msg = "the condition of a preprocessor line cannot be evaluated"
        where = Location(self.file if file == str(Path(self.file).absolute()) else file, line or None)
        raise SourceError(msg[:1].lower() + msg[1:], where=where)

    def on_unknown_macro_in_expr(self, ident: str) -> int:
        return self.values.get(ident, 0)

    def on_file_open(self, is_system_include: bool, includepath: str) -> Any:
        if not Path(includepath).is_file():
            raise FileNotFoundError(includepath)
        return io.StringIO(as_c(read_source(Path(includepath)), includepath))

    def on_include_not_found(
        self, is_malformed: bool, is_system_include: bool, curdir: str, includepath: str
    ) -> NoReturn:
        directive = self.lastdirective
        where = Location(self._shown(str(directive.source)), directive.lineno)
        # much is modelled without it: it matters only where a name is not known
        self.missing.setdefault(f"<{includepath}>" if is_system_include else f'"{includepath}"', where)
        raise pcpp.OutputDirective(pcpp.Action.IgnoreAndRemove)

    def include(self, tokens: Any, original_line: Any) -> Any:
        written = "".join(str(token.value) for token in tokens).strip('<>" ')
        # what the standard headers declare is known already; their text would only slow the parser down
        if written in STANDARD_HEADERS and (tokens[0].value == "<" or not self._beside(written)):
            for macro in HEADER_MACROS.get(written, ()):
                super().define(macro)
            return
        yield from super().include(tokens, original_line)

    def _beside(self, name: str) -> bool:
        """Whether the user has a header of this name."""
        return any((Path(folder) / name).is_file() for folder in (*self.temp_path, *self.path))

    def _shown(self, source: str) -> str:
        return self.file if source == str(Path(self.file).absolute()) else source

    def on_directive_unknown(self, directive: Any, toks: Any, ifpassthru: bool, precedingtoks: Any) -> bool | None:
        if directive.value == "error":
            message = "".join(str(token.value) for token in toks)
            where = Location(self._shown(str(directive.source)), directive.lineno)
            todo = _advice(self.missing, "define what the file asks for with -D NAME or -D NAME=VALUE")
            raise SourceError(f"#error {message}", where=where, todo=todo)
        return None if directive.value == "pragma" else True


@contextmanager
def _bounded_shifts() -> Iterator[None]:
    """Let `#if 1 << 99999999999` be an error: pcpp would compute the number with all its digits."""

    def shift(value: Any, by: Any) -> Any:
        if not 0 <= int(by) < _WORD_BITS:
            raise SourceError(f"a shift by {int(by)} in a condition of the preprocessor")
        return original(value, by)

    original = evaluator.Value.__lshift__
    evaluator.Value.__lshift__ = shift
    try:
        yield
    finally:
        evaluator.Value.__lshift__ = original


def _integer_value(tokens: Iterable[Any]) -> int | None:
    """The value of a macro whose replacement is one integer literal, perhaps with a sign and in parentheses."""
    written = "".join(str(token.value) for token in tokens).replace(" ", "")
    while written.startswith("(") and written.endswith(")"):
        written = written[1:-1]
    value = integer_literal(written.removeprefix("-"))
    return -value if value is not None and written.startswith("-") else value


class _Lines:
    """Where the lines of a text start, as the preprocessor counts: lines stripped at their end."""

    def __init__(self, text: str) -> None:
        self._starts = [0]
        for line in text.splitlines():
            self._starts.append(self._starts[-1] + len(line.rstrip()) + 1)

    def location(self, file: str, position: int) -> Location:
        line = bisect_right(self._starts, position)
        return Location(file, line, position - self._starts[line - 1] + 1)


def header_of(file: str, source: str) -> str:
    """The source, where it is a header that a file includes, by its ending; "" where it is part of the file."""
    return source if Path(source).suffix in HEADERS and Path(source).resolve() != Path(file).resolve() else ""


def _placed(tokens: Iterable[Any], preprocessor: _Preprocessor) -> Iterator[tuple[str, Location | None]]:
    """The text of each token with its place; a token from the body of a macro has the place where the macro is used.

    A line continues in the next one, so that a backslash at its end is a space; spaces have no place.
    """
    main, files = Path(preprocessor.file).resolve(), dict[str, str]()
    last: dict[str, int] = {}
    outermost = None
    for token in tokens:
        source = str(token.source)
        before, outermost = outermost, (getattr(token, "expanded_from", None) or [None])[-1]
        place = getattr(token, "place", None if outermost else token.lexpos)
        if place is None and outermost != before:
            uses = preprocessor.uses[source]
            following = range(bisect_right(uses, (last.get(source, -1), "\U0010ffff")), len(uses))
            place = next((uses[number][0] for number in following if uses[number][1] == outermost), None)
        if place is not None:
            last[source] = max(place, last.get(source, -1))
        value = str(token.value)
        if not value.strip() or value.startswith("\\"):
            yield "\n" if value == "\n" else " ", None
            continue
        if source not in files:
            files[source] = preprocessor.file if Path(source).resolve() == main else source
        yield value, preprocessor.texts[source].location(files[source], last.get(source, 0))


def _join(placed: Iterable[tuple[str, Location | None]], prelude: str) -> tuple[str, dict[tuple[int, int], Location]]:
    """The text of the tokens after the prelude, and where each token of it comes from."""
    parts = [prelude]
    origins: dict[tuple[int, int], Location] = {}
    line, column = prelude.count("\n") + 1, 1
    for value, location in placed:
        if location is not None:
            origins[line, column] = location
        parts.append(value)
        line, column = (line + 1, 1) if value == "\n" else (line, column + len(value))
    return "".join(parts), origins
