"""Measured points on the charts of the roofline family: rows of a file beside the kernels that they are of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from pathlib import Path

from kernmodel.code.block_files import csv_reader, csv_rows, read_lines
from kernmodel.errors import InputError, Note
from kernmodel.evaluate.kernel_files import read_kernels
from kernmodel.evaluate.kernel_model import MeasuredPoint, Series
from kernmodel.evaluate.kernels import in_cycles
from kernmodel.models.chart import MeasuredMark, Roofline, demand
from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer, Subject
from kernmodel.units import time_unit
from kernmodel.value_types import dataclass

MEMORY = "Mem"


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement of a file.

    Attributes:
        line: of the file; kernel: its name there.
        flop_per_second: of all cores, None where `point` says it as a time or rate in another unit.
        memory_bytes: that crossed the path to memory per source iteration, both directions together; None: not known.
        series, point: of a file of measured kernels; None of a table of rates.
    """

    line: int
    kernel: str
    flop_per_second: float | None
    memory_bytes: float | None
    series: Series | None = None
    point: MeasuredPoint | None = None


def read_rows(path: str) -> tuple[Row, ...]:
    """The rows of a file of measured kernels (docs/accuracy.md), or of a table of rates.

    That has the columns `kernel`, `FLOP/s` (also with k, M, G, T) and, where known, `bytes` (at memory, per source
    iteration).

    Raises:
        InputError: it cannot be read, is neither, or a row has no number.
    """
    reader = csv_reader(read_lines(path, "a file of measured kernels"), path)
    columns = {name.strip(): name for name in reader.fieldnames or ()}
    rate = next((name for name in columns if re.fullmatch(r"[kMGT]?FLOP/s", name)), None)
    if "measured" in columns:
        return tuple(_of_kernels(path))
    if rate is None or "kernel" not in columns:
        what = f"has no column {('FLOP/s' if 'kernel' in columns else 'kernel')!r}"
        todo = "it needs kernel and FLOP/s (or GFLOP/s, …), and bytes where known; or what docs/accuracy.md says"
        raise InputError(what, where=path, todo=todo)
    factor, found = time_unit(rate)[1], []
    for line, row, error in csv_rows(reader):
        if error is not None:
            raise InputError(error, where=f"{path}:{line}")
        cells = {name: (row.get(column) or "").strip() for name, column in columns.items()}
        value = factor * _number(cells[rate], rate, path, line)
        moved = _number(cells["bytes"], "bytes", path, line) if cells.get("bytes") else None
        found.append(Row(line, cells["kernel"], value, moved))
    return tuple(found)


def _number(text: str, column: str, path: str, line: int) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (isfinite(value) and value > 0):
        raise InputError(
            f"{column} is {text[:40]!r}, not a positive number", where=f"{path}:{line}", todo="mend the row"
        )
    return value


def _of_kernels(path: str) -> Iterator[Row]:
    source = read_kernels(path)
    for series, points in source.series.items():
        for point in points:
            rate = point.measured if point.unit == "FLOP/s" else None
            memory = next((moved for name, moved in point.traffic.items() if name.endswith(MEMORY)), None)
            yield Row(point.line, series.kernel, rate, memory, series, point)


def with_measured(answer: RooflineAnswer, path: str) -> RooflineAnswer:
    """The charts with the rows of a file that are of their kernels, at their sizes, machine and cores.

    Raises:
        InputError: as `read_rows`.
    """
    rows, kernels, missing = read_rows(path), [], []
    for kernel in answer.kernels:
        mine = _mine(kernel.subject, rows, answer.machine.name, answer.cores)
        missing += [] if mine else [kernel.subject.name]
        charts = tuple(_marked(chart, kernel.subject, mine) for chart in kernel.rooflines)
        kernels.append(replace(kernel, rooflines=charts))
    doubts = _above([chart for kernel in kernels for chart in kernel.rooflines], path)
    return replace(answer, kernels=tuple(kernels), notes=(*answer.notes, *_missing(missing, path), *doubts))


