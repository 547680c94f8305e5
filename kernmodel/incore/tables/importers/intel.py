"""Ports of Intel cores: which µops are loads, and what they and the dividers occupy beside the port."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kernmodel.incore.model import InstructionData, Parameters, PortUse
from kernmodel.incore.tables.core_parameters import PipelineParameters
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

_CONDITIONAL = re.compile(r"J(?!MP|.?CXZ)\w+ \(Rel")
_LOAD_PORTS = frozenset({"23", "23A"})
_ADDRESS_ONLY = frozenset({"237", "78"})


def refined_rows(
    records: Iterable[Record], parameters: Parameters | None, dividers: DividerSource | None = None
) -> tuple[tuple[InstructionData, ...], ImportReport]:
    """The rows of an Intel core from uops.info records.

    Args:
        records: one per instruction variant.
        parameters: of the microarchitecture, where they are known: its store-forward latency, and how wide its memory
            accesses and how fast its branches are.
        dividers: divisions and square roots with usual operands; without, uops.info's figures for easy ones stand.

    Raises:
        InstructionTableError: the records cannot be read, or a reading lacks.
    """
    forward = parameters.store_forward_latency if parameters else None
    rows, report = rows_of(records, _intel_rule(parameters), store_forward=forward)
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


def _intel_rule(parameters: Parameters | None) -> PortRule:
    """The port rule of an Intel microarchitecture: load data paths "2D", "3D" and the divider "0DV" made explicit.

    Cores that take two branches per cycle take conditional ones on ports 0 and 6, others on port 6 alone.
    """
    pipeline = parameters.pipeline if parameters else None
    both = isinstance(pipeline, PipelineParameters) and pipeline.delivery.taken_branches > 1
    halves = 2 if parameters is not None and parameters.loads.double_pumped else 1

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
