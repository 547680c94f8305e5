"""Rows against measured reciprocal throughputs: which contradict each other, why, and how rows of a model are mended.

InstLatx64 times many copies of one instruction. A row contradicts it if the bound of its ports and of issue differs
from the reading by more than 15 %. Much of that is explained by how the copies depend on each other; what is left of
rows whose ports are a model's, not measurements, is mended by rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.dividers import DIVIDES
from kernmodel.incore.tables.importers.facts import facts
from kernmodel.incore.tables.importers.instlatx64 import Reading
from kernmodel.incore.tables.importers.intel import DIVIDER_PORT
from kernmodel.value_types import dataclass

TOLERANCE = 1.15
SHORTEST = 0.05  # cycles; shorter readings are senseless (several instructions taken for one, or none)
MENDED = "; ports made to agree with the reciprocal throughput that InstLatx64 measured"

_MASK = re.compile(r"\{kz?\}")
_MEMORY = re.compile(r"\b(?:m\d+b?|vsib_\w+)\b")
_NON_TEMPORAL = re.compile(r"v?(?:movnt|maskmov)")
_PARTIAL = re.compile(r"\w+ r(?:8h?|16)\b")
_VECTORS = ("zmm", "ymm", "xmm")
_QUARTERS = 4
_STORES = ("4", "9")  # store-data ports since Ice Lake
_SHARE_ERROR = 0.1
_RESOLUTION = 0.1  # cycles; readings of quarter and third cycles differ by less from run to run
_SLOW_LOAD = 1.5
_TRANSFERS = ("AGU", "LD", "ST")
_UNITS = re.compile(r"(ALU|FP)[0-3]")
"""AMD's pipelines whose µops a model may confine to too few of them."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Readings that the rows of a core are held against.

    Attributes:
        readings: by form; issue_width: of the core.
        siblings: readings of CPUs that execute the same way.
        client: the readings are of a client core, without the second 512-bit unit that the rows count on.
        neighbour: what begins the sources of rows whose ports are another core's: no better than a model's.
    """

    readings: Mapping[str, Reading]
    issue_width: int
    siblings: tuple[Mapping[str, Reading], ...] = ()
    client: bool = False
    neighbour: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A row and a reading of the same form that differ.

    Attributes:
        form: of the row; source: of the row.
        table: reciprocal throughput by its ports and issue, cycles; measured: the reading.
        explanation: why both may be right, or which one is not trusted; empty if nothing explains it.
    """

    form: str
    source: str
    table: float
    measured: float
    explanation: str


def contradictions(rows: Iterable[InstructionData], reference: Reference) -> Iterator[Contradiction]:
    """The rows that differ from their readings by more than 15 %, with what explains it."""
    for row in rows:
        reading = reference.readings.get(row.form)
        if reading is None or reading.throughput is None or reading.throughput < SHORTEST:
            continue
        table = throughput_of(row, reference.issue_width)
        if not _agree(table, reading.throughput):
            why = _by_cpu(row, reading.throughput, table, reference) or _explanation(row, reading, table, reference)
            yield Contradiction(row.form, row.source, table, reading.throughput, why)


def explanation_of(row: InstructionData, reference: Reference) -> str:
    """Why a row and the reading of its form may both be right, or which is not trusted; "" if nothing explains it."""
    reading = reference.readings.get(row.form)
    if reading is None or reading.throughput is None:
        return ""
    table = throughput_of(row, reference.issue_width)
    return _by_cpu(row, reading.throughput, table, reference) or _explanation(row, reading, table, reference)


def _by_cpu(row: InstructionData, measured: float, table: float, reference: Reference) -> str:
    """What the CPU that was read explains."""
    if reference.client and _agree(throughput_of(_with_one_unit(row), reference.issue_width), measured):
        return "the CPU that was read has no second 512-bit unit"
    others = (readings.get(row.form) for readings in reference.siblings)
    agreeing = any(other and other.throughput and _agree(table, other.throughput) for other in others)
    return "the reading of a CPU of the same kind agrees with the row" if agreeing else ""


def throughput_of(row: InstructionData, issue_width: int) -> float:
    """Cycles per instruction of many independent ones: by ports, by issue, or as measured where ports do not tell."""
    slots = row.front_end.retire_slots if row.front_end else max(row.uops, 1)
    return max(optimal_bound(row.ports)[0], slots / issue_width, row.throughput or 0.0)


def _with_one_unit(row: InstructionData) -> InstructionData:
    """A 512-bit row with port 0 alone where it has ports 0 and 5."""
    if "zmm" not in row.form:
        return row
    uses = (PortUse(("0",), use.cycles) if use.ports == ("0", "5") else use for use in row.ports)
    return replace(row, ports=tuple(uses))


