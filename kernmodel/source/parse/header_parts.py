"""What headers declare beyond what a file uses of it: left out before the text is parsed.

A translation unit is mostly headers, and of these mostly prototypes. What the functions of the file need of them are
the types, variables and functions that they name, and what these name in turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from kernmodel.source.parse.declarations import KEYWORDS
from kernmodel.value_types import dataclass

HEADERS = frozenset({".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh"})
"""Endings of files that others include; what else is included is taken as part of the file."""
_LOOPS = frozenset({"for", "while", "do"})
_TAGS = frozenset({"struct", "union", "enum"})
_OPENED = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_NAME = re.compile(r"[A-Za-z_]\w*")
_BEHIND_A_NAME = frozenset(";,=[():}")


@dataclass(frozen=True, slots=True)
class _Part:
    """A declaration at file scope.

    Attributes:
        first, stop: its tokens, from and up to.
        header: the file, where all of it comes from a header, else "".
        words: what it consists of, without spaces, comments and directives.
        braces: how many of them stand open around each word.
    """

    first: int
    stop: int
    header: str
    words: tuple[str, ...]
    braces: tuple[int, ...]

    @property
    def is_function(self) -> bool:
        """Whether it has a body."""
        return self.words[-1] == "}" and _opens_a_body(self.words)

    @property
    def is_prototype(self) -> bool:
        """Whether it declares a function, and nothing else."""
        if "(" not in self.words or self.words[0] == "typedef" or self.words[-2:] != (")", ";"):
            return False
        place = self.words.index("(")
        return place > 1 and self.words[place + 1] not in "*(^" and {"{", "=", ","}.isdisjoint(self.words[:place])

    @property
    def has_loops(self) -> bool:
        """Whether a loop seems to stand in it."""
        return not _LOOPS.isdisjoint(self.words)

    @property
    def names(self) -> frozenset[str]:
        """All names in it."""
        return frozenset(word for word in self.words if _NAME.match(word))

    def declared(self) -> Iterator[str]:
        """The names that it gives a meaning, and perhaps more."""
        following = frozenset("(") if self.is_function or self.is_prototype else _BEHIND_A_NAME
        enumeration = "enum" in self.words
        for (word, behind), braces in zip(pairwise(self.words), self.braces, strict=False):
            declares = behind in following or behind.startswith("__")
            if declares and (enumeration or not braces) and _NAME.match(word) and word not in KEYWORDS:
                yield word
        yield from (tag for before, tag in pairwise(self.words) if before in _TAGS and _NAME.match(tag))


def without_unused(
    tokens: Sequence[Any], header_of: Callable[[str], str], wanted: str | None, *, functions: bool
) -> tuple[list[Any], tuple[tuple[str, str], ...]]:
    """The tokens without the declarations of headers that nothing uses.

    Args:
        tokens: of the preprocessor, each with its `source`.
        header_of: by source, the header that it is, "" for the file itself.
        wanted: a function that is kept.
        functions: keep all functions of headers, as where the file has no loop of its own.

    Returns:
        The tokens, and the functions with loops that are left out: name and header of each.
    """
    parts = list(_parts(tokens, header_of))
    if not any(part.header for part in parts):
        return list(tokens), ()
    own = any(part.has_loops for part in parts if not part.header)
    functions = functions or not own
    by_name: dict[str, list[int]] = {}
    for number, part in enumerate(parts):
        for name in part.declared() if part.header else ():
            by_name.setdefault(name, []).append(number)
    kept = {n for n, part in enumerate(parts) if not part.header or (functions and part.is_function)}
    kept.update(by_name.get(wanted or "", ()))
    frontier = list(kept)
    while frontier:
        for name in parts[frontier.pop()].names:
            new = [number for number in by_name.pop(name, ()) if number not in kept]
            kept.update(new)
            frontier += new
    left = [part for number, part in enumerate(parts) if number not in kept and part.is_function and part.has_loops]
    found = tuple((next(part.declared(), "?"), part.header) for part in left)
    return [token for number in sorted(kept) for token in tokens[parts[number].first : parts[number].stop]], found


def _parts(tokens: Sequence[Any], header_of: Callable[[str], str]) -> Iterator[_Part]:
    """The declarations of a text; all in one, of no header, from where braces do not match."""
    first, depth, braces, directive = 0, 0, 0, False
    words, inside, headers = list[str](), list[int](), set[str]()
    for number, token in enumerate(tokens):
        value = str(token.value)
        if directive or value == "#":
            directive = value != "\n"
            continue
        if value.isspace():
            continue
        change = _OPENED.get(value, 0)
        if change < 0:
            depth, braces = depth - 1, braces - (value == "}")
        words.append(value)
        inside.append(braces)
        headers.add(str(token.source))
        if change > 0:
            depth, braces = depth + 1, braces + (value == "{")
        if depth < 0 or words[0] == "{":
            break
        if not depth and (value == ";" or (value == "}" and _opens_a_body(words))):
            found = set(map(header_of, headers))
            yield _Part(first, number + 1, found.pop() if len(found) == 1 else "", tuple(words), tuple(inside))
            first, words, inside, headers = number + 1, [], [], set()
    else:
        number = len(tokens)
    if first < len(tokens):
        yield _Part(first, len(tokens), "", tuple(str(token.value) for token in tokens[first:]), ())


def _opens_a_body(words: Sequence[str]) -> bool:
    """Whether the first brace of a declaration stands behind the parameters of a function."""
    place = words.index("{") if "{" in words else 0
    return place > 0 and words[place - 1] == ")" and "=" not in words[:place]
