"""The answer of `kernmodel report` in a few lines: the prediction, and which parts have an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Line, fields
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.report.text.compare import compare_report
from kernmodel.report.text.ecm import headline
from kernmodel.report.text.sections import code_fields, kernel_fields, machine_fields, notes_section
from kernmodel.studies.report import PARTS
from kernmodel.units import convert_cycles

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
    kernels = (
        [(result, result.answer) for result in results if result.answer is not None]
        for results in answer.compared.by_kernel
    )
    return tuple(_fastest(found) for found in kernels if found)


def _fastest(found: Sequence[tuple[MachineResult, EcmAnswer]]) -> str:
    rates = {
        number: convert_cycles(result.domain.cycles, "It/s", ecm.prediction.work)
        for number, (result, ecm) in enumerate(found)
        if result.domain is not None
    }
    result, ecm = found[max(rates, key=rates.__getitem__, default=0)]
    prediction = ecm.prediction
    told = f"T_ECM {'' if prediction.unknown else '= '}{headline(prediction, 'cy/CL')}"
    unknown = ", ".join(one.machine for one, _ in found if one.domain is None)
    left_out = f" The full domain of {unknown} is not known." if unknown and len(found) > 1 else ""
    if len(rates) < 2:
        return f"{result.name} on {result.machine}: {told}. {bottleneck_text(prediction)}{left_out}"
    others = ", ".join(one.machine for one, _ in found if one.domain is not None and one is not result)
    fastest = f"a full domain is fastest on {result.machine} (beside {others})"
    limit = f", limited by {result.limit_domain}" if result.limit_domain else ""
    return f"{result.name}: {fastest}{limit}; one core: {told}.{left_out}"


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
