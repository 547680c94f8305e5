"""The beginning of a run as it was recorded, walks through it, and what its accesses meet."""

from __future__ import annotations

import os
import sys
from collections import Counter
from itertools import pairwise

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.binary.answer import lifted
from kernmodel.binary.counting import count_occurrences
from kernmodel.binary.find import find_function
from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.predictors.own import OwnPredictor
from kernmodel.binary.program import Loop
from kernmodel.binary.recorded_data import trace_data
from kernmodel.binary.recorded_run import CALL, RecordedRun, recorded_run
from kernmodel.binary.recorded_walks import RecordedWalker
from kernmodel.binary.runs import Command
from kernmodel.binary.walks import CountedFlow
from kernmodel.incore.dependences.line_splits import Lines
from kernmodel.isa.counting import TracedAccess
from tests.binary.nests import ADD_STREAM, NEXT_ROW, START, counted, function, two_loops

MOST = 12_000
traced = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="runs are recorded on Linux on x86-64"
)


def recorded(steps: list[int], accesses: list[list[tuple[int, int]]] | None = None, kinds=()) -> RecordedRun:
    """A run of these steps, with the accesses (number of their kind, address) of each."""
    each = accesses or [[] for _ in steps]
    firsts = numpy.cumsum([0, *map(len, each)])
    flat = numpy.array([one for some in each for one in some], dtype=numpy.int64).reshape(-1, 2)
    return RecordedRun(numpy.array(steps), firsts, flat[:, 0], flat[:, 1], tuple(kinds))


def nest(rows: int, passes: int, calls: int = 2) -> tuple[CountedFlow, RecordedRun]:
    """Rows of a stream, counted and recorded."""
    made = two_loops()
    entry, row, inner, end, last = (block.address for block in made.blocks)
    steps = [CALL, entry, *[row, *[inner] * passes, end] * rows, last] * calls
    return CountedFlow(made, counted(made, rows, passes, calls)), recorded([*steps, CALL])


@traced
@pytest.mark.parametrize("name", ["gemm", "choose"])
def test_what_is_recorded_of_a_short_run_is_what_is_counted(build, name):
    program = build("flow.c", "-O2")
    command = Command((str(program), "9"), seconds=20)
    made, occurrences = count_occurrences(find_function(program, name), command)
    run = recorded_run(made, command)
    steps = [int(step) for step in run.steps]
    assert steps.count(CALL) == occurrences.calls
    # the last step of the run is left out: it may be cut off
    assert sum((Counter(occurrences.blocks) - Counter(steps)).values()) == 1
    followed = Counter(pair for pair in pairwise(steps) if CALL not in pair)
    assert sum((Counter(occurrences.edges) - followed).values()) <= 1
    assert not followed - Counter(occurrences.edges)
    touched = sum(
        bool(operand.memory.read) + bool(operand.memory.written)
        for address in steps
        if address != CALL
        for item in made.block(address).instructions
        for operand in item.operands
        if operand.memory is not None and operand.memory.size_bytes
    )
    assert len(run.places) == len(run.numbers) >= touched == run.firsts[len(steps)]


def test_a_nest_that_is_short_is_walked_as_it_ran() -> None:
    flow, run = nest(rows=3, passes=4)
    entry, row, inner, end, last = (block.address for block in flow.function.blocks)
    walk = RecordedWalker(flow, run).walk(None, {}, 1, MOST)
    assert walk is not None
    assert walk.steps == (entry, *(row, inner, inner, inner, inner, end) * 3, last)
    assert (walk.iterations, walk.counts[row], walk.counts[inner]) == (1, 3, 12)
    assert all(run.steps[number] == step for number, step in zip(walk.recorded, walk.steps, strict=True))


@given(rows=st.integers(1, 20), passes=st.integers(1, 60), kept=st.integers(2, 70))
def test_passes_in_the_middle_of_long_visits_are_left_out(rows: int, passes: int, kept: int) -> None:
    flow, run = nest(rows, passes)
    _, row, inner, end, _ = (block.address for block in flow.function.blocks)
    walk = RecordedWalker(flow, run).walk(flow.function.loops[0], {inner: kept}, 1, MOST)
    assert walk is not None
    each = min(passes, kept + 2)
    assert walk.steps == (row, *(inner,) * each, end) * walk.iterations
    assert walk.counts[inner] == each * walk.iterations
    assert walk.whole[inner] == passes * walk.iterations == walk.counts[inner] + walk.left_out.get(inner, 0)


@pytest.mark.parametrize("lengths", [[400], [5, 300, 40, 120], [*range(1, 90)]])
def test_rows_of_any_lengths_take_what_their_chain_takes(lengths: list[int]) -> None:
    """Sums that go on from row to row: three cycles a pass, whichever rows a walk comes through."""
    made = function(
        [("4831c0", [1]), ("b910000000", [2]), (ADD_STREAM, [3, 2]), (NEXT_ROW, [4, 1]), ("c3", [])],
        [
            Loop(START + 3, frozenset({START + 3, START + 8, START + 25}), None, 1),
            Loop(START + 8, frozenset({START + 8}), START + 3, 2),
        ],
    )
    entry, row, inner, end, last = (block.address for block in made.blocks)
    rows = [[row, *[inner] * length, end] for length in lengths * 4]
    steps = [CALL, entry, *(step for one in rows for step in one), last] * 2
    followed = Counter(pair for pair in pairwise(steps) if CALL not in pair)
    flow = CountedFlow(made, Occurrences(Counter(step for step in steps if step != CALL), followed, 2, "re-encoded"))
    found = lifted(flow, OwnPredictor("ZEN3"), recorded([*steps, CALL]))[0]
    assert found.cycles == pytest.approx(3 * sum(lengths) * 4, rel=0.1)


