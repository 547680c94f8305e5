"""The schema of machine files: which sections and keys there are, what they mean, and how they become a `Machine`.

docs/machine-files.md describes it for people. `kernmodel.machine.files.checks` checks figures against one another.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import yaml

from kernmodel import isa
from kernmodel.errors import MachineError
from kernmodel.machine.files.checks import check_figures
from kernmodel.machine.model import (
    BandwidthSeries,
    CacheLevel,
    Compiler,
    CoreModel,
    FollowedStreams,
    Machine,
    MeasuredPeak,
    MemoryChannels,
    StoreBehaviour,
    StreamMix,
    Topology,
    TransferPath,
)
from kernmodel.machine.overlap import Overlap, parse_overlap
from kernmodel.machine.pages import Pages
from kernmodel.schema.document import Document, FileKind
from kernmodel.schema.fields import (
    Choice,
    Field,
    FieldReader,
    Integer,
    List,
    Number,
    Problem,
    Quantity,
    QuantityOrWord,
    RejectedError,
    Rows,
    Table,
    Values,
    ascending_pairs,
    attributes_of,
    built,
    core_counts,
    flag,
    items,
    names,
    number_or_quantity,
    positive_number,
    positive_numbers,
    scalar,
    text,
    unit,
)
from kernmodel.words import count

_WITHDRAWN = (("beside_work", "beside_vectors and beside_loads (`kernmodel machine probe`)"),)
MACHINE_FILE = FileKind("machine file", "docs/machine-files.md", MachineError, _WITHDRAWN)

MEASURED = "measured"
"""The width of a path whose time follows from measured bandwidth."""
UNKNOWN = "unknown"
"""The width of a path that no source gives."""


def _overlap(node: yaml.Node) -> Overlap:
    try:
        return parse_overlap(text(node))
    except MachineError as error:
        raise RejectedError(error.what, error.todo) from error


def _overlaps(node: yaml.Node) -> tuple[Overlap, ...]:
    return tuple(_overlap(item) for item in items(node))


def _instruction_set(node: yaml.Node) -> str:
    """One of those that are known when the file is read."""
    return Choice(isa.names())(node)


_COUNT, _SOURCE = Field(Integer()), Field(text)
TOPOLOGY: Table = {
    "sockets": Field(Integer(1, 256)),
    "numa_domains_per_socket": Field(Integer(1, 256)),
    "cores_per_socket": Field(Integer(1, 4096)),
    "threads_per_core": Field(Integer(1, 16)),
    "memory_per_numa_domain": Field(
        Quantity("data", least="64 MiB", most="64 TiB"), required=False, attribute="domain_memory_bytes"
    ),
    "source": _SOURCE,
}
_MOST_FLOP = Number(65536.0)
FLOP: Table = {
    "ADD": Field(_MOST_FLOP, required=False),
    "MUL": Field(_MOST_FLOP, required=False),
    "FMA": Field(_MOST_FLOP, required=False),
    "total": Field(_MOST_FLOP),
}
PRECISIONS = ("DP", "SP")
_WIDTH = Quantity("bytes per cycle", least="0.001 B/cy", most="4096 B/cy")
CORE: Table = {
    "microarchitecture": Field(text),
    "instructions": Field(text, required=False),
    "overlapping_ports": Field(names),
    "non_overlapping_ports": Field(names),
    "load_width": Field(_WIDTH, required=False, attribute="load_bytes_per_cycle"),
    "store_width": Field(_WIDTH, required=False, attribute="store_bytes_per_cycle"),
    "flop_per_cycle": Field({precision: Field(FLOP, required=False) for precision in PRECISIONS}, required=False),
    "source": _SOURCE,
}
_KEPT = ascending_pairs(number_or_quantity("data"), Number(1.0, zero=True), "bytes, share of lines kept")
CACHE: Table = {
    "size": Field(Quantity("data", least="64 B", most="64 GiB"), attribute="size_bytes"),
    "ways": _COUNT,
    "sets": _COUNT,
    "line": Field(Quantity("data"), required=False),
    "replacement": Field(Choice(("LRU", "PLRU", "FIFO", "RR", "MRU"))),
    "write_back": Field(flag),
    "write_allocate": Field(flag),
    "shared_by": Field(Integer(), attribute="cores_sharing"),
    "filled_by": Field(Choice(("miss", "victims"))),
    "clean_victims": Field(flag, required=False),
    "loads_pass_by": Field(flag, required=False),
    "hashed": Field(flag, required=False),
    "inclusive": Field(flag, required=False, attribute="inclusive_of_inner"),
    "kept": Field(_KEPT, required=False),
    "source": _SOURCE,
}
_RUN_LENGTH = ascending_pairs(
    number_or_quantity("data"), number_or_quantity("cycles per cache line"), "bytes, cycles per line"
)
_BESIDE_VECTORS = ascending_pairs(positive_number, Number(zero=True), "vectors written, cycles longer")
_PENALTY = Quantity("cycles per cache line", zero=True, most="10000 cy/CL")


def _beside(node: yaml.Node) -> tuple[float, ...]:
    """Cycles beside 0, 1, 2, … lines."""
    found = positive_numbers(node)
    if len(found) < LEAST_BESIDE:
        raise RejectedError("has too few figures", "write the cycles beside 0, 1, 2, … lines")
    return found


LEAST_BESIDE = 3
"""Figures of a line from memory beside lines of a cache: without them, beside one and beside more."""
PATH: Table = {
    "width": Field(QuantityOrWord(_WIDTH, (MEASURED, UNKNOWN))),
    "duplex": Field(Choice(("half", "full"))),
    "penalty_load": Field(_PENALTY, required=False, default=0.0),
    "penalty_store": Field(_PENALTY, required=False, default=0.0),
    "run_length": Field(_RUN_LENGTH, required=False),
    "run_length_of_three": Field(_RUN_LENGTH, required=False),
    "small_pages": Field(_PENALTY, required=False),
    "beside_memory": Field(_beside, required=False),
    "beside_last": Field(_beside, required=False),
    "beside_vectors": Field(_BESIDE_VECTORS, required=False),
    "beside_loads": Field(Number(zero=True), required=False),
    "source": _SOURCE,
}
MEMORY: Table = {
    "channels": Field(Integer(1, 1024)),
    "channel_width": Field(Quantity("data", least="1 B", most="4 KiB"), attribute="bytes_per_transfer"),
    "transfer_rate": Field(Quantity("frequency", least="1 MHz", most="1000 GHz"), attribute="transfers_per_second"),
    "source": _SOURCE,
}
STREAMS: Table = {
    "followed": Field(Integer(1, 1024)),
    "longer": Field(ascending_pairs(positive_number, number_or_quantity("cycles"), "lines from memory, cycles")),
    "source": _SOURCE,
}
EVASION = ("never", "always", "near-saturation", "instruction", "unknown")
STORES: Table = {
    "streaming": Field(flag),
    "write_allocate_evasion": Field(Choice(EVASION), attribute="evasion"),
    "evades_from_cores": Field(Integer(), required=False),
    "source": _SOURCE,
}
MIX: Table = {
    "read": Field(Integer(0)),
    "write": Field(Integer(0)),
    "read_write": Field(Integer(0), required=False, default=0),
    "flops": Field(Integer(0), required=False, default=0),
    "access": Field(Quantity("data"), required=False),
    "benchmark": Field(text, required=False),
}
SERIES: Table = {
    "level": Field(text),
    "threads_per_core": Field(Integer(), required=False, default=1),
    "cores": Field(core_counts),
    "values": Field(Rows(positive_numbers), todo="write `mix: [bandwidth at each core count]` lines under it"),
}
BANDWIDTHS: Table = {
    "unit": Field(unit("bandwidth")),
    "pages": Field(Choice(get_args(Pages)), required=False),
    "from_caches": Field(Number(0.5), required=False),
    "source": _SOURCE,
    "mixes": Field(Rows(MIX), todo="name each stream mix with its read and write streams"),
    "measured": Field(List(SERIES), todo="list the measured series, or write []"),
}
OPERATIONS = ("ADD", "MUL", "FMA", "DIV", "SQRT")
PEAK: Table = {
    "operation": Field(Choice(OPERATIONS)),
    "precision": Field(Choice(PRECISIONS)),
    "register": Field(Quantity("data")),
    "cores": _COUNT,
    "value": Field(positive_number),
}
PEAKS: Table = {
    "unit": Field(unit("flop rate")),
    "source": _SOURCE,
    "measured": Field(List(PEAK), todo="list the measured figures, or leave out the section"),
}
MACHINE: Table = {
    "title": Field(text),
    "vendor": Field(text),
    "isa": Field(_instruction_set, required=False, default=isa.DEFAULT),
    "clock": Field(Quantity("frequency", least="10 MHz", most="20 GHz"), attribute="clock_hz"),
    "cache_line": Field(Quantity("data", least="8 B", most="1 KiB")),
    "source": _SOURCE,
    "topology": Field(TOPOLOGY),
    "core": Field(CORE),
    "caches": Field(Rows(CACHE)),
    "paths": Field(Rows(PATH)),
    "memory": Field(MEMORY, required=False),
    "streams": Field(STREAMS, required=False),
    "stores": Field(STORES, required=False),
    "overlap": Field({"expression": Field(_overlap), "undecided": Field(_overlaps, required=False), "source": _SOURCE}),
    "bandwidths": Field(BANDWIDTHS),
    "peaks": Field(PEAKS, required=False),
    "compilers": Field(Rows(scalar)),
}
"""A machine file: reading, checking, building, figures by name and docs/machine-files.md all go by this."""


def read_machine(document: Document) -> tuple[Machine | None, tuple[Problem, ...]]:
    """The machine that a document describes, and all problems by line; the machine is None if one is an error."""
    values, reading = read_values(document)
    problems = tuple(sorted(reading.problems, key=lambda problem: problem.where.line or 0))
    if reading.errors:
        return None, problems
    return build_machine(values, name=document.stem, file=document.file, sha256=document.sha256), problems


def read_values(document: Document) -> tuple[Values, FieldReader]:
    """The values of a document by section and key, in base units, and the reading with all problems."""
    reading = FieldReader(document.file, MACHINE_FILE)
    values = reading.fields(reading.entries(document.root, ""), "", MACHINE)
    check_figures(reading, values)
    return values, reading


def examine(document: Document) -> tuple[Machine | None, FieldReader]:
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
        where = f"{machine.bandwidths[number].level}, {count(cores, 'core')}"
        reading.problem(keys[number], f"{what} ({where})", _COUNTING, "warning")
    return machine, reading


_COUNTING = (
    "count the bytes of all loads and stores, as likwid-bench does (an update is one of each), without write-allocates"
)


def build_machine(values: Values, *, name: str, file: str, sha256: str) -> Machine:
    """The machine with these values, which have passed all checks."""
    line = values["cache_line"]
    levels = [*values["caches"], "Mem"]
    return built(
        Machine,
        MACHINE,
        values,
        name=name,
        line_bytes=int(line),
        topology=built(Topology, TOPOLOGY, values["topology"]),
        core=_build_core(values["core"], Path(file).parent),
        levels=tuple(_build_cache(level, row, line) for level, row in values["caches"].items()),
        paths=tuple(_build_path(inner, outer, values["paths"][inner + outer]) for inner, outer in pairwise(levels)),
        overlap=values["overlap"]["expression"],
        undecided=values["overlap"].get("undecided") or (),
        bandwidths=_build_bandwidths(values["bandwidths"]),
        pages=values["bandwidths"].get("pages"),
        from_caches=values["bandwidths"].get("from_caches"),
        compilers=tuple(Compiler(command, tuple(flags.split())) for command, flags in values["compilers"].items()),
        sources=_sources(values),
        file=file,
        sha256=sha256,
        stores=built(StoreBehaviour, STORES, values["stores"])
        if "stores" in values
        else undeclared_stores(values["isa"]),
        memory=built(MemoryChannels, MEMORY, values["memory"]) if "memory" in values else None,
        streams=built(FollowedStreams, STREAMS, values["streams"]) if "streams" in values else None,
        peaks=_build_peaks(values["peaks"]) if "peaks" in values else (),
    )


def _flop_rates(core: Values) -> dict[str, dict[str, float]]:
    return {
        precision: {name: rate for name, rate in rates.items() if rate is not None}
        for precision, rates in core.get("flop_per_cycle", {}).items()
    }


def _build_cache(name: str, row: Values, line: float) -> CacheLevel:
    flags = {key: bool(row[key]) for key in ("clean_victims", "loads_pass_by", "hashed")}
    others = {"line_bytes": int(row["line"] or line), "kept": row["kept"] or ()}
    return built(CacheLevel, CACHE, row, name=name, **flags, **others)


def _build_path(inner: str, outer: str, row: Values) -> TransferPath:
    width = None if row["width"] in (MEASURED, UNKNOWN) else row["width"]
    series = ("run_length", "run_length_of_three", "beside_memory", "beside_last", "beside_vectors")
    others = {"bytes_per_cycle": width, **{key: row[key] or () for key in series}}
    return built(TransferPath, PATH, row, name=inner + outer, inner=inner, outer=outer, **others)


def _build_core(section: Values, folder: Path) -> CoreModel:
    """The core; a file of rows, which lies in this folder or where its path leads, is a part of its name."""
    name, rows = section["microarchitecture"], section["instructions"]
    if rows is not None:
        name = isa.with_rows(name, str(folder / rows))
    return built(CoreModel, CORE, section, microarchitecture=name, flop_per_cycle=_flop_rates(section))


def _build_peaks(section: Values) -> tuple[MeasuredPeak, ...]:
    return tuple(
        built(
            MeasuredPeak,
            PEAK,
            row,
            width_bytes=int(row["register"]),
            flop_per_second=row["value"] * section["unit"],
        )
        for row in section["measured"]
    )


def undeclared_stores(name: str) -> StoreBehaviour:
    """What is taken where a file has no section `stores`, by its instruction set: whether write-allocates are evaded is
    unknown.

    The pairs of AArch64 (STNP) are a hint that need not keep lines out of the caches (Arm Architecture Reference
    Manual, "Load/store non-temporal pair").
    """
    return StoreBehaviour(streaming=isa.isa_of(name).streaming_stores, evasion="unknown")


def _build_bandwidths(section: Values) -> tuple[BandwidthSeries, ...]:
    mixes = {
        name: built(
            StreamMix,
            MIX,
            row,
            name=name,
            flops_per_iteration=float(row["flops"]),
            access_bytes=None if row["access"] is None else int(row["access"]),
        )
        for name, row in section["mixes"].items()
    }
    unit = section["unit"]
    groups = [(attributes_of(BandwidthSeries, SERIES, group), group["values"]) for group in section["measured"]]
    return tuple(
        BandwidthSeries(**shared, mix=mixes[mix], bytes_per_second=tuple([number * unit for number in numbers]))
        for shared, values in groups
        for mix, numbers in values.items()
    )


def _sources(values: Values) -> dict[str, str]:
    """Every `source` by the dotted path of its section; the one at the top of the file is called "machine"."""
    found: dict[str, str] = {"machine": values["source"]}
    rows: list[tuple[str, Any]] = [(name, values[name]) for name in ("topology", "core", "overlap", "bandwidths")]
    rows += [(name, values[name]) for name in ("memory", "streams", "stores", "peaks") if name in values]
    rows += [(f"{section}.{name}", row) for section in ("caches", "paths") for name, row in values[section].items()]
    found |= {key: row["source"] for key, row in rows}
    for name, row in values["bandwidths"]["mixes"].items():
        if row["benchmark"]:
            found[f"bandwidths.mixes.{name}"] = row["benchmark"]
    return found
