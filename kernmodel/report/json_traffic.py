"""`kernmodel.traffic/1` and `kernmodel.traffic-sweep/1`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernmodel.report.json_common import Json, envelope, kernel_identity, machine_identity, notes_json, pick, plain

if TYPE_CHECKING:
    from kernmodel.studies.request import TrafficAnswer
    from kernmodel.traffic.model import Traffic


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
        "traffic": traffic_json(answer.traffic),
        "symbolic": None if answer.symbolic is None else traffic_json(answer.symbolic),
        "differences": plain(answer.differences),
        "notes": notes_json(answer.notes),
    }


def traffic_json(traffic: Traffic) -> Json:
    """The traffic with layer conditions, transition points, paths, references, and what was simulated."""
    return {
        **pick(traffic, "method", "cores", "safety", "iterations_per_unit", "unit_stream", "iterations_per_sweep"),
        **pick(
            traffic, "updates_per_iteration", "flops_per_iteration", "register_loads_bytes", "register_stores_bytes"
        ),
        "paths": plain(traffic.paths),
        "references": plain(traffic.accesses),
        "conditions": plain(traffic.conditions),
        "transitions": [
            {"symbol": symbol, "largest": largest, "cache": cache, "text": text}
            for symbol, largest, cache, text in traffic.transitions
        ],
        "arithmetic_intensity": plain(traffic.arithmetic_intensity),
        **pick(traffic, "levels", "stores", "evasion", "sampling"),
    }
