"""The answer of `kernmodel report` in a few lines: the prediction, and which parts have an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Line, fields
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.report.text.ecm import headline
from kernmodel.report.text.sections import code_fields, kernel_fields, machine_fields, notes_section
from kernmodel.studies.report import PARTS

if TYPE_CHECKING:
    from kernmodel.studies.report import KernelReport

NAMES = {
    "sizes": "over sizes",
    "rooflines": "rooflines",
    "carm": "memory share and impact",
    "dependences": "dependency graph",
    "scaling": "over cores",
    "blocking": "blocking",
    "sensitivity": "sensitivity",
}
"""What the parts are called."""


def verdict(answer: KernelReport) -> str:
    """The prediction and what holds the kernel back, in a sentence or two."""
    prediction = answer.ecm.prediction
    return f"T_ECM {'' if prediction.unknown else '= '}{headline(prediction, 'cy/CL')}. {bottleneck_text(prediction)}"


def report_summary(answer: KernelReport) -> Blocks:
    """The prediction, and which parts have an answer or why not."""
    ecm = answer.ecm
    inputs = fields(
        f"Report on {ecm.nest.name} on {ecm.machine.name}",
        *kernel_fields(ecm.nest, ecm.sizes),
        *machine_fields(ecm.machine),
        *code_fields(ecm.origin),
    )
    told = ((NAMES[name], getattr(answer, name).error or "told") for name in PARTS)
    return (
        *inputs,
        Line(""),
        Line(f"  {verdict(answer)}", "strong", fold=True),
        *fields("Parts", *told),
        *notes_section(answer.notes),
    )
