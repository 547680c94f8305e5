"""`kernmodel.traffic/1` and `-sweep/1`; `kernmodel.simulation/1` and `-check/1`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, document, interval_json, kernel_json, pick, plain, record

if TYPE_CHECKING:
    from kernmodel.cachesim.run import CheckedCase, Simulation
    from kernmodel.machine.model import Machine
    from kernmodel.models.transfers import TransferTime
    from kernmodel.studies.predict.request import TrafficAnswer
    from kernmodel.traffic.model import PathTraffic, Traffic


def traffic_document(answer: TrafficAnswer) -> Json:
    """The answer of `kernmodel traffic` for one point."""
    return document("kernmodel.traffic/1", traffic_body(answer))


def traffic_sweep_document(answers: Iterable[TrafficAnswer]) -> Json:
    """The answers over sizes."""
    return document("kernmodel.traffic-sweep/1", points=[traffic_body(answer) for answer in answers])


def traffic_body(answer: TrafficAnswer) -> Json:
    """The content for one point."""
    return record(
        kernel=kernel_json(answer.nest, answer.sizes),
        machine=answer.machine,
        traffic=traffic_json(answer.traffic, answer.machine),
        symbolic=None if answer.symbolic is None else traffic_json(answer.symbolic, answer.machine),
        differences=answer.differences,
        transfers=None if answer.transfers is None else [transfer_json(one) for one in answer.transfers],
        notes=answer.notes,
    )


def transfer_json(transfer: TransferTime) -> Json:
    """The time of one path; null where it is not known."""
    found: Json = plain(transfer)
    return found if transfer.known else {**found, "cycles": None, "penalty_cycles": None}


def path_json(path: PathTraffic) -> Json:
    """One path, with the intervals that it has."""
    return record(plain(path), *(interval_json(name, interval) for name, interval in path.intervals.items()))


def traffic_json(traffic: Traffic, machine: Machine) -> Json:
    """The traffic with layer conditions, transition points, paths, references, and what was simulated."""
    from kernmodel.traffic.model import intensity_intervals

    intervals = (interval_json(level, found) for level, found in intensity_intervals(traffic, machine).items())
    return record(
        pick(traffic, "method", "cores", "safety", "iterations_per_unit", "unit_stream", "iterations_per_sweep"),
        pick(traffic, "updates_per_iteration", "flops_per_iteration", "register_loads_bytes", "register_stores_bytes"),
        {"paths": [path_json(path) for path in traffic.paths]},
        {"references": plain(traffic.accesses), "conditions": plain(traffic.conditions)},
        {"transitions": [dict(zip(_TRANSITION, found, strict=True)) for found in traffic.transitions]},
        {"arithmetic_intensity": record(plain(traffic.arithmetic_intensity), *intervals)},
        pick(traffic, "levels", "stores", "evasion", "sampling"),
    )


_TRANSITION = ("symbol", "largest", "cache", "text")


def simulation_document(simulation: Simulation) -> Json:
    """The answer of `kernmodel simulate` for a trace or one case."""
    from kernmodel.cachesim.run import by_level

    return document(
        "kernmodel.simulation/1",
        pick(simulation, "accesses_from", "case", "caches_from", "engine", "hierarchy"),
        accesses=simulation.phases[0].accesses,
        phases=[by_level(counters) for counters in simulation.phases],
        differences=simulation.differences,
    )


def simulation_check_document(checked: Sequence[CheckedCase], file: str) -> Json:
    """The answer of `kernmodel simulate --cases`: what differs, case by case."""
    cases = [{"case": one.case, "ok": not one.differences, "differences": one.differences} for one in checked]
    return document("kernmodel.simulation-check/1", file=file, cases=cases)
