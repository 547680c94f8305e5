from __future__ import annotations

from kernmodel.report.json.document import interval_json
from kernmodel.report.number_text import decimal, prefixed
from kernmodel.uncertainty import Interval, union, upper_bound, with_interval

ALIGNMENT = Interval(5.5, 6.1, "array alignment", "arrays aligned to cache lines")


def test_text_and_json_of_a_number_with_an_interval() -> None:
    """The examples of docs/json.md."""
    assert with_interval(6.1, ALIGNMENT, lambda value: decimal(value, 1)) == "6.1 (5.5 to 6.1: array alignment)"
    assert with_interval(6.1, None, decimal) == "6.10"


def test_a_unit_that_all_ends_have_stands_once() -> None:
    def cycles(value: float) -> str:
        return f"{value:.1f} cy/CL"

    assert with_interval(6.1, ALIGNMENT, cycles) == "6.1 cy/CL (5.5 to 6.1: array alignment)"
    assert with_interval(6.1, ALIGNMENT, cycles, cause=False) == "6.1 cy/CL (5.5 to 6.1)"
    rates = Interval(9.9e8, 1.2e9, "array alignment", "")
    shown = with_interval(1e9, rates, lambda value: prefixed(value, "It/s"), cause=False)
    assert shown == "1.000 GIt/s (990.0 MIt/s to 1.200 GIt/s)"


def test_ends_that_print_the_same_are_one_number() -> None:
    narrow = Interval(26.279, 26.281, "the address of the loop", "a multiple of 64")
    assert with_interval(26.28, narrow, lambda value: f"{value:.2f} cy/CL") == "26.28 cy/CL"
    assert with_interval(26.3, narrow, lambda value: f"{value:.2f}", cause=False) == "26.30 (26.28 to 26.28)"


def test_json_of_a_number_with_an_interval() -> None:
    document = interval_json("cycles", ALIGNMENT)["cycles_interval"]
    assert document == {
        "low": 5.5,
        "high": 6.1,
        "cause": "array alignment",
        "assumed": "arrays aligned to cache lines",
    }
    assert interval_json("cycles", None) == {}


def test_the_ends_stay_in_order_where_a_greater_number_means_a_smaller_one() -> None:
    rate = ALIGNMENT.map(lambda cycles: 1 / cycles)
    assert (rate.low, rate.high) == (1 / 6.1, 1 / 5.5)


def test_the_union_holds_all_and_names_each_cause_once() -> None:
    other = Interval(2.0, 7.0, "page size", "huge pages")
    both = union((ALIGNMENT, None, other, ALIGNMENT))
    assert both == Interval(2.0, 7.0, "array alignment; page size", "arrays aligned to cache lines; huge pages")
    assert union((None, None)) is None
    assert union((both, other)) == both


def test_a_bound_that_may_be_higher_is_written_by_its_ends() -> None:
    """ "at most 9.2 (9.2 to 55)" says two things at once."""

    def shown(value: float) -> str:
        return f"{value:g} GFLOP/s"

    higher, lower = Interval(9.2, 55, "other cores", "few"), Interval(5, 9.2, "alignment", "aligned")
    assert upper_bound(9.2, higher, shown) == "9.2 to 55 GFLOP/s (other cores)"
    assert upper_bound(9.2, higher, shown, cause=False) == "9.2 to 55 GFLOP/s"
    assert upper_bound(9.2, lower, shown) == "9.2 GFLOP/s (5 to 9.2: alignment)"
    assert upper_bound(9.2, None, shown) == "9.2 GFLOP/s"
