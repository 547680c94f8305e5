"""The text of a kernel made for certain sizes: its default sizes are these, and a comment says what it was made for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kernmodel.source.emit.blocked_text import newline_of
from kernmodel.source.emit.whole_function import compiler_defines
from kernmodel.source.text import without_comments


def made_for(text: str, sizes: Mapping[str, int], comment: Sequence[str]) -> str:
    """The text with these sizes as its defaults, and a comment of these lines at its top.

    A macro that the text defines as a number gets its size, one that it does not define an #ifndef at the top. Sizes
    that are parameters of the function stay what the caller gives.
    """
    newline = newline_of(text)
    added = []
    for name in compiler_defines(text, sizes):
        text, found = _redefined(text, name, sizes[name])
        if not found:
            added += [f"#ifndef {name}", f"#define {name} {sizes[name]}", "#endif"]
    head = ["/*", *(f" * {line.replace('*/', '* /')}" for line in comment), " */", *added]
    return "".join(line + newline for line in head) + text


def _redefined(text: str, name: str, size: int) -> tuple[str, bool]:
    """The text with another number in every definition of a macro, and whether it has one at all."""
    bare = without_comments(text)
    definition = re.compile(rf"^([ \t]*#[ \t]*define[ \t]+{re.escape(name)}[ \t]+)([^\s].*?)[ \t]*$", re.MULTILINE)
    found = list(definition.finditer(bare))
    for place in reversed(found):
        text = f"{text[: place.start(2)]}{size}{text[place.end(2) :]}"
    return text, bool(found) or re.search(
        rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b", bare, re.MULTILINE
    ) is not None
