"""The overlap expression: reading, printing, evaluating."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import MachineError
from kernmodel.machine.overlap import Max, Overlap, Sum, Time, evaluate, names, parse_overlap

NAMES = ("T_OL", "T_nOL", "T_L1L2", "T_L2L3", "T_L3Mem")


def _composed(inner: st.SearchStrategy[Overlap]) -> st.SearchStrategy[Overlap]:
    summands = st.lists(inner.filter(lambda term: not isinstance(term, Sum)), min_size=2, max_size=4)
    return summands.map(lambda terms: Sum(tuple(terms))) | st.lists(inner, min_size=1, max_size=4).map(
        lambda terms: Max(tuple(terms))
    )


EXPRESSIONS = st.recursive(st.sampled_from(NAMES).map(Time), _composed, max_leaves=12)
TIMES = st.fixed_dictionaries({name: st.floats(0, 1e6) for name in NAMES})


@given(EXPRESSIONS, TIMES)
def test_text_reads_back(expression: Overlap, times: dict) -> None:
    read = parse_overlap(str(expression))
    assert parse_overlap(str(read)) == read
    assert evaluate(read, times) == pytest.approx(evaluate(expression, times))


@given(EXPRESSIONS, st.randoms())
def test_the_order_of_terms_says_nothing(expression: Overlap, random: random.Random) -> None:
    def shuffled(part: Overlap) -> Overlap:
        if isinstance(part, Time):
            return part
        return type(part)(tuple(random.sample([shuffled(term) for term in part.terms], len(part.terms))))

    assert parse_overlap(str(shuffled(expression))) == parse_overlap(str(expression))


def test_terms_come_from_the_core_outwards() -> None:
    text = "max(T_L3Mem + (T_L1L2 + T_L2L3), max(T_L1L2 + T_nOL, T_OL))"
    assert str(parse_overlap(text)) == "max(T_OL, T_nOL + T_L1L2, T_L1L2 + T_L2L3 + T_L3Mem)"


@given(EXPRESSIONS, TIMES, st.sampled_from(NAMES), st.floats(0, 1e6))
def test_longer_times_never_shorten_the_whole(expression: Overlap, times: dict, name: str, more: float) -> None:
    assert evaluate(expression, times | {name: times[name] + more}) >= evaluate(expression, times)


@given(EXPRESSIONS, TIMES)
def test_between_the_longest_and_the_sum(expression: Overlap, times: dict) -> None:
    found = [times[name] for name in names(expression)]
    assert max(found) <= evaluate(expression, times) <= sum(found) * (1 + 1e-12)


def test_missing_times_count_nothing() -> None:
    expression = parse_overlap("max(T_OL, T_nOL + T_L1L2 + T_L2L3)")
    assert evaluate(expression, {"T_OL": 3.0, "T_nOL": 2.0}) == 3.0
    assert evaluate(expression, {"T_OL": 3.0, "T_nOL": 2.0, "T_L1L2": 4.0}) == 6.0


@pytest.mark.parametrize(
    "text",
    [
        "T_OL - T_nOL",
        "min(a, b)",
        "max()",
        "max(a, key=b)",
        "max(*a)",
        "2 * a",
        "a.b",
        "a[0]",
        "lambda: a",
        "",
        "a b",
        "a +",
        "(" * 500 + "a",
        "+".join(["a"] * 3000),
        "__import__('os')",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(MachineError, match=r"use names of times, \+ and max\(…\)"):
        parse_overlap(text)
