"""Formulas against sympy: the same values, the same text, the same pruned maxima, floors and fractions."""

from __future__ import annotations

import pickle
from fractions import Fraction
from math import floor

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.formulas.division import common_divisor, divided, exact_quotient, fraction, whole_quotient
from kernmodel.formulas.formula import (
    ONE,
    Formula,
    LateFormula,
    at_least,
    counted,
    floored,
    maximum,
    minimum,
    nonnegative,
    pushed_in,
    size,
    total,
    variable,
)

FEW = settings(max_examples=30, deadline=None)
N, M, ROW = size("N"), size("M"), variable("i")
SYMBOLS = {"N": sympy.Symbol("N", integer=True, positive=True), "M": sympy.Symbol("M", integer=True, positive=True)}
SYMBOLS["i"] = sympy.Symbol("i", integer=True)
VALUES = st.fixed_dictionaries({"N": st.integers(1, 50), "M": st.integers(1, 50), "i": st.integers(-20, 20)})
NUMBERS = st.one_of(st.integers(-9, 9), st.fractions(-5, 5, max_denominator=6))
SIZES = st.sampled_from([N, M])


def polynomials(
    atoms: st.SearchStrategy[Formula], numbers: st.SearchStrategy[Fraction | int]
) -> st.SearchStrategy[Formula]:
    """Sums of up to four products."""
    factors = st.lists(atoms, max_size=3)
    terms = st.tuples(numbers, factors).map(lambda term: total([_product(term[1]).scaled(term[0])]))
    return st.lists(terms, max_size=4).map(total)


def _product(factors: list[Formula]) -> Formula:
    found = ONE
    for factor in factors:
        found = found * factor
    return found


POLYNOMIALS = polynomials(st.sampled_from([N, M, ROW]), NUMBERS)
WHOLE = polynomials(st.sampled_from([N, M]), st.integers(-6, 6))
NONZERO = WHOLE.filter(bool)
NESTED = st.recursive(
    POLYNOMIALS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: maximum(*two)),
        st.tuples(inner, inner).map(lambda two: minimum(*two) + N),
        inner.map(floored),
        st.tuples(inner, inner).map(lambda two: two[0] - two[1].scaled(2)),
    ),
    max_leaves=4,
)


def number(expression: sympy.Expr, values: dict[str, int]) -> Fraction:
    """The value of an expression of sympy."""
    found = sympy.Rational(expression.xreplace({SYMBOLS[name]: sympy.Integer(value) for name, value in values.items()}))
    return Fraction(int(found.p), int(found.q))


@FEW
@given(POLYNOMIALS, POLYNOMIALS)
def test_sums_and_products_are_those_of_sympy(one: Formula, other: Formula) -> None:
    left, right = sympy.sympify(one), sympy.sympify(other)
    for made, expected in ((one + other, left + right), (one * other, left * right), (one - other, left - right)):
        assert sympy.sympify(made) == sympy.expand(expected)
        assert str(made) == str(sympy.expand(expected))
    assert (one == other) == (left == right)
    assert one != other or hash(one) == hash(other)


@FEW
@given(NESTED, VALUES)
def test_text_and_value_are_those_of_sympy(formula: Formula, values: dict[str, int]) -> None:
    expected = formula.value(values)
    assert number(sympy.sympify(str(formula), SYMBOLS), values) == expected
    assert number(sympy.sympify(formula), values) == expected
    assert formula.substitute(values) == expected


@FEW
@given(NESTED, POLYNOMIALS, VALUES)
def test_substitution_puts_values_in(formula: Formula, put: Formula, values: dict[str, int]) -> None:
    inside = {**values, "N": put.value(values)}
    assert formula.substitute({"N": put}).value(values) == formula.value(inside)


@FEW
@given(WHOLE, NONZERO)
def test_fractions_are_written_as_sympy_cancels_them(numerator: Formula, divisor: Formula) -> None:
    above, below = sympy.sympify(numerator), sympy.sympify(divisor)
    expected = above / below if numerator.is_constant or divisor.is_constant else sympy.cancel(above / below)
    assert str(fraction(numerator, divisor)) == str(expected)


