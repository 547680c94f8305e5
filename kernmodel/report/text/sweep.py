"""Sweeps as text: what all points share, a table of rows as they come, and below it what failed and the notes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import field
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

from kernmodel.errors import Note, UsageError
from kernmodel.models.bandwidths import most_drawn
from kernmodel.models.calls import CALLS
from kernmodel.models.ecm import UNKNOWN
from kernmodel.report.layout import Blocks, Column, Line, Pair, fields, left, lines, right
from kernmodel.report.number_text import MISSING, decimal, quantity
from kernmodel.report.text.sections import NUMBERS, machine_fields, merged_notes
from kernmodel.studies.sweep.rows import (
    ALL_CORES,
    CORE,
    ERROR,
    REUSE,
    TIME,
    WHILE,
    coordinate,
    coordinate_name,
    interval_of_all_cores,
)
from kernmodel.uncertainty import with_interval
from kernmodel.value_types import dataclass
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.studies.sweep.grid import Axis, Grid, Row
    from kernmodel.studies.sweep.study import SweepStudy

_TIME_WIDTH, _REUSE_WIDTH = 7, len("sweep")
_SHOWN_FAILURES = 10
_VARIED = {
    "machine": "machines", "compiler": "compilers", "flags": "flags", "cores": "cores", "size": "sizes",
    "block": "block sizes", "change": "figures of the machine",
}  # fmt: skip


def sweep_inputs(study: SweepStudy, first: Row | None) -> Blocks:
    """What all points share; `first` is a row with an answer, if there is one."""
    return (*fields(_title(study.grid, study.machines), *base_pairs(study, first)), Line(""))


def _title(grid: Grid, machines: Sequence[Machine]) -> str:
    *more, last = dict.fromkeys(_VARIED[axis.kind] for axis in grid.axes) or ("",)
    over = f"{', '.join(more)} and {last}" if more else last
    where = f" on {machines[0].name}" if len(machines) == 1 else ""
    kernel = grid.base.kernel.kernel.rpartition("/")[2].removesuffix(".c")
    return f"ECM prediction of {kernel}{where}{f' over {over}' if over else ''} (times in cy/CL)"


def base_pairs(study: SweepStudy, first: Row | None) -> tuple[Pair, ...]:
    """The base of a study as label and value."""
    grid, varied = study.grid, {axis.kind for axis in study.grid.axes}
    kernel, code = grid.base.kernel, grid.base.code
    named = {axis.name for axis in grid.axes}
    sizes = ", ".join(f"{name} = {value}" for name, value in kernel.sizes.items() if name not in named)
    pairs = [("kernel", kernel.kernel)]
    if "machine" not in varied:
        pairs += machine_fields(study.machines[0])
    if sizes:
        pairs.append(("sizes", sizes))
    if kernel.cores > 1 and "cores" not in varied:
        pairs.append(("active cores", str(kernel.cores)))
    pairs += [("changed", str(change)) for change in grid.base.changes]
    pairs += [("blocked", f"{loop} in blocks of {size}") for loop, size in grid.base.blocks if loop not in named]
    if code.flags is not None:
        pairs.append(("flags", shlex.join(code.flags)))
    if first is not None and not varied & {"machine", "compiler", "flags"}:
        pairs.append(("code", str(first["code"])))
    return tuple(pairs)


def row_columns(study: SweepStudy, unit: str, known: Iterable[Row] = ()) -> tuple[Column, ...]:
    """The columns of a table of rows, wide enough for what is likely to come: coordinates, the model's times, T_ECM in
    `unit` (beside it the performance of all cores where there are several), reuse in each cache, and what binds.

    T_call has none where no loop of the rows that are `known` calls a function, and all rows are of the same code.
    """
    names = [column.name for column in study.columns]
    times = [name for name in names if name.startswith("T_") and name.endswith(TIME) and not name.startswith("T_ECM")]
    answered = [row for row in known if row[ERROR] is None]
    one_code = not {axis.kind for axis in study.grid.axes} & {"machine", "compiler", "flags"}
    if answered and one_code and all(row[f"{CALLS}{TIME}"] == 0 for row in answered):
        times.remove(f"{CALLS}{TIME}")
    reuses = (name for name in names if name.startswith(REUSE) and not name.endswith(WHILE))
    all_cores = study.grid.base.kernel.cores > 1 or any(axis.kind == "cores" for axis in study.grid.axes)

    def time_in_unit(value: Any) -> str:
        return quantity(value, unit) if isinstance(value, int | float) else MISSING

    def all_in_unit(row: Row) -> str:
        value = row.get(ALL_CORES[unit])
        if not isinstance(value, int | float):
            return MISSING
        return with_interval(value, interval_of_all_cores(row, unit), lambda one: quantity(one, unit), cause=False)

    def saturated(row: Row) -> str:
        known = row.get("saturated") is not None or row.get(ALL_CORES[unit]) is None
        return _text(row.get("saturated")) if known else UNKNOWN

    return (
        *map(_coordinate_column, study.grid.axes),
        *(right(name.removesuffix(TIME), methodcaller("get", name), _number, least=_TIME_WIDTH) for name in times),
        right(f"T_ECM {unit}", methodcaller("get", CORE[unit]), time_in_unit, least=len("1.234 GFLOP/s")),
        *((right(f"all cores {unit}", all_in_unit, least=_room(study)),) if all_cores else ()),
        *((right("saturated", saturated),) if all_cores else ()),
        *(left(name.replace("_", " "), methodcaller("get", name), _text, least=_REUSE_WIDTH) for name in reuses),
        left("binds", methodcaller("get", "binding"), _text),
    )


def _room(study: SweepStudy) -> int:
    """Characters that the performance of all cores takes: with its interval, where more cores draw on memory than were
    measured."""
    counts = [cores for axis in study.grid.axes if axis.kind == "cores" for cores in axis.values]
    most = max((one for one in (*counts, study.grid.base.kernel.cores) if isinstance(one, int)), default=1)
    unsure = any(most_drawn(machine, most) for machine in study.machines)
    return len("123.45 cy/CL (123.45 to 123.45)") if unsure else 0


def _coordinate_column(axis: Axis) -> Column:
    name, least = coordinate_name(axis), max(len(str(coordinate(value))) for value in axis.values)
    column = right if axis.kind in ("size", "cores", "block") else left
    return column(name, itemgetter(name), str, least=least)


def _number(value: Any) -> str:
    return decimal(value) if isinstance(value, int | float) else MISSING


def _text(value: Any) -> str:
    return str(value or MISSING)


def check_unit(row: Row, unit: str) -> None:
    """Refuse a unit that has no meaning for the kernel, by a row with an answer.

    Raises:
        UsageError: it has none.
    """
    if row.get(CORE[unit]) is None and row.get(CORE["It/s"]) is not None:
        known = ", ".join(name for name, column in CORE.items() if row.get(column) is not None)
        raise UsageError(f"{unit} has no meaning for this kernel", where="--unit", todo=f"use one of {known}")


@dataclass(slots=True)
class Gathered:
    """What is printed below the rows of a study, gathered while they pass: memory does not grow with their number.

    Attributes:
        done, failed: number of rows, and of those without an answer.
        first_error: of the first of these.
    """

    done: int = 0
    failed: int = 0
    first_error: str | None = None
    _failures: list[tuple[str, str]] = field(default_factory=list)
    _notes: dict[object, list[Note]] = field(default_factory=dict)

    def add(self, axes: Sequence[Axis], row: Row, notes: Iterable[Note]) -> None:
        """Take in a row."""
        self.done += 1
        error = row[ERROR]
        if error is not None:
            self.failed += 1
            self.first_error = self.first_error or str(error)
            if len(self._failures) < _SHOWN_FAILURES:
                place = ", ".join(f"{name} = {row[name]}" for name in map(coordinate_name, axes))
                self._failures.append((place or "the point", str(error)))
        self.add_notes(notes)

    def add_notes(self, notes: Iterable[Note]) -> None:
        """Take in notes."""
        for note in notes:
            self._add_note(note)

    def _add_note(self, note: Note) -> None:
        """Keep a note if it is the first of its kind, or differs from the first in a number that did not vary yet."""
        parts = NUMBERS.split(note.text)
        kept = self._notes.setdefault((note.code, note.kind, note.where, tuple(parts[::2])), [])
        if not kept:
            kept.append(note)
            return
        first = NUMBERS.split(kept[0].text)
        known = {at for one in kept[1:] for at, part in enumerate(NUMBERS.split(one.text)) if part != first[at]}
        if {at for at, part in enumerate(parts) if part != first[at]} - known:
            kept.append(note)

    def notes(self) -> tuple[Note, ...]:
        """The notes; those that differ in numbers only as one."""
        return merged_notes(note for kept in self._notes.values() for note in kept)

    def failures(self) -> Blocks:
        """The points that failed, the first of them by name."""
        title = f"{self.failed} of {count(self.done, 'point')} failed"
        named = lines(title, (f"{place}: {error}" for place, error in self._failures), "warning")
        more = self.failed - len(self._failures)
        return (*named, Line(f"  … and {more} more")) if more else named
