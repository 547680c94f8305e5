"""How much of a nest is simulated: whole sweeps where they are short, else windows at places spread over the nest.

The method and its limits: docs/traffic-simulation.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from itertools import count, islice, pairwise
from math import ceil, gcd, lcm, prod
from typing import TypeVar

from kernmodel.cachesim.engine import Simulator, compiled_available
from kernmodel.cachesim.model import Hierarchy
from kernmodel.limits import process_count
from kernmodel.traffic.model import Sampling
from kernmodel.traffic.simulation.rates import Rates, imbalance, in_balance, rates_of, spread, weighted_sum
from kernmodel.traffic.simulation.steady_state import TOLERANCE, Effort, PlaceCounts, measure_at, measure_here
from kernmodel.traffic.simulation.work import Work, run_to_end
from kernmodel.value_types import dataclass
from kernmodel.words import plural

_Place = TypeVar("_Place")
_Found = TypeVar("_Found")

COMPILED = Effort(sweep=2e7, window=1.5e7, block=3e5, warm_up=3e7, measured=8e7, total=4e8)
PYTHON = Effort(sweep=4e5, window=4e5, block=2e4, warm_up=6e5, measured=4e5, total=2e6)
"""What a second or two allow with either engine; see benchmarks/symbolic_vs_simulated.py for the compiled one."""

CHECKING = Effort(
    sweep=3e6,
    window=5e6,
    block=6e4,
    warm_up=6e6,
    measured=5e6,
    total=2e7,
    places=1,
    strata=4,
    reach=(1.25, 2.5),
    trusting=True,
)
"""What a check of layer conditions may cost with the compiled engine: a few tenths of a second."""

_SWEEPS = 6
"""Most whole sweeps that are simulated until two count the same."""

_FILLING = 1.5
"""Half of a sweep over less than so many times what all caches hold leaves them far from full."""

_WHOLE, _MUCH_DATA = 5.0, 4.0
"""Sweeps over at most so many times what all caches hold are simulated whole if they cost so many times more."""

OVER_PLACES = 0.02
"""Relative uncertainty up to which a mean over places that differ is taken as settled."""

_MARGIN = 0.2
"""Part at either end of loops that iterate alike in which no window begins: it would count the boundary too often."""

_VARYING, _MOST = 8, 64
"""Places to begin with where they are not alike, and most places."""

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)


@dataclass(frozen=True, slots=True)
class Sample:
    """Counts per inner iteration, and how they were found."""

    rates: Rates
    sampling: Sampling
    from_history: bool = False


def effort(share: float = 1.0) -> Effort:
    """What may be spent with the engine that is there; while counting, a share of it."""
    whole = COMPILED if compiled_available() else PYTHON
    return replace(whole, measured=share * whole.measured, total=share * whole.total)


def checking() -> Effort:
    """What a check of layer conditions may cost with the engine that is there."""
    return CHECKING if compiled_available() else effort()


def sample(work: Work, hierarchy: Hierarchy, spend: Effort, *, exact: bool = False) -> Sample:
    """Simulate a nest in its steady state: as if it had been repeated for ever.

    Args:
        work: the nest.
        hierarchy: the caches.
        spend: how many touches may be spent.
        exact: simulate whole sweeps whatever they cost.
    """
    windows = Windows(work, hierarchy, spend)
    if exact or (spend.sweep and (_is_short(work, hierarchy, spend) or work.touches(-1) <= windows.expected())):
        return _whole_sweeps(work, hierarchy, spend)
    return windows.sample()


def _is_short(work: Work, hierarchy: Hierarchy, spend: Effort) -> bool:
    """Whether sweeps are simulated whole: always if they cost little, else where caches keep much between them."""
    cached = sum(spec.size_bytes for spec in hierarchy.levels)
    limit = spend.sweep if work.nest.touched_bytes > _MUCH_DATA * cached else _WHOLE * spend.sweep
    return work.touches(-1) <= limit


def _whole_sweeps(work: Work, hierarchy: Hierarchy, spend: Effort) -> Sample:
    """Sweeps until two count the same; of long ones half a sweep to warm up, if that leaves the caches in balance."""
    simulator = Simulator(hierarchy)
    half, trusting = None, spend.trusting and all(spec.policy == "LRU" for spec in hierarchy.levels)
    cached = sum(spec.size_bytes for spec in hierarchy.levels)
    if work.touches(-1) > spend.sweep and not (trusting and work.nest.touched_bytes < _FILLING * cached):
        half = run_to_end(work, simulator, 0.5)
    last: Rates | None = None
    difference, number, done = 1.0, 0, False
    while not done:
        simulator.reset_counters()
        simulator.run(work.program)
        rates = rates_of(simulator.counters())
        number += 1
        if last is not None:
            difference = 0.0 if trusting and in_balance(rates, hierarchy) else spread(last, rates)
        elif half and in_balance(rates, hierarchy):
            difference = 0.0
        enough = half is not None or number > (1 if trusting else 2)
        done = number >= _SWEEPS or (difference <= TOLERANCE and enough)
        last = rates
    before = (half or 0) + (number - 1) * work.iterations
    sampling = Sampling(
        warm_up=before,
        measured=work.iterations,
        whole_sweep=True,
        windows=1,
        settled=difference <= TOLERANCE,
        spread=difference,
        tolerance=TOLERANCE,
        reason=_sweeps_reason(work, number, half, difference, trusting=trusting),
    )
    return Sample(weighted_sum([(1 / work.iterations, rates)]), sampling)


def _sweeps_reason(work: Work, number: int, half: int | None, difference: float, *, trusting: bool) -> str:
    sweeps = f"{number} {plural(number, 'whole sweep')}, boundaries included,"
    after = f" after {half / work.iterations:.0%} of one to warm up" if half else ""
    if difference > TOLERANCE:
        return f"{sweeps} were simulated{after}: the last two still differ by {difference:.1%}"
    if number == 1:
        return f"{sweeps} was simulated{after}: as many lines leave the caches as enter"
    if trusting:
        return f"{sweeps} were simulated{after}: as many lines leave the caches as enter in the last"
    return f"{sweeps} were simulated{after}: the last two count the same"


@dataclass(frozen=True, slots=True)
class _Counted:
    """What was counted at a place, with the share of all iterations that it stands for."""

    place: PlaceCounts
    weight: float


@dataclass(frozen=True, slots=True)
class _Stratum:
    """A part of a loop's range, counted in its middle."""

    low: float
    high: float
    counted: _Counted

    @property
    def weight(self) -> float:
        """Its share of all iterations (not normalised)."""
        return (self.high - self.low) * self.counted.weight


