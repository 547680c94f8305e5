"""Sets of integer points between affine bounds: their projections, and sums over them in closed form.

A set is given by constraints, affine forms that are not negative in it. Variables are eliminated by the method of
Fourier and Motzkin, sums over a variable are those of powers (Faulhaber); where two bounds of a variable cross, the set
is divided there. Numbers decide which bound counts; the result is a polynomial in the sizes. Bounds with fractions of
variables are rounded on average.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, comb, floor, gcd, lcm

from kernmodel.formulas.division import by_powers
from kernmodel.formulas.formula import ONE, ZERO, Formula, Symbol, total
from kernmodel.formulas.terms import Monomial, Number, exact
from kernmodel.traffic.conditions.quantities import Size, fixed, sized
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Linear:
    """Σ coefficient × variable + constant; no coefficient is 0."""

    terms: Mapping[str, Number]
    constant: Size

    def __hash__(self) -> int:
        return hash((frozenset(self.terms.items()), self.constant.value))

    def __add__(self, other: Linear) -> Linear:
        terms = dict(self.terms)
        for name, coefficient in other.terms.items():
            summed = exact(terms.pop(name, 0) + coefficient)
            if summed:
                terms[name] = summed
        return Linear(terms, self.constant + other.constant)

    def __sub__(self, other: Linear) -> Linear:
        return self + other.scaled(-1)

    def scaled(self, factor: Number) -> Linear:
        """The product with a number that is not 0."""
        if factor == 1:
            return self
        return Linear({name: exact(c * factor) for name, c in self.terms.items()}, self.constant.scaled(factor))

    def plus(self, number: Number) -> Linear:
        """The sum with a number."""
        return Linear(self.terms, self.constant + fixed(number)) if number else self

    def with_variable(self, name: str, form: Linear) -> Linear:
        """The same with a form in the place of a variable."""
        factor = self.terms.get(name)
        if not factor:
            return self
        rest = Linear({other: c for other, c in self.terms.items() if other != name}, self.constant)
        return rest + form.scaled(factor)

    def at(self, point: Mapping[str, Number]) -> Number:
        """Its number at a point."""
        return sum((c * point[name] for name, c in self.terms.items()), start=self.constant.value)

    @property
    def formula(self) -> Formula:
        """The same as a formula in variables and sizes."""
        parts: dict[Monomial, Number] = {((Symbol(name), 1),): coefficient for name, coefficient in self.terms.items()}
        return Formula(parts) + self.constant.formula


def variable(name: str) -> Linear:
    """A variable by itself."""
    return Linear({name: 1}, fixed(0))


def bound_on(constraint: Linear, name: str) -> Linear:
    """The bound that a constraint sets to a variable in it: a lower one where its coefficient is positive."""
    factor = constraint.terms[name]
    rest = Linear({other: c for other, c in constraint.terms.items() if other != name}, constraint.constant)
    return rest.scaled(-factor if factor in (1, -1) else Fraction(-1) / factor)


def _rounded(bound: Linear, sign: int) -> Linear:
    """A bound moved to the next integer (`sign` 1 up, −1 down): on average over its variables, where these have
    fractions for coefficients."""
    common = lcm(*(c.denominator for c in bound.terms.values()))
    if common > 1:
        return bound.plus(Fraction(sign * (common - 1), 2 * common))
    number = bound.constant.value
    if type(number) is int:
        return bound
    return bound.plus((ceil(number) if sign > 0 else floor(number)) - number)


def tidied(constraints: Iterable[Linear]) -> tuple[Linear, ...]:
    """The constraints without those that others imply at first sight, with coprime integer coefficients."""
    tightest: dict[frozenset[tuple[str, Number]], Linear] = {}
    for constraint in constraints:
        one = coprime(constraint)
        if not one.terms and one.constant.value >= 0:
            continue
        key = frozenset(one.terms.items())
        known = tightest.get(key)
        if known is None or one.constant.value < known.constant.value:
            tightest[key] = one
    return tuple(tightest.values())


def coprime(constraint: Linear) -> Linear:
    """A constraint with coprime integer coefficients; if its constant is a number, rounded down to an integer."""
    coefficients = constraint.terms.values()
    if not coefficients:
        return constraint
    scaled = constraint
    if any(type(c) is not int for c in coefficients) or not (1 in coefficients or -1 in coefficients):
        common = lcm(*(c.denominator for c in coefficients))
        divisor = gcd(*(int(c * common) for c in coefficients))
        scaled = constraint if common == divisor else constraint.scaled(exact(Fraction(common, divisor)))
    number = scaled.constant
    if type(number.value) is not int and number.formula.is_constant:
        return Linear(scaled.terms, fixed(floor(number.value)))
    return scaled


def beyond(constraint: Linear) -> Linear:
    """The constraint of the points that do not meet this one, whose coefficients are integers."""
    part = Fraction(constraint.constant.value) % 1
    return constraint.scaled(-1).plus(part - 1)


def without(constraints: Sequence[Linear], name: str) -> tuple[Linear, ...]:
    """The projection of a set along a variable."""
    lower = [c for c in constraints if c.terms.get(name, 0) > 0]
    upper = [c for c in constraints if c.terms.get(name, 0) < 0]
    rest = [c for c in constraints if name not in c.terms]
    pairs = (low.scaled(-high.terms[name]) + high.scaled(low.terms[name]) for low in lower for high in upper)
    return tidied([*rest, *pairs])


@dataclass(frozen=True, slots=True)
class Limit:
    """The bound of a variable that counts, in the middle of the set if not everywhere: then `crossed`, a form with
    integer coefficients, is not negative on one side of the place where another bound takes over."""

    form: Linear
    crossed: Linear | None


class AffineSet:
    """A set of points with an order of its variables.

    Sets that are made of one another (`like` and what calls it) are one object where they are equal, so that what was
    found out about one is known: the images of references have the same projections and parts over and over again.

    Attributes:
        variables: outermost first.
        constraints: forms that are not negative in it.
    """

    def __init__(
        self,
        variables: Sequence[str],
        constraints: Iterable[Linear],
        known: dict[tuple[object, ...], AffineSet] | None = None,
    ) -> None:
        self.variables = tuple(variables)
        self.constraints = tidied(constraints)
        self._known = {} if known is None else known
        self._bounds: dict[str, tuple[list[Linear], list[Linear]]] = {}
        self._limits: dict[str, tuple[Limit, Limit]] = {}
        self._least: dict[Linear, Number | None] = {}
        self._parts: dict[tuple[Linear, ...], AffineSet] = {}
        self._alone: dict[tuple[str, int], AffineSet] = {}
        self._sums: dict[int, tuple[Piece, ...]] = {}

    def like(self, variables: Sequence[str], constraints: Iterable[Linear]) -> AffineSet:
        """Another set; the same object for the same set."""
        made = AffineSet(variables, constraints, self._known)
        return self._known.setdefault((made.variables, made.constraints), made)

    @cached_property
    def key(self) -> object:
        """Equal for sets of the same constraints at the same sizes."""
        return frozenset((frozenset(c.terms.items()), c.constant.value) for c in self.constraints)

    @cached_property
    def outer(self) -> AffineSet:
        """The projection along the last variable."""
        return self.like(self.variables[:-1], without(self.constraints, self.variables[-1]))

    @cached_property
    def is_empty(self) -> bool:
        """Whether no point is in it."""
        if any(not c.terms for c in self.constraints):  # tidied: what has no variable and is left is negative
            return True
        return bool(self.variables) and self.outer.is_empty

    def within(self, *more: Linear) -> AffineSet:
        """The part in which these forms are not negative either."""
        if more not in self._parts:
            self._parts[more] = self.like(self.variables, (*self.constraints, *more)) if more else self
        return self._parts[more]

    def has(self, point: Mapping[str, Number]) -> bool:
        """Whether a point is in it."""
        return all(constraint.at(point) >= 0 for constraint in self.constraints)

    def onto(self, count: int) -> AffineSet:
        """The projection onto the outermost variables."""
        return self if len(self.variables) <= count else self.outer.onto(count)

    def alone(self, name: str, count: int) -> AffineSet:
        """The projection onto the outermost variables, so many, and one of those further in."""
        if (name, count) not in self._alone:
            constraints = self.constraints
            for other in self.variables[count:]:
                constraints = constraints if other == name else without(constraints, other)
            self._alone[name, count] = self.like((*self.variables[:count], name), constraints)
        return self._alone[name, count]

    def ending_with(self, name: str) -> AffineSet:
        """The same set, with a variable in the last place."""
        if self.variables[-1] == name:
            return self
        return self.like((*(other for other in self.variables if other != name), name), self.constraints)

    def bounds(self, name: str) -> tuple[list[Linear], list[Linear]]:
        """The lower and upper bounds that constraints set to a variable."""
        if name not in self._bounds:
            low = [_rounded(bound_on(c, name), 1) for c in self.constraints if c.terms.get(name, 0) > 0]
            high = [_rounded(bound_on(c, name), -1) for c in self.constraints if c.terms.get(name, 0) < 0]
            self._bounds[name] = low, high
        return self._bounds[name]

    def least(self, form: Linear) -> Number | None:
        """A number that a form does not fall below in the set, as large as bounds show; None where none is known."""
        if not form.terms:
            return form.constant.value
        if form not in self._least:
            self._least[form] = self._found_least(form)
        return self._least[form]

    def _found_least(self, form: Linear) -> Number | None:
        last = self.variables[-1]
        if last not in form.terms:
            return self.outer.least(form)
        low, high = self.bounds(last)
        bounds = low if form.terms[last] > 0 else high
        found = [self.outer.least(form.with_variable(last, bound)) for bound in bounds]
        return max((number for number in found if number is not None), default=None)

    def limits(self, name: str) -> tuple[Limit, Limit]:
        """The lower and the upper bound of the last variable that count."""
        if name not in self._limits:
            low, high = self.bounds(name)
            self._limits[name] = self._limit(low, 1), self._limit(high, -1)
        return self._limits[name]

    def _limit(self, bounds: Sequence[Linear], sign: int) -> Limit:
        kept, crossed = list(bounds), None
        while len(kept) > 1:
            difference = (kept[0] - kept[1]).scaled(sign)
            above, below = self.outer.least(difference), self.outer.least(difference.scaled(-1))
            if above is not None and above >= 0:
                kept.pop(1)
            elif below is not None and below >= 0:
                kept.pop(0)
            else:
                crossed = crossed or coprime(difference)
                kept.pop(1 if difference.at(self.outer.middle) >= 0 else 0)
        return Limit(kept[0], crossed)

    def count(self, parameters: int) -> tuple[Piece, ...]:
        """The number of its points, as polynomials in the sizes and the first so many variables."""
        if parameters == len(self.variables):
            return () if self.is_empty else (Piece(self, ONE),)
        if parameters not in self._sums:
            further = self.count(parameters + 1)
            self._sums[parameters] = tuple(part for piece in further for part in _sum(piece.where, piece.formula))
        return self._sums[parameters]

    @cached_property
    def middle(self) -> Mapping[str, Number]:
        """A point in the middle of its variables' ranges, each taken in the middle of those before."""
        if not self.variables:
            return {}
        point, last = dict(self.outer.middle), self.variables[-1]
        low, high = self.bounds(last)
        ends = max(bound.at(point) for bound in low), min(bound.at(point) for bound in high)
        point[last] = max(floor(Fraction(sum(ends)) / 2), ends[0])
        return point


