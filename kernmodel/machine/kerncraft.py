"""Machine files of Kerncraft (version 0.8) in kernmodel's own schema: `kernmodel machine import FILE`.

Facts carry over: topology, caches, widths, flags of overlap, measured bandwidths. What Kerncraft does not say stays
out, with a comment where to fill it in; figures that contradict one another are named. Performance counters are left
behind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import Any

from kernmodel.errors import Location, MachineError, Note
from kernmodel.isa import split_vectors
from kernmodel.machine.files.write import Facts, with_unit, write_facts
from kernmodel.machine.model import Machine
from kernmodel.resources import carried_files
from kernmodel.schema.document import FileKind, read_text
from kernmodel.schema.yaml_nodes import load
from kernmodel.units import FACTORS, format_bytes
from kernmodel.value_types import dataclass

_FILE = FileKind("machine file of Kerncraft", "docs/machine-files.md", MachineError)
_NAMES = {"CSX": "CLX", "ZEN1": "ZEN"}
"""OSACA's names of microarchitectures where kernmodel's differ."""

_DROPPED_FLAG = re.compile(r"-f?openmp|-qopenmp|-fopenmp|-D\w.*|-l\w+|-ffreestanding|-fargument-noalias")
"""Compiler flags that a kernel alone does not need: libraries, macros, OpenMP."""


@dataclass(frozen=True, slots=True)
class Imported:
    """A machine file made from another tool's: its text, and what is missing, suspicious or left out."""

    text: str
    notes: tuple[Note, ...]


@dataclass(slots=True)
class _Import:
    """The state of one import: where it reads from, a carried machine with the same core, and the notes so far."""

    file: str
    kin: Machine | None = None
    notes: list[Note] = field(default_factory=list)

    @property
    def source(self) -> str:
        return f"Kerncraft machine file {Path(self.file).name}"

    def note(self, code: str, text: str) -> None:
        self.notes.append(Note(code, text, where=Location(self.file)))

    def missing(self, what: str, value: Any) -> Any:
        """`value`, with a note if Kerncraft does not give it."""
        if value is None or value == "INFORMATION_REQUIRED":
            self.note("missing-fact", f"{what} is not given")
            return None
        return value


def read_kerncraft(path: str | Path) -> Imported:
    """Translate the Kerncraft machine file at `path`.

    The notes stand in the text as comments too. Where a fact is missing that a machine file needs, the text has a
    comment in its place, and the check of machine files asks for it.

    Raises:
        MachineError: unreadable, no YAML, or no Kerncraft machine file.
    """
    text, _ = read_text(Path(path), _FILE)
    data = _read_yaml(text, str(path))
    state = _Import(str(path), _carried_kin(_microarchitecture(data)))
    for remark in dict.fromkeys(re.findall(r"^#\s*FIXME\s+(\S.*)$", text, re.MULTILINE)):
        state.note("its-own-doubts", f"the Kerncraft file itself says: {remark.strip()}")
    levels = _levels(state, data)
    facts = {
        **_head(state, data),
        "topology": _topology(state, data),
        "core": _core(state, data),
        "caches": {level["level"]: _cache(state, level, levels) for level in levels[:-1]},
        "paths": _paths(state, levels),
        **_stores(state),
        "overlap": {
            "expression": _overlap(state, levels),
            "source": f"{state.source}, `transfers overlap` of each level",
        },
        "bandwidths": _bandwidths(state, data, levels),
        "compilers": _compilers(state, data),
    }
    comments = [f"Imported from the {state.source}.", *(f"{note.code}: {note.text}" for note in state.notes)]
    return Imported(write_facts(facts, comments), tuple(state.notes))


def _read_yaml(text: str, file: str) -> dict[str, Any]:
    data = load(text, file, error=MachineError)
    needed = ("memory hierarchy", "clock", "cores per socket")
    lacking = [key for key in needed if not isinstance(data, dict) or key not in data]
    if lacking or not isinstance(data["memory hierarchy"], list):
        todo = "give a machine file of Kerncraft, version 0.8"
        what = f"is no Kerncraft machine file: it lacks {', '.join(map(repr, lacking)) or 'a list of levels'}"
        raise MachineError(what, where=file, todo=todo)
    return data  # type: ignore[no-any-return]


