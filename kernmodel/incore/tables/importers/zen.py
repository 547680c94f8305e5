"""Tables of the Zen cores: uops.info's vector ports and latencies, LLVM's integer ports, and the load and store units.

uops.info publishes the ports of vector µops alone for these cores. Integer µops take theirs from LLVM's model of the
core; every load takes an address unit and a load path, every store an address unit and a store path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from kernmodel.incore.model import InstructionData, Parameters, PortUse
from kernmodel.incore.tables.importers.contradictions import Reference, mended
from kernmodel.incore.tables.importers.dividers import DIVIDES, register_form, with_usual_operands
from kernmodel.incore.tables.importers.facts import facts_of
from kernmodel.incore.tables.importers.forms import form_name
from kernmodel.incore.tables.importers.instlatx64 import Reading, read_instlatx64
from kernmodel.incore.tables.importers.llvm import Cost, instruction_costs, llvm_version, port_groups
from kernmodel.incore.tables.importers.measured import MEASURED, as_measured
from kernmodel.incore.tables.importers.recipes import (
    cpu_read,
    differences,
    legend,
    readings_file,
    renamed,
    with_readings,
)
from kernmodel.incore.tables.importers.uops import (
    NO_LATENCY,
    ONES_FORMS,
    SOURCE,
    ImportReport,
    PortRule,
    Record,
    read_rows,
    table_header,
    told_by_ports,
)
from kernmodel.incore.tables.importers.x87 import X87Model, x87_rows, zen_ports
from kernmodel.incore.tables.importers.zen512 import elements, zen4_rows
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import INDEXED, table_text
from kernmodel.value_types import dataclass

MICROCODE = SOURCE + "; microcode, whose ports are not published; only its loads and stores are counted"
TIMED = MICROCODE + ", and the reciprocal throughput that InstLatx64 measured"
INTEGER = SOURCE + "; ports of integer µops from LLVM's model of the core"
EXTENSION = INTEGER + ", one behind a load, which takes a cycle longer for it"
DIVIDER = SOURCE + "; divider occupancy from InstLatx64"
IDIOM = SOURCE + "; dependency-breaking on equal registers (LLVM's models of znver1 to znver3)"
NEIGHBOUR = "uops.info measurements of Zen 3 (Abel, Reineke, ASPLOS 2019), as of 2026"
_TAGS = {"u": SOURCE, "i": INTEGER, "e": EXTENSION, "d": DIVIDER, "m": MICROCODE, "t": TIMED, "o": IDIOM}
SOURCES = {**_TAGS, **{f"{tag}?": text + NO_LATENCY for tag, text in _TAGS.items()}}

_RESOURCE = re.compile(r"Zn\d?(ALU|AGU|FPU?|BRU|Divider)(\d*)")
_ELIMINATED = re.compile(r"(mov [re]?(?:r64,r64|r32,r32)|v?mov(?:ap[sd]|up[sd]|dq[au]) [xy]mm,[xy]mm)")
_EXTENDED = re.compile(r"mov(sxd?)? r\w+,m\d+")
_VECTOR = re.compile(r"\b([xyz]mm|mm)\b")
_MICROCODE_UOPS = 8


@dataclass(frozen=True, slots=True)
class ZenCore:
    """The inputs of one table and the units of its core; what its fields mean stands in cores.yml."""

    name: str
    packs: tuple[str, ...]
    model: str
    readings: str
    x87: str
    address: tuple[str, ...]
    load: tuple[str, ...]
    vector_load: tuple[str, ...]
    store: tuple[str, ...]
    vector_store: tuple[str, ...]
    divider: str
    own_readings: bool = False
    siblings: tuple[str, ...] = ()
    base: str = ""
    base_words: str = ""
    x87_moves: tuple[str, ...] = ()

    @property
    def parameters(self) -> Parameters:
        """The parameters of the core."""
        return _parameters(self.name)

    @property
    def halves(self) -> int:
        """µops and transfers for 256 bits."""
        return 2 if self.parameters.loads.double_pumped else 1


@cache
def _parameters(name: str) -> Parameters:
    return load_parameters(name)


@cache
def zen_cores() -> Mapping[str, ZenCore]:
    """The cores by name."""
    return facts_of(ZenCore, "cores.yml", "amd")


def zen_table(core: ZenCore, pack: Path) -> tuple[str, ImportReport]:
    """The text of a Zen core's table from its pack of uops.info records and the readings of InstLatx64 beside it.

    Raises:
        InstructionTableError, ToolError: a pack is missing or malformed, llvm-mca is missing.
    """
    readings = read_instlatx64(readings_file(pack, core.readings))
    forward = core.parameters.store_forward_latency
    rows, report = _zen_rows(core, pack, readings, forward)
    if core.own_readings and not core.base:
        beside = tuple(read_instlatx64(readings_file(pack, name)) for name in core.siblings)
        rows = mended(rows, Reference(readings, core.parameters.issue_width, beside))
    if not core.base:
        rows = as_measured((*rows, *_x87(core, rows, pack)), core.name)
    model = f"{llvm_version()}, -mcpu={core.model}"
    inputs = (
        f"Integer ports: {model}; dividers, microcode: InstLatx64 readings {core.readings}.csv.",
        f"x87: {model}; InstLatx64 readings {core.x87}.csv.",
    )
    header = table_header(core.name, pack.name, report, *inputs)
    tags = {**SOURCES, **_x87_model(core).tags}
    if not core.base:
        return table_text(header, rows, legend(rows, tags)), report
    other = zen_cores()[core.base]
    others, _ = _zen_rows(other, pack, readings, forward)
    own = _as_neighbour(core, rows, others, readings)
    others = as_measured((*others, *_x87(other, others, pack)), other.name)
    measured = {row.form for row in own if MEASURED in row.source}  # on this core: their source stays its own
    shared = {row.form for row in others if MEASURED in row.source}  # of x87: not measured on this core
    x87 = (row for row in _x87(core, own, pack) if row.form not in shared)
    rows = tuple(differences((*own, *x87), (row for row in others if row.form not in measured)))
    return table_text(header, rows, legend(rows, tags), (f"{core.base}.txt", core.base_words)), report


def _as_neighbour(
    core: ZenCore, rows: Sequence[InstructionData], others: Sequence[InstructionData], readings: Mapping[str, Reading]
) -> tuple[InstructionData, ...]:
    """The rows with latencies that were read, and those of AVX-512."""
    renamed_rows = (_one_address(renamed(row, SOURCE, NEIGHBOUR)) for row in rows)
    older = with_readings(renamed_rows, readings, cpu_read(core.readings))
    newer = zen4_rows({row.form: row for row in others}, readings)
    reference = Reference(readings, core.parameters.issue_width, neighbour=NEIGHBOUR)
    return as_measured(mended((*older, *newer), reference), core.name)


def _x87(core: ZenCore, rows: Sequence[InstructionData], pack: Path) -> tuple[InstructionData, ...]:
    """The x87 rows beside the others."""
    readings = read_instlatx64(readings_file(pack, core.x87))
    return x87_rows({row.form: row for row in rows}, readings, _x87_model(core))


def _x87_model(core: ZenCore) -> X87Model:
    words = f"LLVM's {core.model} scheduling model"
    issue_width = core.parameters.issue_width
    return X87Model(core.model, words, zen_ports, core.divider, cpu_read(core.x87), issue_width, core.x87_moves)


def _one_address(row: InstructionData) -> InstructionData:
    """A read-modify-write with one address for its load and its store, as InstLatx64 times it on Zen 4."""
    addresses = [use for use in row.ports if use.ports[0].startswith("AGU")]
    if len(addresses) < 2:
        return row
    ports = list(row.ports)
    ports.remove(addresses[0])
    indexed = _one_address(row.indexed) if row.indexed else None
    return replace(row, ports=tuple(ports), indexed=indexed, source=f"{row.source}; one address for load and store")


def _zen_rows(
    core: ZenCore, pack: Path, readings: Mapping[str, Reading], store_forward: float
) -> tuple[tuple[InstructionData, ...], ImportReport]:
    """The rows by the pack, LLVM's integer ports, and the readings of dividers and microcode."""
    rows, report = read_rows(pack, _vector_ports(core), store_forward=store_forward)
    costs = instruction_costs(core.model, [row.form for row in rows])
    by_form = {row.form: row for row in rows}
    filled = []
    for row in rows:
        if _ELIMINATED.fullmatch(row.form) and row.default_latency == 0:
            filled.append(replace(row, eliminated=True, ports=()))
            continue
        full = _fill_indexed(_fill_ports(row, core, by_form, costs), core, by_form, costs)
        if DIVIDES.match(row.form):
            full = _from(with_usual_operands(full, core.divider, readings, DIVIDER), DIVIDER)
        filled.append(told_by_ports(_idiom(_timed(full, readings))))
    return tuple(filled), report


