"""`kernmodel.binary-run/1` and `kernmodel.binary-suite/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.binary.lifting import WAYS
from kernmodel.report.json.binary import residency_json
from kernmodel.report.json.document import Json, document, interval_json, pick, record
from kernmodel.report.text.reasons import reason_text

if TYPE_CHECKING:
    from kernmodel.binary.answer import BinaryRun
    from kernmodel.binary.ecm import DataAnswer, FunctionEcm
    from kernmodel.binary.lifting import BlockShare, LiftedPrediction
    from kernmodel.binary.suite.model import Class, Judged, SuiteAnswer


def binary_run_document(answer: BinaryRun) -> Json:
    """The answer of `kernmodel binary run`."""
    counted, time = answer.occurrences, answer.time
    return document(
        "kernmodel.binary-run/1",
        {"file": answer.function.file, "function": answer.function.name, "command": list(answer.command)},
        pick(answer, "core", "clock_hz", "not_measured"),
        occurrences=record(
            pick(counted, "calls", "method", "runs"),
            blocks=[{"address": address, "count": n} for address, n in counted.blocks.items()],
            edges=[{"from": a, "to": b, "count": n} for (a, b), n in counted.edges.items()],
        ),
        measured=None if time is None else pick(time, *_TIME),
        predictions=[_prediction(answer, one) for one in answer.predicted.predictions],
        data=None if answer.predicted.data is None else _data(answer.predicted.data),
        not_traced=answer.predicted.not_traced,
        notes=answer.notes,
    )


def _data(data: DataAnswer) -> Json:
    """Where the data lie, the times of the ECM model in cycles of a call, and the chart."""
    ecm, chart = data.ecm, data.roofline
    return record(
        residency_json(data.residency, data.paths),
        ecm=None if ecm is None else _ecm(ecm),
        roofline=None if chart is None else chart.kernels[0].rooflines[0],
        why_not=list(data.why_not),
    )


def _ecm(ecm: FunctionEcm) -> Json:
    transfers = [{"name": one.name, "cycles": one.cycles if one.known else None} for one in ecm.transfers]
    levels = [{"level": name, "cycles": cycles} for name, cycles in ecm.levels]
    return record(
        pick(ecm, "machine", "t_ol", "t_nol", "overlap", "cycles"),
        transfers=transfers,
        levels=levels,
        binding=list(ecm.binding),
        is_lower_bound=bool(ecm.unknown),
    )


_TIME = (
    "cycles",
    "smallest",
    "spread_percent",
    "calls",
    "clock_hz",
    "overhead_cycles",
    "accepted",
    "refused",
    "why_refused",
)


def _prediction(answer: BinaryRun, one: LiftedPrediction) -> Json:
    return record(
        {"predictor": one.predictor, "version": answer.predicted.versions.get(one.predictor, ""), "way": WAYS[one.way]},
        pick(one, "cycles", "mispredicted", "failed"),
        interval_json("cycles", one.interval),
        error_percent=answer.error_percent(one),
        blocks=[_block(answer, block) for block in one.blocks],
        loops=[{"header": header, "cycles": cycles} for header, cycles in one.loops.items()],
    )


def _block(answer: BinaryRun, one: BlockShare) -> Json:
    lines = answer.function.block(one.address).lines
    return record(
        pick(one, "address", "occurrences", "cycles", "share", "bound_by"),
        reason=None if one.reason is None else reason_text(one.reason),
        lines=[{"file": line.file, "line": line.line} for line in lines],
    )


def suite_document(answer: SuiteAnswer) -> Json:
    """The answer of `kernmodel binary suite`."""
    return document(
        "kernmodel.binary-suite/1",
        pick(answer, "file", "core", "output", "reused"),
        predictors=dict(answer.predictors),
        seconds=dict(answer.seconds),
        classes=[_class(one) for one in answer.classes],
        binaries=[_judged(one) for one in answer.judged],
        failed=[{"binary": name, "why": why} for name, why in answer.failed],
    )


def _class(one: Class) -> Json:
    return record(
        pick(one, "grouping", "name", "count"),
        predictors=[
            {"predictor": label, **pick(summary, "count", "mean_percent", "median_percent", "tau")}
            for label, summary in one.summaries.items()
        ],
    )


def _judged(one: Judged) -> Json:
    variant = one.variant
    return record(
        {"kernel": variant.kernel.stem, "compiler": variant.compiler, "flags": list(variant.flags)},
        {"block": variant.block, "measured_cycles": one.measured, "spread_percent": one.spread_percent},
        predicted=dict(one.predicted),
        data=None if one.data is None else dict(one.data),
        is_resident=one.is_resident,
    )
