"""`kernmodel.validation/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, document, interval_json, pick, record
from kernmodel.report.json.kernel_evaluation import group_json
from kernmodel.report.json.measure import figure_json

if TYPE_CHECKING:
    from kernmodel.evaluate.validation_model import Experiment, ValidatedPoint, Validation


def validation_document(validation: Validation) -> Json:
    """The answer of `kernmodel validate`."""
    return document(
        "kernmodel.validation/1",
        pick(validation, "machine", "clock_hz", "measured_hz", "large_percent", "left", "notes"),
        points=[_point(point) for point in validation.points],
        groups=[group_json(group) for group in validation.groups],
    )


def _point(point: ValidatedPoint) -> Json:
    judged, prediction = point.judged, point.judged.prediction
    return record(
        pick(point, "kernel", "level"),
        {"class": point.kind},
        pick(point.run, "sizes", "data_bytes", "clock_hz", "loop_offset", "arrays"),
        measured_cycles_per_unit=judged.measured,
        predicted_cycles_per_unit=judged.predicted,
        error_percent=point.error_percent,
        **interval_json("predicted", prediction.cycles_interval),
        iterations_per_unit=prediction.work.iterations_per_unit,
        cycles_per_iteration=figure_json(point.run.cycles),
        times=[{"name": name, "cycles": cycles} for name, cycles in prediction.times.items()],
        binding=prediction.binding,
        experiments=[_experiment(one, explains=one in point.causes) for one in point.experiments],
    )


def _experiment(one: Experiment, *, explains: bool) -> Json:
    return record(
        pick(one, "cause", "change"),
        measured_cycles_per_unit=one.measured,
        predicted_cycles_per_unit=one.predicted,
        error_percent=one.error_percent,
        explains=explains,
    )