def _vector_ports(core: ZenCore) -> PortRule:
    """Rule for the ports of the records: vector µops, loads and stores."""

    def rule(ports: Mapping[str, float], record: Record) -> tuple[PortUse, ...]:
        uses = [
            PortUse(tuple(f"FP{unit}" for unit in group.removeprefix("FP")), float(count))
            for group, count in sorted(ports.items())
        ]
        return tuple(uses) + _memory_ports(core, record)

    return rule


def _memory_ports(core: ZenCore, record: Record) -> tuple[PortUse, ...]:
    """Address units and data paths of the memory operands; a gather loads every element."""
    if record["string"].startswith("NOP"):
        return ()
    string = record["string"]
    name = form_name(string)
    vector = bool(_VECTOR.search(string.lower()))
    count = float(core.halves) if "M256" in string else elements(name.form) if name and "vsib" in name.form else 1.0
    reads = sum(operand["type"] == "mem" and operand["read"] for operand in record["operands"])
    writes = sum(operand["type"] == "mem" and operand["write"] for operand in record["operands"])
    uses = []
    if reads:
        uses += [
            PortUse(core.address, reads * count),
            PortUse(core.vector_load if vector else core.load, reads * count),
        ]
    if writes:
        stores = core.vector_store if vector else core.store
        uses += [PortUse(core.address, writes * count), PortUse(stores, writes * count)]
    return tuple(uses)


