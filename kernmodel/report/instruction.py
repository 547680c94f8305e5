"""Rows of an instruction table as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Table
from kernmodel.report.numbers import count, short

if TYPE_CHECKING:
    from kernmodel.incore.model import InstructionData, Parameters, PortUse

_BREAKS = {
    "no": "waits for its sources",
    "dependency": "executes, but does not wait for its sources",
    "zero": "zero idiom: done at rename",
}


def instruction_report(row: InstructionData, parameters: Parameters) -> tuple[Block, ...]:
    """One row, with its variant for an indexed memory operand where that differs."""
    blocks = _row(row, f"{row.form} on {parameters.name} ({parameters.title})")
    if row.indexed is None:
        return blocks
    return (*blocks, *_row(row.indexed, f"{row.form} with an indexed memory operand"))


def _row(row: InstructionData, title: str) -> tuple[Block, ...]:
    pairs = [
        ("µops", str(row.uops)),
        ("ports", ports_text(row.ports)),
        ("latency", f"{short(row.default_latency)} cy where the table below says nothing else"),
    ]
    if row.throughput is not None:
        pairs.append(("measured throughput", f"{short(row.throughput)} cy"))
    pairs.append(("all sources one register", _BREAKS[row.breaks_dependency]))
    if row.eliminated:
        pairs.append(("elimination", "can be eliminated at rename"))
    if row.front_end is not None:
        pairs += _front_end_fields(row)
    pairs.append(("source", row.source))
    columns = (Column("from", "left"), Column("to", "left"), Column("latency cy"))
    rows = tuple((_end(source), _end(target), short(cycles)) for (source, target), cycles in row.latencies.items())
    table = (Table(columns, rows),) if rows else ()
    return (Heading(title), Fields(tuple(pairs)), *table)


def ports_text(uses: Iterable[PortUse]) -> str:
    """Port usage in words of the tables ("1 cy on 0 1 5, 1 cy on 2 3")."""
    return ", ".join(f"{short(use.cycles)} cy on {' '.join(use.ports)}" for use in uses) or "none"


def _front_end_fields(row: InstructionData) -> list[tuple[str, str]]:
    front = row.front_end
    if front is None:
        return []
    decoder = "complex decoder" if front.complex_decoder else "any decoder"
    fused = f"; fuses with {' '.join(front.fusible_with)}" if front.fusible_with else ""
    return [
        (
            "front end",
            f"{count(front.retire_slots, 'retire slot')}, {count(front.uops_mite, 'µop')} decoded, {decoder}{fused}",
        )
    ]


def _end(name: str) -> str:
    """A source or target of a latency in words."""
    if name.isdigit():
        return f"operand {int(name) + 1}"
    kinds = {"A": "base register of operand", "X": "index register of operand", "M": "memory of operand"}
    if name[:1] in kinds and name[1:].isdigit():
        return f"{kinds[name[0]]} {int(name[1:]) + 1}"
    return {"F": "flags", "C": "carry flag"}.get(name, name)
