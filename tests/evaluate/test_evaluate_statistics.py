"""Errors and rank correlation against their definitions."""

from __future__ import annotations

from itertools import combinations
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.evaluate.statistics import kendall_tau, percent_error, summarise


def naive_tau(first, second):
    """τ-b by its definition, over all pairs."""

    def sign(a, b):
        return (a > b) - (a < b)

    pairs = [(sign(a, b), sign(c, d)) for (a, c), (b, d) in combinations(zip(first, second, strict=True), 2)]
    untied_first, untied_second = sum(x != 0 for x, _ in pairs), sum(y != 0 for _, y in pairs)
    if not untied_first or not untied_second:
        return None
    return sum(x * y for x, y in pairs) / sqrt(untied_first * untied_second)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=40))
def test_tau_is_that_of_the_definition(pairs):
    first, second = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    expected = naive_tau(first, second)
    assert kendall_tau(first, second) == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.floats(0.1, 100), min_size=2, max_size=60, unique=True))
def test_tau_of_an_order_with_itself_and_its_reverse(values):
    assert kendall_tau(values, values) == pytest.approx(1)
    assert kendall_tau(values, [-value for value in values]) == pytest.approx(-1)


def test_tau_of_many_values_is_fast():
    count = 20_000
    values = [float(n * 7919 % count) for n in range(count)]
    assert kendall_tau(values, values) == pytest.approx(1)


def test_summary_by_hand():
    summary = summarise([1.0, 1.1, 2.0, 0.5], [1.0, 1.0, 1.0, 1.0])
    assert summary.count == 4
    assert summary.mean_percent == pytest.approx((0 + 10 + 100 + 50) / 4)
    assert summary.median_percent == pytest.approx(30)
    assert summary.within == (25.0, 25.0, 50.0)  # 1.1 is within 10 % in spite of rounding
    assert summary.tau is None  # the reference is constant


def test_summary_of_nothing():
    assert summarise([], []).mean_percent is None
    assert summarise([1.0], [2.0]).tau is None


@given(st.lists(st.tuples(st.floats(0.1, 50), st.floats(0.1, 50)), min_size=1))
def test_shares_grow_with_the_tolerance(pairs):
    summary = summarise([a for a, _ in pairs], [b for _, b in pairs])
    assert list(summary.within) == sorted(summary.within)
    assert (summary.within[-1] == 100) == all(percent_error(a, b) <= 10 + 1e-9 for a, b in pairs)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="longer"):
        summarise([1.0], [1.0, 2.0])
