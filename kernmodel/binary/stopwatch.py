"""Measuring a function in its program: cycles from entry to return, the file as it is, the inputs as given.

A jump over the first bytes of the function leads to code that times its calls (`Isa.timed_code`); everything behind
them runs where it stood. What that adds to a call is measured on an empty function in the same process, and taken off.
"""

from __future__ import annotations

import os
import signal
import struct
import time
from collections.abc import Sequence
from math import ceil
from statistics import fmean, median

from kernmodel.binary.counting import ended, load_shift, never_ran, note_of_exec, rounded
from kernmodel.binary.program import Function
from kernmodel.binary.runs import Command, Told, ended_badly, said_of
from kernmodel.binary.timing import FunctionTime
from kernmodel.binary.tracing import NotTracedError, TracedProgram, free_stretch, traced_run
from kernmodel.errors import MeasurementError, Note
from kernmodel.isa import isa_of
from kernmodel.isa.timing import CHAIN_CYCLES, ENTRY_BYTES, ISSUE_PASSES, LOGGED_CALLS, TimedCode, TimedData
from kernmodel.measure.samples import (
    CONFIRMED,
    LONG_CLOCK_TOLERANCE,
    WAITED,
    Brackets,
    Sample,
    brackets_of,
    core_undisturbed,
)
from kernmodel.value_types import dataclass

RUNS = 4
"""Runs of which the smallest is taken, after one that warms up."""
_MOST_RUNS = 12
_MOST_SECONDS = 20.0
"""Time after which no further run is made to confirm the smallest."""
_SHORT_SECONDS = 10e-6
"""Mean time of a call below which the clock's steps say too much of one: such calls are taken in batches of so long."""
_UNSTEADY = 0.1
"""Share of a run's time in calls with an unsteady clock or a busy sibling thread up to which the run counts."""
_ISSUE = 1.1
"""How much longer than alone the loop of branches may take: one of two loads, which a sibling that mostly waits slows
less than the loop of other measurements, and too short to tell less."""
_ROOM = 4 * 4096
_APART_SECONDS = 0.03
_WORD = 8


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One run.

    Attributes:
        cycles: of one call, the mean over all.
        batch: consecutive calls of which the mean is taken for `smallest`, 1 where a call is long enough to be timed
            alone; 0: all calls together are too short.
        calls: of the run, outermost ones.
        interrupted: the time that the program waited while others ran, of the time of all calls: at most so much of it
            is not the function's.
        clock_ticks: of the chain; overhead: cycles that are taken off each call.
        ticks_per_second: of the time stamp counter.
        kept: the first calls, each; empty: those of an empty function in the same process.
    """

    cycles: float
    batch: int
    calls: int
    interrupted: float
    clock_ticks: float
    overhead: float
    ticks_per_second: float
    notes: tuple[Note, ...]
    kept: tuple[Sample, ...] = ()
    empty: tuple[Sample, ...] = ()

    def undisturbed(self, alone: Brackets) -> list[Sample]:
        """The calls at both ends of which the clock was the same and no sibling thread took a part of the core."""
        return [one for one in self.kept if one.steady(LONG_CLOCK_TOLERANCE) and core_undisturbed(one, alone, _ISSUE)]

    def disturbed_share(self, alone: Brackets) -> float:
        """The part of the time of the kept calls in which the clock changed or a sibling thread took a part."""
        whole = sum(one.ticks for one in self.kept)
        return 1 - sum(one.ticks for one in self.undisturbed(alone)) / whole if whole else 0.0

    def smallest(self, alone: Brackets) -> float | None:
        """Cycles of the smallest undisturbed call (of short ones, the smallest mean of a batch), None if none was."""
        cycles = [one.cycles(CHAIN_CYCLES) for one in self.undisturbed(alone)]
        return max(0.0, smallest_batch(cycles, self.batch) - self.overhead) if cycles else None


def alone_in(runs: Sequence[TimedRun]) -> Brackets:
    """What the readings at the ends of calls are on an undisturbed core, as for other measurements."""
    return brackets_of([one for run in runs for one in (*run.kept, *run.empty)], CHAIN_CYCLES, ISSUE_PASSES)


def measure_function(
    function: Function, command: Command, *, runs: int = RUNS, told: Told = lambda what: None
) -> FunctionTime:
    """The time of a function: the smallest of at least so many runs of the program after one that warms up, more until
    a second one confirms it.

    Args:
        function: of the file that the command runs, or of a library that it loads.
        runs: that have to count.

    Raises:
        InputError: the program cannot be run or fails, or never runs the function; NotTracedError: the host does not
            let it be measured.
    """
    begun = time.monotonic()
    made: list[TimedRun] = []
    for number in range(_MOST_RUNS + 1):
        told(f"measuring: run {number} of {runs}")
        run = timed_run(function, command, processor=_processor(number), told=told)
        if number == 0:
            continue
        made.append(run)
        good = _undisturbed(made)
        if len(good) >= runs and (_confirmed(good) or time.monotonic() - begun > _MOST_SECONDS):
            break
    hertz = CHAIN_CYCLES * median(run.ticks_per_second / run.clock_ticks for run in made)
    return _judged(good, made, runs, hertz)


def _undisturbed(made: Sequence[TimedRun]) -> list[TimedRun]:
    """The runs that count: the clock was steady, and nothing else ran in between or beside it on the same core."""
    alone = alone_in(made)
    return [run for run in made if run.disturbed_share(alone) <= _UNSTEADY and run.interrupted <= WAITED]


def _confirmed(good: Sequence[TimedRun]) -> bool:
    """Whether the second smallest run agrees with the smallest."""
    first, second, *_ = sorted(run.cycles for run in good)
    return second <= (1 + CONFIRMED) * first


def _judged(good: Sequence[TimedRun], made: Sequence[TimedRun], runs: int, hertz: float) -> FunctionTime:
    """The figure, or why there is none."""
    best = min(good or made, key=lambda run: run.cycles)
    overhead = median(run.overhead for run in made)
    why = ""
    if len(good) < max(2, min(runs, RUNS)):
        which = f"in {len(made) - len(good)} of {len(made)} runs"
        why = f"{which} the clock changed, or others ran in between or beside it on the same core"
    else:
        why = too_short(best, overhead, hertz)
    if len({run.calls for run in made}) > 1:
        why = f"the runs call it {', '.join(sorted({f'{run.calls:,}' for run in made}))} times"
    notes = best.notes
    if not why and best.batch > 1:
        text = (
            f"calls of {1e6 * best.cycles / hertz:.2g} µs are taken in batches of {best.batch}; timing adds "
            f"{overhead:.0f} cy to each, which are taken off ({_percent(overhead, best.cycles)} of what was measured)"
        )
        notes = (*notes, Note("short-calls", text, "assumption"))
    if not why and not _confirmed(good):
        text = f"no second run came within {100 * CONFIRMED:.0f} % of the smallest: the host is not quiet"
        notes = (*notes, Note("unconfirmed", text))
    largest = max((run.cycles for run in good), default=best.cycles)
    return FunctionTime(
        cycles=0.0 if why else best.cycles,
        smallest=_smallest(good or made),
        spread_percent=100 * (largest / best.cycles - 1) if best.cycles else 0.0,
        calls=best.calls,
        clock_hz=hertz,
        overhead_cycles=overhead,
        accepted=len(good),
        refused=len(made) - len(good),
        why_refused=why,
        notes=notes,
    )


def _smallest(runs: Sequence[TimedRun]) -> float:
    alone = alone_in(runs)
    return min((found for run in runs if (found := run.smallest(alone)) is not None), default=0.0)


def _percent(part: float, rest: float) -> str:
    return f"{100 * part / (part + rest):.0f} %"


def too_short(run: TimedRun, overhead: float, hertz: float) -> str:
    """Why calls are too short to be measured, "" where they are not: where all together do not fill a batch, or timing
    one takes longer than the call."""
    each = f"a call takes about {1e6 * run.cycles / hertz:.2g} µs"
    adds = f"timing it adds {overhead:.0f} cycles"
    if not run.batch:
        return f"{each}, {adds}, and {run.calls:,} of them too little: let the program call it more often"
    return (
        f"{each}, less than the {overhead:.0f} cycles that timing it adds"
        if run.batch > 1 and run.cycles < overhead
        else ""
    )


def _processor(number: int) -> int:
    """Runs take turns on the processors that this process may use."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[number % len(usable)]


