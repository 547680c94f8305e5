"""Rows of instruction forms that were timed: on this host by `measure instruction`, or by another tool.

A timing says latencies and reciprocal throughput, nothing of ports. What the core's table has of a form stays where
the timing does not contradict it; rows of forms that it lacks have no ports, only their throughput. The rows make a
table of differences to that of the core (`tables.table`), which `with_rows` puts in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path

from kernmodel.errors import InstructionTableError
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.table import InstructionTable, base_of, table_text
from kernmodel.value_types import dataclass

AGREES = 0.05
"""Relative difference up to which a measured reciprocal throughput is that of the ports."""
_WHOLE = 0.1
"""Cycles by which a measured latency may miss a whole number that it stands for."""


@dataclass(frozen=True, slots=True)
class Timing:
    """What was measured of a form.

    Attributes:
        throughput: reciprocal, cycles; None: not measured.
        latencies: cycles by source and target, named as in `InstructionData.latencies`; latency: of a chain through
            operands that are not told, None: not measured.
        source: what measured it, where and when.
    """

    form: str
    throughput: float | None
    source: str
    latencies: Mapping[tuple[str, str], float] = field(default_factory=dict)
    latency: float | None = None


def timed_row(timing: Timing, table: InstructionTable) -> InstructionData:
    """The row of a form by its timing and what the table has of it."""
    known = table.row(timing.form)
    row = _without_times(timing.form) if known is None else replace(known, indexed=None, full=None)
    said = [timing.source]
    pairs = {pair: _cycles(value) for pair, value in timing.latencies.items()}
    if timing.latency is not None:
        # of one chain the table knows better which operands differ from the others
        row = replace(row, default_latency=_cycles(timing.latency))
    elif pairs and known is None:
        row = replace(row, default_latency=max(pairs.values()))
    elif known is None:
        said.append("latency not measured, 1 cycle taken")
    row = replace(row, latencies={**row.latencies, **pairs})
    row = _with_throughput(row, timing.throughput, said)
    said.append("its uops and ports are not known" if known is None else f"others: {known.source}")
    return replace(row, source="; ".join(said))


def _with_throughput(row: InstructionData, measured: float | None, said: list[str]) -> InstructionData:
    """The row with a measured reciprocal throughput, where its ports do not tell it; `said` gets what was changed."""
    bound = optimal_bound(row.ports)[0]
    if measured is None or row.eliminated or abs(measured - bound) <= AGREES * bound:
        return row
    if measured < bound:
        said.append(f"ports of the table left out, which take {bound:.3g} cycles")
        row = replace(row, ports=())
    return replace(row, throughput=round(measured, 3))


def _without_times(form: str) -> InstructionData:
    return InstructionData(
        form=form,
        ports=(),
        latencies={},
        default_latency=1.0,
        uops=1,
        throughput=None,
        breaks_dependency="no",
        eliminated=False,
        front_end=None,
        indexed=None,
        source="",
    )


def _cycles(latency: float) -> float:
    """A latency; a whole number of cycles where it is one but for noise."""
    return float(round(latency)) if abs(latency - round(latency)) <= _WHOLE else round(latency, 2)


def rows_text(
    timings: Iterable[Timing], table: InstructionTable, header: Iterable[str], kept: Path | None = None
) -> str:
    """The text of a table of differences to that of a core with the rows of these forms.

    Args:
        table: of the core, without other rows before it.
        header: comment lines without the leading `#`.
        kept: a file of rows whose others stay.

    Raises:
        InstructionTableError: `kept` holds rows for another table, or is no file of rows.
    """
    base = table.parameters.table
    rows = {timing.form: timed_row(timing, table) for timing in timings}
    if kept is not None:
        if base_of(kept) != base:
            todo = "write to a file of its own"
            raise InstructionTableError(f"holds no rows for {base}, so none are added", where=str(kept), todo=todo)
        old = InstructionTable(kept, table.parameters)
        own = {name: row for name in old.own_forms() if (row := old.row(name)) is not None}
        rows = own | rows
    tags = {text: f"t{number}" for number, text in enumerate(dict.fromkeys(row.source for row in rows.values()))}
    return table_text(header, rows.values(), {tag: text for text, tag in tags.items()}, (base, ""))
