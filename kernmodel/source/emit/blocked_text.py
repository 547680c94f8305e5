"""The user's C text with the loops of a nest blocked: headers rewritten, loops over blocks and macros put in.

Only the text of loop headers is read here; what the loops mean comes from the `LoopNest`. Comments, macros and the form
of the rest stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernmodel.errors import SourceError, UnsupportedKernelError
from kernmodel.source.emit.loop_headers import (
    Header,
    closing,
    next_line,
    one_line,
    position,
    read_header,
    statement_end,
)
from kernmodel.source.load import parse_kernel
from kernmodel.source.model import Loop, LoopNest
from kernmodel.source.nest.tiling import block_variables, blocked_loops, check_blocks, tile
from kernmodel.source.text import function_bodies, without_comments
from kernmodel.value_types import dataclass

_BODY = r"(?:[^\n\\]|\\\r?\n|\\.)*"
_DIRECTIVE = re.compile(rf"^[ \t]*#{_BODY}", re.MULTILINE)
_PRAGMA = re.compile(r"[ \t]*#[ \t]*pragma\b")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_TYPE = (
    r"(?:(?:const|unsigned|signed|long|short|int|char|s?size_t|ptrdiff_t|u?intptr_t|u?int(?:8|16|32|64)_t)\b[ \t\n]*)+"
)
_SIGNED = frozenset(
    {"int", "long", "long int", "long long", "long long int", "ssize_t", "ptrdiff_t", "int32_t", "int64_t"}
)
_NARROW = re.compile(r"\b(?:char|short|u?int(?:8|16)_t)\b")
# fmt: off
_STANDARD = frozenset({
    "assert", "complex", "ctype", "errno", "fenv", "float", "immintrin", "inttypes", "limits", "math", "omp",
    "stdalign", "stdbool", "stddef", "stdint", "stdio", "stdlib", "string", "tgmath", "time",
})
# fmt: on
"""Headers that define no MIN and MAX."""

Edit = tuple[int, int, str]


@dataclass(frozen=True, slots=True)
class Names:
    """The new names of a blocked loop: its block variable, the macro of the block size, and the macros that give the
    less and the greater of two values."""

    variable: str
    size: str
    least: str
    greatest: str


def tiled_source(nest: LoopNest, blocks: Mapping[str, int]) -> str:
    """The C source of the kernel with these loops blocked: the text of the user with the loops of the nest rewritten.

    Block sizes are macros with an #ifndef around them (BLOCK_I …), so that -D gives others. Reading the text again
    gives `tile(nest, blocks)` (names of macros apart), and it compiles where the original does.

    Raises:
        As `tile`; UnsupportedKernelError: loops whose text cannot be rewritten (a macro that holds a loop header).
    """
    first = check_blocks(nest, blocks)
    if not blocks:
        return nest.text
    text = _rewritten(nest, first, blocks, block_variables(nest))
    _refuse_other_meaning(nest, text, tile(nest, blocks))
    return text


def _refuse_other_meaning(nest: LoopNest, text: str, wanted: LoopNest) -> None:
    """Read the new text, where the old one can be read without the macros of the command line, and compare its loops.

    Raises:
        UnsupportedKernelError: macros in the headers mean something else than their text looks like.
    """
    number = _number_of(nest)
    if number is None:
        return
    try:
        after = parse_kernel(text, nest.file, nest.defaults, nest=number, function=nest.function).loops
    except SourceError:
        after = ()
    if [_ranges(loop) for loop in after] != [_ranges(loop) for loop in wanted.loops]:
        raise UnsupportedKernelError(
            "macros in the headers of the loops mean something else than their text looks like",
            where=nest.loops[0].location,
            todo="write the headers out without macros",
        )


def _number_of(nest: LoopNest) -> int | None:
    """Which of the nests of its function this is; None where the text cannot be read with the known macros alone."""
    own = [(_ranges(loop), loop.location.line) for loop in nest.loops]
    for number in range(1, nest.text.count("for") + 1):
        try:
            found = parse_kernel(nest.text, nest.file, nest.defaults, nest=number, function=nest.function)
        except UnsupportedKernelError:
            continue
        except SourceError:
            return None
        if [(_ranges(loop), loop.location.line) for loop in found.loops] == own:
            return number
    return None


def _ranges(loop: Loop) -> tuple[object, ...]:
    return loop.variable, loop.start, loop.stop, loop.step


def _rewritten(nest: LoopNest, first: int, blocks: Mapping[str, int], variables: Mapping[str, str]) -> str:
    """The text of the nest with loops blocked.

    Args:
        first: number of the band's first loop.
        variables: names of the loops over blocks.

    Raises:
        UnsupportedKernelError: a header that does not stand in the text as such.
    """
    bare = without_comments(nest.text)
    chosen = blocked_loops(nest, blocks)
    headers = [read_header(loop, nest, bare) for loop in chosen]
    names = _names(nest, chosen, variables)
    outer, edits = list[str](), list[Edit]()
    for loop, header, new in zip(chosen, headers, names, strict=True):
        kind = _type_of(loop, header, bare)
        outer.append(_block_header(loop, header, new, kind, bare))
        edits += _inner_header(loop, header, new, kind, bare)
    at = position(nest.loops[first], nest, bare)
    edits += _indented(nest.text, bare, at, outer, edits)
    sizes = {new.size: blocks[loop.variable] for loop, new in zip(chosen, names, strict=True)}
    edits.append(_macros(nest, bare, sizes, _extremes(nest.text, chosen, names[0])))
    return _applied(nest.text, edits)


# Writing headers


def _type_of(loop: Loop, header: Header, bare: str) -> str:
    """A type for the loop's block variable, which may step past the bound by less than a block."""
    written = header.type or _declared_type(loop.variable, bare, header.at) or "long"
    written = one_line(re.sub(r"\b(?:const|register|static)\b", "", written))
    if _NARROW.search(written):
        return "int"
    # downwards, the last block may end below zero, where unsigned numbers wrap
    return written if loop.step > 0 or written in _SIGNED else "long"


