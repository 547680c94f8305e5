"""Machines as text: the list, and one machine with the sources of its figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Column, Line, Table, cells, fields, left, right, table
from kernmodel.report.number_text import MISSING, short
from kernmodel.report.text.sections import sources_section
from kernmodel.units import format_bytes, format_si
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.machine.kerncraft import Imported
    from kernmodel.machine.model import BandwidthSeries, CacheLevel, FollowedStreams, Machine, TransferPath
    from kernmodel.measure.probe import Probe
    from kernmodel.schema.fields import Problem


def machine_list(machines: Iterable[Machine]) -> Blocks:
    """One line a machine."""
    columns = (
        left("name", "name"),
        left("title", "title", fold=True),
        left("microarchitecture", "core.microarchitecture"),
        left("ISA", "isa"),
        right("clock", "clock_hz", _hertz),
        right("cores", "topology.cores"),
        right("ccNUMA domains", "topology.numa_domains"),
        left("caches", _cache_sizes, fold=True),
        left("bandwidths", _known_bandwidths, fold=True),
    )
    return (Table(columns, tuple(cells(columns, machine) for machine in machines)),)


def _known_bandwidths(machine: Machine) -> str:
    """Levels whose bandwidth was measured, paths whose width is published, derived from others, or not known."""
    measured = dict.fromkeys(series.level for series in machine.bandwidths)
    widths = [path.name for path in machine.paths if path.bytes_per_cycle is not None]
    derived = [name for name in widths if machine.sources.get(f"paths.{name}", "").startswith("derived")]
    found = {
        "measured": measured,
        "published": [name for name in widths if name not in derived],
        "derived": derived,
        "unknown": machine.unknown_paths,
    }
    return "; ".join(f"{word}: {' '.join(names)}" for word, names in found.items() if names)


def machine_check(checked: Iterable[tuple[str, tuple[Problem, ...]]]) -> Blocks:
    """The problems of each file, and "ok" for a file that is fit for use."""
    return tuple(
        Line(text)
        for file, problems in checked
        for text in (*map(str, problems), *(() if any(p.severity == "error" for p in problems) else (f"{file}: ok",)))
    )


def machine_text(imported: Imported | Probe) -> Blocks:
    """The text of an imported or probed machine file as it stands."""
    return (Line(imported.text.removesuffix("\n")),)


def _hertz(value: float) -> str:
    return format_si(value, "Hz")


def _cache_sizes(machine: Machine) -> str:
    return ", ".join(f"{cache.name} {format_bytes(cache.size_bytes)}" for cache in machine.levels)


def machine_report(machine: Machine, *, verbose: bool = False) -> Blocks:
    """Everything about one machine; `verbose` shows all measured bandwidths instead of the highest ones."""
    compilers = ((compiler.name, " ".join(compiler.flags)) for compiler in machine.compilers)
    return (
        *_overview(machine),
        *_caches(machine.levels),
        *_paths(machine.paths, machine.unknown_paths),
        *_streams(machine),
        *_followed(machine.streams),
        *(_all_bandwidths(machine) if verbose else _bandwidths(machine)),
        *fields("Compilers and flags", *compilers),
        *sources_section(machine.sources, "Sources"),
    )


def _overview(machine: Machine) -> Blocks:
    topology, core = machine.topology, machine.core
    flop = "; ".join(
        f"{precision} {', '.join(f'{operation} {rate:g}' for operation, rate in rates.items())}"
        for precision, rates in core.flop_per_cycle.items()
    )
    return fields(
        f"{machine.name}: {machine.title}",
        ("file", machine.file),
        ("sha256", machine.sha256),
        ("vendor, ISA", f"{machine.vendor}, {machine.isa}"),
        ("clock", _hertz(machine.clock_hz)),
        ("cache line", format_bytes(machine.line_bytes)),
        ("sockets", str(topology.sockets)),
        ("ccNUMA domains per socket", str(topology.numa_domains_per_socket)),
        ("cores per socket", f"{topology.cores_per_socket}, {topology.cores_per_numa_domain} in a ccNUMA domain"),
        ("threads per core", str(topology.threads_per_core)),
        *((("memory of a domain", format_bytes(room)),) if (room := topology.domain_memory_bytes) else ()),
        ("microarchitecture", core.microarchitecture),
        ("overlapping ports", ", ".join(core.overlapping_ports) or MISSING),
        ("non-overlapping ports", ", ".join(core.non_overlapping_ports) or MISSING),
        ("FLOP/cy", flop or MISSING),
        ("streaming stores", "yes" if machine.stores.streaming else "no"),
        ("write-allocates", _evasion(machine)),
        ("T_ECM", str(machine.overlap)),
        *((("not told apart", "; ".join(map(str, machine.undecided))),) if machine.undecided else ()),
    )


def _evasion(machine: Machine) -> str:
    """What the cores do about write-allocates, in words."""
    cores = machine.stores.evades_from_cores
    since = f"from {count(cores, 'core')}" if cores else "from where is not known"
    return {
        "never": "never evaded",
        "always": "evaded for lines that are written whole",
        "near-saturation": f"evaded near saturation ({since})",
        "instruction": "evaded by a special instruction",
        "unknown": "whether they are evaded is not known",
    }[machine.stores.evasion]


def _caches(levels: Sequence[CacheLevel]) -> Blocks:
    columns = (
        left("cache", "name"),
        right("size", "size_bytes", format_bytes),
        right("ways", "ways"),
        right("sets", lambda level: f"{level.sets}{' (hashed)' * level.hashed}"),
        right("line", "line_bytes", format_bytes),
        right("shared by", lambda level: count(level.cores_sharing, "core")),
        left("filled by", _filled_by),
        left("write", _writes),
        left("replacement", "replacement"),
        left("inclusive", lambda level: {True: "yes", False: "no", None: "not known"}[level.inclusive_of_inner]),
    )
    kept = (
        (f"of {level.name}", ", ".join(f"{format_bytes(size)}: {short(share)}" for size, share in level.kept))
        for level in levels
        if level.kept
    )
    return *table("Caches", columns, levels, always=True), *fields("Share of lines kept by size of the data", *kept)


def _filled_by(level: CacheLevel) -> str:
    clean, by = " (clean ones too)" * level.clean_victims, ", loads pass by" * level.loads_pass_by
    return "misses" if level.filled_by == "miss" else f"victims{clean}{by}"


def _writes(level: CacheLevel) -> str:
    back = "back" if level.write_back else "through"
    return f"{back}, {'allocate' if level.write_allocate else 'no allocate'}"


def _paths(paths: Sequence[TransferPath], unknown: Sequence[str]) -> Blocks:
    """The paths, and what a line takes by the length of its contiguous run where that was measured."""
    columns = (
        left("path", "name"),
        left("width", lambda path: _width(path, unknown)),
        left("duplex", "duplex"),
        right("penalty per line loaded", "penalty_load", _cycles),
        right("stored", "penalty_store", _cycles),
    )
    lengths = (
        (f"from {path.outer}{of}", ", ".join(f"{format_bytes(size)}: {short(cycles)}" for size, cycles in series))
        for path in paths
        for of, series in (("", path.run_length), (", of three streams at once", path.run_length_of_three))
        if series
    )
    beside, beside_last = (
        [
            (f"of {path.outer}", ", ".join(f"{count}: {short(cycles)}" for count, cycles in enumerate(own)))
            for path in paths
            if (own := getattr(path, key))
        ]
        for key in ("beside_memory", "beside_last")
    )
    vectors = (
        (f"of {path.outer}", ", ".join(f"{short(number)}: {short(more)}" for number, more in path.beside_vectors))
        for path in paths
        if path.beside_vectors
    )
    hits = ((f"of {path.outer}", short(path.beside_loads)) for path in paths if path.beside_loads is not None)
    return (
        *table("Transfer paths", columns, paths, always=True),
        *fields("Cycles per line by length of contiguous runs", *lengths),
        *fields("Cycles of a line from memory beside lines of a cache", *beside),
        *fields("Cycles of a line from the last cache beside lines of a cache", *beside_last),
        *fields("Cycles more by vectors written beside lines from memory and caches", *vectors),
        *fields("Cycles more for each cycle of loads from the first cache beside them", *hits),
    )


def _followed(streams: FollowedStreams | None) -> Blocks:
    """How many streams a core follows, where that was measured."""
    if streams is None:
        return ()
    longer = ", ".join(f"{lines:g}: {short(cycles)}" for lines, cycles in streams.longer)
    return fields(
        "Streams that miss the first cache",
        ("followed", str(streams.followed)),
        ("cycles longer with more, by lines from memory", longer),
    )


def _streams(machine: Machine) -> Blocks:
    """What one core's streams take a line, beside the published width; nothing where the file has no such streams."""
    from kernmodel.incore.tables.core_parameters import MissParameters
    from kernmodel.models.streams import streams_of

    streams = streams_of(machine, MissParameters())
    rows = [(path, time) for path in machine.paths for time in streams.times.get(path.name, ())]
    columns = (
        left("path", lambda row: row[0].name),
        left("published", lambda row: _width(row[0])),
        right("width cy/line", lambda row: _by_width(row[0], machine)),
        right("streams cy/line", lambda row: row[1].cycles_per_line),
        left("streams", lambda row: ", ".join(row[1].mixes)),
        left("written lines", lambda row: _WRITTEN[row[1].read_before]),
    )
    composed = (Line(f"  composition  {streams.overlap}"), Line(f"  {streams.shown}")) if streams.shown else ()
    return (*table("Lines of one core's streams (what predictions take)", columns, rows), *composed)


