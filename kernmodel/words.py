"""Words that texts of all packages put together: numbers with their nouns, and the first of many names."""

from __future__ import annotations

from collections.abc import Sequence


def count(number: float, noun: str, many: str = "") -> str:
    """A number with its noun in the right form ("1 core", "2 cores")."""
    return f"{number} {plural(number, noun, many)}"


def plural(number: float, noun: str, many: str = "") -> str:
    """A noun in the form that the number asks for; `many` is its plural where an s does not make it."""
    return noun if number == 1 else many or f"{noun}s"


def first_names(names: Sequence[str], most: int) -> str:
    """At most so many of the names, and how many there are besides ("a, b and 3 more")."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
