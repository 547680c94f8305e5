"""Ports of Intel cores: which µops are loads, and what they and the dividers occupy beside the port."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernmodel.errors import InstructionTableError
from kernmodel.incore.importers.uops import SOURCE, SOURCES, ImportReport, PortRule, read_rows, table_header
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables import table_text

ONES = SOURCE + "; dependency-breaking as a ones idiom (Intel optimization manual)"
INTEL_SOURCES = {**SOURCES, "o": ONES}

_LOAD_PORTS = frozenset({"23", "23A"})
_ONES = re.compile(r"v?pcmpeq[bwdq] ([xy]mm)(?:,\1){1,2}")
_ADDRESS_ONLY = frozenset({"237", "78"})
_DOUBLE_PUMPED = frozenset({"SNB", "IVB"})
"""Cores that move 256 bits between registers and L1 as two halves (Intel optimization manual, Sandy Bridge L1 data
cache)."""


def intel_table(path: Path, name: str, store_forward: float | None) -> tuple[str, ImportReport]:
    """The text of an Intel core's table from a pack of uops.info records.

    Raises:
        InstructionTableError: the file cannot be read, holds something else, or gives no ports.
    """
    rows, report = intel_rows(path, name, store_forward)
    if not any(row.ports for row in rows):
        raise InstructionTableError(
            "holds no port usage", where=str(path), todo="choose a core whose ports are published"
        )
    return table_text(table_header(name, path.name, report), rows, INTEL_SOURCES), report


def intel_rows(path: Path, name: str, store_forward: float | None) -> tuple[tuple[InstructionData, ...], ImportReport]:
    """The rows of `intel_table`; comparisons of a register with itself do not wait for it (ones idiom)."""
    rows, report = read_rows(path, intel_rule(name), store_forward=store_forward)
    return tuple(_ones_idiom(row) for row in rows), report


def _ones_idiom(row: InstructionData) -> InstructionData:
    return replace(row, breaks_dependency="dependency", source=ONES) if _ONES.fullmatch(row.form) else row


def intel_rule(name: str) -> PortRule:
    """The port rule of an Intel microarchitecture: load data paths "2D", "3D" and the divider "0DV" made explicit."""
    halves = 2 if name.upper() in _DOUBLE_PUMPED else 1

    def rule(ports: Mapping[str, float], record: Mapping[str, Any]) -> tuple[PortUse, ...]:
        wide = halves if _moves_256_bits(record) else 1
        uses = []
        for group, count in sorted(ports.items()):
            units = tuple(group)
            uses.append(PortUse(units, float(count * wide if group == "4" else count)))
            loads = _loads(ports, record) if group in _LOAD_PORTS else 0
            if loads:
                uses.append(PortUse(tuple(unit + "D" for unit in units), float(loads * wide)))
        if record["div_cycles"]:
            uses.append(PortUse(("0DV",), float(record["div_cycles"])))
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
