"""The answer of `kernmodel compare` as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.models.ecm import AT_LEAST, UNKNOWN
from kernmodel.report.layout import Block, Blocks, Line, fields, left, lines, right, table
from kernmodel.report.number_text import MISSING, decimal, time_in
from kernmodel.report.text.bottleneck import because_text
from kernmodel.report.text.ecm import bound_sign, performance_text
from kernmodel.report.text.sections import code_fields, kernel_fields, merged_notes, notes_section
from kernmodel.studies.scaling import own_rate
from kernmodel.units import format_si
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.studies.compare import CompareAnswer, MachineResult
    from kernmodel.studies.predict.request import EcmAnswer


def compare_report(answer: CompareAnswer, unit: str | None, *, verbose: bool = False) -> Blocks:
    """A table for each kernel, with what limits below it; `unit`: None for each kernel's own rate.

    Raises:
        UsageError: the unit has no meaning for a kernel.
    """
    blocks = [block for results in answer.by_kernel for block in _of_kernel(results, unit, verbose=verbose)]
    return (*blocks, *notes_section(merged_notes(answer.notes)))


def _of_kernel(results: Sequence[MachineResult], unit: str | None, *, verbose: bool) -> Iterator[Block]:
    found = [(result, result.answer) for result in results if result.answer is not None]
    if found:
        first = found[0][1]
        yield from fields(
            f"{found[0][0].name} on {count(len(results), 'machine')}", *kernel_fields(first.nest, first.sizes)
        )
        yield Line("")
        yield _table(found, unit or own_rate(first.prediction.work))
        yield from _limits(found)
    failed = (f"{result.machine}: {result.error}" for result in results if result.error is not None)
    yield from lines(f"No prediction of {results[0].kernel}", failed, "warning")
    for result, answer in found if verbose else ():
        yield from _details(result, answer)


_Found = Sequence[tuple["MachineResult", "EcmAnswer"]]


def _table(found: _Found, unit: str) -> Block:
    def performance(which: str) -> Callable[[tuple[MachineResult, EcmAnswer]], str]:
        """Of the point of this name, with its cores."""
        return lambda of: _performance(getattr(of[0], which), unit, of[1])

    def one_core(prediction: EcmPrediction) -> str:
        return time_in(prediction.cycles, unit, prediction.work)

    columns = (
        left("machine", lambda of: of[0].machine),
        right("clock", lambda of: format_si(of[1].machine.clock_hz, "Hz")),
        right("{T_OL ‖ T_nOL | transfers} cy/CL", lambda of: of[1].prediction.shorthand().removesuffix(" cy/CL")),
        right("T_ECM", lambda of: bound_sign("cy/CL", of[1].prediction) + decimal(of[1].prediction.cycles)),
        right("one core", lambda of: bound_sign(unit, of[1].prediction) + one_core(of[1].prediction)),
        right("runtime", lambda of: _ratio(of[0].ratio)),
        right("ccNUMA domain", performance("domain")),
        right("runtime", lambda of: _ratio(of[0].ratio_domain)),
        right("machine", performance("whole")),
        right("n_S", lambda of: _saturation(*of)),
    )
    return table("", columns, found)[1]


def _performance(point: ScalingPoint | None, unit: str, answer: EcmAnswer) -> str:
    return MISSING if point is None else f"{performance_text(point, unit, answer.prediction.work)} ({point.cores})"


def _ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}×"


def _saturation(result: MachineResult, answer: EcmAnswer) -> str:
    if not answer.prediction.transfers[-1].known:
        return UNKNOWN
    least = AT_LEAST * answer.prediction.saturation_is_least
    cores = "none" if result.saturation is None else f"{least}{result.saturation}"
    return f"{cores} of {answer.machine.topology.cores_per_numa_domain}"


def _limits(found: _Found) -> Blocks:
    columns = (left("machine", "machine"), left("one core", "limit_core"), left("ccNUMA domain", "limit_domain"))
    results = [result for result, _ in found]
    told = (Line(f"  {result.machine}: {because_text(result)}") for result in results)
    return (*table("What limits", columns, results), Line(""), *told)


def _details(result: MachineResult, answer: EcmAnswer) -> Blocks:
    """A machine with its file and how its code was made."""
    return fields(
        f"{result.name} on {result.machine}: {answer.machine.title}",
        ("machine file", answer.machine.file),
        *code_fields(answer.origin),
        ("composition", answer.prediction.overlap),
        ("prediction", answer.prediction.level_shorthand()),
    )
