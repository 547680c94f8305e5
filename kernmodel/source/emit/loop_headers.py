"""The headers of loops as text, with their places, so that they can be rewritten where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kernmodel.errors import UnsupportedKernelError
from kernmodel.source.model import Loop, LoopNest
from kernmodel.value_types import dataclass

_LOOSE = re.compile(r"[?:=&|^,]")
"""What binds less than a comparison, so that a bound that holds it is not the whole side of one."""
_COMPARISON = re.compile(r"<=|>=|!=|(?<!<)<(?!<)|(?<!>)>(?!>)")
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a loop as text.

    Attributes:
        at: position of its `for`; first: of the value that the variable starts with; condition: of the condition.
        type: of the variable where the header declares it, else None.
        start: the start value.
        operator, bound: the condition as `variable operator bound`.
        step: how far the variable moves in an iteration, in either direction.
    """

    at: int
    first: tuple[int, int]
    condition: tuple[int, int]
    type: str | None
    start: str
    operator: str
    bound: str
    step: str


def read_header(loop: Loop, nest: LoopNest, bare: str) -> Header:
    """The header of a loop in the text; `bare` is the text with its comments blanked.

    Raises:
        UnsupportedKernelError: it does not stand there as `for (variable = start; variable < bound; …)`.
    """
    at = position(loop, nest, bare)
    opened = bare.index("(", at)
    parts = list(split(bare, opened + 1, closing(bare, opened), ";"))
    if len(parts) != 3:
        raise _unsupported(loop)
    start = re.compile(rf"\s*(?:([A-Za-z_][\w\s]*?)\s+)?{loop.variable}\s*=(?!=)\s*").match(bare, *parts[0])
    if start is None or len(list(split(bare, *parts[0], ","))) > 1:
        raise _unsupported(loop)
    first, condition = _stripped(bare, start.end(), parts[0][1]), _stripped(bare, *parts[1])
    operator, bound = _compared(loop, bare[slice(*condition)])
    step = _step(loop, bare[slice(*parts[2])])
    return Header(at, first, condition, start[1], one_line(bare[slice(*first)]), operator, bound, step)


def position(loop: Loop, nest: LoopNest, bare: str) -> int:
    """Where the `for` of the loop stands in the text.

    Raises:
        UnsupportedKernelError: there is none: it comes out of a macro or an included file.
    """
    place = loop.location
    lines = bare.splitlines(keepends=True)
    # an included file has another name; the preprocessor may give the path of this one in another form
    if Path(place.file).name != Path(nest.file).name or place.line is None or place.line > len(lines):
        raise _unsupported(loop)
    at = sum(map(len, lines[: place.line - 1])) + (place.column or 1) - 1
    if not re.compile(r"for\s*\(").match(bare, at):
        raise _unsupported(loop)
    return at


def _step(loop: Loop, text: str) -> str:
    """The step as it is written, so that another value of its macros moves blocks as it moves the loop; its number
    where it is written in another way than `variable += step`."""
    variable, sign = loop.variable, r"\+" if loop.step > 0 else "-"
    found = re.fullmatch(rf"\s*{variable}\s*(?:{sign}=|=\s*{variable}\s*{sign})([^=;,?]*)", text)
    written = one_line(found[1]) if found else ""
    return written if re.search(r"[A-Za-z_]", written) else str(abs(loop.step))


def _compared(loop: Loop, condition: str) -> tuple[str, str]:
    """Operator and bound of a condition on the loop variable, which comes first; from the normalised loop where the
    text has another form."""
    outside = _groups_blanked(condition)
    found = list(_COMPARISON.finditer(outside))
    if len(found) == 1 and not _LOOSE.search(_COMPARISON.sub(" ", outside)):
        operator = found[0][0]
        left, right = one_line(condition[: found[0].start()]), one_line(condition[found[0].end() :])
        if left == loop.variable:
            return _directed(operator, loop), right
        if right == loop.variable:
            return _directed(_SWAPPED[operator], loop), left
    bound = str(loop.stop)
    if re.search(r"\*\*|\.|/|M(?:in|ax)|floor|\[", bound):
        raise _unsupported(loop)
    return ("<" if loop.step > 0 else ">"), bound


def _directed(operator: str, loop: Loop) -> str:
    return operator if operator != "!=" else "<" if loop.step > 0 else ">"


def _groups_blanked(text: str) -> str:
    """The text with what stands in parentheses blanked, and these too."""
    before = None
    while before != text:
        before, text = text, re.sub(r"\([^()]*\)", lambda group: " " * len(group[0]), text)
    return text


def _unsupported(loop: Loop) -> UnsupportedKernelError:
    form = f"for (int {loop.variable} = start; {loop.variable} {'<' if loop.step > 0 else '>'} bound; …)"
    return UnsupportedKernelError(
        f"the header of the loop over {loop.variable} cannot be rewritten",
        where=loop.location,
        todo=f"write it out in this file, without macros, with one variable and one condition: {form}",
    )


def closing(bare: str, opened: int) -> int:
    """The position of the bracket that closes the one at `opened`."""
    depth = 0
    for place in re.compile(r"[(){}\[\]]").finditer(bare, opened):
        depth += 1 if place[0] in "({[" else -1
        if depth == 0:
            return place.start()
    return len(bare)


def split(bare: str, start: int, end: int, mark: str) -> Iterator[tuple[int, int]]:
    """The parts of a stretch between marks that stand in no brackets."""
    depth = 0
    for position in range(start, end):
        depth += (bare[position] in "([{") - (bare[position] in ")]}")
        if depth == 0 and bare[position] == mark:
            yield start, position
            start = position + 1
    yield start, end


def statement_end(bare: str, at: int) -> int:
    """The position behind the statement that begins at `at`."""
    while True:
        at = next((place.start() for place in re.compile(r"\S").finditer(bare, at)), len(bare))
        if bare.startswith("{", at):
            return closing(bare, at) + 1
        if bare.startswith("#", at):
            at = next_line(bare, at)
        elif re.compile(r"for\b").match(bare, at):
            at = closing(bare, bare.index("(", at)) + 1
        else:
            return next((end for _, end in split(bare, at, len(bare), ";")), len(bare)) + 1


def next_line(text: str, position: int) -> int:
    """The start of the line behind a position."""
    found = text.find("\n", position)
    return len(text) if found < 0 else found + 1


def _stripped(bare: str, start: int, end: int) -> tuple[int, int]:
    text = bare[start:end]
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())


def one_line(text: str) -> str:
    """The text with single spaces."""
    return " ".join(text.split())