def _mapping(value: Any) -> dict[str, Any]:
    """`value` as a mapping; an `!!omap` arrives as a list of pairs."""
    if isinstance(value, dict):
        return value
    pairs = value if isinstance(value, list) else []
    return {pair[0]: pair[1] for pair in pairs if isinstance(pair, tuple) and len(pair) == 2}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _whole(value: Any) -> str | None:
    """A count such as 10, 10.0 or "64 B" without its unit, as text."""
    number = _split(value)[0]
    return None if number is None or number != int(number) else str(int(number))


def _split(value: Any) -> tuple[float | None, str]:
    """Number and unit of `64`, `64 B` or `2.5 GHz`."""
    match = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(\S*)\s*", str(value))
    return (float(match[1]), match[2]) if match else (None, "")


def _head(state: _Import, data: Mapping[str, Any]) -> Facts:
    title = _text(data.get("model name")) or _text(data.get("model type"))
    kind = f"{data.get('model name')} {data.get('model type')}"
    vendors = ("Intel", "AMD", "Fujitsu", "Cavium", "Marvell")
    isa = str(data.get("isa", "x86")).lower()
    line = _whole(data.get("cacheline size"))
    return {
        "title": state.missing("model name", title),
        "vendor": state.missing("vendor", next((name for name in vendors if name in kind), None)),
        # a carried machine of the core knows the length of its vectors, too
        "isa": state.kin.isa if state.kin and state.kin.isa.startswith(isa) else "x86-64" if isa == "x86" else isa,
        "clock": state.missing("clock", _text(data.get("clock"))),
        "cache_line": state.missing("cacheline size", f"{line} B" if line else None),
        "source": state.source,
    }


def _topology(state: _Import, data: Mapping[str, Any]) -> Facts:
    keys = {
        "sockets": "sockets",
        "numa_domains_per_socket": "NUMA domains per socket",
        "cores_per_socket": "cores per socket",
        "threads_per_core": "threads per core",
    }
    facts = {name: state.missing(key, _whole(data.get(key))) for name, key in keys.items()}
    per_domain = _whole(data.get("cores per NUMA domain"))
    domains, cores = facts["numa_domains_per_socket"], facts["cores_per_socket"]
    if per_domain and domains and cores and int(per_domain) * int(domains) != int(cores):
        what = f"{per_domain} cores in each of {domains} NUMA domains are not the {cores} cores of a socket"
        state.note("inconsistent-topology", what)
    return {**facts, "source": state.source}


def _microarchitecture(data: Mapping[str, Any]) -> str | None:
    osaca = _text(_mapping(data.get("in-core model")).get("OSACA"))
    return _NAMES.get(osaca, osaca) if osaca else None


def _core(state: _Import, data: Mapping[str, Any]) -> Facts:
    # a carried machine of the core knows the length of its vectors, too
    name = state.kin.core.microarchitecture if state.kin else _microarchitecture(data)
    overlapping, others, origin = _ports(state, data, name)
    flop = _flop_per_cycle(state, data)
    return {
        "microarchitecture": state.missing("the microarchitecture (in-core model of OSACA)", name),
        "overlapping_ports": overlapping,
        "non_overlapping_ports": others,
        **({"flop_per_cycle": flop} if flop else {}),
        "source": f"{state.source}; ports: {origin}",
    }


def _carried_kin(name: str | None) -> Machine | None:
    """The first carried machine with this microarchitecture."""
    from kernmodel.machine.load import FOLDER, load_path

    machines = (load_path(path) for path in carried_files(FOLDER, ".yml"))
    return next((one for one in machines if split_vectors(one.core.microarchitecture)[0] == name), None)


def _ports(state: _Import, data: Mapping[str, Any], name: str | None) -> tuple[list[str] | None, list[str] | None, str]:
    """Overlapping and other ports: as a carried machine of that core names them, else OSACA's names."""
    if state.kin:
        core = state.kin.core
        origin = f"as in the machine file {state.kin.name}"
        return list(core.overlapping_ports), list(core.non_overlapping_ports), origin
    groups = []
    for key in ("overlapping model", "non-overlapping model"):
        ports = _mapping(_mapping(data.get(key)).get("ports")).get("OSACA")
        groups.append([str(port) for port in ports] if isinstance(ports, list) else None)
    overlapping, others = (
        state.missing("overlapping ports", groups[0]),
        state.missing("non-overlapping ports", groups[1]),
    )
    if overlapping and others:
        overlapping = [port for port in overlapping if port not in others]
    state.note("foreign-ports", f"no carried machine has the core {name}: its ports keep OSACA's names; adapt them")
    return overlapping, others, "OSACA's names"


