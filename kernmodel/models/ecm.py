"""The Execution-Cache-Memory model: one core from in-core time and data traffic, many cores from bandwidth saturation.

A loop's runtime per unit of work (one cache line of its leading stream) is composed of T_OL, the in-core time that
overlaps with data transfers, T_nOL, the in-core time that does not (on Intel: the cycles in which loads occupy the L1
data paths), and one transfer time per path of the memory hierarchy (Stengel, Treibig, Hager, Wellein: Quantifying
performance bottlenecks of stencil computations using the ECM model, ICS'15; Hofmann, Alappat, Hager, Fey, Wellein:
Bridging the architecture gap, SuperFRI 7(2), 2020). How they compose is a property of the machine: `Machine.overlap`.

All times are in cycles per unit of work (cy/CL) at the core clock of the machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise, repeat
from typing import Literal

from kernmodel.errors import MachineError, Note
from kernmodel.incore.answer.components import DIVIDER, FRONT_END, PORTS, PRECEDENCE
from kernmodel.incore.answer.verdict import reaches
from kernmodel.incore.engine.ports import group_bound
from kernmodel.incore.model import InCore, Reason
from kernmodel.incore.tables.core_parameters import with_dividers
from kernmodel.machine.cores import SPREAD, Spread
from kernmodel.machine.model import Machine, TransferPath
from kernmodel.machine.overlap import Max, Overlap, Sum, Time, evaluate
from kernmodel.models.bandwidths import (
    UNFITTED,
    MemoryBandwidth,
    drawn_share,
    nearest_bandwidth,
    next_utilization,
    penalties,
    with_cores,
)
from kernmodel.models.calls import CALLS, CallWork
from kernmodel.models.outside import OUTSIDE, OutsideWork
from kernmodel.models.streams import Streams, Unfollowed, beside_cycles, recomposed, stream_cycles
from kernmodel.traffic.model import ENDS, PathLines, PathTraffic, Traffic
from kernmodel.traffic.stream_runs import Runs, restart_cycles, shortest_run
from kernmodel.uncertainty import Interval, union
from kernmodel.units import Work, format_bytes
from kernmodel.value_types import dataclass

OlBoundBy = Literal["ports", "dependency", "front end", "scheduling"]
"""What bounds T_OL: execution ports and dividers, a loop-carried dependency, fetching to issue, or the pipeline as a
whole."""


UNKNOWN = "?"
"""In place of a time that is not known."""

AT_LEAST = "≥ "
"""Before a sum of which a part is not known."""


@dataclass(frozen=True, slots=True)
class TransferTime:
    """Time of one path: `cycles` of one core, of which `penalty_cycles` are beyond what the path's width, or the
    bandwidth that all cores share, takes: latency that one core does not hide, streams that start anew. Negative where
    the streams of one core say that it hides a part of that.

    `bandwidth` is given where the path is shared and its bandwidth was measured, else None (the path has a width in
    B/cy). `of_streams` says that `cycles` are what the machine's streams of one core imply. A time that is not `known`
    is 0, the least that it can be.
    """

    name: str
    cycles: float
    penalty_cycles: float
    bytes: float
    bandwidth: MemoryBandwidth | None
    of_streams: bool = False
    known: bool = True

    @property
    def bandwidth_cycles(self) -> float:
        """The part of the time that occupies the path."""
        return self.cycles - self.penalty_cycles


def unknown_names(transfers: Iterable[TransferTime]) -> tuple[str, ...]:
    """The times that are not known since the machine file lacks a bandwidth."""
    return tuple(transfer.name for transfer in transfers if not transfer.known)


@dataclass(frozen=True, slots=True)
class EcmPrediction:
    """The single-core prediction.

    Attributes:
        machine: name; cores: active cores that share the shared caches in this prediction.
        t_ol, t_nol: in-core times of the body of the innermost loop, cy/CL.
        ol_bound_by: "ports", "dependency", "front end" or "scheduling".
        transfers: per path, innermost first.
        levels: prediction per residence level, (level, cy/CL), innermost first; the last one is T_ECM.
        binding: names of the times that add up to T_ECM.
        core_reason: what fills the part of the core that binds the body of the innermost loop.
        saturation_simple: ⌈T_ECM / T_Mem⌉, None if a ccNUMA domain has fewer cores.
        saturation_recursive: first number of cores of a ccNUMA domain with full utilisation by the recursive rule, None
            if all of them do not reach it.
        work: what a unit of work is, for conversions.
        cycles_interval: between which values T_ECM lies where something that it depends on is not known (how many
            write-allocates from memory are evaded, whether exits of loops are foreseen, how the arrays lie in memory);
            None where nothing is.
        outside: what is executed outside the body of the innermost loop, in the levels and T_ECM; None where it is left
            out (the textbook model).
        calls: the functions that the loop calls, in the levels and T_ECM as far as their times are known; None without
            any.
        penalties: p0 of the recursive rule in units of T_Mem for 2, 3, … cores, the last one for more; empty: T_Mem/2.
        textbook: whether the machine's streams have no part in it.
    """

    machine: str
    cores: int
    t_ol: float
    t_nol: float
    ol_bound_by: OlBoundBy
    transfers: tuple[TransferTime, ...]
    levels: tuple[tuple[str, float], ...]
    overlap: str
    binding: tuple[str, ...]
    core_reason: Reason
    saturation_simple: int | None
    saturation_recursive: int | None
    work: Work
    notes: tuple[Note, ...]
    cycles_interval: Interval | None = None
    outside: OutsideWork | None = None
    calls: CallWork | None = None
    penalties: tuple[float, ...] = ()
    textbook: bool = False

    @property
    def lacks_calls(self) -> bool:
        """Whether the time of a function that the loop calls is not known: T_ECM is a lower bound."""
        return self.calls is not None and not self.calls.known

    @property
    def t_call(self) -> float:
        """T_call: cycles per unit of work in functions that the loop calls, as far as they are known; adds to T_OL."""
        return 0.0 if self.calls is None else self.calls.cycles

    @property
    def cycles(self) -> float:
        """T_ECM: cycles per unit of work with the traffic that the sizes cause."""
        return self.levels[-1][1]

    @property
    def unknown(self) -> tuple[str, ...]:
        """The times that are not known, since the machine file lacks a figure or the loop calls functions: T_ECM is at
        least what it is said to be."""
        return (CALLS, *self.unknown_transfers) if self.lacks_calls else self.unknown_transfers

    @property
    def unknown_transfers(self) -> tuple[str, ...]:
        """The times that are not known since the machine file lacks a bandwidth."""
        return unknown_names(self.transfers)

    @property
    def is_lower_bound(self) -> bool:
        """Whether T_ECM (`cycles`) is a lower bound, since a time that it contains is not known (`unknown`)."""
        return bool(self.unknown)

    def is_least(self, level: str) -> bool:
        """Whether the prediction with data from a level is a lower bound, since a time within it is not known."""
        depth = next(depth for depth, (name, _) in enumerate(self.levels) if name == level)
        return self.lacks_calls or any(not transfer.known for transfer in self.transfers[:depth])

    @property
    def t_out(self) -> float:
        """T_out: cycles per unit of work outside the body of the innermost loop, which add to all others."""
        return 0.0 if self.outside is None else self.outside.cycles

    @property
    def core_cycles(self) -> float:
        """The in-core time beside data transfers: T_OL and T_call, less what chains of several rows overlap, and
        T_out."""
        overlap = 0.0 if self.outside is None else self.outside.overlap_cycles
        return max(0.0, self.t_ol + self.t_call - overlap) + self.t_out

    @property
    def memory_cycles(self) -> float:
        """T_Mem: the time the memory path is occupied per unit of work."""
        return self.transfers[-1].bandwidth_cycles

    @property
    def times(self) -> dict[str, float]:
        """All times by name: those of the overlap expression, T_call, which adds to T_OL, where functions are called,
        and T_out, which adds to what the expression gives."""
        transfers = {transfer.name: transfer.cycles for transfer in self.transfers}
        called = {} if self.calls is None else {CALLS: self.t_call}
        return {"T_OL": self.t_ol, **called, "T_nOL": self.t_nol, OUTSIDE: self.t_out, **transfers}

    def shorthand(self) -> str:
        """`{T_OL ‖ T_nOL | T_L1L2 | …} cy/CL`."""
        transfers = (f"{transfer.cycles:.1f}" if transfer.known else UNKNOWN for transfer in self.transfers)
        inner = " | ".join((f"{self.t_nol:.1f}", *transfers))
        return f"{{{self.t_ol:.1f} ‖ {inner}}} cy/CL"

    def level_shorthand(self) -> str:
        """`{T_L1 ⌉ T_L2 ⌉ T_L3 ⌉ T_Mem} cy/CL`."""
        found = (f"{AT_LEAST * self.is_least(level)}{cycles:.1f}" for level, cycles in self.levels)
        return f"{{{' ⌉ '.join(found)}}} cy/CL"


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """Performance on `cores` cores.

    Attributes:
        domains: ccNUMA domains in use.
        units_per_cycle: units of work per cycle of all cores together.
        cycles: cycles per unit of work of all cores together (1 / units_per_cycle).
        utilization: of the first domain's memory bandwidth, 0 to 1.
        saturated: whether every domain in use is saturated: more cores of it would not draw more. Its streams may draw
            less than those of fewer cores, so that less than all is used.
        single_core_cycles: T_ECM of one core in the fullest domain (its share of the shared caches).
    """

    cores: int
    domains: int
    units_per_cycle: float
    cycles: float
    utilization: float
    saturated: bool
    single_core_cycles: float


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The in-core analysis of the same code, with its arrays where they are the least and the most in the way.

    `assumed` is where the prediction itself takes them to lie, in words.
    """

    incores: tuple[InCore, ...]
    assumed: str


