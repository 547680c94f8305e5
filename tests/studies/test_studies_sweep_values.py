"""Ranges of the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import UsageError
from kernmodel.studies.sweep.values import grid, parse_changes, parse_defines, parse_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5", (5,)),
        ("1,2,4", (1, 2, 4)),
        ("1-4", (1, 2, 3, 4)),
        ("10-50:5", (10, 20, 30, 40, 50)),
        ("10-50:5lin", (10, 20, 30, 40, 50)),
        ("1-1000:4log", (1, 10, 100, 1000)),
        ("7,1-3", (7, 1, 2, 3)),
        ("1-2:20log", (1, 2)),
        ("9-9:3", (9,)),
        ("1-1000:4log2", (1, 10, 100, 1000)),
        ("64-1024:log2", (64, 128, 256, 512, 1024)),
        ("100-1023:log2", (100, 200, 400, 800)),
        ("1-1000:log", (1, 10, 100, 1000)),
        ("1-243:log3", (1, 3, 9, 27, 81, 243)),
        ("7-7:log", (7,)),
    ],
)
def test_values(text: str, values: tuple[int, ...]) -> None:
    assert parse_values(text, "-D N") == values


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        "",
        "0",
        "-4",
        "1.5",
        "5-1",
        "1-0",
        "1-10:0",
        "1-10:",
        "1-99999999",
        "9" * 30,
        "1,,2",
        "1-10:5exp",
        "1-9:log1",
        "1-9:log0",
        "1-9:3log1",
        "1-9:lin",
        "1-9:log-2",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_values(text, "-D N")
    assert error.value.exit_status == 2
    assert str(error.value).startswith("-D N: ")


@given(st.integers(1, 10**6), st.integers(0, 10**6), st.integers(1, 50), st.sampled_from(["", "lin", "log"]))
def test_range_hits_its_ends_and_ascends(first: int, more: int, count: int, kind: str) -> None:
    values = parse_values(f"{first}-{first + more}:{count}{kind}", "-D N")
    assert values[0] == first
    assert list(values) == sorted(set(values))
    assert len(values) <= count
    if count > 1:
        assert values[-1] == first + more


def test_defines_and_grid() -> None:
    defines = parse_defines(["N=20,30", "M=1-2"])
    assert defines == {"N": (20, 30), "M": (1, 2)}
    assert grid(defines) == ({"N": 20, "M": 1}, {"N": 20, "M": 2}, {"N": 30, "M": 1}, {"N": 30, "M": 2})


def test_powers_of_a_base_in_figures_of_machines() -> None:
    assert parse_changes(["L2.size=256KiB-1MiB:log2"])["L2.size"] == ("256KiB", "512KiB", "1024KiB")
    assert parse_changes(["clock=x0.5-x2:log2"])["clock"] == ("x0.5", "x1", "x2")
    with pytest.raises(UsageError, match="base 1"):
        parse_changes(["L2.size=256KiB-1MiB:log1"])


@pytest.mark.parametrize("option", ["N", "=4", "4=N", "N-1=3"])
def test_malformed_define(option: str) -> None:
    with pytest.raises(UsageError):
        parse_defines([option])