def _agree(table: float, measured: float) -> bool:
    return max(table, measured) <= TOLERANCE * min(table, measured)


def _explanation(row: InstructionData, reading: Reading, table: float, reference: Reference) -> str:
    measured = reading.throughput or 0.0
    trusted = _is_trusted(row, reference)
    if row.eliminated or (row.breaks_dependency != "no" and measured < table):
        return "done at rename, or measured with equal registers"
    if abs(measured - table) <= _RESOLUTION:
        return "less than a tenth of a cycle"
    if measured < table and TOLERANCE * measured < optimal_bound(_transfers(row))[0]:
        return "loads and stores alone take longer than the reading"
    if measured < table:
        return "the ports were measured (uops.info): the reading is below what they allow" if trusted else ""
    if row.uops and _is_no_share(measured / row.uops):
        return "no whole number of ports gives such a reading"
    if any(use.ports == _STORES for use in row.ports) and _agree(2 * table, measured):
        return "two stores of a cycle must go to one cache line"
    if _transfers(row) == row.ports and measured < _SLOW_LOAD * table:
        return "a load or store alone: the reading includes waits for memory"
    if "i16" in row.form:
        return "the length-changing prefix slows decoding down"
    if _NON_TEMPORAL.match(row.form):
        return "measured to memory, not to the first-level cache"
    if _updates_memory(row) and reading.latency and measured <= reading.latency:
        return "the copies wait for each other through memory"
    if _waits(row, reading, measured):
        return "the copies wait for each other: the reading is the latency of a chain"
    if trusted:
        return "the ports were measured (uops.info): something else takes longer in the reading"
    return ""


def _updates_memory(row: InstructionData) -> bool:
    """Whether it reads and writes its memory operand."""
    targets = {target for source, target in row.latencies if source[0] == "A"}
    return any(target[0] == "M" for target in targets) and any(target[0] != "M" for target in targets)


def _transfers(row: InstructionData) -> tuple[PortUse, ...]:
    """Uses of address units, load paths and store paths by their names on AMD's cores; Intel's ports are not told by
    name.
    """
    return tuple(use for use in row.ports if use.ports[0].startswith(_TRANSFERS))


def _is_no_share(cycles: float) -> bool:
    """Whether a reading per µop below one cycle is no share 1/n of it."""
    return cycles < 1 and abs(1 / cycles - round(1 / cycles)) > _SHARE_ERROR


def _waits(row: InstructionData, reading: Reading, measured: float) -> bool:
    """Whether the reading is a latency between copies: through flags, an implicit register or a part of a register."""
    chained = any(source == "F" or (source[0].isalpha() and source[0] not in "AXM") for source, _ in row.latencies)
    shared = chained or bool(_PARTIAL.match(row.form)) or row.form.count(",") < 2
    own = (reading.latency, row.default_latency, row.latencies.get(("F", "F")))
    return shared and any(cycles and _agree(cycles, measured) for cycles in own)


def _is_trusted(row: InstructionData, reference: Reference) -> bool:
    """Whether uops.info measured the ports, on the core itself or by scheme."""
    neighbour = reference.neighbour and row.source.startswith(reference.neighbour)
    return not neighbour and "LLVM" not in row.source


def mended(rows: Sequence[InstructionData], reference: Reference) -> tuple[InstructionData, ...]:
    """The rows, those of a model whose ports no explanation brings together with the readings mended by rule.

    A register form is made to agree, and all its memory, broadcast and masked forms with the same µops get the same
    ports; then memory forms that still differ. The rules, the first that agrees: a µop that the model counts twice
    counts once; a µop is left out; the group of ports is wider or narrower (512 bits: without port 1); one µop more;
    the divider is busy as long as measured; all µops are fewer; the pipelines are not told apart; each with the µops as
    they are counted, then with a single one; at last the measured reciprocal throughput stands in its cell.
    """
    for memory in (False, True):
        by_form = {row.form: row for row in rows}
        changes: dict[str, tuple[InstructionData, InstructionData]] = {}
        for found in contradictions(rows, reference):
            row = by_form[found.form]
            if not found.explanation and bool(_MEMORY.search(row.form)) is memory:
                changes[row.form] = (row, _agreeing(row, found.measured, reference.issue_width))
        rows = tuple(_changed(row, changes) for row in rows)
    return tuple(rows)