_MANY_CORES = 100_000
"""More than any machine has: a saturation point beyond is none."""


def predict(
    traffic: Traffic,
    incore: InCore,
    machine: Machine,
    *,
    outside: OutsideWork | None = None,
    runs: Runs | None = None,
    streams: Streams | None = None,
    elsewhere: Elsewhere | None = None,
    calls: CallWork | None = None,
) -> EcmPrediction:
    """The single-core ECM prediction.

    Args:
        outside: what the core executes outside the body of the innermost loop; None leaves it out, as the textbook
            model does.
        streams: what the machine's streams of one core imply for the paths and their composition; None takes widths,
            saturated bandwidths and the machine's composition, as the textbook model does.
        runs: how far each reference walks contiguously, for machines that know what short runs cost; None leaves that
            out.
        elsewhere: the code with its arrays elsewhere, where that makes a difference.
        calls: the functions that the loop calls; None: none.

    Raises:
        MachineError: the machine file has no bandwidth for a path that needs one.
    """
    composed = [
        predict(traffic, incore, other, outside=outside, runs=runs, streams=its, calls=calls).cycles
        for other, its in _otherwise_composed(machine, streams)
    ]
    if streams is not None:
        machine = replace(machine, overlap=streams.overlap)
    passes = traffic.iterations_per_unit / (incore.iterations_per_pass or 1.0)
    t_ol, t_nol, bound_by = _incore_times(incore, machine, passes)
    restarts = [restart_cycles(path, traffic, runs or {}) for path in machine.paths]
    transfers = transfer_times(machine, streams, traffic, runs or {})
    t_call = calls.cycles if calls else 0.0
    body = {"T_OL": t_ol + t_call, "T_nOL": t_nol, **{t.name: t.cycles for t in transfers}}
    t_out = outside.cycles if outside else 0.0
    times = _beside_outside(body, outside)
    every = {**times, OUTSIDE: t_out}
    levels = tuple((level, t_out + cycles) for level, cycles in residence_predictions(machine, times))
    t_ecm, t_mem = levels[-1][1], transfers[-1].bandwidth_cycles
    textbook, bandwidth = streams is None, transfers[-1].bandwidth
    fitted = penalties(machine, bandwidth) if bandwidth and not textbook else ()
    domain = machine.topology.cores_per_numa_domain
    bodies = [body]
    for other in elsewhere.incores if elsewhere else ():
        one_ol, one_nol, _ = _incore_times(other, machine, passes)
        bodies.append({**body, "T_OL": one_ol + t_call, "T_nOL": one_nol})
    intervals = (
        *_array_intervals(machine, bodies, outside, elsewhere),
        _evasion_interval(traffic, machine, every, partial(transfer_time, machine, streams, restart=restarts[-1])),
        _exit_interval(machine, body, outside),
        _branch_interval(t_ecm, outside),
        _call_interval(machine, body, outside, calls),
        _row_interval(machine, body, outside),
        _traffic_interval(traffic, machine, every, streams, runs or {}),
        _interval([t_ecm, *composed], "how the times compose, which experiments left undecided", str(machine.overlap)),
        None if streams is None else _prefetch_interval(traffic, machine, every, streams, runs or {}),
        None if streams is None else _one_core_interval(machine, streams, every, transfers[-1]),
    )
    return EcmPrediction(
        machine=machine.name,
        cores=traffic.cores,
        t_ol=t_ol,
        t_nol=t_nol,
        ol_bound_by=bound_by,
        transfers=transfers,
        levels=levels,
        overlap=str(machine.overlap),
        binding=_binding_terms(binding_times(machine.overlap, times), calls=t_call > 0, outside=t_out > 0),
        core_reason=incore.reason,
        saturation_simple=saturation_simple(t_ecm, t_mem, domain),
        saturation_recursive=saturation_recursive(t_ecm, t_mem, domain, fitted),
        work=_work(traffic, machine),
        notes=(
            *_notes(incore, transfers),
            *_unknown_notes(machine, transfers),
            *_stream_notes(machine, streams, transfers[-1]),
            *_restart_notes(machine, traffic, runs or {}, restarts),
            *_prefetch_notes(machine, traffic, streams),
            *_beside_notes(machine, traffic, streams),
        ),
        cycles_interval=union(intervals),
        outside=outside,
        calls=calls,
        penalties=fitted,
        textbook=textbook,
    )


