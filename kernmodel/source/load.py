"""C in, a `LoopNest` out: the entry of the source package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType

from kernmodel.errors import Location, SeveralNestsError, SourceError
from kernmodel.limits import remembered
from kernmodel.schema.document import read_text
from kernmodel.source.cxx import cxx_notes, left_out, refusal
from kernmodel.source.find import find_source
from kernmodel.source.model import NOTHING_STATED, LoopNest, Stated
from kernmodel.source.parse.build import build_nest, choose_function, choose_nest, nest_at_line, refused_loop
from kernmodel.source.parse.chains import Chain, chains, uncounted_loops
from kernmodel.source.parse.loops import loop_variable
from kernmodel.source.parse.preprocess import integer_literal
from kernmodel.source.parse.syntax import Node, Program, parse_program
from kernmodel.source.text import is_description, kernel_path, other_bodies_blanked
from kernmodel.value_types import dataclass

Defines = Mapping[str, str | int]
_NONE: Defines = MappingProxyType({})


def load_kernel(
    name_or_path: str,
    defines: Defines = _NONE,
    *,
    nest: int | None = None,
    function: str | None = None,
    line: int | None = None,
    include: Sequence[str] = (),
    stated: Stated = NOTHING_STATED,
) -> LoopNest:
    """The loop nest in a C file, in a description (.yml), or in a kernel that the package carries.

    Args:
        name_or_path: a path first, else the name of a carried kernel, with or without `.c`.
        defines: macros as with a compiler's -D; integers also give sizes their values (`LoopNest.defaults`).
        nest: which of several loop nests of the function, from 1.
        function: which of several functions.
        line: a line of the innermost loop, in place of both.
        include: folders in which headers are looked for, after that of the file.
        stated: what the source does not tell, of its lines.

    Raises:
        InputError: no such file.
        SourceError: it cannot be read as C, an undeclared name, several nests or functions to choose from.
        UnsupportedKernelError: C that the models do not cover; the message says what is supported.
    """
    if is_description(name_or_path):
        from kernmodel.source.described import KIND, described_nest  # loaded where it is asked for alone

        path = kernel_path(name_or_path)
        return described_nest(read_text(path, KIND)[0], str(path), defines)
    text, file = find_source(name_or_path)
    return parse_kernel(text, file, defines, nest=nest, function=function, line=line, include=include, stated=stated)


def parse_kernel(
    text: str,
    file: str,
    defines: Defines = _NONE,
    *,
    nest: int | None = None,
    function: str | None = None,
    line: int | None = None,
    include: Sequence[str] = (),
    stated: Stated = NOTHING_STATED,
) -> LoopNest:
    """The loop nest in a text; `file` names it in messages, and includes are looked for beside it.

    Raises:
        As `load_kernel`.
    """
    # headers may change, and of what is no number or text, different values may be equal
    stays = "include" not in text and all(type(value) in (int, str) for value in defines.values())
    read = _remembered if stays else _read
    return read(text, file, tuple(defines.items()), nest, function, line, tuple(include), stated)


def _read(
    text: str,
    file: str,
    defined: tuple[tuple[str, str | int], ...],
    nest: int | None,
    function: str | None,
    line: int | None,
    include: tuple[str, ...],
    stated: Stated,
) -> LoopNest:
    defines = dict(defined)
    try:
        if function is None:
            _refuse_left_out(text, file, None)
            program = parse_program(text, file, defines, include, stated)
        else:
            _refuse_left_out(text, file, function)
            # what a large file holds besides the function would only take time
            own = other_bodies_blanked(text, function, callers=True)
            program = parse_program(own, file, defines, include, stated, wanted=function)
        _refuse_wrong_sizes(program, text, defines)
        if line is not None:
            chosen, chain = nest_at_line(program, line)
        else:
            chosen = choose_function(program, function)
            chain = choose_nest(program, chosen, nest)
        return _told(build_nest(program, chosen, chain, text, Path(file).stem))
    except RecursionError as error:
        raise SourceError("is nested too deeply to be read", where=file, todo="split long expressions") from error


_remembered = remembered(_read)  # a study of many points, or machines, reads the same kernels again


def _told(nest: LoopNest) -> LoopNest:
    """The nest with what is assumed of a C++ text."""
    notes = cxx_notes(nest.text, nest.function)
    return replace(nest, notes=(*nest.notes, *notes)) if notes else nest


@dataclass(frozen=True, slots=True)
class FoundNest:
    """A loop nest of a file.

    Attributes:
        function: the function that it stands in, "" for a bare nest; number: which of its nests, from 1.
        variables: of its loops, outermost first.
        location: of its innermost loop.
        nest: the nest as it is modelled, or why it is not.
        shared_loops: how many of its outermost loops are those of the nest before it.
        repeating: the loops around it that only repeat what stands in them, as numbers, outermost first.
    """

    function: str
    number: int
    variables: tuple[str, ...]
    location: Location
    nest: LoopNest | SourceError
    shared_loops: int = 0
    repeating: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FileNests:
    """The loop nests of a file.

    Attributes:
        nests: in the order of the source.
        left_out: the functions with loops of its headers that are left out: name and header of each.
    """

    nests: tuple[FoundNest, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def find_nests(
    name_or_path: str,
    defines: Defines = _NONE,
    *,
    function: str | None = None,
    include: Sequence[str] = (),
    marked: bool = False,
    stated: Stated = NOTHING_STATED,
) -> tuple[FoundNest, ...]:
    """The loop nests of a file, or of one function of it, in the order of the source, each with what is read of it.

    Args:
        name_or_path, defines, function, include, stated: as for `load_kernel`.
        marked: take the function alone from which `load_kernel` would choose a nest, where there is one.

    Raises:
        InputError: no such file; SourceError: it cannot be read as C, or has no such function.
    """
    return list_nests(name_or_path, defines, function=function, include=include, marked=marked, stated=stated).nests


def list_nests(
    name_or_path: str,
    defines: Defines = _NONE,
    *,
    function: str | None = None,
    include: Sequence[str] = (),
    marked: bool = False,
    stated: Stated = NOTHING_STATED,
    headers: bool = False,
) -> FileNests:
    """As `find_nests`, with what is left out; `headers`: the nests of the headers that the file includes too.

    Those of headers are left out where the file has nests of its own, and none of their functions is named.

    Raises:
        As `find_nests`.
    """
    text, file = find_source(name_or_path)
    _refuse_left_out(text, file, function, listed=True)
    program = parse_program(text, file, defines, include, stated, wanted=function, headers=headers)
    functions = program.listed
    if function is not None or marked:
        with suppress(SeveralNestsError):
            functions = (choose_function(program, function),)
    found = []
    for one in functions:
        before: Chain | None = None
        for number, chain in enumerate(chains(one, program), 1):
            nest: LoopNest | SourceError
            try:
                nest = _told(build_nest(program, one, chain, text, Path(file).stem))
            except SourceError as error:
                nest = error
            except RecursionError:
                todo = "split long expressions"
                nest = SourceError("is nested too deeply to be read", where=program.location(chain.inner), todo=todo)
            name = "" if program.bare else str(one.decl.name)
            variables = tuple(loop_variable(level.statement) or "?" for level in chain.levels)
            place, repeating = program.location(chain.inner), tuple(map(id, chain.repeated))
            found.append(FoundNest(name, number, variables, place, nest, _shared_loops(before, chain), repeating))
            before = chain
        found += _uncounted(program, one)
    for one in program.unread:
        where = one.error.where
        if one.loops and function in (None, one.name) and isinstance(where, Location):
            found.append(FoundNest(one.name, 1, ("?",), where, one.error))
    nests = (*found, *_left_out(text, file, function))
    return FileNests(nests, program.left_out if function is None else ())


def _uncounted(program: Program, function: Node) -> Iterator[FoundNest]:
    """The loops of a function that are no nests: nothing tells how often they run. Numbered behind its nests."""
    first = len(chains(function, program)) + 1
    for number, loop in enumerate(uncounted_loops(function), first):
        error = refused_loop(program, function, loop)
        name = "" if program.bare else str(function.decl.name)
        yield FoundNest(name, number, ("?",), program.location(loop), error)


def _shared_loops(before: Chain | None, chain: Chain) -> int:
    """How many of the outermost loops of two chains are the same."""
    pairs = zip(before.levels if before else (), chain.levels, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].statement is pair[1].statement, pairs))


def _refuse_left_out(text: str, file: str, function: str | None, *, listed: bool = False) -> None:
    """Refuse a function of a C++ text that is no C: the one that is wanted, or the first where no other has a loop;
    `listed`: the one that is wanted is only refused in that case, too."""
    name = function
    if listed or function is None:
        loops = re.search(r"\b(?:for|while)\b", text)
        name = None if loops else min(left_out(text), key=lambda one: one != function, default=None)
    if name is not None and (why := refusal(text, file, name)) is not None:
        raise why


def _left_out(text: str, file: str, function: str | None) -> Iterator[FoundNest]:
    """The functions of a C++ text that are no C."""
    for name in left_out(text):
        why = refusal(text, file, name)
        if why is not None and function in (None, name):
            assert isinstance(why.where, Location)
            yield FoundNest(name, 1, ("?",), why.where, why)


def _refuse_wrong_sizes(program: Program, text: str, defines: Defines) -> None:
    """A macro that the file defines as an integer must be given as one (`-D N=abc`)."""
    for name, value in defines.items():
        if name in program.preprocessed.values:
            continue
        default = re.search(
            rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}[ \t]+\(?([0-9]\w*)\)?[ \t]*$", text, re.MULTILINE
        )
        if default and integer_literal(default[1]) is not None:
            raise SourceError(
                f"-D {name}={value} is no integer, but {name} is a size ({default[1]} by default)",
                where=program.preprocessed.file,
                todo=f"give a whole number, as in -D {name}={default[1]}",
            )
