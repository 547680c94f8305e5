"""`kernmodel.instruction/1` and `kernmodel.instruction-list/1`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, envelope, pick
from kernmodel.report.json.incore import parameters_json

if TYPE_CHECKING:
    from kernmodel.incore.model import InstructionData, Parameters


def instruction_document(rows: Iterable[InstructionData], parameters: Parameters) -> Json:
    """Rows of an instruction table, with what describes the microarchitecture."""
    body = {"microarchitecture": parameters_json(parameters), "instructions": [_row(row) for row in rows]}
    return envelope("kernmodel.instruction/1", body)


def instruction_list_document(forms: Iterable[str], parameters: Parameters) -> Json:
    """The forms that a table has."""
    return envelope(
        "kernmodel.instruction-list/1", {"microarchitecture": parameters_json(parameters), "forms": list(forms)}
    )


def _row(row: InstructionData) -> Json:
    names = ("form", "uops", "ports", "default_latency", "throughput", "breaks_dependency", "eliminated", "front_end")
    return {
        **pick(row, *names),
        "latencies": [
            {"source": source, "target": target, "cycles": cycles} for (source, target), cycles in row.latencies.items()
        ],
        "indexed": _row(row.indexed) if row.indexed else None,
        "full": _row(row.full) if row.full else None,
        "source": row.source,
    }