def _binding_terms(times: tuple[str, ...], *, calls: bool, outside: bool) -> tuple[str, ...]:
    """The times that add up to T_ECM, with the terms for called functions and for work outside the innermost loop."""
    if calls and "T_OL" in times:
        at = times.index("T_OL") + 1
        times = (*times[:at], CALLS, *times[at:])
    return (*times[:1], OUTSIDE, *times[1:]) if outside else times


def _otherwise_composed(machine: Machine, streams: Streams | None) -> Iterator[tuple[Machine, Streams | None]]:
    """The machine with each composition that experiments do not tell apart from its own, and what streams imply so."""
    for overlap in machine.undecided:
        other = replace(machine, overlap=overlap, undecided=())
        yield other, None if streams is None else recomposed(streams, overlap)


def _beside_outside(body: Mapping[str, float], outside: OutsideWork | None) -> dict[str, float]:
    """The times of the overlap expression, which T_out adds to; chains of several rows at once count less in T_OL."""
    overlap = outside.overlap_cycles if outside else 0.0
    return {**body, "T_OL": max(0.0, body["T_OL"] - overlap)}


def _exit_interval(machine: Machine, body: Mapping[str, float], outside: OutsideWork | None) -> Interval | None:
    """T_ECM with exits of the inner loop that the branch predictor foresees, and with mispredicted ones."""
    if outside is None or outside.least_cycles == outside.cycles:
        return None
    inside = evaluate(machine.overlap, _beside_outside(body, outside))
    found = [inside + cycles for cycles in (outside.least_cycles, outside.cycles)]
    return _interval(found, "whether the branch predictor foresees the end of the short inner loop", "it does not")


