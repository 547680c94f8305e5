"""Ports of Intel cores: which µops are loads, and what they and the dividers occupy beside the port."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.dividers import DIVIDES, with_full_operands
from kernmodel.incore.tables.importers.instlatx64 import Reading
from kernmodel.incore.tables.importers.uops import (
    ONES_FORMS,
    SOURCE,
    ImportReport,
    PortRule,
    Record,
    rows_of,
    told_by_ports,
)

ONES = SOURCE + "; dependency-breaking as a ones idiom (Intel optimization manual)"
DIVIDER = SOURCE + "; divider occupancy and latency with usual operands from the readings that the header names"
DIVIDER_PORT = "0DV"

DividerSource = Callable[[Iterable[str]], Mapping[str, Reading]]
"""Readings of divisions and square roots with usual operands, for the forms of a table."""

_TWO_TAKEN = frozenset({"RWC", "GLC"})
"""Cores that take conditional branches on ports 0 and 6: loops of few µops run more than one pass in a cycle there
(measured on Redwood Cove). On others taken branches execute on port 6 alone."""
_CONDITIONAL = re.compile(r"J(?!MP|.?CXZ)\w+ \(Rel")
_LOAD_PORTS = frozenset({"23", "23A"})
_ADDRESS_ONLY = frozenset({"237", "78"})
_DOUBLE_PUMPED = frozenset({"SNB", "IVB"})
"""Cores that move 256 bits between registers and L1 as two halves (Intel optimization manual, Sandy Bridge L1 data
cache)."""


def refined_rows(
    records: Iterable[Record], name: str, store_forward: float | None, dividers: DividerSource | None = None
) -> tuple[tuple[InstructionData, ...], ImportReport]:
    """The rows of an Intel core from uops.info records.

    Args:
        records: one per instruction variant.
        name: of the microarchitecture.
        store_forward: its store-forward latency, cycles.
        dividers: divisions and square roots with usual operands; without, uops.info's figures for easy ones stand.

    Raises:
        InstructionTableError: the records cannot be read, or a reading lacks.
    """
    rows, report = rows_of(records, intel_rule(name), store_forward=store_forward)
    readings = dividers(row.form for row in rows) if dividers else None
    return tuple(told_by_ports(_refined(row, readings)) for row in rows), report


def _refined(row: InstructionData, readings: Mapping[str, Reading] | None) -> InstructionData:
    """The row with what the records do not say: ones idioms, and dividers with usual operands."""
    if readings and DIVIDES.match(row.form):
        return with_full_operands(row, DIVIDER_PORT, readings, DIVIDER)
    return _ones_idiom(row)


def _ones_idiom(row: InstructionData) -> InstructionData:
    """Comparisons of a register with itself do not wait for it."""
    return replace(row, breaks_dependency="dependency", source=ONES) if ONES_FORMS.fullmatch(row.form) else row


def intel_rule(name: str) -> PortRule:
    """The port rule of an Intel microarchitecture: load data paths "2D", "3D" and the divider "0DV" made explicit."""
    both = name.upper() in _TWO_TAKEN
    halves = 2 if name.upper() in _DOUBLE_PUMPED else 1

    def rule(ports: Mapping[str, float], record: Mapping[str, Any]) -> tuple[PortUse, ...]:
        if both and _CONDITIONAL.match(record["string"]):
            return tuple(PortUse(("0", "6") if group == "6" else tuple(group), n) for group, n in ports.items())
        wide = halves if _moves_256_bits(record) else 1
        uses = []
        for group, count in sorted(ports.items()):
            units = tuple(group)
            uses.append(PortUse(units, float(count * wide if group == "4" else count)))
            loads = _loads(ports, record) if group in _LOAD_PORTS else 0
            if loads:
                uses.append(PortUse(tuple(unit + "D" for unit in units), float(loads * wide)))
        if record["div_cycles"]:
            # the counter of Sandy Bridge, and those of some 256-bit and integer forms, count less than the time that
            # the next division waits
            uses.append(PortUse((DIVIDER_PORT,), max(float(record["div_cycles"]), record["tp"] or 0.0)))
        return tuple(uses)

    return rule


def _loads(ports: Mapping[str, float], record: Mapping[str, Any]) -> float:
    """Number of load µops among those on the load ports.

    The rest are store addresses: one for each store-data µop that no store-address port group accounts for.
    """
    if not any(operand["type"] == "mem" and operand["read"] for operand in record["operands"]):
        return 0
    stores = ports.get("4", 0) + ports.get("49", 0) - sum(ports.get(group, 0) for group in _ADDRESS_ONLY)
    return max(sum(ports.get(group, 0) for group in _LOAD_PORTS) - max(stores, 0), 0)


def _moves_256_bits(record: Mapping[str, Any]) -> bool:
    return "M256" in record["string"]
