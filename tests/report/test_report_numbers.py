from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import UsageError
from kernmodel.report.number_text import MISSING, decimal, prefixed, quantity, time_in
from kernmodel.units import TIME_UNITS, Work, convert_cycles

WORK = Work(8.0, 4.0, 1.0, 1e6, 2e9)
PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "n": 1e-9, "": 1.0}


def read_back(text: str, unit: str) -> float:
    number, _, printed = text.partition(" ")
    return float(number) * PREFIXES[printed.removesuffix(unit)]


def cycles_of(value: float, unit: str, work: Work) -> float:
    """Cycles per unit of work of a time (which grows with them) or of a rate (which shrinks)."""
    one = convert_cycles(1.0, unit, work)
    return one / value if unit.endswith("/s") else value / one


@given(st.floats(0.1, 1e6), st.sampled_from(TIME_UNITS))
def test_every_printed_unit_converts_back(cycles: float, unit: str):
    value = read_back(time_in(cycles, unit, WORK), unit)
    # four significant digits, or decimals of cycles
    assert cycles_of(value, unit, WORK) == pytest.approx(cycles, rel=2e-3, abs=0.05)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.0, "s", "2.000 s"),
        (12345.0, "s", "12340 s"),
        (0.01249, "s", "12.49 ms"),
        (3e-6, "s", "3.000 µs"),
        (4e-10, "s", "0.4000 ns"),
        (0.0, "s", "0 s"),
        (4e9, "It/s", "4.000 GIt/s"),
        (870e6, "LUP/s", "870.0 MLUP/s"),
        (999.97e6, "It/s", "1.000 GIt/s"),
        (0.25, "It/s", "0.2500 It/s"),
    ],
)
def test_rates_and_times_have_four_significant_digits(value: float, unit: str, text: str):
    assert prefixed(value, unit) == text


@given(st.floats(1e-9, 1e15), st.sampled_from(["It/s", "FLOP/s"]))
def test_a_prefix_leaves_one_to_three_digits_before_the_point(value: float, unit: str):
    printed = prefixed(value, unit)
    assert read_back(printed, unit) == pytest.approx(value, rel=5.1e-4)
    assert len(printed.split()[0].replace(".", "").lstrip("0")) == 4


def test_cycles_per_iteration_have_a_digit_more():
    assert (quantity(0.625, "cy/It"), quantity(0.625, "cy/CL")) == ("0.625 cy/It", "0.62 cy/CL")


def test_what_is_not_finite_is_missing():
    assert decimal(None) == decimal(math.inf) == quantity(math.inf, "It/s") == MISSING
    assert time_in(0.0, "FLOP/s", WORK) == MISSING


def test_a_unit_without_meaning_is_refused():
    with pytest.raises(UsageError, match="no lattice"):
        time_in(1.0, "LUP/s", Work(8.0, 4.0, None, 1e6, 2e9))
