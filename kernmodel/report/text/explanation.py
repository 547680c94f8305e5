"""Sections of the in-core report that are asked for: why and what would help, and the alignments of the block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kernmodel.incore.core import CODE_ALIGNMENT
from kernmodel.report.layout import Block, Column, Fields, Heading, Table
from kernmodel.report.number_text import decimal
from kernmodel.report.text.incore import bound_text

if TYPE_CHECKING:
    from kernmodel.incore.answer.explain import Explanation
    from kernmodel.incore.model import InCore
    from kernmodel.studies.predict.incore import Alignment


def explanation_section(incore: InCore, explanation: Explanation) -> tuple[Block, ...]:
    """Why, and what would help."""
    binding = " and ".join(explanation.binding) or "nothing"
    pairs = [("binds", binding)]
    if explanation.next_bound:
        gap = incore.prediction - explanation.next_cycles
        names = " and ".join(explanation.next_bound)
        following = f"{names}, {decimal(explanation.next_cycles)} cy per pass: {decimal(gap)} cy below the prediction"
        pairs.append(("next bound", following))
    return (
        Heading("Why, and what would help"),
        Fields(tuple(pairs)),
        *_crowd_section(incore, explanation),
        *_steps_section(incore, explanation),
        *_idealised_section(explanation),
    )


def _crowd_section(incore: InCore, explanation: Explanation) -> tuple[Block, ...]:
    if not explanation.crowd:
        return ()
    ports = f"port{'s' if len(incore.binding_ports) > 1 else ''} {', '.join(incore.binding_ports)}"
    columns = (Column("cycles"), Column("share"), Column("line"), Column("instruction", "left"))
    rows = tuple(
        (decimal(item.cycles), f"{100 * item.share:.0f} %", *_named(incore, item.row)) for item in explanation.crowd
    )
    return (Heading(f"Instructions whose µops need {ports}"), Table(columns, rows))


def _steps_section(incore: InCore, explanation: Explanation) -> tuple[Block, ...]:
    if not explanation.chain or incore.lcd is None:
        return ()
    span = f" over {explanation.chain_passes} passes" if explanation.chain_passes > 1 else ""
    columns = (Column("latency"), Column("line"), Column("instruction", "left"), Column("carried on by", "left"))
    rows = tuple((decimal(s.latency, 1), *_named(incore, s.row), s.carrier) for s in explanation.chain)
    return (
        Heading(f"Longest loop-carried dependency{span}: {incore.lcd.cycles:.2f} cy per pass"),
        Table(columns, rows),
    )


def _named(incore: InCore, row: int) -> tuple[str, str]:
    """Line and text of an instruction."""
    instruction = incore.rows[row].instruction
    return (str(instruction.line or "-"), instruction.text.strip())


def _idealised_section(explanation: Explanation) -> tuple[Block, ...]:
    columns = (
        Column("if this took no time", "left"),
        Column("cy per pass"),
        Column("speed-up"),
        Column("then binds", "left"),
    )
    rows = tuple(
        (item.component, decimal(item.prediction), _speed_up(item.speed_up), " and ".join(item.then_binding))
        for item in explanation.idealised
    )
    return (Heading("If one component were infinitely fast"), Table(columns, rows))


def _speed_up(factor: float) -> str:
    return "no bound" if factor == float("inf") else f"{decimal(factor)}×"


def alignment_section(alignments: Sequence[Alignment]) -> tuple[Block, ...]:
    """The offsets of the first byte by their prediction."""
    columns = (
        Column("cy per pass"),
        Column("bound by", "left"),
        Column("offsets of the first byte", "left", fold=True),
    )
    rows = tuple((decimal(a.cycles), bound_text(a.answer), _ranges(a.offsets)) for a in alignments)
    return (Heading(f"Alignment: address of the first byte modulo {CODE_ALIGNMENT}"), Table(columns, rows))


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers with their neighbours as ranges ("0-15, 32")."""
    parts = []
    for _, group in groupby(enumerate(numbers), key=lambda item: item[1] - item[0]):
        run = [number for _, number in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(parts)
