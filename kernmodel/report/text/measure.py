"""Measurements as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, fields, left, right, table
from kernmodel.report.number_text import MISSING, decimal
from kernmodel.report.text.sections import notes_section
from kernmodel.units import format_bytes, format_si

if TYPE_CHECKING:
    from kernmodel.measure.model import BlockMeasurement, InstructionMeasurement, Peaks
    from kernmodel.measure.samples import Figure


def figure_text(figure: Figure, unit: str) -> str:
    """A figure with its spread and samples; what is not confirmed is said to be so."""
    total = figure.accepted + figure.refused
    samples = f"{figure.accepted} of {total} samples count"
    if not figure.confirmed:
        return f"not judged ({samples})"
    return f"{decimal(figure.value)} {unit} (spread {figure.spread_percent:.1f} %, {samples})"


def confirmed(figure: Figure) -> float | None:
    """The value of a figure that is confirmed."""
    return figure.value if figure.confirmed else None


def samples_text(figure: Figure) -> str:
    """How many samples count."""
    return f"{figure.accepted} of {figure.accepted + figure.refused}"


def spread_text(figure: Figure) -> str:
    """The spread of a confirmed figure."""
    return f"{figure.spread_percent:.1f} %" if figure.confirmed else MISSING


def block_report(measured: BlockMeasurement) -> Blocks:
    """One block."""
    how = {
        "unrolled": "copies one behind the other",
        "loop": "a loop by its own branch" if measured.own_branch else "a loop by dec and jnz",
    }[measured.notion]
    return (
        *fields(
            "Measured on this host",
            ("block", "; ".join(measured.instructions)),
            ("passes follow as", how),
            ("address modulo 64", str(measured.offset)),
            ("cycles per pass", figure_text(measured.cycles, "cy")),
            ("clock", format_si(measured.clock_hz, "Hz")),
        ),
        *notes_section(measured.notes),
    )


def peaks_report(measured: Peaks) -> Blocks:
    """The peaks of one core."""
    columns = (
        left("operation", "operation"),
        left("precision", "precision"),
        right("register", "width_bytes", format_bytes),
        left("instruction", "instruction"),
        right("FLOP/cy", lambda peak: confirmed(peak.per_cycle)),
        right("spread", lambda peak: spread_text(peak.per_cycle)),
        right("samples", lambda peak: samples_text(peak.per_cycle)),
    )
    clock = fields("Measured on this host", ("clock", format_si(measured.clock_hz, "Hz")), ("cores", "1"))
    return (*clock, *table("Peaks of one core", columns, measured.peaks), *notes_section(measured.notes))


def instruction_report(measured: InstructionMeasurement) -> Blocks:
    """One instruction form."""
    latencies = ((f"latency {pair}", figure_text(figure, "cy")) for pair, figure in measured.latencies.items())
    beside = (
        (f"with 4 of {form}", f"{figure.value:+.2f} cy" if figure.confirmed else "not judged")
        for form, figure in measured.beside.items()
    )
    return (
        *fields(
            f"{measured.form}, measured on this host",
            ("executed", measured.text),
            ("reciprocal throughput", figure_text(measured.throughput, "cy")),
            *latencies,
            ("clock", format_si(measured.clock_hz, "Hz")),
        ),
        *fields("Cycles that one adds to four of another form (0: it shares no ports that they need)", *beside),
        *notes_section(measured.notes),
    )
