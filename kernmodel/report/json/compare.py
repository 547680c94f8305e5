"""The answer of `kernmodel compare` as a JSON document."""

from __future__ import annotations

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
    from kernmodel.models.ecm import ScalingPoint
    from kernmodel.studies.compare import CompareAnswer, MachineResult
    from kernmodel.units import Work


def compare_document(answer: CompareAnswer) -> Json:
    """Every kernel on every machine; `prediction` is null where it failed, and `error` says why."""
    content = {
        "results": [_result(result) for result in answer.results],
        "notes": notes_json(merged_notes(answer.notes)),
    }
    return envelope("kernmodel.compare/1", content)


def _result(result: MachineResult) -> Json:
    answer = result.answer
    named = {"asked": pick(result, "machine", "kernel"), "error": result.error, "prediction": None}
    if answer is None:
        return named
    prediction = answer.prediction
    return {
        **named,
        "prediction": {
            "kernel": kernel_identity(answer.nest, answer.sizes),
            "machine": machine_identity(answer.machine),
            "code": origin_json(answer.origin),
            "single_core": prediction_json(prediction),
            "domain": _point(result.domain, prediction.work),
            "whole": _point(result.whole, prediction.work),
            **pick(result, "saturation", "limit_core", "limit_domain", "because", "ratio", "ratio_domain"),
        },
    }


def _point(point: ScalingPoint | None, work: Work) -> Json | None:
    return None if point is None else {**plain(point), "in_units": in_units(point.cycles, work)}