def _branch_interval(t_ecm: float, outside: OutsideWork | None) -> Interval | None:
    """T_ECM with branches in the loop that the predictor foresees, as taken, and with data that nothing foresees."""
    if outside is None or not outside.branch_cycles:
        return None
    found = [t_ecm, t_ecm + outside.branch_cycles]
    return _interval(found, "whether the branch predictor foresees the branches in the loop", "it does")


def _row_interval(machine: Machine, body: Mapping[str, float], outside: OutsideWork | None) -> Interval | None:
    """T_ECM with rows that take their share of the longest one's cycles, and with rows that all take these."""
    if outside is None or outside.row_factor == 1.0:
        return None
    bodies = (body, {**body, "T_OL": outside.row_factor * body["T_OL"]})
    found = [outside.cycles + evaluate(machine.overlap, _beside_outside(one, outside)) for one in bodies]
    return _interval(found, "what rows shorter than the longest take", "their share of its cycles")


def _call_interval(
    machine: Machine, body: Mapping[str, float], outside: OutsideWork | None, calls: CallWork | None
) -> Interval | None:
    """T_ECM with the arguments for which the functions that are called take least, and most."""
    if calls is None or calls.low == calls.high:
        return None
    t_out, rest = outside.cycles if outside else 0.0, body["T_OL"] - calls.cycles
    bodies = ({**body, "T_OL": rest + cycles} for cycles in (calls.low, calls.high))
    found = [t_out + evaluate(machine.overlap, _beside_outside(one, outside)) for one in bodies]
    return _interval(found, "arguments of the functions that are called", "usual ones")


def _array_intervals(
    machine: Machine, bodies: Sequence[Mapping[str, float]], outside: OutsideWork | None, elsewhere: Elsewhere | None
) -> Iterator[Interval | None]:
    """T_ECM with the arrays elsewhere, and what exits of inner loops make of it there; the first body is as taken."""
    if elsewhere is None:
        return
    t_out = outside.cycles if outside else 0.0
    found = [t_out + evaluate(machine.overlap, _beside_outside(body, outside)) for body in bodies]
    yield _interval(found, "addresses of the arrays", elsewhere.assumed)
    for body in bodies[1:]:
        yield _exit_interval(machine, body, outside)


def _evasion_interval(
    traffic: Traffic, machine: Machine, times: Mapping[str, float], timed: Callable[..., TransferTime]
) -> Interval | None:
    """T_ECM with the most and with the fewest write-allocates from memory that the evasion leaves possible."""
    evasion, memory = traffic.evasion, traffic.path(machine.paths[-1].name)
    if evasion is None or evasion.low == evasion.high:
        return None
    found = []
    for share in (evasion.low, evasion.high):
        loads = memory.loads + (evasion.share - share) * memory.write_allocates
        transfer = timed(machine.paths[-1], replace(memory, loads=loads))
        found.append(times[OUTSIDE] + evaluate(machine.overlap, {**times, transfer.name: transfer.cycles}))
    assumed = f"{evasion.share:.0%} of them are evaded"
    return _interval(found, "how many write-allocates from memory are evaded", assumed)


def _traffic_interval(
    traffic: Traffic, machine: Machine, times: Mapping[str, float], streams: Streams | None, runs: Runs
) -> Interval | None:
    """T_ECM with the least and with the most traffic on every path whose traffic is not known."""
    known = union(interval for path in traffic.paths for interval in path.intervals.values())
    if known is None:
        return None
    found = [times[OUTSIDE] + evaluate(machine.overlap, times)]
    for end in ENDS:
        moved = replace(traffic, paths=tuple(path.at(end) for path in traffic.paths))
        found.append(_with_transfers(machine, times, transfer_times(machine, streams, moved, runs)))
    return _interval(found, known.cause, known.assumed)


