"""Between which values T_ECM lies: the terms of a prediction, of which each interval varies one that is not known.

All times are in cycles per unit of work (cy/CL) at the core clock of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernmodel.machine.model import Machine
from kernmodel.machine.overlap import evaluate
from kernmodel.models.calls import CallWork
from kernmodel.models.outside import OutsideWork
from kernmodel.models.streams import Streams
from kernmodel.models.transfers import (
    Executed,
    TransferTime,
    lacks_one_core,
    rows_again_cycles,
    streams_beyond,
    transfer_times,
)
from kernmodel.traffic.model import ENDS, Traffic
from kernmodel.traffic.stream_runs import Runs
from kernmodel.uncertainty import Interval, union
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one prediction.

    Attributes:
        machine: with the composition of times that holds.
        traffic, streams, runs, outside, calls: as `ecm.predict` is given them; no runs where they are left out.
        t_ol, t_nol: in-core times of the body of the innermost loop.
        transfers: the times of the paths, innermost first.
        executed: by the core per unit of work.
    """

    traffic: Traffic
    machine: Machine
    streams: Streams | None
    runs: Runs
    outside: OutsideWork | None
    calls: CallWork | None
    t_ol: float
    t_nol: float
    transfers: tuple[TransferTime, ...]
    executed: Executed

    @property
    def t_out(self) -> float:
        """What the core executes outside the body of the innermost loop, which adds to what the expression gives."""
        return self.outside.cycles if self.outside else 0.0

    @property
    def t_call(self) -> float:
        """What functions take that the loop calls, which adds to T_OL."""
        return self.calls.cycles if self.calls else 0.0

    @property
    def body(self) -> dict[str, float]:
        """The times of the body of the innermost loop by name, with called functions in T_OL."""
        transfers = {transfer.name: transfer.cycles for transfer in self.transfers}
        return {"T_OL": self.t_ol + self.t_call, "T_nOL": self.t_nol, **transfers}

    def beside_outside(self, changed: Mapping[str, float] | None = None) -> dict[str, float]:
        """The times of the overlap expression, some of them `changed`; chains of several rows at once, and iterations
        outside the passes, count less in T_OL. Of the latter's loads it is known that they take no longer than all."""
        times = {**self.body, **(changed or {})}
        if self.outside is None:
            return times
        t_ol = max(0.0, times["T_OL"] - self.outside.less_cycles)
        t_nol = min(times["T_nOL"], t_ol) if self.outside.straight_cycles else times["T_nOL"]
        return {**times, "T_OL": t_ol, "T_nOL": t_nol}

    def inside(self, changed: Mapping[str, float] | None = None) -> float:
        """T_ECM without T_out, with some times of the body `changed`."""
        return evaluate(self.machine.overlap, self.beside_outside(changed))

    def total(self, changed: Mapping[str, float] | None = None) -> float:
        """T_ECM, with some times of the body `changed`."""
        return self.t_out + self.inside(changed)

    def moving(self, traffic: Traffic, streams: Streams | None) -> float:
        """T_ECM with other traffic, or where streams imply something else."""
        transfers = transfer_times(self.machine, streams, traffic, self.runs, self.executed)
        other = {transfer.name: transfer for transfer in transfers}
        moved = tuple(other.get(transfer.name, transfer) for transfer in self.transfers)
        return replace(self, transfers=moved).total()


def intervals(terms: Terms, composed: Sequence[float]) -> Iterator[Interval | None]:
    """The interval of T_ECM by everything that is not known but the addresses of arrays and code; None where something
    makes no difference.

    Args:
        composed: T_ECM by each composition of times that experiments do not tell apart from the machine's.
    """
    yield _evasion_interval(terms)
    yield _exit_interval(terms)
    yield _branch_interval(terms)
    yield _call_interval(terms)
    yield _row_interval(terms)
    yield _remainder_interval(terms)
    yield _traffic_interval(terms)
    if composed:
        cause = "how the times compose, which experiments left undecided"
        yield _interval([terms.total(), *composed], cause, str(terms.machine.overlap))
    if terms.streams is not None:
        yield _prefetch_interval(terms, terms.streams)
        yield _again_interval(terms, terms.streams)
        yield _one_core_interval(terms, terms.transfers[-1])


def _exit_interval(terms: Terms) -> Interval | None:
    """T_ECM with exits of the inner loop that the branch predictor foresees, and with mispredicted ones."""
    outside = terms.outside
    if outside is None or outside.least_cycles == outside.cycles:
        return None
    inside = terms.inside()
    found = [inside + cycles for cycles in (outside.least_cycles, outside.cycles)]
    return _interval(found, "whether the branch predictor foresees the end of the short inner loop", "it does not")


def _branch_interval(terms: Terms) -> Interval | None:
    """T_ECM with branches in the loop that the predictor foresees, as taken, and with data that nothing foresees."""
    if terms.outside is None or not terms.outside.branch_cycles:
        return None
    t_ecm = terms.total()
    found = [t_ecm, t_ecm + terms.outside.branch_cycles]
    return _interval(found, "whether the branch predictor foresees the branches in the loop", "it does")


def _row_interval(terms: Terms) -> Interval | None:
    """T_ECM with rows that take their share of the longest one's cycles, and with rows that all take these."""
    if terms.outside is None or terms.outside.row_factor == 1.0:
        return None
    found = [terms.total(), terms.total({"T_OL": terms.outside.row_factor * terms.body["T_OL"]})]
    return _interval(found, "what rows shorter than the longest take", "their share of its cycles")


