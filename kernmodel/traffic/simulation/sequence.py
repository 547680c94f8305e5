"""Nests that are executed one after the other, simulated in one go: what each finds of the others is counted.

The steady state is that of the whole sequence, as if it had been repeated for ever. Where a loop around several nests
does the same in every iteration (a time loop), its iterations are executed until two count the same, and the last of
them stands for those that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from math import prod

from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import Hierarchy
from kernmodel.cachesim.programs import bound_value
from kernmodel.source.nest.sequence import Body, NestSequence
from kernmodel.traffic.model import Sampling
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.array_layout import ArrayReach, lay_out, reaches_of
from kernmodel.traffic.simulation.program import NumericNest, program_of
from kernmodel.traffic.simulation.rates import Rates, rates_of, spread, weighted_sum
from kernmodel.traffic.simulation.sampling import Sample
from kernmodel.traffic.simulation.steady_state import TOLERANCE
from kernmodel.traffic.simulation.work import Runner, Work
from kernmodel.value_types import dataclass

_PASSES = 6
"""Most repetitions of the sequence, and of the iterations of a loop that does the same in each."""

_LIKELY = 3
"""Iterations of such a loop that are likely to be executed until two count the same."""

_TURN = 1000.0
"""Touches that take as long as a turn from nest to nest, some 0.2 ms."""

Counts = dict[int, Rates]
"""By the number of the nest."""


def placed_works(
    sequence: NestSequence, nests: Sequence[NumericNest], hierarchy: Hierarchy, options: SimulationOptions
) -> tuple[Work, ...]:
    """The nests as programs over the same arrays, each placed in memory where all of them together need it."""
    reaches: dict[str, ArrayReach] = {}
    for one in (reach for nest in nests for reach in reaches_of(nest)):
        known = reaches.get(one.name, one)
        reaches[one.name] = replace(known, low=min(known.low, one.low), high=max(known.high, one.high))
    bases = lay_out(tuple(reaches.values()), hierarchy, options)
    return tuple(Work(nest, program_of(nest, bases)) for nest in nests)


@dataclass(frozen=True)
class SequenceRun:
    """Nests that are executed one after the other, on caches.

    Attributes:
        sequence: the nests.
        works: the same as programs.
        hierarchy: the caches.
    """

    sequence: NestSequence
    works: tuple[Work, ...]
    hierarchy: Hierarchy

    def touches(self) -> float:
        """Touches that are likely to be simulated."""
        return 2 * sum(self.works[k].touches(-1) / self._left_out(k) for k in self.sequence.root.numbers())

    def turns(self) -> float:
        """Turns from nest to nest in one repetition."""
        found = 0.0
        for number in self.sequence.root.numbers():
            depth = self.sequence.bodies(number)[-1].depth
            found += self.works[number].bodies[depth] / self._left_out(number)
        return found

    def is_affordable(self, touches: float) -> bool:
        """Whether a simulation takes no longer than so many touches, and its turns no longer than these."""
        return self.touches() <= touches and _TURN * self.turns() <= touches

    def _left_out(self, number: int) -> float:
        """The factor by which fewer iterations than there are need to be executed."""
        loops = [body.depth - 1 for body in self.sequence.bodies(number)[1:] if self._repeats(body)]
        trips = (self.works[number].bodies[loop + 1] / max(1, self.works[number].bodies[loop]) for loop in loops)
        return prod(max(1.0, count / _LIKELY) for count in trips)

    def _repeats(self, body: Body) -> bool:
        """Whether the innermost loop around a body does the same in each of its iterations."""
        loop = body.depth - 1
        return all(_is_still(self.works[number], loop) for number in body.numbers())

    def simulate(self) -> tuple[Sample, ...]:
        """Counts per inner iteration of each nest, in the steady state."""
        execution = _Execution(self, Simulator(self.hierarchy))
        before, difference, passes = execution.run(), 1.0, 1
        while difference > TOLERANCE and passes < _PASSES:
            counted = execution.run()
            difference, passes, before = _difference(before, counted), passes + 1, counted
        return tuple(self._sample(number, before[number], passes, difference) for number in sorted(before))

    def _sample(self, number: int, counted: Rates, passes: int, difference: float) -> Sample:
        iterations = self.works[number].iterations
        others = len(self.works) - 1
        reason = (
            f"{passes} repetitions of this nest and of the {others} others that are executed with it were simulated, "
            f"each as they follow one another: the last two differ by {difference:.1%}"
        )
        sampling = Sampling(
            warm_up=(passes - 1) * iterations,
            measured=iterations,
            whole_sweep=True,
            windows=1,
            settled=difference <= TOLERANCE,
            spread=difference,
            tolerance=TOLERANCE,
            reason=reason,
        )
        return Sample(weighted_sum([(1 / iterations, counted)]), sampling)


@dataclass
class _Execution:
    """A simulator that executes the sequence, with where each nest stands."""

    given: SequenceRun
    simulator: Simulator
    runners: dict[int, Runner] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in self.given.sequence.root.numbers():
            work, depth = self.given.works[number], self.given.sequence.bodies(number)[-1].depth
            if depth:
                self.runners[number] = Runner(work, self.simulator, depth - 1, None)

    def run(self) -> Counts:
        """What one repetition of the sequence counts."""
        return self._body(self.given.sequence.root, ())

    def _body(self, body: Body, values: tuple[int, ...]) -> Counts:
        found: Counts = {}
        for part in body.parts:
            found |= {part: self._nest(part, values)} if isinstance(part, int) else self._loop(part, values)
        return found

    def _nest(self, number: int, values: tuple[int, ...]) -> Rates:
        """What a nest counts where the loops that it shares have these values."""
        self.simulator.reset_counters()
        work, runner = self.given.works[number], self.runners.get(number)
        if runner is None:
            self.simulator.run(work.program)
        else:
            if runner.position is None or runner.position.values[: len(values)] != values:
                runner.position = work.position(values)
            runner.run(1)
        rates, count = rates_of(self.simulator.counters()), len(work.program.references)
        # counters have a row for each reference of the largest program that has been executed
        none = (0.0,) * (len(self.given.hierarchy.levels) + 1)
        return replace(rates, served=(*rates.served, *[none] * count)[:count])

    def _loop(self, body: Body, values: tuple[int, ...]) -> Counts:
        """What all iterations of the loop around a body count."""
        repeats, weighted = self.given._repeats(body), list[tuple[float, Counts]]()
        iterations = list(self._iterations(body, values))
        for place, value in enumerate(iterations):
            counted = self._body(body, (*values, value))
            settled = repeats and place and _difference(weighted[-1][1], counted) <= TOLERANCE
            if settled or (repeats and place + 1 == _PASSES):
                weighted.append((float(len(iterations) - place), counted))
                break
            weighted.append((1.0, counted))
        return {
            number: weighted_sum([(weight, counted[number]) for weight, counted in weighted])
            for number in body.numbers()
            if weighted
        }

    def _iterations(self, body: Body, values: tuple[int, ...]) -> Iterator[int]:
        """The values of the innermost loop around a body."""
        loop = body.depth - 1
        work = self.given.works[next(body.numbers())]
        first = bound_value(work.program.loops[loop].start, values)
        step = work.program.loops[loop].step
        yield from range(first, first + work.trips_at(loop, values) * step, step)


def _is_still(work: Work, loop: int) -> bool:
    """Whether a nest does the same in every iteration of a loop, but for what it touches once in each."""
    moved = (
        form.coefficients[loop]
        for each in work.program.references
        if each.depth > loop + 1
        for form in (each.address, *(index.position for index in each.indirections))
    )
    return not any(moved) and not any(work.depends(inner, loop) for inner in range(loop + 1, len(work.program.loops)))


def _difference(one: Counts, other: Counts) -> float:
    """The largest relative difference of a flow of any nest."""
    return max(spread(one[number], other[number]) for number in one)