@FEW
@given(NONZERO, NONZERO, NONZERO)
def test_common_divisor_holds_every_common_factor(one: Formula, other: Formula, shared: Formula) -> None:
    found = common_divisor(one * shared, other * shared)
    assert exact_quotient(found, shared) is not None
    assert exact_quotient(one * shared, found) is not None


@FEW
@given(WHOLE, NONZERO)
def test_division_leaves_its_remainder(dividend: Formula, divisor: Formula) -> None:
    quotient, rest = divided(dividend, divisor, whole=True)
    assert quotient * divisor + rest == dividend
    assert all(isinstance(coefficient, int) for coefficient in quotient.terms.values())
    assert exact_quotient(dividend * divisor, divisor) == dividend
    assert whole_quotient(dividend, divisor) == (None if rest else quotient)


@FEW
@given(st.lists(POLYNOMIALS, min_size=1, max_size=3), VALUES)
def test_what_is_proven_holds(parts: list[Formula], values: dict[str, int]) -> None:
    numbers = [part.value(values) for part in parts]
    assert maximum(*parts).value(values) == max(numbers)
    assert minimum(*parts).value(values) == min(numbers)
    assert not nonnegative(parts[0]) or numbers[0] >= 0
    assert not at_least(parts[0], parts[-1]) or numbers[0] >= numbers[-1]
    shifted = minimum(*parts).scaled(-2) + ROW
    assert pushed_in(shifted).value(values) == shifted.value(values)


@FEW
@given(POLYNOMIALS, VALUES)
def test_floor_keeps_whole_parts_outside(formula: Formula, values: dict[str, int]) -> None:
    assert floored(formula).value(values) == floor(formula.value(values))
    assert str(floored(formula)) == str(sympy.expand(sympy.floor(sympy.sympify(formula))))


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (M * N * 16 - N * 16, "16*M*N - 16*N"),
        (maximum(N, M) + 1, "Max(M, N) + 1"),
        (maximum(N, 1), "N"),
        (maximum(minimum(N, M), N), "N"),
        (minimum(2 * N + 1, M + ROW), "Min(M + i, 2*N + 1)"),
        (floored(N / 2 + M + 3), "M + floor(N/2) + 3"),
        (floored((N - 1) / M), "floor(N/M - 1/M)"),
        (8 / (2 * N - 4) + 2, "2 + 8/(2*N - 4)"),
        (fraction(2 * N + 8, N).scaled(8) + N, "N + 8*(2*N + 8)/N"),
        (counted(2.0), "2.00000000000000"),
        (counted(0.1), "0.100000000000000"),
        (counted(0.0), "0.0"),
    ],
)
def test_text_of(formula: Formula, text: str) -> None:
    assert str(formula) == text
    assert str(sympy.sympify(formula)) == text


@FEW
@given(st.floats(-1e18, 1e18))
def test_counted_numbers_are_written_as_sympy_writes_them(value: float) -> None:
    text = str(counted(value))
    assert float(text) == pytest.approx(float(str(sympy.Float(value))), rel=2e-14)  # ties are rounded otherwise
    assert len(text) == len(str(sympy.Float(value)))


def test_affine_parts_are_told_apart() -> None:
    assert (3 * ROW * N - ROW + M - 2).linear({"i"}) == ({"i": 3 * N - 1}, M - 2)
    assert (ROW * ROW).linear({"i"}) is None
    assert floored(ROW / 2).linear({"i"}) is None


@FEW
@given(NESTED)
def test_formulas_travel(formula: Formula) -> None:
    again = pickle.loads(pickle.dumps(formula))
    assert again == formula
    assert {symbol: symbol.positive for symbol in again.free_symbols} == {s: s.positive for s in formula.free_symbols}
    assert sympy.sympify(again) == sympy.sympify(formula)


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        divided(N, N - N, whole=True)
    with pytest.raises(ZeroDivisionError):
        N / (N - N)


def test_a_late_formula_is_made_once_when_it_is_looked_at():
    made = []

    def make():
        made.append(1)
        return size("N") + 1

    late = LateFormula(make)
    assert not made
    assert late + 1 == size("N") + 2
    assert (str(late), hash(late)) == ("N + 1", hash(size("N") + 1))
    assert pickle.loads(pickle.dumps(LateFormula(make))) == late
    assert len(made) == 2
