"""Walks take each step as often as it was counted."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.program import Loop
from kernmodel.binary.walks import CountedFlow, Walker
from tests.binary.nests import START, counted, function, two_loops


def test_a_nest_of_constant_trips_is_walked_in_its_order() -> None:
    made = two_loops()
    entry, row, inner, end, last = (block.address for block in made.blocks)
    walk = Walker(CountedFlow(made, counted(made, rows=3, passes=4)), None, {}).walk(10_000, 1)
    assert walk is not None
    assert walk.steps == (entry, *(row, inner, inner, inner, inner, end) * 3, last)
    assert (walk.counts[row], walk.counts[inner]) == (3, 12)


@given(rows=st.integers(1, 20), passes=st.integers(1, 60), kept=st.integers(2, 70))
def test_what_a_walk_leaves_out_are_passes_in_the_middle_of_a_visit(rows: int, passes: int, kept: int) -> None:
    made = two_loops()
    _, row, inner, end, _ = (block.address for block in made.blocks)
    flow = CountedFlow(made, counted(made, rows, passes))
    walk = Walker(flow, made.loops[0], {inner: kept}).walk(1, 1)
    assert walk is not None
    visit = walk.counts[inner]
    assert walk.steps == (row, *(inner,) * visit, end)
    assert visit <= passes
    assert visit == passes or kept <= visit <= kept + 2


def test_a_condition_is_met_as_often_as_it_was() -> None:
    """A loop of three blocks, of which the middle one runs in two passes of five."""
    made = function(
        [("4885c07401", [1, 2]), ("90", [2]), ("48ffc975f5", [3, 0]), ("c3", [])],
        [Loop(START, frozenset({START, START + 5, START + 6}), None, 1)],
    )
    head, middle, latch, last = (block.address for block in made.blocks)
    occurrences = Occurrences(
        {head: 500, middle: 200, latch: 500, last: 1},
        {(head, middle): 200, (head, latch): 300, (middle, latch): 200, (latch, head): 499, (latch, last): 1},
        1,
        "re-encoded",
    )
    walk = Walker(CountedFlow(made, occurrences), made.loops[0], {}).walk(10_000, 50)
    assert walk is not None
    assert walk.iterations == 50
    assert walk.steps.count(middle) == pytest.approx(20, abs=1)
    assert set(pairwise(walk.steps)) <= set(occurrences.edges)


def test_counts_that_lead_nowhere_are_given_up() -> None:
    made = two_loops()
    _, row, inner, _, _ = (block.address for block in made.blocks)
    endless = Occurrences({row: 1, inner: 1000}, {(row, inner): 1, (inner, inner): 1000}, 1, "re-encoded")
    assert Walker(CountedFlow(made, endless), made.loops[0], {}).walk(10**9, 10**9) is None


def test_trips_and_exits_of_a_loop() -> None:
    made = two_loops()
    _, _, inner, end, _ = (block.address for block in made.blocks)
    flow = CountedFlow(made, counted(made, rows=7, passes=9, calls=2))
    outer, loop = made.loops
    assert flow.trips(loop) == 9
    assert flow.trips(outer) == 7
    assert flow.exits(loop) == ((inner, end, 14),)
    assert flow.directly_in(None) == (outer,)
    assert flow.directly_in(outer) == (loop,)
