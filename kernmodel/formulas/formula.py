"""Exact formulas in sizes and loop variables.

A formula is a sum of products of powers with rational coefficients: a polynomial in its *atoms*. An atom is a symbol (a
size, a loop variable, a value from an index array) or a whole that is no polynomial: a floor, a maximum, a minimum, or
a sum that divides. Products are multiplied out and maxima are pruned as they are made, so that equal polynomials are
equal values, and a formula's text tells it.

Thousands of formulas are made for one kernel, each with a few terms: general computer algebra would take longer for
them than all the rest of an analysis. Where it is wanted, `sympy.sympify(formula)` gives the same as an expression
of sympy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import reduce
from math import floor, lcm
from operator import mul
from typing import Literal

from kernmodel.formulas.terms import (
    SUM,
    SYMBOL,
    Atom,
    Counted,
    Monomial,
    Number,
    Order,
    Terms,
    exact,
    order_of,
    text_of,
    times,
)

Kind = Literal["floor", "max", "min", "sum"]
_NUMBERS = (int, Fraction)
_ORDER: Mapping[Kind, tuple[int, int, str]] = {
    "floor": (4, 10000, "floor"),
    "max": (5, 0, "Max"),
    "min": (5, 0, "Min"),
    "sum": SUM,
}


class Symbol(Atom):
    """The name of an unknown integer; a `positive` one is a size, others are loop variables and values in memory."""

    __slots__ = ("positive",)
    positive: bool

    def __new__(cls, name: str, positive: bool = False) -> Symbol:
        """A symbol of this name."""
        made = super().__new__(cls, name)
        made.order, made.positive = (SYMBOL, (1, (str(name),)), 1, 1), positive
        return made

    def __reduce__(self) -> tuple[type[Symbol], tuple[str, bool]]:
        return Symbol, (str(self), self.positive)


class Whole(Atom):
    """What is no polynomial in a formula: the floor, the maximum or the minimum of `parts`, or a sum that divides."""

    __slots__ = ("kind", "parts")
    kind: Kind
    parts: tuple[Formula, ...]

    def __new__(cls, kind: Kind, parts: tuple[Formula, ...]) -> Whole:
        """The whole of these parts, in the order of their text."""
        parts = tuple(sorted(parts, key=lambda part: part.order)) if len(parts) > 1 else parts
        text = ", ".join(map(str, parts))
        made = super().__new__(cls, text if kind == "sum" else f"{_ORDER[kind][2]}({text})")
        made.kind, made.parts = kind, parts
        made.order = (
            parts[0].order if kind == "sum" else (_ORDER[kind], (len(parts), tuple(p.order for p in parts)), 1, 1)
        )
        return made

    def __reduce__(self) -> tuple[type[Whole], tuple[Kind, tuple[Formula, ...]]]:
        return Whole, (self.kind, self.parts)

    def of(self, parts: Iterable[Formula]) -> Formula:
        """The same of other parts."""
        return _MADE[self.kind](*parts)

    def value(self, values: Mapping[str, Number]) -> Number:
        """The number where each symbol has its value."""
        return _VALUES[self.kind](part.value(values) for part in self.parts)


class Formula:
    """Σ coefficient × monomial. Do not change `terms`: formulas are values.

    Arithmetic takes numbers beside formulas, and multiplies out. A quotient of formulas has its divisor as one atom;
    `fraction` in `kernmodel.formulas.division` cancels.
    """

    __slots__ = ("_hash", "terms")
    _hash: int
    terms: Terms

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    # Values

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Formula):
            return self.terms == other.terms
        return self.is_constant and self.number == other if isinstance(other, _NUMBERS) else NotImplemented

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            self._hash = hash(self.number) if self.is_constant else hash(frozenset(self.terms.items()))
            return self._hash

    def __reduce__(self) -> tuple[type[Formula], tuple[Terms]]:
        return Formula, (self.terms,)  # hashes of names are those of one process

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __str__(self) -> str:
        return text_of(self.terms)

    __repr__ = __str__

    def _sympy_(self) -> object:
        """The same for `sympy.sympify`; sizes are positive integers there, all other symbols integers."""
        from kernmodel.formulas.to_sympy import expression

        return expression(self)

    @property
    def order(self) -> Order:
        """The key that sorts it among others."""
        return order_of(self.terms)

    @property
    def is_constant(self) -> bool:
        """Whether no symbol appears in it."""
        return not self.terms or (len(self.terms) == 1 and () in self.terms)

    @property
    def number(self) -> Number:
        """The number that a constant is.

        Raises:
            ValueError: it is none.
        """
        if not self.is_constant:
            raise ValueError(f"{self} is no number")
        return self.terms.get((), 0)

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole number."""
        return self.is_constant and isinstance(self.number, int)

    def __int__(self) -> int:
        return int(self.number)

    def __float__(self) -> float:
        return float(self.number)

    @property
    def atoms(self) -> set[Atom]:
        """The symbols and wholes that its terms hold."""
        return {atom for monomial in self.terms for atom, _ in monomial}

    @property
    def wholes(self) -> set[Whole]:
        """The wholes among its atoms, with those inside of them."""
        own = {atom for atom in self.atoms if isinstance(atom, Whole)}
        return own.union(*(part.wholes for atom in own for part in atom.parts))

    @property
    def free_symbols(self) -> set[Symbol]:
        """Its symbols, with those inside of wholes."""
        atoms = self.atoms
        own = {atom for atom in atoms if isinstance(atom, Symbol)}
        return own.union(*(part.free_symbols for atom in atoms if isinstance(atom, Whole) for part in atom.parts))

    @property
    def of_sizes(self) -> bool:
        """Whether all its symbols are sizes, so that no loop moves it."""
        return all(symbol.positive for symbol in self.free_symbols)

    @property
    def extreme(self) -> Whole | None:
        """The maximum or minimum that it is, None where it is no such or more than that."""
        (monomial, coefficient), *others = self.terms.items() or [((), 0)]
        if others or coefficient != 1 or len(monomial) != 1 or monomial[0][1] != 1:
            return None
        atom = monomial[0][0]
        return atom if isinstance(atom, Whole) and atom.kind in ("max", "min") else None

    def holds(self, *kinds: Kind) -> bool:
        """Whether a whole of these kinds is in it, at any depth."""
        return any(whole.kind in kinds for whole in self.wholes)

    # Arithmetic

    def __add__(self, other: Formula | Number) -> Formula:
        added = other if isinstance(other, Formula) else _lifted(other)
        if added is None:
            return NotImplemented
        if not added.terms:
            return self
        if not self.terms:
            return added
        terms = dict(self.terms)
        for monomial, coefficient in added.terms.items():
            summed = exact(terms.get(monomial, 0) + coefficient)
            if summed:
                terms[monomial] = summed
            else:
                del terms[monomial]
        return Formula(terms)

    __radd__ = __add__

    def __neg__(self) -> Formula:
        return self.scaled(-1)

    def __sub__(self, other: Formula | Number) -> Formula:
        return self + (-other)

    def __rsub__(self, other: Number) -> Formula:
        return self.scaled(-1) + other

    def __mul__(self, other: Formula | Number) -> Formula:
        if not isinstance(other, Formula):
            return self.scaled(other) if isinstance(other, _NUMBERS) else NotImplemented
        if other.is_constant:
            return self.scaled(other.terms.get((), 0))
        if self.is_constant:
            return other.scaled(self.terms.get((), 0))
        terms: dict[Monomial, Number] = {}
        for left, a in self.terms.items():
            for right, b in other.terms.items():
                monomial = times(left, right)
                terms[monomial] = exact(terms.get(monomial, 0) + a * b)
        return Formula({monomial: c for monomial, c in terms.items() if c})

    __rmul__ = __mul__

    def __truediv__(self, other: Formula | Number) -> Formula:
        if isinstance(other, Formula):
            return self * _reciprocal(other)
        return self.scaled(Fraction(1) / other)

    def __rtruediv__(self, other: Number) -> Formula:
        return _reciprocal(self).scaled(other)

    def __pow__(self, exponent: int) -> Formula:
        whole = reduce(mul, [self] * abs(exponent), ONE)
        return whole if exponent >= 0 else _reciprocal(whole)

    def scaled(self, factor: Number) -> Formula:
        """The product with a number."""
        if factor == 1:
            return self
        return Formula({m: exact(c * factor) for m, c in self.terms.items()}) if factor else ZERO

    # What is asked of formulas

    def value(self, values: Mapping[str, Number]) -> Number:
        """The number where each symbol has its value.

        Raises:
            KeyError: a symbol has none.
        """
        found: Number = 0
        for monomial, coefficient in self.terms.items():
            term = coefficient
            for atom, exponent in monomial:
                known = atom.value(values) if isinstance(atom, Whole) else values[atom]
                term = term * known**exponent if exponent > 0 else term / Fraction(known) ** -exponent
            found += term
        return exact(found)

    def substitute(self, values: Mapping[str, Formula | Number]) -> Formula:
        """The formula with others in place of symbols, floors, maxima and minima, all at once."""
        if values.keys().isdisjoint(self.free_symbols) and not any(isinstance(atom, Whole) for atom in values):
            return self
        parts = []
        for monomial, coefficient in self.terms.items():
            kept = tuple(item for item in monomial if not isinstance(item[0], Whole) and item[0] not in values)
            part = Formula({kept: coefficient})
            for atom, exponent in monomial if len(kept) < len(monomial) else ():
                if atom in values:
                    part *= as_formula(values[atom]) ** exponent
                elif isinstance(atom, Whole):
                    part *= atom.of(inner.substitute(values) for inner in atom.parts) ** exponent
            parts.append(part)
        return total(parts)

    def linear(self, names: Collection[str]) -> Linear | None:
        """Coefficients of these symbols, as far as they appear, and the rest; None if it is not affine in them."""
        coefficients: dict[str, Formula] = {}
        rest: dict[Monomial, Number] = {}
        for monomial, number in self.terms.items():
            moving = [item for item in monomial if _moves(item[0], names)]
            if not moving:
                rest[monomial] = number
                continue
            atom, exponent = moving[0]
            if len(moving) > 1 or exponent != 1 or isinstance(atom, Whole):
                return None
            factor = Formula({tuple(item for item in monomial if item is not moving[0]): number})
            coefficients[atom] = coefficients[atom] + factor if atom in coefficients else factor
        return coefficients, Formula(rest)


