"""Measured bandwidths: with which stream mix a kernel is compared, and what so many cores draw of it.

The ECM model's T_Mem, the saturation of a ccNUMA domain and the roofs of memory all take theirs from here.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from kernmodel.errors import MachineError, Note
from kernmodel.machine.model import BandwidthSeries, Machine, StreamMix
from kernmodel.traffic.stores import default_stores, evasion_of
from kernmodel.value_types import dataclass
from kernmodel.words import count

MEMORY = "Mem"
FEW_CORES = "few-cores-bandwidth"
"""Code of the note that streams of memory were measured on fewer cores than draw on it."""

Origin = Literal["measured", "derived", "interpolated"]


@dataclass(frozen=True, slots=True)
class MemoryBandwidth:
    """The measured bandwidth a transfer time is derived from.

    Attributes:
        mix: the stream mix whose read share is nearest to the kernel's.
        bytes_per_second: true bandwidth: as reported, and the write-allocates that the machine did not evade.
        cores: number of cores at which it was measured (where it is highest, up to one ccNUMA domain).
        kernel_read_share, mix_read_share: loaded lines over all lines, of the kernel and of the mix.
        from_caches: share of the measured lines that caches served, which are not counted in the bandwidth.
    """

    level: str
    mix: StreamMix
    bytes_per_second: float
    cores: int
    kernel_read_share: float
    mix_read_share: float
    from_caches: float = 0.0


def nearest_bandwidth(machine: Machine, level: str, read_share: float, *, textbook: bool = False) -> MemoryBandwidth:
    """The measured bandwidth of `level` whose stream mix is nearest in read share (write-allocates counted on both
    sides); of mixes that are equally near, the slower one.

    Memory: the highest value over up to one ccNUMA domain's cores; a cache: the value for one core.

    Args:
        textbook: whether mixes that only read count for kernels that write, too. Else only mixes that write do (where
            the file has some), however little the kernel writes. The bus of a memory channel turns around between
            reads and writes (B. Jacob, S. W. Ng, D. T. Wang: Memory systems, 2007), and streams of several arrays share
            the open rows of its banks; a mix that only reads does neither. With all cores of a domain of the carried
            files, a fifth of writes (triad) costs 8 to 19 % of what loads alone draw; a seventh more (copy, daxpy) at
            most 5 %, and nothing on the Zen cores and Sandy Bridge.

    Raises:
        MachineError: no measurement of this level.
    """
    series = [s for s in machine.bandwidths if s.level == level and s.threads_per_core == 1]
    if not series:
        raise MachineError(
            f"has no measured bandwidth of {level}", where=machine.file, todo=f"add a series under bandwidths.{level}"
        )
    writes = not textbook and 1 - read_share > _END_OF_ROWS
    series = [one for one in series if one.mix.write or not writes] or series
    cached = 0.0 if textbook or level != MEMORY else from_caches(machine)
    measured = [_highest(machine, one, read_share, cached) for one in series]
    # 9 digits, so that rounding does not decide
    return min(measured, key=lambda m: (round(abs(m.mix_read_share - read_share), 9), m.bytes_per_second))


_END_OF_ROWS = 0.01
"""Share of written lines up to which a kernel writes what ends its rows (a sum of each), and no stream."""


def _highest(machine: Machine, series: BandwidthSeries, read_share: float, cached: float) -> MemoryBandwidth:
    """The highest of a series over the cores of a domain, as the mix truly moved, less the share from caches."""
    # the highest over at most so many cores (else the fewest measured), and the fewest cores that it takes
    limit = machine.topology.cores_per_numa_domain if series.level == MEMORY else 1
    within = series.bytes_per_second[: max(1, bisect_right(series.cores, limit))]
    value = max(within)
    cores = series.cores[within.index(value)]
    factor, share = _true(machine, series, cores)
    true = value * factor * (1 - cached)
    return MemoryBandwidth(series.level, series.mix, true, cores, read_share, share, cached)


def _true(machine: Machine, series: BandwidthSeries, cores: int) -> tuple[float, float]:
    """True over reported bytes of a benchmark, and its share of loaded lines: it reports its streams, and what it
    writes only was also loaded, unless evaded.

    Loads are r + w − rw streams; less the evaded share of the w − rw that are written only, where the machine evades
    by itself and as many cores were active.
    """
    evasion = evasion_of(machine, cores, default_stores(machine)) if series.level == MEMORY else None
    return series.mix.true_traffic(evasion.share if evasion else 0.0)


def with_cores(machine: Machine, found: MemoryBandwidth, cores: int) -> tuple[float, Origin, str]:
    """True bytes/s that so many cores draw of the mix of a bandwidth, its origin, and how it was found in words."""
    series = _series(machine, found)
    _, origin, how = at_cores(machine, series, cores)
    return _true_bandwidth(machine, series, cores, found.from_caches), origin, how


def _true_bandwidth(machine: Machine, series: BandwidthSeries, cores: int, cached: float) -> float:
    """True bytes/s that so many cores draw of a series, less the share that caches served."""
    domains = max(1.0, min(cores, series.cores[-1]) / machine.topology.cores_per_numa_domain)
    return at_cores(machine, series, cores)[0] * _true(machine, series, cores)[0] * (1 - cached * domains)


def from_caches(machine: Machine) -> float:
    """Share of the lines of the file's streams over memory that caches served, on the cores of one ccNUMA domain.

    A cache that replaces not just the oldest lines keeps some of data that are larger than it and read over and over
    (M. K. Qureshi et al., Adaptive insertion policies for high performance caching, ISCA 2007). Where the file does not
    say how many, its streams of two domains do: these have no more than twice the bandwidth of one, so what they draw
    more came from caches. Kerncraft's likwid-bench divides the same data among all cores: each of two domains has half
    of it, of which its caches keep twice the share, so of streams that draw ρ times twice as much it is at least
    (ρ − 1)/(2ρ − 1) in one. All mixes together: what one of them draws more is within what measurements repeat.
    """
    if machine.from_caches is not None:
        return machine.from_caches
    one = machine.topology.cores_per_numa_domain
    drawn = [
        [
            series.bytes_per_second[series.cores.index(cores)] * _true(machine, series, cores)[0]
            for cores in (one, 2 * one)
        ]
        for series in machine.bandwidths
        if series.level == MEMORY and series.threads_per_core == 1 and one in series.cores and 2 * one in series.cores
    ]
    ratios = [second / first / 2 for first, second in drawn]
    more = sum(ratios) / len(ratios) if ratios else 1.0
    return max(0.0, (more - 1) / (2 * more - 1))


def _series(machine: Machine, found: MemoryBandwidth) -> BandwidthSeries:
    asked = found.level, found.mix, 1
    return next(one for one in machine.bandwidths if (one.level, one.mix, one.threads_per_core) == asked)


def at_cores(machine: Machine, series: BandwidthSeries, cores: int) -> tuple[float, Origin, str]:
    """The bandwidth of a series for so many cores, its origin, and how it was found in words.

    Between measured counts it is interpolated. Caches scale with the cores beyond them; memory scales with the ccNUMA
    domains that are full, holds its last figure within one, and its first for fewer cores. Several cores draw no more
    from a cache than each does alone: where their streams seem to, the caches within have served a part, since all of
    them together hold more.
    """
    made = _at_cores(machine, series, cores)
    if series.level in (MEMORY, machine.levels[0].name) or series.cores[0] != 1:
        return made
    most = cores * series.bytes_per_second[0]
    how = f", {cores} times that of one core, since the caches within serve a part of what all draw"
    return made if made[0] <= most else (most, "derived", how)


def _at_cores(machine: Machine, series: BandwidthSeries, cores: int) -> tuple[float, Origin, str]:
    """The same, whoever serves the streams of several cores."""
    found = dict(zip(series.cores, series.bytes_per_second, strict=True))
    if cores in found:
        return found[cores], "measured", ""
    first, last = series.cores[0], series.cores[-1]
    if first < cores < last:
        low = max(one for one in found if one < cores)
        high = min(one for one in found if one > cores)
        value = found[low] + (found[high] - found[low]) * (cores - low) / (high - low)
        return value, "interpolated", f", interpolated between {low} and {high} cores"
    if series.level != MEMORY:
        nearest = first if cores < first else last
        return found[nearest] / nearest * cores, "derived", f", in proportion from {count(nearest, 'core')}"
    block = max(last, machine.topology.cores_per_numa_domain)
    if cores <= block:
        nearest = first if cores < first else last
        return found[nearest], "derived", f", as with {count(nearest, 'core')}"
    full, rest = divmod(cores, block)
    value = full * at_cores(machine, series, block)[0] + (at_cores(machine, series, rest)[0] if rest else 0.0)
    return value, "derived", f", {cores / block:g} times that of {block} cores"


def not_drawn(measured: int) -> tuple[str, str]:
    """What is not known where memory was measured on so many cores of a domain and more draw on it, and what is taken
    for it: cause and assumption of an interval."""
    few = count(measured, "core")
    return f"what more than {few} of a domain draw from memory", f"no more than {few} did"


def most_drawn(machine: Machine, cores: int) -> tuple[Machine, int] | None:
    """The machine if so many cores drew the most from memory that is possible, where streams were measured on fewer of
    a domain: these go on in proportion to the fewest cores, as if none shared its bandwidth with others but for what
    the channels of a socket can move for all of its cores in use. And on how many cores they were measured. None where
    all were measured on as many.
    """
    used = min(cores, machine.topology.cores_per_numa_domain)
    few = [one.cores[-1] for one in machine.bandwidths if _lacks(machine, one, cores)]
    if not few:
        return None
    most = channels_bandwidth(machine, 1) / min(cores, machine.topology.cores_per_socket)
    series = tuple(
        _in_proportion(one, used, most) if _lacks(machine, one, cores) else one for one in machine.bandwidths
    )
    return replace(machine, bandwidths=series), min(few)


def _lacks(machine: Machine, series: BandwidthSeries, cores: int) -> bool:
    """Whether streams of memory were measured on fewer cores of a domain than so many use of it."""
    used = min(cores, machine.topology.cores_per_numa_domain)
    return series.level == MEMORY and series.threads_per_core == 1 and series.cores[-1] < used


def channels_bandwidth(machine: Machine, domains: int) -> float:
    """Bytes/s that the channels of the sockets which so many ccNUMA domains lie on can move in theory; infinite where
    the machine file has no channels."""
    sockets = -(-domains // machine.topology.numa_domains_per_socket)
    return machine.memory.bytes_per_second * sockets if machine.memory else math.inf


def _in_proportion(series: BandwidthSeries, cores: int, most: float) -> BandwidthSeries:
    """The series up to so many cores, each of which draws what each of the fewest does, but no more than `most`, which
    counts write-allocates."""
    more = range(series.cores[-1] + 1, cores + 1)
    alone = min(series.bytes_per_second[0] / series.cores[0], most / series.mix.write_allocate_factor)
    values = (max(series.bytes_per_second[-1], number * alone) for number in more)
    return replace(series, cores=(*series.cores, *more), bytes_per_second=(*series.bytes_per_second, *values))


def few_cores_notes(machine: Machine, found: MemoryBandwidth | None, cores: int) -> Iterator[Note]:
    """A warning where so many cores share the memory of a domain and the streams were measured on fewer.

    Args:
        found: the bandwidth of memory that counts, None: none does.
    """
    measured = None if found is None else fewer_cores(machine, found, cores)
    if found is not None and measured is not None:
        text = (
            f"{found.mix.name} from memory was measured on {measured} of {machine.topology.cores_per_numa_domain} "
            "cores of a domain: what more of them draw, and how many saturate it, is not known; they are taken to draw "
            "no more"
        )
        yield Note(FEW_CORES, text)


def fewer_cores(machine: Machine, found: MemoryBandwidth, cores: int) -> int | None:
    """On how many cores the streams of a bandwidth of memory were measured, where these are fewer than so many of a
    domain: what these draw is then known to be no less than that bandwidth, and nothing else. None where they are not.
    """
    series = _series(machine, found)
    return series.cores[-1] if _lacks(machine, series, cores) else None


def drawn_share(machine: Machine, found: MemoryBandwidth, cores: int) -> float:
    """The share of a bandwidth of memory that so many cores of a domain draw together.

    By the streams over cores in the machine's file: their highest may be that of fewer cores, and several may draw less
    than the rule of saturation says. Linear between the counts that were measured; 1 of one core, whose streams are in
    the time itself, and where it is not known.
    """
    return 1.0 if cores < 2 else _share(machine, found, _series(machine, found), cores)


def _share(machine: Machine, found: MemoryBandwidth, series: BandwidthSeries, cores: int) -> float:
    """The same of several cores; `series` is that of the bandwidth."""
    if not series.cores[0] <= cores <= series.cores[-1]:
        return 1.0
    return min(1.0, _true_bandwidth(machine, series, cores, found.from_caches) / found.bytes_per_second)


UNFITTED = 0.5
"""p₀ of the recursive rule in units of T_Mem where nothing shows it, as Kerncraft takes it."""


def penalties(machine: Machine, found: MemoryBandwidth) -> tuple[float, ...]:
    """p₀ of the recursive rule in units of T_Mem for 2, 3, … cores, by the streams over cores in the machine's file:
    with it, the rule gives what they draw.

    J. Hofmann, G. Hager, D. Fey (ISC 2018) fit p₀ to a measurement; these are the measurements that the file has.
    Counts of cores that draw as much as all do, to what measurements repeat, tell no more than an upper limit. Empty
    where there is no figure of one core, or that is the highest.
    """
    series = _series(machine, found)
    if series.cores[0] != 1 or found.level != MEMORY or found.cores < 2:
        return ()
    return tuple(_fitted(machine, found, series))


_SATURATED = 0.99
"""Share of the highest bandwidth from which on measurements do not tell a lower one from it."""


def _fitted(machine: Machine, found: MemoryBandwidth, series: BandwidthSeries) -> Iterator[float]:
    alone = found.bytes_per_second / _true_bandwidth(machine, series, 1, found.from_caches)
    used, penalty = 1 / alone, UNFITTED
    for cores in range(2, found.cores + 1):
        share = _share(machine, found, series, cores)
        wanted = (cores / share - alone) / (used * (cores - 1))
        penalty = max(0.0, min(wanted, penalty) if share > _SATURATED else wanted)
        used = next_utilization(cores, used, alone, penalty)
        yield penalty


_ROUNDING = 1e-9


def next_utilization(cores: int, used: float, alone: float, penalty: float) -> float:
    """Utilisation u(n) of the memory bandwidth by n cores from u(n−1), by the recursive latency-aware rule.

    u(n) = min(1, n·T_Mem / (T_ECM + u(n−1)·(n−1)·p0)) (Hofmann, Hager, Fey: On the accuracy and usefulness of analytic
    energy models for contemporary multicore processors, ISC 2018). More cores draw no less, which a penalty of more
    than T_Mem would make them do.

    Args:
        cores: n.
        used: u(n−1).
        alone: T_ECM/T_Mem of one core.
        penalty: p0/T_Mem.
    """
    drawn = cores / (alone + used * (cores - 1) * penalty)
    return 1.0 if drawn > 1 - _ROUNDING else max(used, drawn)
