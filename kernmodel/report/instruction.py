"""Rows of an instruction table as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count, short

if TYPE_CHECKING:
    from kernmodel.incore.model import InstructionData, Parameters, PortUse
    from kernmodel.incore.tables.coverage import Coverage
    from kernmodel.incore.tables.importers.contradictions import Contradiction

_BREAKS = {
    "no": "waits for its sources",
    "dependency": "executes, but does not wait for its sources",
    "zero": "zero idiom: done at rename",
}


def instruction_report(row: InstructionData, parameters: Parameters) -> tuple[Block, ...]:
    """One row, with its variants for an indexed memory operand and for the operands that take longest."""
    blocks = _row(row, f"{row.form} on {parameters.name} ({parameters.title})")
    if row.indexed is not None:
        blocks = (*blocks, *_row(row.indexed, f"{row.form} with an indexed memory operand"))
    if row.full is not None:
        blocks = (*blocks, *_row(row.full, f"{row.form} with the operands that take longest"))
    return blocks


def coverage_report(forms: Sequence[Coverage], parameters: Parameters) -> tuple[Block, ...]:
    """The forms of some code that have no row of their own, and how many there are of each kind."""
    kinds = {kind: [form for form in forms if form.row == kind] for kind in ("none", "approximated", "exact")}
    words = {"none": "without a row", "approximated": "approximated", "exact": "exact"}
    summary = ", ".join(
        f"{len(found)} {words[kind]} ({count(sum(form.count for form in found), 'instruction')})"
        for kind, found in kinds.items()
    )
    columns = (Column("form", "left"), Column("count"), Column("row", "left"), Column("by", "left", fold=True))
    rows = tuple((form.form, str(form.count), words[form.row], form.rule) for form in forms if form.row != "exact")
    table = (Table(columns, rows),) if rows else ()
    title = f"Forms in the instruction table of {parameters.name} ({parameters.title})"
    return (Heading(title), *table, Line(f"{count(len(forms), 'form')}: {summary}"))


def contradictions_report(
    found: Sequence[Contradiction], parameters: Parameters, *, explained: bool
) -> tuple[Block, ...]:
    """Rows that measured throughputs contradict: those that nothing explains, and on demand the others."""
    columns = (
        Column("form", "left"),
        Column("table cy"),
        Column("measured cy"),
        Column("explanation", "left", fold=True),
    )
    shown = [item for item in found if explained or not item.explanation]
    rows = tuple((item.form, short(item.table), short(item.measured), item.explanation) for item in shown)
    table = (Table(columns, rows),) if rows else ()
    reasons = Counter(item.explanation or "unexplained" for item in found)
    summary = tuple((reason, str(number)) for reason, number in reasons.most_common())
    title = f"Rows of {parameters.name} that differ by more than 15 % from the readings"
    return (Heading(title), *table, Fields(summary)) if found else (Heading(title), Line("none"))


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
