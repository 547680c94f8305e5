"""Performance over cores where a pragma divides a loop of the nest: the core that is ready last decides."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from kernmodel.errors import Note
from kernmodel.machine.cores import Schedule, Spread
from kernmodel.machine.model import Machine
from kernmodel.value_types import NamedTuple

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.source.model import LoopNest, Parallel
    from kernmodel.source.nest.division import Division


def parallel_at(nest: LoopNest, spread: Spread) -> Parallel | None:
    """How the nest is divided: as its pragma says, with the schedule that is asked for where that is another one."""
    said = nest.parallel
    if said is None or spread.schedule is None or spread.schedule == schedule_of(said):
        return said
    return replace(said, schedule=spread.schedule, chunk=None)


def schedule_of(parallel: Parallel) -> Schedule:
    """Whether cores have given work ("static") or take it as they are ready ("dynamic")."""
    return "static" if parallel.schedule in (None, "static") else "dynamic"


def spread_of(nest: LoopNest, spread: Spread) -> Spread:
    """The spread that is asked for, its schedule that of the nest where none is."""
    parallel = parallel_at(nest, spread)
    if spread.schedule is not None or parallel is None:
        return spread
    return replace(spread, schedule=schedule_of(parallel))


def divided(nest: LoopNest, spread: Spread, sizes: Mapping[str, int], cores: int) -> Division | None:
    """How the iterations of the divided loop fall to cores, None where none is divided."""
    from kernmodel.source.nest.division import division

    parallel = parallel_at(nest, spread)
    return None if parallel is None else division(nest, parallel, sizes, cores)


def working_cores(made: Division | None, cores: int) -> int:
    """The cores that have any iterations."""
    return cores if made is None else max(1, cores - round(made.idle))


class CoreParts:
    """What one of several cores executes of a nest at given sizes, for any number of cores."""

    def __init__(self, nest: LoopNest, spread: Spread, sizes: Mapping[str, int]) -> None:
        from kernmodel.source.nest.part import Parts

        self._nest, self._sizes = nest, sizes
        dynamic = spread_of(nest, spread).schedule == "dynamic"
        self._parts = None if dynamic else Parts(nest, sizes, parallel_at(nest, spread))

    def of(self, cores: int) -> LoopNest | None:
        """The part, the whole nest for one core; None: that is not the same part at each execution, or not known."""
        if cores == 1:
            return self._nest
        return None if self._parts is None else self._parts.of(cores)

    def extent(self, cores: int) -> Hashable:
        """Which iterations one of so many cores executes: equal for numbers of cores whose parts are the same."""
        part, sizes = self.of(cores), self._sizes
        if part is None or part is self._nest:
            return part is None
        cut = (loop for loop in part.loops if loop.variable in part.divided)
        return tuple((loop.variable, loop.start.value(sizes), loop.stop.value(sizes)) for loop in cut)


class DividedPoint(NamedTuple):
    """Performance on so many cores.

    Attributes:
        point: the performance.
        division: how the iterations of the divided loop fall to cores, None where no pragma divides one.
        unequal: the part by which that differs from the performance with equal work for every core.
    """

    point: ScalingPoint
    division: Division | None
    unequal: float


def scale_divided(
    predict_at: Callable[[int, int], EcmPrediction],
    cores: int,
    machine: Machine,
    spread: Spread,
    nest: LoopNest,
    sizes: Mapping[str, int],
) -> DividedPoint:
    """As `kernmodel.models.ecm.scale`, of the cores that have iterations of a divided loop, each with its share.

    Args:
        predict_at: the prediction of one core with so many active in its ccNUMA domain, and so many at work in all.
    """
    from kernmodel.models.ecm import domain_rate, scale

    made = divided(nest, spread, sizes, cores)
    parts = working_cores(made, cores)
    spread = spread_of(nest, spread)
    found = scale(lambda active: predict_at(active, parts), parts, machine, spread)
    point = replace(found, cores=cores)
    if made is None or made.balance is None or point.single_core_cycles <= 0 or point.units_per_cycle <= 0:
        return DividedPoint(point, made, 0.0)
    predictions = [predict_at(active, parts) for active in spread.by_domain(machine, parts)]
    rate_of = partial(domain_rate, machine)
    all_cores, first = unequal_work(made, predictions, machine, spread, point.units_per_cycle, rate_of)
    if all_cores == 1:
        return DividedPoint(point, made, 0.0)
    rate, interval = point.units_per_cycle * all_cores, point.cycles_interval
    if interval is not None:
        least = point.single_core_cycles / (made.balance * cores)
        interval = replace(interval, low=min(max(interval.low, least), 1 / rate), high=1 / rate)
    limited = replace(
        point,
        units_per_cycle=rate,
        cycles=1 / rate,
        utilization=None if point.utilization is None else point.utilization * first,
        saturated=point.saturated and all_cores >= 1,
        cycles_interval=interval,
        at_channels=point.at_channels and all_cores >= 1,
    )
    return DividedPoint(limited, made, abs(1 - all_cores))


class Factors(NamedTuple):
    """What changes in the performance of all cores, and of those of the first domain."""

    all_cores: float
    first: float


def unequal_work(
    made: Division | None,
    predictions: Sequence[EcmPrediction],
    machine: Machine,
    spread: Spread,
    rate: float,
    rate_of: Callable[[EcmPrediction, int], float],
) -> Factors:
    """What becomes of performance since some cores have more work than others.

    Where each has its share of the iterations, all wait for the last one that is ready. Those of a domain that are
    still at work share its bandwidth: as some are ready, the others get on faster.

    Args:
        made: how the iterations fall to cores; predictions: of one core, by the domain in use.
        rate: units of work per cycle of all cores, with equal work.
        rate_of: the same of a domain of which so many cores are at work.
    """
    if made is None or made.balance is None or rate <= 0:
        return Factors(1.0, 1.0)
    if spread.schedule == "dynamic":
        factor = min(1.0, made.balance * made.threads / predictions[0].cycles / rate)
        return Factors(factor, factor)
    idle = made.threads - working_cores(made, made.threads)
    equal = ((1.0,) * (made.threads - idle) + (0.0,) * idle,)
    domains = list(_domains_of_threads(made.threads, machine, spread))

    def progress(executions: Sequence[Sequence[float]]) -> tuple[float, float]:
        """Work per cycle of all cores and of those of the first domain, the mean over the executions."""
        work = first = cycles = 0.0
        for shares in executions:
            by_domain: dict[int, list[float]] = {}
            for domain, share in zip(domains, shares, strict=True):
                if share:
                    by_domain.setdefault(domain, []).append(share)
            ready = (
                _last_ready(sorted(own), partial(rate_of, predictions[min(domain, len(predictions) - 1)]))
                for domain, own in by_domain.items()
            )
            cycles += max(ready)
            work += sum(shares)
            first += sum(by_domain.get(0, ()))
        return work / cycles, first / cycles

    before, after = progress(equal), progress(made.shares)
    return Factors(after[0] / before[0], after[1] / before[1])


def _domains_of_threads(threads: int, machine: Machine, spread: Spread) -> Iterator[int]:
    """The ccNUMA domain of each thread."""
    topology = machine.topology
    if spread.placement == "scatter":
        return (thread % topology.numa_domains for thread in range(threads))
    return (thread // topology.cores_per_numa_domain for thread in range(threads))


def _last_ready(shares: Sequence[float], rate_of: Callable[[int], float]) -> float:
    """When the last core of a domain has done its share.

    Args:
        shares: of its cores, the smallest first; rate_of: what so many of them do together.
    """
    done = cycles = 0.0
    for ready, share in enumerate(shares):
        if share > done:
            active = len(shares) - ready
            cycles += (share - done) * active / rate_of(active)
            done = share
    return cycles


def division_notes(nest: LoopNest, spread: Spread, made: Sequence[Division | None] = ()) -> tuple[Note, ...]:
    """Which loop a pragma divides, how, and what is not known of it."""
    parallel = parallel_at(nest, spread)
    if parallel is None:
        return _undirected_notes(nest, spread)
    names = " and ".join(loop.variable for loop in nest.loops[parallel.loop : parallel.loop + parallel.collapse])
    kind = f"{parallel.schedule or 'static'}{f' in chunks of {parallel.chunk}' if parallel.chunk else ''}"
    by = "as --schedule asks" if parallel is not nest.parallel else f"by #pragma {parallel.text}"
    text = f"the loop over {names} is divided over the cores, {kind}, {by}"
    notes = [Note("divided-loop", text, "assumption", parallel.location), *_whole_notes(nest, spread)]
    if any(one is not None and one.balance is None for one in made):
        what = f"the loop over {names} has too many iterations of different length to say which core has the most work"
        notes.append(Note("division-not-counted", what, where=parallel.location))
    return tuple(notes)


def _undirected_notes(nest: LoopNest, spread: Spread) -> tuple[Note, ...]:
    """Which loop is taken to be divided where no pragma says so."""
    from kernmodel.source.nest.part import divided_loops, is_independent

    whole = _whole_notes(nest, spread)
    if whole:
        return whole
    first, _ = divided_loops(nest)
    text = f"the loop over {nest.loops[first].variable} is taken to be divided over the cores: no pragma divides any"
    if not is_independent(nest, first):
        text += ", and the iterations of each depend on one another"
    return (Note("divided-loop", text, "assumption"),)


def _whole_notes(nest: LoopNest, spread: Spread) -> tuple[Note, ...]:
    """Why each core is taken to sweep over all of the data, where it is."""
    from kernmodel.source.nest.part import is_divisible

    if spread_of(nest, spread).schedule == "dynamic":
        why = "a dynamic schedule gives it other iterations each time"
    elif not is_divisible(nest, parallel_at(nest, spread)):
        why = "its part of the divided loop depends on the loops around that"
    else:
        return ()
    return (whole_data(why),)


def whole_data(why: str) -> Note:
    """That a core is not taken to have a part of the data alone."""
    text = f"each core is taken to sweep over all of the data with its share of the caches: {why}"
    return Note("whole-data", text, "assumption")