class Windows:
    """Windows of whole iterations of one loop: the outermost of which one iteration is not too long."""

    def __init__(self, work: Work, hierarchy: Hierarchy, spend: Effort) -> None:
        self.work = work
        self.hierarchy = hierarchy
        self.spend = spend

    @cached_property
    def loop(self) -> int:
        """The loop whose iterations make up the windows."""
        depth = len(self.work.program.loops)
        touches = [self.work.touches(loop) for loop in range(depth)]
        first = next((loop for loop in range(depth) if touches[loop] <= self.spend.window), depth - 1)
        varying = self._varying_to(first)
        if not varying:
            return first
        # every place costs four windows: one before, one to settle, two that count; shorter windows cost less, but must
        # not lie in a loop that differs from place to place itself: places would have to cover both
        short = self.spend.total / (4 * _VARYING)
        further = (loop for loop in range(first, depth) if self._varying_to(loop) == varying)
        return next((loop for loop in further if touches[loop] <= short), first)

    @property
    def varying(self) -> tuple[int, ...]:
        """The loops on whose iteration those further in depend, so that places differ."""
        return self._varying_to(self.loop)

    def _varying_to(self, loop: int) -> tuple[int, ...]:
        """Those of the loops down to one on whose iteration loops further in depend."""
        depth = len(self.work.program.loops)
        return tuple(
            outer
            for outer in range(loop + 1)
            if any(self.work.depends(inner, outer) for inner in range(outer + 1, depth))
        )

    def expected(self) -> float:
        """Touches that windows are likely to take: to fill the caches and to count twice, at the first places."""
        cost = max(1.0, self.work.touches(self.loop))
        lines = sum(spec.sets * spec.ways for spec in self.hierarchy.levels)
        per_line = self.work.touches(-1) * self.work.nest.line_bytes / self.work.nest.touched_bytes
        fill = min(self.spend.warm_up, lines * per_line)
        return (_VARYING if self.varying else self.spend.places) * (fill + 2 * cost * self._repeat(cost))

    def sample(self) -> Sample:
        """Count at more and more places until more of them do not change the mean."""
        if len(self.varying) == 1:
            return self._sample_strata(self.varying[0])
        return self._sample_evenly()

    # places that are alike, or that differ along several loops

    def _sample_evenly(self) -> Sample:
        """Count at evenly spread places, twice as many each time."""
        found: list[_Counted] = []
        wanted = _VARYING if self.varying else self.spend.places
        points = halton(self.loop + 1)
        while True:
            found += _at_once(self._count, list(islice(points, wanted - len(found))))
            counted = [each for each in found if each.weight]
            difference = spread(_mean(counted[: (len(counted) + 1) // 2]), _mean(counted))
            spent = sum(each.place.touches for each in counted)
            if difference <= self._tolerance or wanted >= _MOST or 2 * spent > self.spend.total:
                return self._result(counted, _mean(counted), difference)
            wanted *= 2

    # places that differ along one loop

    def _sample_strata(self, loop: int) -> Sample:
        """Divide the range of a loop where neighbouring parts differ most, until what that leaves open is small."""
        cuts = [k / self.spend.strata for k in range(self.spend.strata + 1)]
        strata = self._strata(loop, pairwise(cuts))
        while True:
            mean = weighted_mean([(each.weight, each.counted.place.rates) for each in strata])
            doubts = [_doubt(strata, k, mean) for k in range(len(strata))]
            doubt = sum(doubts) / sum(each.weight for each in strata)
            spent = sum(each.counted.place.touches for each in strata)
            worst = max(range(len(strata)), key=lambda k: doubts[k])
            if doubt <= OVER_PLACES or len(strata) >= _MOST or spent > self.spend.total:
                return self._result([each.counted for each in strata if each.weight], mean, doubt)
            strata[worst : worst + 1] = self._divided(loop, strata[worst])

    def _strata(self, loop: int, ends: Iterable[tuple[float, float]]) -> list[_Stratum]:
        """Some strata, counted in their middles."""
        return _at_once(lambda each: self._stratum(loop, *each), list(ends))

    def _stratum(self, loop: int, low: float, high: float) -> _Stratum:
        point = [0.5] * (self.loop + 1)
        point[loop] = (low + high) / 2
        return _Stratum(low, high, self._count(tuple(point)))

    def _divided(self, loop: int, whole: _Stratum) -> list[_Stratum]:
        """A stratum in three, of which the middle one has been counted."""
        third = (whole.high - whole.low) / 3
        first, last = whole.low + third, whole.high - third
        middle = _Stratum(first, last, whole.counted)
        before, after = self._strata(loop, ((whole.low, first), (last, whole.high)))
        return [before, middle, after]

    # one place

    def _count(self, point: Sequence[float]) -> _Counted:
        values = self.work.values_at(self.loop, self._fractions(point))
        around = prod(self.work.trips_at(loop, values[:loop]) for loop in range(self.loop + 1))
        weight = float(around * self.work.iterations_in(self.loop, values, 1)) if around else 0.0
        if not weight:
            # nothing is executed there: it counts nothing, whatever stands beside it
            values = self.work.values_at(self.loop, (0.0,) * (self.loop + 1))
        repeat = self._repeat(self.work.cost(self.loop, values))
        if self.varying:
            place = measure_here(self.work, self.hierarchy, values, repeat, self.spend)
        else:
            place = measure_at(self.work, self.hierarchy, values, repeat, self.spend)
        return _Counted(place, weight)

    def _fractions(self, point: Sequence[float]) -> tuple[float, ...]:
        """The point, away from both ends of loops that iterate alike."""
        return tuple(
            fraction if loop in self.varying else _MARGIN + (1 - 2 * _MARGIN) * fraction
            for loop, fraction in enumerate(point)
        )

    def _repeat(self, cost: float) -> int:
        """Iterations of the loop in a window: after a whole number of lines, where that is not too long."""
        period = min(self._period, max(1, int(self.spend.measured / cost / 2)))
        return period * ceil(max(1.0, self.spend.block / cost / period))

    @cached_property
    def _period(self) -> int:
        """After how many iterations of the loop all references stand at the same place of a line again."""
        line = self.work.nest.line_bytes
        step = self.work.program.loops[self.loop].step
        strides = (reference.address.coefficients[self.loop] * step for reference in self.work.program.references)
        return lcm(*(line // gcd(line, stride) for stride in strides))

    # the answer

    @property
    def _tolerance(self) -> float:
        return OVER_PLACES if self.varying else TOLERANCE

    def _result(self, counted: list[_Counted], mean: Rates, difference: float) -> Sample:
        places = [each.place for each in counted]
        largest = difference if self.varying else max(difference, *(place.spread for place in places))
        balanced, gain = in_balance(mean, self.hierarchy), imbalance(mean, self.hierarchy)
        from_history = any(place.from_history for place in places)
        sampling = Sampling(
            warm_up=sum(place.warm_up for place in places),
            measured=sum(place.measured for place in places),
            whole_sweep=False,
            windows=len(places),
            settled=largest <= self._tolerance and balanced,
            spread=largest if balanced else max(largest, gain),
            tolerance=self._tolerance,
            reason=self._reason(len(places), largest, from_history=from_history, balanced=balanced),
        )
        return Sample(mean, sampling, from_history)

    def _reason(self, places: int, difference: float, *, from_history: bool, balanced: bool) -> str:
        name = self.work.nest.nest.loops[self.loop].variable
        warmed = (
            "caches were filled with the lines that the nest touched last before, in their order"
            if from_history
            else "caches were warmed up until as many lines leave as enter"
        )
        text = (
            f"a sweep has {self.work.touches(-1):.2g} touches; windows of iterations of loop {name} were simulated at "
            f"{places} places, {warmed}"
        )
        if not balanced:
            text += "; more lines still enter than leave"
        if difference <= self._tolerance:
            return text
        what = "more places may change the mean" if self.varying else "windows still differ"
        return f"{text}; {what} by {difference:.1%}"


def _at_once(count: Callable[[_Place], _Found], places: Sequence[_Place]) -> list[_Found]:
    """What is counted at some places, at the same time: the compiled engine holds no lock of Python's."""
    if len(places) == 1:
        return [count(places[0])]
    with ThreadPoolExecutor(process_count(None)) as pool:
        return list(pool.map(count, places))


def _mean(counted: Sequence[_Counted]) -> Rates:
    return weighted_mean([(each.weight, each.place.rates) for each in counted])


def weighted_mean(parts: Sequence[tuple[float, Rates]]) -> Rates:
    """The mean of counts by their weights."""
    total = sum(weight for weight, _ in parts)
    return weighted_sum([(weight / total, rates) for weight, rates in parts])


def _doubt(strata: Sequence[_Stratum], number: int, mean: Rates) -> float:
    """How far the mean may be off because a stratum is counted in its middle only, times all weights.

    A step between two middles lies a quarter of a stratum from where halving the difference puts it, on average.
    """
    own = strata[number]
    beside = [strata[k] for k in (number - 1, number + 1) if 0 <= k < len(strata)]
    return max(spread(own.counted.place.rates, other.counted.place.rates, mean) for other in beside) * own.weight / 4


def halton(dimensions: int) -> Iterator[tuple[float, ...]]:
    """Points that spread evenly over the unit cube, however many are taken (Halton 1960)."""
    for number in count(1):
        yield tuple(_mirrored(number, _PRIMES[k % len(_PRIMES)]) for k in range(dimensions))


def _mirrored(number: int, base: int) -> float:
    """The digits of a number mirrored at the point."""
    value, scale = 0.0, 1.0
    while number:
        number, digit = divmod(number, base)
        scale /= base
        value += digit * scale
    return value
