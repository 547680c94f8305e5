"""What one core's own streams imply: transfer times that reproduce the measured streams of a machine file.

The width of a path is what a data sheet says, and the saturated bandwidth of memory is what many cores reach. One core
reaches neither: it waits for lines whose number in flight is limited, so that a line takes as long as its latency
divided by that number, beside its part of the shared bandwidth (J. D. McCalpin, The evolution of single-core bandwidth
in multicore processors, 2023; the latency penalty that J. Hofmann et al., SuperFRI 7(2), 2020, fit). A machine
file that has streams of one core in each level (likwid-bench) shows by itself how long that is: of each stream mix,
what it takes longer with data from the next level, under the machine's own composition of times. That is the time of
the path for the lines of this mix. No other kernel than these streams has a part in that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise, product
from math import fsum

from kernmodel.incore.tables.core_parameters import MissParameters
from kernmodel.machine.model import Machine, StreamMix, TransferPath
from kernmodel.machine.overlap import Max, Overlap, Sum, Time, evaluate
from kernmodel.models.bandwidths import MEMORY, from_caches
from kernmodel.traffic.model import PathLines
from kernmodel.value_types import dataclass

_ROUNDING = 1e-6
_MANY = 1e9
"""Cycles beside which all other times are nothing."""


@dataclass(frozen=True, slots=True)
class StreamTime:
    """What a stream mix implies for a path.

    Attributes:
        mixes: names of the stream mixes.
        modified_share: modified lines away from the core for each line that occupies the path.
        read_before: whether the lines that are written were read before (they are changed in place), or are loaded only
            because they are written; None: nothing is written, or what is loaded does not take this path.
        cycles_per_line: of the lines that occupy it (`PathLines.occupying`).
    """

    mixes: tuple[str, ...]
    modified_share: float
    read_before: bool | None
    cycles_per_line: float


@dataclass(frozen=True, slots=True)
class Unfollowed:
    """What lines from memory take where more streams miss L1 than the prefetcher follows.

    Attributes:
        followed: streams that it follows.
        cycles_per_line: of a line loaded from memory, on all paths together; None where `longer` says it.
        longer: as measured on the machine (`FollowedStreams.longer`).
    """

    followed: int
    cycles_per_line: float | None
    longer: tuple[tuple[float, float], ...] = ()

    def cycles(self, lines: float, others: float, most: float) -> float:
        """Cycles of all transfers together.

        Args:
            lines: loaded from memory; others: what all transfers take with a prefetcher that follows all.
            most: what as many streams take that all lie in memory: they take no longer for being more.
        """
        if self.cycles_per_line is not None:
            return lines * self.cycles_per_line
        return max(others, min(most, others + interpolated(self.longer, lines)))


def interpolated(measured: Sequence[tuple[float, float]], value: float) -> float:
    """Between measured pairs, and from nothing to the first, linear, beyond the last as there."""
    points = [(0.0, 0.0), *measured]
    for (low, first), (high, last) in pairwise(points):
        if value < high:
            return first + (last - first) * (value - low) / (high - low)
    return points[-1][1]


@dataclass(frozen=True, slots=True)
class Streams:
    """What the streams of one core imply.

    Attributes:
        machine: as in its file, before any change of its figures.
        overlap: how times compose: the machine's expression, less what the streams contradict.
        times: by path name, by ascending share of modified lines; paths to levels without such streams are missing.
        shown: what the composition was shown by where it differs from the machine's, else "".
        unfollowed: of more streams than the prefetcher follows; None where that is not known.
        memory_load: cycles of a line of a stream of loads from memory; None where that is not known.
        beside: by level by how many cycles a line from memory takes longer beside 1, 2, … lines that lie there; levels
            of which that is not known are missing. beside_last: the same of a line from the last cache.
        loads: by level cycles of a line of a stream of loads that lies there, where that is known.
        narrow: how times compose where more loads than one get a line, if that is otherwise; None: as `overlap`.
        vectors: by how many cycles lines from memory take longer beside lines of caches by the vectors that the code
            writes (`TransferPath.beside_vectors`, else the core's); hits: for each cycle of its loads
            (`TransferPath.beside_loads`, else the core's).
        rows: by how many cycles lines from memory take longer beside lines of 1, 2, … rows that the first cache has
            since they were loaded in rows before.
        first_load: cycles of a line of a stream of loads from the first cache; None where that is not known.
    """

    machine: Machine
    overlap: Overlap
    times: Mapping[str, Sequence[StreamTime]]
    shown: str = ""
    unfollowed: Unfollowed | None = None
    beside: Mapping[str, Sequence[float]] = field(default_factory=dict)
    memory_load: float | None = None
    vectors: Sequence[tuple[float, float]] = ()
    hits: float = 0.0
    first_load: float | None = None
    narrow: Overlap | None = None
    loads: Mapping[str, float] = field(default_factory=dict)
    beside_last: Mapping[str, Sequence[float]] = field(default_factory=dict)
    rows: Sequence[float] = ()

    def composition(self, accesses: float, lines: float) -> Overlap:
        """How times compose in a loop.

        Args:
            accesses: of its loads to the first cache per unit of work; a load across lines makes two.
            lines: that its references read per unit of work, each for itself; 0: not known.
        """
        return self.overlap if self.narrow is None or accesses <= lines + _ROUNDING else self.narrow


def streams_of(machine: Machine, misses: MissParameters) -> Streams:
    """What the streams of one core in the machine's file imply; nothing where it has none.

    Args:
        misses: of the machine's core; what the machine's file says of lines beside lines from memory goes before.
    """
    beside = _known(
        {"L2": misses.beside_l2, "L3": misses.beside_l3},
        {path.outer: path.beside_memory for path in machine.paths[:-1]},
    )
    last = machine.levels[-1].name
    of_core = {"L2": misses.l3_beside_l2} if last == "L3" else {}
    beside_last = _known(of_core, {path.outer: path.beside_last for path in machine.paths[:-2]})
    memory = machine.paths[-1]
    own = memory.beside_vectors or misses.beside_vectors
    hits = misses.beside_loads if memory.beside_loads is None else memory.beside_loads
    found = _composed(machine, _unfollowed(machine, misses), beside)
    found = replace(found, vectors=own, hits=hits, beside_last=beside_last, rows=misses.beside_rows)
    return replace(found, narrow=_narrow(found)) if misses.hits_add else found


def _known(
    of_core: Mapping[str, Sequence[float]], measured: Mapping[str, Sequence[float]]
) -> dict[str, Sequence[float]]:
    """By level what a line takes longer beside 1, 2, … lines there: as measured on the machine, else on its core."""
    longer = {level: _longer(cycles) for level, cycles in measured.items()}
    return {level: known for level in [*of_core, *longer] if (known := longer.get(level) or of_core.get(level, ()))}


def _narrow(streams: Streams) -> Overlap | None:
    """How times compose where the streams, whose loads are of whole lines, show that loads overlap with transfers, and
    those that find their line in the first cache are known to add to lines from the second."""
    match streams.overlap:
        case Max((core, Time("T_nOL") as loads, Sum((inner, *_)) as transfers)):
            return Max((core, Sum((loads, inner)), transfers))
        case _:
            return None


def _longer(cycles: Sequence[float]) -> tuple[float, ...]:
    """By how much a line takes longer beside 1, 2, … lines, by what it takes beside 0, 1, 2, …"""
    return tuple(one - cycles[0] for one in cycles[1:])


def recomposed(streams: Streams, overlap: Overlap) -> Streams:
    """What the same streams imply where the times compose so; it is still the machine that they were measured on."""
    found = _composed(replace(streams.machine, overlap=overlap), streams.unfollowed, streams.beside)
    return replace(
        found, vectors=streams.vectors, hits=streams.hits, beside_last=streams.beside_last, rows=streams.rows
    )


def _composed(machine: Machine, unfollowed: Unfollowed | None, beside: Mapping[str, Sequence[float]]) -> Streams:
    overlap, shown = _shown_overlap(machine)
    times = _stream_times(replace(machine, overlap=overlap))
    loads = {level: load for level in beside if (load := _load(machine, level)) is not None}
    memory, first = (_load(machine, level) for level in (MEMORY, machine.levels[0].name))
    return Streams(machine, overlap, times, shown, unfollowed, beside, memory, loads=loads, first_load=first)


def _unfollowed(machine: Machine, misses: MissParameters) -> Unfollowed | None:
    """What a line takes that no prefetcher fetches.

    Loads of one core from memory, prefetched into the second cache, are as many at once as this cache waits for; those
    that nothing prefetches as many as the first cache waits for (J. D. McCalpin 2023, see above). A table of streams
    that are visited in turn keeps none if there are more than it has room for and it replaces what was used longest
    ago, which is assumed: each is replaced before it comes again. What the machine's file says goes before that.
    """
    if machine.streams is not None:
        return Unfollowed(machine.streams.followed, None, machine.streams.longer)
    if misses.streams is None or misses.from_l1 is None or misses.from_l2 is None:
        return None
    load = _load(machine, MEMORY)
    return None if load is None else Unfollowed(misses.streams, load * misses.from_l2 / misses.from_l1)


def _load(machine: Machine, level: str) -> float | None:
    """Cycles of a line of a stream of loads from a level on all paths together; None: not measured."""
    mixes = (mix for mix in _mixes(machine) if not mix.write)
    loads = [cycles / mix.read for mix in mixes if (cycles := _one_core_cycles(machine, mix, level))]
    return min(loads, default=None)


def beside_cycles(known: Sequence[float], lines: float, further: float | None = None) -> float:
    """By how many cycles a line from further out takes longer beside so many lines of a cache: linear between whole
    numbers of lines.

    Args:
        known: beside 1, 2, … lines.
        further: of each line beyond those, what it takes in a stream of loads; None: what the last but one to the last
            make of it.
    """
    points = [0.0, *known]
    if further is not None and lines > len(known):
        return points[-1] + (lines - len(known)) * further
    first = min(int(lines), len(points) - 2)
    return points[first] + (lines - first) * (points[first + 1] - points[first])


def spread_cycles(
    known: Sequence[float], lines: float, memory: float, most: int, further: float | None = None
) -> float:
    """By how many cycles so many lines from memory together take longer beside so many lines of a cache.

    What one line from memory takes beside 1, 2, … others is known. A core that executes out of order may have the same
    lines beside one of several from memory, or spread over some or all of them: what takes least counts.

    Args:
        known, further: as of `beside_cycles`; lines: of the cache; memory: from memory, above 0.
        most: from memory that are loaded in the same pass; 0: not known.
    """
    shares = [float(number) for number in range(1, most + 1)] + [memory]
    return min(share * beside_cycles(known, lines / share, further) for share in shares)


def _shown_overlap(machine: Machine) -> tuple[Overlap, str]:
    """The composition of times: where streams show that loads into registers do not add to transfers, T_nOL overlaps.

    Two streams that move the same lines and differ in how much of them they load into registers (copy, which
    only stores to one of its lines, and daxpy, which loads it too) differ by the loads where these add, and
    not where they overlap. Where they add to lines from the second cache only, they overlap with what comes from
    further out.
    """
    match machine.overlap:
        case Max((Time(core), Sum((Time(loads), *rest)))) if (core, loads) == ("T_OL", "T_nOL") and rest:
            inner, transfers = rest[0], rest[0] if len(rest) == 1 else Sum(tuple(rest))
        case _:
            return machine.overlap, ""
    pairs = list(_same_lines(machine, machine.levels[1].name))
    if not pairs:
        return machine.overlap, ""
    longer = sum(more - less for _, less, more, _ in pairs) / sum(loads for *_, loads in pairs)
    told = ", ".join(f"{names} take {less:.2f} and {more:.2f} cy" for names, less, more, _ in pairs)
    adds = longer >= _ADDS
    overlap = Max((Time(core), Sum((Time(loads), inner)) if adds else Time(loads), transfers))
    where = f"add to lines from {machine.levels[1].name} only" if adds else "overlap with transfers"
    return overlap, f"loads into registers {where}, as one core's streams show: {told}"


_ADDS = 0.5
"""Share of the cycles of added loads by which a stream has to become longer for them to add rather than overlap.

From 0.25 to 0.75 the streams of all carried machines say the same."""


def _load_cycles(machine: Machine, mix: StreamMix) -> float:
    """Cycles in which the loads of a mix occupy L1; 0 where the machine file has no width."""
    width = machine.core.load_bytes_per_cycle
    return mix.read * machine.line_bytes / width if width else 0.0


def _same_lines(machine: Machine, level: str) -> Iterator[tuple[str, float, float, float]]:
    """Pairs of mixes that move the same lines and load different numbers of them: their names, what they take with data
    in a level, fewer loads first, and the cycles that the loads more take."""
    measured = ((mix, _one_core_cycles(machine, mix, level)) for mix in _mixes(machine))
    known = [(mix, cycles) for mix, cycles in measured if cycles is not None]
    for (less, first), (more, second) in product(known, known):
        same = (_loaded(less), less.write) == (_loaded(more), more.write)
        loads = _load_cycles(machine, more) - _load_cycles(machine, less)
        if same and loads > 0:
            yield f"{less.name} and {more.name} in {level}", first, second, loads


def _stream_times(machine: Machine) -> dict[str, tuple[StreamTime, ...]]:
    """By path what its lines take; mixes that the core itself takes as long for are left out."""
    found: dict[str, dict[_Kind, list[tuple[str, float]]]] = {}
    for mix in _mixes(machine):
        for name, kind, cycles in _implied(machine, mix):
            found.setdefault(name, {}).setdefault(kind, []).append((mix.name, cycles))
    return {
        name: tuple(
            StreamTime(tuple(mix for mix, _ in group), *kind, fsum(cycles for _, cycles in group) / len(group))
            for kind, group in sorted(kinds.items(), key=lambda item: (item[0][0], item[0][1] or False))
        )
        for name, kinds in found.items()
    }


_Kind = tuple[float, bool | None]
"""Share of modified lines, and whether these were read before."""


def stream_cycles(times: Sequence[StreamTime], path: TransferPath, flow: PathLines, read_before: float) -> float:
    """Cycles of a path for these lines: between mixes linear in the share of modified lines, beyond them the nearest.

    Lines that were read before they are written take what mixes take that change lines in place, others what mixes take
    that write lines without reading them; beyond the most modified lines of the one, those of the other.

    Args:
        times: of the path, at least one.
        read_before: share of the modified lines that were read before they are written.
    """
    lines = flow.occupying(path)
    if not lines:
        return 0.0
    share = flow.stores / lines
    kinds = [(part, written) for part, written in ((read_before, True), (1 - read_before, False)) if part > 0]
    return lines * sum(part * _at_share(_of_kind(times, written), share) for part, written in kinds)


def _of_kind(times: Sequence[StreamTime], read_before: bool) -> list[StreamTime]:
    """The mixes whose written lines were read before, or were not, and what is beyond them."""
    own = [time for time in times if time.read_before in (None, read_before)]
    most = max((time.modified_share for time in own), default=-1.0)
    return [*own, *(time for time in times if time.modified_share > most)]


def _at_share(times: Sequence[StreamTime], share: float) -> float:
    """Cycles of a line at a share of modified lines, of mixes in the order of theirs."""
    below = [time for time in times if time.modified_share <= share]
    above = [time for time in times if time.modified_share >= share]
    low, high = (below or above[:1])[-1], (above or below[-1:])[0]
    width = high.modified_share - low.modified_share
    part = (share - low.modified_share) / width if width else 0.0
    return low.cycles_per_line + part * (high.cycles_per_line - low.cycles_per_line)


def _implied(machine: Machine, mix: StreamMix) -> Iterator[tuple[str, _Kind, float]]:
    """By path its name, the share of modified lines of a mix and whether they were read before, and the cycles of an
    occupying line."""
    in_l1 = _one_core_cycles(machine, mix, machine.levels[0].name) or 0.0
    # without the width, all that the core does counts as loads; a mix that only writes has none
    loads = _load_cycles(machine, mix) if machine.core.load_bytes_per_cycle else in_l1
    fixed = {"T_OL": max(in_l1, loads), "T_nOL": loads}
    per_line: dict[str, float] = {}
    for depth, path in enumerate(machine.paths):
        flows = _flows(machine, mix, depth)
        inner = {
            one.time_name: flow.occupying(one) * per_line[one.name]
            for one, flow in zip(machine.paths[:depth], flows, strict=False)
            if one.name in per_line
        }
        cycles, lines = _one_core_cycles(machine, mix, path.outer), flows[depth].occupying(path)
        width = None if path.bytes_per_cycle is None else lines * machine.line_bytes / path.bytes_per_cycle
        found = None if cycles is None else _solved(machine, fixed | inner, path.time_name, cycles, width)
        if found is not None and len(inner) == depth:
            per_line[path.name] = found / lines
            told = mix.write and (depth + 1 == len(machine.levels) or not machine.levels[depth + 1].loads_pass_by)
            kind = (round(flows[depth].stores / lines, 9), mix.read_write > 0 if told else None)
            yield path.name, kind, found / lines
        elif path.bytes_per_cycle is not None:
            per_line[path.name] = machine.line_bytes / path.bytes_per_cycle


def _mixes(machine: Machine) -> Sequence[StreamMix]:
    """The mixes, of the same streams those with the widest accesses: narrower ones keep the core busy, not the path."""
    found = dict.fromkeys(series.mix for series in machine.bandwidths)
    widest: dict[tuple[int, int, int], int] = {}
    for mix in found:
        streams = (mix.read, mix.write, mix.read_write)
        widest[streams] = max(widest.get(streams, 0), mix.access_bytes or 0)
    return tuple(mix for mix in found if (mix.access_bytes or 0) == widest[mix.read, mix.write, mix.read_write])


def _loaded(mix: StreamMix) -> int:
    """Lines that a mix loads, write-allocates among them."""
    return mix.read + mix.write - mix.read_write


def _one_core_cycles(machine: Machine, mix: StreamMix, level: str) -> float | None:
    """Cycles in which one core moves a line of each stream of a mix with data in a level; None: not measured.

    Of those from memory, the share of lines that the last cache served took as long as all take from there.
    """
    for series in machine.bandwidths:
        if (series.mix, series.level, series.threads_per_core) == (mix, level, 1) and series.cores[0] == 1:
            cycles = (mix.read + mix.write) * machine.line_bytes / series.bytes_per_second[0] * machine.clock_hz
            cached = from_caches(machine) if level == MEMORY else 0.0
            inner = (_one_core_cycles(machine, mix, machine.levels[-1].name) if cached else None) or 0.0
            return (cycles - cached * inner) / (1 - cached)
    return None


def _flows(machine: Machine, mix: StreamMix, depth: int) -> list[PathLines]:
    """The lines of a mix over the paths up to the one with this index, with data in the level beyond it."""
    loads = _loaded(mix)
    found = []
    for index, outer in enumerate(machine.levels[1 : depth + 2]):
        victims = outer.filled_by == "victims"
        passing = outer.loads_pass_by and index < depth
        clean = loads - mix.write if victims and outer.clean_victims else 0
        found.append(PathLines(0.0 if victims and passing else loads, mix.write, max(0, clean)))
    return found if depth + 1 < len(machine.levels) else [*found, PathLines(loads, mix.write, 0.0)]


_SEEN = 1.1
"""A path shows in a stream where it makes it longer by more than measurements vary.

Of the carried machines 1.05 changes zen alone, where a stream changed in place no longer shows its time from L3 (2.3
cycles a line), so that its lines from memory take 7 % longer; 1.2 changes two such times of zen, by 7 and 9 %, and one
between the first caches of zen2."""


def _solved(
    machine: Machine, times: Mapping[str, float], name: str, cycles: float, width: float | None
) -> float | None:
    """The time of a path for which the composition gives so many cycles; None where the other times take as long, and
    leave as much for the path as its width takes: then nothing is seen of it."""
    left = cycles - (evaluate(machine.overlap, {**times, name: _MANY}) - _MANY)
    if cycles > _SEEN * evaluate(machine.overlap, times):
        return left
    return max(0.0, left) if width is not None and cycles * _SEEN < cycles - left + width else None
