"""The time of a function: what is done to the program leaves it as it is; figures are plausible, no more."""

import os
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.binary.find import find_function
from kernmodel.binary.runs import Command
from kernmodel.binary.stopwatch import (
    TimedRun,
    _judged,
    _undisturbed,
    alone_in,
    measure_function,
    smallest_batch,
    timed_run,
    too_short,
)
from kernmodel.errors import InputError, MeasurementError, ToolError
from kernmodel.measure.samples import Sample, brackets_of

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="functions are timed on Linux on x86-64"
)


def timed(program, function, *arguments):
    return timed_run(find_function(program, function), Command((str(program), *arguments), seconds=20))


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O2", "-no-pie", "-fno-pie")])
@pytest.mark.parametrize(("name", "calls"), [("gemm", 3), ("fib", 1), ("main", 1), ("choose", 1)])
def test_every_outermost_call_is_timed(build, flags, name, calls):
    run = timed(build("flow.c", *flags), name, "20")
    assert run.calls == calls
    assert run.cycles >= 0
    assert len(run.kept) == calls
    alone = alone_in([run])
    assert 0 < alone.issue_alone < 1  # 1,200 passes of the loop beside a chain of 9,600
    assert (run.smallest(alone) is None) == (not run.undisturbed(alone))
    assert run.overhead > 0


def test_calls_that_are_too_short_are_refused_with_the_overhead(build):
    program = build("flow.c", "-O2")
    time = measure_function(find_function(program, "choose"), Command((str(program),)))
    assert time.cycles == 0.0
    assert time.overhead_cycles > 0
    assert "let the program call it more often" in time.why_refused or "in between" in time.why_refused


def test_short_calls_are_timed_in_batches():
    batched = [run(2000.0, calls=900, batch=13)] * 4
    time = _judged(batched, batched, 4, 1e9)
    assert (time.cycles, time.why_refused) == (2000.0, "")
    assert "in batches of 13; timing adds 80 cy to each, which are taken off (4 %" in time.notes[0].text
    assert "less than the 80 cycles that timing it adds" in too_short(run(60.0, calls=900, batch=400), 80.0, 1e9)
    assert "of them too little" in too_short(run(2000.0, calls=9, batch=0), 80.0, 1e9)


@given(st.lists(st.floats(1, 1e6), min_size=1), st.integers(1, 40))
def test_the_smallest_batch_lies_between_the_smallest_call_and_the_mean(cycles, batch):
    found = smallest_batch(cycles, batch)
    whole = cycles[: len(cycles) // min(batch, len(cycles)) * min(batch, len(cycles))]
    assert min(cycles) * (1 - 1e-9) <= found <= sum(whole) / len(whole) * (1 + 1e-9)


def test_what_cannot_be_timed_says_so(build):
    program = build("unruly.c", "-O1", "-pthread")
    with pytest.raises(MeasurementError, match="several threads"):
        timed(program, "work", "t")
    with pytest.raises(InputError, match="ended with status 3"):
        timed(program, "work", "e")
    with pytest.raises(InputError, match="interpret never ran"):
        timed(program, "interpret", "i")
    with pytest.raises(ToolError, match=r"too short to be timed|jumps back into its first"):
        timed(build("loop.c", "-O1"), "spin")


def run(cycles, calls=1, interrupted=0.0, batch=1):
    return TimedRun(cycles, batch, calls, interrupted, 9600.0, 80.0, 1e9, (), empty=timed_calls(1.0, 1.0))


def timed_calls(*passes, ticks=1000):
    """Calls at both ends of which a pass of the loop of branches took so many cycles."""
    return tuple(Sample(0, ticks, (9600, 9600), (round(1200 * one), round(1200 * one)), (0, 0), 0) for one in passes)


def test_calls_beside_a_busy_sibling_thread_do_not_count():
    quiet = replace(run(900.0), kept=timed_calls(1.0, 1.05, 1.09, 2.0, ticks=1000))
    busy = replace(run(1900.0), kept=timed_calls(1.15, 2.0, 2.0, 2.0, ticks=2000))
    alone = alone_in([quiet, busy])
    assert alone.issue_alone == pytest.approx(1 / 8)
    assert (quiet.disturbed_share(alone), busy.disturbed_share(alone)) == (0.25, 1.0)
    assert busy.smallest(alone) is None
    assert quiet.smallest(alone) == pytest.approx(1000 - 80)
    changed = replace(quiet, kept=(Sample(0, 500, (9600, 12000), (1200, 1200), (0, 0), 0),))
    assert changed.smallest(alone) is None
    ended = replace(quiet, kept=(Sample(0, 500, (9600, 9600), (1200, 1400), (0, 0), 0),))
    assert ended.smallest(alone) is None  # a sibling at one end alone, too
    assert _undisturbed([quiet, busy]) == []
    always = replace(run(1900.0), kept=timed_calls(1.7, 1.8, 1.9, 2.0), empty=())
    assert alone_in([always]).issue_alone == pytest.approx(1.02 / 8)
    assert always.smallest(alone_in([always])) is None
    calm = replace(quiet, kept=quiet.kept[:3])
    assert _undisturbed([calm, busy]) == [calm]


def test_a_core_is_told_undisturbed_as_by_other_measurements_within_what_its_loop_tells():
    timed = timed_calls(1.0, 1.0, 1.0, 1.0, 1.05, 1.11, 1.13, 1.6)
    alone = alone_in([replace(run(1000.0), kept=timed, empty=())])
    assert alone == brackets_of(timed, 9600, 1200)
    assert replace(run(1000.0), kept=timed).undisturbed(alone) == list(timed[:5])


def test_the_smallest_of_the_runs_that_count_is_taken():
    good = [run(c) for c in (3e6, 1.01e6, 1e6, 2e6)]
    time = _judged(good, [*good, run(5e5)], 4, 1e9)
    assert (time.cycles, time.accepted, time.refused, time.why_refused) == (1e6, 4, 1, "")
    assert time.spread_percent == pytest.approx(200)
    assert not time.notes
    apart = [run(c) for c in (1e6, 2e6, 3e6, 4e6)]
    assert [note.code for note in _judged(apart, apart, 4, 1e9).notes] == ["unconfirmed"]


def test_no_figure_where_too_few_runs_count_or_they_differ():
    good = [run(1e6)]
    assert "the clock changed" in _judged(good, [*good, run(1e6)], 4, 1e9).why_refused
    mixed = [run(1e6), run(1e6, calls=2), run(1e6), run(1e6)]
    assert "call it 1, 2 times" in _judged(mixed, mixed, 4, 1e9).why_refused
    short = [run(100.0, batch=0)] * 4
    assert "call it more often" in _judged(short, short, 4, 1e9).why_refused
