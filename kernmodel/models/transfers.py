"""How long transfers take: the time of every path of the memory hierarchy per unit of work, for the ECM model.

All times are in cycles per unit of work (cy/CL) at the core clock of the machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from kernmodel.machine.model import CACHE_LINES, Machine, TransferPath
from kernmodel.machine.overlap import Overlap, evaluate
from kernmodel.models.bandwidths import MemoryBandwidth, nearest_bandwidth
from kernmodel.models.streams import (
    Streams,
    Unfollowed,
    beside_cycles,
    interpolated,
    spread_cycles,
    stream_cycles,
)
from kernmodel.traffic.model import PathLines, PathTraffic, Traffic
from kernmodel.traffic.stream_runs import Runs, restart_cycles
from kernmodel.value_types import NamedTuple, dataclass


@dataclass(frozen=True, slots=True)
class TransferTime:
    """Time of one path: `cycles` of one core, of which `penalty_cycles` are beyond what the path's width, or the
    bandwidth that all cores share, takes: latency that one core does not hide, streams that start anew. Negative where
    the streams of one core say that it hides a part of that.

    `bandwidth` is given where the path is shared and its bandwidth was measured, else None (the path has a width in
    B/cy). `of_streams` says that `cycles` are what the machine's streams of one core imply. A time that is not `known`
    is 0, the least that it can be. `hidden_cycles` are those that `cycles` lacks since lines of an inner cache are
    waited for at the same time.
    """

    name: str
    cycles: float
    penalty_cycles: float
    bytes: float
    bandwidth: MemoryBandwidth | None
    of_streams: bool = False
    known: bool = True
    hidden_cycles: float = 0.0

    @property
    def bandwidth_cycles(self) -> float:
        """The part of the time that occupies the path."""
        return self.cycles - self.penalty_cycles


def unknown_names(transfers: Iterable[TransferTime]) -> tuple[str, ...]:
    """The times that are not known since the machine file lacks a bandwidth."""
    return tuple(transfer.name for transfer in transfers if not transfer.known)


class Executed(NamedTuple):
    """What a core executes per unit of work: vectors that it writes, and cycles in which loads keep its load pipes
    busy."""

    vectors: float
    load_cycles: float


NOTHING_EXECUTED = Executed(0.0, 0.0)


def transfer_times(
    machine: Machine,
    streams: Streams | None,
    traffic: Traffic,
    runs: Runs,
    executed: Executed = NOTHING_EXECUTED,
) -> tuple[TransferTime, ...]:
    """Time of every path per unit of work, innermost first; see `transfer_time`.

    Args:
        executed: by the core meanwhile; nothing where that is not known, or left out.
    """
    found = tuple(
        transfer_time(machine, streams, path, traffic.path(path.name), restart_cycles(path, traffic, runs))
        for path in machine.paths
    )
    if streams is None:
        return found
    found = _beside_last(machine, streams, traffic, found)
    beside = sum(beside_lines(machine, streams, traffic).values())
    found = _less_memory(found, _hidden_cycles(machine, streams, traffic, found))
    found = _beside_memory(machine, streams, traffic, found, beside)
    found = _in_flight(machine, streams, traffic, found, beside, executed)
    found = _beside_rows(machine, streams, traffic, found)
    return _not_followed(machine, streams, traffic, found)


def _hidden_cycles(machine: Machine, streams: Streams, traffic: Traffic, transfers: tuple[TransferTime, ...]) -> float:
    """Cycles per unit of work in which lines that the second cache serves arrive while the core waits for memory.

    Of what such a line takes in a stream of loads it occupies the path for what the width takes, and the rest is
    waiting. Lines from further out wait in the second cache's buffers of misses, which its hits do not need: both wait
    at once, at most as long as memory takes beyond its bandwidth. Nothing where the times of both paths do not add up.
    """
    first, memory = machine.paths[0], transfers[-1]
    known, own = streams.times.get(first.name, ()), streams.machine.paths[0]
    adds = evaluate(streams.overlap, {transfers[0].name: 1.0, memory.name: 1.0}) > 1.0
    if len(transfers) < _PATHS or not known or first.bytes_per_cycle is None or own.bytes_per_cycle is None or not adds:
        return 0.0
    alone = stream_cycles(known, own, PathLines(1.0, 0.0, 0.0), 1.0)
    waiting = (alone - machine.line_bytes / own.bytes_per_cycle) * own.bytes_per_cycle / first.bytes_per_cycle
    return max(0.0, min(waiting * _served_by_second(machine, traffic), memory.penalty_cycles))


_PATHS = 2
"""Paths of a machine with a second cache before memory."""


def _served_by_second(machine: Machine, traffic: Traffic) -> float:
    """Lines that the second cache serves: what the first asks for, less what comes from further out."""
    loads = [traffic.path(path.name).loads for path in machine.paths]
    passing = sum(lines for level, lines in zip(machine.levels[2:], loads[2:], strict=False) if level.loads_pass_by)
    return max(0.0, loads[0] - loads[1] - passing)


def _less_memory(transfers: tuple[TransferTime, ...], hidden: float) -> tuple[TransferTime, ...]:
    """The times with so much less waiting for memory."""
    memory = transfers[-1]
    cycles, penalty = memory.cycles - hidden, memory.penalty_cycles - hidden
    return (*transfers[:-1], replace(memory, cycles=cycles, penalty_cycles=penalty, hidden_cycles=hidden))


def _beside_last(
    machine: Machine, streams: Streams, traffic: Traffic, transfers: tuple[TransferTime, ...]
) -> tuple[TransferTime, ...]:
    """The times where lines that lie in caches are loaded beside lines from the last cache: these take what its path
    takes, and what the core is known to take longer beside such lines, if that is longer than all transfers together.
    """
    more = sum(beside_last_lines(machine, streams, traffic).values())
    return _longer(streams.overlap, transfers, transfers[-2].cycles + more, at=-2) if more else transfers


def beside_last_lines(machine: Machine, streams: Streams, traffic: Traffic) -> dict[str, float]:
    """By cache, the cycles that lines from the last one take longer since lines that lie in this one are loaded beside
    them."""
    served, found = _served(machine, traffic), dict[str, float]()
    last = served.pop(machine.levels[-1].name, 0.0)
    most = int(last) if traffic.accesses else 0
    for level, known in streams.beside_last.items() if last > 0 else ():
        if known and served.get(level, 0.0) > 0:
            found[level] = spread_cycles(known, served[level], last, most, streams.loads.get(level))
    return found


def _beside_memory(
    machine: Machine, streams: Streams, traffic: Traffic, transfers: tuple[TransferTime, ...], more: float
) -> tuple[TransferTime, ...]:
    """The times where lines that lie in caches are loaded beside lines from memory: these take what a stream of loads
    takes, and what the core is known to take longer beside such lines (`more`, by `beside_lines`), if that is longer
    than all transfers together.

    Lines that are written back do not wait for one another as loads do: only the bandwidth has to do with them.
    """
    alone = streams.memory_load
    if not more or alone is None or not transfers[-1].known:
        return transfers
    lines = traffic.path(machine.paths[-1].name).loads
    return _longer(streams.overlap, transfers, lines * alone + more)


def beside_lines(machine: Machine, streams: Streams, traffic: Traffic) -> dict[str, float]:
    """By cache, outermost first, the cycles that lines from memory take longer since lines that lie there are loaded
    beside them; of several caches each counts beside those further out."""
    served, memory = _served(machine, traffic), traffic.path(machine.paths[-1].name).loads
    if not memory:
        return {}
    # of a function's traffic it is not known which lines are of one pass: they are spread evenly
    found, beyond = dict[str, float](), 0.0
    most = int(memory) if traffic.accesses else 0
    for level in reversed(served):
        known = streams.beside.get(level)
        if known and served[level] > 0:
            further = streams.loads.get(level)
            both = spread_cycles(known, beyond + served[level], memory, most, further)
            found[level] = both - spread_cycles(known, beyond, memory, most, further)
            beyond += served[level]
    return found


def _served(machine: Machine, traffic: Traffic) -> dict[str, float]:
    """By cache beyond the first, the lines that it serves: what is loaded from it, less what comes from further out."""
    loads = [traffic.path(path.name).loads for path in machine.paths]
    return {path.outer: inner - outer for path, (inner, outer) in zip(machine.paths, pairwise(loads), strict=False)}


def _in_flight(
    machine: Machine,
    streams: Streams,
    traffic: Traffic,
    transfers: tuple[TransferTime, ...],
    waiting: float,
    executed: Executed,
) -> tuple[TransferTime, ...]:
    """The times where lines from memory wait beside lines of caches, and the core has room for fewer passes that wait
    than for loads of lines alone, since its registers hold the vectors that these write, or loads from the first cache
    take part of the time that lines need to get there; see docs/ecm.md.

    Beside less than one line of a cache they take longer in proportion, and where stores alone ask for lines, whose
    time passes meanwhile, too; but no less than the lines that are read by themselves with what they wait beside lines
    of caches (`waiting`, by `beside_lines`).
    """
    loads, known = [traffic.path(path.name).loads for path in machine.paths], streams.vectors
    lines, alone = min(1.0, loads[-1]), streams.memory_load
    if not known or not lines or alone is None or not transfers[-1].known:
        return transfers
    beside = (loads[0] - loads[-1]) / lines
    # vectors of the loads, which are in what lines take beside others
    loaded = known[0][0] * (1 + beside) / (1 + CACHE_LINES)
    more = max(0.0, interpolated(known, executed.vectors / lines) - interpolated(known, loaded))
    # loads of the lines themselves are in all of these figures
    more += streams.hits * max(0.0, executed.load_cycles - (streams.first_load or 0.0) * loads[0]) / lines
    more *= lines * min(1.0, beside)
    evaded = traffic.evasion.share if traffic.evasion else 0.0
    read = max(0.0, loads[-1] - (1 - evaded) * traffic.path(machine.paths[-1].name).write_allocates)
    together = evaluate(streams.overlap, {transfer.name: transfer.cycles for transfer in transfers})
    by_itself = read * alone + waiting + more if read else 0.0
    return _longer(streams.overlap, transfers, max(together + read / loads[-1] * more, by_itself))


def _beside_rows(
    machine: Machine, streams: Streams, traffic: Traffic, transfers: tuple[TransferTime, ...]
) -> tuple[TransferTime, ...]:
    """The times where rows are loaded again that the first cache has since a row before: all transfers together take so
    much longer beside lines from memory."""
    more = rows_again_cycles(machine, streams, traffic)
    if not more or not transfers[-1].known:
        return transfers
    together = evaluate(streams.overlap, {transfer.name: transfer.cycles for transfer in transfers})
    return _longer(streams.overlap, transfers, together + more)


def rows_again_cycles(machine: Machine, streams: Streams, traffic: Traffic) -> float:
    """Cycles per unit of work that lines from memory take longer since lines of rows are loaded again that the first
    cache has since they were loaded in the rows before; beside less than one line from memory in proportion."""
    first, memory = machine.levels[0].name, traffic.path(machine.paths[-1].name).loads
    rows = sum(row.served_by.get(first, 0.0) for row in traffic.accesses if row.from_earlier_row)
    if not streams.rows or not rows or not memory:
        return 0.0
    # beyond the most that were measured each takes what these take in the mean
    return min(1.0, memory) * beside_cycles(streams.rows, rows, streams.rows[-1] / len(streams.rows))


def _longer(
    overlap: Overlap, transfers: tuple[TransferTime, ...], cycles: float, at: int = -1
) -> tuple[TransferTime, ...]:
    """The times with so much more latency from memory, or of another path, that all together take so many cycles, if
    that is more."""
    path, times = transfers[at], {transfer.name: transfer.cycles for transfer in transfers}
    more = cycles - (evaluate(overlap, {**times, path.name: _MANY_CYCLES}) - _MANY_CYCLES) - path.cycles
    if more <= 0 or evaluate(overlap, times) >= cycles:
        return transfers
    slower = replace(path, cycles=path.cycles + more, penalty_cycles=path.penalty_cycles + more)
    return tuple(slower if one is path else one for one in transfers)


_MANY_CYCLES = 1e9
"""Beside which all other times are nothing."""


def _not_followed(
    machine: Machine, streams: Streams, traffic: Traffic, transfers: tuple[TransferTime, ...]
) -> tuple[TransferTime, ...]:
    """The times where more streams miss the first cache than the prefetcher follows: lines from memory take what
    they take without it, if that is longer than all transfers together."""
    known, lines = unfollowed_streams(streams, traffic, machine), traffic.path(machine.paths[-1].name).loads
    if known is None or not lines or not transfers[-1].known:
        return transfers
    together = evaluate(streams.overlap, {transfer.name: transfer.cycles for transfer in transfers})
    most = math.inf if streams.memory_load is None else streams.memory_load * streams_beyond(traffic, machine)
    return _longer(streams.overlap, transfers, known.cycles(lines, together, most))


def unfollowed_streams(streams: Streams, traffic: Traffic, machine: Machine) -> Unfollowed | None:
    """What lines take that the prefetcher does not fetch, if more streams miss the first cache than it follows."""
    known = streams.unfollowed
    return None if known is None or streams_beyond(traffic, machine) <= known.followed else known


def streams_beyond(traffic: Traffic, machine: Machine) -> int:
    """Streams that miss the first cache: references of which it does not serve half a line of each unit of work."""
    first = machine.levels[0].name
    beyond = (sum(row.served_by.values()) - row.served_by.get(first, 0.0) for row in traffic.accesses)
    return sum(lines >= _A_STREAM for lines in beyond)


_A_STREAM = 0.5
"""Lines per unit of work from which on a reference is a stream of its own.

