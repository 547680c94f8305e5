"""Whether layer conditions hold for a nest at given sizes on a machine: by doubts, then by simulation.

The rules: docs/accuracy.md, chapter on traffic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.source.model import LoopNest
from kernmodel.traffic.comparison.agreement import TOLERANCE, differs, disagreements, relative_difference
from kernmodel.traffic.comparison.doubts import Doubt, DoubtCode, doubts
from kernmodel.traffic.model import Difference, Quantity, Traffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.hierarchy import hierarchy_of
from kernmodel.traffic.simulation.layout_risks import LayoutJudgement, judge_layouts
from kernmodel.traffic.simulation.working_set import WorkingSet, working_set_of_streams
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.traffic.conditions.streams import SizedNest
    from kernmodel.traffic.simulation.layout_intervals import Remember
    from kernmodel.traffic.simulation.steady_state import Effort
    from kernmodel.traffic.simulation.work import Work

_SHORT = 0.1
"""Share of what a whole sweep may cost that is spent on one where inner caches alone are asked: of longer ones, windows
tell as much."""

_REFUTED = frozenset({"several-index-patterns"})
"""Codes of warnings of layer conditions that do not matter where a simulation agrees with them."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks against the layer conditions of a nest, before anything is simulated.

    Attributes:
        symbolic: the traffic by layer conditions.
        sized, machine: what it is about.
        hierarchy, options: of simulations that may be asked.
        doubts: about the conditions; judged: whether the layout of the arrays decides.
    """

    symbolic: Traffic
    sized: SizedNest
    machine: Machine
    hierarchy: Hierarchy
    options: SimulationOptions
    doubts: tuple[Doubt, ...]
    judged: LayoutJudgement

    @property
    def codes(self) -> tuple[DoubtCode, ...]:
        """Why `decide` would ask a simulation about the conditions, or about the layouts that arrays may have."""
        found = tuple(doubt.code for doubt in self.doubts)
        return (*found, "few-sets") if self.judged.others else found


def evidence_of(
    symbolic: Traffic, sized: SizedNest, machine: Machine, lanes: int = 1, working_set: WorkingSet | None = None
) -> Evidence:
    """What speaks against layer conditions.

    Args:
        symbolic: the traffic by layer conditions.
        sized, machine: what it is about; working_set: of the same, None: it is found here.
        lanes: iterations of which each access touches the elements at once (`SimulationOptions.lanes`).
    """
    options = SimulationOptions(lanes=lanes)
    hierarchy = hierarchy_of(machine, symbolic.cores, options)
    if not sized.streams:
        return Evidence(symbolic, sized, machine, hierarchy, options, (), LayoutJudgement(options))
    touched = working_set or working_set_of_streams(sized)
    found, judged = doubts(symbolic, touched, hierarchy), judge_layouts(touched, hierarchy, options)
    return Evidence(symbolic, sized, machine, hierarchy, options, found, judged)


def decide(known: Evidence, remember: Remember | None = None) -> Traffic:
    """The traffic that stands: by layer conditions where they are shown to hold, else simulated, with the reason.

    Layer conditions hold where there is no doubt about them, or where a simulation of bounded length agrees with them.
    Where the layout of the arrays decides, the numbers have intervals over the usual ones.

    Args:
        remember: what was simulated of the same nest with the same sizes and stores (`layout_intervals.Remember`).
    """
    machine, hierarchy = known.machine, known.hierarchy
    case = _Case(known.symbolic, known.sized.prepared.nest, machine, hierarchy, known.options, remember)
    standing = _standing(case, known.doubts)
    if not known.judged.others:
        return standing
    from kernmodel.traffic.simulation.layout_intervals import at_once, with_layouts

    return with_layouts(standing, case.work, known.judged, machine, hierarchy, case.spend, remember or at_once)


@dataclass(frozen=True)
class _Case:
    """A nest at given sizes, what layer conditions say of it, and the simulations that may be asked."""

    symbolic: Traffic
    nest: LoopNest
    machine: Machine
    hierarchy: Hierarchy
    options: SimulationOptions
    remember: Remember | None

    @cached_property
    def work(self) -> Work:
        from kernmodel.traffic.simulation.simulate import placed_work

        symbolic = self.symbolic
        return placed_work(self.nest, self.machine, symbolic.sizes, self.hierarchy, symbolic.stores, self.options)

    @property
    def spend(self) -> Effort:
        """What a short simulation may cost."""
        from kernmodel.traffic.simulation.sampling import checking

        return checking()

    def simulated(self) -> Traffic:
        """The simulated traffic of the same point: briefly, or longer where that differs and has not settled.

        Not in nests that differ from place to place, such as triangles: what caches hold before each of many places
        takes minutes to simulate longer, so that the answer says that it has not settled.
        """
        from kernmodel.traffic.simulation.sampling import effort

        short = self._simulated(self.spend)
        settled = short.sampling is None or short.sampling.settled
        varies = any(loop.uses for loop in self.work.nest.counted)
        return short if settled or varies or not differs(self.symbolic, short) else self._simulated(effort())

    def _simulated(self, spend: Effort) -> Traffic:
        from kernmodel.traffic.simulation.simulate import simulate_placed

        symbolic = self.symbolic
        return simulate_placed(
            self.work,
            self.hierarchy,
            self.machine,
            cores=symbolic.cores,
            stores=symbolic.stores,
            options=self.options,
            spend=spend,
            symbolic=symbolic,
        )

    def inner_agree(self, found: Sequence[Doubt]) -> bool:
        """Whether all doubts are about inner caches, of which a simulation of these alone says the same."""
        names, symbolic = [spec.name for spec in self.hierarchy.levels], self.symbolic
        if symbolic.stores == "nt" or symbolic.evasion is not None or any(doubt.cache is None for doubt in found):
            return False
        depth = 1 + max(names.index(doubt.cache) for doubt in found if doubt.cache)
        beyond = self.machine.levels[depth:]
        if not beyond or (beyond[0].filled_by == "victims" and not beyond[0].clean_victims):
            return False
        from kernmodel.traffic.simulation.layout_intervals import InnerCaches, at_once

        spend = replace(self.spend, sweep=_SHORT * self.spend.sweep)
        unit = Fraction(symbolic.iterations_per_unit)
        remember = self.remember or at_once
        inner = InnerCaches(self.work, self.machine, self.hierarchy, depth, spend, unit, remember).paths(self.options)
        if beyond[0].loads_pass_by:
            # what memory serves does not come over the path from the victim cache
            inner = (*inner[:-1], replace(inner[-1], loads=inner[-1].loads - symbolic.paths[depth].loads))
        return not differs(symbolic, replace(symbolic, paths=(*inner, *symbolic.paths[depth:])))


def _standing(case: _Case, found: Sequence[Doubt]) -> Traffic:
    """The traffic that stands, for the one layout that is assumed."""
    symbolic = case.symbolic
    if not found or case.inner_agree(found):
        return symbolic
    simulated = case.simulated()
    differences = tuple(_difference(found, *each, case.machine) for each in disagreements(symbolic, simulated))
    if not differences:
        kept = (note for note in symbolic.notes if note.code not in _REFUTED)
        return replace(symbolic, notes=(*kept, *_unseen(found, simulated)))
    if not _contradicts(simulated, symbolic):
        return replace(symbolic, notes=(*symbolic.notes, _undecided(differences, simulated)))
    return simulated_instead(symbolic, simulated, differences, _notes(differences))


def _contradicts(simulated: Traffic, symbolic: Traffic) -> bool:
    """Whether a simulation differs from layer conditions by more than it is uncertain by itself."""
    sampling = simulated.sampling
    unsure = 0.0 if sampling is None or sampling.settled else sampling.spread
    return any(disagreements(symbolic, simulated, TOLERANCE + unsure))


def _undecided(differences: Sequence[Difference], simulated: Traffic) -> Note:
    """That a simulation which has not settled says something else."""
    assert simulated.sampling is not None
    reasons = "; ".join(dict.fromkeys(each.reason for each in differences))
    where = ", ".join(dict.fromkeys(each.path for each in differences))
    most = max(abs(each.relative) for each in differences)
    text = (
        f"layer conditions stand, though they may not hold ({reasons}): a simulation differs by up to {most:.0%} "
        f"({where}), which is no more than it is uncertain by, as it has not settled: {simulated.sampling.reason}"
    )
    return Note("not-settled", text)


def simulated_instead(
    symbolic: Traffic, simulated: Traffic, differences: tuple[Difference, ...], notes: Iterable[Note]
) -> Traffic:
    """The simulated traffic, with the conditions that it stands in place of, how it differs and notes on that."""
    return replace(
        simulated,
        conditions=symbolic.conditions,
        symbolic=symbolic,
        differences=differences,
        notes=(*notes, *simulated.notes),
    )


def _difference(
    found: Sequence[Doubt], path: str, quantity: Quantity, symbolic: float, simulated: float, machine: Machine
) -> Difference:
    """A number that differs, with the first doubt about a cache at either end of its path (else the first of all)."""
    ends = {end for each in machine.paths if each.name == path for end in (each.inner, each.outer)}
    doubt = next((doubt for doubt in found if doubt.cache is None or doubt.cache in ends), found[0])
    relative = relative_difference(symbolic, simulated)
    return Difference(path, quantity, symbolic, simulated, relative, doubt.code, doubt.text)


def _unseen(found: Sequence[Doubt], simulated: Traffic) -> Iterator[Note]:
    """The doubts that windows inside a nest say nothing of: what lies at the ends of its loops."""
    if simulated.sampling is None or simulated.sampling.whole_sweep:
        return
    for doubt in found:
        if doubt.code == "short-rows":
            text = f"{doubt.text}; neither layer conditions nor the simulated windows inside the nest count them"
            yield Note(doubt.code, text, "assumption")


def _notes(differences: Sequence[Difference]) -> list[Note]:
    """The causes, each with the paths on which layer conditions differ for it."""
    paths: dict[tuple[str, str], list[str]] = {}
    for each in differences:
        paths.setdefault((each.reason_code, each.reason), []).append(each.path)
    return [
        Note(
            code,
            f"simulated, since layer conditions do not hold for {', '.join(dict.fromkeys(where))}: {reason}",
            "assumption",
        )
        for (code, reason), where in paths.items()
    ]
