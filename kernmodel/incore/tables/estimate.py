"""Rows for instructions that a table does not know, taken from the instruction most like it (`--estimate`).

An estimate is a guess that says so: its source begins with "estimated", and reports mark it. Without being asked for,
nothing is estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernmodel.errors import Location, Note
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction

ESTIMATED = "estimated"

_VECTORS = ("xmm", "ymm", "zmm", "mm", "k")


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
        kinds = instruction.form.partition(" ")[2].split(",")
        relatives = sorted(self._relatives(instruction.mnemonic), key=lambda form: _distance(form, kinds))
        for form in (*relatives, *_stand_ins(instruction)):
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


def _distance(form: str, kinds: list[str]) -> tuple[int, int, str]:
    """How far the operands of a form are from given kinds: their number, then what they are, then their widths."""
    others = form.partition(" ")[2].split(",")
    unlike = sum((a != b) + 4 * (_class(a) != _class(b)) for a, b in zip(others, kinds, strict=False))
    return abs(len(others) - len(kinds)), unlike, form


def _class(kind: str) -> str:
    """What an operand is, whatever its width: memory, vector register, mask, immediate or general register."""
    if kind in _VECTORS:
        return "mask" if kind == "k" else "vector"
    return kind[:1]


def _stand_ins(instruction: Instruction) -> Iterator[str]:
    """Additions and moves with operands like those of the instruction, the best first."""
    operands = instruction.operands
    vector = next((o.kind for o in operands if o.kind in _VECTORS), None)
    kind = vector or "r64"
    memory = next((o for o in operands if o.memory is not None and o.memory.size_bytes), None)
    if memory is not None and memory.written:
        yield f"mov m64,{kind}" if vector is None else f"vmovups m{_bits(vector)},{kind}"
    if vector in ("xmm", "ymm", "zmm"):
        last = f"m{_bits(vector)}" if memory is not None else kind
        yield f"vpaddd {kind},{kind},{last}"
        yield f"paddd {kind},{last}"
    yield "add r64,m64" if memory is not None else "add r64,r64"


def _bits(kind: str) -> int:
    """Width of a vector register."""
    return {"xmm": 128, "ymm": 256, "zmm": 512}.get(kind, 64)


def estimate_notes(instructions: tuple[Instruction, ...], sources: tuple[str, ...], file: str) -> tuple[Note, ...]:
    """A warning for each estimated instruction; `sources` are those of the rows of `instructions`."""
    notes = (
        Note(
            "estimated-instruction",
            f"{instruction.form} has no row in the instruction table: {source.partition(':')[0]}",
            where=Location(file, instruction.line or None),
        )
        for instruction, source in zip(instructions, sources, strict=True)
        if source.startswith(ESTIMATED)
    )
    return tuple(dict.fromkeys(notes))