class LateFormula(Formula):
    """A formula that is made when somebody looks at it: of most numbers nobody asks for the formula."""

    __slots__ = ("_make",)
    _make: Callable[[], Formula]

    def __init__(self, make: Callable[[], Formula]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Terms:
        if name != "terms":
            raise AttributeError(name)
        self.terms = self._make().terms
        del self._make
        return self.terms


Linear = tuple[dict[str, Formula], Formula]


def _moves(atom: Atom, names: Collection[str]) -> bool:
    if isinstance(atom, Whole):
        return any(symbol in names for part in atom.parts for symbol in part.free_symbols)
    return atom in names


def _lifted(value: object) -> Formula | None:
    return constant(value) if isinstance(value, _NUMBERS) else None


def _reciprocal(divisor: Formula) -> Formula:
    """1 / divisor.

    Raises:
        ZeroDivisionError: it is 0.
    """
    if not divisor.terms:
        raise ZeroDivisionError("division of a formula by zero")
    if len(divisor.terms) > 1:
        return Formula({((Whole("sum", (divisor,)), -1),): 1})
    ((monomial, coefficient),) = divisor.terms.items()
    return Formula({tuple((atom, -exponent) for atom, exponent in monomial): exact(1 / Fraction(coefficient))})


# Making formulas

ZERO = Formula({})
ONE = Formula({(): 1})


def constant(value: Number) -> Formula:
    """A number as a formula."""
    return Formula({(): exact(value)}) if value else ZERO


def counted(value: float) -> Formula:
    """A number that was counted, which is written as a decimal fraction: 0.0 too."""
    return Formula({(): Counted(value)})


def as_formula(value: Formula | Number) -> Formula:
    """The formula, or that of a number."""
    return value if isinstance(value, Formula) else constant(value)


def of_atom(atom: Atom) -> Formula:
    """The formula that is this atom."""
    return Formula({((atom, 1),): 1})


def size(name: str) -> Formula:
    """A size: a positive integer."""
    return of_atom(Symbol(name, True))


def variable(name: str) -> Formula:
    """An integer: a loop variable or a value in memory."""
    return of_atom(Symbol(name))


def total(parts: Iterable[Formula]) -> Formula:
    """Their sum."""
    return sum(parts, start=ZERO)


def product(parts: Iterable[Formula]) -> Formula:
    """Their product."""
    return reduce(mul, parts, ONE)


def floored(formula: Formula) -> Formula:
    """The greatest integer that is not above the formula; its whole parts stand outside."""
    inside = {m: c for m, c in formula.terms.items() if not (isinstance(c, int) and all(map(_whole_power, m)))}
    outside = Formula({m: c for m, c in formula.terms.items() if m not in inside})
    if not inside:
        return outside
    if list(inside) == [()]:
        return outside + floor(inside[()])
    return outside + of_atom(Whole("floor", (Formula(inside),)))


def _whole_power(power: tuple[Atom, int]) -> bool:
    """Whether a power of an atom is an integer for all sizes."""
    atom, exponent = power
    return exponent > 0 and (not isinstance(atom, Whole) or atom.kind == "floor" or all(map(_whole, atom.parts)))


def _whole(formula: Formula) -> bool:
    return all(isinstance(c, int) and all(map(_whole_power, m)) for m, c in formula.terms.items())


def maximum(*parts: Formula | Number) -> Formula:
    """The largest of some formulas, without those that are provably not above another."""
    return _extreme("max", parts)


def minimum(*parts: Formula | Number) -> Formula:
    """The smallest of some formulas, without those that are provably not below another."""
    return _extreme("min", parts)


def _extreme(kind: Literal["max", "min"], parts: Iterable[Formula | Number]) -> Formula:
    kept: list[Formula] = []
    for part in dict.fromkeys(_flat(kind, map(as_formula, parts))):
        if any(_covers(kind, other, part) for other in kept):
            continue
        kept = [other for other in kept if not _covers(kind, part, other)] + [part]
    return of_atom(Whole(kind, tuple(kept))) if len(kept) > 1 else kept[0]


def _flat(kind: Kind, parts: Iterable[Formula]) -> Iterator[Formula]:
    for part in parts:
        inner = part.extreme
        yield from inner.parts if inner is not None and inner.kind == kind else (part,)


def _covers(kind: Kind, one: Formula, other: Formula) -> bool:
    return at_least(one, other) if kind == "max" else at_least(other, one)


def at_least(one: Formula, other: Formula) -> bool:
    """Whether a formula is provably not below another, for all sizes."""
    upper, lower = one.extreme, other.extreme
    if upper is not None and (any if upper.kind == "max" else all)(at_least(part, other) for part in upper.parts):
        return True
    if lower is not None and (any if lower.kind == "min" else all)(at_least(one, part) for part in lower.parts):
        return True
    return nonnegative(one - other)


def nonnegative(formula: Formula) -> bool:
    """Whether a formula is provably ≥ 0 for all sizes, which are positive integers.

    Sufficient: written in N − 1, M − 1, … (each ≥ 0) it has no negative coefficient, as it is or with what bounds its
    floors in their place.
    """
    if formula.is_constant:
        return formula.number >= 0
    found = _no_negative_term(formula.substitute({symbol: of_atom(symbol) + 1 for symbol in formula.free_symbols}))
    below = formula if found else _without_floors(formula)
    return found or (below != formula and nonnegative(below))


def _without_floors(formula: Formula) -> Formula:
    """A formula that is nowhere above this one: x for a floor(x) that is subtracted, less than x by what division by d
    leaves at most, (d − 1)/d, for one that is added."""
    parts = []
    for monomial, coefficient in formula.terms.items():
        floors = [(atom, exponent) for atom, exponent in monomial if isinstance(atom, Whole) and atom.kind == "floor"]
        single = len(floors) == 1 and floors[0][1] == 1
        bounded = single if coefficient > 0 else all(_never_negative(atom) for atom, _ in floors)
        part = Formula({tuple(item for item in monomial if item not in floors or not bounded): coefficient})
        for atom, exponent in floors if bounded else ():
            inside = atom.parts[0]
            divisor = lcm(*(number.denominator for number in inside.terms.values()))
            part *= (inside if coefficient < 0 else inside - Fraction(divisor - 1, divisor)) ** exponent
        parts.append(part)
    return total(parts)


def positive(formula: Formula) -> bool:
    """Whether an integer formula is provably ≥ 1 for all sizes."""
    return nonnegative(formula - 1)


def _no_negative_term(shifted: Formula) -> bool:
    """Whether all is ≥ 0 in a formula whose sizes may be 0."""
    return all(c >= 0 and all(_never_negative(atom) for atom, _ in monomial) for monomial, c in shifted.terms.items())


def _never_negative(atom: Atom) -> bool:
    if isinstance(atom, Whole):
        return (any if atom.kind == "max" else all)(map(_no_negative_term, atom.parts))
    return isinstance(atom, Symbol) and atom.positive


def pushed_in(formula: Formula) -> Formula:
    """`min(a, b) + c` as `min(a + c, b + c)`: minima and maxima brought outside, so that their parts are affine."""
    for monomial, factor in formula.terms.items():
        inner = Formula({monomial: 1}).extreme
        if inner is not None:
            others = Formula({other: c for other, c in formula.terms.items() if other != monomial})
            outside = maximum if (inner.kind == "max") == (factor > 0) else minimum
            return outside(*(pushed_in(others + part.scaled(factor)) for part in inner.parts))
    return formula


_VALUES: Mapping[Kind, Callable[[Iterator[Number]], Number]] = {
    "floor": lambda parts: floor(next(parts)),
    "max": max,
    "min": min,
    "sum": next,
}
_MADE: Mapping[Kind, Callable[..., Formula]] = {
    "floor": floored,
    "max": maximum,
    "min": minimum,
    "sum": lambda part: part,
}
