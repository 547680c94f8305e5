"""The answer of `kernmodel compare` as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import MISSING, count, decimal, time_in
from kernmodel.report.sections import code_fields, kernel_fields, merged_notes, notes_section
from kernmodel.studies.scaling import own_rate
from kernmodel.units import format_si

if TYPE_CHECKING:
    from kernmodel.models.ecm import ScalingPoint
    from kernmodel.studies.compare import CompareAnswer, MachineResult
    from kernmodel.studies.predict.request import EcmAnswer

_TIMES = "{T_OL ‖ T_nOL | transfers} cy/CL"


def compare_report(answer: CompareAnswer, unit: str | None, *, verbose: bool = False) -> tuple[Block, ...]:
    """A table for each kernel, with what limits below it; `unit`: None for each kernel's own rate.

    Raises:
        UsageError: the unit has no meaning for a kernel.
    """
    by_kernel: dict[str, list[MachineResult]] = {}
    for result in answer.results:
        by_kernel.setdefault(result.kernel, []).append(result)
    blocks = [block for results in by_kernel.values() for block in _of_kernel(results, unit, verbose=verbose)]
    return (*blocks, *notes_section(merged_notes(answer.notes)))


def _of_kernel(results: Sequence[MachineResult], unit: str | None, *, verbose: bool) -> Iterator[Block]:
    found = [(result, result.answer) for result in results if result.answer is not None]
    if found:
        first = found[0][1]
        yield Heading(f"{first.nest.name} on {count(len(results), 'machine')}")
        yield Fields(kernel_fields(first.nest, first.sizes))
        yield Line("")
        yield _table(found, unit or own_rate(first.prediction.work))
        yield from _limits(found)
    failed = [result for result in results if result.error is not None]
    if failed:
        yield Heading(f"No prediction of {results[0].kernel}")
        yield from (Line(f"  {result.machine}: {result.error}", "warning") for result in failed)
    if verbose and found:
        yield from _details(found)


_Found = Sequence[tuple["MachineResult", "EcmAnswer"]]


def _table(found: _Found, unit: str) -> Table:
    names = ("clock", _TIMES, "T_ECM", "one core", "runtime", "ccNUMA domain", "runtime", "machine", "n_S")
    columns = (Column("machine", "left"), *map(Column, names))
    return Table(columns, tuple(_row(result, answer, unit) for result, answer in found))


def _row(result: MachineResult, answer: EcmAnswer, unit: str) -> tuple[str, ...]:
    prediction, machine = answer.prediction, answer.machine

    def performance(point: ScalingPoint | None) -> str:
        return MISSING if point is None else f"{time_in(point.cycles, unit, prediction.work)} ({point.cores})"

    domain = machine.topology.cores_per_numa_domain
    return (
        result.machine,
        format_si(machine.clock_hz, "Hz"),
        prediction.shorthand().removesuffix(" cy/CL"),
        decimal(prediction.cycles),
        time_in(prediction.cycles, unit, prediction.work),
        _ratio(result.ratio),
        performance(result.domain),
        _ratio(result.ratio_domain),
        performance(result.whole),
        f"{result.saturation} of {domain}" if result.saturation is not None else f"none of {domain}",
    )


def _ratio(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}×"


def _limits(found: _Found) -> Iterator[Block]:
    columns = tuple(Column(name, "left") for name in ("machine", "one core", "ccNUMA domain"))
    rows = tuple((result.machine, result.limit_core, result.limit_domain) for result, _ in found)
    yield Heading("What limits")
    yield Table(columns, rows)
    yield Line("")
    for result, _ in found:
        yield Line(f"  {result.machine}: {result.because}")


def _details(found: _Found) -> Iterator[Block]:
    """Each machine with its file and how its code was made."""
    for result, answer in found:
        yield Heading(f"{answer.nest.name} on {result.machine}: {answer.machine.title}")
        pairs = (
            ("machine file", answer.machine.file),
            *code_fields(answer.origin),
            ("composition", answer.prediction.overlap),
            ("prediction", answer.prediction.level_shorthand()),
        )
        yield Fields(pairs)