def _remainder_interval(terms: Terms) -> Interval | None:
    """T_ECM with iterations that fill no pass as fast as those of passes (by masks), and executed one by one."""
    outside, taken = terms.outside, terms.total()
    if outside is None or outside.single_cycles is None:
        return None
    rest = taken - outside.remainder_cycles
    found = [rest, taken, rest + outside.single_cycles]
    return _interval(found, "how iterations that fill no pass are executed", "whole vectors, then one by one")


def _call_interval(terms: Terms) -> Interval | None:
    """T_ECM with the arguments for which the functions that are called take least, and most."""
    calls = terms.calls
    if calls is None or calls.low == calls.high:
        return None
    rest = terms.body["T_OL"] - calls.cycles
    found = [terms.total({"T_OL": rest + cycles}) for cycles in (calls.low, calls.high)]
    return _interval(found, "arguments of the functions that are called", "usual ones")


def _evasion_interval(terms: Terms) -> Interval | None:
    """T_ECM with the most and with the fewest write-allocates from memory that the evasion leaves possible."""
    path = terms.machine.paths[-1]
    evasion, memory = terms.traffic.evasion, terms.traffic.path(path.name)
    if evasion is None or evasion.low == evasion.high:
        return None
    found = []
    for share in (evasion.low, evasion.high):
        loads = memory.loads + (evasion.share - share) * memory.write_allocates
        paths = (*terms.traffic.paths[:-1], replace(memory, loads=loads))
        moved = replace(terms.traffic, paths=paths, evasion=replace(evasion, share=share))
        found.append(terms.moving(moved, terms.streams))
    assumed = f"{evasion.share:.0%} of them are evaded"
    return _interval(found, "how many write-allocates from memory are evaded", assumed)


def _traffic_interval(terms: Terms) -> Interval | None:
    """T_ECM with the least and with the most traffic on every path whose traffic is not known."""
    traffic = terms.traffic
    known = union(interval for path in traffic.paths for interval in path.intervals.values())
    if known is None:
        return None
    found = [terms.total()]
    for end in ENDS:
        moved = replace(traffic, paths=tuple(path.at(end) for path in traffic.paths))
        found.append(terms.moving(moved, terms.streams))
    return _interval(found, known.cause, known.assumed)


def _prefetch_interval(terms: Terms, streams: Streams) -> Interval | None:
    """T_ECM with a prefetcher that follows all streams and with one that follows none, where they are too many, or
    nearly as many as it keeps by its manufacturer's word (`_SURE`)."""
    known = streams.unfollowed
    if known is None:
        return None
    several = streams_beyond(terms.traffic, terms.machine)
    followed, assumed = streams, "none, since they are more than it keeps"
    if several <= known.followed:
        if known.cycles_per_line is None or several <= _SURE * known.followed:
            return None
        followed = replace(streams, unfollowed=replace(known, followed=several - 1))
        assumed = "all, though they are nearly more than it keeps"
    found = [terms.moving(terms.traffic, one) for one in (replace(streams, unfollowed=None), followed)]
    return _interval(found, "how many of its streams the prefetcher follows", assumed)


_SURE = 0.75
"""Part of the streams that a prefetcher is said to keep up to which it surely does. Of 32 on Haswell and Broadwell 31
take as long as 37 (INSPECT's box of 27 coefficient arrays on grids of up to 110³ points), 23 do not (its star of radius
2 with 13); on Skylake SP 31 do not either."""


def _again_interval(terms: Terms, streams: Streams) -> Interval | None:
    """T_ECM with rows that are loaded again for nothing and for twice of what they cost in the mean over lengths of
    rows: single lengths do either."""
    if not rows_again_cycles(terms.machine, streams, terms.traffic):
        return None
    costs = ((), streams.rows, [2 * cycles for cycles in streams.rows])
    found = [terms.moving(terms.traffic, replace(streams, rows=rows)) for rows in costs]
    return _interval(found, "what rows cost that are loaded again", "the mean over lengths of rows")


def _one_core_interval(terms: Terms, memory: TransferTime) -> Interval | None:
    """T_ECM between what all cores together draw from memory and an equal part of what the fewest cores measured draw,
    where the machine file has no streams of one core; one core draws no less than that part, and no more than all."""
    if not lacks_one_core(terms.machine, terms.streams, memory) or memory.bandwidth is None:
        return None
    bandwidths, level = terms.machine.bandwidths, memory.bandwidth.level
    series = [one for one in bandwidths if one.level == level and one.threads_per_core == 1]
    least = min(one.bytes_per_second[0] / one.cores[0] for one in series if one.mix == memory.bandwidth.mix)
    most = max(value for one in series if one.mix == memory.bandwidth.mix for value in one.bytes_per_second)
    longest = memory.bandwidth_cycles * most / least + memory.penalty_cycles
    found = [terms.total(), terms.total({memory.name: longest})]
    return _interval(found, "what one core can draw from memory", "as much as all cores together")


def _interval(cycles: Sequence[float], cause: str, assumed: str) -> Interval | None:
    """The interval of these T_ECM; None where they are all the same."""
    low, high = min(cycles), max(cycles)
    return Interval(low, high, cause, assumed) if low < high else None