def _with_transfers(machine: Machine, times: Mapping[str, float], transfers: tuple[TransferTime, ...]) -> float:
    """T_ECM with other transfers."""
    return times[OUTSIDE] + evaluate(
        machine.overlap, {**times, **{transfer.name: transfer.cycles for transfer in transfers}}
    )


def _prefetch_interval(
    traffic: Traffic, machine: Machine, times: Mapping[str, float], streams: Streams, runs: Runs
) -> Interval | None:
    """T_ECM with a prefetcher that follows all streams and with one that follows none, where they are too many."""
    if not _too_many(streams, traffic, machine):
        return None
    both = (transfer_times(machine, one, traffic, runs) for one in (replace(streams, unfollowed=None), streams))
    found = [_with_transfers(machine, times, transfers) for transfers in both]
    return _interval(found, "how many of its streams the prefetcher follows", "none, since they are more than it keeps")


def _one_core_interval(
    machine: Machine, streams: Streams, times: Mapping[str, float], memory: TransferTime
) -> Interval | None:
    """T_ECM between what all cores together draw from memory and an equal part of what the fewest cores measured draw,
    where the machine file has no streams of one core; one core draws no less than that part, and no more than all."""
    if not _lacks_one_core(machine, streams, memory) or memory.bandwidth is None:
        return None
    series = [one for one in machine.bandwidths if one.level == memory.bandwidth.level and one.threads_per_core == 1]
    least = min(one.bytes_per_second[0] / one.cores[0] for one in series if one.mix == memory.bandwidth.mix)
    most = max(value for one in series if one.mix == memory.bandwidth.mix for value in one.bytes_per_second)
    longest = memory.bandwidth_cycles * most / least + memory.penalty_cycles
    both = (memory.cycles, longest)
    found = [times[OUTSIDE] + evaluate(machine.overlap, {**times, memory.name: one}) for one in both]
    return _interval(found, "what one core can draw from memory", "as much as all cores together")


def _lacks_one_core(machine: Machine, streams: Streams | None, memory: TransferTime) -> bool:
    """Whether a time of memory takes the bandwidth of many cores for that of one, since the file has no other."""
    return streams is not None and machine.paths[-1].name not in streams.times and memory.bandwidth_cycles > 0


def _stream_notes(machine: Machine, streams: Streams | None, memory: TransferTime) -> Iterator[Note]:
    """Whether streams of one core decide, and what they show."""
    if streams is not None and streams.shown:
        yield Note("streams-overlap", streams.shown, "assumption")
    if _lacks_one_core(machine, streams, memory):
        text = (
            f"the file of {machine.name} has no bandwidth of one core from memory, so that of many cores counts: one "
            "core draws less"
        )
        yield Note("one-core-bandwidth", text, "assumption")


def _interval(cycles: Sequence[float], cause: str, assumed: str) -> Interval | None:
    """The interval of these T_ECM; None where they are all the same."""
    low, high = min(cycles), max(cycles)
    return Interval(low, high, cause, assumed) if low < high else None


def _work(traffic: Traffic, machine: Machine) -> Work:
    return Work(
        iterations_per_unit=traffic.iterations_per_unit,
        flops_per_iteration=traffic.flops_per_iteration,
        updates_per_iteration=traffic.updates_per_iteration,
        iterations_per_sweep=traffic.iterations_per_sweep,
        clock_hz=machine.clock_hz,
    )


def _incore_times(incore: InCore, machine: Machine, passes: float) -> tuple[float, float, OlBoundBy]:
    """T_OL, T_nOL (cy/CL) and what bounds T_OL.

    Ports count where the machine says; everything else that the in-core analysis knows (dependencies, the front end,
    the simulated pipeline) goes on while data are transferred: it enters T_OL.
    """
    uses = [use for row in incore.uses for use in row]
    # a throughput that no port explains (a locked or microcoded instruction) was measured: it occupies the core
    measured = 0.0 if incore.binding_ports else incore.throughput
    ports = max(group_bound(uses, with_dividers(machine.core.overlapping_ports)), measured)
    idle = any(part.name == PRECEDENCE and not part.applies for part in incore.components)
    lcd = incore.lcd.cycles if incore.lcd and not idle else 0.0
    rest = [part.cycles for part in incore.components if part.applies and part.name not in _BY_MACHINE]
    t_ol = max(ports, lcd, *rest)
    t_nol = group_bound(uses, machine.core.non_overlapping_ports)
    return t_ol * passes, t_nol * passes, _bound_by(t_ol, ports, lcd, incore)


_BY_MACHINE = frozenset({PORTS, DIVIDER, PRECEDENCE})
"""Components that the machine file divides between T_OL and T_nOL, and the chain, which is looked at by itself."""