def timed_run(
    function: Function, command: Command, *, processor: int | None = None, told: Told = lambda what: None
) -> TimedRun:
    """One run of the program with its function timed.

    Raises:
        as `measure_function`.
    """
    with traced_run(command, told, "measuring") as (program, words, said):
        if processor is not None:
            program.undisturbed(processor)
        made, data = _place(program, function, words)
        rate = _calibrate(program, made)
        before = program.waited()
        status, waited, notes = _follow(program, function, command)
        if status:
            raise ended_badly(
                command, status, said_of(said), "see that it runs as it is, and throws no exception through it"
            )
        content = os.pread(words, 2 * (data.end - data.address), 0)
        return _result(function, data, content, rate, waited - before, notes)


def _place(program: TracedProgram, function: Function, words: int) -> tuple[TimedCode, TimedData]:
    """Put the timing code into the program and the jump to it over the function's entry."""
    shift = load_shift(program, function)
    sizes = TimedData(0)
    room = _ROOM + rounded(2 * sizes.end)
    place = free_stretch(program.mappings(), function.entry + shift, room)
    if place is None:
        raise NotTracedError("there is no room near the function for the code that times it")
    data = TimedData(place + _ROOM)
    code = _contiguous(function)
    isa = isa_of(function.isa)
    made = isa.timed_code(code, function.entry, place, data.address, shift=shift)
    jump = isa.jump(function.entry + shift, made.stub) if made is not None else b""
    if made is None or not jump:
        raise NotTracedError(f"{function.name} is too short to be timed at its entry", where=function.file)
    targets = {one for block in function.blocks for one in block.successors if one != block.end}
    if any(function.entry <= one < function.entry + len(jump) for one in targets):
        what = f"{function.name} jumps back into its first {len(jump)} bytes, where the jump to the clock has to stand"
        raise NotTracedError(what, where=function.file, todo=f"time what calls {function.name}")
    os.ftruncate(words, rounded(2 * sizes.end))
    mapped = program.map_memory(place, _ROOM, executable=True)
    if not mapped or not program.map_memory(data.address, rounded(2 * sizes.end), words):
        raise NotTracedError("the program has no memory for the code that times it", todo="see ulimit -v")
    program.close_descriptor(words)
    program.write(place, made.code)
    program.write(function.entry + shift, jump)
    return made, data


