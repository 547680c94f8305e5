"""The traffic of a nest in its inner caches alone: what goes on further out does not change it, and costs most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from kernmodel.cachesim.model import MEMORY, CacheSpec, Hierarchy
from kernmodel.machine.model import Machine
from kernmodel.traffic.counted import simulated_paths
from kernmodel.traffic.model import PathTraffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.placement import place_arrays
from kernmodel.traffic.program import program_of
from kernmodel.traffic.sampling import sample
from kernmodel.traffic.steady import Effort
from kernmodel.traffic.walk import Work


@dataclass(frozen=True, slots=True)
class InnerCaches:
    """A nest in the first caches of a machine, for any layout.

    Attributes:
        work, machine, hierarchy: the nest, and all caches.
        depth: how many caches are simulated.
        spend: what may be spent on it.
        unit: iterations in a unit of work.
    """

    work: Work
    machine: Machine
    hierarchy: Hierarchy
    depth: int
    spend: Effort
    unit: Fraction

    def paths(self, layout: SimulationOptions) -> tuple[PathTraffic, ...]:
        """What crosses the paths out of these caches, by a short simulation.

        A line that they lose comes back soon: a victim cache beyond them still has it.
        """
        bases = place_arrays(self.work.nest, self.hierarchy, layout)
        work = Work(self.work.nest, program_of(self.work.nest, bases))
        rates = sample(work, _inner(self.hierarchy, self.depth), self.spend).rates
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
