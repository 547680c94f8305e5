from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import UsageError
from kernmodel.report.numbers import MISSING, count, decimal, quantity, seconds, time_in
from kernmodel.units import TIME_UNITS, Work, cycles_from

WORK = Work(8.0, 4.0, 1.0, 1e6, 2e9)
PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "n": 1e-9, "": 1.0}


def read_back(text: str, unit: str) -> float:
    number, _, printed = text.partition(" ")
    return float(number) * PREFIXES[printed.removesuffix(unit)]


@given(st.floats(0.1, 1e6), st.sampled_from(TIME_UNITS))
def test_every_printed_unit_converts_back(cycles: float, unit: str):
    value = read_back(time_in(cycles, unit, WORK), unit)
    # four significant digits, or two decimals of cy/It
    assert cycles_from(value, unit, WORK) == pytest.approx(cycles, rel=2e-3, abs=0.05)


@pytest.mark.parametrize(
    ("value", "text"), [(2.0, "2 s"), (0.01249, "12.49 ms"), (3e-6, "3 µs"), (4e-9, "4 ns"), (0.0, "0 ns")]
)
def test_seconds(value: float, text: str):
    assert seconds(value) == text


def test_what_is_not_finite_is_missing():
    assert decimal(None) == decimal(math.inf) == quantity(math.inf, "It/s") == MISSING
    assert time_in(0.0, "FLOP/s", WORK) == MISSING


def test_a_unit_without_meaning_is_refused():
    with pytest.raises(UsageError, match="no lattice"):
        time_in(1.0, "LUP/s", Work(8.0, 4.0, None, 1e6, 2e9))


def test_count():
    assert (count(1, "core"), count(2, "core")) == ("1 core", "2 cores")
