"""Text that is no C as a whole, one declaration at file scope after the other: what cannot be read is passed over.

Types that headers would declare which are not there, and that nothing declares, are taken as types of which nothing is
known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from pycparser import c_ast  # type: ignore[import-untyped]
from pycparser.c_parser import CParser, ParseError  # type: ignore[import-untyped]

from kernmodel.errors import SourceError
from kernmodel.patterns import pattern
from kernmodel.source.parse.tree import Node
from kernmodel.source.text import end_of_declaration
from kernmodel.value_types import dataclass

# fmt: off
KEYWORDS = frozenset({
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern", "float",
    "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed", "sizeof",
    "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while", "_Bool",
})
# fmt: on
_WORD = r"([A-Za-z_]\w*)"
_QUALIFIED = r"(?:(?:const|static|extern|inline|register|volatile|restrict)\s+)*"
_POINTERS = r"(?:\s*\*[\s*]*(?:const\b\s*|restrict\b\s*)*|\s+)"
_PARAMETER = pattern(rf"(?:^|[(,;{{])\s*{_QUALIFIED}{_WORD}{_POINTERS}[A-Za-z_]\w*\s*(?=[;,)=\[(])")
_LOCAL = pattern(rf"[;{{}}]\s*{_QUALIFIED}{_WORD}{_POINTERS}[A-Za-z_]\w*\s*(?=[;,=\[])")
_COUNTER = pattern(rf"\bfor\s*\(\s*{_QUALIFIED}{_WORD}\s+[A-Za-z_]\w*\s*=")
_CAST = pattern(rf"\(\s*(?:const\s+)?{_WORD}\s*\*+\s*\)")
_SIZE = pattern(rf"\bsizeof\s*\(\s*{_WORD}\s*\)")
_FUNCTION = pattern(r"([A-Za-z_]\w*)\s*\([^{}]*\)\s*\{")


@dataclass(frozen=True, slots=True)
class Unread:
    """A function that cannot be read.

    Attributes:
        loops: whether it seems to have any; error: why.
    """

    name: str
    loops: bool
    error: SourceError


def read_each(
    text: str, bare: str, lexer: type[Any], refuse: Callable[[ParseError, Any], SourceError]
) -> tuple[list[Node], list[Unread]]:
    """What can be read of the declarations of a text, and the functions that cannot.

    Args:
        bare: the text without comments, strings and directives.
        refuse: the error of the parser at its place in the user's file, from its exception and its last token.
    """
    nodes, unread, types = list[Node](), list[Unread](), set[str]()
    for start, end in _parts(bare):
        seen = bare[start:end]
        parser = CParser(lexer=lexer)
        names = types & set(re.findall(r"[A-Za-z_]\w*", seen))
        try:
            try:
                found = _read(parser, text, start, end, names)
            except ParseError:
                names |= (new := _undeclared(seen, types))
                found = _read(parser, text, start, end, names)
                types |= new
        except ParseError as error:
            if function := _FUNCTION.search(seen):
                loops = re.search(r"\b(?:for|while)\b", seen) is not None
                unread.append(Unread(function[1], loops, refuse(error, parser.clex.last)))
            continue
        types |= {node.name for node in found if isinstance(node, c_ast.Typedef)}
        nodes += found
    return nodes, unread


def _parts(bare: str) -> Iterator[tuple[int, int]]:
    """Where the declarations of a text begin and end."""
    place = 0
    while place < len(bare):
        end = end_of_declaration(bare, place)
        start = place + len(bare[place:end]) - len(bare[place:end].lstrip())
        if start < end:
            yield start, end
        place = end


def _read(parser: CParser, text: str, start: int, end: int, types: set[str]) -> list[Node]:
    """The nodes of a part of a text, at their places, where these names are types."""
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start) - 1
    known = "".join(f"typedef int {name};" for name in sorted(types))
    tree = parser.parse(f"{known}\n#line {line}\n{' ' * column}{text[start:end]}", "")
    return list(tree.ext[len(types) :])


def _undeclared(bare: str, types: set[str]) -> set[str]:
    """The names that a declaration uses where a type stands, and that nothing declares."""
    head, brace, body = bare.partition("{")
    whole = head if _FUNCTION.search(bare) else bare
    found = {match[1] for match in _PARAMETER.finditer(whole)}
    for form in (_LOCAL, _COUNTER, _CAST, _SIZE):
        found |= {match[1] for match in form.finditer(brace + body)}
    return found - KEYWORDS - types
