"""Rows for instructions that a table does not know, taken from the instruction most like it (`--estimate`).

An estimate is a guess that says so: its source begins with "estimated", and reports mark it. Without being asked for,
nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernmodel.errors import Note
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction

ESTIMATED = "estimated"


class EstimatingTable:
    """An instruction table that answers for every instruction: with its row, else with that of the nearest relative.

    The relative has the same mnemonic and, as far as there are such, the same number of operands and most of their
    kinds; where the table has no form of the mnemonic, a plain addition of the same kinds of operands stands for it.
    """

    __slots__ = ("_forms", "_found", "table")

    def __init__(self, table: InstructionTable) -> None:
        self.table = table
        self._forms: dict[str, list[str]] | None = None
        self._found: dict[str, InstructionData | None] = {}

    def lookup(self, instruction: Instruction) -> InstructionData | None:
        """The row of the instruction, or an estimate; None only where the table is all but empty."""
        row = self.table.lookup(instruction)
        if row is not None:
            return row
        if instruction.form not in self._found:
            self._found[instruction.form] = self._estimate(instruction)
        return self._found[instruction.form]

    def _estimate(self, instruction: Instruction) -> InstructionData | None:
        isa = isa_of(instruction.isa)
        kinds = instruction.form.partition(" ")[2].split(",")
        relatives = sorted(
            self._relatives(instruction.mnemonic), key=lambda form: _distance(form, kinds, isa.kind_class)
        )
        for form in (*relatives, *isa.stand_ins(instruction)):
            row = self.table.row(form)
            if row is not None:
                return replace(row, form=instruction.form, source=f"{ESTIMATED} as {form}: {row.source}")
        return None

    def _relatives(self, mnemonic: str) -> list[str]:
        """The forms of the table with this mnemonic, variants left out."""
        if self._forms is None:
            self._forms = {}
            for form in self.table.forms():
                if "[" not in form:
                    self._forms.setdefault(form.partition(" ")[0], []).append(form)
        return self._forms.get(mnemonic, [])


def _distance(form: str, kinds: list[str], kind_class: Callable[[str], str]) -> tuple[int, int, str]:
    """How far the operands of a form are from given kinds: their number, then what they are, then their widths."""
    others = form.partition(" ")[2].split(",")
    unlike = sum((a != b) + 4 * (kind_class(a) != kind_class(b)) for a, b in zip(others, kinds, strict=False))
    return abs(len(others) - len(kinds)), unlike, form


def estimate_notes(instructions: tuple[Instruction, ...], sources: tuple[str, ...], file: str) -> tuple[Note, ...]:
    """A warning for each estimated instruction; `sources` are those of the rows of `instructions`."""
    notes = (
        Note(
            "estimated-instruction",
            f"{instruction.form} has no row in the instruction table: {source.partition(':')[0]}",
            where=instruction.place_in(file),
        )
        for instruction, source in zip(instructions, sources, strict=True)
        if source.startswith(ESTIMATED)
    )
    return tuple(dict.fromkeys(notes))
