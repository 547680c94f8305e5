"""The answer of `kernmodel scaling` as a JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.report.json.document import (
    Json,
    envelope,
    in_units,
    kernel_identity,
    machine_identity,
    notes_json,
    origin_json,
    pick,
    plain,
)
from kernmodel.report.json.ecm import prediction_json
from kernmodel.report.text.sections import merged_notes

if TYPE_CHECKING:
    from kernmodel.studies.scaling import ScalingAnswer, ScalingRow
    from kernmodel.units import Work


def scaling_document(answers: Sequence[ScalingAnswer], unit: str) -> Json:
    """One entry of `points` for each point of sizes; `unit` is the unit of the report."""
    return envelope("kernmodel.scaling/1", {"unit": unit, "points": [_body(answer) for answer in answers]})


def _body(answer: ScalingAnswer) -> Json:
    single = answer.single
    work = single.prediction.work
    return {
        "kernel": kernel_identity(single.nest, single.sizes),
        "machine": machine_identity(single.machine),
        "code": origin_json(single.origin),
        "single_core": prediction_json(single.prediction),
        "rows": [_row(row, work) for row in answer.rows],
        **pick(answer, "saturation_simple", "saturation_recursive", "best_cores"),
        "notes": notes_json(merged_notes(answer.notes)),
    }


def _row(row: ScalingRow, work: Work) -> Json:
    return {
        **plain(row.point),
        "in_units": in_units(row.point.cycles, work),
        "simple": {"cycles": plain(row.simple_cycles), "in_units": in_units(row.simple_cycles, work)},
        **pick(row, "speedup", "efficiency", "limit", "fits"),
    }