def _declared_type(name: str, bare: str, before: int) -> str | None:
    """The type of a variable by its last declaration that is in scope at a position; None where there is none, as of a
    macro."""
    declared = re.compile(rf"\b({_TYPE})(?:[^;(){{}}]*?[,\s])?{name}\b\s*(?:=[^;,]*)?[,;)]")
    found = [match[1] for match in declared.finditer(bare, 0, before) if _scope_end(bare, match.start()) > before]
    return one_line(found[-1]) if found else None


def _scope_end(bare: str, at: int) -> int:
    """Where the scope of what is declared at a position ends: with its block, or the statement behind its header."""
    opened: list[int] = []
    for place in re.compile(r"[(){}]").finditer(_without_directives(bare), 0, at):
        if place[0] in "({":
            opened.append(place.start())
        elif opened:
            opened.pop()
    if not opened:
        return len(bare)
    end = closing(bare, opened[-1])
    return end if bare[opened[-1]] == "{" else statement_end(bare, end + 1)


def _without_directives(bare: str) -> str:
    """The text with preprocessor lines blanked."""
    return _DIRECTIVE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), bare)


def _block_header(loop: Loop, header: Header, new: Names, kind: str, bare: str) -> str:
    bound = header.bound if loop.step > 0 else _as_signed(header, kind, bare)
    condition = f"{new.variable} {header.operator} {bound}"
    step = f"{new.variable} {'+=' if loop.step > 0 else '-='} {_stride(header, new)}"
    return f"for ({kind} {new.variable} = {header.start}; {condition}; {step})"


def _inner_header(loop: Loop, header: Header, new: Names, kind: str, bare: str) -> list[Edit]:
    upwards = loop.step > 0
    end = f"{new.variable} {'+' if upwards else '-'} {_stride(header, new)}"
    if header.operator in ("<=", ">="):
        end += " - 1" if upwards else " + 1"
    nearest, bound = (new.least, header.bound) if upwards else (new.greatest, _as_signed(header, kind, bare))
    condition = f"{loop.variable} {header.operator} {nearest}({end}, {bound})"
    return [(*header.first, new.variable), (*header.condition, condition)]


def _stride(header: Header, new: Names) -> str:
    """How far a block reaches in the variable."""
    if header.step == "1":
        return new.size
    return f"{header.step if header.step.isalnum() else f'({header.step})'} * {new.size}"


def _as_signed(header: Header, kind: str, bare: str) -> str:
    """The bound as a signed number: against an unsigned one, an end of a block below zero would count as large."""
    for name in re.findall(r"[A-Za-z_]\w*", header.bound):
        declared = _declared_type(name, bare, header.at)
        macro = name.isupper() or re.search(rf"#[ \t]*define[ \t]+{name}\b", bare)
        if declared not in _SIGNED and not macro:
            return f"({kind})({header.bound})"
    return header.bound


# Names and macros


def _names(nest: LoopNest, loops: Iterable[Loop], variables: Mapping[str, str]) -> list[Names]:
    taken = set(re.findall(r"[A-Za-z_]\w*", nest.text))
    least, greatest = _extreme(nest.text, "MIN", "<", taken), _extreme(nest.text, "MAX", ">", taken)
    names = []
    for loop in loops:
        size = next(name for name in _numbered(f"BLOCK_{loop.variable.upper()}") if name not in taken)
        taken.add(size)
        names.append(Names(variables[loop.variable], size, least, greatest))
    return names


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}{number}"
        number += 1


