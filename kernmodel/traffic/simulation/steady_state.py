"""Counting at one place of a nest, once its caches hold what they would hold after everything that came before."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import Hierarchy
from kernmodel.traffic.simulation.lru_history import history
from kernmodel.traffic.simulation.rates import BALANCE, Rates, entered, in_balance, left, rates_of, spread, weighted_sum
from kernmodel.traffic.simulation.work import Runner, Work
from kernmodel.value_types import dataclass

TOLERANCE = 0.01
"""Relative difference up to which counts are taken as equal."""

_FEW_LINES = 8
"""More lines that enter than leave, up to which a cache is in balance all the same."""

_HOPELESS = 2
"""Warming up ends where two estimates in a row exceed what may be spent so many times."""

_NEW_LINE = 20.0
"""A touch of another line takes about as long as so many of the same one."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How many touches may be spent.

    Attributes:
        sweep: on one whole sweep; longer ones are sampled by windows (0: all are).
        window: on one iteration of the loop that windows are made of.
        block: on a window at least.
        warm_up: before counting at a place.
        measured: while counting at a place.
        total: at all places.
        places: to begin with where all are alike.
        strata: to begin with where places differ along one loop.
        reach: how far back the history goes, in lines of all caches together (more than they hold, since sets fill
            unevenly), and how far if that leaves many sets with empty ways.
        trusting: whether the second of two whole sweeps counts where all caches have LRU and are in balance: what such
            a cache holds after a sweep depends on that sweep alone, but for what the one inside it held before.
    """

    sweep: float
    window: float
    block: float
    warm_up: float
    measured: float
    total: float
    places: int = 2
    strata: int = 8
    reach: tuple[float, ...] = (2.0, 8.0)
    trusting: bool = False


@dataclass(frozen=True, slots=True)
class PlaceCounts:
    """What was counted at one place.

    Attributes:
        rates: per inner iteration.
        warm_up, measured: inner iterations before and while counting.
        spread: the largest relative difference between the first and the second half of what was counted.
        from_history: whether the caches were warmed by the history rather than by executing enough.
        touches: that were spent, the history among them.
    """

    rates: Rates
    warm_up: int
    measured: int
    spread: float
    from_history: bool
    touches: float


def measure_at(work: Work, hierarchy: Hierarchy, values: Sequence[int], repeat: int, effort: Effort) -> PlaceCounts:
    """Count at a place.

    Args:
        work: the nest.
        hierarchy: the caches, empty at first.
        values: of the outermost loop variables, down to the loop whose iterations make up the windows.
        repeat: iterations of that loop in a window.
        effort: how much may be spent.
    """
    place = _start(work, hierarchy, values)
    cost = work.cost(len(values) - 1, values)
    filled = place.warm_up(repeat, max(repeat, int(effort.warm_up / cost)))
    if not filled:
        place = _after_history(work, hierarchy, values, repeat, effort)
    return place.measure(repeat, max(2 * repeat, int(effort.measured / cost)), from_history=not filled)


def measure_here(work: Work, hierarchy: Hierarchy, values: tuple[int, ...], repeat: int, effort: Effort) -> PlaceCounts:
    """The same in two short windows around the place, for nests that differ from place to place.

    Warming up by executing would lead away from it: the history fills the caches, and one window before those that
    count puts what it left into its true order.
    """
    place = _after_history(work, hierarchy, work.earlier(values, 2 * repeat), repeat, effort)
    return place.measure(repeat, 2 * repeat, from_history=True)


def _after_history(work: Work, hierarchy: Hierarchy, values: Sequence[int], repeat: int, effort: Effort) -> _Start:
    """A simulator with the history before a place and some iterations from there; a longer one if sets stay empty."""
    spent = 0.0
    for reach in effort.reach:
        place = _start(work, hierarchy, values)
        place.spent = spent
        place.warm_by_history(values, reach)
        rates, _ = place.execute(repeat)
        spent = place.spent
        if in_balance(rates, hierarchy):
            break
    return place


def _start(work: Work, hierarchy: Hierarchy, values: Sequence[int]) -> _Start:
    simulator = Simulator(hierarchy)
    return _Start(work, hierarchy, Runner(work, simulator, len(values) - 1, work.position(values)))


@dataclass
class _Start:
    """A simulator at a place of a nest."""

    work: Work
    hierarchy: Hierarchy
    runner: Runner
    spent: float = 0.0

    def execute(self, repeat: int) -> tuple[Rates, int]:
        """Execute iterations of the loop; what was counted meanwhile, and the inner iterations."""
        simulator = self.runner.simulator
        simulator.reset_counters()
        iterations = self.runner.run(repeat)
        return rates_of(simulator.counters()), iterations

    def warm_up(self, repeat: int, limit: int) -> bool:
        """Execute until as many lines leave every cache as enter; False if that takes more than `limit` iterations."""
        held = dict.fromkeys((spec.name for spec in self.hierarchy.levels), 0.0)
        chunk, done, hopeless = repeat, 0, False
        while done + chunk <= limit:
            rates, _ = self.execute(chunk)
            done += chunk
            needed = self._iterations_to_fill(rates, chunk, held)
            if not needed:
                if any(spec.policy != "LRU" for spec in self.hierarchy.levels):
                    self.runner.run(done)  # others than LRU forget their first lines more slowly
                return True
            # one estimate may be far too large: an outer cache gets nothing while an inner one fills
            if hopeless and done + needed > _HOPELESS * limit:
                break
            hopeless = done + needed > _HOPELESS * limit
            chunk = max(repeat, ceil(min(needed, 2 * done) / repeat) * repeat)
        return False

    def _iterations_to_fill(self, rates: Rates, executed: int, held: dict[str, float]) -> float:
        """How many more iterations of the loop fill the caches at the pace of the last ones; 0 if they are full."""
        needed = 0.0
        for spec in self.hierarchy.levels:
            gain = entered(spec, rates, self.hierarchy) - left(spec, rates)
            held[spec.name] += gain
            if gain > max(_FEW_LINES, BALANCE * entered(spec, rates, self.hierarchy)):
                missing = max(0.0, spec.sets * spec.ways - held[spec.name])
                needed = max(needed, missing / gain * executed, 1.0)
        return needed

    def warm_by_history(self, values: Sequence[int], reach: float) -> None:
        """Fill the caches with what the nest touched last before this place, `reach` times what they hold."""
        cached = sum(spec.size_bytes for spec in self.hierarchy.levels)
        for program in history(self.work, values, cached, reach):
            self.spent += _NEW_LINE * self.runner.simulator.touch(program) * len(program.references)

    def measure(self, repeat: int, limit: int, *, from_history: bool) -> PlaceCounts:
        """Count over windows of growing length until two agree or `limit` iterations of the loop are executed."""
        warm_up = self.runner.executed
        first, before = self.execute(repeat)
        window = repeat
        while True:
            second, after = self.execute(window)
            rates = weighted_sum([(1.0, first), (1.0, second)])
            difference = spread(_per_iteration(first, before), _per_iteration(second, after))
            if difference <= TOLERANCE or 4 * window > limit:
                break
            first, before, window = rates, before + after, 2 * window
        measured = before + after
        return PlaceCounts(
            rates=_per_iteration(rates, measured),
            warm_up=warm_up,
            measured=measured,
            spread=difference,
            from_history=from_history,
            touches=self.spent + self.runner.executed * self.work.touches(-1) / self.work.iterations,
        )


def _per_iteration(rates: Rates, iterations: int) -> Rates:
    return weighted_sum([(1 / max(1, iterations), rates)])
