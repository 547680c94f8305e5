"""Performance by machine in characters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.plot.compare import Compared, compared
from kernmodel.plot.terminal_lines import TextBar, bars_text

if TYPE_CHECKING:
    from kernmodel.studies.compare import CompareAnswer


def compare_text(answer: CompareAnswer, unit: str | None, width: int = 80, ascii_only: bool = False) -> str:
    """For each kernel the performance of one core and of a full ccNUMA domain, a bar for each machine."""
    core, domain = ("-", "#") if ascii_only else ("░", "█")
    drawings = []
    for rate, rows in compared(answer, unit).values():
        name = rows[0].answer.nest.name
        title = f"{name}: performance (G{rate}), one core ({core}) and a full ccNUMA domain ({domain})"
        drawings.append(bars_text([_bar(row) for row in rows], title, width, ascii_only, origin=0.0))
    return "\n".join(drawings)


def _bar(row: Compared) -> TextBar:
    return TextBar(row.machine, row.core, row.domain, f"{row.core:.3g}, {row.domain:.3g}")