def _fill_ports(
    row: InstructionData, core: ZenCore, rows: Mapping[str, InstructionData], costs: Mapping[str, Cost]
) -> InstructionData:
    """The row with the ports that uops.info does not publish."""
    if _vector_uses(row) or row.uops == 0 or row.form.partition(" ")[0] == "nop":
        return row
    form = row.form.removesuffix(INDEXED)
    vector = bool(_VECTOR.search(row.form))
    if vector and _is_move(row.form) and row.ports:
        return row
    twin = rows.get(form.replace("ymm", "xmm").replace("m256", "m128"))
    if core.halves > 1 and "ymm" in row.form and twin is not None and _vector_uses(twin):
        return _doubled(row, twin)
    cost = costs.get(form)
    uses = _core_ports(cost, row) if cost is not None and row.uops <= _MICROCODE_UOPS else ()
    if not uses:
        pure_memory = row.ports and row.uops <= len(row.ports)
        return _extended(row, costs) if pure_memory else _from(row, MICROCODE)
    return _from(replace(row, ports=uses + row.ports), INTEGER)


def _extended(row: InstructionData, costs: Mapping[str, Cost]) -> InstructionData:
    """A load or store alone. Loads that take a cycle longer than others have the operation of their register form
    behind them, which extends the sign of what was loaded or puts it beside the other bytes of the register.
    """
    form = row.form.removesuffix(INDEXED)
    cost = costs.get(form.replace(",m", ",r"))
    if not _EXTENDED.fullmatch(form) or row.default_latency == 0 or cost is None:
        return row
    return _from(replace(row, ports=_core_ports(cost, row) + row.ports), EXTENSION)


