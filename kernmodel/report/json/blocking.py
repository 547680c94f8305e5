"""`kernmodel.blocking/1`."""

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
from kernmodel.report.json.ecm import outside_json, prediction_json
from kernmodel.report.json.traffic import path_json
from kernmodel.report.text.blocking import SHORT_RUN, headline, memory_lines, swept_loop

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction
    from kernmodel.studies.blocking.answer import BlockingAnswer, Candidate


def blocking_document(answer: BlockingAnswer, unit: str) -> Json:
    """The answer of `kernmodel blocking`; `unit` is the unit of the headline."""
    before = answer.before
    body = {
        "kernel": kernel_identity(before.nest, before.sizes),
        "machine": machine_identity(before.machine),
        "code": origin_json(before.origin),
        **pick(before.traffic, "cores", "safety", "stores"),
        "headline": {"unit": unit, **_headline_json(answer, unit)},
        "before": {"prediction": prediction_json(before.prediction), "memory_lines": memory_lines(before.traffic)},
        "limits": plain(answer.limits),
        "candidates": [_candidate_json(candidate) for candidate in answer.candidates],
        "saturated": _saturated_json(answer),
        "temporal": plain(answer.temporal),
        "refused": dict(answer.refused),
        "sweep": {"loop": swept_loop(answer) or None, "points": [_point_json(*point) for point in answer.sweep]},
        "notes": notes_json(answer.notes),
    }
    return envelope("kernmodel.blocking/1", body)


def _headline_json(answer: BlockingAnswer, unit: str) -> Json:
    """The sentence, and the time or rate before and with the best candidate (null without one)."""
    before = answer.before.prediction
    best = answer.candidates[0].prediction if answer.candidates else None
    return {
        "text": " ".join(headline(answer, unit)),
        "before": in_units(before.cycles, before.work)[unit],
        "after": None if best is None else in_units(best.cycles, best.work)[unit],
    }


def _candidate_json(candidate: Candidate) -> Json:
    return {
        **pick(candidate, "blocks", "cache", "limit", "halo_share", "speedup", "because"),
        "memory_lines": memory_lines(candidate.traffic),
        "short_loops": outside_json(candidate.prediction.outside),
        "run": _run_json(candidate),
        "method": candidate.traffic.method,
        "paths": [path_json(path) for path in candidate.traffic.paths],
        "prediction": prediction_json(candidate.prediction),
    }


def _run_json(candidate: Candidate) -> Json | None:
    run = candidate.run
    if run is None:
        return None
    return {
        **pick(run, "bytes", "access", "cycles"),
        "measured": run.cycles is not None,
        "marked": run.is_marked,
        "text": SHORT_RUN if run.is_marked else None,
    }


def _saturated_json(answer: BlockingAnswer) -> Json | None:
    if answer.saturated is None:
        return None
    work = answer.before.prediction.work
    before, after = ({"cycles": cycles, "in_units": in_units(cycles, work)} for cycles in answer.saturated)
    return {"before": before, "after": after}


def _point_json(size: int, prediction: EcmPrediction) -> Json:
    return {"block": size, "cycles": plain(prediction.cycles), "times": plain(prediction.times)}
