"""Measured bandwidths of stream mixes held against one another: figures that cannot all be right.

What a mix moves over the path to a level follows from its streams: the lines that it reads, write-allocates included,
and those that it writes. Two laws hold on every machine, whether reads and writes share a path or not:

- lines can be moved one after another, so no mix takes longer than others that together move at least as many lines of
  both kinds (an update moves what a store-only mix moves: one line in, one out);
- the traffic of mixes that write lies close together: one that lies far below all others counts something else.

Of the same streams only those with the widest accesses are compared: narrower ones keep the core busy, not the path.

Both catch figures that count the bytes of each array once where likwid-bench counts loads and stores (an update is one
of each), and figures with write-allocates in them. The limits are those that the series of the carried machines keep
with a margin: they come to 1.24 in memory (copy of four arrays on Zen) and 1.46 in caches (daxpy from L2 on Zen).
One core of Milan takes 1.31 to 1.39 times as long for a copy as for a daxpy from memory (`kernmodel measure
bandwidth --level Mem --mix copy --mix daxpy`): lines that are only written cost it more. Figures with an update
counted once, or a copy with write-allocates, are off by 1.5 and more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from kernmodel.machine.model import BandwidthSeries, Machine, StreamMix
from kernmodel.value_types import NamedTuple

_MEMORY_LIMIT = 1.45
_CACHE_LIMIT = 1.6
_FIRST = "L1"
"""Its ports decide the time there, not lines."""


class Contradiction(NamedTuple):
    """A bandwidth that others of the same level and number of cores rule out.

    Attributes:
        series: number of the series in `Machine.bandwidths`; cores: where it is worst.
        what: is wrong, as a clause.
    """

    series: int
    cores: int
    what: str


class _Measured(NamedTuple):
    """One figure.

    Attributes:
        series: it belongs to.
        cycles: a measure of the time of one line of each stream: streams over bandwidth.
        most, least: lines read and written in that time, with all and without any write-allocates that may be evaded.
    """

    series: BandwidthSeries
    cycles: float
    most: tuple[int, int]
    least: tuple[int, int]

    @property
    def traffic(self) -> float:
        """Lines in and out per time."""
        return sum(self.most) / self.cycles


def contradictions(machine: Machine) -> Iterator[Contradiction]:
    """Per series at most one contradiction, at the number of cores where it is worst."""
    evades = machine.stores.evasion != "never"
    worst: dict[int, tuple[float, Contradiction]] = {}
    for (level, cores), figures in _by_level_and_cores(machine.bandwidths, evades).items():
        limit = _MEMORY_LIMIT if level == "Mem" else _CACHE_LIMIT
        for number, figure in figures.items():
            others = [other for place, other in figures.items() if place != number]
            for excess, what in (_too_long(figure, others), _too_little(figure, others)):
                if excess > limit and excess > worst.get(number, (0.0,))[0]:
                    worst[number] = excess, Contradiction(number, cores, what)
    yield from (worst[number][1] for number in sorted(worst))


def _by_level_and_cores(
    bandwidths: Sequence[BandwidthSeries], evades: bool
) -> Mapping[tuple[str, int], Mapping[int, _Measured]]:
    """The figures that can be compared, by number of their series; one thread per core, and of mixes with the same
    streams those with the widest accesses."""
    widest: dict[tuple[int, int, int], int] = {}
    for mix in (series.mix for series in bandwidths):
        streams = (mix.read, mix.write, mix.read_write)
        widest[streams] = max(widest.get(streams, 0), mix.access_bytes or 0)
    found: dict[tuple[str, int], dict[int, _Measured]] = {}
    for number, series in enumerate(bandwidths):
        mix = series.mix
        narrow = (mix.access_bytes or 0) < widest[mix.read, mix.write, mix.read_write]
        if series.level == _FIRST or series.threads_per_core != 1 or narrow:
            continue
        most, least = _lines(mix, allocates=True), _lines(mix, allocates=not evades)
        for cores, rate in zip(series.cores, series.bytes_per_second, strict=True):
            time = (mix.read + mix.write) / rate
            found.setdefault((series.level, cores), {})[number] = _Measured(series, time, most, least)
    return found


def _lines(mix: StreamMix, *, allocates: bool) -> tuple[int, int]:
    """Lines in and out for one line of each stream."""
    return mix.read + (mix.write - mix.read_write if allocates else 0), mix.write


def _too_long(figure: _Measured, others: Sequence[_Measured]) -> tuple[float, str]:
    """By how much a mix takes longer than others that together move as many lines, and that in words."""
    covers = [*_alone(figure.most, others), *_in_pairs(figure.most, others)]
    if not covers:
        return 0.0, ""
    cycles, with_what = min(covers)
    excess = figure.cycles / cycles
    return excess, f"takes {excess:.2g} times as long as {with_what} at least as many lines"


def _alone(lines: tuple[int, int], others: Sequence[_Measured]) -> Iterator[tuple[float, str]]:
    for other in others:
        if all(there or not here for here, there in zip(lines, other.least, strict=True)):
            times = max(here / there for here, there in zip(lines, other.least, strict=True) if there)
            yield times * other.cycles, f"{_repeated(times, other)}, which moves"


def _in_pairs(lines: tuple[int, int], others: Sequence[_Measured]) -> Iterator[tuple[float, str]]:
    (read, written) = lines
    for first, second in combinations(others, 2):
        (r1, w1), (r2, w2) = first.least, second.least
        independent = r1 * w2 - r2 * w1
        if independent:
            a, b = (read * w2 - r2 * written) / independent, (r1 * written - read * w1) / independent
            if a > 0 and b > 0:
                both = f"{_repeated(a, first)} and {_repeated(b, second)}, which move"
                yield a * first.cycles + b * second.cycles, both


def _repeated(times: float, figure: _Measured) -> str:
    name = repr(figure.series.mix.name)
    return name if times == 1 else f"{times:.2g} × {name}"


def _too_little(figure: _Measured, others: Sequence[_Measured]) -> tuple[float, str]:
    """By how much the traffic of a mix that writes lies below that of all others that do, and that in words."""
    writing = [other for other in others if other.most[1] and other.most == other.least]
    if not figure.most[1] or len(writing) < 2:
        return 0.0, ""
    lowest = min(writing, key=lambda other: other.traffic)
    excess = lowest.traffic / figure.traffic
    name = lowest.series.mix.name
    return excess, f"moves {excess:.2g} times fewer lines per second than {name!r} and any other mix that writes"