@dataclass(frozen=True, slots=True)
class Piece:
    """A sum where the parameters are in a set."""

    where: AffineSet
    formula: Formula


def total_of(pieces: Iterable[Piece], values: Mapping[str, int]) -> Size:
    """The sum of pieces without parameters, with its number at these sizes."""
    return sized(total(piece.formula for piece in pieces), values)


def _sum(points: AffineSet, weight: Formula) -> list[Piece]:
    """The sum of a weight over the last variable."""
    if points.is_empty:
        return []
    last = points.variables[-1]
    low, high = points.limits(last)
    for limit in (low, high):
        if limit.crossed is not None:
            sides = limit.crossed, beyond(limit.crossed)
            return [piece for side in sides for piece in _sum(points.within(side), weight)]
    return [Piece(points.outer, power_sum(weight, last, low.form.formula, high.form.formula))]


def power_sum(weight: Formula, name: str, low: Formula, high: Formula) -> Formula:
    """Σ of a polynomial over an integer variable from `low` to `high`."""
    before, result = low - 1, ZERO
    for power, factor in enumerate(by_powers(weight, name)):
        if factor:
            series = faulhaber(power)
            result += factor * (_horner(series, high) - _horner(series, before))
    return result


@lru_cache(maxsize=32)
def faulhaber(power: int) -> tuple[Fraction, ...]:
    """Coefficients, constant first, of the polynomial in n that is the sum of i^power over i from 1 to n.

    From (n + 1)^(p + 1) − 1 = Σ over m ≤ p of binomial(p + 1, m) Σ i^m, the inner sums over i from 1 to n.
    """
    series = [Fraction(comb(power + 1, k)) for k in range(power + 2)]
    series[0] -= 1
    for lower in range(power):
        for k, coefficient in enumerate(faulhaber(lower)):
            series[k] -= comb(power + 1, lower) * coefficient
    return tuple(coefficient / (power + 1) for coefficient in series)


def _horner(series: Sequence[Fraction], argument: Formula) -> Formula:
    result = ZERO
    for coefficient in reversed(series):
        result = result * argument + coefficient
    return result