def _changed(row: InstructionData, changes: Mapping[str, tuple[InstructionData, InstructionData]]) -> InstructionData:
    """The row with the µops that its register form got."""
    for form in register_forms(row.form):
        if form not in changes:
            continue
        old, new = changes[form]
        rest = list(row.ports)
        for use in old.ports:
            if use not in rest:
                return row
            rest.remove(use)
        ports = (*new.ports, *rest)
        throughput = new.throughput if not rest else row.throughput
        uops = row.uops + new.uops - old.uops
        indexed = replace(row.indexed, ports=ports, uops=uops, source=new.source) if row.indexed else None
        return replace(row, ports=ports, uops=uops, throughput=throughput, indexed=indexed, source=new.source)
    return row


def register_forms(form: str) -> Iterator[str]:
    """The form itself and the unmasked forms with a register in place of its memory operand."""
    yield form
    plain = _MASK.sub("", form)
    if plain != form:
        yield plain
    if _MEMORY.search(plain):
        yield from (_MEMORY.sub(kind, plain) for kind in _VECTORS)


def _agreeing(row: InstructionData, measured: float, issue_width: int) -> InstructionData:
    """The row as the first rule makes it agree."""
    candidates = tuple(_candidates(row, measured))
    for ports, uops in (*candidates, *((ports, 1) for ports, _ in candidates)):
        changed = replace(row, ports=ports, uops=uops, source=row.source + MENDED)
        if _agree(throughput_of(changed, issue_width), measured):
            return changed
    quarters = round(measured * _QUARTERS) / _QUARTERS
    if quarters <= optimal_bound(row.ports)[0]:
        return row
    return replace(row, throughput=quarters, source=row.source + MENDED)


def _candidates(row: InstructionData, measured: float) -> Iterator[tuple[tuple[PortUse, ...], int]]:
    """Ports and µops by each rule, one change at a time, then two, then fewer of all.

    A division without divider gets one first.
    """
    if DIVIDES.match(row.form) and not any(use.ports == (DIVIDER_PORT,) for use in row.ports):
        yield (*row.ports, PortUse((DIVIDER_PORT,), round(measured * _QUARTERS) / _QUARTERS)), row.uops
    once = list(_single_changes(row, row.ports, row.uops, measured))
    yield from once
    for ports, uops in once:
        yield from _single_changes(row, ports, uops, measured)
    share = measured / max(optimal_bound(row.ports)[0], measured)
    ports = tuple(PortUse(use.ports, max(round(use.cycles * share), 1.0)) for use in row.ports)
    yield ports, row.uops - round(sum(use.cycles for use in row.ports) - sum(use.cycles for use in ports))
    pool = sorted({unit for use in row.ports for port in use.ports for unit in _pool(port)})
    if pool:
        yield (PortUse(tuple(pool), round(measured * len(pool) * _QUARTERS) / _QUARTERS), *_transfers(row)), row.uops


def _pool(port: str) -> tuple[str, ...]:
    """AMD's pipelines of the same kind as this one, none for other ports."""
    match = _UNITS.fullmatch(port)
    return tuple(f"{match[1]}{number}" for number in range(4)) if match else ()


def _wider(ports: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """A group of AMD's pipelines with the next ones of the same kind added, one by one."""
    pool = _pool(ports[0])
    if all(port in pool for port in ports):
        for port in (*pool[pool.index(ports[-1]) :], *pool):
            if port not in ports:
                ports = tuple(sorted((*ports, port)))
                yield ports


def _single_changes(
    row: InstructionData, ports: tuple[PortUse, ...], uops: int, measured: float
) -> Iterator[tuple[tuple[PortUse, ...], int]]:
    corrections = (facts("cores.yml", "wider")["zmm" if "zmm" in row.form else "ymm"], facts("cores.yml", "narrower"))
    for number, use in enumerate(ports):
        one = int(not use.ports[0].startswith(("ALU", "FP", *_TRANSFERS)))  # AMD's µops are not counted by ports
        before, after = ports[:number], ports[number + 1 :]
        if use.ports[0].endswith("DV"):
            yield (*before, PortUse(use.ports, round(measured * _QUARTERS) / _QUARTERS), *after), uops
            continue
        if use.cycles > 1:
            yield (*before, PortUse(use.ports, 1.0), *after), uops - one * round(use.cycles - 1)
        if len(ports) > 1:
            yield (*before, *after), uops - one * round(use.cycles)
        names = "".join(use.ports)
        others = [tuple(groups[names]) for groups in corrections if names in groups]
        for group in (*others, *_wider(use.ports)):
            yield (*before, PortUse(group, use.cycles), *after), uops
        yield (*before, PortUse(use.ports, use.cycles + 1), *after), uops + one
