"""How in-core and transfer times compose to a runtime, as data: an expression of `max` and `sum` over named times.

Intel cores up to Cascade Lake: `max(T_OL, T_nOL + T_L1L2 + T_L2L3 + T_L3Mem)`; Zen 2: `max(T_OL, T_nOL, T_L1L2, T_L2L3,
T_L3Mem)`. Written in machine files as text, `+` and `max(…)` only. In which order terms are written makes no
difference to what they say, so what is read has one order, whatever the text's: equal compositions are equal values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from kernmodel.errors import MachineError
from kernmodel.value_types import dataclass

CORE_TIMES = ("T_OL", "T_nOL")
"""The times of the core in an expression, in which all others are those of paths."""


@dataclass(frozen=True, slots=True)
class Time:
    """A leaf: the time called `name`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Sum:
    """Times that follow one another."""

    terms: tuple[Overlap, ...]

    def __str__(self) -> str:
        return " + ".join(str(term) for term in self.terms)


@dataclass(frozen=True, slots=True)
class Max:
    """Times that overlap: the longest counts."""

    terms: tuple[Overlap, ...]

    def __str__(self) -> str:
        return f"max({', '.join(str(term) for term in self.terms)})"


Overlap = Time | Sum | Max


def parse_overlap(text: str) -> Overlap:
    """Read an overlap expression; its terms come in order of T_OL, T_nOL, and paths from the core outwards.

    Raises:
        MachineError: anything but names, `+` and `max(…)`.
    """
    try:
        return _ordered(_convert(ast.parse(text.strip(), mode="eval").body, text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = f"overlap {text!r} is not an expression"
        raise MachineError(what, todo="use names of times, + and max(…)") from error


def _convert(node: ast.expr, text: str) -> Overlap:
    match node:
        case ast.Name(id=name):
            return Time(name)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = (_convert(left, text), _convert(right, text))
            return Sum(tuple(term for part in parts for term in (part.terms if isinstance(part, Sum) else (part,))))
        case ast.Call(func=ast.Name(id="max"), args=[_, *_] as args, keywords=[]):
            return Max(tuple(_convert(arg, text) for arg in args))
        case _:
            part = ast.get_source_segment(text.strip(), node) or text
            what = f"overlap {text!r}: {part!r} is not allowed"
            raise MachineError(what, todo="use names of times, + and max(…)")


def _ordered(expression: Overlap) -> Overlap:
    """The same with its terms in order, and no maximum in a maximum or sum in a sum."""
    if isinstance(expression, Time):
        return expression
    kind, parts = type(expression), [_ordered(term) for term in expression.terms]
    flat = [term for part in parts for term in (part.terms if isinstance(part, kind) else (part,))]
    return kind(tuple(sorted(flat, key=_place))) if len(flat) > 1 else flat[0]


def _place(term: Overlap) -> tuple[list[tuple[bool, str]], str]:
    """Where a term stands among others: by the first of its times. Names of paths sort as the paths lie."""
    return [(name not in CORE_TIMES, name) for name in names(term)], str(term)


def evaluate(expression: Overlap, times: Mapping[str, float]) -> float:
    """The composed time; a name that `times` lacks counts as 0 (levels beyond the residence level)."""
    match expression:
        case Time(name):
            return times.get(name, 0.0)
        case Sum(terms):
            return sum(evaluate(term, times) for term in terms)
        case Max(terms):
            return max(evaluate(term, times) for term in terms)


def names(expression: Overlap) -> Iterator[str]:
    """All names of times in the expression, in order."""
    if isinstance(expression, Time):
        yield expression.name
    else:
        for term in expression.terms:
            yield from names(term)
