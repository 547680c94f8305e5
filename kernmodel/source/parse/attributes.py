"""Attributes of compilers that change how data lie in memory, which the parser does not know.

`__attribute__((aligned(64)))` and `__declspec(align(64))` of structures, of their members and of typedefs are read; so
is that a structure is packed, or a type one of vectors (`vector_size(16)`), of which nothing more is known. All other
attributes leave the meaning of a kernel alone, and are left out of its text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.patterns import pattern
from kernmodel.source.parse.tree import Node, walk
from kernmodel.value_types import dataclass

_KEYWORDS = frozenset({"__attribute__", "__attribute", "__declspec"})
_ALIGNED = pattern(r"\b(?:__)?align(?:ed)?(?:__)?\b\s*(\()?")
_PACKED = pattern(r"\b(?:__)?packed(?:__)?\b")
_OTHER_TYPE = pattern(r"\b(?:__)?(?:vector_size|ext_vector_type|neon_vector_type|mode)(?:__)?\b")
_MARK = "__km_attribute_"
_TOKENS = pattern(rf"{_MARK}\d+|[A-Za-z_]\w*|[][{{}}();,=]")
_LARGEST = "16"
"""The alignment of `aligned` without a number: the largest of any type (GCC's manual, "Common Type Attributes")."""

Place = tuple[int, int]
"""Line and column in the text that is parsed."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What attributes say, by the place of what they belong to: the name of a structure, the `{` of one without a name,
    or a name that is declared.

    Attributes:
        aligned: the least alignment in bytes, as expressions of C.
        packed: structures, and members, without the gaps that alignment makes.
        other_types: names whose type is another one than is written, as vectors are.
    """

    aligned: Mapping[Place, Sequence[str]]
    packed: frozenset[Place]
    other_types: frozenset[Place]

    def below(self, lines: int) -> Attributes:
        """The same of a text with so many lines in front of it."""
        aligned = {(line + lines, column): said for (line, column), said in self.aligned.items()}
        packed, others = (
            frozenset((line + lines, column) for line, column in s) for s in (self.packed, self.other_types)
        )
        return Attributes(aligned, packed, others)


NO_ATTRIBUTES = Attributes({}, frozenset(), frozenset())


def mark_attributes(tokens: Iterable[Any]) -> tuple[list[Any], list[str]]:
    """The tokens with a mark in the place of each attribute that matters, without others, and the texts of these."""
    kept, texts = list[Any](), list[str]()
    inside = list[Any]()
    depth = 0
    for token in tokens:
        if not inside and token.value not in _KEYWORDS:
            kept.append(token)
            continue
        inside.append(token)
        depth += {"(": 1, ")": -1}.get(token.value, 0)
        if depth or token.value != ")":
            continue
        text = "".join(str(part.value) for part in inside[1:])
        if any(kind.search(text) for kind in (_ALIGNED, _PACKED, _OTHER_TYPE)):
            inside[0].value = f"{_MARK}{len(texts)}"
            kept.append(inside[0])
            texts.append(text)
        inside = []
    return kept + inside, texts


def read_attributes(text: str, texts: Sequence[str]) -> tuple[str, Attributes]:
    """The text with spaces in the place of marks, and what the attributes say of it."""
    if not texts:
        return text, NO_ATTRIBUTES
    tokens = list(_TOKENS.finditer(text))
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    aligned: dict[Place, list[str]] = {}
    packed, others = set[Place](), set[Place]()
    for number, token in enumerate(tokens):
        if not token[0].startswith(_MARK):
            continue
        said = texts[int(token[0].removeprefix(_MARK))]
        structure = _structure(tokens, number)
        owner = _declared(tokens, number) if structure is None else structure
        if owner is None:
            continue
        line = bisect_right(starts, owner)
        place = line, owner - starts[line - 1] + 1
        if match := _ALIGNED.search(said):
            aligned.setdefault(place, []).append(_argument(said, match.end()) if match[1] else _LARGEST)
        if _PACKED.search(said):
            packed.add(place)
        if structure is None and _OTHER_TYPE.search(said):
            others.add(place)
    plain = re.sub(rf"{_MARK}\d+", lambda match: " " * len(match[0]), text)
    return plain, Attributes(aligned, frozenset(packed), frozenset(others))


def place_of(node: Any) -> Place:
    """Where a node of the syntax tree stands; (0, 0) for one that was made."""
    return (0, 0) if node.coord is None else (node.coord.line, node.coord.column)


def retype(nodes: Iterable[Node], attributes: Attributes) -> None:
    """Take the type from what is declared with another one than is written: nothing is known of it."""
    if not attributes.other_types:
        return
    for node in (part for one in nodes for part in walk(one)):
        if isinstance(node, (c_ast.Decl, c_ast.Typedef)) and place_of(node) in attributes.other_types:
            declarator = node
            while isinstance(declarator.type, (c_ast.ArrayDecl, c_ast.PtrDecl, c_ast.TypeDecl)):
                declarator = declarator.type
            declarator.type = c_ast.IdentifierType(["vector"], node.coord)


def _argument(text: str, start: int) -> str:
    """What stands in the parentheses that end before `start`."""
    depth, end = 1, start
    while end < len(text) and depth:
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[start : end - 1]


def _plain(tokens: Sequence[re.Match[str]], number: int, step: int) -> int:
    """The next token in a direction that is no mark; -1 or the end where there is none."""
    number += step
    while 0 <= number < len(tokens) and tokens[number][0].startswith(_MARK):
        number += step
    return number


def _structure(tokens: Sequence[re.Match[str]], number: int) -> int | None:
    """Where the structure of an attribute stands that is behind its keyword, or behind its members."""
    before = _plain(tokens, number, -1)
    if before < 0:
        return None
    if tokens[before][0] in ("struct", "union"):
        after = _plain(tokens, number, 1)
        return tokens[after].start() if after < len(tokens) else None
    if tokens[before][0] != "}":
        return None
    opened = _opening(tokens, before, "{", "}")
    named = _plain(tokens, opened, -1)
    if named >= 0 and tokens[named][0] in ("struct", "union"):
        return tokens[opened].start()
    keyword = _plain(tokens, named, -1)
    return tokens[named].start() if keyword >= 0 and tokens[keyword][0] in ("struct", "union") else None


def _opening(tokens: Sequence[re.Match[str]], number: int, opens: str, closes: str) -> int:
    depth = 0
    while number >= 0:
        depth += {closes: 1, opens: -1}.get(tokens[number][0], 0)
        if not depth:
            break
        number -= 1
    return number


def _declared(tokens: Sequence[re.Match[str]], number: int) -> int | None:
    """Where the name stands that an attribute behind it, or in front of its declaration, belongs to."""
    before = _plain(tokens, number, -1)
    while before >= 0 and tokens[before][0] == "]":
        before = _plain(tokens, _opening(tokens, before, "[", "]"), -1)
    after = _plain(tokens, number, 1)
    ends = after >= len(tokens) or tokens[after][0] in ("[", ";", ",", "=", ")", "{")
    if before >= 0 and ends and tokens[before][0].isidentifier():
        return tokens[before].start()
    while after < len(tokens) and tokens[after][0].isidentifier():
        following = _plain(tokens, after, 1)
        if following < len(tokens) and tokens[following][0] in ("[", ";", ",", "=", ")"):
            return tokens[after].start()
        after = following
    return None
