"""Division of formulas as polynomials in their atoms: with remainder, exact, and fractions without common factors."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

from kernmodel.formulas.formula import ONE, ZERO, Formula, Whole, of_atom, total
from kernmodel.formulas.terms import Atom, Monomial, Number, exact


def divided(dividend: Formula, divisor: Formula, *, whole: bool) -> tuple[Formula, Formula]:
    """Quotient and remainder, by the leading terms in the order of the atoms' names.

    Args:
        whole: coefficients of the quotient are integers: what is no multiple remains, and factors of the whole divisor
            are divided as integers, rounding down.

    Raises:
        ZeroDivisionError: the divisor is 0.
    """
    if not divisor:
        raise ZeroDivisionError("division of a formula by zero")
    names = sorted(dividend.atoms | divisor.atoms)
    factor = content(divisor) if whole else 1
    primitive = divisor / factor
    lead = _leading(primitive, names)
    quotient, rest, over = ZERO, dividend, primitive.terms[lead]
    waiting = dividend
    while waiting:
        monomial = _leading(waiting, names)
        found = _over(monomial, lead)
        number = exact(Fraction(waiting.terms[monomial]) / Fraction(over))
        if found is None or (whole and not isinstance(number, int)):
            waiting = Formula({m: c for m, c in waiting.terms.items() if m != monomial})
            continue
        part = Formula({found: number})
        quotient, waiting, rest = quotient + part, waiting - part * primitive, rest - part * primitive
    if factor == 1:
        return quotient, rest
    quotient = Formula({m: down for m, c in quotient.terms.items() if (down := c // factor)})
    return quotient, dividend - quotient * divisor


def exact_quotient(dividend: Formula, divisor: Formula) -> Formula | None:
    """The quotient if nothing remains."""
    quotient, rest = divided(dividend, divisor, whole=False)
    return None if rest else quotient


def whole_quotient(dividend: Formula, divisor: Formula) -> Formula | None:
    """The quotient if nothing remains and its coefficients are integers."""
    quotient, rest = divided(dividend, divisor, whole=True)
    return None if rest else quotient


def content(formula: Formula) -> int:
    """The greatest integer that divides all coefficients (1 where one is no integer)."""
    numbers = [c for c in formula.terms.values() if isinstance(c, int)]
    return gcd(*numbers) if numbers and len(numbers) == len(formula.terms) else 1


def _leading(formula: Formula, names: Sequence[Atom]) -> Monomial:
    def powers(monomial: Monomial) -> list[int]:
        exponents = dict(monomial)
        return [exponents.get(name, 0) for name in names]

    return max(formula.terms, key=powers)


def _over(monomial: Monomial, lead: Monomial) -> Monomial | None:
    """The quotient of monomials, None where it is none."""
    exponents = dict(monomial)
    for atom, exponent in lead:
        exponents[atom] = exponents.get(atom, 0) - exponent
    if any(exponent < 0 for exponent in exponents.values()):
        return None
    return tuple(sorted(item for item in exponents.items() if item[1]))


# Fractions


def fraction(numerator: Formula, divisor: Formula) -> Formula:
    """The quotient of two polynomials over one fraction bar, common factors cancelled."""
    if not (numerator.is_constant or divisor.is_constant):
        numerator, divisor = _cancelled(numerator, divisor)
    if len(numerator.terms) < 2 or divisor.is_constant:
        return numerator / divisor
    return of_atom(Whole("sum", (numerator,))) / divisor


@lru_cache(maxsize=256)
def _cancelled(numerator: Formula, divisor: Formula) -> tuple[Formula, Formula]:
    """The same with integer coefficients and nothing in common. Kept, as caches often miss the same lines."""
    common = common_divisor(numerator, divisor)
    upper, lower = exact_quotient(numerator, common) or numerator, exact_quotient(divisor, common) or divisor
    scale = _to_integers([*upper.terms.values(), *lower.terms.values()])
    if lower.terms[_leading(lower, sorted(lower.atoms))] < 0:
        scale = -scale
    return upper.scaled(scale), lower.scaled(scale)


def _to_integers(numbers: Sequence[Number]) -> Fraction:
    """The factor that makes these numbers, not all 0, integers without a common divisor."""
    scale = lcm(*(c.denominator for c in numbers))
    return Fraction(scale, gcd(*(int(c * scale) for c in numbers)))


def common_divisor(one: Formula, other: Formula) -> Formula:
    """The greatest common divisor of polynomials, up to a number: Euclid's algorithm in one atom after the other, on
    primitive parts (Knuth, The Art of Computer Programming 2, section 4.6.1)."""
    if not one or not other:
        return one or other
    if not one.atoms & other.atoms:
        return ONE
    atom = min(one.atoms | other.atoms)
    left, right = by_powers(one, atom), by_powers(other, atom)
    shared = common_divisor(_content(left), _content(right))
    left, right = _primitive(left), _primitive(right)
    while len(right) > 1:
        left, right = right, _primitive(_pseudo_remainder(left, right))
    return shared if right else shared * _from_powers(left, atom)


Powers = list[Formula]
"""Coefficients of the powers of an atom, from the 0th to the highest."""


def by_powers(formula: Formula, atom: str) -> Powers:
    """A polynomial by the powers of an atom; [] for 0."""
    found: dict[int, dict[Monomial, Number]] = {}
    for monomial, coefficient in formula.terms.items():
        exponent = dict[str, int](monomial).get(atom, 0)
        found.setdefault(exponent, {})[tuple(item for item in monomial if item[0] != atom)] = coefficient
    return [Formula(found.get(power, {})) for power in range(max(found, default=-1) + 1)]


def _from_powers(powers: Powers, atom: Atom) -> Formula:
    return total(part * of_atom(atom) ** power for power, part in enumerate(powers))


def _content(powers: Powers) -> Formula:
    found = ZERO
    for part in powers:
        found = common_divisor(found, part)
    return found


def _primitive(powers: Powers) -> Powers:
    """The polynomial without what all its coefficients have in common, numbers included."""
    shared = _content(powers)
    parts = [exact_quotient(part, shared) or ZERO for part in powers]
    numbers = [c for part in parts for c in part.terms.values()]
    if not numbers:
        return []
    scale = _to_integers(numbers)
    return [part.scaled(scale) for part in parts]


def _pseudo_remainder(dividend: Powers, divisor: Powers) -> Powers:
    """A multiple of the dividend, less a multiple of the divisor, of smaller degree than this."""
    rest = list(dividend)
    while len(rest) >= len(divisor):
        lead, shift = rest[-1], len(rest) - len(divisor)
        rest = [part * divisor[-1] for part in rest]
        for power, part in enumerate(divisor):
            rest[shift + power] -= lead * part
        while rest and not rest[-1]:
            rest.pop()
    return rest
