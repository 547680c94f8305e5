"""Sections of the in-core report that are asked for: why and what would help, and the alignments of the block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kernmodel.incore.core import CODE_ALIGNMENT
from kernmodel.report.layout import Blocks, fields, left, right, table
from kernmodel.report.number_text import decimal
from kernmodel.report.text.binding import bound_text
from kernmodel.report.text.reasons import reason_text
from kernmodel.report.text.sections import instruction_columns
from kernmodel.words import plural

if TYPE_CHECKING:
    from kernmodel.incore.answer.explain import Explanation
    from kernmodel.incore.model import InCore
    from kernmodel.studies.predict.incore import Alignment


def explanation_section(incore: InCore, explanation: Explanation) -> Blocks:
    """Why, and what would help."""
    following = None
    if explanation.next_bound:
        gap = decimal(incore.prediction - explanation.next_cycles)
        names = " and ".join(explanation.next_bound)
        following = f"{names}, {decimal(explanation.next_cycles)} cy per pass: {gap} cy below the prediction"
    binding = " and ".join(explanation.binding) or "nothing"
    idealised = (
        left("if this took no time", "component"),
        right("cy per pass", "prediction"),
        right("speed-up", "speed_up", _speed_up),
        left("then binds", "then_binding", " and ".join),
    )
    return (
        *fields("Why, and what would help", ("binds", binding), ("next bound", following)),
        *_crowd_section(incore, explanation),
        *_steps_section(incore, explanation),
        *table("If one component were infinitely fast", idealised, explanation.idealised, always=True),
        *table("Without one mechanism of the core, simulated", _MECHANISMS, explanation.mechanisms),
    )


_MECHANISMS = (
    right("cy per pass", "prediction"),
    right("saves", "saved"),
    left("mechanism", "reason", reason_text, fold=True),
)


def _crowd_section(incore: InCore, explanation: Explanation) -> Blocks:
    ports = f"{plural(len(incore.binding_ports), 'port')} {', '.join(incore.binding_ports)}"
    columns = (
        right("cycles", "cycles"),
        right("share", lambda item: f"{100 * item.share:.0f} %"),
        *instruction_columns(lambda item: incore.rows[item.row].instruction),
    )
    return table(f"Instructions whose µops need {ports}", columns, explanation.crowd)


def _steps_section(incore: InCore, explanation: Explanation) -> Blocks:
    if incore.lcd is None:
        return ()
    span = f" over {explanation.chain_passes} passes" if explanation.chain_passes > 1 else ""
    columns = (
        right("latency", lambda step: decimal(step.latency, 1)),
        *instruction_columns(lambda step: incore.rows[step.row].instruction),
        left("carried on by", "carrier"),
    )
    title = f"Longest loop-carried dependency{span}: {incore.lcd.cycles:.2f} cy per pass"
    return table(title, columns, explanation.chain)


def _speed_up(factor: float) -> str:
    return "no bound" if factor == float("inf") else f"{decimal(factor)}×"


def alignment_section(alignments: Sequence[Alignment]) -> Blocks:
    """The offsets of the first byte by their prediction."""
    columns = (
        right("cy per pass", "cycles"),
        left("bound by", "answer", bound_text),
        left("offsets of the first byte", "offsets", _ranges, fold=True),
    )
    title = f"Alignment: address of the first byte modulo {CODE_ALIGNMENT}"
    return table(title, columns, alignments, always=True)


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers with their neighbours as ranges ("0-15, 32")."""
    parts = []
    for _, group in groupby(enumerate(numbers), key=lambda item: item[1] - item[0]):
        run = [number for _, number in group]
        parts.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return ", ".join(parts)
