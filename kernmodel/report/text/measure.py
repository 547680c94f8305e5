"""Measurements as text."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, fields, left, right, table
from kernmodel.report.number_text import MISSING, decimal
from kernmodel.report.text.sections import compiler_fields, notes_section
from kernmodel.units import format_bytes, format_si

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernmodel.measure.model import (
        Bandwidths,
        BlockMeasurement,
        InstructionMeasurement,
        InstructionMeasurements,
        KernelMeasurement,
        Peaks,
    )
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


def instructions_report(measured: InstructionMeasurements) -> Blocks:
    """Several instruction forms, a line each."""
    beside = any(one.beside for one in measured.forms)
    columns = (
        left("form", "form"),
        right("reciprocal throughput", lambda one: confirmed(one.throughput)),
        right("spread", lambda one: spread_text(one.throughput)),
        right("samples", lambda one: samples_text(one.throughput)),
        left("latencies", lambda one: _confirmed_list(one.latencies, ".2f")),
        *([left("one more beside four of", lambda one: _confirmed_list(one.beside, "+.2f"))] if beside else []),
    )
    clocks = sorted(one.clock_hz for one in measured.forms)
    head = fields("Measured on this host", *([("clock", format_si(median(clocks), "Hz"))] if clocks else []))
    return (*head, *table("Instruction forms (cycles)", columns, measured.forms), *notes_section(measured.notes))


def _confirmed_list(figures: Mapping[str, Figure], form: str) -> str:
    return ", ".join(f"{name}: {figure.value:{form}}" for name, figure in figures.items() if figure.confirmed)


def bandwidth_report(measured: Bandwidths) -> Blocks:
    """The bandwidths of one core."""
    columns = (
        left("level", "level"),
        left("streams", "mix"),
        right("register", "width_bytes", format_bytes),
        right("data", "total_bytes", format_bytes),
        right("cy/line of all streams", lambda point: confirmed(point.cycles_per_line)),
        right("B/cy", lambda point: confirmed(point.bytes_per_cycle)),
        right("GB/s", lambda point: _rate(point.bytes_per_cycle, measured.clock_hz)),
        right("spread", lambda point: spread_text(point.cycles_per_line)),
        right("samples", lambda point: samples_text(point.cycles_per_line)),
    )
    clock, pages = format_si(measured.clock_hz, "Hz"), "huge" if measured.huge else "4 KiB"
    head = fields("Measured on this host", ("clock", clock), ("cores", "1"), ("pages", pages))
    title = "Bandwidths of one core (loads and stores, write-allocates not counted)"
    return (*head, *table(title, columns, measured.points), *notes_section(measured.notes))


def _rate(figure: Figure, clock_hz: float) -> float | None:
    return figure.value * clock_hz / 1e9 if figure.confirmed else None


def kernels_report(measured: Sequence[KernelMeasurement]) -> Blocks:
    """A kernel in one level or several."""
    columns = (
        left("level", lambda one: one.level or MISSING),
        left("sizes", lambda one: ", ".join(f"{name} = {value}" for name, value in one.sizes.items())),
        right("data", "data_bytes", format_bytes),
        right("cy/It", lambda one: confirmed(one.cycles)),
        right("spread", lambda one: spread_text(one.cycles)),
        right("samples", lambda one: samples_text(one.cycles)),
        right("clock", lambda one: format_si(one.clock_hz, "Hz")),
        right("loop mod 64", lambda one: MISSING if one.loop_offset is None else str(one.loop_offset)),
        left("arrays mod 64", lambda one: ", ".join(f"{array.name} {array.offset}" for array in one.arrays)),
        left("pages", lambda one: "huge" if all(array.huge for array in one.arrays) else "4 KiB"),
    )
    notes = dict.fromkeys(note for one in measured for note in one.notes)
    one = measured[0]
    pairs = compiler_fields(one.compiler, one.version, one.flags) if one.compiler else ()
    return (
        *table(f"{measured[0].name}, measured on this host", columns, measured),
        *fields("Compiled with", *pairs),
        *notes_section(tuple(notes)),
    )