def test_iterations_that_leave_a_loop_are_in_the_walk_of_the_one_around_it() -> None:
    flow, run = nest(rows=30, passes=5)
    inner = flow.function.loops[1]
    walk = RecordedWalker(flow, run).walk(inner, {}, 40, MOST)
    assert walk is not None
    assert all(run.steps[number + 1] == inner.header for number in walk.recorded)


def test_what_is_too_long_or_never_ran_has_no_walk() -> None:
    flow, run = nest(rows=30, passes=5)
    assert RecordedWalker(flow, run).walk(None, {}, 1, 10) is None
    assert RecordedWalker(flow, recorded([CALL])).walk(None, {}, 1, MOST) is None


def shifted(width: int, distance: int) -> tuple[CountedFlow, RecordedRun]:
    """movsd xmm0,[rsi]; movsd [rdi],xmm0; a load reads what was stored `distance` passes before, by addresses alone."""
    made = function([("f20f1006f20f110748ffc975f3", [1, 0]), ("c3", [])], [Loop(START, frozenset({START}), None, 1)])
    at, last = (block.address for block in made.blocks)
    kinds = [TracedAccess("load", width, at), TracedAccess("store", 8, at + 4)]
    accesses = [[], *([(0, 4096 + 8 * n), (1, 4096 + 8 * (n + distance))] for n in range(400)), []]
    flow = CountedFlow(made, counted_loop(at, last, 400))
    return flow, recorded([CALL, *[at] * 400, last], accesses, kinds)


def counted_loop(at: int, last: int, passes: int) -> Occurrences:
    return Occurrences({at: passes, last: 1}, {(at, at): passes - 1, (at, last): 1}, 1, "re-encoded")


@pytest.mark.parametrize("distance", [1, 3])
@pytest.mark.parametrize(("width", "whole"), [(8, True), (16, False)])
def test_a_load_is_fed_by_the_store_as_many_executions_before(distance: int, width: int, whole: bool) -> None:
    flow, run = shifted(width, distance)
    walk = RecordedWalker(flow, run).walk(flow.function.loops[0], {}, 20, MOST)
    assert walk is not None
    code = {block.address: block.instructions for block in flow.function.blocks}
    data = trace_data(run, walk, code, None)
    length, passes = 4 * len(walk.steps), set()
    assert len(data.links) == len(walk.steps)
    for link in data.links:
        # the store whose bytes are latest, in this pass of the walk or in the one before
        back = link.load[0] + length * link.passes - link.store[0]
        passes.add(back)
        assert link.whole == whole
    assert passes == {4 * (distance if whole else max(1, distance - 1)) - 1}


def test_a_chain_through_memory_that_only_addresses_tell_is_waited_for() -> None:
    """Each pass loads what the one before stored: 9 cycles on Zen 3, where registers tell of no chain."""
    flow, run = shifted(8, 1)
    own = OwnPredictor("ZEN3")
    with_run, without = (lifted(flow, own, known)[0] for known in (run, None))
    assert with_run.cycles == pytest.approx(9 * 400, rel=0.05)
    assert without.cycles is not None
    assert without.cycles < 0.3 * (with_run.cycles or 0)


def test_accesses_across_lines_are_told_by_their_addresses() -> None:
    flow, run = shifted(16, 0)
    walk = RecordedWalker(flow, run).walk(flow.function.loops[0], {}, 20, MOST)
    assert walk is not None
    code = {block.address: block.instructions for block in flow.function.blocks}
    data = trace_data(run, walk, code, Lines(64, None))
    expected = {4 * n for n, step in enumerate(walk.recorded) if (8 * (step - 1)) % 64 == 56}
    assert data.loads_across == expected
    assert data.stores_across == frozenset()
    assert not trace_data(run, walk, code, None).loads_across


@pytest.mark.parametrize(("apart", "alone"), [(8, False), (128, True)])
def test_stores_of_general_registers_to_one_line_go_together(apart: int, alone: bool) -> None:
    """mov [rdi],rax; mov [rsi],rcx; dec rdx; jne: the addresses of a run tell how far apart they store."""
    made = function([("48890748890e48ffca75f5", [1, 0]), ("c3", [])], [Loop(START, frozenset({START}), None, 1)])
    at, last = (block.address for block in made.blocks)
    kinds = [TracedAccess("store", 8, at), TracedAccess("store", 8, at + 3)]
    run = recorded([CALL, *[at] * 100, last], [[], *([(0, 4096), (1, 4096 + apart)] for _ in range(100)), []], kinds)
    flow = CountedFlow(made, counted_loop(at, last, 100))
    walk = RecordedWalker(flow, run).walk(made.loops[0], {}, 20, MOST)
    assert walk is not None
    data = trace_data(run, walk, {block.address: block.instructions for block in made.blocks}, Lines(64, None))
    assert len(data.alone) == (2 * len(walk.steps) if alone else 0)
    cycles = lifted(flow, OwnPredictor("ZEN3"), run)[0].cycles
    assert cycles == pytest.approx(200 if alone else 100, rel=0.1)


def test_a_run_that_cannot_be_recorded_is_said() -> None:
    flow, _ = nest(rows=3, passes=4)
    found = lifted(flow, OwnPredictor("ZEN3"), "no permission")[0]
    assert [note.code for note in found.notes if "no permission" in note.text] == ["path-not-recorded"]
