"""Bandwidths of several cores together: every core logs its calls, and only windows count in which all ran undisturbed.

The rate of a core is taken as steady within a call. A window ends where a call of any core ends; those in which a core
was between calls, or was switched away from, are left out, so that the sum is what all cores draw at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from heapq import merge
from statistics import median

from kernmodel.errors import Note
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import MIXES, function, level_sizes, place_streams
from kernmodel.measure.host import Case, Harness
from kernmodel.measure.host_topology import HostTopology, one_processor_a_core
from kernmodel.measure.model import CoresPoint, SeveralCores

Log = Sequence[tuple[int, int, int]]
"""Start and end in ticks, and context switches, of calls one after the other."""
LEVEL = "Mem"
_SEGMENT_BYTES = 1 << 18
_LEAST_WINDOWS = 50
_AGREE = 0.1
"""Relative difference up to which the two halves of the windows confirm one another."""
SATURATED = 1.1
"""Cores beyond which twice as many gain less than this are said to saturate the memory."""


def core_counts(cores: int) -> tuple[int, ...]:
    """Numbers of cores that are measured: powers of two, and all of them."""
    return tuple(dict.fromkeys([*(1 << n for n in range(1, cores.bit_length()) if 1 << n <= cores), cores]))


def measure_several_cores(
    topology: HostTopology,
    mixes: Sequence[str],
    *,
    milliseconds: int = 300,
    progress: Callable[[str], object] = lambda what: None,
) -> SeveralCores:
    """Rates of stream mixes in memory on two cores and more of this host, each a physical one of the first domain.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    places = one_processor_a_core()
    each = level_sizes(topology).get(LEVEL, 0)
    if len(places) < 2 or not each or 2 * each * len(places) > topology.memory_bytes:
        why = "there is one core" if len(places) < 2 else "there is not enough memory for a set of each core"
        return SeveralCores((), (Note("several-cores-left-out", f"several cores were not measured: {why}"),))
    found, notes = [], []
    with ExitStack() as stack:
        harnesses = [stack.enter_context(Harness()) for _ in places]
        for harness, place in zip(harnesses, places, strict=True):
            harness.pin(place)
        per_second = harnesses[0].ticks_per_second()
        for mix in mixes:
            for harness in harnesses:
                place_streams(harness, MIXES[mix], each, huge=True)
                harness.load(function(MIXES[mix], x86.vector_bytes()))
            segment = max(_SEGMENT_BYTES // MIXES[mix].arrays // 512 * 512, 512)
            size = segment * MIXES[mix].accesses
            for cores in (n for n in core_counts(len(places)) if n > 1):
                progress(f"{LEVEL} {mix} on {cores} cores")
                waiting = [harness.log(milliseconds, Case(1, segment)) for harness in harnesses[:cores]]
                point = rate_of(LEVEL, mix, [finish() for finish in waiting], size, per_second)
                found.append(point)
                if not point.confirmed:
                    what = f"{LEVEL} {mix} on {cores} cores: {point.windows} undisturbed windows do not tell a rate"
                    notes.append(Note("not-confirmed", what))
    return SeveralCores(tuple(found), tuple(notes))


def rate_of(level: str, mix: str, logs: Sequence[Log], size: int, per_second: float) -> CoresPoint:
    """The rate of all cores together by what each logged.

    Args:
        size: bytes of a call; per_second: ticks.
    """
    rates = [rate * per_second for _, rate in windows(logs, size)]
    if len(rates) < 2:
        return CoresPoint(level, mix, len(logs), 0.0, 0.0, 0.0, len(rates), confirmed=False)
    halves = median(rates[: len(rates) // 2]), median(rates[len(rates) // 2 :])
    ordered, tenth = sorted(rates), len(rates) // 10
    told = len(rates) >= _LEAST_WINDOWS and abs(halves[0] - halves[1]) <= _AGREE * min(halves)
    return CoresPoint(level, mix, len(logs), median(rates), ordered[tenth], ordered[-1 - tenth], len(rates), told)


def windows(logs: Sequence[Log], size: int) -> Iterator[tuple[int, float]]:
    """Ticks and bytes per tick of all cores together of each window in which all are within undisturbed calls."""
    events = merge(*(_events(number, log) for number, log in enumerate(logs)))
    rates, since = dict.fromkeys(range(len(logs)), 0.0), 0
    for at, number, ticks in events:
        if at > since and all(rates.values()):
            yield at - since, sum(rates.values())
        rates[number], since = size / ticks if ticks else 0.0, at


def _events(number: int, log: Log) -> Iterator[tuple[int, int, int]]:
    """Ticks at which a core begins an undisturbed call, with how long it takes, and at which it ends (0)."""
    for start, end, switches in log:
        if switches == 0 and end > start:
            yield start, number, end - start
            yield end, number, 0


def saturates(points: Sequence[CoresPoint], alone: float) -> bool | None:
    """Whether the memory is saturated: the last doubling of cores gained less than `SATURATED`; None: not told.

    Args:
        points: of one mix, confirmed; alone: bytes per second of one core.
    """
    rates = {1: alone, **{point.cores: point.bytes_per_second for point in points if point.confirmed}}
    most = max(rates)
    half = rates.get(most // 2)
    return None if most < 4 or half is None else rates[most] < SATURATED * half
