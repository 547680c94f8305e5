"""`kernmodel.blocking/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, document, in_units, interval_json, pick, record, subject_json
from kernmodel.report.json.ecm import prediction_json, timed
from kernmodel.report.json.traffic import path_json
from kernmodel.report.text.blocking import SHORT_RUN, headline

if TYPE_CHECKING:
    from kernmodel.models.ecm import ScalingPoint
    from kernmodel.studies.blocking.answer import BlockingAnswer, Candidate


def blocking_document(answer: BlockingAnswer, unit: str) -> Json:
    """The answer of `kernmodel blocking`; `unit` is the unit of the headline."""
    before = answer.before
    work = before.prediction.work
    saturated = answer.saturated

    def together(point: ScalingPoint) -> Json:
        return record(timed(point.cycles, work), interval_json("cycles", point.cycles_interval))

    points = ({"block": size, "cycles": found.cycles, "times": found.times} for size, found in answer.sweep)
    return document(
        "kernmodel.blocking/1",
        subject_json(before),
        pick(before.traffic, "cores", "safety", "stores"),
        headline={"unit": unit, **_headline_json(answer, unit)},
        before={"prediction": prediction_json(before.prediction), "memory_lines": before.traffic.memory_lines},
        limits=answer.limits,
        candidates=[_candidate_json(candidate) for candidate in answer.candidates],
        saturated=saturated and dict(zip(("before", "after"), map(together, saturated), strict=True)),
        temporal=answer.temporal,
        refused=answer.refused,
        sweep={"loop": answer.swept_loop or None, "points": list(points)},
        notes=answer.notes,
    )


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
    return record(
        pick(candidate, "blocks", "cache", "limit", "halo_share", "speedup", "because"),
        memory_lines=candidate.traffic.memory_lines,
        short_loops=candidate.prediction.outside,
        run=_run_json(candidate),
        method=candidate.traffic.method,
        paths=[path_json(path) for path in candidate.traffic.paths],
        prediction=prediction_json(candidate.prediction),
    )


def _run_json(candidate: Candidate) -> Json | None:
    run = candidate.run
    if run is None:
        return None
    told = SHORT_RUN if run.is_marked else None
    return record(
        pick(run, "bytes", "access", "cycles"), measured=run.cycles is not None, marked=run.is_marked, text=told
    )
