"""`kernmodel.kernel-evaluation/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, document, interval_json, pick, plain, record

if TYPE_CHECKING:
    from kernmodel.evaluate.kernel_model import JudgedPoint, JudgedSeries, KernelEvaluation, PointGroup


def kernel_evaluation_document(evaluation: KernelEvaluation) -> Json:
    """The answer of `kernmodel evaluate kernels`."""
    return document(
        "kernmodel.kernel-evaluation/1",
        pick(evaluation, "file", "sampled", "traffic"),
        groups=[group_json(group) for group in evaluation.groups],
        points=[_flat(one, point) for one in evaluation.series for point in one.points],
        series=[_series(one) for one in evaluation.series],
        skipped=[{"line": line, "error": error} for line, error in evaluation.skipped],
    )


def group_json(group: PointGroup) -> Json:
    """Points of one kind, with the errors of each predictor."""
    return record(
        pick(group, "grouping", "name"),
        summaries=[{"predictor": name, **plain(one)} for name, one in group.summaries.items()],
    )


def _flat(one: JudgedSeries, point: JudgedPoint) -> Json:
    """A point as in the document of `validate`; its level is where the arrays lie by their total size."""
    return record(
        {"kernel": one.series.kernel, "machine": one.machine, "level": point.residence},
        measured_cycles_per_unit=point.measured,
        predicted_cycles_per_unit=point.predicted,
        error_percent=point.error_percent,
    )


def _series(one: JudgedSeries) -> Json:
    return record(
        pick(one.series, "kernel", "source", "listing", "compiler", "flags"),
        {"class": one.series.kind},
        machine=one.machine,
        points=[_point(point) for point in one.points],
        failed=[{"line": line, "error": error} for line, error in one.failed],
    )


def _point(point: JudgedPoint) -> Json:
    prediction = point.prediction
    return record(
        pick(point.point, "line", "sizes", "cores"),
        pick(point, "measured", "predicted", "error_percent", "residence", "share"),
        interval_json("predicted", point.predicted_interval),
        times=[{"name": name, "cycles": cycles} for name, cycles in prediction.times.items()],
        binding=prediction.binding,
        peers=[{"predictor": name, "cycles": cycles} for name, cycles in point.peers.items()],
        traffic=[
            {"path": path, "measured": point.point.traffic[path], "predicted": bytes_moved}
            for path, bytes_moved in point.moved.items()
        ],
    )
