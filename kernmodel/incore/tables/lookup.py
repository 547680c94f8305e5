"""From an instruction to its row: the exact form first, then its nearest relatives, each said in the row's source.

The order is that of growing doubt: another spelling of the same form; the same operation with another width of an
immediate, a byte register or a memory operand; an unmasked, unbroadcast or VEX form for an EVEX one; at last the
register form composed with a load or a store.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from kernmodel.incore.model import FrontEnd, InstructionData, Parameters
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction


class RowSource(Protocol):
    """What the rules ask of an instruction table: its rows by exact form, and the core it describes."""

    @property
    def parameters(self) -> Parameters:
        """Parameters of the microarchitecture."""

    def row(self, form: str) -> InstructionData | None:
        """The row of exactly this form, or None."""


def lookup_key(instruction: Instruction) -> tuple[str, str]:
    """What a row depends on: the form, and what else rows are told apart by."""
    return instruction.form, isa_of(instruction.isa).row_variant(instruction)


def find_row(table: RowSource, instruction: Instruction) -> InstructionData | None:
    """The row for the instruction, exact or approximated, or None.

    Raises:
        InstructionTableError: a row on the way is malformed.
    """
    form, variant = lookup_key(instruction)
    row = (table.row(form + variant) if variant else None) or table.row(form)
    if row is not None:
        aliased = bool(variant) and variant == isa_of(instruction.isa).alias_variant
        stays = aliased and not table.parameters.registers.aliases_eliminated
        return _named(replace(row, eliminated=False) if stays else row, form)
    for candidate, reason in isa_of(instruction.isa).row_candidates(form):
        row = table.row(candidate)
        if row is not None:
            return replace(_named(row, form), source=f"{reason} of {candidate}: {row.source}" if reason else row.source)
    return _compose(table, instruction)


def _named(row: InstructionData, form: str) -> InstructionData:
    if row.form == form:
        return row
    return replace(row, form=form, full=_named(row.full, form) if row.full else None)


def _compose(table: RowSource, instruction: Instruction) -> InstructionData | None:
    """The register form with a load before it, or a store after it, for a memory form without row."""
    isa = isa_of(instruction.isa)
    position = next((n for n, operand in enumerate(instruction.operands) if operand.memory is not None), None)
    if position is None or isa.element_bytes(instruction):
        return None
    operand = instruction.operands[position]
    if not (operand.read or operand.written):
        return None
    for forms in isa.register_forms(instruction, position):
        relatives = (forms.form, *(name for name, _ in isa.row_candidates(forms.form)))
        inner = next((row for name in relatives if (row := table.row(name))), None)
        if inner is None:
            continue
        load = table.row(forms.load) if operand.read else None
        store = table.row(forms.store) if operand.written else None
        if (load or store) and (load is not None) >= operand.read and (store is not None) >= operand.written:
            return _composed(instruction.form, str(position), inner, load, store)
    return None


def _composed(
    form: str, position: str, inner: InstructionData, load: InstructionData | None, store: InstructionData | None
) -> InstructionData:
    parts = [row for row in (inner, load, store) if row is not None]
    pairs = {}
    for (source, target), cycles in inner.latencies.items():
        pairs["M" + source if source == position else source, "M" + target if target == position else target] = cycles
    if load is not None:
        address = load.latencies.get(("A1", "0"), load.default_latency)
        for target in {"0", *(target for _, target in inner.latencies)}:
            data = pairs.setdefault(("M" + position, target), inner.default_latency)
            pairs["A" + position, target] = pairs["X" + position, target] = address + data
    extra = " + load" * (load is not None) + " + store" * (store is not None)
    return replace(
        inner,
        form=form,
        ports=tuple(use for row in parts for use in row.ports),
        latencies=pairs,
        uops=sum(row.uops for row in parts),
        breaks_dependency="no",
        eliminated=False,
        front_end=_joined(inner.front_end, sum(row.uops for row in parts)),
        indexed=None,
        full=_composed(form, position, inner.full, load, store) if inner.full else None,
        source=f"composed: {inner.form}{extra}: {inner.source}",
    )


def _joined(front: FrontEnd | None, uops: int) -> FrontEnd | None:
    """The front-end costs of a composed instruction: not micro-fused, so one slot for each µop."""
    return None if front is None else replace(front, retire_slots=uops, fusible_with=())
