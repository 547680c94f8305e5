"""How much a nest executes: iterations and touches per loop, and runs of whole iterations of an outer loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import Position, Program
from kernmodel.cachesim.programs import bound_value, settled, trips
from kernmodel.source.nest.counting import NumericLoop, count_iterations
from kernmodel.traffic.simulation.program import NumericNest
from kernmodel.value_types import dataclass


class Work:
    """What a sweep over a program executes.

    Attributes:
        nest: the nest.
        program: the same, placed in memory.
    """

    def __init__(self, nest: NumericNest, program: Program) -> None:
        self.nest = nest
        self.program = program

    @cached_property
    def bodies(self) -> tuple[int, ...]:
        """How often the body at each depth is executed in a sweep; the first is 1, the last the inner iterations."""
        loops = self.nest.counted
        return (1, *(count_iterations(loops[: depth + 1]) for depth in range(len(loops))))

    @property
    def iterations(self) -> int:
        """Inner iterations of a sweep."""
        return self.bodies[-1]

    def touches(self, loop: int) -> float:
        """Touches in one iteration of a loop, the mean over all; of a sweep for −1."""
        inside = sum(self.bodies[each.depth] for each in self.program.references if each.depth > loop)
        return inside / max(1, self.bodies[loop + 1])

    def cost(self, loop: int, values: Sequence[int]) -> float:
        """Touches in one iteration of a loop, where it and the outer loops have these values."""
        return max(1.0, self.touches(-1) / self.iterations * self.iterations_in(loop, values, 1))

    def depends(self, inner: int, outer: int) -> bool:
        """Whether the bounds of a loop depend on the variable of another."""
        return self.nest.counted[outer].variable in self.nest.counted[inner].uses

    def values_at(self, loop: int, fractions: Sequence[float]) -> tuple[int, ...]:
        """Values of the variables of the loops from the outermost to `loop`, at these fractions of their ranges."""
        values: list[int] = []
        for each, fraction in zip(self.program.loops[: loop + 1], fractions, strict=False):
            start, stop = bound_value(each.start, values), bound_value(each.stop, values)
            values.append(start + int(fraction * max(1, trips(start, stop, each.step))) * each.step)
        return tuple(values)

    def trips_at(self, loop: int, values: Sequence[int]) -> int:
        """Iterations of a loop where the outer variables have these values."""
        each = self.program.loops[loop]
        return trips(bound_value(each.start, values), bound_value(each.stop, values), each.step)

    def earlier(self, values: tuple[int, ...], count: int) -> tuple[int, ...]:
        """The iteration of a loop so many before the one with these values, also where outer loops step in between.

        The first iteration of a sweep follows the last one of the sweep before.
        """
        loop, outer = len(values) - 1, values[:-1]
        each = self.program.loops[loop]
        first = bound_value(each.start, outer)
        before = trips(first, values[loop], each.step)
        if before >= count:
            return (*outer, values[loop] - count * each.step)
        around = self.earlier(outer, 1) if loop else ()
        end = bound_value(each.start, around) + self.trips_at(loop, around) * each.step
        if not loop:
            return (end - min(count - before, self.trips_at(0, ())) * each.step,)
        return self.earlier((*around, end), count - before)

    def trips_within(self, values: Sequence[int]) -> tuple[int, ...]:
        """Iterations of the loops further in where the outermost have these values, in the middle of one another."""
        around, found = list(values), []
        for loop in range(len(values), len(self.program.loops)):
            found.append(self.trips_at(loop, around))
            each = self.program.loops[loop]
            around.append(bound_value(each.start, around) + found[-1] // 2 * each.step)
        return tuple(found)

    def position(self, values: Sequence[int]) -> Position:
        """The first inner iteration where the outermost variables have these values."""
        whole = list(values)
        for each in self.program.loops[len(whole) :]:
            whole.append(bound_value(each.start, whole))
        return Position(tuple(whole))

    def iterations_in(self, loop: int, values: Sequence[int], repeat: int) -> int:
        """Inner iterations of `repeat` iterations of a loop from the one with these values of it and the outer ones."""
        pinned = [self._pinned(k, values[k], 1 if k < loop else repeat) for k in range(loop + 1)]
        return count_iterations((*pinned, *self.nest.counted[loop + 1 :]))

    def _pinned(self, loop: int, value: int, repeat: int) -> NumericLoop:
        counted = self.nest.counted[loop]
        stop = value + repeat * counted.step
        slope, first = {"": repeat * counted.step}, {"": value}
        return NumericLoop(counted.variable, lambda _: value, lambda _: stop, counted.step, frozenset(), slope, first)


@dataclass
class Runner:
    """Executes whole iterations of one loop, from a place in the nest on; the nest begins anew where it ends."""

    work: Work
    simulator: Simulator
    loop: int
    position: Position | None
    executed: int = 0

    def run(self, repeat: int) -> int:
        """Execute `repeat` iterations of the loop; returns the inner iterations."""
        total = 0
        while repeat > 0:
            values = self._values()
            here = max(1, min(repeat, self._rest(values)))
            iterations = self.work.iterations_in(self.loop, values, here)
            self.position = self._after(values, here, iterations)
            total += iterations
            repeat -= here
        self.executed += total
        return total

    def _values(self) -> tuple[int, ...]:
        if self.position is None:
            return self.work.values_at(self.loop, (0.0,) * (self.loop + 1))
        return self.position.values[: self.loop + 1]

    def _rest(self, values: Sequence[int]) -> int:
        """Iterations of the loop that are left, the current one included."""
        each = self.work.program.loops[self.loop]
        return trips(values[self.loop], bound_value(each.stop, values[: self.loop]), each.step)

    def _after(self, values: Sequence[int], repeat: int, iterations: int) -> Position | None:
        """Execute these iterations of the loop; the position after them, also where they have no inner iteration."""
        if iterations:
            return self.simulator.run(self.work.program, start=self.position, iterations=iterations).position
        following = (*values[:-1], values[-1] + repeat * self.work.program.loops[self.loop].step)
        return settled(self.work.program, self.work.position(following))


def run_to_end(work: Work, simulator: Simulator, fraction: float) -> int:
    """Execute the rest of a sweep, from this part of the outermost loop on; returns the inner iterations."""
    first = work.values_at(0, (fraction,))
    iterations = work.iterations_in(0, first, work.trips_at(0, ()) - int(fraction * work.trips_at(0, ())))
    if iterations:
        simulator.run(work.program, start=work.position(first), iterations=iterations)
    return iterations