def _bound_by(t_ol: float, ports: float, lcd: float, incore: InCore) -> OlBoundBy:
    """What bounds T_OL: the nearest bound, else whatever the in-core analysis names."""
    if reaches(ports, t_ol) or not t_ol:
        return "ports"
    if reaches(lcd, t_ol):
        return "dependency"
    if any(part.name in FRONT_END and part.applies and reaches(part.cycles, t_ol) for part in incore.components):
        return "front end"
    return "front end" if incore.bound_by == "front end" else "scheduling"


def transfer_times(machine: Machine, streams: Streams | None, traffic: Traffic, runs: Runs) -> tuple[TransferTime, ...]:
    """Time of every path per unit of work, innermost first; see `transfer_time`."""
    found = tuple(
        transfer_time(machine, streams, path, traffic.path(path.name), restart_cycles(path, traffic, runs))
        for path in machine.paths
    )
    if streams is None:
        return found
    return _beside_memory(machine, streams, traffic, _not_followed(machine, streams, traffic, found))


def _beside_memory(
    machine: Machine, streams: Streams, traffic: Traffic, transfers: tuple[TransferTime, ...]
) -> tuple[TransferTime, ...]:
    """The times where lines that lie in caches are loaded beside lines from memory: these take what a stream of loads
    takes, and what the core is known to take longer beside such lines, if that is longer than all transfers together.

    Lines that are written back do not wait for one another as loads do: only the bandwidth has to do with them.
    """
    more = _beside_lines(machine, streams, traffic)
    alone = streams.memory_load
    if not more or alone is None or not transfers[-1].known:
        return transfers
    lines = traffic.path(machine.paths[-1].name).loads
    return _longer(streams.overlap, transfers, lines * alone + sum(more.values()))


def _beside_lines(machine: Machine, streams: Streams, traffic: Traffic) -> dict[str, float]:
    """By cache the cycles that lines from memory take longer since lines that lie there are loaded beside them."""
    loads = [traffic.path(path.name).loads for path in machine.paths]
    if not loads[-1]:
        return {}
    served = {path.outer: inner - outer for path, (inner, outer) in zip(machine.paths, pairwise(loads), strict=False)}
    return {
        level: loads[-1] * beside_cycles(known, served[level] / loads[-1])
        for level, known in streams.beside.items()
        if served.get(level, 0.0) > 0
    }


def _longer(overlap: Overlap, transfers: tuple[TransferTime, ...], cycles: float) -> tuple[TransferTime, ...]:
    """The times with so much more latency from memory that all together take so many cycles, if that is more."""
    memory, times = transfers[-1], {transfer.name: transfer.cycles for transfer in transfers}
    more = cycles - (evaluate(overlap, {**times, memory.name: _MANY_CYCLES}) - _MANY_CYCLES) - memory.cycles
    if more <= 0 or evaluate(overlap, times) >= cycles:
        return transfers
    slower = replace(memory, cycles=memory.cycles + more, penalty_cycles=memory.penalty_cycles + more)
    return (*transfers[:-1], slower)


_MANY_CYCLES = 1e9
"""Beside which all other times are nothing."""


def _not_followed(
    machine: Machine, streams: Streams, traffic: Traffic, transfers: tuple[TransferTime, ...]
) -> tuple[TransferTime, ...]:
    """The times where more streams miss the first cache than the prefetcher follows: lines from memory take what
    they take without it, if that is longer than all transfers together."""
    known = _too_many(streams, traffic, machine)
    if known is None:
        return transfers
    return _longer(streams.overlap, transfers, traffic.path(machine.paths[-1].name).loads * known.cycles_per_line)


def _too_many(streams: Streams, traffic: Traffic, machine: Machine) -> Unfollowed | None:
    """What lines take that the prefetcher does not fetch, if more streams miss the first cache than it follows."""
    known = streams.unfollowed
    return None if known is None or streams_beyond(traffic, machine) <= known.followed else known


def streams_beyond(traffic: Traffic, machine: Machine) -> int:
    """Streams that miss the first cache: references of which it does not serve half a line of each unit of work."""
    first = machine.levels[0].name
    beyond = (sum(row.served_by.values()) - row.served_by.get(first, 0.0) for row in traffic.accesses)
    return sum(lines >= _A_STREAM for lines in beyond)


_A_STREAM = 0.5
"""Lines per unit of work from which on a reference is a stream of its own."""


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