def carm_with_measured(answer: CarmAnswer, path: str) -> CarmAnswer:
    """The adCARM chart of one kernel with the rows of a file that are of it.

    Raises:
        InputError: as `read_rows`.
    """
    subject, findings = answer.subject, answer.findings
    mine = _mine(subject, read_rows(path), answer.machine.name, answer.cores)
    marked = replace(
        findings, roofline=_marked(findings.roofline, subject, mine), beside=_marked(findings.beside, subject, mine)
    )
    missing = _missing([] if mine else [subject.name], path)
    return replace(answer, findings=marked, notes=(*answer.notes, *missing, *_above([marked.roofline], path)))


def _missing(names: Sequence[str], path: str) -> Iterator[Note]:
    if names:
        text = f"{path} has no row of {', '.join(names)} at these sizes, on this machine with so many cores"
        yield Note("not-measured", text)


_ABOVE_PERCENT = 110.0
"""Of its roof, beyond what measurements of roofs and kernels repeat."""


def _above(charts: Sequence[Roofline], path: str) -> Iterator[Note]:
    """A warning of measurements that a roof does not allow: rows in another unit, or roofs of another machine."""
    for mark in dict.fromkeys(mark for chart in charts for mark in chart.measured):
        held = mark.percent_interval
        percent = mark.percent_of_roof if held is None else held.low
        if percent > _ABOVE_PERCENT:
            text = (
                f"{path}:{mark.line}: {mark.name} was measured at {percent:.4g} % of what {mark.roof} "
                "allows: see whether rate and bytes (of one source iteration) are those of this machine and these cores"
            )
            yield Note("measured-above-roof", text)


def _mine(subject: Subject, rows: Sequence[Row], machine: str, cores: int) -> tuple[Row, ...]:
    """The rows that are of this kernel; in a file of measured kernels also of these sizes, machine and cores."""
    names = {subject.name, *([Path(subject.nest.file).stem] if subject.nest is not None else [])}
    return tuple(
        row
        for row in rows
        if Path(row.kernel).stem in names and (row.point is None or _fits(row, subject.sizes, machine, cores))
    )


def _fits(row: Row, sizes: Mapping[str, int], machine: str, cores: int) -> bool:
    point, series = row.point, row.series
    assert point is not None and series is not None
    same = all(sizes.get(name) == value for name, value in point.sizes.items())
    return same and point.cores == cores and Path(series.machine).stem == machine


def _marked(chart: Roofline, subject: Subject, rows: Sequence[Row]) -> Roofline:
    """The chart with these measurements."""
    flops = demand(subject.case).flops
    marks = [
        mark
        for row in rows
        if (rate := _rate(row, subject, flops)) is not None and (mark := _mark(chart, row, rate, flops)) is not None
    ]
    return replace(chart, measured=tuple(marks))


def _rate(row: Row, subject: Subject, flops: float) -> float | None:
    """FLOP/s of a measurement; None where the unit of work of the kernel, or its FLOP, are not known."""
    if row.flop_per_second is not None or row.point is None:
        return row.flop_per_second
    if subject.predicted is None or not flops:
        return None
    work = subject.predicted.prediction.work
    cycles = in_cycles(row.point.measured, row.point.unit, work)
    return flops * work.iterations_per_unit * work.clock_hz / cycles


def _mark(chart: Roofline, row: Row, rate: float, flops: float) -> MeasuredMark | None:
    """Where a measurement stands: by its own bytes on the roof of memory, where the chart means such bytes, else at the
    intensity of the level that limits. None where the kernel has no intensity there."""
    memory = next((roof for roof in chart.memory_roofs if roof.level == MEMORY), None)
    if row.memory_bytes and memory is not None and chart.model in ("orm", "hierarchical", "irm"):
        intensity = flops / row.memory_bytes
        highest = max((roof.flop_per_second for roof in chart.compute_roofs), default=float("inf"))

        def allowed(bandwidth: float) -> float:
            return min(intensity * bandwidth, highest)

        held, roof = memory.bytes_per_second_interval, allowed(memory.bytes_per_second)
        interval = None if held is None else held.map(allowed)
        return MeasuredMark(row.kernel, MEMORY, intensity, rate, MEMORY, roof, row.line, True, interval)
    limiting = chart.limiting_point
    if limiting is None or not limiting.intensity or not chart.bound:
        return None
    return MeasuredMark(
        row.kernel,
        limiting.level,
        limiting.intensity,
        rate,
        chart.bound_by or "",
        chart.bound,
        row.line,
        roof_flop_per_second_interval=chart.bound_interval,
    )
