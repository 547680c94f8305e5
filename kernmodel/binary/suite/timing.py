"""The time of a kernel of a suite: its smallest call, which a second run has to confirm.

The kernels of a suite do the same work in each call, or nearly, and what disturbs a call only adds to it. Calls beside
which a sibling thread was busy do not count; runs are made until two of them, on different processors where there are
several, have smallest calls that agree.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import inf

from kernmodel.binary.find import find_function
from kernmodel.binary.runs import Command
from kernmodel.binary.stopwatch import TimedRun, alone_in, timed_run, too_short
from kernmodel.errors import InputError, MeasurementError, ToolError
from kernmodel.isa.timing import CHAIN_CYCLES

LEAST_RUNS, MOST_RUNS = 5, 16
CONFIRMED_PERCENT = 2.0
"""By how much the second smallest run may lie above the smallest."""
ACCEPTED_PERCENT = 10.0
"""The same after the most runs: beyond, there is no figure."""


def smallest_call(binary: str, function: str) -> tuple[float, float, str]:
    """Cycles of the smallest undisturbed call of a function in a program without arguments, by how many percent the
    second smallest run lies above it, and why there is none."""
    processors = sorted(os.sched_getaffinity(0))
    runs: list[TimedRun] = []
    try:
        found = find_function(binary, function)
        for number in range(MOST_RUNS):
            runs.append(timed_run(found, Command((binary,)), processor=processors[number % len(processors)]))
            if len(runs) >= LEAST_RUNS and _above(runs)[1] <= CONFIRMED_PERCENT:
                break
    except (MeasurementError, ToolError, InputError) as error:
        return 0.0, 0.0, str(error)
    smallest, above = _above(runs)
    hertz = max(CHAIN_CYCLES * run.ticks_per_second / run.clock_ticks for run in runs)
    short = too_short(min(runs, key=lambda run: run.cycles), max(run.overhead for run in runs), hertz)
    if short:
        return smallest, above, short
    if above > ACCEPTED_PERCENT:
        what = f"no second of {len(runs)} runs had an undisturbed call within {ACCEPTED_PERCENT:g} % of the smallest"
        return smallest, above, what
    return smallest, above, ""


def _above(runs: Sequence[TimedRun]) -> tuple[float, float]:
    """The smallest undisturbed call, and by how many percent that of another run lies above it."""
    alone = alone_in(runs)
    calls = sorted(found for run in runs if (found := run.smallest(alone)) is not None)
    if len(calls) < 2 or not calls[0]:
        return 0.0, inf
    return calls[0], 100 * (calls[1] / calls[0] - 1)
