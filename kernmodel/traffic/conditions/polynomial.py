"""Polynomials in the size symbols, and sizes that carry their formula and their number together.

Layer conditions decide by numbers and answer with formulas, thousands of times in a sweep. sympy's general expressions
are too slow for the deciding part; polynomials with rational coefficients are all it needs, and they become sympy
expressions at the end. What is not a polynomial (`floor(N/2)`) is kept whole, as a generator of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache, reduce
from operator import add, mul

import sympy

from kernmodel.value_types import dataclass

Number = int | Fraction
Monomial = tuple[tuple[str, int], ...]
Generators = Mapping[str, sympy.Expr]


def exact(value: Number) -> Number:
    """The same number, as int where it is one (int arithmetic is far faster than Fraction's)."""
    if type(value) is int:  # isinstance of a number takes ten times as long
        return value
    return value.numerator if value.denominator == 1 else value


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Σ coefficient × monomial; a monomial is a sorted tuple of (generator, exponent), () for the constant term.

    Generators are names: of size symbols, or of whole non-polynomial expressions of them. No coefficient is zero.
    """

    terms: Mapping[Monomial, Number]

    def __add__(self, other: Polynomial) -> Polynomial:
        if not other.terms:
            return self
        if not self.terms:
            return other
        terms = dict(self.terms)
        for monomial, coefficient in other.terms.items():
            summed = exact(terms.get(monomial, 0) + coefficient)
            if summed:
                terms[monomial] = summed
            else:
                del terms[monomial]
        return Polynomial(terms)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + other.scaled(-1)

    def __mul__(self, other: Polynomial) -> Polynomial:
        if other.is_constant:
            return self.scaled(other.terms.get((), 0))
        if self.is_constant:
            return other.scaled(self.terms.get((), 0))
        terms: dict[Monomial, Number] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = _times(left, right)
                terms[monomial] = exact(terms.get(monomial, 0) + a * b)
        return Polynomial({monomial: c for monomial, c in terms.items() if c})

    def scaled(self, factor: Number) -> Polynomial:
        """The product with a number."""
        if factor == 1:
            return self
        return Polynomial({m: exact(c * factor) for m, c in self.terms.items()}) if factor else ZERO

    @property
    def is_constant(self) -> bool:
        """Whether no size appears in it."""
        return not self.terms or (len(self.terms) == 1 and () in self.terms)

    def value(self, values: Mapping[str, Number]) -> Number:
        """The number it has where each generator has its value."""
        found: Number = 0
        for monomial, coefficient in self.terms.items():
            term = coefficient
            for name, exponent in monomial:
                term *= values[name] ** exponent
            found += term
        return exact(found)

    def names(self) -> set[str]:
        """All generators that appear."""
        return {name for monomial in self.terms for name, _ in monomial}

    def key(self) -> frozenset[tuple[Monomial, Number]]:
        """A hashable form; equal for equal polynomials."""
        return frozenset(self.terms.items())

    def expression(self, generators: Generators) -> sympy.Expr:
        """The same as a sympy expression."""
        return sympy.Add(*(_term(monomial, c, generators) for monomial, c in self.terms.items()))


ZERO = Polynomial({})


def constant(value: Number) -> Polynomial:
    """A polynomial without sizes."""
    return Polynomial({(): value}) if value else ZERO


def _times(left: Monomial, right: Monomial) -> Monomial:
    if not left or not right:
        return left or right
    exponents = dict(left)
    for name, exponent in right:
        exponents[name] = exponents.get(name, 0) + exponent
    return tuple(sorted(exponents.items()))


def _term(monomial: Monomial, coefficient: Number, generators: Generators) -> sympy.Expr:
    number = sympy.Rational(coefficient.numerator, coefficient.denominator)
    return sympy.Mul(number, *(sympy.Pow(generators[name], exponent) for name, exponent in monomial))


def read_polynomial(expression: sympy.Expr, generators: dict[str, sympy.Expr]) -> Polynomial:
    """Read a sympy expression; symbols and parts that are not polynomial are entered into `generators` by name."""
    if expression.is_Rational:
        return constant(exact(Fraction(int(expression.p), int(expression.q))))
    if expression.is_Add:
        return reduce(add, (read_polynomial(part, generators) for part in expression.args), ZERO)
    if expression.is_Mul:
        return multiplied(read_polynomial(part, generators) for part in expression.args)
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        return multiplied([read_polynomial(expression.base, generators)] * int(expression.exp))
    name = expression.name if expression.is_Symbol else str(expression)
    generators.setdefault(name, expression)
    return Polynomial({((name, 1),): 1})


def multiplied(factors: Iterable[Polynomial]) -> Polynomial:
    """The product of polynomials."""
    return reduce(mul, factors, constant(1))


@dataclass(frozen=True, slots=True)
class Size:
    """A quantity that depends on the sizes: its number at the sizes given, and its polynomial."""

    value: Number
    formula: Polynomial

    def __add__(self, other: Size) -> Size:
        return Size(exact(self.value + other.value), self.formula + other.formula)

    def __sub__(self, other: Size) -> Size:
        return Size(exact(self.value - other.value), self.formula - other.formula)

    def __mul__(self, other: Size) -> Size:
        return Size(exact(self.value * other.value), self.formula * other.formula)

    def scaled(self, factor: Number) -> Size:
        """The product with a number."""
        return self if factor == 1 else Size(exact(self.value * factor), self.formula.scaled(factor))

    def __abs__(self) -> Size:
        return self if self.value >= 0 else self.scaled(-1)

    @property
    def magnitude(self) -> Number:
        """The number without its sign."""
        return self.value if self.value >= 0 else -self.value


def fixed(value: Number) -> Size:
    """A size that is the same for all sizes."""
    return Size(exact(value), constant(exact(value)))


def sized(formula: Polynomial, values: Mapping[str, Number]) -> Size:
    """A polynomial with its number where each generator has its value."""
    return Size(formula.value(values), formula)


NOTHING = fixed(0)
ONE = fixed(1)


def total(sizes: Iterable[Size]) -> Size:
    """Their sum."""
    return reduce(add, sizes, NOTHING)


def product(sizes: Iterable[Size]) -> Size:
    """Their product."""
    return reduce(mul, sizes, ONE)


def smaller(left: Size, right: Size) -> Size:
    """The one with the smaller number (the first if equal): where a formula depends on which it is, numbers decide."""
    return left if left.value <= right.value else right


@dataclass(frozen=True, slots=True)
class Rate:
    """A count per iteration, numerator over denominator, both depending on the sizes."""

    numerator: Size
    denominator: Size

    @property
    def value(self) -> Fraction:
        """The number."""
        return Fraction(self.numerator.value, self.denominator.value)

    def __add__(self, other: Rate) -> Rate:
        if not other.numerator.value:
            return self
        if not self.numerator.value:
            return other
        if self.denominator == other.denominator:
            return Rate(self.numerator + other.numerator, self.denominator)
        numerator = self.numerator * other.denominator + other.numerator * self.denominator
        return Rate(numerator, self.denominator * other.denominator)

    def times(self, factor: Size) -> Rate:
        """The product with a size."""
        return Rate(self.numerator * factor, self.denominator)


NEVER = Rate(NOTHING, ONE)


def formula_of_sum(rates: Iterable[Rate], generators: Generators) -> sympy.Expr:
    """The sum of rates as an expression, one fraction per denominator."""
    fractions: dict[frozenset[tuple[Monomial, Number]], tuple[Polynomial, Polynomial]] = {}
    for rate in rates:
        divisor = rate.denominator.formula
        numerator, _ = fractions.get(divisor.key(), (ZERO, divisor))
        fractions[divisor.key()] = (numerator + rate.numerator.formula, divisor)
    return sympy.Add(*(_quotient(n, d, generators) for n, d in fractions.values() if n.terms))


def _quotient(numerator: Polynomial, divisor: Polynomial, generators: Generators) -> sympy.Expr:
    quotient = numerator.expression(generators) / divisor.expression(generators)
    # common factors are rare and cancelling is slow
    return quotient if numerator.is_constant or divisor.is_constant else _cancelled(quotient)


@lru_cache(maxsize=256)
def _cancelled(quotient: sympy.Expr) -> sympy.Expr:
    """A fraction without common factors; caches that miss the same have the same."""
    return sympy.cancel(quotient)
