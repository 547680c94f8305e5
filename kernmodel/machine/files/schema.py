"""The schema of machine files: which sections and keys there are, what they mean, and how they become a `Machine`.

docs/machine-files.md describes it for people. `kernmodel.machine.files.checks` checks figures against one another.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from kernmodel import isa
from kernmodel.errors import Location, MachineError
from kernmodel.machine.files.checks import check_figures, count
from kernmodel.machine.model import (
    BandwidthSeries,
    CacheLevel,
    Compiler,
    CoreModel,
    Machine,
    MeasuredPeak,
    MemoryChannels,
    StoreBehaviour,
    StreamMix,
    Topology,
    TransferPath,
)
from kernmodel.machine.overlap import Overlap, parse_overlap
from kernmodel.schema.document import Document, FileKind, line_of, read_document
from kernmodel.schema.fields import (
    Field,
    Number,
    Problem,
    QuantityOrWord,
    Reading,
    RejectedError,
    Table,
    Values,
    ascending_pairs,
    choice,
    core_counts,
    flag,
    integer,
    items,
    names,
    number_or_quantity,
    positive_number,
    positive_numbers,
    quantity,
    scalar,
    text,
    unit,
)

_LEVEL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
MACHINE_FILE = FileKind("machine file", "docs/machine-files.md", MachineError)

MEASURED = "measured"
"""The width of a path whose time follows from measured bandwidth."""


def _overlap(node: yaml.Node) -> Overlap:
    try:
        return parse_overlap(text(node))
    except MachineError as error:
        raise RejectedError(error.what, error.todo) from error


def _instruction_set(node: yaml.Node) -> str:
    """One of those that are known when the file is read."""
    return choice(*isa.names())(node)


MACHINE: Table = {
    "title": Field(text),
    "vendor": Field(text),
    "isa": Field(_instruction_set, required=False, default=isa.DEFAULT),
    "clock": Field(quantity("frequency", least="10 MHz", most="20 GHz")),
    "cache_line": Field(quantity("data", least="8 B", most="1 KiB")),
    "source": Field(text),
}
SECTIONS = ("topology", "core", "caches", "paths", "memory", "stores", "overlap", "bandwidths", "peaks", "compilers")
OPTIONAL_SECTIONS = ("memory", "stores", "peaks")
TOPOLOGY: Table = {
    "sockets": Field(integer(1, 256)),
    "numa_domains_per_socket": Field(integer(1, 256)),
    "cores_per_socket": Field(integer(1, 4096)),
    "threads_per_core": Field(integer(1, 16)),
    "source": Field(text),
}
_WIDTH = quantity("bytes per cycle", least="0.001 B/cy", most="4096 B/cy")
CORE: Table = {
    "microarchitecture": Field(text),
    "overlapping_ports": Field(names),
    "non_overlapping_ports": Field(names),
    "load_width": Field(_WIDTH, required=False),
    "store_width": Field(_WIDTH, required=False),
    "source": Field(text),
}
PRECISIONS = ("DP", "SP")
_MOST_FLOP = 65536.0
FLOP: Table = {
    "ADD": Field(Number(_MOST_FLOP), required=False),
    "MUL": Field(Number(_MOST_FLOP), required=False),
    "FMA": Field(Number(_MOST_FLOP), required=False),
    "total": Field(Number(_MOST_FLOP)),
}
CACHE: Table = {
    "size": Field(quantity("data", least="64 B", most="64 GiB")),
    "ways": Field(integer()),
    "sets": Field(integer()),
    "line": Field(quantity("data"), required=False),
    "replacement": Field(choice("LRU", "PLRU", "FIFO", "RR", "MRU")),
    "write_back": Field(flag),
    "write_allocate": Field(flag),
    "shared_by": Field(integer()),
    "filled_by": Field(choice("miss", "victims")),
    "clean_victims": Field(flag, required=False),
    "loads_pass_by": Field(flag, required=False),
    "inclusive": Field(flag, required=False),
    "source": Field(text),
}
RUN_LENGTH = ascending_pairs(
    number_or_quantity("data"), number_or_quantity("cycles per cache line"), "bytes, cycles per line"
)
_PENALTY = quantity("cycles per cache line", zero=True, most="10000 cy/CL")
PATH: Table = {
    "width": Field(QuantityOrWord(_WIDTH, MEASURED)),
    "duplex": Field(choice("half", "full")),
    "penalty_load": Field(_PENALTY, required=False, default=0.0),
    "penalty_store": Field(_PENALTY, required=False, default=0.0),
    "run_length": Field(RUN_LENGTH, required=False),
    "source": Field(text),
}
MEMORY: Table = {
    "channels": Field(integer(1, 1024)),
    "channel_width": Field(quantity("data", least="1 B", most="4 KiB")),
    "transfer_rate": Field(quantity("frequency", least="1 MHz", most="1000 GHz")),
    "source": Field(text),
}
EVASION = ("never", "always", "near-saturation", "instruction", "unknown")
STORES: Table = {
    "streaming": Field(flag),
    "write_allocate_evasion": Field(choice(*EVASION)),
    "evades_from_cores": Field(integer(), required=False),
    "source": Field(text),
}
OVERLAP: Table = {"expression": Field(_overlap), "source": Field(text)}
BANDWIDTHS: Table = {"unit": Field(unit("bandwidth")), "source": Field(text)}
MIX: Table = {
    "read": Field(integer(0)),
    "write": Field(integer(0)),
    "read_write": Field(integer(0), required=False, default=0),
    "flops": Field(integer(0), required=False, default=0),
    "access": Field(quantity("data"), required=False),
    "benchmark": Field(text, required=False),
}
SERIES: Table = {
    "level": Field(text),
    "threads_per_core": Field(integer(), required=False, default=1),
    "cores": Field(core_counts),
}
PEAKS: Table = {"unit": Field(unit("flop rate")), "source": Field(text)}
OPERATIONS = ("ADD", "MUL", "FMA", "DIV", "SQRT")
PEAK: Table = {
    "operation": Field(choice(*OPERATIONS)),
    "precision": Field(choice(*PRECISIONS)),
    "register": Field(quantity("data")),
    "cores": Field(integer()),
    "value": Field(positive_number),
}


def read_machine(document: Document) -> tuple[Machine | None, tuple[Problem, ...]]:
    """The machine that a document describes, and all problems by line; the machine is None if one is an error."""
    values, reading = read_values(document)
    problems = tuple(sorted(reading.problems, key=lambda problem: problem.where.line or 0))
    if reading.errors:
        return None, problems
    return build_machine(values, name=document.stem, file=document.file, sha256=document.sha256), problems


def read_values(document: Document) -> tuple[Values, Reading]:
    """The values of a document by section and key, in base units, and the reading with all problems."""
    reading = Reading(document.file, MACHINE_FILE)
    values = _read_sections(reading, document.root)
    check_figures(reading, values)
    return values, reading


def examine(document: Document) -> tuple[Machine | None, Reading]:
    """The machine that a document describes, None if there is an error, and the reading with all problems.

    Beside what `read_machine` finds, bandwidths of mixes are held against one another.
    """
    from kernmodel.machine.files.stream_mixes import contradictions

    values, reading = read_values(document)
    if reading.errors:
        return None, reading
    machine = build_machine(values, name=document.stem, file=document.file, sha256=document.sha256)
    keys = [
        f"bandwidths.measured[{index}].values.{mix}"
        for index, group in enumerate(values["bandwidths"]["measured"])
        for mix in group["values"]
    ]
    for number, cores, what in contradictions(machine):
        where = f"{machine.bandwidths[number].level}, {count(cores)}"
        reading.problem(keys[number], f"{what} ({where})", _COUNTING, "warning")
    return machine, reading


_COUNTING = (
    "count the bytes of all loads and stores, as likwid-bench does (an update is one of each), without write-allocates"
)


def check_machine(path: str | Path) -> tuple[Problem, ...]:
    """All problems of a machine file by itself, in the order of their lines; no error if it is fit for use."""
    try:
        document = read_document(Path(path), MACHINE_FILE)
    except MachineError as error:
        where = error.where if isinstance(error.where, Location) else Location(str(error.where))
        return (Problem(MACHINE_FILE, where, "", error.what, error.todo),)
    _, reading = examine(document)
    return tuple(sorted(reading.problems, key=lambda problem: problem.where.line or 0))


# {{{ sections


def _read_sections(reading: Reading, root: yaml.MappingNode) -> Values:
    entries = reading.entries(root, "")
    reading.unknown(entries, "", (*MACHINE, *SECTIONS))
    top = {name: node for name, node in entries.items() if name in MACHINE}
    values: Values = reading.fields(top, "", MACHINE)
    readers = {
        "topology": _read_topology,
        "core": _read_core,
        "caches": _read_caches,
        "paths": _read_paths,
        "memory": _read_memory,
        "stores": _read_stores,
        "overlap": _read_overlap,
        "bandwidths": _read_bandwidths,
        "peaks": _read_peaks,
        "compilers": _read_compilers,
    }
    for name, read in readers.items():
        if name in entries:
            values[name] = read(reading, entries[name])
        elif name not in OPTIONAL_SECTIONS:
            reading.problem(name, "is missing", "docs/machine-files.md says what belongs there")
    return values


def _read_topology(reading: Reading, node: yaml.Node) -> Values:
    return reading.fields(reading.entries(node, "topology"), "topology", TOPOLOGY)


def _read_memory(reading: Reading, node: yaml.Node) -> Values:
    return reading.fields(reading.entries(node, "memory"), "memory", MEMORY)


def _read_stores(reading: Reading, node: yaml.Node) -> Values:
    return reading.fields(reading.entries(node, "stores"), "stores", STORES)


def _read_overlap(reading: Reading, node: yaml.Node) -> Values:
    return reading.fields(reading.entries(node, "overlap"), "overlap", OVERLAP)


def _read_core(reading: Reading, node: yaml.Node) -> Values:
    entries = reading.entries(node, "core")
    flop = entries.pop("flop_per_cycle", None)
    values = reading.fields(entries, "core", CORE)
    values["flop_per_cycle"] = {}
    if flop is not None:
        precisions = reading.entries(flop, "core.flop_per_cycle")
        reading.unknown(precisions, "core.flop_per_cycle", PRECISIONS)
        for precision in PRECISIONS:
            if precision in precisions:
                key = f"core.flop_per_cycle.{precision}"
                row = reading.fields(reading.entries(precisions[precision], key), key, FLOP)
                values["flop_per_cycle"][precision] = {name: value for name, value in row.items() if value is not None}
    return values


def _read_tables(reading: Reading, node: yaml.Node, key: str, table: Table) -> dict[str, Values]:
    entries = reading.entries(node, key)
    return {
        name: reading.fields(reading.entries(row, f"{key}.{name}"), f"{key}.{name}", table)
        for name, row in entries.items()
    }


def _read_caches(reading: Reading, node: yaml.Node) -> dict[str, Values]:
    found = _read_tables(reading, node, "caches", CACHE)
    for name in found:
        if not _LEVEL_NAME.fullmatch(name):
            what = f"{name[:40]!r} is no name of a cache"
            reading.problem(f"caches.{name}", what, "begin it with a letter, such as L1; letters and digits follow")
    return found


def _read_paths(reading: Reading, node: yaml.Node) -> dict[str, Values]:
    return _read_tables(reading, node, "paths", PATH)


def _read_bandwidths(reading: Reading, node: yaml.Node) -> Values:
    entries = reading.entries(node, "bandwidths")
    mixes, measured = entries.pop("mixes", None), entries.pop("measured", None)
    values = reading.fields(entries, "bandwidths", BANDWIDTHS)
    values["mixes"], values["measured"] = {}, []
    if mixes is None:
        reading.problem("bandwidths.mixes", "is missing", "name each stream mix with its read and write streams")
    else:
        values["mixes"] = _read_tables(reading, mixes, "bandwidths.mixes", MIX)
    if measured is None:
        reading.problem("bandwidths.measured", "is missing", "list the measured series, or write []")
    else:
        nodes = reading.value(measured, "bandwidths.measured", items) or []
        values["measured"] = [_read_series(reading, row, f"bandwidths.measured[{i}]") for i, row in enumerate(nodes)]
    return values


def _read_series(reading: Reading, node: yaml.Node, key: str) -> Values:
    """One group of series: a level, core counts, and per mix one bandwidth for each core count."""
    reading.lines[key] = line_of(node)
    entries = reading.entries(node, key)
    series = entries.pop("values", None)
    values = reading.fields(entries, key, SERIES)
    values["values"] = {}
    if series is None:
        reading.problem(f"{key}.values", "is missing", "write `mix: [bandwidth at each core count]` lines under it")
    else:
        for mix, numbers in reading.entries(series, f"{key}.values").items():
            read = reading.value(numbers, f"{key}.values.{mix}", positive_numbers)
            if read is not None:
                values["values"][mix] = read
    return values


def _read_peaks(reading: Reading, node: yaml.Node) -> Values:
    entries = reading.entries(node, "peaks")
    measured = entries.pop("measured", None)
    values = reading.fields(entries, "peaks", PEAKS)
    values["measured"] = []
    if measured is None:
        reading.problem("peaks.measured", "is missing", "list the measured figures, or leave out the section")
        return values
    for index, row in enumerate(reading.value(measured, "peaks.measured", items) or []):
        key = f"peaks.measured[{index}]"
        reading.lines[key] = line_of(row)
        values["measured"].append(reading.fields(reading.entries(row, key), key, PEAK))
    return values


def _read_compilers(reading: Reading, node: yaml.Node) -> dict[str, str]:
    entries = reading.entries(node, "compilers")
    if not entries and isinstance(node, yaml.MappingNode):
        reading.problem("compilers", "is empty", "write at least one line such as `gcc: -O3`")
    flags = {name: reading.value(value, f"compilers.{name}", scalar) for name, value in entries.items()}
    return {name: value for name, value in flags.items() if value is not None}


# }}}
# {{{ building the value, once nothing is wrong


def build_machine(values: Values, *, name: str, file: str, sha256: str) -> Machine:
    """The machine with these values, which have passed all checks."""
    line = values["cache_line"]
    caches, paths = values["caches"], values["paths"]
    levels = [*caches, "Mem"]
    return Machine(
        name=name,
        title=values["title"],
        vendor=values["vendor"],
        isa=values["isa"],
        clock_hz=values["clock"],
        line_bytes=int(line),
        topology=Topology(**{name: value for name, value in values["topology"].items() if name != "source"}),
        core=_build_core(values["core"]),
        levels=tuple(_build_cache(level, row, line) for level, row in caches.items()),
        paths=tuple(_build_path(inner, outer, paths[inner + outer]) for inner, outer in pairwise(levels)),
        overlap=values["overlap"]["expression"],
        bandwidths=_build_bandwidths(values["bandwidths"]),
        compilers=tuple(Compiler(command, tuple(flags.split())) for command, flags in values["compilers"].items()),
        sources=_sources(values),
        file=file,
        sha256=sha256,
        stores=_build_stores(values["stores"]) if "stores" in values else undeclared_stores(values["isa"]),
        memory=_build_memory(values["memory"]) if "memory" in values else None,
        peaks=_build_peaks(values["peaks"]) if "peaks" in values else (),
    )


def _build_core(row: Values) -> CoreModel:
    flop = {precision: dict(rates) for precision, rates in row["flop_per_cycle"].items()}
    return CoreModel(
        microarchitecture=row["microarchitecture"],
        overlapping_ports=row["overlapping_ports"],
        non_overlapping_ports=row["non_overlapping_ports"],
        flop_per_cycle=flop,
        load_bytes_per_cycle=row["load_width"],
        store_bytes_per_cycle=row["store_width"],
    )


def _build_cache(name: str, row: Values, line: float) -> CacheLevel:
    return CacheLevel(
        name=name,
        size_bytes=row["size"],
        ways=row["ways"],
        sets=row["sets"],
        line_bytes=int(row["line"] or line),
        replacement=row["replacement"],
        write_back=row["write_back"],
        write_allocate=row["write_allocate"],
        cores_sharing=row["shared_by"],
        filled_by=row["filled_by"],
        inclusive_of_inner=row["inclusive"],
        clean_victims=bool(row["clean_victims"]),
        loads_pass_by=bool(row["loads_pass_by"]),
    )


def _build_path(inner: str, outer: str, row: Values) -> TransferPath:
    width = None if row["width"] == MEASURED else row["width"]
    penalties = row["penalty_load"], row["penalty_store"]
    return TransferPath(inner + outer, inner, outer, width, row["duplex"], *penalties, row["run_length"] or ())


def _build_memory(row: Values) -> MemoryChannels:
    return MemoryChannels(row["channels"], row["channel_width"], row["transfer_rate"])


def _build_peaks(section: Values) -> tuple[MeasuredPeak, ...]:
    factor = section["unit"]
    return tuple(
        MeasuredPeak(row["operation"], row["precision"], int(row["register"]), row["cores"], row["value"] * factor)
        for row in section["measured"]
    )


def _build_stores(row: Values) -> StoreBehaviour:
    return StoreBehaviour(row["streaming"], row["write_allocate_evasion"], row["evades_from_cores"])


def undeclared_stores(isa: str) -> StoreBehaviour:
    """What is taken where a file has no section `stores`: whether write-allocates are evaded is unknown.

    Every x86-64 core has streaming stores, since SSE2 belongs to that instruction set (Intel 64 and IA-32 Architectures
    Software Developer's Manual, Volume 1, Chapter 11). The pairs of AArch64 (STNP) are a hint that need not keep lines
    out of the caches (Arm Architecture Reference Manual, "Load/store non-temporal pair").
    """
    return StoreBehaviour(streaming=isa == "x86-64", evasion="unknown")


def _build_bandwidths(section: Values) -> tuple[BandwidthSeries, ...]:
    factor = section["unit"]
    mixes = {
        name: StreamMix(name, row["read"], row["write"], row["read_write"], float(row["flops"]), _whole(row["access"]))
        for name, row in section["mixes"].items()
    }
    return tuple(
        BandwidthSeries(
            level=group["level"],
            mix=mixes[mix],
            cores=group["cores"],
            bytes_per_second=tuple(number * factor for number in numbers),
            threads_per_core=group["threads_per_core"],
        )
        for group in section["measured"]
        for mix, numbers in group["values"].items()
    )


def _whole(size: float | None) -> int | None:
    return None if size is None else int(size)


def _sources(values: Values) -> dict[str, str]:
    """Every `source` by the dotted path of its section; the one at the top of the file is called "machine"."""
    found: dict[str, str] = {"machine": values["source"]}
    rows: list[tuple[str, Any]] = [(name, values[name]) for name in ("topology", "core", "overlap", "bandwidths")]
    rows += [(name, values[name]) for name in OPTIONAL_SECTIONS if name in values]
    rows += [(f"{section}.{name}", row) for section in ("caches", "paths") for name, row in values[section].items()]
    found |= {key: row["source"] for key, row in rows}
    for name, row in values["bandwidths"]["mixes"].items():
        if row["benchmark"]:
            found[f"bandwidths.mixes.{name}"] = row["benchmark"]
    return found


# }}}
