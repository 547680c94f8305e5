"""Sizes that carry their formula and their number together, and rates of them.

Layer conditions decide by numbers and answer with formulas, thousands of times in a sweep.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import reduce
from operator import add, mul

from kernmodel.formulas import formula as formulas
from kernmodel.formulas.division import fraction
from kernmodel.formulas.formula import ZERO, Formula, constant
from kernmodel.formulas.terms import Number, exact
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """A quantity that depends on the sizes: its number at the sizes given, and its formula."""

    value: Number
    formula: Formula

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


def sized(formula: Formula, values: Mapping[str, Number]) -> Size:
    """A formula with its number where each symbol has its value."""
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

    def __sub__(self, other: Rate) -> Rate:
        return self + Rate(other.numerator.scaled(-1), other.denominator)

    def times(self, factor: Size) -> Rate:
        """The product with a size."""
        return Rate(self.numerator * factor, self.denominator)


NEVER = Rate(NOTHING, ONE)


def formula_of_sum(rates: Iterable[Rate]) -> Formula:
    """The sum of rates, one fraction per denominator."""
    fractions: dict[Formula, Formula] = {}
    for rate in rates:
        divisor = rate.denominator.formula
        fractions[divisor] = fractions.get(divisor, ZERO) + rate.numerator.formula
    return formulas.total(fraction(numerator, divisor) for divisor, numerator in fractions.items() if numerator)