def _flop_per_cycle(state: _Import, data: Mapping[str, Any]) -> Facts:
    found: dict[str, dict[str, str]] = {}
    for precision in ("DP", "SP"):
        rates = _mapping(_mapping(data.get("FLOPs per cycle")).get(precision))
        row = {name: _whole(rates.get(name)) for name in ("ADD", "MUL", "FMA", "total")}
        known = {name: value for name, value in row.items() if value}
        if "total" not in known:
            state.note("missing-fact", f"FLOPs per cycle of {precision} are not given")
            continue
        found[precision] = _checked_rates(state, precision, known)
    return found


def _checked_rates(state: _Import, precision: str, rates: dict[str, str]) -> dict[str, str]:
    """Rates whose total is at least each of them; suspicious ones are named."""
    numbers = {name: int(value) for name, value in rates.items()}
    most = max(numbers.values())
    if numbers["total"] < most:
        what = f"{precision} total of {numbers['total']} FLOP/cy is smaller than its parts; {most} is written"
        state.note("inconsistent-flop-rate", what)
    together = max(numbers.get("FMA", 0), numbers.get("ADD", 0) + numbers.get("MUL", 0))
    if numbers["total"] > together:
        what = f"{precision} total of {numbers['total']} FLOP/cy exceeds FMA as well as ADD + MUL ({together}): "
        state.note("suspicious-flop-rate", f"{what}the rates may be those of one of several units")
    return rates | {"total": str(most)}


