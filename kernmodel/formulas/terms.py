"""Products of powers with a number before them: what formulas are sums of, their order and their text.

Order and text are those of sympy's printer, which people and other programs read: the highest power of the first symbol
first, numbers before sizes, one fraction bar. Nothing of sympy is loaded for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

Number = int | Fraction

Order = tuple[Any, ...]
"""Sorts atoms and formulas as sympy's `default_sort_key` does: kind, operands, exponent, coefficient."""

NUMBER, SYMBOL, PRODUCT, SUM = (1, 0, "Number"), (2, 0, "Symbol"), (3, 0, "Mul"), (3, 1, "Add")


class Atom(str):
    """What a formula holds powers of, by its text: equal texts are equal atoms."""

    __slots__ = ("order",)
    order: Order


Monomial = tuple[tuple[Atom, int], ...]
"""Sorted pairs of atom and exponent, none of which is 0; () is 1."""

Terms = Mapping[Monomial, Number]
"""Coefficients, none of which is 0."""


class Counted(Fraction):
    """A number that was counted as a float, and is written as one."""

    __slots__ = ()


def exact(value: Number) -> Number:
    """The same number, as int where it is one (int arithmetic is far faster than Fraction's)."""
    if type(value) is int:  # isinstance of a number takes ten times as long
        return value
    return value.numerator if value.denominator == 1 and not isinstance(value, Counted) else value


def times(left: Monomial, right: Monomial) -> Monomial:
    """The product."""
    if not left or not right:
        return left or right
    exponents = dict(left)
    for atom, exponent in right:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return tuple(sorted(item for item in exponents.items() if item[1]))


# Order


def order_of(terms: Terms) -> Order:
    """The key that sorts a sum of terms among others."""
    if len(terms) > 1:
        return SUM, (len(terms), tuple(_term_order(*term) for term in ordered(terms))), 1, 1
    return next((_term_order(*term) for term in terms.items()), (NUMBER, (0, ()), 1, 0))


def _term_order(monomial: Monomial, coefficient: Number) -> Order:
    if not monomial:
        return NUMBER, (0, ()), 1, coefficient
    factors = [(*atom.order[:2], exponent, 1) for atom, exponent in _by_order(monomial)]
    if len(factors) == 1:
        return (*factors[0][:3], coefficient)
    return PRODUCT, (len(factors), tuple(factors)), 1, coefficient


def _by_order(monomial: Monomial) -> list[tuple[Atom, int]]:
    return sorted(monomial, key=lambda item: (item[0].order[:2], item[1]))


def ordered(terms: Terms) -> list[tuple[Monomial, Number]]:
    """The terms in the order in which they are written: the highest power of the first atom first."""
    if len(terms) < 2:
        return list(terms.items())
    if len(terms) == 2 and terms.get((), 0) > 0:
        other = next(term for term in terms.items() if term[0])
        if other[1] < 0 and len(other[0]) == 1:
            return [((), terms[()]), other]  # 1 - N
    atoms = sorted({atom for monomial in terms for atom, _ in monomial}, key=lambda atom: atom.order)

    def powers(term: tuple[Monomial, Number]) -> tuple[int, ...]:
        exponents = dict(term[0])
        return tuple(-exponents.get(atom, 0) for atom in atoms)

    return sorted(terms.items(), key=powers)


# Text


def text_of(terms: Terms) -> str:
    """The sum as text that sympy and Python read: "M*N - 2*M + 1", "8*(2*N + 8)/N"."""
    if not terms:
        return "0"
    if len(terms) == 1 and () in terms:
        number = terms[()]
        return _decimal(float(number)) if isinstance(number, Counted) else str(number)
    first, *others = (_term_text(*term) for term in ordered(terms))
    return first + "".join(f" - {text[1:]}" if text[0] == "-" else f" + {text}" for text in others)


def _decimal(value: float) -> str:
    """A number that was counted, with fifteen digits."""
    mantissa, power = f"{abs(value):.14e}".split("e")
    exponent, digits = int(power), mantissa.replace(".", "")
    sign = "-" if value < 0 else ""
    if not value:
        return "0.0"
    if 0 <= exponent < 15:
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    if -5 < exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{sign}{mantissa}e{exponent:+d}"


def _term_text(monomial: Monomial, coefficient: Number) -> str:
    """Sign, factors and one fraction bar."""
    sign, size = ("-", -coefficient) if coefficient < 0 else ("", coefficient)
    if not monomial:
        return f"{sign}{size}"
    if size == 1 and len(monomial) == 1 and monomial[0][1] < -1:
        return f"{sign}{_base(monomial[0][0])}**({monomial[0][1]})"
    above, below = [], []
    if size.denominator != 1:
        below.append(str(size.denominator))
    if size.numerator != 1:
        above.append(str(size.numerator))
    for atom, exponent in _by_order(monomial):
        (above if exponent > 0 else below).append(_power(atom, abs(exponent)))
    under = "*".join(below) if len(below) < 2 else f"({'*'.join(below)})"
    return sign + ("*".join(above) or "1") + (f"/{under}" if below else "")


def _power(atom: Atom, exponent: int) -> str:
    return _base(atom) if exponent == 1 else f"{_base(atom)}**{exponent}"


def _base(atom: Atom) -> str:
    return f"({atom})" if atom.order[0] == SUM else str(atom)