def _fill_indexed(
    row: InstructionData, core: ZenCore, rows: Mapping[str, InstructionData], costs: Mapping[str, Cost]
) -> InstructionData:
    """The row with its indexed variant filled as the row itself is."""
    if row.indexed is None:
        return row
    return replace(row, indexed=_fill_ports(row.indexed, core, rows, costs))


def _timed(row: InstructionData, readings: Mapping[str, Reading]) -> InstructionData:
    """A microcoded row with its measured reciprocal throughput, as its ports tell next to nothing."""
    reading = readings.get(register_form(row.form))
    if not row.source.startswith(MICROCODE) or row.throughput or reading is None or reading.throughput is None:
        return row
    return _from(replace(row, throughput=round(reading.throughput * 4) / 4), TIMED)


def _idiom(row: InstructionData) -> InstructionData:
    """Comparisons and sbb of a register with itself do not wait for it (sbb does for the carry flag)."""
    if ONES_FORMS.fullmatch(row.form) or row.form in ("sbb r32,r32", "sbb r64,r64"):
        return _from(replace(row, breaks_dependency="dependency"), IDIOM)
    return row


def _is_move(form: str) -> bool:
    return form.removeprefix("v").startswith(("mov", "lddqu", "broadcast")) and "r64" not in form and "r32" not in form


def _doubled(row: InstructionData, twin: InstructionData) -> InstructionData:
    """A 256-bit row of a core with 128-bit units: the vector µops of the 128-bit row for each half."""
    factor = row.uops / max(twin.uops, 1)
    vector = tuple(PortUse(use.ports, use.cycles * factor) for use in _vector_uses(twin))
    return replace(row, ports=vector + row.ports, breaks_dependency=twin.breaks_dependency)


def _vector_uses(row: InstructionData) -> tuple[PortUse, ...]:
    return tuple(use for use in row.ports if use.ports[0].startswith("FP"))


def _core_ports(cost: Cost, row: InstructionData) -> tuple[PortUse, ...]:
    """Integer, branch and vector ports of LLVM's resources; address units and memory queues are left to
    `_memory_ports`.

    Zen 3's branch unit beside ALU0 becomes port "ALU4"; an integer divider is busy for the measured reciprocal
    throughput.
    """
    kinds: dict[str, dict[str, float]] = {}
    for resource, cycles in cost.usage.items():
        match = _RESOURCE.match(resource.split(".")[0])
        if match is None or (match[1] == "AGU" and not row.form.startswith("lea ")):
            continue
        kind, unit = match.groups()
        if kind == "Divider":
            kinds["IDV"] = {"IDV": row.throughput or cycles}
        elif unit == "45":
            pair = "FP4" if resource.endswith("\x00") else "FP5"
            kinds.setdefault("FP45", {})[pair] = min(cycles, row.uops / 2)
        elif kind == "BRU":
            kinds.setdefault("ALU", {})["ALU4"] = cycles
        else:
            kinds.setdefault(kind[:3].replace("FPU", "FP"), {})[kind[:3].replace("FPU", "FP") + unit] = cycles
    return tuple(use for kind, usage in kinds.items() for use in _limited(kind, port_groups(usage), row.uops))


def _limited(kind: str, uses: tuple[PortUse, ...], uops: int) -> tuple[PortUse, ...]:
    """The integer µops on ALUs, each for one cycle on one of them; a single unit may be busy for longer (division).

    LLVM books a µop on several ALUs at once, or for a hundred cycles, to lower the throughput of some instructions.
    """
    ports = tuple(sorted({port for use in uses for port in use.ports}))
    if kind != "ALU" or len(ports) == 1 or sum(use.cycles for use in uses) <= uops:
        return uses
    return (PortUse(ports, float(uops)),)


def _from(row: InstructionData, source: str) -> InstructionData:
    """The row with another source, the doubt about its latency kept."""
    return replace(row, source=source + (NO_LATENCY if row.source.endswith(NO_LATENCY) else ""))