_WRITTEN = {None: "", True: "read before", False: "not read before"}


def _by_width(path: TransferPath, machine: Machine) -> float | None:
    return machine.line_bytes / path.bytes_per_cycle if path.bytes_per_cycle else None


def _width(path: TransferPath, unknown: Sequence[str] = ()) -> str:
    if path.name in unknown:
        return "unknown"
    return "by measured bandwidth" if path.bytes_per_cycle is None else f"{short(path.bytes_per_cycle)} B/cy"


def _cycles(value: float) -> str:
    return f"{short(value)} cy"


def _bandwidths(machine: Machine) -> Blocks:
    """Per series the bandwidth of the fewest cores, and the highest one."""
    columns = (
        left("level", "level"),
        left("streams", "mix.name"),
        left("read / write / both", lambda one: f"{one.mix.read} / {one.mix.write} / {one.mix.read_write}"),
        right("threads per core", "threads_per_core"),
        right("fewest cores", lambda one: f"{_gigabytes(one.bytes_per_second[0])} ({count(one.cores[0], 'core')})"),
        right("highest", lambda one: _gigabytes(_highest(one)[0])),
        right("at cores", lambda one: _highest(one)[1]),
        right("true traffic", lambda one: f"× {short(one.mix.write_allocate_factor)}"),
    )
    title = "Measured bandwidths (as reported, write-allocates not counted)"
    return table(title, columns, machine.bandwidths, always=True)


def _highest(series: BandwidthSeries) -> tuple[float, int]:
    """The highest bandwidth in B/s, and the fewest cores that have it."""
    points = zip(series.bytes_per_second, series.cores, strict=True)
    return max(points, key=lambda point: (point[0], -point[1]))


def _gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.1f} GB/s"


def _all_bandwidths(machine: Machine) -> Blocks:
    """Per level one table: core counts down, stream mixes across."""
    tables = groupby(machine.bandwidths, key=lambda series: (series.level, series.threads_per_core))
    return tuple(
        block for (level, threads), group in tables for block in _level_bandwidths(level, threads, tuple(group))
    )


def _level_bandwidths(level: str, threads: int, group: Sequence[BandwidthSeries]) -> Blocks:
    def by_cores(series: BandwidthSeries) -> Column:
        rates = {cores: f"{rate / 1e9:.1f}" for rate, cores in zip(series.bytes_per_second, series.cores, strict=True)}
        return right(series.mix.name, rates.get)

    cores = sorted({cores for series in group for cores in series.cores})
    title = f"Measured bandwidths of {level} in GB/s, {count(threads, 'thread')} per core (as reported)"
    return table(title, (right("cores", str), *map(by_cores, group)), cores)