def _defines_extreme(text: str, name: str, relation: str) -> bool:
    """Whether the text itself defines the macro as the less (<) or greater (>) of two values."""
    for x, y, body in re.findall(
        rf"^[ \t]*#[ \t]*define[ \t]+{name}\((\w+),[ \t]*(\w+)\)({_BODY})", text, re.MULTILINE
    ):
        if re.fullmatch(rf"\(\({x}\){relation}=?\({y}\)\?\({x}\):\({y}\)\)", re.sub(r"\s", "", body)):
            return True
    return False


def _extreme(text: str, name: str, relation: str, taken: set[str]) -> str:
    included = re.findall(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]*)", text, re.MULTILINE)
    foreign = any(header.removesuffix(".h") not in _STANDARD for header in included)
    if _defines_extreme(text, name, relation) or (name not in taken and not foreign):
        return name
    return next(other for other in _numbered(f"BLOCK_{name}") if other not in taken)


def _extremes(text: str, loops: Sequence[Loop], names: Names) -> list[str]:
    """The lines that define what the new headers use."""
    lines = []
    for name, relation, used in (
        (names.least, "<", any(loop.step > 0 for loop in loops)),
        (names.greatest, ">", any(loop.step < 0 for loop in loops)),
    ):
        if used and not _defines_extreme(text, name, relation):
            lines.append(f"#define {name}(x, y) ((x) {relation} (y) ? (x) : (y))")
    return lines


def _macros(nest: LoopNest, bare: str, sizes: Mapping[str, int], extremes: Sequence[str]) -> Edit:
    """The definitions of the macros, above the function or the bare nest."""
    lines = [line for name, size in sizes.items() for line in (f"#ifndef {name}", f"#define {name} {size}", "#endif")]
    newline = newline_of(nest.text)
    block = "".join(line + newline for line in [*lines, *extremes])
    at, head = _above(nest, bare)
    if at > head:
        return head, head, newline + block
    above = nest.text[:at].splitlines()[-1:]
    apart = newline if any(line.strip() and not line.lstrip().startswith("#") for line in above) else ""
    return at, at, apart + block + ("" if nest.text[at:].startswith(("\n", "\r")) else newline)


def _above(nest: LoopNest, bare: str) -> tuple[int, int]:
    """The start of the line above which macros go, and where the head of the function (or the nest) begins."""
    code = _without_directives(bare)
    loop = position(nest.loops[0], nest, bare)
    limit = max((body for body in function_bodies(code) if body < loop), default=loop)
    depth, behind = 0, 0
    for token in re.compile(r"[(){};]").finditer(code, 0, limit):
        depth += (token[0] in "({") - (token[0] in ")}")
        if token[0] in ";}" and depth <= 0:
            behind = token.end()
    head = next((place.start() for place in re.compile(r"\S").finditer(code, behind)), limit)
    for directive in _DIRECTIVE.finditer(bare, 0, head):
        if not _PRAGMA.match(directive[0]):
            behind = max(behind, directive.end())
    at = next_line(bare, behind) if behind else 0
    for comment in _COMMENT.finditer(nest.text):
        if comment.start() < at < comment.end():
            at = next_line(bare, comment.end())
    return at, head


def newline_of(text: str) -> str:
    """How the lines of a text end."""
    return "\r\n" if "\r\n" in text else "\n"


# The place of the new loops


def _indented(text: str, bare: str, at: int, outer: Sequence[str], headers: Sequence[Edit]) -> list[Edit]:
    """The loops over blocks before the band, above its pragmas, and the lines of the band moved in below them."""
    line = text.rfind("\n", 0, at) + 1
    margin = text[line:at]
    if margin.strip():
        return [(at, at, " ".join([*outer, ""]))]
    unit = "\t" if margin.endswith("\t") else "    "
    top, end = _above_pragmas(bare, line), statement_end(bare, at)
    newline, deeper = newline_of(text), unit * len(outer)
    lines = [f"{margin}{unit * number}{header}" for number, header in enumerate(outer)]
    edits = [(top, top, newline.join([*lines, deeper]))]
    if _PRAGMA.match(text, top):
        # in braces: a compiler that skips the pragma may take it for the whole body of the loop above it
        edits = [(top, top, newline.join(lines) + " {" + newline)]
        edits.append((end, end, f"{newline}{margin}{unit * (len(outer) - 1)}}}"))
    begin = next_line(text, top)
    while begin < end:
        stays = text[begin : begin + 1] in ("\n", "\r", "#") or any(start < begin < stop for start, stop, _ in headers)
        if not stays:
            edits.append((begin, begin, deeper))
        begin = next_line(text, begin)
    return edits


def _above_pragmas(bare: str, line: int) -> int:
    """The start of the first of the pragmas that stand right above a line; the line itself if there is none."""
    top = line
    for directive in reversed(list(_DIRECTIVE.finditer(bare, 0, line))):
        if not _PRAGMA.match(directive[0]) or bare[directive.end() : top].strip():
            break
        top = directive.start()
    return top


def _applied(text: str, edits: Iterable[Edit]) -> str:
    for start, end, replacement in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        text = text[:start] + replacement + text[end:]
    return text