def _contiguous(function: Function) -> bytes:
    """The code from the entry on, as far as blocks follow one another."""
    code = b""
    for block in function.blocks:
        if block.address == function.entry + len(code):
            code += block.code
    return code


def _calibrate(program: TracedProgram, made: TimedCode) -> float:
    """Time the empty function, twice some time apart; ticks of the time stamp counter in a second."""
    before = program.registers(program.process)
    moments = []
    for pause in (0.0, _APART_SECONDS):
        time.sleep(pause)
        program.go_on_at(program.process, made.calibration)
        stop = program.run()
        moment = time.monotonic()
        if stop.kind != "trap":
            raise NotTracedError("the code that times functions does not run here")
        moments.append((moment, _word(program.read(made.empty.start, _WORD))))
        program.set_registers(program.process, before)
    (first, first_ticks), (second, second_ticks) = moments
    return (second_ticks - first_ticks) / (second - first)


def _word(content: bytes) -> int:
    return int.from_bytes(content, "little")


def _follow(program: TracedProgram, function: Function, command: Command) -> tuple[int, float, tuple[Note, ...]]:
    """Let the program run to its end; its exit status, and the seconds that it waited while others ran.

    Raises:
        MeasurementError: several threads, which share one clock here; InputError: it takes too long.
    """
    notes: tuple[Note, ...] = ()
    waited = 0.0
    while True:
        stop = program.run()
        if stop.kind == "exiting" and stop.process == program.process:
            waited = program.waited()
        if stop.kind == "clone":
            what = f"{function.name} is not timed in a program with several threads"
            raise MeasurementError(what, where=function.file, todo="let it use one thread (OMP_NUM_THREADS=1)")
        if stop.kind == "exec" and stop.process == program.process:
            notes = (note_of_exec(function),)
        if stop.kind == "trap":
            program.pass_on(stop.process, signal.SIGTRAP)
        if stop.kind in ("exited", "killed"):
            return ended(program, command, stop, "it was measured"), waited, notes


def _result(
    function: Function, data: TimedData, content: bytes, ticks_per_second: float, waited: float, notes: tuple[Note, ...]
) -> TimedRun:
    """What the words say."""
    calls = _calls(data, content, data.address)
    count, total = (_word(content[at - data.address : at - data.address + _WORD]) for at in (data.calls, data.total))
    if not calls:
        raise never_ran(function)
    empty = _calls(TimedData(data.end), content, data.address)
    overhead = sorted(one.cycles(CHAIN_CYCLES) for one in empty)[len(empty) // 10]
    clock = median(sum(one.clock) / 2 for one in calls)
    # calls that were not kept each have their ticks in the sum
    rest = max(0, total - sum(one.ticks for one in calls)) * CHAIN_CYCLES / clock
    cycles = (sum(one.cycles(CHAIN_CYCLES) for one in calls) + rest) / count - overhead
    batch = ceil(_SHORT_SECONDS * ticks_per_second * CHAIN_CYCLES / clock / max(cycles, 1.0))
    return TimedRun(
        max(cycles, 0.0),
        batch if batch <= count else 0,
        count,
        waited * ticks_per_second / max(1, total),
        clock,
        overhead,
        ticks_per_second,
        notes,
        tuple(calls),
        tuple(empty),
    )


def smallest_batch(cycles: Sequence[float], batch: int) -> float:
    """The smallest mean of consecutive calls, so many at a time."""
    batch = max(1, min(batch, len(cycles)))
    return min(fmean(cycles[at : at + batch]) for at in range(0, len(cycles) - batch + 1, batch))


def _calls(data: TimedData, content: bytes, base: int) -> list[Sample]:
    """The calls that were kept; of the core the loop of branches alone tells, not loads of their own."""
    kept = min(_word(content[data.calls - base : data.calls - base + _WORD]), LOGGED_CALLS)
    entries = struct.iter_unpack("<3Q2I", content[data.log - base : data.log - base + ENTRY_BYTES * kept])
    return [Sample(0, ticks, (before, after), (start, end), (0, 0), 0) for ticks, before, after, start, end in entries]
