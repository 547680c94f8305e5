"""Whether layer conditions hold for a nest at given sizes on a machine: by doubts, then by simulation.

The rules: docs/accuracy.md, chapter on traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.source.model import LoopNest
from kernmodel.traffic.agreement import differs, disagreements
from kernmodel.traffic.doubts import Doubt, doubts
from kernmodel.traffic.footprint import Footprint, footprint_of_sized
from kernmodel.traffic.hierarchy import hierarchy_of
from kernmodel.traffic.layouts import judge_layouts
from kernmodel.traffic.model import Difference, Quantity, Traffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.prepared import PreparedNest
from kernmodel.traffic.streams import at_sizes

_REGULAR = SimulationOptions()

_REFUTED = frozenset({"several-index-patterns"})
"""Codes of warnings of layer conditions that do not matter where a simulation agrees with them."""


def decide(symbolic: Traffic, prepared: PreparedNest, machine: Machine) -> Traffic:
    """The traffic that stands: by layer conditions where they are shown to hold, else simulated, with the reason.

    Layer conditions hold where there is no doubt about them, or where a simulation of bounded length agrees with them.
    Where the layout of the arrays decides, the numbers have intervals over the usual ones.

    Args:
        symbolic: the traffic by layer conditions.
        prepared, machine: what it is about.
    """
    hierarchy = hierarchy_of(machine, symbolic.cores, _REGULAR)
    sized = at_sizes(prepared, symbolic.sizes, machine.line_bytes)
    if not sized.streams:
        return symbolic
    footprint = footprint_of_sized(sized)
    standing = _standing(symbolic, prepared, machine, footprint, hierarchy)
    judged = judge_layouts(footprint, hierarchy, _REGULAR)
    if not judged.others:
        return standing
    from kernmodel.traffic.over_layouts import with_layouts
    from kernmodel.traffic.sampling import checking
    from kernmodel.traffic.simulation import placed_work

    work = placed_work(prepared.nest, machine, symbolic.sizes, hierarchy, symbolic.stores, _REGULAR)
    return with_layouts(standing, work, judged, machine, hierarchy, checking())


def _standing(
    symbolic: Traffic, prepared: PreparedNest, machine: Machine, footprint: Footprint, hierarchy: Hierarchy
) -> Traffic:
    """The traffic that stands, for the one layout that is assumed."""
    found = doubts(symbolic, footprint, hierarchy)
    if not found:
        return symbolic
    simulated = _simulated(symbolic, prepared.nest, machine, hierarchy)
    differences = tuple(_difference(found, *each, machine) for each in disagreements(symbolic, simulated))
    if not differences:
        return replace(symbolic, notes=tuple(note for note in symbolic.notes if note.code not in _REFUTED))
    return replace(
        simulated,
        conditions=symbolic.conditions,
        transitions=symbolic.transitions,
        symbolic=symbolic,
        differences=differences,
        notes=(*_notes(differences), *simulated.notes),
    )


def _simulated(symbolic: Traffic, nest: LoopNest, machine: Machine, hierarchy: Hierarchy) -> Traffic:
    """The simulated traffic of the same point: shortly, but as long as `--cache sim` where that neither settles nor
    agrees."""
    from kernmodel.traffic.sampling import CHECKING, checking
    from kernmodel.traffic.simulation import simulate_in

    sizes, cores, stores = symbolic.sizes, symbolic.cores, symbolic.stores
    spend = checking()
    simulated = simulate_in(hierarchy, nest, machine, sizes, cores=cores, stores=stores, spend=spend)
    settled = simulated.sampling is None or simulated.sampling.settled
    if settled or spend is not CHECKING or not differs(symbolic, simulated):
        return simulated
    return simulate_in(hierarchy, nest, machine, sizes, cores=cores, stores=stores)


def _difference(
    found: Sequence[Doubt], path: str, quantity: Quantity, symbolic: float, simulated: float, machine: Machine
) -> Difference:
    """A number that differs, with the first doubt about a cache at either end of its path (else the first of all)."""
    ends = {end for each in machine.paths if each.name == path for end in (each.inner, each.outer)}
    doubt = next((doubt for doubt in found if doubt.cache is None or doubt.cache in ends), found[0])
    relative = (simulated - symbolic) / max(symbolic, simulated)
    return Difference(path, quantity, symbolic, simulated, relative, doubt.code, doubt.text)


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
