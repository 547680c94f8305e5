"""Measurements on this host, as `kernmodel measure`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from kernmodel.api.result import Result, Views

if TYPE_CHECKING:
    from kernmodel.measure.model import BlockMeasurement, InstructionMeasurement, Peaks

Progress = Callable[[str], object]
"""Is told what is measured next."""


def measure_block(
    code: str, *, notion: Literal["loop", "unrolled"] | None = None, align: int = 0, strict: bool = False
) -> Result[BlockMeasurement]:
    """Cycles per pass of machine code on this host, its data in L1, as `kernmodel measure block`.

    >>> km.measure_block("4801d8").answer.cycles.value

    Args:
        code: of x86-64, in hex digits.
        notion: how passes follow one another; None: as a loop if it ends in a branch to its beginning.
        align: address of the block modulo 64.
        strict: raise for a figure that is not confirmed.

    Raises:
        AssemblyError: it is no code, or code that must not run; MeasurementError: it raises a signal, or the host does
            not let it be measured.
    """
    from kernmodel.code.blocks import parse_hex
    from kernmodel.measure.blocks import measure_block as measure
    from kernmodel.measure.host import Harness

    data = parse_hex(code, "--hex")
    with Harness() as harness:
        harness.seal()
        answer = measure(harness, data, notion=notion, offset=align)
    return Result([answer], Views("measure:block_report", "measure:block_document"), strict=strict)


def measure_peaks(*, progress: Progress = lambda what: None) -> Result[Peaks]:
    """FLOP per cycle of one core of this host, by operation, precision and register, as `kernmodel measure peaks`.

    >>> {(p.operation, p.width_bytes): p.per_cycle.value for p in km.measure_peaks().answer.peaks}

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    from kernmodel.measure.host import Harness
    from kernmodel.measure.peaks import measure_peaks as measure

    with Harness() as harness:
        harness.seal()
        answer = measure(harness, progress=progress)
    return Result([answer], Views("measure:peaks_report", "measure:peaks_document"))


def measure_instruction(form: str, *, ports: bool = False) -> Result[InstructionMeasurement]:
    """Reciprocal throughput and latencies of an instruction form on this host, as `kernmodel measure instruction`.

    >>> km.measure_instruction("vaddpd ymm,ymm,ymm").answer.latencies["2 → 1"].value

    Args:
        form: as in instruction tables.
        ports: also what it costs beside known forms.

    Raises:
        InputError: no such form, or one that is not measured; MeasurementError: the host does not execute it.
    """
    from kernmodel.measure.host import Harness
    from kernmodel.measure.instructions import measure_instruction as measure

    with Harness() as harness:
        harness.seal()
        answer = measure(harness, form, ports=ports)
    return Result([answer], Views("measure:instruction_report", "measure:instruction_document"))
