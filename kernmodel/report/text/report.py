"""The answer of `kernmodel report` in a few lines: the prediction, and which parts have an answer."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Line, fields
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.report.text.compare import compare_report
from kernmodel.report.text.ecm import headline
from kernmodel.report.text.sections import code_fields, kernel_fields, machine_fields, notes_section
from kernmodel.studies.report import PARTS

if TYPE_CHECKING:
    from kernmodel.studies.compare import MachineResult
    from kernmodel.studies.comparison import ComparisonReport
    from kernmodel.studies.predict.request import EcmAnswer
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


def comparison_verdicts(answer: ComparisonReport) -> tuple[str, ...]:
    """Of each kernel, where a full ccNUMA domain is fastest, and the prediction for one core there, in a sentence."""
    found: dict[str, list[tuple[MachineResult, EcmAnswer]]] = {}
    for result in answer.compared.results:
        if result.answer is not None:
            found.setdefault(result.kernel, []).append((result, result.answer))
    return tuple(map(_fastest, found.values()))


def _fastest(found: Sequence[tuple[MachineResult, EcmAnswer]]) -> str:
    result, ecm = min(found, key=lambda one: one[0].ratio_domain or inf)
    prediction = ecm.prediction
    told = f"T_ECM {'' if prediction.unknown else '= '}{headline(prediction, 'cy/CL')}"
    if len(found) == 1 or result.ratio_domain is None:
        return f"{result.name} on {result.machine}: {told}. {bottleneck_text(prediction)}"
    others = ", ".join(one.machine for one, _ in found if one is not result)
    limit = f"limited by {result.limit_domain}" if result.limit_domain else ""
    return f"{result.name}: a full domain is fastest on {result.machine} (beside {others}), {limit}; one core: {told}."


def comparison_summary(answer: ComparisonReport) -> Blocks:
    """The tables of the comparison, and what has no chart."""
    lines = (Line(f"  {line}", "strong", fold=True) for line in comparison_verdicts(answer))
    missing = ((name, part.error) for name, part in answer.rooflines.items() if part.answer is None)
    return (*lines, Line(""), *compare_report(answer.compared, None), *fields("No chart", *missing))


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
