"""`kernmodel.simulation/1` and `kernmodel.simulation-check/1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernmodel.cachesim.run import by_level
from kernmodel.report.json.document import Json, envelope, pick, plain

if TYPE_CHECKING:
    from kernmodel.cachesim.run import Difference, Simulation


def simulation_document(simulation: Simulation) -> Json:
    """The answer of `kernmodel simulate` for a trace or one case."""
    body = {
        **pick(simulation, "accesses_from", "case", "caches_from", "engine", "hierarchy"),
        "accesses": simulation.phases[0].accesses,
        "phases": [by_level(counters) for counters in simulation.phases],
        "differences": plain(simulation.differences),
    }
    return envelope("kernmodel.simulation/1", body)


def simulation_check_document(file: str, checked: Mapping[str, tuple[Difference, ...]]) -> Json:
    """The answer of `kernmodel simulate --cases`: what differs, case by case."""
    cases = [
        {"case": case, "ok": not differences, "differences": plain(differences)}
        for case, differences in checked.items()
    ]
    return envelope("kernmodel.simulation-check/1", {"file": file, "cases": cases})
