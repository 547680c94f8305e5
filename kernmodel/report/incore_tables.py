"""In-core answers of many cores, loops or blocks as tables, a row as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.report.incore import bound_text
from kernmodel.report.layout import Column
from kernmodel.report.numbers import count, decimal

if TYPE_CHECKING:
    from kernmodel.incore.answer.batch import BlockResult
    from kernmodel.studies.predict.incore import Outcome


def outcome_columns() -> tuple[Column, ...]:
    """The columns of a table over cores and loops."""
    return (
        Column("core", "left", least=6),
        Column("loop", "left", least=12),
        Column("instr."),
        Column("cy per pass", least=11),
        Column("bound by", "left", least=20),
        Column("why", "left"),
    )


def outcome_row(outcome: Outcome) -> tuple[str, ...]:
    """One loop on one core."""
    loop = outcome.loop
    where = (outcome.microarchitecture, loop_name(outcome), str(len(loop.instructions)))
    if outcome.answer is None:
        return (*where, "-", "-", outcome.error or "")
    incore = outcome.answer.incore
    doubt = f"; {count(len(incore.uncertain), 'unknown instruction')}" if incore.uncertain else ""
    return (*where, decimal(incore.prediction), bound_text(incore), f"{incore.reason}{doubt}")


def loop_name(outcome: Outcome) -> str:
    """Label, line or address of a loop's first instruction."""
    first = outcome.loop.instructions[0]
    return outcome.loop.label or (f"line {first.line}" if first.line else f"{first.address:#x}")


def block_columns() -> tuple[Column, ...]:
    """The columns of a table over many blocks."""
    return (
        Column("line", least=6),
        Column("cy per pass", least=11),
        Column("bound by", "left", least=20),
        Column("notion", "left", least=8),
        Column("code, or what is wrong with it", "left"),
    )


def block_rows(results: Iterator[BlockResult]) -> Iterator[tuple[str, ...]]:
    """The rows of that table, as the results come."""
    for result in results:
        if result.prediction is None:
            yield (str(result.line), "-", "-", "-", result.error or "")
            continue
        doubt = f" (unknown: {', '.join(result.unknown)})" if result.unknown else ""
        binding = " and ".join(result.binding) or "nothing"
        yield (str(result.line), decimal(result.prediction), binding, result.notion or "", f"{result.code}{doubt}")
