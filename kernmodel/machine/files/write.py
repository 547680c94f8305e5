"""The text of a machine file: facts laid out for people to read and edit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from kernmodel.units import FACTORS

Facts = Mapping[str, Any]
"""A machine file as nested mappings and lists of texts; None: not known, written as a comment to fill in."""

WIDTH = 118
_PLAIN = re.compile(r"(?:[A-Za-z0-9_./+(]|-(?=\w))[^\[\]{},#:?\"'`\n]*")
_BLOCK_PLAIN = re.compile(r"(?:[A-Za-z0-9_./+(]|-(?=\w))(?:[^#:\n]|:(?=\S)|(?<! )#)*")


def write_facts(facts: Facts, comments: Sequence[str] = ()) -> str:
    """The text of a machine file: `comments` at the top, then the facts in their order, sections set apart."""
    lines = [line for comment in comments for line in wrap(f"# {comment}", WIDTH, subsequent_indent="#   ")]
    for key, value in facts.items():
        if isinstance(value, Mapping):
            lines.append("")
        lines += _entry(key, value, "")
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, indent: str) -> list[str]:
    """The lines of one `key: value`."""
    head = f"{indent}{_quoted(key, _PLAIN)}:"
    if value is None:
        return [f"{indent}# {key}:  (not known; fill it in)"]
    if isinstance(value, Mapping):
        flow = _flow(value, len(head))
        if flow is not None and indent:
            return [f"{head} {flow}"]
        return [head, *(line for name, item in value.items() for line in _entry(name, item, indent + "  "))]
    if isinstance(value, list):
        return _list_entry(head, value, indent)
    return _wrapped(head, _quoted(value, _BLOCK_PLAIN).split(" "), indent, " ")


def _list_entry(head: str, value: list[Any], indent: str) -> list[str]:
    if value and isinstance(value[0], Mapping):
        return [head, *(line for item in value for line in _item(item, indent))]
    words = [_listed(item) for item in value]
    words = [word + ("," if index < len(words) - 1 else "]") for index, word in enumerate(words)] or ["]"]
    return _wrapped(head, ["[" + words[0], *words[1:]], indent, " ")


def _listed(item: Any) -> str:
    """A text, or a list of them within a list."""
    return f"[{', '.join(map(_listed, item))}]" if isinstance(item, list) else _quoted(item, _PLAIN)


def _item(item: Facts, indent: str) -> Iterator[str]:
    """A mapping as an item of a list: its first line starts with a dash."""
    lines = [line for key, value in item.items() for line in _entry(key, value, indent + "    ")]
    yield f"{indent}  - {lines[0].lstrip()}"
    yield from lines[1:]


def _flow(value: Facts, used: int) -> str | None:
    """A short mapping of single values in one line, or None. Tables with a source stay in lines of their own."""
    if "source" in value or not all(isinstance(item, str) for item in value.values()):
        return None
    text = "{" + ", ".join(f"{_quoted(key, _PLAIN)}: {_quoted(item, _PLAIN)}" for key, item in value.items()) + "}"
    return text if used + len(text) < WIDTH else None


def _wrapped(head: str, words: Sequence[str], indent: str, between: str) -> list[str]:
    """`head` and words, broken into lines that YAML folds together again."""
    lines, line = [], head
    for word in words:
        if len(line) + len(word) >= WIDTH and line.strip() and line != head:
            lines.append(line)
            line = f"{indent}    {word}"
        else:
            line += between + word
    return [*lines, line]


def _quoted(text: str, plain: re.Pattern[str]) -> str:
    """`text` as a YAML scalar: as it is where that is safe, else in double quotes."""
    safe = plain.fullmatch(text) and "  " not in text and text == text.strip()
    return text if safe else json.dumps(text, ensure_ascii=False)


def with_unit(value: float, dimension: str) -> str:
    """`value` with the largest unit of `dimension` in which it is at least one and reads back exactly."""
    for unit, factor in sorted(FACTORS[dimension].items(), key=lambda entry: -entry[1]):
        text = f"{value / factor:.10g}"
        if value >= factor and "e" not in text and float(text) * factor == value:
            # of units with the same factor ("B", "byte", "bytes") the first one counts
            return f"{text} {unit}"
    return f"{value!r} {next(iter(FACTORS[dimension]))}"
