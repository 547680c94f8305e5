"""The roofline family as pure functions; every roof says which bytes it means. FLOP: an FMA counts 2.

original       Williams, Waterman, Patterson, CACM 52(4), 2009: bytes at memory, one memory roof
hierarchical   the same per level: bytes between neighbouring levels, one point per level
cache-aware    Ilic, Pratas, Sousa, IEEE CAL 13(1), 2014 (CARM): bytes of load and store instructions, one intensity
integrated     Koskela et al. 2018 (IRM): roofs as CARM sees them, intensity of each level's traffic as ORM sees it
adCARM         Marques, Ilic, Matveev, Sousa, FGCS 107 (2020) 257: CARM with roofs scaled by the instruction mix
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kernmodel.models.carm import application_driven, cache_aware, integrated
from kernmodel.models.ceilings import issue_ceiling, known, path_bandwidth, peak_notes, widest_access
from kernmodel.models.chart import (
    Case,
    LevelDemand,
    ModelName,
    Roofline,
    chart,
    demand,
    needed_traffic,
    path_bytes,
    peak_roofs,
)
from kernmodel.models.memory_ends import chart_of_both
from kernmodel.traffic.model import PathLines


def roofline(model: ModelName, case: Case) -> Roofline:
    """The kernel under the named model; with intervals where more cores draw from memory than were measured.

    Raises:
        InputError: the case lacks what the model needs (traffic, instruction mix), or there is nothing to bound.
        MachineError: the machine file lacks a bandwidth that the model needs and that cannot be derived.
    """
    models = {
        "orm": original,
        "hierarchical": hierarchical,
        "carm": cache_aware,
        "irm": integrated,
        "adcarm": application_driven,
    }
    return chart_of_both(models[model], case)


def original(case: Case) -> Roofline:
    """The original roofline: P = min(P_peak, I × b_S) with I in FLOP per byte at memory.

    Bytes at memory are those of all cache lines that cross the last path, write-allocates and evicted lines included
    (Williams, Waterman, Patterson 2009; Hofmann et al. 2020, equation 1).

    Raises:
        InputError, MachineError: as `roofline`.
    """
    return _between_levels("orm", case, _levels_between(case)[-1:])


def hierarchical(case: Case) -> Roofline:
    """The same for every level: P = min(P_peak, min over levels y of I_y × b_y), one point for each level.

    I_y is FLOP per byte that crosses the path between y and the level inside it; at L1 per byte of load and store
    instructions, with the rate at which the core issues its widest ones as bandwidth (Doerfler et al.: Applying
    the Roofline performance model to the Intel Xeon Phi Knights Landing processor, ISC 2016).

    Raises:
        InputError, MachineError: as `roofline`.
    """
    return _between_levels("hierarchical", case, _levels_between(case))


def _levels_between(case: Case) -> tuple[LevelDemand, ...]:
    """Bytes per iteration over each path, innermost first; at L1 those of load and store instructions."""
    traffic, machine = needed_traffic(case, "a model of bytes between levels"), case.machine
    wanted = demand(case)
    ceiling = issue_ceiling(
        machine,
        case.parameters,
        case.table,
        size_bytes=widest_access(case.table),
        load_share=wanted.load_share,
        cores=case.cores,
    )
    levels = [LevelDemand(ceiling.level, ceiling, ceiling.level, wanted.bytes)]
    for path, size in zip(machine.paths, path_bytes(traffic, machine), strict=True):
        moved = traffic.path(path.name)
        flow = PathLines(moved.loads, moved.stores, moved.clean_victims)
        found = known(partial(path_bandwidth, machine, path.name, flow, case.cores))
        levels.append(LevelDemand(path.outer, found, path.outer, size))
    return tuple(levels)


def _between_levels(model: ModelName, case: Case, levels: Sequence[LevelDemand]) -> Roofline:
    at_first = "" if model == "orm" else "; at L1 bytes of load and store instructions"
    return chart(
        model,
        case,
        levels,
        f"bytes between levels, write-allocates and evicted lines counted{at_first}",
        compute_roofs=peak_roofs(case),
        notes=peak_notes(case.machine, case.parameters, case.table),
    )
