"""Rows of an instruction table as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Heading, Line, fields, left, right, table
from kernmodel.report.number_text import short
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.incore.model import FrontEnd, InstructionData, Parameters, PortUse
    from kernmodel.incore.tables.coverage import Coverage
    from kernmodel.incore.tables.importers.contradictions import Contradiction
    from kernmodel.incore.tables.importers.uops import ImportReport

_BREAKS = {
    "no": "waits for its sources",
    "dependency": "executes, but does not wait for its sources",
    "zero": "zero idiom: done at rename",
}


def instruction_report(rows: Iterable[InstructionData], parameters: Parameters) -> Blocks:
    """Rows, each with its variants for an indexed memory operand and for the operands that take longest."""
    return tuple(block for row in rows for block in _with_variants(row, parameters))


def _with_variants(row: InstructionData, parameters: Parameters) -> Blocks:
    blocks = _row(row, f"{row.form} on {parameters.name} ({parameters.title})")
    if row.indexed is not None:
        blocks = (*blocks, *_row(row.indexed, f"{row.form} with an indexed memory operand"))
    if row.full is not None:
        blocks = (*blocks, *_row(row.full, f"{row.form} with the operands that take longest"))
    return blocks


def form_list(forms: Iterable[str]) -> Blocks:
    """One line a form."""
    return tuple(map(Line, forms))


def table_text(imported: tuple[str, ImportReport]) -> Blocks:
    """The text of an imported table as it stands."""
    return (Line(imported[0].removesuffix("\n")),)


def imported_core(told: Sequence[str]) -> Blocks:
    """What was written of an imported core, and how it is used."""
    return tuple(map(Line, told))


def coverage_report(forms: Sequence[Coverage], parameters: Parameters) -> Blocks:
    """The forms of some code that have no row of their own, and how many there are of each kind."""
    kinds = {kind: [form for form in forms if form.row == kind] for kind in ("none", "approximated", "exact")}
    words = {"none": "without a row", "approximated": "approximated", "exact": "exact"}
    summary = ", ".join(
        f"{len(found)} {words[kind]} ({count(sum(form.count for form in found), 'instruction')})"
        for kind, found in kinds.items()
    )
    columns = (
        left("form", "form"),
        right("count", "count"),
        left("row", lambda form: words[form.row]),
        left("by", "rule", fold=True),
    )
    title = f"Forms in the instruction table of {parameters.name} ({parameters.title})"
    inexact = table(title, columns, (form for form in forms if form.row != "exact"))
    return (*(inexact or (Heading(title),)), Line(f"{count(len(forms), 'form')}: {summary}"))


def contradictions_report(
    found: Sequence[Contradiction], parameters: Parameters, *, explained: bool, several: bool = False
) -> Blocks:
    """Rows that measured throughputs contradict, or on which several sources do not agree: those that nothing explains,
    and on demand the others.
    """
    columns = (
        left("form", "form"),
        right("table cy", "table", short),
        right("other source cy" if several else "measured cy", "measured", short),
        left("explanation", "explanation", fold=True),
    )
    title = f"Rows of {parameters.name} that differ by more than 15 % from the readings"
    if several:
        title = f"Rows of {parameters.name} on which two sources differ by more than 20 %"
    if not found:
        return (Heading(title), Line("none"))
    shown = table(title, columns, (item for item in found if explained or not item.explanation))
    reasons = Counter(item.explanation or "unexplained" for item in found)
    heading, summary = fields(title, *((reason, str(number)) for reason, number in reasons.most_common()))
    return (*(shown or (heading,)), summary)


def _row(row: InstructionData, title: str) -> Blocks:
    measured = None if row.throughput is None else f"{short(row.throughput)} cy"
    columns = (
        left("from", lambda found: _end(found[0][0])),
        left("to", lambda found: _end(found[0][1])),
        right("latency cy", lambda found: short(found[1])),
    )
    return (
        *fields(
            title,
            ("µops", str(row.uops)),
            ("ports", ports_text(row.ports)),
            ("latency", f"{short(row.default_latency)} cy where the table below says nothing else"),
            ("measured throughput", measured),
            ("all sources one register", _BREAKS[row.breaks_dependency]),
            ("elimination", "can be eliminated at rename" if row.eliminated else None),
            ("front end", None if row.front_end is None else _front_end_text(row.front_end)),
            ("source", row.source),
        ),
        *table("", columns, row.latencies.items())[1:],
    )


def ports_text(uses: Iterable[PortUse]) -> str:
    """Port usage in words of the tables ("1 cy on 0 1 5, 1 cy on 2 3")."""
    return ", ".join(f"{short(use.cycles)} cy on {' '.join(use.ports)}" for use in uses) or "none"


def _front_end_text(front: FrontEnd) -> str:
    decoder = "complex decoder" if front.complex_decoder else "any decoder"
    fused = f"; fuses with {' '.join(front.fusible_with)}" if front.fusible_with else ""
    slots, decoded = count(front.retire_slots, "retire slot"), count(front.uops_mite, "µop")
    return f"{slots}, {decoded} decoded, {decoder}{fused}"


def _end(name: str) -> str:
    """A source or target of a latency in words."""
    if name.isdigit():
        return f"operand {int(name) + 1}"
    kinds = {"A": "base register of operand", "X": "index register of operand", "M": "memory of operand"}
    if name[:1] in kinds and name[1:].isdigit():
        return f"{kinds[name[0]]} {int(name[1:]) + 1}"
    return {"F": "flags", "C": "carry flag"}.get(name, name)
