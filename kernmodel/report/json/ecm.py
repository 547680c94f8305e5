"""`kernmodel.ecm/1` and `kernmodel.ecm-sweep/1`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernmodel.report.json.document import (
    Json,
    envelope,
    in_units,
    interval_json,
    kernel_identity,
    loop_json,
    machine_identity,
    notes_json,
    origin_json,
    pick,
    plain,
)
from kernmodel.report.json.incore import incore_json, parameters_json
from kernmodel.report.json.traffic import traffic_json
from kernmodel.units import convert_cycles

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.models.outside import OutsideWork
    from kernmodel.studies.predict.request import EcmAnswer


def ecm_document(answer: EcmAnswer, unit: str) -> Json:
    """The answer of `kernmodel ecm` for one point; `unit` is the unit of the headline."""
    return envelope("kernmodel.ecm/1", ecm_body(answer, unit))


def ecm_sweep_document(answers: Iterable[EcmAnswer], unit: str) -> Json:
    """The answers over sizes."""
    return envelope("kernmodel.ecm-sweep/1", {"points": [ecm_body(answer, unit) for answer in answers]})


def ecm_body(answer: EcmAnswer, unit: str) -> Json:
    """The content for one point."""
    prediction = answer.prediction
    interval = prediction.cycles_interval
    if interval is not None:
        interval = interval.map(lambda cycles: convert_cycles(cycles, unit, prediction.work))
    value = in_units(prediction.cycles, prediction.work)[unit]
    return {
        "kernel": kernel_identity(answer.nest, answer.sizes),
        "machine": machine_identity(answer.machine),
        "microarchitecture": parameters_json(answer.parameters),
        "code": {**origin_json(answer.origin), "loop": loop_json(answer.loop)},
        "traffic": traffic_json(answer.traffic, answer.machine),
        "symbolic": None if answer.traffic.symbolic is None else traffic_json(answer.traffic.symbolic, answer.machine),
        "differences": plain(answer.traffic.differences),
        "incore": incore_json(answer.incore),
        "headline": {"unit": unit, "value": value, **interval_json("value", interval)},
        "prediction": prediction_json(prediction),
        "scaling": [_scaling_json(point, prediction) for point in answer.scaling],
        "notes": notes_json(answer.notes),
    }


def prediction_json(prediction: EcmPrediction) -> Json:
    """The single-core prediction: times and levels in cycles per unit of work and in every unit."""
    return {
        "shorthand": prediction.shorthand(),
        "level_shorthand": prediction.level_shorthand(),
        **pick(prediction, "cores", "cycles", "t_ol", "t_nol", "t_out", "ol_bound_by"),
        "outside": outside_json(prediction.outside),
        **interval_json("cycles", prediction.cycles_interval),
        "transfers": plain(prediction.transfers),
        "levels": [
            {"level": level, "cycles": cycles, "in_units": in_units(cycles, prediction.work)}
            for level, cycles in prediction.levels
        ],
        **pick(prediction, "overlap", "binding", "bottleneck", "saturation_simple", "saturation_recursive", "work"),
    }


def outside_json(outside: OutsideWork | None) -> Json | None:
    """What is executed outside the body of the innermost loop; null where it is left out."""
    return None if outside is None else {**pick(outside, *_OUTSIDE)}


_OUTSIDE = (
    "length",
    "entries",
    "remainder_cycles",
    "outer_cycles",
    "entry_cycles",
    "cycles",
    "overlap_cycles",
    "exit",
    "known",
)


def _scaling_json(point: ScalingPoint, prediction: EcmPrediction) -> Json:
    return {
        **plain(point),
        "speedup": plain(point.units_per_cycle * prediction.cycles),
        "in_units": in_units(point.cycles, prediction.work),
    }
