"""`kernmodel.ecm/1`, `kernmodel.ecm-sweep/1`, `kernmodel.scaling/1` and `kernmodel.compare/1`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.json import document as doc
from kernmodel.report.json.incore import incore_json
from kernmodel.report.json.traffic import traffic_json, transfer_json
from kernmodel.report.text.bottleneck import because_text, bottleneck_text
from kernmodel.report.text.sections import merged_notes
from kernmodel.units import convert_cycles

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.report.json.document import Json
    from kernmodel.studies.compare import CompareAnswer, MachineResult
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.scaling import ScalingAnswer, ScalingRow
    from kernmodel.units import Work


def ecm_document(answer: EcmAnswer, unit: str) -> Json:
    """The answer of `kernmodel ecm` for one point; `unit` is the unit of the headline."""
    return doc.document("kernmodel.ecm/1", ecm_body(answer, unit))


def ecm_sweep_document(answers: Iterable[EcmAnswer], unit: str) -> Json:
    """The answers over sizes."""
    return doc.document("kernmodel.ecm-sweep/1", points=[ecm_body(answer, unit) for answer in answers])


def ecm_body(answer: EcmAnswer, unit: str) -> Json:
    """The content for one point."""
    prediction, traffic = answer.prediction, answer.traffic
    interval = prediction.cycles_interval
    if interval is not None:
        interval = interval.map(lambda cycles: convert_cycles(cycles, unit, prediction.work))
    value = None if prediction.unknown else doc.in_units(prediction.cycles, prediction.work)[unit]
    return doc.record(
        kernel=doc.kernel_json(answer.nest, answer.sizes),
        machine=answer.machine,
        microarchitecture=answer.parameters,
        code=doc.code_json(answer.origin, answer.loop),
        traffic=traffic_json(traffic, answer.machine),
        symbolic=None if traffic.symbolic is None else traffic_json(traffic.symbolic, answer.machine),
        differences=traffic.differences,
        incore=incore_json(answer.incore),
        headline={"unit": unit, "value": value, **doc.interval_json("value", interval)},
        prediction=prediction_json(prediction),
        scaling=[_scaling_json(point, prediction) for point in answer.scaling],
        notes=answer.notes,
    )


def prediction_json(prediction: EcmPrediction) -> Json:
    """The single-core prediction: times and levels in cycles per unit of work and in every unit."""
    return doc.record(
        {"shorthand": prediction.shorthand(), "level_shorthand": prediction.level_shorthand()},
        doc.pick(prediction, "cores"),
        _cycles(prediction),
        doc.pick(prediction, "t_ol", "t_nol", "t_out", "ol_bound_by", "outside"),
        {"t_call": prediction.t_call, "calls": [] if prediction.calls is None else prediction.calls.functions},
        doc.interval_json("cycles", prediction.cycles_interval),
        {"transfers": [transfer_json(transfer) for transfer in prediction.transfers]},
        {"levels": [_level(prediction, level, cycles) for level, cycles in prediction.levels]},
        doc.pick(prediction, "overlap", "binding"),
        {"bottleneck": bottleneck_text(prediction)},
        doc.pick(prediction, "saturation_simple", "saturation_recursive", "saturation_is_least", "penalties", "work"),
    )


def _cycles(prediction: EcmPrediction) -> Json:
    """T_ECM; null where a time is not known, with what it is at least."""
    if not prediction.unknown:
        return {"cycles": prediction.cycles}
    return {"cycles": None, "cycles_at_least": prediction.cycles, "unknown": list(prediction.unknown)}


def _level(prediction: EcmPrediction, level: str, cycles: float) -> Json:
    if not prediction.is_least(level):
        return {"level": level, **timed(cycles, prediction.work)}
    return {"level": level, "cycles": None, "cycles_at_least": cycles, "in_units": None}


def timed(cycles: float, work: Work) -> Json:
    """A time in cycles per unit of work and in every unit."""
    return doc.record(cycles=cycles, in_units=doc.in_units(cycles, work))


def _scaling_json(point: ScalingPoint, prediction: EcmPrediction) -> Json:
    speedup = point.units_per_cycle * prediction.cycles
    return doc.record(doc.plain(point), speedup=speedup, in_units=doc.in_units(point.cycles, prediction.work))


def scaling_document(answers: Sequence[ScalingAnswer], unit: str | None) -> Json:
    """One entry of `points` for each point of sizes; `unit` is the unit of the report, None: the kernel's own rate."""
    from kernmodel.studies.scaling import unit_of_performance

    shown = unit_of_performance(unit, answers[0].single.prediction.work)
    return doc.document("kernmodel.scaling/1", unit=shown, points=[_scaling_body(answer) for answer in answers])


def _scaling_body(answer: ScalingAnswer) -> Json:
    prediction = answer.single.prediction
    return doc.record(
        doc.subject_json(answer.single),
        {"single_core": prediction_json(prediction)},
        {"rows": [_scaling_row(row, prediction.work) for row in answer.rows]},
        doc.pick(answer, "saturation_simple", "saturation_recursive", "best_cores"),
        doc.pick(prediction, "saturation_is_least"),
        notes=merged_notes(answer.notes),
    )


def _scaling_row(row: ScalingRow, work: Work) -> Json:
    return doc.record(
        doc.plain(row.point),
        {"in_units": doc.in_units(row.point.cycles, work), "simple": timed(row.simple_cycles, work)},
        doc.pick(row, "speedup", "efficiency", "limit", "fits"),
        division=None if row.division is None else doc.plain(row.division),
    )


def compare_document(answer: CompareAnswer) -> Json:
    """Every kernel on every machine; `prediction` is null where it failed, and `error` says why."""
    results = [_result(result) for result in answer.results]
    return doc.document("kernmodel.compare/1", results=results, notes=merged_notes(answer.notes))


def _result(result: MachineResult) -> Json:
    prediction = None if result.answer is None else _on_machine(result, result.answer)
    return doc.record(asked=doc.pick(result, "machine", "kernel"), error=result.error, prediction=prediction)


def _on_machine(result: MachineResult, answer: EcmAnswer) -> Json:
    def point(found: ScalingPoint | None) -> Json | None:
        work = answer.prediction.work
        return None if found is None else doc.record(doc.plain(found), in_units=doc.in_units(found.cycles, work))

    return doc.record(
        doc.subject_json(answer),
        {"single_core": prediction_json(answer.prediction)},
        {"domain": point(result.domain), "whole": point(result.whole)},
        doc.pick(result, "saturation", "limit_core", "limit_domain"),
        {"because": because_text(result)},
        doc.pick(result, "ratio", "ratio_domain"),
    )
