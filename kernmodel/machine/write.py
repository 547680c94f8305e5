"""Machine files as text: facts laid out for people to read and edit, and a `Machine` back as such facts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from kernmodel.machine.model import (
    BandwidthSeries,
    CacheLevel,
    Machine,
    MeasuredPeak,
    MemoryChannels,
    StoreBehaviour,
    StreamMix,
    TransferPath,
)
from kernmodel.units import FACTORS

Facts = Mapping[str, Any]
"""A machine file as nested mappings and lists of texts; None: not known, written as a comment to fill in."""

WIDTH = 118
_PLAIN = re.compile(r"(?:[A-Za-z0-9_./+(]|-(?=\w))[^\[\]{},#:\"'`\n]*")
_BLOCK_PLAIN = re.compile(r"(?:[A-Za-z0-9_./+(]|-(?=\w))(?:[^#:\n]|:(?=\S)|(?<! )#)*")


def write_facts(facts: Facts, comments: Sequence[str] = ()) -> str:
    """The text of a machine file: `comments` at the top, then the facts in their order, sections set apart."""
    lines = [line for comment in comments for line in wrap(f"# {comment}", WIDTH, subsequent_indent="#   ")]
    for key, value in facts.items():
        if isinstance(value, Mapping):
            lines.append("")
        lines += _entry(key, value, "")
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, indent: str) -> list[str]:
    """The lines of one `key: value`."""
    head = f"{indent}{_quoted(key, _PLAIN)}:"
    if value is None:
        return [f"{indent}# {key}:  (not known; fill it in)"]
    if isinstance(value, Mapping):
        flow = _flow(value, len(head))
        if flow is not None and indent:
            return [f"{head} {flow}"]
        return [head, *(line for name, item in value.items() for line in _entry(name, item, indent + "  "))]
    if isinstance(value, list):
        return _list_entry(head, value, indent)
    return _wrapped(head, _quoted(value, _BLOCK_PLAIN).split(" "), indent, " ")


def _list_entry(head: str, value: list[Any], indent: str) -> list[str]:
    if value and isinstance(value[0], Mapping):
        return [head, *(line for item in value for line in _item(item, indent))]
    words = [_row(item) if isinstance(item, list) else _quoted(item, _PLAIN) for item in value]
    words = [word + ("," if index < len(words) - 1 else "]") for index, word in enumerate(words)] or ["]"]
    return _wrapped(head, ["[" + words[0], *words[1:]], indent, " ")


def _row(value: Sequence[str]) -> str:
    """A list within a list."""
    return f"[{', '.join(_quoted(item, _PLAIN) for item in value)}]"


def _item(item: Facts, indent: str) -> Iterator[str]:
    """A mapping as an item of a list: its first line starts with a dash."""
    lines = [line for key, value in item.items() for line in _entry(key, value, indent + "    ")]
    yield f"{indent}  - {lines[0].lstrip()}"
    yield from lines[1:]


def _flow(value: Facts, used: int) -> str | None:
    """A short mapping of single values in one line, or None. Tables with a source stay in lines of their own."""
    if "source" in value or not all(isinstance(item, str) for item in value.values()):
        return None
    text = "{" + ", ".join(f"{_quoted(key, _PLAIN)}: {_quoted(item, _PLAIN)}" for key, item in value.items()) + "}"
    return text if used + len(text) < WIDTH else None


def _wrapped(head: str, words: Sequence[str], indent: str, between: str) -> list[str]:
    """`head` and words, broken into lines that YAML folds together again."""
    lines, line = [], head
    for word in words:
        if len(line) + len(word) >= WIDTH and line.strip() and line != head:
            lines.append(line)
            line = f"{indent}    {word}"
        else:
            line += between + word
    return [*lines, line]


def _quoted(text: str, plain: re.Pattern[str]) -> str:
    """`text` as a YAML scalar: as it is where that is safe, else in double quotes."""
    safe = plain.fullmatch(text) and "  " not in text and text == text.strip()
    return text if safe else json.dumps(text, ensure_ascii=False)


# {{{ a machine back as facts


def machine_to_text(machine: Machine, comments: Sequence[str] = ()) -> str:
    """The machine as the text of a machine file; read again, it gives an equal machine (but for file and hash)."""
    return write_facts(machine_to_facts(machine), comments)


def machine_to_facts(machine: Machine) -> Facts:
    """The machine as the nested facts of its file, with units."""
    sources, topology, core = machine.sources, machine.topology, machine.core
    return {
        "title": machine.title,
        "vendor": machine.vendor,
        "isa": machine.isa,
        "clock": with_unit(machine.clock_hz, "frequency"),
        "cache_line": f"{machine.line_bytes} B",
        "source": sources["machine"],
        "topology": {
            "sockets": str(topology.sockets),
            "numa_domains_per_socket": str(topology.numa_domains_per_socket),
            "cores_per_socket": str(topology.cores_per_socket),
            "threads_per_core": str(topology.threads_per_core),
            "source": sources["topology"],
        },
        "core": {
            "microarchitecture": core.microarchitecture,
            "overlapping_ports": list(core.overlapping_ports),
            "non_overlapping_ports": list(core.non_overlapping_ports),
            **_width_facts(core.load_bytes_per_cycle, core.store_bytes_per_cycle),
            **({"flop_per_cycle": _flop_facts(core.flop_per_cycle)} if core.flop_per_cycle else {}),
            "source": sources["core"],
        },
        "caches": {level.name: _cache_facts(level, sources[f"caches.{level.name}"]) for level in machine.levels},
        "paths": {path.name: _path_facts(path, sources[f"paths.{path.name}"]) for path in machine.paths},
        **({"memory": _memory_facts(machine.memory, sources["memory"])} if machine.memory else {}),
        **({"stores": store_facts(machine.stores, sources["stores"])} if "stores" in sources else {}),
        "overlap": {"expression": str(machine.overlap), "source": sources["overlap"]},
        "bandwidths": _bandwidth_facts(machine),
        **({"peaks": _peak_facts(machine.peaks, sources["peaks"])} if machine.peaks else {}),
        "compilers": {compiler.name: " ".join(compiler.flags) for compiler in machine.compilers},
    }


def with_unit(value: float, dimension: str) -> str:
    """`value` with the largest unit of `dimension` in which it is at least one and reads back exactly."""
    for unit, factor in sorted(FACTORS[dimension].items(), key=lambda entry: -entry[1]):
        text = f"{value / factor:.10g}"
        if value >= factor and "e" not in text and float(text) * factor == value:
            # of units with the same factor ("B", "byte", "bytes") the first one counts
            return f"{text} {unit}"
    return f"{value!r} {next(iter(FACTORS[dimension]))}"


def _width_facts(load: float | None, store: float | None) -> Facts:
    widths = {"load_width": load, "store_width": store}
    return {name: f"{_number(value)} B/cy" for name, value in widths.items() if value is not None}


def _memory_facts(memory: MemoryChannels, source: str) -> Facts:
    return {
        "channels": str(memory.channels),
        "channel_width": with_unit(memory.bytes_per_transfer, "data"),
        "transfer_rate": with_unit(memory.transfers_per_second, "frequency"),
        "source": source,
    }


def _peak_facts(peaks: Sequence[MeasuredPeak], source: str) -> Facts:
    rows = [
        {
            "operation": peak.operation,
            "precision": peak.precision,
            "register": f"{peak.width_bytes} B",
            "cores": str(peak.cores),
            "value": repr(peak.flop_per_second),
        }
        for peak in peaks
    ]
    return {"unit": "FLOP/s", "source": source, "measured": rows}


def _flop_facts(rates: Mapping[str, Mapping[str, float]]) -> Facts:
    return {precision: {name: _number(rate) for name, rate in row.items()} for precision, row in rates.items()}


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _cache_facts(level: CacheLevel, source: str) -> Facts:
    optional = {
        "clean_victims": _flag(level.clean_victims) if level.filled_by == "victims" else None,
        "loads_pass_by": _flag(level.loads_pass_by) if level.filled_by == "victims" else None,
        "inclusive": None if level.inclusive_of_inner is None else _flag(level.inclusive_of_inner),
    }
    return {
        "size": with_unit(level.size_bytes, "data"),
        "ways": str(level.ways),
        "sets": str(level.sets),
        "replacement": level.replacement,
        "write_back": _flag(level.write_back),
        "write_allocate": _flag(level.write_allocate),
        "shared_by": str(level.cores_sharing),
        "filled_by": level.filled_by,
        **{name: value for name, value in optional.items() if value is not None},
        "source": source,
    }


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _path_facts(path: TransferPath, source: str) -> Facts:
    penalties = {"penalty_load": path.penalty_load, "penalty_store": path.penalty_store}
    return {
        "width": "measured" if path.bytes_per_cycle is None else f"{_number(path.bytes_per_cycle)} B/cy",
        "duplex": path.duplex,
        **{name: f"{_number(value)} cy/CL" for name, value in penalties.items() if value},
        **({"run_length": _run_facts(path.run_length)} if path.run_length else {}),
        "source": source,
    }


def _run_facts(runs: Sequence[tuple[float, float]]) -> list[list[str]]:
    return [[with_unit(size, "data"), _number(cycles)] for size, cycles in runs]


def store_facts(stores: StoreBehaviour, source: str) -> Facts:
    """The section `stores` of a machine file."""
    cores = stores.evades_from_cores
    return {
        "streaming": _flag(stores.streaming),
        "write_allocate_evasion": stores.evasion,
        **({"evades_from_cores": str(cores)} if cores is not None else {}),
        "source": source,
    }


def _bandwidth_facts(machine: Machine) -> Facts:
    unit, factor = _common_unit(machine.bandwidths)
    groups: dict[tuple[str, int, tuple[int, ...]], dict[str, list[str]]] = {}
    mixes: dict[str, StreamMix] = {}
    for series in machine.bandwidths:
        mixes.setdefault(series.mix.name, series.mix)
        group = groups.setdefault((series.level, series.threads_per_core, series.cores), {})
        group[series.mix.name] = [_in_unit(value, factor) for value in series.bytes_per_second]
    return {
        "unit": unit,
        "source": machine.sources["bandwidths"],
        "mixes": {
            name: _mix_facts(mix, machine.sources.get(f"bandwidths.mixes.{name}")) for name, mix in mixes.items()
        },
        "measured": [
            {"level": level, "threads_per_core": str(threads), "cores": _core_ranges(cores), "values": values}
            for (level, threads, cores), values in groups.items()
        ],
    }


def _common_unit(bandwidths: Sequence[BandwidthSeries]) -> tuple[str, float]:
    """GB/s if all figures read back exactly from it, else B/s."""
    factor = FACTORS["bandwidth"]["GB/s"]
    values = (value for series in bandwidths for value in series.bytes_per_second)
    exact = all(float(_in_unit(value, factor)) * factor == value for value in values)
    return ("GB/s", factor) if exact else ("B/s", 1.0)


def _in_unit(value: float, factor: float) -> str:
    short = f"{value / factor:.10g}"
    return short if float(short) * factor == value else repr(value / factor)


def _mix_facts(mix: StreamMix, benchmark: str | None) -> Facts:
    streams = {
        "read": mix.read,
        "write": mix.write,
        "read_write": mix.read_write,
        "flops": int(mix.flops_per_iteration),
    }
    facts = {name: str(count) for name, count in streams.items()}
    facts |= {"access": f"{mix.access_bytes} B"} if mix.access_bytes is not None else {}
    return facts | ({"benchmark": benchmark} if benchmark else {})


def _core_ranges(cores: Sequence[int]) -> str:
    """Ascending core counts as text with ranges: "1-8, 10"."""
    runs: list[list[int]] = []
    for count in cores:
        if runs and count == runs[-1][1] + 1:
            runs[-1][1] = count
        else:
            runs.append([count, count])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


# }}}
