"""Results of the CARM Tool (champ-hub/carm-roofline): the CSV file of its roofline benchmarks.

Two lines of headings (name and sizes of caches in KiB; what the columns are), then a line per run: instruction set,
precision, threads, loads and stores of the memory benchmark, the instruction of the other, and for L1, L2, L3 and DRAM
GB/s and instructions per cycle, Gflop/s of the instruction and of FMA. 0 stands for what was not measured. Loads and
stores go through one array, each to an address of its own, so that they are as many streams.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence

from kernmodel.errors import Location, MachineError, Note
from kernmodel.machine.benchmarks.facts import ELEMENT_BYTES, facts
from kernmodel.machine.benchmarks.model import BenchmarkFile, MeasuredBandwidth, Streams
from kernmodel.machine.model import MeasuredPeak

TOOL = "the CARM Tool"
_HEADS = ("Date", "ISA", "Precision", "Threads", "Loads", "Stores", "Interleaved", "DRAM Bytes", "FP Inst.")
_LEVELS = {"L1": 9, "L2": 11, "L3": 13, "Mem": 15}
"""Columns of bandwidths."""
_COMPUTED, _COMPUTED_FMA, _COLUMNS = 17, 19, 21
_GIGA = 1e9
_OPERATIONS = ("ADD", "MUL", "DIV", "FMA")


def is_carm_tool(text: str) -> bool:
    """Whether a text is such a file."""
    lines = [line for line in text.splitlines() if line.strip()][:2]
    return len(lines) == 2 and lines[0].startswith("Name:") and lines[1].startswith(",".join(_HEADS))


def read_carm_tool(text: str, file: str) -> BenchmarkFile:
    """The runs in such a file.

    Raises:
        MachineError: a line lacks columns or holds no number where one belongs; names the line.
    """
    rows = list(csv.reader(text.splitlines()))
    head = next(row for row in rows if row)
    sizes = {key.split()[0]: value for key, value in zip(head[2:8:2], head[3:8:2], strict=False)}
    bandwidths: list[MeasuredBandwidth] = []
    peaks: list[MeasuredPeak] = []
    notes: list[Note] = []
    for number, row in enumerate(rows, 1):
        if row and row[0] not in ("Name:", _HEADS[0]) and any(cell.strip() for cell in row):
            _read_run(row, Location(file, number), bandwidths, peaks, notes)
    kib = {level: float(size) for level, size in sizes.items() if size.replace(".", "", 1).isdigit() and float(size)}
    return BenchmarkFile(TOOL, file, tuple(bandwidths), tuple(peaks), kib, tuple(notes))


def _read_run(
    row: Sequence[str],
    where: Location,
    bandwidths: list[MeasuredBandwidth],
    peaks: list[MeasuredPeak],
    notes: list[Note],
) -> None:
    """Add what a line says."""
    if len(row) < _COLUMNS:
        what = f"has {len(row)} columns instead of {_COLUMNS}"
        raise MachineError(what, where=where, todo="give the roofline CSV as the CARM Tool writes it")
    isa, precision = row[1].strip().lower(), row[2].strip().upper()
    width = _width(isa, precision)
    if width is None:
        notes.append(Note("benchmark-left-out", f"how wide accesses of {isa!r} are is not known", where=where))
        return
    numbers = _Numbers(row, where)
    threads, read, write = (int(numbers.at(column)) for column in (3, 4, 5))
    if threads < 1 or read + write < 1:
        raise MachineError("has no threads, loads or stores", where=where, todo="check the columns")
    order = "" if row[6].strip().lower() == "no" else ", interleaved"
    name = f"carm-{read}ld-{write}st-{isa}-{precision.lower()}"
    streams = Streams(name, f"{TOOL}, {read} LD {write} ST{order}, {isa}", read, write, access_bytes=width)
    for level, column in _LEVELS.items():
        if rate := numbers.at(column):
            bandwidths.append(MeasuredBandwidth(streams, threads, rate * _GIGA, level))
    peaks += [
        MeasuredPeak(operation, precision, width, threads, rate * _GIGA) for operation, rate in _computed(row, numbers)
    ]


def _computed(row: Sequence[str], numbers: _Numbers) -> Iterator[tuple[str, float]]:
    operation = row[8].strip().upper()
    for name, column in ((operation, _COMPUTED), ("FMA", _COMPUTED_FMA)):
        if name in _OPERATIONS and (rate := numbers.at(column)):
            yield name, rate


class _Numbers:
    """The cells of a line as numbers."""

    __slots__ = ("_row", "_where")

    def __init__(self, row: Sequence[str], where: Location) -> None:
        self._row, self._where = row, where

    def at(self, column: int) -> float:
        """The number in a column, from 0.

        Raises:
            MachineError: there is none.
        """
        try:
            value = float(self._row[column])
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            what = f"column {column + 1} holds {self._row[column][:20]!r}, which is no number"
            raise MachineError(what, where=self._where, todo="give the CSV as the CARM Tool writes it")
        return value


def _width(isa: str, precision: str) -> int | None:
    """Bytes of a load or store; None: not known."""
    element = ELEMENT_BYTES.get(precision)
    if element is None:
        return None
    widths: Mapping[str, int] = facts("carm_width")
    if isa in widths:
        return widths[isa] or element
    name, _, length = isa.partition("_vl")
    return int(length) * element if name == "sve" and length.isdecimal() else None
