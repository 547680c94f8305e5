"""Import of uops.info measurements: one JSON record per instruction variant in, table rows out.

The measurements are those of A. Abel and J. Reineke, "uops.info: Characterizing Latency, Throughput, and Port Usage of
Instructions on Intel Microarchitectures", ASPLOS 2019, continued on uops.info. Latencies are reported per pair of
source and target; those to and from memory and from one register file to another are upper bounds, measured in a round
trip, and are brought to the convention of the tables here (`_memory_latencies`, `_between_files`).
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from kernmodel.errors import InstructionTableError, Location
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import FrontEnd, InstructionData, PortUse
from kernmodel.incore.tables.importers.facts import facts
from kernmodel.incore.tables.importers.forms import FormName, form_name
from kernmodel.incore.tables.table import INDEXED
from kernmodel.user_files import lines_of, opened
from kernmodel.value_types import dataclass

Record = Mapping[str, Any]
PortRule = Callable[[Mapping[str, float], Record], tuple[PortUse, ...]]

SOURCE = "uops.info measurements (Abel, Reineke, ASPLOS 2019), as of 2026"
NO_LATENCY = "; latency not measured, 1 cycle taken"
UNMEASURED = SOURCE + NO_LATENCY
SOURCES = {"u": SOURCE, "u?": UNMEASURED}

ONES_FORMS = re.compile(r"v?pcmpeq[bwdq] ([xy]mm)(?:,\1){1,2}")
"""Comparisons for equality, which give ones and wait for nothing if all their operands are one register."""

_VECTORS = ("mm", "xmm", "ymm", "zmm")


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import took and left.

    Attributes:
        records: records read; rows: rows made, indexed variants apart.
        merged: records that describe the same form as another (encodings, accumulator short forms, immediate 0).
        left_out: strings that were left out, by reason.
    """

    records: int
    rows: int
    merged: int
    left_out: Mapping[str, tuple[str, ...]]

    @property
    def coverage(self) -> float:
        """Share of the records that the table covers."""
        return 1 - sum(len(strings) for strings in self.left_out.values()) / max(self.records, 1)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A record under its form, with latencies by the names of the table; "m" are memory data as measured."""

    name: FormName
    record: Record
    registers: Mapping[tuple[str, str], float]
    memory: Mapping[tuple[str, str], float]


def table_header(name: str, source: str, report: ImportReport, *more: str) -> tuple[str, ...]:
    """The comment lines that open a table; `more` names further inputs."""
    return (
        f"Instruction table of {name}. Columns:",
        "form | cycles*ports | µops | default latency, source>target:cycles | throughput | flags | front end | source",
        "A2, X2, M2: base, index and data of memory operand 2; F: flags; docs/microarchitectures.md explains the rest.",
        "Moves between register files share out round trips. Correct a row by editing it and naming your source.",
        f"Imported from {source}: {report.records} records, {report.rows} rows; facts only, re-expressed.",
        *more,
    )


def read_records(path: Path) -> Iterator[Record]:
    """The records of a pack.

    Raises:
        InstructionTableError: the file cannot be read, or a line is no record; names the line.
    """
    number = 0
    try:
        with opened(path, "records of uops.info", error=InstructionTableError) as file:
            lines = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
            for line in lines_of(lines, str(path), error=InstructionTableError):
                number += 1
                yield _record(line.decode())
    except (OSError, ValueError, EOFError) as error:
        where = Location(str(path), number or None)
        todo = "give a .jsonl.gz pack of uops.info records"
        raise InstructionTableError(f"cannot be read as records ({error})", where=where, todo=todo) from None


def _record(line: str) -> Record:
    record = json.loads(line)
    if not isinstance(record, dict) or not {"string", "ports", "uops", "operands", "latencies"} <= record.keys():
        raise ValueError("no instruction record")
    return record


def read_rows(
    path: Path, rule: PortRule, *, store_forward: float | None = None
) -> tuple[tuple[InstructionData, ...], ImportReport]:
    """The rows of a pack, ports by the given rule (`rows_of`)."""
    return rows_of(read_records(path), rule, store_forward=store_forward)


def rows_of(
    records: Iterable[Record], rule: PortRule, *, store_forward: float | None = None
) -> tuple[tuple[InstructionData, ...], ImportReport]:
    """The rows that records give, and what became of the records.

    Args:
        records: one per instruction variant.
        rule: gives the ports of a row for those of its record.
        store_forward: cycles from a store's data to a load that reads it; else taken from the records.
    """
    measured: dict[str, _Measured] = {}
    left: dict[str, list[str]] = {}
    count = merged = 0
    for record in records:
        count += 1
        name = form_name(record["string"])
        if name is None:
            left.setdefault("absolute 64-bit address", []).append(record["string"])
        elif name.form in measured and not measured[name.form].name.accumulator:
            merged += 1
        else:
            merged += name.form in measured
            measured[name.form] = _measured(name, record)
    measured = _between_files(measured)
    bases = _bases(measured, store_forward)
    rows = {form: _row(item, rule, measured, bases) for form, item in measured.items()}
    kept = tuple(row for row in rows.values() if not _repeats(row, rows))
    merged += len(rows) - len(kept)
    return kept, ImportReport(count, len(kept), merged, {reason: tuple(items) for reason, items in left.items()})


def told_by_ports(row: InstructionData) -> InstructionData:
    """The row without its measured reciprocal throughput where its ports explain that."""
    if row.full is not None:
        row = replace(row, full=told_by_ports(row.full))
    if row.throughput is None or optimal_bound(row.ports)[0] < row.throughput:
        return row
    return replace(row, throughput=None, indexed=told_by_ports(row.indexed) if row.indexed else None)


def _repeats(row: InstructionData, rows: Mapping[str, InstructionData]) -> bool:
    """Whether a row for the immediate 0 says the same as the one for other immediates."""
    general = row.form.removesuffix(" [0]")
    if general == row.form or general not in rows:
        return False
    return _content(rows[general]) == _content(row)


def _content(row: InstructionData) -> InstructionData:
    """The row without its name."""
    indexed = replace(row.indexed, form="") if row.indexed is not None else None
    return replace(row, form="", indexed=indexed)


def _measured(name: FormName, record: Record) -> _Measured:
    names = _operand_names(name, record["operands"])
    registers: dict[tuple[str, str], float] = {}
    memory: dict[tuple[str, str], float] = {}
    for pair in record["latencies"]:
        source, target = names.get(pair["start_op"]), names.get(pair["target_op"])
        if source is None or target is None:
            continue
        if source[0] == "M":
            _split_memory(pair, source[1:], target.lower() if target[0] == "M" else target, memory)
        elif target[0] == "M":
            memory[source, target.lower()] = pair["cycles"]
        else:
            same = pair["cycles_same_reg"]
            executed = same if not record["uops"] and same is not None else pair["cycles"]
            registers[source, target] = max(executed, registers.get((source, target), 0))
    return _Measured(name, record, registers, memory)


def _split_memory(pair: Record, operand: str, target: str, memory: dict[tuple[str, str], float]) -> None:
    for part, key in (("A", "cycles_addr"), ("X", "cycles_addr_index"), ("m", "cycles_mem")):
        if pair[key] is not None:
            memory[part + operand, target] = pair[key]


_REGISTER_FILES = ("general", "k", "mm", "vector")
_Files = tuple[str, str]
"""Two register files, that of a source and that of a target."""


def _between_files(measured: Mapping[str, _Measured]) -> dict[str, _Measured]:
    """The records with latencies from one register file to another that make up their round trips.

    uops.info measures such a latency in a chain with the fastest instruction back (from flags, with one that reads
    these, too), and gives the whole less a cycle for each other instruction. The round trip of the fastest moves is
    shared out evenly, what an odd one has more to the way into vectors; any other instruction has what its round
    trip leaves over from the move back. Readings of InstLatx64 and chains on a Zen 3 agree with these sums.
    """
    least: dict[_Files, float] = {}
    for item in measured.values():
        for (source, target), cycles in item.registers.items():
            files = _file(item, source), _file(item, target)
            least[files] = min(cycles, least.get(files, cycles))
    ways = {(a, b): _way((a, b), max(least[a, b], least[b, a]) + 1) for a, b in least if a != b and (b, a) in least}

    def told(item: _Measured, source: str, target: str, cycles: float) -> float:
        """The latency that the round trip leaves over."""
        back = ways.get((_file(item, target), _file(item, source)))
        return cycles if back is None or target[0] in "mM" else cycles + 1 - back

    return {
        form: replace(
            item,
            registers={pair: told(item, *pair, cycles) for pair, cycles in item.registers.items()},
            memory={
                pair: told(item, *pair, cycles) if pair[0][0] in "AX" else cycles
                for pair, cycles in item.memory.items()
            },
        )
        for form, item in measured.items()
    }


def _way(files: _Files, round_trip: float) -> float:
    """The cycles of a move in one direction."""
    outwards = _REGISTER_FILES.index(files[0]) > _REGISTER_FILES.index(files[1])
    return float(round_trip // 2 if outwards else -(-round_trip // 2))


def _file(item: _Measured, name: str) -> str:
    """The register file of an operand by its name in the table; flags are written beside general registers, and so
    addresses are read, but for vectors of indices."""
    kind = item.name.kinds[int(name)] if name.isdigit() else name
    if name[0] in "AX" and name[1:].isdigit():
        kind = item.name.kinds[int(name[1:])] if name[0] == "X" else ""
    kind = kind.partition("{")[0].removeprefix("vsib_")
    return "vector" if kind in _VECTORS[1:] or kind == "zmm0" else kind if kind in ("mm", "k") else "general"


@cache
def _implicit() -> Mapping[str, tuple[str, ...]]:
    """The implicit register operands by mnemonic."""
    groups = facts("forms.yml", "implicit").items()
    return {mnemonic: registers for mnemonics, registers in groups for mnemonic in mnemonics.split()}


def _operand_names(name: FormName, operands: Iterable[Record]) -> dict[str, str]:
    """Names in the table by names in the record: explicit operands by number, memory with "M", flags "F"."""
    kinds = list(enumerate(name.kinds))
    implicit = list(_implicit().get(name.mnemonic, ()))
    if {"r8", "r8h", "m8"}.intersection(name.kinds) and implicit == ["rax", "rdx"]:
        implicit = ["rax", "rax"]
    names: dict[str, str] = {}
    masks = int(name.masked)
    for operand in operands:
        kind = operand["type"]
        if kind == "flags":
            names[operand["name"]] = "F"
        elif masks and len(kinds) < len(name.kinds) and kind == "reg":
            masks = 0
            names[operand["name"]] = "k"
        elif kinds and _matches(kinds[0][1], kind):
            number = str(kinds.pop(0)[0])
            names[operand["name"]] = "M" + number if kind in ("mem", "agen") else number
        elif kind == "mem":
            names[operand["name"]] = "M"
        elif kind == "reg" and implicit:
            names[operand["name"]] = implicit.pop(0)
    return names


def _matches(kind: str, operand_type: str) -> bool:
    kind = kind.partition("{")[0]
    is_memory = kind == "m" or kind[:4] == "vsib" or (kind[0] == "m" and kind[1:].rstrip("b").isdigit())
    is_immediate = kind == "1" or (kind[0] == "i" and kind[1:].isdigit())
    if operand_type in ("mem", "agen"):
        return is_memory
    if operand_type == "imm":
        return is_immediate
    return operand_type == "relbr" if kind == "rel" else operand_type == "reg" and not (is_memory or is_immediate)


@dataclass(frozen=True, slots=True)
class _Bases:
    """Latency of plain loads (address to register) by register class, and the store-forward latency, cycles."""

    load: Mapping[str, float]
    forward: float


def _bases(measured: Mapping[str, _Measured], store_forward: float | None) -> _Bases:
    load = {}
    for register_class, (load_form, _) in facts("forms.yml", "moves").items():
        if load_form in measured:
            load[register_class] = measured[load_form].memory.get(("A1", "0"), 0.0)
    if store_forward is None:
        plain = measured.get("mov m64,r64")
        store_forward = (plain.memory.get(("1", "m0"), 0.0) if plain else 0.0) + 1
    return _Bases(load, store_forward)


def _class_of(item: _Measured) -> str:
    """Register class that the memory operand is loaded into or stored from."""
    vectors = [kind.partition("{")[0] for kind in item.name.kinds if kind.partition("{")[0] in _VECTORS]
    if vectors:
        return max(vectors, key=_VECTORS.index)
    return "xmm" if item.name.mnemonic.endswith(("sd2si", "ss2si")) else "general"


def _register_form(item: _Measured, measured: Mapping[str, _Measured], operand: str) -> _Measured | None:
    """The same instruction with a register in place of memory operand `operand`."""
    position = int(operand)
    kinds = list(item.name.kinds)
    for kind in facts("forms.yml", "in_registers").get(kinds[position][1:], ("r32", "xmm")):
        kinds[position] = kind
        found = measured.get(f"{item.name.mnemonic} {','.join(kinds)}")
        if found is not None:
            return found
    return None


def _memory_latencies(
    item: _Measured, measured: Mapping[str, _Measured], bases: _Bases
) -> dict[tuple[str, str], float]:
    """Address and data latencies of the memory operands in the convention of the tables.

    The data latency of a load-op is that of the register form, else the address latency less that of a plain load. A
    measured latency to or from memory is one round trip less one cycle (the whole one of a locked instruction), so what
    a store adds is that plus one cycle less the store-forward latency; a round trip of 0 is one that renaming replaces,
    and the store adds nothing.
    """
    base = bases.load.get(_class_of(item), 0.0)
    pairs: dict[tuple[str, str], float] = {}
    for source, target in dict.fromkeys(item.memory):
        operand = source[1:]
        if target[0] == "m" or not operand:
            continue
        data = _data_latency(item, measured, operand, target, base)
        address = item.memory.get((f"A{operand}", target), item.memory.get((f"X{operand}", target)))
        pairs[f"M{operand}", target] = data
        pairs[f"A{operand}", target] = base + data if address is None else address
        if (index := item.memory.get((f"X{operand}", target))) is not None:
            pairs[f"X{operand}", target] = index
    pairs.update(_unmeasured_loads(item, measured, base))
    pairs.update(_store_latencies(item, measured, bases, base))
    pairs.update(_implicit_memory(item))
    return pairs


def _data_latency(item: _Measured, measured: Mapping[str, _Measured], operand: str, target: str, base: float) -> float:
    twin = _register_form(item, measured, operand)
    if twin is not None and twin.registers and not _moves(item) and not _crosses(twin, operand, target):
        return twin.registers.get((operand, target), max(twin.registers.values()))
    address = item.memory.get((f"A{operand}", target), item.memory.get((f"X{operand}", target), base))
    return max(address - base, 0.0)


def _crosses(item: _Measured, source: str, target: str) -> bool:
    """Whether the latency is one from a register file to another, which a load in place of the source does not have."""
    return target[0] not in "mM" and _file(item, source) != _file(item, target)


def _moves(item: _Measured) -> bool:
    """Whether the record is a load or store that computes nothing."""
    return item.record["uops"] <= 2 and item.name.mnemonic.removeprefix("v").startswith(("mov", "lddqu"))


def _unmeasured_loads(
    item: _Measured, measured: Mapping[str, _Measured], base: float
) -> Iterator[tuple[tuple[str, str], float]]:
    """Latencies of memory sources for which the record holds a pair without figures (dividers)."""
    names = _operand_names(item.name, item.record["operands"])
    for pair in item.record["latencies"]:
        source, target = names.get(pair["start_op"], ""), names.get(pair["target_op"], "")
        known = any((part + source[1:], target) in item.memory for part in "AXm")
        if source[:1] == "M" and source[1:] and target and target[0] != "M" and not known:
            twin = _register_form(item, measured, source[1:])
            data = (twin or item).registers
            cycles = data.get((source[1:], target), max(data.values(), default=0.0))
            yield (source, target), cycles
            yield (f"A{source[1:]}", target), base + cycles


def _store_latencies(
    item: _Measured, measured: Mapping[str, _Measured], bases: _Bases, base: float
) -> Iterator[tuple[tuple[str, str], float]]:
    """Latencies to memory operands, those of a read-modify-write by its register form."""
    if item.name.mnemonic.removeprefix("v").startswith("movnt"):
        # measured to memory and back; nothing waits for the data once the store buffer has them
        return
    targets = {target for _, target in item.memory if target[0] == "m" and target[1:]}
    less = bases.forward - (0 if _is_locked(item) else 1)
    for target in targets:
        twin = _register_form(item, measured, target[1:])
        name = target.upper()
        for source, end in item.memory:
            if end != target or source[0] == "X":
                continue
            cycles = item.memory[source, end]
            pair = source.lstrip("m"), target[1:]
            as_register = twin.registers.get(pair) if twin and not _moves(item) else None
            if twin and as_register is not None and source.isdigit() and _crosses(twin, *pair):
                # what is stored goes to no other register file; of less than was reloaded, nothing was forwarded
                as_register = min(as_register, max(cycles - less, 0.0))
            if (
                source[0] == "A"
                and (source[1:], target) not in item.memory
                and ("m" + source[1:], target) in item.memory
            ):
                inner = twin.registers.get((source[1:], target[1:]), 0.0) if twin else 0.0
                yield (source, name), base + inner
            elif source[0] == "A":
                yield (source, name), max(cycles - less, 0.0)
            elif as_register is not None:
                yield (source.replace("m", "M"), name), as_register
            else:
                yield (source.replace("m", "M"), name), max(cycles - less, 0.0) if cycles else 0.0


def _is_locked(item: _Measured) -> bool:
    """Whether the record is of a locked instruction, whose round trip through memory is what was measured.

    InstLatx64 reads the same for chains of them (18 cycles on Skylake, 19 on Haswell, 23 on Sandy Bridge).
    """
    return item.name.mnemonic.startswith("lock ")


def _implicit_memory(item: _Measured) -> Iterator[tuple[tuple[str, str], float]]:
    """Latencies of the implicit memory operand: its base is named as a register, its data "M"."""
    bases = {o["mem_base"].lower() for o in item.record["operands"] if o["type"] == "mem" and o["mem_base"]}
    for (source, target), cycles in item.memory.items():
        if source == "A" and target != "m" and len(bases) == 1:
            yield (next(iter(bases)), target), cycles
            yield ("M", target), 0.0
    if item.name.mnemonic in facts("forms.yml", "stack"):
        yield ("rsp", "rsp"), 0.0


def _row(item: _Measured, rule: PortRule, measured: Mapping[str, _Measured], bases: _Bases) -> InstructionData:
    record = item.record
    pairs = {**item.registers, **_memory_latencies(item, measured, bases)}
    default = _default_latency(item, pairs)
    same = record["variants"].get("same_reg", {})
    eliminated = record["uops"] == 0 and same.get("uops", 0) > 0
    executed = {**record, **same} if eliminated else record
    row = InstructionData(
        form=item.name.form,
        ports=rule(executed["ports"], record),
        latencies={pair: float(cycles) for pair, cycles in pairs.items() if cycles != default or pair[0][0] in "AX"},
        default_latency=default,
        uops=executed["uops"],
        throughput=record["tp"],
        breaks_dependency=_breaks(item, same),
        eliminated=eliminated,
        front_end=_front_end(record) if _has_front_end(record) else None,
        indexed=None,
        source=UNMEASURED if _is_unmeasured(item) else SOURCE,
    )
    indexed = record["variants"].get("indexed", {})
    if not indexed:
        return row
    other = _indexed(row, {**record, **indexed}, rule, record["ports"])
    return row if replace(other, form=row.form) == row else replace(row, indexed=other)


def _indexed(row: InstructionData, record: Record, rule: PortRule, plain: Mapping[str, float]) -> InstructionData:
    front = _front_end(record) if row.front_end is not None else None
    ports = rule(_indexed_ports(record, plain), record)
    return replace(row, form=row.form + INDEXED, ports=ports, uops=record["uops"], front_end=front)


def _indexed_ports(record: Record, plain: Mapping[str, float]) -> Mapping[str, float]:
    """Ports with an indexed memory operand: as measured if they make up the µops, else the `plain` ones, whose store
    addresses leave port 7.

    Many measurements with an index register miss µops (on Redwood Cove all but the load of a load-op).
    """
    ports: Mapping[str, float] = record["ports"]
    if sum(ports.values()) == record["uops"] or sum(plain.values()) != record["uops"]:
        return ports
    moved = {group: count for group, count in plain.items() if group != "237"}
    return {**moved, "23": plain.get("23", 0) + plain["237"]} if "237" in plain else moved


def _default_latency(item: _Measured, pairs: Mapping[tuple[str, str], float]) -> float:
    """The commonest latency between registers; without any, the largest data latency, else 0 or 1 by the µops."""
    counts = Counter(item.registers.values())
    if counts:
        return float(max(counts, key=lambda cycles: (counts[cycles], cycles)))
    data = [cycles for (source, target), cycles in pairs.items() if source[0] == "M" and target[0] != "M"]
    return float(max(data, default=1.0 if _is_unmeasured(item) else 0.0))


def _is_unmeasured(item: _Measured) -> bool:
    """Whether the instruction executes and passes a register on, but no latency is given."""
    if item.registers or item.memory or not item.record["uops"]:
        return False
    registers = [operand for operand in item.record["operands"] if operand["type"] in ("reg", "flags")]
    return any(o["read"] for o in registers) and any(o["write"] for o in registers) and "rel" not in item.name.kinds


def _breaks(item: _Measured, same: Record) -> Literal["no", "dependency", "zero"]:
    """What equal source registers do: no µop left is "zero"; no latency left, "dependency".

    AMD's cores count a µop that needs no port as well.
    """
    kinds = [kind for kind in item.name.kinds if kind[0] in "rxym"]
    if len(kinds) < 2 or not item.record["uops"] or item.name.mnemonic in ("xchg", "mov"):
        return "no"
    none_left = not same.get("uops", 1) if _has_front_end(item.record) else not same.get("ports")
    if same and none_left:
        return "zero"
    readings = [pair["cycles_same_reg"] for pair in item.record["latencies"] if pair["start_op"] != "F"]
    given = [cycles for cycles in readings if cycles is not None]
    return "dependency" if given and len(given) == len(readings) and not any(given) else "no"


def _has_front_end(record: Record) -> bool:
    return not record["arch"].startswith("ZEN")


def _front_end(record: Record) -> FrontEnd:
    return FrontEnd(
        retire_slots=record["retire_slots"],
        uops_mite=record["uops_mite"],
        uops_ms=record["uops_ms"],
        complex_decoder=bool(record["complex_decoder"]),
        simple_decoders=record["n_available_simple_decoders"],
        fusible_with=_jumps(record["macro_fusible_with"]),
    )


def _jumps(strings: Iterable[str]) -> tuple[str, ...]:
    """Intel mnemonics of the jumps that strings such as "JNB (Rel8)" name."""
    names = (form_name(string) for string in strings)
    return tuple(sorted({name.mnemonic for name in names if name}))
