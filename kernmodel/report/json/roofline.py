"""`kernmodel.roofline/1` and `kernmodel.carm/1`; `kernmodel.mix/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, code_json, document, interval_json, kernel_json, pick, record
from kernmodel.report.text.bottleneck import limit_text

if TYPE_CHECKING:
    from kernmodel.models.findings import WhatIf
    from kernmodel.studies.predict.mix import MixAnswer, MixPart
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer, Subject


def roofline_document(answer: RooflineAnswer) -> Json:
    """The answer of `kernmodel roofline`."""
    return document(
        "kernmodel.roofline/1",
        machine=answer.machine,
        cores=answer.cores,
        models=answer.models,
        kernels=[
            record(_subject_json(kernel.subject), charts=kernel.rooflines, shares=kernel.shares)
            for kernel in answer.kernels
        ],
        failed=[{"kernel": name, "error": error} for name, error in answer.failed.items()],
        arrangement=answer.arrangement,
        notes=answer.notes,
    )


def carm_document(answer: CarmAnswer) -> Json:
    """The answer of `kernmodel carm`."""
    findings = answer.findings
    return document(
        "kernmodel.carm/1",
        record(machine=answer.machine, cores=answer.cores),
        _subject_json(answer.subject),
        interval_json("bound_if_times_add", findings.added_interval),
        adcarm=findings.roofline,
        carm=findings.beside,
        shares=findings.shares,
        deserves_work=findings.level,
        bound_if_times_add=findings.added,
        what_ifs=[_what_if_json(one) for one in findings.what_ifs],
        sentences=findings.sentences,
        notes=answer.notes,
    )


def _subject_json(subject: Subject) -> Json:
    """Kernel, code, mix and prediction."""
    case = subject.case
    predicted = record(
        interval_json("flop_per_second", case.performance_interval),
        interval_json("iterations_per_second", subject.iterations_per_second_interval),
        flop_per_second=case.performance,
        iterations_per_second=subject.iterations_per_second,
        reason=limit_text(subject),
    )
    return record(
        name=subject.name,
        kernel=kernel_json(subject.nest, subject.sizes) if subject.nest is not None else None,
        code=code_json(subject.origin, subject.loop) if subject.origin and subject.loop else None,
        mix=case.mix,
        mask_utilization=case.mask_utilization,
        predicted=predicted,
    )


_UNSURE = ("before", "bound", "gain", "gain_of_all")


def _what_if_json(one: WhatIf) -> Json:
    names = ("name", "change", "model", "bound_by", "before", "bound", "gain", "gain_of_all")
    intervals = (interval_json(name, getattr(one, f"{name}_interval")) for name in _UNSURE)
    return record(pick(one, *names), *intervals, chart=one.roofline)


def mix_document(answer: MixAnswer) -> Json:
    """The answer of `kernmodel mix`."""
    parts = [_part_json(part) for part in answer.parts]
    return document("kernmodel.mix/1", pick(answer, "name", "machine", "mix"), parts=parts, notes=answer.notes)


def _part_json(part: MixPart) -> Json:
    return record(
        kernel=kernel_json(part.nest, part.sizes or {}) if part.nest else None,
        code=code_json(part.origin, part.loop),
        weight=part.weight,
        mix=part.mix,
        source_beside_code=part.comparisons,
    )
