"""What a branch predictor with histories foresees, on sequences made by hand."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy
import pytest

from kernmodel.binary.branch_history import HistoryPredictor
from kernmodel.binary.foresight import surprise_shares, surprises
from kernmodel.binary.recorded_run import CALL, RecordedRun
from tests.binary.nests import two_loops

REACH = 80
LATCH, ROW = 0, 1


def rows(lengths: Iterable[int], goes_on: int | None = ROW) -> list[tuple[int, bool]]:
    """The branches of rows of a loop: its own, and that of the loop around it unless it goes on by a jump."""
    found = []
    for length in lengths:
        found += [(LATCH, step < length - 1) for step in range(length)]
        found += [] if goes_on is None else [(goes_on, True)]
    return found


def wrong(branches: Sequence[tuple[int, bool]], reach: int = REACH, learning: float = 0.5) -> int:
    """How often the predictor is wrong about branches once it has learnt from the first part of them."""
    predictor = HistoryPredictor(reach, 8)
    surprised = [predictor.surprised(*one) for one in branches]
    return sum(surprised[int(learning * len(branches)) :])


@pytest.mark.parametrize("length", [3, 20, 60, 79])
def test_ends_of_rows_within_its_reach_are_foreseen(length: int) -> None:
    assert wrong(rows([length] * 60)) == 0


@pytest.mark.parametrize("length", [100, 150])
def test_ends_of_rows_beyond_its_reach_are_not(length: int) -> None:
    assert wrong(rows([length] * 60)) == pytest.approx(30, abs=1)
    assert wrong(rows([length] * 60), reach=2 * length) == 0


@pytest.mark.parametrize("goes_on", [ROW, None])
def test_lengths_that_repeat_are_foreseen_whether_rows_are_parted_by_a_branch_or_a_jump(goes_on: int | None) -> None:
    """As measured on Zen 3: the branch that is not taken at the end of a row parts it from the next one."""
    assert wrong(rows([3, 5, 9, 4] * 60, goes_on)) == 0


def test_rows_that_grow_are_foreseen_while_the_history_holds_two_of_them() -> None:
    assert wrong(rows([*range(1, 31)] * 4)) == 0
    ends = 60 * 2
    assert 0.15 * ends < wrong(rows([*range(1, 61)] * 4)) < 0.6 * ends


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.9])
def test_of_random_branches_the_rarer_way_surprises(share: float) -> None:
    draw = random.Random(7)
    found = [branch for _ in range(6_000) for branch in ((LATCH, draw.random() < share), (ROW, True))]
    rarer = min(share, 1 - share) * 3_000
    assert 0.85 * rarer < wrong(found) < 1.25 * rarer + 20


@pytest.mark.parametrize("length", [32, 512])
def test_a_random_pattern_that_repeats_is_known_when_it_comes_again(length: int) -> None:
    draw = random.Random(3)
    pattern = [branch for _ in range(length) for branch in ((LATCH, draw.random() < 0.5), (ROW, True))]
    assert wrong(pattern * 4, learning=0.5) < 3 + 0.02 * length


def test_branches_that_are_never_taken_are_no_part_of_the_history() -> None:
    branches = rows([60] * 60)
    beside = [one for branch in branches for one in ((5, False), branch, (6, False))]
    assert wrong(beside) == wrong(branches) == 0


def test_steps_of_a_recorded_run_are_judged_where_their_branch_stands() -> None:
    """Rows of 120 passes, beyond the reach: each end surprises, and nothing else once it is warm."""
    made = two_loops()
    entry, row, inner, end, last = (block.address for block in made.blocks)
    steps = [CALL, entry, *([row, *[inner] * 120, end] * 20), last] * 2
    nothing = numpy.zeros(0, dtype=numpy.int64)
    run = RecordedRun(numpy.array(steps), numpy.zeros(len(steps) + 1, dtype=numpy.int64), nothing, nothing, ())
    found = surprises(run, made, REACH)
    assert run.begun == len(steps) // 2
    late = [at for at, surprised in zip(steps, found, strict=True) if surprised][25:]
    assert set(late) <= {inner, end}
    ends = [n for n, at in enumerate(steps[:-1]) if at == inner and steps[n + 1] == end and n > run.begun]
    assert all(found[n] for n in ends)
    shares = surprise_shares(run, found)
    assert shares[inner, end] == 1.0
    assert shares.get((inner, inner), 0.0) < 0.01
