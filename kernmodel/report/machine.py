"""Machines as text: the list, one machine with the sources of its figures, and the outcome of a check."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Table
from kernmodel.report.numbers import MISSING, count, short
from kernmodel.report.sections import sources_section
from kernmodel.units import format_bytes, format_si

if TYPE_CHECKING:
    from kernmodel.machine.load import MachineSummary
    from kernmodel.machine.model import BandwidthSeries, CacheLevel, Machine, TransferPath


def machine_list(machines: Iterable[MachineSummary]) -> tuple[Block, ...]:
    """One line a machine."""
    left = ("name", "title", "microarchitecture", "ISA")
    columns = (
        *(Column(name, "left", fold=name == "title") for name in left),
        *(Column(name) for name in ("clock", "cores", "ccNUMA domains")),
        Column("caches", "left", fold=True),
    )
    rows = tuple(
        (
            machine.name,
            machine.title,
            machine.microarchitecture,
            machine.isa,
            format_si(machine.clock_hz, "Hz"),
            str(machine.cores),
            str(machine.numa_domains),
            ", ".join(f"{cache.name} {format_bytes(cache.size_bytes)}" for cache in machine.caches),
        )
        for machine in machines
    )
    return (Table(columns, rows),)


def machine_report(machine: Machine, *, verbose: bool = False) -> tuple[Block, ...]:
    """Everything about one machine; `verbose` shows all measured bandwidths instead of the highest ones."""
    return (
        *_overview(machine),
        *_caches(machine.levels),
        *_paths(machine.paths),
        *(_all_bandwidths(machine) if verbose else _bandwidths(machine)),
        *_compilers(machine),
        *sources_section(machine.sources, "Sources"),
    )


def _overview(machine: Machine) -> tuple[Block, ...]:
    topology, core = machine.topology, machine.core
    flop = "; ".join(
        f"{precision} {', '.join(f'{operation} {rate:g}' for operation, rate in rates.items())}"
        for precision, rates in core.flop_per_cycle.items()
    )
    pairs = (
        ("file", machine.file),
        ("sha256", machine.sha256),
        ("vendor, ISA", f"{machine.vendor}, {machine.isa}"),
        ("clock", format_si(machine.clock_hz, "Hz")),
        ("cache line", format_bytes(machine.line_bytes)),
        ("sockets", str(topology.sockets)),
        ("ccNUMA domains per socket", str(topology.numa_domains_per_socket)),
        ("cores per socket", f"{topology.cores_per_socket}, {topology.cores_per_numa_domain} in a ccNUMA domain"),
        ("threads per core", str(topology.threads_per_core)),
        ("microarchitecture", core.microarchitecture),
        ("overlapping ports", ", ".join(core.overlapping_ports) or MISSING),
        ("non-overlapping ports", ", ".join(core.non_overlapping_ports) or MISSING),
        ("FLOP/cy", flop or MISSING),
        ("streaming stores", "yes" if machine.stores.streaming else "no"),
        ("write-allocates", _evasion(machine)),
        ("T_ECM", str(machine.overlap)),
    )
    return (Heading(f"{machine.name}: {machine.title}"), Fields(pairs))


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


def _caches(levels: Iterable[CacheLevel]) -> tuple[Block, ...]:
    left = ("filled by", "write", "replacement", "inclusive")
    columns = (
        Column("cache", "left"),
        *(Column(name) for name in ("size", "ways", "sets", "line", "shared by")),
        *(Column(name, "left") for name in left),
    )
    return (Heading("Caches"), Table(columns, tuple(_cache_row(level) for level in levels)))


def _cache_row(level: CacheLevel) -> tuple[str, ...]:
    inclusive = {True: "yes", False: "no", None: "not known"}[level.inclusive_of_inner]
    clean, by = " (clean ones too)" * level.clean_victims, ", loads pass by" * level.loads_pass_by
    filled = "misses" if level.filled_by == "miss" else f"victims{clean}{by}"
    back = "back" if level.write_back else "through"
    return (
        level.name,
        format_bytes(level.size_bytes),
        str(level.ways),
        str(level.sets),
        format_bytes(level.line_bytes),
        count(level.cores_sharing, "core"),
        filled,
        f"{back}, {'allocate' if level.write_allocate else 'no allocate'}",
        level.replacement,
        inclusive,
    )


def _paths(paths: Sequence[TransferPath]) -> tuple[Block, ...]:
    columns = (
        Column("path", "left"),
        Column("width", "left"),
        Column("duplex", "left"),
        Column("penalty per line loaded"),
        Column("stored"),
    )
    rows = tuple(
        (
            path.name,
            "by measured bandwidth" if path.bytes_per_cycle is None else f"{short(path.bytes_per_cycle)} B/cy",
            path.duplex,
            f"{short(path.penalty_load)} cy",
            f"{short(path.penalty_store)} cy",
        )
        for path in paths
    )
    return (Heading("Transfer paths"), Table(columns, rows), *_run_lengths(paths))


def _run_lengths(paths: Iterable[TransferPath]) -> tuple[Block, ...]:
    """What a line takes by the length of the contiguous run that it belongs to, where it was measured."""
    pairs = tuple(
        (f"from {path.outer}", ", ".join(f"{format_bytes(size)}: {short(cycles)}" for size, cycles in path.run_length))
        for path in paths
        if path.run_length
    )
    return (Heading("Cycles per line by length of contiguous runs"), Fields(pairs)) if pairs else ()


def _bandwidths(machine: Machine) -> tuple[Block, ...]:
    """Per series the bandwidth of the fewest cores, and the highest one."""
    columns = (
        *(Column(name, "left") for name in ("level", "streams", "read / write / both")),
        *(Column(name) for name in ("threads per core", "fewest cores", "highest", "at cores", "true traffic")),
    )
    rows = tuple(_series_row(series) for series in machine.bandwidths)
    return (Heading("Measured bandwidths (as reported, write-allocates not counted)"), Table(columns, rows))


def _series_row(series: BandwidthSeries) -> tuple[str, ...]:
    mix = series.mix
    highest, cores = max(zip(series.bytes_per_second, series.cores, strict=True), key=lambda pair: (pair[0], -pair[1]))
    return (
        series.level,
        mix.name,
        f"{mix.read} / {mix.write} / {mix.read_write}",
        str(series.threads_per_core),
        f"{_gigabytes(series.bytes_per_second[0])} ({count(series.cores[0], 'core')})",
        _gigabytes(highest),
        str(cores),
        f"× {short(mix.write_allocate_factor)}",
    )


def _gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.1f} GB/s"


def _all_bandwidths(machine: Machine) -> tuple[Block, ...]:
    """Per level one table: core counts down, stream mixes across."""
    blocks: list[Block] = []
    for (level, threads), group in groupby(
        machine.bandwidths, key=lambda series: (series.level, series.threads_per_core)
    ):
        columns, rows = _series_table(tuple(group))
        title = f"Measured bandwidths of {level} in GB/s, {count(threads, 'thread')} per core (as reported)"
        blocks += [Heading(title), Table(columns, rows)]
    return tuple(blocks)


def _series_table(group: tuple[BandwidthSeries, ...]) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
    counts = sorted({cores for series in group for cores in series.cores})
    by_cores = [dict(zip(series.cores, series.bytes_per_second, strict=True)) for series in group]
    rows = tuple(
        (str(cores), *(f"{values[cores] / 1e9:.1f}" if cores in values else MISSING for values in by_cores))
        for cores in counts
    )
    return (Column("cores"), *(Column(series.mix.name) for series in group)), rows


def _compilers(machine: Machine) -> tuple[Block, ...]:
    pairs = tuple((compiler.name, " ".join(compiler.flags)) for compiler in machine.compilers)
    return (Heading("Compilers and flags"), Fields(pairs)) if pairs else ()
