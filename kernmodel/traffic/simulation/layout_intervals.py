"""Between which values the traffic of a nest lies over the usual layouts of its arrays, where the layout decides.

Only the caches in which it decides, and those inside of them, are simulated for other layouts, for a short while: what
counts is how a layout differs from the assumed one. That costs little beside the simulation whose numbers stand.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from kernmodel.cachesim.model import MEMORY, CacheSpec, Hierarchy
from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.traffic.model import QUANTITIES, PathTraffic, Traffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.array_layout import declared_order, layout_text, place_arrays
from kernmodel.traffic.simulation.layout_risks import CAUSE, LayoutJudgement
from kernmodel.traffic.simulation.paths import simulated_paths
from kernmodel.traffic.simulation.program import program_of
from kernmodel.traffic.simulation.steady_state import Effort
from kernmodel.traffic.simulation.vectors import sample_vectors
from kernmodel.traffic.simulation.work import Work
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass

_DIFFERS, _SMALL = 0.05, 0.02
"""A number has an interval where layouts change it by more than the first share of it and more than the second share of
what moves on the busiest path; what is less is within the accuracy of the simulation."""


Remember = Callable[[Hashable, Callable[[], tuple[PathTraffic, ...]]], tuple[PathTraffic, ...]]
"""Gives what was made for a key, or makes it now: a simulation of inner caches is the same for all shares of outer
ones, and so is asked for again with each number of cores."""


def at_once(key: Hashable, make: Callable[[], tuple[PathTraffic, ...]]) -> tuple[PathTraffic, ...]:
    """Makes it now, and remembers nothing."""
    return make()


def with_layouts(
    traffic: Traffic,
    work: Work,
    judged: LayoutJudgement,
    machine: Machine,
    hierarchy: Hierarchy,
    spend: Effort,
    remember: Remember = at_once,
) -> Traffic:
    """Traffic with the intervals of its numbers over the usual layouts; unchanged where none decides.

    Args:
        traffic: by simulation, or by layer conditions where these hold in the assumed layout.
        work: the nest.
        judged: what was found about the layouts of its arrays.
        hierarchy: the caches.
        spend: what may be spent on a simulation; a small part of it is spent on each layout.
        remember: of this nest with these sizes and stores.
    """
    options = judged.assumed
    if not judged.others:
        return traffic
    depth = 1 + max([spec.name for spec in hierarchy.levels].index(cache) for cache in judged.caches)
    layouts = InnerCaches(
        work, machine, hierarchy, depth, _part(spend), Fraction(traffic.iterations_per_unit), remember
    )
    assumed, others = layouts.paths(options), [layouts.paths(other) for other in judged.others]
    busiest = max(getattr(path, name) for path in traffic.paths for name in QUANTITIES)
    text = layout_text(declared_order(work.nest.nest), hierarchy, options)
    paths = list(traffic.paths)
    for number, same in enumerate(assumed):
        found = dict(paths[number].intervals)
        for name in QUANTITIES:
            value = getattr(paths[number], name)
            changes = [getattr(other[number], name) - getattr(same, name) for other in others]
            low, high = min(0.0, *changes), max(0.0, *changes)
            if high - low > max(_DIFFERS * (value + high), _SMALL * busiest):
                found[name] = Interval(max(0.0, value + low), value + high, CAUSE, text)
        paths[number] = replace(paths[number], intervals=found)
    if tuple(paths) == traffic.paths:
        return traffic
    pairs = zip(hierarchy.levels, paths, strict=True)
    changed = [spec.name for spec, path in pairs if any(path.intervals.values())]
    return replace(traffic, paths=tuple(paths), notes=(*traffic.notes, *_notes(judged, changed)))


def _notes(judged: LayoutJudgement, changed: Sequence[str]) -> tuple[Note, ...]:
    """Why the layout decides on what leaves and enters these caches."""
    causes = [risk.reason for risk in judged.risks if risk.cache in changed] or [
        f"what is used again fills {' and '.join(changed)} or more, so a few lines that share a set count"
    ]
    return tuple(Note("layout-decides", f"the places of the arrays decide: {cause}", "assumption") for cause in causes)


def _part(spend: Effort) -> Effort:
    """What is spent on one layout: a few windows, each long enough that what happens at its ends does not count."""
    return replace(
        spend,
        sweep=spend.sweep / 20,
        window=spend.window / 10,
        block=spend.block / 4,
        warm_up=spend.warm_up / 5,
        measured=spend.measured / 10,
        total=spend.total / 20,
    )


@dataclass(frozen=True, slots=True)
class InnerCaches:
    """A nest in the first caches of a machine, for any layout.

    Attributes:
        work, machine, hierarchy: the nest, and all caches.
        depth: how many caches are simulated.
        spend: what may be spent on it.
        unit: iterations in a unit of work.
        remember: of this nest with these sizes and stores.
    """

    work: Work
    machine: Machine
    hierarchy: Hierarchy
    depth: int
    spend: Effort
    unit: Fraction
    remember: Remember = at_once

    def paths(self, layout: SimulationOptions) -> tuple[PathTraffic, ...]:
        """What crosses the paths out of these caches, by a short simulation.

        A line that they lose comes back soon: a victim cache beyond them still has it.
        """
        bases, caches = place_arrays(self.work.nest, self.hierarchy, layout), _inner(self.hierarchy, self.depth)
        beyond = self.machine.levels[: self.depth + 1], tuple(path.name for path in self.machine.paths)
        key = tuple(bases.items()), caches, beyond, self.spend, layout.lanes, self.unit
        return self.remember(key, lambda: self._simulated(bases, caches, layout.lanes))

    def _simulated(self, bases: Mapping[str, int], caches: Hierarchy, lanes: int) -> tuple[PathTraffic, ...]:
        work = Work(self.work.nest, program_of(self.work.nest, bases))
        rates = sample_vectors(work, caches, self.spend, lanes).rates
        levels, paths = self.machine.levels[: self.depth], self.machine.paths[: self.depth]
        found = simulated_paths(replace(self.machine, levels=levels, paths=paths), work.nest, rates, self.unit)
        beyond = self.machine.levels[self.depth : self.depth + 1]
        if not any(level.filled_by == "victims" and level.clean_victims for level in beyond):
            return found
        clean = float(self.unit) * rates.of(levels[-1].name, "clean_evictions")
        return (*found[:-1], replace(found[-1], clean_victims=clean))


def _inner(hierarchy: Hierarchy, depth: int) -> Hierarchy:
    """The first caches of a hierarchy, with memory behind them."""
    names = {spec.name for spec in hierarchy.levels[:depth]}

    def alone(spec: CacheSpec) -> CacheSpec:
        return replace(
            spec,
            load_from=spec.load_from if spec.load_from in names else MEMORY,
            store_to=spec.store_to if spec.store_to in names else MEMORY,
            victim_level=spec.victim_level if spec.victim_level in names else None,
        )

    return replace(hierarchy, levels=tuple(alone(spec) for spec in hierarchy.levels[:depth]))
