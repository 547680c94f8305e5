"""What samples of a measurement say: which count, the figure and how far to trust it. Pure functions of numbers.

A sample counts if the clock was the same before and after it, nothing else ran in between, and the core issued and
loaded as much as it does alone: on a core that two threads share, a neighbour that is awake halves the taken branches a
cycle without showing in the clock, and one that keeps the load ports busy shows most in the loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median, quantiles

from kernmodel.value_types import dataclass

CLOCK_TOLERANCE = 0.007
"""Largest relative difference of the clock before and after a sample that counts."""
ISSUE_TOLERANCE = 1.03
"""How much longer than alone the probe of issue may take at both ends of a sample that counts. Beside a sibling that
mostly waits, Zen 3 takes 1.04 to 1.4 times as long. Where it takes less than 1.05 times, other loops of a cycle take
as long as alone, but for two loads and a store, which take up to 1.2 times (docs/measuring.md)."""
UNROLLED_TOLERANCE = 1.2
"""The same of unrolled loops, and of those that wait for outer caches or memory: a sibling that mostly waits makes next
to no difference to them."""
LOADS_TOLERANCE = 1.12
"""How much longer than alone the probe of loads may take there."""
MOST_ISSUE = 1.02
"""Cycles that a pass of the loop with a taken branch in each cycle takes at most on an undisturbed core, with what
begins and ends the loop. Beside a sibling that is awake Zen 3 takes 1.04 to 2.8."""
STEADY_ISSUE = 1.3
"""The same of a core that takes longer by itself, which shows in that half of the readings are within `_STEADY`."""
_STEADY = 0.01
LEAST_SAMPLES = 8
"""Samples that have to count for a figure to be given."""
CONFIRMED = 0.02
"""Relative difference up to which two rounds confirm one another."""
REPEATED = 0.05
"""Relative difference up to which figures that were made some time apart confirm one another, and two rounds of what
lies in a cache or memory that others use, too."""
_MIDDLE_OF = 4
"""Rounds of which the middle half is told."""
_QUANTILE = 0.1
LONG = 1200
"""Times the chain of the clock beyond which a sample is long: its ends say little of a neighbour in its middle."""
LONG_CLOCK_TOLERANCE = 0.02
"""Largest difference of the clock before and after a long sample that counts."""
WAITED = 0.01
"""Share of a long sample in which others may have run: in seconds the system itself runs now and then."""
LEAST_LONG = 3
"""Long samples that have to count."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One timed call.

    Attributes:
        which: number of the case that was called, where several are called in turn.
        ticks: of the time stamp counter; those of the brackets: `clock` of the chain of dependent additions before and
            after, `issue` of a loop that takes a branch in each cycle, `loads` of independent loads.
        switches: context switches in between; waited: the share of its time in which others ran.
    """

    which: int
    ticks: int
    clock: tuple[int, int]
    issue: tuple[int, int]
    loads: tuple[int, int]
    switches: int
    waited: float = 0.0

    def steady(self, tolerance: float) -> bool:
        """Whether the clock was the same before and after."""
        return max(self.clock) <= (1 + tolerance) * min(self.clock)

    def cycles(self, clock_cycles: int) -> float:
        """Of the core, where the chain of the clock takes so many."""
        return self.ticks * clock_cycles / (sum(self.clock) / 2)


@dataclass(frozen=True, slots=True)
class Brackets:
    """What the brackets mean on this host.

    Attributes:
        clock_cycles: cycles that the chain of additions takes.
        issue_alone, loads_alone: ticks of the probes on an undisturbed core, per tick of the clock's chain.
    """

    clock_cycles: int
    issue_alone: float
    loads_alone: float


@dataclass(frozen=True, slots=True)
class Round:
    """The samples of one case that count.

    Attributes:
        cycles: per call, the lower decile.
        accepted, refused: samples that count, and those that do not.
    """

    cycles: float
    accepted: int
    refused: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number.

    Attributes:
        value: the best confirmed one, in the unit of the question; low, high: over the rounds that count.
        accepted, refused: samples of all rounds.
        confirmed: whether two rounds, or two figures of different times, agree as closely as they have to and enough
            samples count; else nothing is judged by it.
    """

    value: float
    low: float
    high: float
    accepted: int
    refused: int
    confirmed: bool

    @property
    def spread_percent(self) -> float:
        """How far the rounds are apart, in percent of the value."""
        return 100 * (self.high - self.low) / self.value if self.value else 0.0

    def scaled(self, factor: float) -> Figure:
        """The figure in another unit."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Figure(self.value * factor, low, high, self.accepted, self.refused, self.confirmed)

    def inverse(self, numerator: float) -> Figure:
        """`numerator` over the figure: a rate of a time."""
        if min(self.low, self.value) <= 0:
            return Figure(0.0, 0.0, 0.0, self.accepted, self.refused, False)
        return Figure(
            numerator / self.value, numerator / self.high, numerator / self.low, self.accepted, self.refused,
            self.confirmed,
        )  # fmt: skip


def brackets_of(samples: Sequence[Sample], clock_cycles: int, issue_passes: int) -> Brackets:
    """How long the probes take on an undisturbed core, per tick of the clock's chain: of all readings between which the
    clock was steady the one below which a fiftieth lies, at least the fourth, since lucky ones would refuse all others.

    Args:
        issue_passes: of the loop of `issue`. If no reading is that of an undisturbed core, nothing counts here:
            none takes more than `MOST_ISSUE` cycles a pass, or `STEADY_ISSUE` where most take the same.
    """
    steady = [sample for sample in samples if sample.steady(CLOCK_TOLERANCE)] or samples
    issue = sorted(reading / min(sample.clock) for sample in steady for reading in sample.issue)
    loads = sorted(reading / min(sample.clock) for sample in steady for reading in sample.loads)
    taken = min(max(3, len(issue) // 50), len(issue) - 1)
    alike = issue[len(issue) // 2] <= (1 + _STEADY) * issue[taken]
    most = (STEADY_ISSUE if alike else MOST_ISSUE) * issue_passes / clock_cycles
    return Brackets(clock_cycles, min(issue[taken], most), loads[taken])


def counts(sample: Sample, brackets: Brackets, tolerance: float = ISSUE_TOLERANCE) -> bool:
    """Whether a sample counts; `tolerance` of the probe of issue."""
    if sample.ticks > LONG * min(sample.clock):
        return sample.waited <= WAITED and sample.steady(LONG_CLOCK_TOLERANCE)
    return sample.switches == 0 and sample.steady(CLOCK_TOLERANCE) and core_undisturbed(sample, brackets, tolerance)


def core_undisturbed(sample: Sample, brackets: Brackets, tolerance: float = ISSUE_TOLERANCE) -> bool:
    """Whether the core issued and loaded as much as it does alone, at both ends.

    Args:
        tolerance: of the probe of issue.
    """
    low = min(sample.clock)
    issues = max(sample.issue) <= tolerance * brackets.issue_alone * low
    return issues and max(sample.loads) <= LOADS_TOLERANCE * brackets.loads_alone * low


def judge(
    samples: Sequence[Sample], brackets: Brackets, which: int = 0, tolerance: float = ISSUE_TOLERANCE
) -> Round | None:
    """The round of one case; None where too few samples count."""
    mine = [sample for sample in samples if sample.which == which]
    taken = sorted(sample.cycles(brackets.clock_cycles) for sample in mine if counts(sample, brackets, tolerance))
    long = bool(mine) and min(sample.ticks / min(sample.clock) for sample in mine) > LONG
    if len(taken) < (LEAST_LONG if long else LEAST_SAMPLES):
        return None
    return Round(taken[int(_QUANTILE * len(taken))], len(taken), len(mine) - len(taken))


def agreed(
    rounds: Sequence[Sequence[float]],
    value: Callable[[Sequence[float]], float],
    accepted: int,
    refused: int,
    within: float = CONFIRMED,
    middle: float = 0.0,
) -> Figure:
    """The figure of several rounds: that of the lowest time of each case, which what disturbs can only raise, if it is
    the same with the next lowest of any of them.

    The lowest difference of two cases would not do: it is too low where the shorter one was disturbed.

    Args:
        rounds: cycles of each case in each round, at least one round.
        value: of the cycles of all cases; within: relative difference up to which it is the same.
        middle: where it is not: of four rounds and more the median, if the middle half of them lies within this part of
            it. 0: not judged.
    """
    cases = [sorted(times) for times in zip(*rounds, strict=True)]
    lowest = [times[0] for times in cases]
    found = value(lowest)
    if len(rounds) < 2:
        return Figure(found, found, found, accepted, refused, False)
    others = [value([*lowest[:at], times[1], *lowest[at + 1 :]]) for at, times in enumerate(cases)]
    told = max(abs(other - found) for other in others) <= within * abs(found) + 0.01
    if not told and len(rounds) >= _MIDDLE_OF:
        each = sorted(map(value, rounds))
        low, centre, high = quantiles(each, n=4)
        if 0 < high - low <= middle * centre:
            return Figure(centre, low, high, accepted, refused, True)
    return Figure(found, min(found, *others), max(found, *others), accepted, refused, told)


def repeated(figures: Sequence[Figure], *, shared: bool = False) -> Figure:
    """One figure of several of the same that were made some time apart, from lowest to highest: of what the core has to
    itself the lowest that another one comes near, since a neighbour can only raise it. What neighbours draw from a
    shared cache or memory no sample shows, and it is there when a program runs, too: the median of what is shared.
    Those that are confirmed count, if any is; where it is one alone, the others say how far to trust it. Where none is,
    those count that agree with another one as closely as two rounds have to: neighbours of one time are not those of
    another.

    Args:
        figures: of times, at least one; shared: of data in a cache or memory that others use.
    """
    made = [one for one in figures if one.value > 0] or list(figures)
    told = _told(made, shared=shared)
    taken = sorted(told or made, key=lambda one: one.value)
    best = next((one for one, other in pairwise(taken) if _near(one, other)), taken[0])
    if shared:
        best = replace(best, value=median(one.value for one in taken))
    accepted, refused = (sum(getattr(one, name) for one in figures) for name in ("accepted", "refused"))
    ranged = taken if len(taken) > 1 else made
    low, high = min(one.low for one in ranged), max(one.value for one in ranged)
    return Figure(best.value, min(low, best.low), max(high, best.high), accepted, refused, best.confirmed)


def _told(figures: Sequence[Figure], *, shared: bool) -> list[Figure]:
    """The confirmed ones of figures of different times, or those that agree with another one, which confirms them."""
    within = REPEATED if shared else CONFIRMED
    if confirmed := [one for one in figures if one.confirmed]:
        return confirmed
    made = sorted((one for one in figures if one.value > 0), key=lambda one: one.value)
    alike = {one for pair in pairwise(made) if _near(*pair, within) for one in pair}
    return [replace(one, confirmed=True) for one in made if one in alike]


def is_repeated(figures: Sequence[Figure], *, shared: bool = False) -> bool:
    """Whether two of the figures that `repeated` counts are the same within `REPEATED`."""
    told = sorted(_told(figures, shared=shared), key=lambda one: one.value)
    return any(_near(one, other) for one, other in pairwise(told))


def _near(one: Figure, other: Figure, within: float = REPEATED) -> bool:
    return abs(other.value - one.value) <= within * abs(one.value)