Halved or doubled, it changes the count of one carried kernel on Broadwell (trmv, one stream in place of two), of none
near the 32 that prefetchers follow."""


def transfer_time(
    machine: Machine, streams: Streams | None, path: TransferPath, moved: PathTraffic, restart: float = 0.0
) -> TransferTime:
    """Time of one path per unit of work: what the machine's streams of one core take for such lines, where they show
    it; else half-duplex (loads + stores)/width, full-duplex the longer direction, and its latency penalties. With
    `restart` cycles in which streams start anew.

    Where figures of the machine file were changed, what the streams take changes in proportion to the width or the
    shared bandwidth, and by the penalties that were added. A path of which nothing is known has an unknown time
    wherever lines move over it.
    """
    if path.name in machine.unknown_paths:
        moved_bytes = (moved.loads + moved.evictions) * machine.line_bytes
        return TransferTime(path.time_name, 0.0, 0.0, moved_bytes, None, known=not moved_bytes)
    flow = PathLines(moved.loads, moved.stores, moved.clean_victims)
    read_before = max(0.0, 1 - moved.write_allocates / moved.stores) if moved.stores else 1.0
    least, bandwidth = _least_cycles(machine, path, flow, textbook=streams is None)
    known = streams.times.get(path.name, ()) if streams else ()
    if streams and known and least:
        own = next(one for one in streams.machine.paths if one.name == path.name)
        as_in_file, _ = _least_cycles(streams.machine, own, flow, textbook=False)
        cycles = stream_cycles(known, own, flow, read_before) * least / as_in_file
        cycles += moved.loads * (path.penalty_load - own.penalty_load)
        cycles += moved.evictions * (path.penalty_store - own.penalty_store)
    else:
        cycles = least + moved.loads * path.penalty_load + moved.evictions * path.penalty_store
    cycles = max(0.0, cycles + restart)
    moved_bytes, penalty = (moved.loads + moved.evictions) * machine.line_bytes, cycles - least
    return TransferTime(path.time_name, cycles, penalty, moved_bytes, bandwidth, bool(known))


def _least_cycles(
    machine: Machine, path: TransferPath, flow: PathLines, *, textbook: bool
) -> tuple[float, MemoryBandwidth | None]:
    """What the width of a path takes for these lines, or the bandwidth of memory that all cores share, and that."""
    if path.bytes_per_cycle is not None:
        return flow.occupying(path) * machine.line_bytes / path.bytes_per_cycle, None
    total = flow.loads + flow.stores
    bandwidth = nearest_bandwidth(machine, path.outer, flow.loads / total if total else 1.0, textbook=textbook)
    # measured bytes are those of both directions, whichever of them the path has at a time
    return sum(flow) * machine.line_bytes / bandwidth.bytes_per_second * machine.clock_hz, bandwidth


def lacks_one_core(machine: Machine, streams: Streams | None, memory: TransferTime) -> bool:
    """Whether a time of memory takes the bandwidth of many cores for that of one, since the file has no other."""
    return streams is not None and machine.paths[-1].name not in streams.times and memory.bandwidth_cycles > 0
