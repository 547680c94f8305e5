"""Units at the edges: the fast table agrees with pint, and every printed unit converts back."""

from __future__ import annotations

import pint
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import InputError, UsageError
from kernmodel.units import (
    FACTORS,
    TIME_UNITS,
    Work,
    convert_cycles,
    format_bytes,
    format_share,
    format_si,
    meaningful_units,
    parse_quantity,
)

REGISTRY = pint.UnitRegistry()
BASE = {"data": "byte", "frequency": "hertz", "time": "second", "bandwidth": "byte/second"}


@pytest.mark.parametrize(("dimension", "unit"), [(d, u) for d in BASE for u in FACTORS[d]])
def test_table_agrees_with_pint(dimension: str, unit: str) -> None:
    if dimension == "frequency":  # pint knows cycles as radians: compare through seconds
        expected = 1 / REGISTRY.Quantity(1.0, unit).to("hertz").magnitude
        assert 1 / FACTORS[dimension][unit] == pytest.approx(expected)
    else:
        assert FACTORS[dimension][unit] == pytest.approx(REGISTRY.Quantity(1.0, unit).to(BASE[dimension]).magnitude)


def test_other_units_go_to_pint() -> None:
    assert parse_quantity("8 gigabit/s", "bandwidth") == pytest.approx(1e9)
    assert parse_quantity("2 minutes", "time") == pytest.approx(120)


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["", "12", "GB/s", 12, None, "1 MX", "3 GHz", "1 2 GB/s", "nan GB/s", "1e999x B"])
def test_wrong_quantities(text: object) -> None:
    with pytest.raises(InputError, match=r"use one of|write a number and one of"):
        parse_quantity(text, "bandwidth")


WORKS = st.builds(
    Work,
    iterations_per_unit=st.floats(0.5, 64),
    flops_per_iteration=st.floats(0.5, 100),
    updates_per_iteration=st.floats(0.5, 4),
    iterations_per_sweep=st.floats(1, 1e12),
    clock_hz=st.floats(1e8, 1e10),
)


@given(WORKS, st.floats(1e-3, 1e6), st.sampled_from(TIME_UNITS))
def test_times_grow_with_the_cycles_and_rates_shrink(work: Work, cycles: float, unit: str) -> None:
    value, one = convert_cycles(cycles, unit, work), convert_cycles(1.0, unit, work)
    # times grow with the cycles, rates shrink
    assert (one / value if unit.endswith("/s") else value / one) == pytest.approx(cycles, rel=1e-12)


def test_cycles_per_iteration_divides() -> None:
    """Kerncraft multiplies here: 18.28 cy/CL of doubles are 2.285 cy/It, not 146."""
    work = Work(8, 0, None, None, 2.3e9)
    assert convert_cycles(18.28, "cy/It", work) == pytest.approx(2.285)


@pytest.mark.parametrize("unit", ["LUP/s", "FLOP/s", "s", "parsec"])
def test_units_without_meaning(unit: str) -> None:
    work = Work(8, 0, None, None, 2.3e9)
    assert meaningful_units(work) == ("cy/CL", "cy/It", "It/s")
    with pytest.raises(UsageError):
        convert_cycles(10, unit, work)


def test_formats() -> None:
    assert format_bytes(32 * 1024) == "32 KiB"
    assert format_bytes(27.5 * 1024**2) == "27.5 MiB"
    assert format_bytes(100) == "100 B"
    assert format_si(1.234e9, "FLOP/s") == "1.234 GFLOP/s"
    assert format_si(0.5, "It/s") == "0.5 It/s"


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0%"), (0.002, "<1%"), (0.33, "33%"), (0.994, ">99%"), (1, "100%"), (0.01, "1%")]
)
def test_a_share_that_is_not_nothing_or_all_does_not_look_like_it(share: float, text: str) -> None:
    assert format_share(share) == text
