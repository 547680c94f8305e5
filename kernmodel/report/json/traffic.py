"""`kernmodel.traffic/1` and `kernmodel.traffic-sweep/1`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernmodel.report.json.document import (
    Json,
    envelope,
    interval_json,
    kernel_identity,
    machine_identity,
    notes_json,
    pick,
    plain,
)
from kernmodel.traffic.model import intensity_intervals

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.studies.predict.request import TrafficAnswer
    from kernmodel.traffic.model import PathTraffic, Traffic


def traffic_document(answer: TrafficAnswer) -> Json:
    """The answer of `kernmodel traffic` for one point."""
    return envelope("kernmodel.traffic/1", traffic_body(answer))


def traffic_sweep_document(answers: Iterable[TrafficAnswer]) -> Json:
    """The answers over sizes."""
    return envelope("kernmodel.traffic-sweep/1", {"points": [traffic_body(answer) for answer in answers]})


def traffic_body(answer: TrafficAnswer) -> Json:
    """The content for one point."""
    return {
        "kernel": kernel_identity(answer.nest, answer.sizes),
        "machine": machine_identity(answer.machine),
        "traffic": traffic_json(answer.traffic, answer.machine),
        "symbolic": None if answer.symbolic is None else traffic_json(answer.symbolic, answer.machine),
        "differences": plain(answer.differences),
        "notes": notes_json(answer.notes),
    }


def path_json(path: PathTraffic) -> Json:
    """One path, with the intervals that it has."""
    numbers = {key: value for key, value in plain(path).items() if not key.endswith("_interval")}
    for name, interval in path.intervals.items():
        numbers |= interval_json(name, interval)
    return numbers


def _intensity_json(traffic: Traffic, machine: Machine) -> Json:
    """FLOP per byte by level, with the intervals that there are."""
    numbers: Json = plain(traffic.arithmetic_intensity)
    for level, interval in intensity_intervals(traffic, machine).items():
        numbers |= interval_json(level, interval)
    return numbers


def traffic_json(traffic: Traffic, machine: Machine) -> Json:
    """The traffic with layer conditions, transition points, paths, references, and what was simulated."""
    return {
        **pick(traffic, "method", "cores", "safety", "iterations_per_unit", "unit_stream", "iterations_per_sweep"),
        **pick(
            traffic, "updates_per_iteration", "flops_per_iteration", "register_loads_bytes", "register_stores_bytes"
        ),
        "paths": [path_json(path) for path in traffic.paths],
        "references": plain(traffic.accesses),
        "conditions": plain(traffic.conditions),
        "transitions": [
            {"symbol": symbol, "largest": largest, "cache": cache, "text": text}
            for symbol, largest, cache, text in traffic.transitions
        ],
        "arithmetic_intensity": _intensity_json(traffic, machine),
        **pick(traffic, "levels", "stores", "evasion", "sampling"),
    }
