"""`kernmodel.report/1`: the documents of the parts of a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kernmodel.report.json.blocking import blocking_document
from kernmodel.report.json.document import Json, document, record
from kernmodel.report.json.ecm import compare_document, ecm_document, ecm_sweep_document, scaling_document
from kernmodel.report.json.roofline import carm_document, roofline_document
from kernmodel.report.json.what_if import sensitivity_document

if TYPE_CHECKING:
    from kernmodel.studies.comparison import ComparisonReport
    from kernmodel.studies.report import KernelReport, Part

Answer = TypeVar("Answer")
_UNIT = "cy/CL"


def report_document(answer: KernelReport) -> Json:
    """The answer of `kernmodel report`: by part its document, or its error."""
    return document(
        "kernmodel.report/1",
        ecm=ecm_document(answer.ecm, _UNIT),
        sizes=_part(answer.sizes, lambda found: ecm_sweep_document(found.answers, _UNIT)),
        rooflines=_part(answer.rooflines, roofline_document),
        carm=_part(answer.carm, carm_document),
        scaling=_part(answer.scaling, lambda found: scaling_document((found,), None)),
        blocking=_part(answer.blocking, lambda found: blocking_document(found, _UNIT)),
        sensitivity=_part(answer.sensitivity, lambda found: sensitivity_document(found, _UNIT)),
        notes=answer.notes,
    )


def comparison_document(answer: ComparisonReport) -> Json:
    """The answer of `kernmodel report` for several kernels or machines: the comparison, and by machine its charts."""
    return document(
        "kernmodel.comparison/1",
        compared=compare_document(answer.compared),
        rooflines=[
            record(machine=name, chart=_part(part, roofline_document)) for name, part in answer.rooflines.items()
        ],
        notes=answer.notes,
    )


def _part(part: Part[Answer], make: Callable[[Answer], Json]) -> Json:
    return {"error": part.error} if part.answer is None else make(part.answer)
