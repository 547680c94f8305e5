"""AVX-512 rows of Zen 4: forms by iced-x86, units and µops by LLVM's model, latencies by InstLatx64.

Zen 4 executes 512 bits in two passes of its 256-bit units: vector pipelines, load paths and the store path are busy for
two cycles, an address unit for one (the readings of InstLatx64 say the same).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.extensions import core_extensions
from kernmodel.incore.tables.importers.avx512 import (
    avx512_forms,
    in_registers,
    is_idiom,
    latency_of,
    memory_position,
    read_latencies,
    whole_form,
)
from kernmodel.incore.tables.importers.dividers import DIVIDES
from kernmodel.incore.tables.importers.instlatx64 import Reading
from kernmodel.incore.tables.importers.llvm import Cost, instruction_costs, port_groups

MODEL = "LLVM's Zen 4 scheduling model (units, latency); 512 bits in two passes of the 256-bit units"
MEASURED = f"{MODEL}; latency measured by InstLatx64 on an EPYC 9654"

STORED = "; latency of the plain store"

_UNIT = re.compile(r"Zn4(FP\d|FP45|ALU\d)(?:\.(.))?", re.DOTALL)
_MOVES = ("vmov", "vbroadcast", "vpbroadcast", "kmov")
_ELIMINATED = re.compile(r"vmov(?:ap[sd]|up[sd]|dq[au]\d*) ([xyz]mm),\1")
_VECTOR_LOAD = 7.0  # cycles, LLVM's latency of a vector load on Zen 4
_ADDRESS = ("AGU0", "AGU1", "AGU2")
_VECTOR = ("FP0", "FP1", "FP2", "FP3")
_LOADS, _STORES = ("LD0", "LD1"), ("ST0",)


def zen4_rows(base: Mapping[str, InstructionData], readings: Mapping[str, Reading]) -> tuple[InstructionData, ...]:
    """Rows of all AVX-512 forms that the base rows lack.

    Raises:
        ToolError: llvm-mca is missing or fails.
    """
    forms = tuple(form for form in avx512_forms(core_extensions("znver4")) if form not in base)
    costs = instruction_costs("znver4", forms)
    rows = (_row(form, costs, readings) for form in forms if form in costs)
    return tuple(_as_stored(row, base.get(whole_form(row.form))) for row in rows)


def _as_stored(row: InstructionData, plain: InstructionData | None) -> InstructionData:
    """A masked store with the latencies of the plain one."""
    if plain is None or not row.form.startswith("vmov") or memory_position(whole_form(row.form)) != 0:
        return row
    return replace(row, latencies=plain.latencies, default_latency=plain.default_latency, source=row.source + STORED)


def _row(form: str, costs: Mapping[str, Cost], readings: Mapping[str, Reading]) -> InstructionData:
    cost = costs[form]
    plain = whole_form(form)
    latency, measured = latency_of(plain, cost, costs, readings)
    position = memory_position(plain)
    moves = position is not None and plain.startswith(_MOVES)
    eliminated = bool(_ELIMINATED.fullmatch(form))
    default = 0.0 if moves else latency
    return InstructionData(
        form=form,
        ports=() if eliminated else (*_units(form, plain, costs, readings), *_transfers(plain, cost)),
        latencies=read_latencies(cost, position, default, _VECTOR_LOAD),
        default_latency=0.0 if eliminated else default,
        uops=cost.uops,
        throughput=None,
        breaks_dependency="zero" if is_idiom(plain) else "no",
        eliminated=eliminated,
        front_end=None,
        indexed=None,
        source=MEASURED if measured and not moves else MODEL,
    )


def _units(form: str, plain: str, costs: Mapping[str, Cost], readings: Mapping[str, Reading]) -> tuple[PortUse, ...]:
    """Vector and integer pipelines; two pipelines busy for a whole cycle are two cycles on either.

    A form with a memory source has those of its register form. LLVM books pipelines 4 and 5 for
    loads, which the measured rows of Zen 3 do not have, and none for masked moves.
    """
    inner = in_registers(plain)
    cost = costs[inner] if inner in costs and not costs[form].stores else costs[form]
    if DIVIDES.match(form):
        return _division(inner, cost, readings)
    if form != whole_form(form) and form.startswith("vmov") and not (cost.loads or cost.stores):
        return (PortUse(_VECTOR, 2.0 if "zmm" in form else 1.0),)
    usage: dict[str, float] = {}
    for resource, cycles in cost.usage.items():
        match = _UNIT.fullmatch(resource)
        if match is not None and not (match[1] == "FP45" and cost.loads):
            name = {"\x00": "FP4", "\x01": "FP5"}.get(match[2] or "", match[1])
            usage[name] = cycles
    shares = set(usage.values())
    if len(usage) > 1 and len(shares) == 1:
        return (PortUse(tuple(sorted(usage)), round(sum(usage.values()), 2)),)
    kinds: dict[str, dict[str, float]] = {}
    for unit, cycles in usage.items():
        kinds.setdefault(unit[:2], {})[unit] = cycles
    return tuple(use for kind in kinds.values() for use in port_groups(kind))


def _division(form: str, cost: Cost, readings: Mapping[str, Reading]) -> tuple[PortUse, ...]:
    """A division or square root: its divider is busy for the measured reciprocal throughput, else for LLVM's."""
    reading = readings.get(form)
    busy = (
        reading.throughput if reading is not None and reading.throughput else cost.usage.get("Zn4FP1", cost.throughput)
    )
    return (PortUse(("FP1",), 2.0 if "zmm" in form else 1.0), PortUse(("FP1DV",), round(busy * 4) / 4))


def _transfers(form: str, cost: Cost) -> tuple[PortUse, ...]:
    """Address units and data paths; a gather or scatter takes one of each for every element."""
    if not (cost.loads or cost.stores):
        return ()
    count, each = 1.0, 2.0 if re.search(r"\bm512\b", form) else 1.0
    if "vsib" in form:
        count, each = elements(form), 1.0
    path = _LOADS if cost.loads else _STORES
    return (PortUse(_ADDRESS, count), PortUse(path, count * each))


def elements(form: str) -> float:
    """Elements that a gather or scatter moves: as many as fit into its data and its index register."""
    mnemonic, _, operands = form.partition(" ")
    widths = {"x": 16, "y": 32, "z": 64}
    index = next(kind for kind in operands.split(",") if kind.startswith("vsib"))
    data = next(kind for kind in operands.split(",") if not kind.startswith("vsib"))
    index_bytes = 4 if re.search(r"(?:gather|scatter)d", mnemonic) else 8
    element = 8 if mnemonic.endswith(("q", "pd")) else 4
    return float(min(widths[index[5]] // index_bytes, widths[data[0]] // element))
