"""Files of measured kernels: CSV, gzip or not (docs/accuracy.md, "Files of kernels")."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

from kernmodel.code.block_files import csv_reader, csv_rows, read_lines
from kernmodel.errors import InputError
from kernmodel.evaluate.kernel_model import KernelFile, MeasuredPoint, Series
from kernmodel.units import time_unit
from kernmodel.user_files import beside

_NEEDED = ("kernel", "machine", "sizes", "measured")
_PEER, _TRAFFIC = "peer_", "traffic_"


def read_kernels(path: str) -> KernelFile:
    """The measured kernels of a file, by series in the order of the file.

    Raises:
        InputError: it cannot be read, lacks a column, or has no usable line.
    """
    reader = csv_reader(read_lines(path, "a file of measured kernels"), path)
    columns = [name.strip() for name in reader.fieldnames or ()]
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        todo = f"it needs at least the columns {', '.join(_NEEDED)} (docs/accuracy.md)"
        raise InputError(f"has no column {missing[0]!r}", where=path, todo=todo)
    found: dict[Series, list[MeasuredPoint]] = {}
    skipped: list[tuple[int, str]] = []
    folder = Path(path).parent
    for line, row, error in csv_rows(reader):
        cells = {str(key).strip(): (value or "").strip() for key, value in row.items() if isinstance(key, str)}
        try:
            if error is not None:
                raise ValueError(error)
            series, point = _series(cells, folder), _point(line, cells)
            found.setdefault(series, []).append(point)
        except ValueError as wrong:
            skipped.append((line, str(wrong)))
    if not found:
        reason = f": line {skipped[0][0]}: {skipped[0][1]}" if skipped else ""
        raise InputError(f"has no measured kernel{reason}", where=path, todo="see docs/accuracy.md for its form")
    return KernelFile(path, {series: tuple(points) for series, points in found.items()}, tuple(skipped))


def _series(row: Mapping[str, str], folder: Path) -> Series:
    for name in ("kernel", "machine"):
        if not row[name]:
            raise ValueError(f"no {name}")
    flags = row.get("flags", "")
    return Series(
        kernel=row["kernel"],
        machine=beside(row["machine"], folder),
        source=beside(row.get("source", "") or row["kernel"], folder),
        listing=beside(row["listing"], folder) if row.get("listing") else None,
        compiler=row.get("compiler") or None,
        flags=tuple(shlex.split(flags)) if flags else None,
        kind=row.get("class", ""),
    )


def _point(line: int, row: Mapping[str, str]) -> MeasuredPoint:
    unit, factor = time_unit(row.get("unit", "") or "cy/CL")
    peers = {name.removeprefix(_PEER): row[name] for name in row if name.startswith(_PEER) and row[name]}
    traffic = {name.removeprefix(_TRAFFIC): row[name] for name in row if name.startswith(_TRAFFIC) and row[name]}
    cores = row.get("cores", "") or "1"
    if not cores.isdecimal() or int(cores) < 1:
        raise ValueError(f"cores are {cores!r}, not 1 or more")
    return MeasuredPoint(
        line=line,
        sizes=_sizes(row["sizes"]),
        cores=int(cores),
        unit=unit,
        measured=factor * _positive(row["measured"], "measured"),
        traffic={name: _number(value, f"{_TRAFFIC}{name}") for name, value in traffic.items()},
        peers={name: factor * _positive(value, f"{_PEER}{name}") for name, value in peers.items()},
    )


def _sizes(text: str) -> dict[str, int]:
    """Sizes as a JSON object of integers, or as NAME=VALUE separated by blanks."""
    pairs: Mapping[str, object]
    try:
        if text.startswith("{"):
            pairs = json.loads(text)
        else:
            pairs = {name: int(value) for name, _, value in (item.partition("=") for item in text.split())}
    except (ValueError, RecursionError):
        pairs = {"": ""}
    if not all(name and isinstance(value, int) and not isinstance(value, bool) for name, value in pairs.items()):
        raise ValueError(f'sizes are {text[:40]!r}, not a JSON object of integers such as {{"N": 1000}}')
    return {name: value for name, value in pairs.items() if isinstance(value, int)}


def _positive(text: str, column: str) -> float:
    value = _number(text, column)
    if value <= 0:
        raise ValueError(f"{column} is {text!r}, not a positive number")
    return value


def _number(text: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value) or value < 0:
        raise ValueError(f"{column} is {text!r}, not a number")
    return value
