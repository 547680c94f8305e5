"""`kernmodel.measured-block/1`, `kernmodel.measured-peaks/1`, `kernmodel.measured-instruction/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, document, pick, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernmodel.measure.model import (
        Bandwidths,
        BlockMeasurement,
        InstructionMeasurement,
        InstructionMeasurements,
        KernelMeasurement,
        Peaks,
    )
    from kernmodel.measure.samples import Figure


def figure_json(figure: Figure) -> Json:
    """A measured figure; its value is null where it is not confirmed."""
    return record(
        pick(figure, "low", "high", "accepted", "refused", "confirmed"),
        value=figure.value if figure.confirmed else None,
        spread_percent=figure.spread_percent if figure.confirmed else None,
    )


def block_document(measured: BlockMeasurement) -> Json:
    """The answer of `kernmodel measure block`."""
    return document(
        "kernmodel.measured-block/1",
        pick(measured, "code", "instructions", "notion", "own_branch", "offset", "copies"),
        {"cycles": figure_json(measured.cycles)},
        pick(measured, "clock_hz", "notes"),
    )


def peaks_document(measured: Peaks) -> Json:
    """The answer of `kernmodel measure peaks`."""
    return document(
        "kernmodel.measured-peaks/1",
        pick(measured, "clock_hz", "notes"),
        peaks=[
            record(
                pick(peak, "operation", "precision", "width_bytes", "instruction"),
                flop_per_cycle=figure_json(peak.per_cycle),
            )
            for peak in measured.peaks
        ],
    )


def instruction_document(measured: InstructionMeasurement) -> Json:
    """The answer of `kernmodel measure instruction`; cycles."""
    return document("kernmodel.measured-instruction/1", _instruction(measured), pick(measured, "notes"))


def instructions_document(measured: InstructionMeasurements) -> Json:
    """The answer of `kernmodel measure instruction` to several forms."""
    forms = [_instruction(one) for one in measured.forms]
    return document("kernmodel.measured-instructions/1", pick(measured, "notes"), instructions=forms)


def _instruction(measured: InstructionMeasurement) -> Json:
    return record(
        pick(measured, "form", "text", "clock_hz"),
        throughput=figure_json(measured.throughput),
        latencies=[{"operands": pair, **figure_json(one)} for pair, one in measured.latencies.items()],
        beside=[{"form": form, **figure_json(one)} for form, one in measured.beside.items()],
    )


def bandwidth_document(measured: Bandwidths) -> Json:
    """The answer of `kernmodel measure bandwidth`."""
    return document(
        "kernmodel.measured-bandwidths/1",
        pick(measured, "clock_hz", "huge", "notes"),
        points=[
            record(
                pick(point, "level", "mix", "width_bytes", "total_bytes"),
                cycles_per_line=figure_json(point.cycles_per_line),
                bytes_per_cycle=figure_json(point.bytes_per_cycle),
            )
            for point in measured.points
        ],
    )


def kernels_document(measured: Sequence[KernelMeasurement]) -> Json:
    """The answer of `kernmodel measure kernel`."""
    names = (
        "name",
        "sizes",
        "level",
        "data_bytes",
        "iterations",
        "clock_hz",
        "loop_offset",
        "arrays",
        "compiler",
        "version",
        "flags",
        "notes",
    )
    return document(
        "kernmodel.measured-kernel/1",
        points=[record(pick(one, *names), cycles_per_iteration=figure_json(one.cycles)) for one in measured],
    )