def _levels(state: _Import, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The levels, caches first and memory, renamed "Mem", last."""
    levels = [dict(level) for level in data["memory hierarchy"] if isinstance(level, dict) and level.get("level")]
    for level in levels:
        level["level"] = "Mem" if str(level["level"]).upper() == "MEM" else str(level["level"])
    if len(levels) < 2 or levels[-1]["level"] != "Mem":
        raise MachineError("its memory hierarchy does not end with MEM", where=state.file, todo="check the file")
    return levels


def _cache(state: _Import, level: Mapping[str, Any], levels: list[dict[str, Any]]) -> Facts:
    cache, name = _mapping(level.get("cache per group")), level["level"]
    victims, suppliers = _suppliers(levels, name)
    through = any(_mapping(inner.get("cache per group")).get("load_from") == name for inner in suppliers)
    if victims and through:
        what = f"{name} takes victims, yet loads go through it too; written as such a victim cache"
        state.note("loads-through-victims", what)
    line = _whole(cache.get("cl_size"))
    return {
        "size": _size(state, level, cache),
        "ways": state.missing(f"ways of {name}", _whole(cache.get("ways"))),
        "sets": state.missing(f"sets of {name}", _whole(cache.get("sets"))),
        **({"line": f"{line} B"} if line else {}),
        "replacement": state.missing(f"replacement of {name}", _text(cache.get("replacement_policy"))),
        "write_back": state.missing(f"write_back of {name}", _flag(cache.get("write_back"))),
        "write_allocate": state.missing(f"write_allocate of {name}", _flag(cache.get("write_allocate"))),
        "shared_by": state.missing(f"cores per group of {name}", _whole(level.get("cores per group"))),
        "filled_by": "victims" if victims else "miss",
        **({"clean_victims": "true", "loads_pass_by": str(not through).lower()} if victims else {}),
        "source": state.source,
    }


def _flag(value: Any) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None


def _suppliers(levels: list[dict[str, Any]], name: str) -> tuple[bool, list[dict[str, Any]]]:
    """Whether some level sends its victims to `name`, and those levels."""
    found = [level for level in levels if _mapping(level.get("cache per group")).get("victims_to") == name]
    return bool(found), found


def _size(state: _Import, level: Mapping[str, Any], cache: Mapping[str, Any]) -> str | None:
    """Sets × ways × line; Kerncraft's `size per group` (kB and MB meaning 1024) is only compared with it."""
    figures = [_split(cache.get(key))[0] for key in ("sets", "ways", "cl_size")]
    number, unit = _split(level.get("size per group"))
    stated = None if number is None or unit not in FACTORS["data"] else number * _binary(unit)
    if any(figure is None for figure in figures):
        return state.missing(f"size of {level['level']}", with_unit(stated, "data") if stated else None)  # type: ignore[no-any-return]
    product = 1.0
    for figure in figures:
        product *= figure or 0.0
    if stated is not None and abs(stated - product) > 0.005 * product:
        what = f"size {level['size per group']} of {level['level']} is not sets × ways × line"
        state.note("inconsistent-size", f"{what} = {with_unit(product, 'data')}, which is written")
    _compare_share(state, level, product)
    return with_unit(product, "data")


def _compare_share(state: _Import, level: Mapping[str, Any], size: float) -> None:
    """Name a cache whose size per core differs from that of a carried machine with the same core."""
    cores = _split(level.get("cores per group"))[0]
    if state.kin is None or not cores:
        return
    for known in state.kin.levels:
        share, usual = size / cores, known.size_bytes / known.cores_sharing
        if known.name == level["level"] and abs(share - usual) > 0.01 * usual:
            what = f"{known.name} has {format_bytes(share)} for each core, the machine {state.kin.name}"
            state.note("unusual-share", f"{what} {format_bytes(usual)}: check the size and `cores per group`")


def _binary(unit: str) -> float:
    return FACTORS["data"].get(f"{unit[0].upper()}iB", 1.0) if len(unit) == 2 else FACTORS["data"][unit]


def _paths(state: _Import, levels: list[dict[str, Any]]) -> Facts:
    return {inner["level"] + outer["level"]: _path(state, inner, outer) for inner, outer in pairwise(levels)}


def _path(state: _Import, inner: Mapping[str, Any], outer: Mapping[str, Any]) -> Facts:
    name = inner["level"] + outer["level"]
    given = outer.get("upstream throughput")
    width, duplex = (str(given[0]), str(given[1])) if isinstance(given, list) and len(given) > 1 else (None, None)
    if width and not re.fullmatch(r"[0-9.]+ B/cy", width):
        width = "measured" if outer["level"] == "Mem" else None
    penalties = {}
    for kind in ("load", "store"):
        number = _split(
            outer.get(f"penalty cycles per cacheline {kind}", outer.get(f"penalty cycles per cachlinie {kind}"))
        )[0]
        if number:
            penalties[f"penalty_{kind}"] = f"{number:g} cy/CL"
    misspelt = [key for key in outer if "cachlinie" in str(key)]
    if misspelt:
        state.note("misspelt-key", f"{misspelt[0]!r} of {outer['level']}: Kerncraft ignores it, here it counts")
    return {
        "width": state.missing(f"width of {name}", width),
        "duplex": state.missing(f"duplexity of {name}", duplex.removesuffix("-duplex") if duplex else None),
        **penalties,
        "source": state.source,
    }


def _stores(state: _Import) -> Facts:
    """Kerncraft says nothing of write-allocates: as a carried machine of that core says, else left out."""
    if state.kin is None or "stores" not in state.kin.sources:
        state.note("missing-fact", "what the cores can do about write-allocates (section stores) is not given")
        return {"stores": None}
    origin = f"not in the {state.source}; as in the machine file {state.kin.name}: {state.kin.sources['stores']}"
    stores = state.kin.stores
    cores = {} if stores.evades_from_cores is None else {"evades_from_cores": str(stores.evades_from_cores)}
    streaming = _flag(stores.streaming)
    return {"stores": {"streaming": streaming, "write_allocate_evasion": stores.evasion, **cores, "source": origin}}


def _overlap(state: _Import, levels: list[dict[str, Any]]) -> str:
    """`transfers overlap` of a level speaks of the path to the level inside; of L1, of the one to the registers.

    Times that overlap stand alone in the max, the others are added up.
    """
    times = [
        "T_nOL",
        *(f"T_{inner['level']}{outer['level']}" for inner, outer in pairwise(levels)),
    ]
    alone, serial = ["T_OL"], list[str]()
    for level, time in zip(levels, times, strict=True):
        overlaps = level.get("transfers overlap")
        if overlaps is None:
            state.note(
                "missing-fact", f"`transfers overlap` of {level['level']} is not given; {time} is taken as serial"
            )
        (alone if overlaps else serial).append(time)
    return f"max({', '.join([*alone, *([' + '.join(serial)] if serial else [])])})"


def _bandwidths(state: _Import, data: Mapping[str, Any], levels: list[dict[str, Any]]) -> Facts:
    benchmarks = _mapping(data.get("benchmarks"))
    mixes = {str(name): _mix(_mapping(row)) for name, row in _mapping(benchmarks.get("kernels")).items()}
    known = {level["level"] for level in levels}
    groups, foreign = [], list[str]()
    for level, by_threads in _mapping(benchmarks.get("measurements")).items():
        name = "Mem" if str(level).upper() == "MEM" else str(level)
        if name not in known:
            state.note("unknown-level", f"measurements of {level} are left out: there is no such level")
            continue
        for threads, measured in _mapping(by_threads).items():
            row = _mapping(measured)
            if _is_foreign(data, row):
                foreign.append(f"{level} with {threads} thread(s) per core")
            else:
                groups.append(_group(state, name, threads, row, mixes))
    if foreign:
        what = f"measurements of {', '.join(foreign)} go to more cores than the machine has"
        state.note("foreign-measurements", f"{what}: they are another machine's, and left out")
    elif not groups:
        state.note("missing-fact", "measured bandwidth is not given")
    return {
        "unit": "GB/s",
        "source": f"{state.source}, likwid-bench results as reported (maximum of the runs, without write-allocates)",
        "mixes": mixes,
        "measured": groups,
    }


def _mix(row: Mapping[str, Any]) -> Facts:
    def streams(kind: str) -> str:
        return _whole(_mapping(row.get(f"{kind} streams")).get("streams")) or "0"

    benchmark = row.get("fastest bench kernel")
    return {
        "read": streams("read"),
        "write": streams("write"),
        "read_write": streams("read+write"),
        "flops": _whole(row.get("FLOPs per iteration")) or "0",
        **_access(str(benchmark)),
        **({"benchmark": f"likwid-bench {benchmark}"} if benchmark else {}),
    }


_ACCESS = {"avx512": "64 B", "avx": "32 B", "sse": "16 B"}
"""Size of one load or store by what the name of a kernel of likwid-bench says of its instructions."""


def _access(benchmark: str) -> Facts:
    found = [size for part, size in _ACCESS.items() if part in benchmark.split("_")]
    return {"access": found[0]} if found else {}


def _group(state: _Import, level: str, threads: Any, row: Mapping[str, Any], mixes: Facts) -> Facts:
    cores = [str(count) for count in _counts(row)]
    values = {}
    for mix, numbers in _mapping(row.get("results")).items():
        if mix not in mixes or not isinstance(numbers, list) or len(numbers) != len(cores):
            state.note(
                "incomplete-series", f"the series {mix} of {level} with {threads} thread(s) per core is left out"
            )
            continue
        values[mix] = list(_gigabytes(numbers))
    return {"level": level, "threads_per_core": str(threads), "cores": _ranges(cores), "values": values}


def _counts(row: Mapping[str, Any]) -> list[int]:
    """The core counts of a measurement; empty if they are no list of counts."""
    cores = row.get("cores")
    counts = [_whole(count) for count in cores] if isinstance(cores, list) else []
    return [] if None in counts else [int(count or 0) for count in counts]


def _is_foreign(data: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether measurements go to more cores than the machine has, so that they must be another machine's."""
    sockets, cores = _whole(data.get("sockets")), _whole(data.get("cores per socket"))
    most = max(_counts(row), default=0)
    return sockets is not None and cores is not None and most > int(sockets) * int(cores)


def _ranges(cores: list[str]) -> str | list[str]:
    first, last = (int(cores[0]), int(cores[-1])) if cores else (1, 0)
    return f"{first}-{last}" if last > first and cores == [str(n) for n in range(first, last + 1)] else cores


def _gigabytes(numbers: list[Any]) -> Iterator[str]:
    """Bandwidths in GB/s, digits as given where the unit is GB/s already."""
    for value in numbers:
        number, unit = _split(value)
        factor = FACTORS["bandwidth"].get(unit)
        if number is None or factor is None:
            yield str(value)
        else:
            yield f"{number * factor / FACTORS['bandwidth']['GB/s']:.10g}"


def _compilers(state: _Import, data: Mapping[str, Any]) -> Facts:
    """gcc first, then clang, then the others; flags that a kernel alone does not need are dropped."""
    given = _mapping(data.get("compiler"))
    order = sorted(given, key=lambda name: ("gcc", "clang").index(name) if name in ("gcc", "clang") else 2)
    found = {}
    for name in order:
        flags = str(given[name]).split()
        kept = [flag for flag in flags if not _DROPPED_FLAG.fullmatch(flag)]
        found[name] = " ".join(kept)
        if len(kept) < len(flags):
            dropped = " ".join(flag for flag in flags if flag not in kept)
            state.notes.append(
                Note("dropped-flags", f"of the flags of {name}, {dropped} are dropped", kind="assumption")
            )
    state.missing("compiler", found or None)
    return found
