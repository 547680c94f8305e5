"""A sweep as one JSON document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, document, pick, record
from kernmodel.studies.sweep.rows import coordinate, coordinate_name

if TYPE_CHECKING:
    from kernmodel.errors import Note
    from kernmodel.studies.sweep.grid import Row
    from kernmodel.studies.sweep.study import SweepStudy


def sweep_document(study: SweepStudy, identity: str, rows: Iterable[Row], notes: Iterable[Note]) -> Json:
    """All rows with what they are over; `identity` is what `--resume` knows the study by."""
    base = study.grid.base
    kernel = ("kernel", "sizes", "nest", "function", "cores", "safety", "cache", "stores", "simulation")
    code = ("asm", "compiler", "flags", "syntax", "loop", "lines", "port_model", "iterations_per_pass")
    return document(
        "kernmodel.sweep/1",
        study=identity,
        machines=study.machines,
        base=record(
            kernel=pick(base.kernel, *kernel),
            code=pick(base.code, *code),
            changes=[pick(change, "path", "value") for change in base.changes],
            blocks=[{"loop": loop, "size": size} for loop, size in base.blocks],
        ),
        axes=[
            record(pick(axis, "kind", "name"), column=coordinate_name(axis), values=[*map(coordinate, axis.values)])
            for axis in study.grid.axes
        ],
        columns=[pick(column, "name", "title", "unit", "type") for column in study.columns],
        rows=list(rows),
        notes=list(notes),
    )