def residence_predictions(machine: Machine, times: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """The prediction if the data came from each level: paths beyond it take no time."""
    names = [path.time_name for path in machine.paths]
    return tuple(
        (level, evaluate(machine.overlap, {name: v for name, v in times.items() if name not in names[depth:]}))
        for depth, level in enumerate(machine.residence_levels)
    )


def binding_times(expression: Overlap, times: Mapping[str, float]) -> tuple[str, ...]:
    """The names of the non-zero times that add up to the value of the overlap expression."""
    match expression:
        case Time(name):
            return (name,) if times.get(name, 0.0) > 0 else ()
        case Sum(terms):
            return tuple(name for term in terms for name in binding_times(term, times))
        case Max(terms):
            return binding_times(max(terms, key=lambda term: evaluate(term, times)), times)


def _notes(incore: InCore, transfers: tuple[TransferTime, ...]) -> Iterator[Note]:
    if incore.iterations_per_pass is None:
        yield Note("iterations-unknown", "source iterations per pass of the loop are unknown; 1 is taken")
    for transfer in transfers:
        found = transfer.bandwidth
        if found and transfer.bytes and abs(found.kernel_read_share - found.mix_read_share) > 0.02:
            text = (
                f"{transfer.name}: the kernel loads {found.kernel_read_share:.0%} of its lines, the nearest measured "
                f"mix ({found.mix.name}) {found.mix_read_share:.0%}"
            )
            yield Note("bandwidth-mix", text, "assumption")


def _unknown_notes(machine: Machine, transfers: tuple[TransferTime, ...]) -> Iterator[Note]:
    """Which times are not known for want of a figure."""
    names = ", ".join(transfer.name for transfer in transfers if not transfer.known)
    if names:
        text = f"the file of {machine.name} has no bandwidth for {names}: T_ECM is at least the rest"
        yield Note("unknown-bandwidth", text, "assumption")


def refuse_unknown(prediction: EcmPrediction, machine: Machine, what: str) -> None:
    """Refuse a question that a lower bound of T_ECM does not answer; `what` names it ("scaling over cores").

    Raises:
        MachineError: the machine file lacks the bandwidth of a path.
    """
    if prediction.unknown_transfers:
        missing = ", ".join(name.removeprefix("T_") for name in prediction.unknown_transfers)
        raise MachineError(
            f"has no bandwidth of the path {missing}, without which {what} cannot be told",
            where=machine.file,
            todo="measure it and add it to a copy of the file",
        )


def _restart_notes(machine: Machine, traffic: Traffic, runs: Runs, restarts: Sequence[float]) -> Iterator[Note]:
    """Which times have cycles of streams that start anew."""
    for path, cycles in zip(machine.paths, restarts, strict=True):
        shortest = shortest_run(traffic, runs, path.outer)
        if cycles > 0 and shortest is not None:
            text = (
                f"{path.time_name} has {cycles:.1f} cy/CL in which streams start anew: lines from {path.outer} come in "
                f"contiguous runs, the shortest of {format_bytes(shortest[0])} ({shortest[1]})"
            )
            yield Note("short-runs", text, "assumption")


def _prefetch_notes(machine: Machine, traffic: Traffic, streams: Streams | None) -> Iterator[Note]:
    """Whether there are more streams than the prefetcher follows."""
    known = _too_many(streams, traffic, machine) if streams else None
    if known and traffic.paths[-1].loads:
        several = streams_beyond(traffic, machine)
        text = (
            f"{several} streams miss {machine.levels[0].name} and the prefetcher follows {known.followed}: a line from "
            f"memory takes {known.cycles_per_line:.1f} cycles on all paths together"
        )
        yield Note("streams-not-prefetched", text, "assumption")


def _beside_notes(machine: Machine, traffic: Traffic, streams: Streams | None) -> Iterator[Note]:
    """Whether lines from memory take longer beside lines from caches."""
    found = _beside_lines(machine, streams, traffic) if streams else {}
    if sum(found.values()) >= _NOTABLE:
        parts = " and ".join(f"{cycles:.1f} cy/CL beside lines that lie in {level}" for level, cycles in found.items())
        own = {path.outer for path in machine.paths if path.beside_memory}
        where = (
            "on this machine (beside_memory of its file)" if own >= found.keys() else "on one machine with this core"
        )
        text = f"lines from memory take longer than by themselves, {parts}, as was measured {where}"
        yield Note("beside-memory", text, "assumption")


_NOTABLE = 0.1
"""cy/CL from which on a note tells of them."""


def saturation_simple(t_ecm: float, t_mem: float, limit: int = _MANY_CORES) -> int | None:
    """n_S = ⌈T_ECM / T_Mem⌉ (Stengel et al. 2015): cores that saturate the memory bandwidth of a domain.

    None if nothing moves over the memory path, or so little that `limit` cores do not saturate it.
    """
    if t_mem <= 0 or t_ecm / t_mem > _MANY_CORES:
        return None
    cores = math.ceil(round(t_ecm / t_mem, 9))
    return cores if cores <= limit else None


def _utilizations(t_ecm: float, t_mem: float, penalties: Sequence[float]) -> Iterator[float]:
    """Utilisation u(n) of the memory bandwidth by n = 1, 2, … cores (`next_utilization`), u(1) = T_Mem/T_ECM.

    Args:
        penalties: p0/T_Mem for 2, 3, … cores, the last one for more; empty: it was not fitted.
    """
    alone = t_ecm / t_mem
    u = min(1.0, 1 / alone)
    fitted = chain(penalties, repeat(penalties[-1] if penalties else UNFITTED))
    for cores, penalty in enumerate(fitted, 2):
        yield u
        u = next_utilization(cores, u, alone, penalty)


def utilization(cores: int, t_ecm: float, t_mem: float, penalties: Sequence[float] = ()) -> float:
    """Utilisation of the memory bandwidth by so many cores; 0 where nothing moves over the memory path."""
    return next(islice(_utilizations(t_ecm, t_mem, penalties), cores - 1, None)) if t_mem > 0 else 0.0


def recursive_use(prediction: EcmPrediction, cores: int) -> float:
    """The same of a predicted kernel."""
    return utilization(cores, prediction.cycles, prediction.memory_cycles, prediction.penalties)


def saturation_recursive(
    t_ecm: float, t_mem: float, limit: int = _MANY_CORES, penalties: Sequence[float] = ()
) -> int | None:
    """The first number of cores with u(n) = 1, None if nothing moves over the memory path or `limit` do not do."""
    if t_mem <= 0:
        return None
    used = enumerate(islice(_utilizations(t_ecm, t_mem, penalties), limit), 1)
    return next((cores for cores, u in used if u >= 1.0), None)


def scale(
    predict_at: Callable[[int], EcmPrediction], cores: int, machine: Machine, spread: Spread = SPREAD
) -> ScalingPoint:
    """Performance on `cores` cores; each ccNUMA domain saturates on its own.

    Args:
        predict_at: the single-core prediction with that many cores active in a ccNUMA domain (they share its caches).
        spread: which cores are active, and whether all have the same work.
    """
    counts = spread.by_domain(machine, cores)
    single = {n: predict_at(n) for n in set(counts)}
    for prediction in single.values():
        refuse_unknown(prediction, machine, "performance over cores")
    used = {n: recursive_use(one, n) for n, one in single.items()}
    drawn = {n: min(used[n], _drawn(machine, one, n)) for n, one in single.items()}
    rates = {n: _domain_rate(single[n], n, drawn[n]) for n in single}
    total = together(rates, counts, spread)
    if spread.schedule != "dynamic":
        rates = {n: total * n / cores for n in rates}
    over = max(1.0, _overdrawn(machine, single, rates, counts))
    return ScalingPoint(
        cores=cores,
        domains=len(counts),
        units_per_cycle=total / over,
        cycles=over / total if total else 0.0,
        utilization=drawn[counts[0]] / over,
        saturated=all(u >= 1.0 for u in used.values()),
        single_core_cycles=single[counts[0]].cycles,
    )


def _drawn(machine: Machine, prediction: EcmPrediction, cores: int) -> float:
    """The same of a kernel; more cores draw no less than what one draws by itself."""
    bandwidth = prediction.transfers[-1].bandwidth
    if bandwidth is None or prediction.textbook:
        return 1.0
    return max(drawn_share(machine, bandwidth, cores), recursive_use(prediction, 1))


def _overdrawn(
    machine: Machine, single: Mapping[int, EcmPrediction], rates: Mapping[int, float], counts: Sequence[int]
) -> float:
    """What several domains draw at these rates over what the machine's own streams draw with as many cores, which may
    be less than the sum of what each draws alone; 0 where that is not known.

    Args:
        single: the prediction of one core, by the active cores of a domain; rates: of a domain, by the same.
        counts: active cores of each domain.
    """
    one, cores = single[counts[0]], sum(counts)
    bandwidth = one.transfers[-1].bandwidth
    if len(counts) == 1 or bandwidth is None or one.textbook or counts != SPREAD.by_domain(machine, cores):
        return 0.0  # streams were measured on domains that are filled one after the other
    occupied = sum(rates[count] * single[count].memory_cycles for count in counts)
    return occupied * bandwidth.bytes_per_second / with_cores(machine, bandwidth, cores)[0]


def together(rates: Mapping[int, float], counts: Sequence[int], spread: Spread) -> float:
    """Units of work per cycle of all domains.

    With equal work for every core all wait for the slowest: n times its rate; else every domain does what it can.

    Args:
        rates: of a domain, by its active cores; counts: active cores of each domain.
    """
    if spread.schedule != "dynamic":
        return sum(counts) * min(rates[count] / count for count in counts)
    return sum(rates[count] for count in counts)


def _domain_rate(prediction: EcmPrediction, cores: int, used: float) -> float:
    """Units of work per cycle of one domain: `used`/T_Mem where memory moves (`used` is its share of the bandwidth that
    all draw), else n/T_ECM."""
    if prediction.cycles <= 0:
        return 0.0
    if prediction.memory_cycles <= 0:
        return cores / prediction.cycles
    return used / prediction.memory_cycles
