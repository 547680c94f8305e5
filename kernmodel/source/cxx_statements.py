"""Statements of C++ functions that are no C: each becomes the call of a function that nothing knows.

What stands outside of loop nests does them no harm; a nest with one is refused by what it uses.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kernmodel.patterns import pattern
from kernmodel.source.cxx_classes import arguments_at
from kernmodel.source.parse.standard_headers import FOREIGN
from kernmodel.source.text import blanked, closing_brace, only_directives, without_comments

Use = tuple[int, str]
_PREFIX = pattern(r"\s*(?:(else|do)\b|(if|for|while|switch)\s*(?=\()|case\b[^:;{}]*:(?!:)|\w+\s*:(?!:))")
_LAMBDA = pattern(r"\bauto\s+(\w+)\s*=\s*\[")


def foreign_uses(body: str, forms: dict[str, str]) -> Callable[[int], Use | None]:
    """What finds the first use of C++ from a place on: where it is, and what it is called."""
    bare = without_comments(body, directives=False)
    compiled = [(re.compile(form), saying) for form, saying in forms.items()]

    def first(place: int) -> Use | None:
        found = ((match, saying) for form, saying in compiled if (match := form.search(bare, place)))
        uses = [(match.start(), saying.format(*match.groups())) for match, saying in found]
        return min(uses, key=lambda use: use[0], default=None)

    return first


def without_statements(body: str, forms: dict[str, str]) -> str | Use:
    """The body of a function with calls in the place of the statements that are no C, or the use of C++ that no
    statement of its own holds: in the head of a `for`."""
    body = _without_lambdas(body)
    place = 0
    while (use := foreign_uses(body, forms)(place)) is not None:
        bare = without_comments(body, directives=False)
        replaced = _replacement(bare, *use)
        if replaced is None:
            return use
        start, end, text = replaced
        kept = _only_lines(body[start:end])
        body = body[:start] + text + kept + body[end:]
        place = start + len(text)
    return body


def _only_lines(text: str) -> str:
    """The line breaks and directives of a text."""
    return re.sub(r"(?m)^[ \t]+$|^[ \t]+(?=[ \t]*#)|[ \t]+$", "", only_directives(text))


def _without_lambdas(body: str) -> str:
    """Calls of lambdas that the function names as calls of a function that nothing knows."""
    for name in dict.fromkeys(match[1] for match in _LAMBDA.finditer(body)):
        body = re.sub(rf"\b{name}\s*\(\s*\)", f'{FOREIGN}("a lambda")', body)
        body = re.sub(rf"\b{name}\s*\(", f'{FOREIGN}("a lambda", ', body)
    return body


def _replacement(bare: str, place: int, what: str) -> tuple[int, int, str] | None:
    """Where what stands that is to be replaced, and by what."""
    call = f'{FOREIGN}("{what}")'
    start = _start(bare, place)
    while (prefix := _PREFIX.match(bare, start)) is not None and prefix.start(prefix.lastindex or 0) <= place:
        start = prefix.end()
        if prefix[2] is not None:
            end, _ = arguments_at(bare, start)
            if place < end:
                return None if prefix[2] == "for" else (start + 1, end - 1, call)
            start = end
    end = _end(bare, place)
    left, equals, _ = bare[start:place].partition("=")
    if equals and re.fullmatch(r"[\w\s*]+(?:\[[^\[\]=]*\]\s*)*", left) and not re.search(r"\bauto\b", left):
        return start + len(left) + 1, end, f" {call}"
    start += len(bare[start:place]) - len(bare[start:place].lstrip())
    return start, end, call


def _start(bare: str, place: int) -> int:
    """Where the statement around a place starts: behind the last `;` or brace outside of parentheses."""
    depth = start = 0
    for token in re.compile(r"[()\[\]{};]").finditer(bare, 0, place):
        depth += (token[0] in "([") - (token[0] in ")]")
        if token[0] in "{};" and depth <= 0:
            start = token.end()
    return start


def _end(bare: str, place: int) -> int:
    """Where the statement around a place ends: before its `;`, or the brace that closes the block."""
    position = place
    while position < len(bare):
        if bare[position] == "{":
            position = closing_brace(bare, position) or len(bare)
            continue
        if bare[position] in ";}":
            return position
        position += 1
    return len(bare)


def blank_qualifiers(head: str) -> str:
    """The head of a member function without what C has no word for."""
    return re.sub(r"\)\s*(?:const|override|final)\b\s*$", lambda found: ")" + blanked(found)[1:], head)
