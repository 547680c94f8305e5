"""`kernmodel.incore/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json_common import (
    Json,
    envelope,
    instruction_json,
    loop_json,
    machine_identity,
    notes_json,
    origin_json,
    pick,
    plain,
)

if TYPE_CHECKING:
    from kernmodel.incore.model import InCore, InstructionReport, Parameters
    from kernmodel.studies.request import InCoreAnswer


def incore_document(answer: InCoreAnswer) -> Json:
    """The answer of `kernmodel incore`."""
    body = {
        "machine": machine_identity(answer.machine) if answer.machine else None,
        "microarchitecture": parameters_json(answer.parameters),
        "code": {**origin_json(answer.origin), "loop": loop_json(answer.loop)},
        "incore": incore_json(answer.incore),
        "notes": notes_json(answer.notes),
    }
    return envelope("kernmodel.incore/1", body)


def parameters_json(parameters: Parameters) -> Json:
    """The microarchitecture with the figures used and their sources."""
    return {
        **pick(parameters, "name", "title", "isa", "ports", "load_latency", "store_forward_latency", "issue_width"),
        "sources": dict(parameters.sources),
    }


def incore_json(incore: InCore) -> Json:
    """The in-core result: bounds, chains and a row per instruction. Times are cycles per pass."""
    return {
        **pick(incore, "port_model", "prediction", "bound_by", "reason", "throughput", "binding_ports"),
        "ports": list(incore.ports),
        **pick(incore, "port_sums", "lcd", "critical_path", "iterations_per_pass", "uncertain"),
        "rows": [{**_row_json(row), "uses": plain(uses)} for row, uses in zip(incore.rows, incore.uses, strict=True)],
    }


def _row_json(row: InstructionReport) -> Json:
    names = ("pressure", "latency", "on_critical_path", "on_lcd", "known", "eliminated", "source")
    return {**instruction_json(row.instruction), **pick(row, *names)}
