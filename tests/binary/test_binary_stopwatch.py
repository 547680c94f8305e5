"""The time of a function: what is done to the program leaves it as it is; figures are plausible, no more."""

import os
import sys

import pytest

from kernmodel.binary.find import find_function
from kernmodel.binary.runs import Command
from kernmodel.binary.stopwatch import TimedRun, _judged, measure_function, timed_run
from kernmodel.errors import InputError, MeasurementError, ToolError

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
    assert min(run.smallest, run.cycles) >= 0
    assert run.overhead > 0


def test_calls_that_are_too_short_are_refused_with_the_overhead(build):
    program = build("flow.c", "-O2")
    time = measure_function(find_function(program, "choose"), Command((str(program),)))
    assert time.cycles == 0.0
    assert time.overhead_cycles > 0
    assert "too short to be timed alone" in time.why_refused or "in between" in time.why_refused


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


def run(cycles, calls=1, unsteady=0.0, interrupted=0.0):
    return TimedRun(cycles, cycles, calls, unsteady, interrupted, 9600.0, 80.0, 1e9, ())


def test_the_smallest_of_the_runs_that_count_is_taken():
    good = [run(c) for c in (3e6, 1.01e6, 1e6, 2e6)]
    time = _judged(good, [*good, run(5e5, unsteady=1.0)], 4, 1e9)
    assert (time.cycles, time.accepted, time.refused, time.why_refused) == (1e6, 4, 1, "")
    assert time.spread_percent == pytest.approx(200)
    assert not time.notes
    apart = [run(c) for c in (1e6, 2e6, 3e6, 4e6)]
    assert [note.code for note in _judged(apart, apart, 4, 1e9).notes] == ["unconfirmed"]


def test_no_figure_where_too_few_runs_count_or_they_differ():
    good = [run(1e6)]
    assert "the clock changed" in _judged(good, [*good, run(1e6, unsteady=1.0)], 4, 1e9).why_refused
    mixed = [run(1e6), run(1e6, calls=2), run(1e6), run(1e6)]
    assert "call it 1, 2 times" in _judged(mixed, mixed, 4, 1e9).why_refused
    assert "too short" in _judged([run(100.0)] * 4, [run(100.0)] * 4, 4, 1e9).why_refused
