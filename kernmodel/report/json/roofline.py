"""`kernmodel.roofline/1` and `kernmodel.carm/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import (
    Json,
    envelope,
    kernel_identity,
    loop_json,
    machine_identity,
    notes_json,
    origin_json,
    pick,
    plain,
)
from kernmodel.report.json.mix import mix_json

if TYPE_CHECKING:
    from kernmodel.models.chart import Roofline
    from kernmodel.models.reading import WhatIf
    from kernmodel.studies.predict.roofline import CarmAnswer, Charted, RooflineAnswer, Subject


def roofline_document(answer: RooflineAnswer) -> Json:
    """The answer of `kernmodel roofline`."""
    body = {
        "machine": machine_identity(answer.machine),
        **pick(answer, "cores", "models"),
        "kernels": [_charted_json(kernel) for kernel in answer.kernels],
        "failed": [{"kernel": name, "error": error} for name, error in answer.failed.items()],
        "notes": notes_json(answer.notes),
    }
    return envelope("kernmodel.roofline/1", body)


def carm_document(answer: CarmAnswer) -> Json:
    """The answer of `kernmodel carm`."""
    reading = answer.reading
    body = {
        "machine": machine_identity(answer.machine),
        "cores": answer.cores,
        **subject_json(answer.subject),
        "adcarm": chart_json(reading.roofline),
        "carm": chart_json(reading.beside),
        "shares": plain(reading.shares),
        "deserves_work": reading.level,
        "bound_if_times_add": plain(reading.added),
        "what_ifs": [_what_if_json(one) for one in reading.what_ifs],
        "sentences": list(reading.sentences),
        "notes": notes_json(answer.notes),
    }
    return envelope("kernmodel.carm/1", body)


def subject_json(subject: Subject) -> Json:
    """Kernel, code, mix and prediction."""
    case = subject.case
    code = {**origin_json(subject.origin), "loop": loop_json(subject.loop)} if subject.origin and subject.loop else None
    return {
        "name": subject.name,
        "kernel": kernel_identity(subject.nest, subject.sizes) if subject.nest is not None else None,
        "code": code,
        "mix": mix_json(case.mix) if case.mix is not None else None,
        "mask_utilization": case.mask_utilization,
        "predicted": {
            "flop_per_second": plain(case.performance),
            "iterations_per_second": plain(subject.iterations_per_second),
            "reason": subject.reason,
        },
    }


def chart_json(chart: Roofline) -> Json:
    """One kernel under one model, without its notes; an intensity without bytes is null."""
    names = ("model", "bytes_meant", "memory_roofs", "compute_roofs", "points", "bound", "bound_by", "region")
    return pick(chart, *names, "memory_until", "above", "below", "iterations_per_second")


def _charted_json(kernel: Charted) -> Json:
    charts = [chart_json(chart) for chart in kernel.rooflines]
    return {**subject_json(kernel.subject), "charts": charts, "shares": plain(kernel.shares)}


def _what_if_json(one: WhatIf) -> Json:
    chart = None if one.roofline is None else chart_json(one.roofline)
    return {
        **pick(one, "name", "change", "model", "bound_by", "before", "bound", "gain", "gain_of_all"),
        "chart": chart,
    }
