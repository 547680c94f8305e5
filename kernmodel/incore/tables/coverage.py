"""Which instructions of some code have rows of their own in an instruction table, and what stands for the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from kernmodel.incore.tables.lookup import lookup_key
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction
from kernmodel.value_types import dataclass

_ORDER = ("none", "approximated", "exact")


@dataclass(frozen=True, slots=True)
class Coverage:
    """A form of the code.

    Attributes:
        form: as the tables name it; count: instructions of this form.
        row: "exact" if the table has it, "approximated" if a relative stands for it, "none".
        rule: what stands for it ("VEX form of vpxor ymm,ymm,ymm"), empty for exact ones and those without row.
        source: of the row, empty without one.
    """

    form: str
    count: int
    row: Literal["exact", "approximated", "none"]
    rule: str
    source: str


def coverage(instructions: Iterable[Instruction], table: InstructionTable) -> tuple[Coverage, ...]:
    """The forms of the instructions with what the table has for them, those without a row first, then the relatives.

    Raises:
        InstructionTableError: a row is malformed.
    """
    firsts: dict[str, Instruction] = {}
    counts: Counter[str] = Counter()
    for instruction in instructions:
        firsts.setdefault(instruction.form, instruction)
        counts[instruction.form] += 1
    found = (_covered(instruction, counts[form], table) for form, instruction in firsts.items())
    return tuple(sorted(found, key=lambda item: (_ORDER.index(item.row), item.form)))


def _covered(instruction: Instruction, count: int, table: InstructionTable) -> Coverage:
    form, variant = lookup_key(instruction)
    row = table.lookup(instruction)
    if row is None:
        return Coverage(form, count, "none", "", "")
    if table.row(form + variant) is not None or table.row(form) is not None:
        return Coverage(form, count, "exact", "", row.source)
    rule, _, source = row.source.rpartition(": ")
    return Coverage(form, count, "approximated", rule or "another spelling", source)
