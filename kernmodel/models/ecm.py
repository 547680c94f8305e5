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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, repeat
from typing import Literal

from kernmodel.errors import MachineError, Note
from kernmodel.incore.answer.components import DIVIDER, FRONT_END, PORTS, PRECEDENCE
from kernmodel.incore.answer.verdict import reaches
from kernmodel.incore.engine.ports import group_bound
from kernmodel.incore.model import InCore, Reason
from kernmodel.incore.tables.core_parameters import with_dividers
from kernmodel.machine.cores import SPREAD, Spread
from kernmodel.machine.model import Machine
from kernmodel.machine.overlap import Max, Overlap, Sum, Time, evaluate
from kernmodel.models.bandwidths import (
    UNFITTED,
    channels_bandwidth,
    drawn_share,
    fewer_cores,
    next_utilization,
    not_drawn,
    penalties,
    with_cores,
)
from kernmodel.models.calls import CALLS, CallWork
from kernmodel.models.ecm_intervals import Terms, intervals
from kernmodel.models.outside import OUTSIDE, OutsideWork
from kernmodel.models.streams import Streams, recomposed
from kernmodel.models.transfers import (
    Executed,
    TransferTime,
    beside_last_lines,
    beside_lines,
    lacks_one_core,
    rows_again_cycles,
    streams_beyond,
    transfer_times,
    unfollowed_streams,
    unknown_names,
)
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.stream_runs import Runs, restart_cycles, shortest_run
from kernmodel.uncertainty import Interval, between, union
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
        saturation_is_least: whether the saturation points are lower bounds, since the streams of memory were measured
            on fewer cores than a domain has, so that all of them may draw more.
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
    saturation_is_least: bool = False

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
        """The in-core time beside data transfers: T_OL and T_call, less what chains of several rows overlap and
        straight-line code executes in place of passes, and T_out."""
        less = 0.0 if self.outside is None else self.outside.less_cycles
        return max(0.0, self.t_ol + self.t_call - less) + self.t_out

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
        utilization: of the first domain's memory bandwidth, 0 to 1; None where that is not known.
        saturated: whether every domain in use is saturated: more cores of it would not draw more. Its streams may draw
            less than those of fewer cores, so that less than all is used. None where that is not known.
        single_core_cycles: T_ECM of one core in the fullest domain (its share of the shared caches).
        cycles_interval: between which values `cycles` lie where a domain has more active cores than its streams were
            measured on: as long as these draw no more than the measured ones, or as short as if each drew by itself,
            up to what the channels of the memory can move in theory.
        at_channels: whether `cycles` are what these channels take, since the measured streams of all domains together
            draw more.
    """

    cores: int
    domains: int
    units_per_cycle: float
    cycles: float
    utilization: float | None
    saturated: bool | None
    single_core_cycles: float
    cycles_interval: Interval | None = None
    at_channels: bool = False

    @property
    def least_cycles(self) -> float:
        """The least that `cycles` may be."""
        return self.cycles if self.cycles_interval is None else self.cycles_interval.low


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
    calls: CallWork | None = None,
    held: float = 0.0,
) -> EcmPrediction:
    """The single-core ECM prediction.

    Args:
        outside: what the core executes outside the body of the innermost loop; None leaves it out, as the textbook
            model does.
        streams: what the machine's streams of one core imply for the paths and their composition; None takes widths,
            saturated bandwidths and the machine's composition, as the textbook model does.
        runs: how far each reference walks contiguously, for machines that know what short runs cost; None leaves that
            out.
        calls: the functions that the loop calls; None: none.
        held: cycles by which a pass of the loop takes longer in the core since lines that the first cache writes back
            take the load pipes.

    Raises:
        MachineError: the machine file has no bandwidth for a path that needs one.
    """
    composed = [
        predict(traffic, incore, other, outside=outside, runs=runs, streams=its, calls=calls, held=held).cycles
        for other, its in _otherwise_composed(machine, streams)
    ]
    passes = traffic.iterations_per_unit / (incore.iterations_per_pass or 1.0)
    t_ol, t_nol, bound_by = _incore_times(incore, machine, passes, held)
    if streams is not None:
        machine = replace(machine, overlap=_composition(streams, traffic, machine, t_nol))
    executed = Executed(incore.vectors_written * passes, t_nol)
    transfers = transfer_times(machine, streams, traffic, runs or {}, executed)
    terms = Terms(traffic, machine, streams, runs or {}, outside, calls, t_ol, t_nol, transfers, executed)
    times = terms.beside_outside()
    levels = residence_predictions(machine, times, terms.t_out)
    if held:  # with the data in the first cache it writes nothing back
        alone = {**times, "T_OL": times["T_OL"] - held * passes}
        levels = (*residence_predictions(machine, alone, terms.t_out)[:1], *levels[1:])
    t_ecm, t_mem = levels[-1][1], terms.transfers[-1].bandwidth_cycles
    fitted, domain = _penalties(terms), machine.topology.cores_per_numa_domain
    return EcmPrediction(
        machine=machine.name,
        cores=traffic.cores,
        t_ol=t_ol,
        t_nol=t_nol,
        ol_bound_by=bound_by,
        transfers=terms.transfers,
        levels=levels,
        overlap=str(machine.overlap),
        binding=_binding_terms(terms),
        core_reason=incore.reason,
        saturation_simple=saturation_simple(t_ecm, t_mem, domain),
        saturation_recursive=saturation_recursive(t_ecm, t_mem, domain, fitted),
        work=_work(traffic, machine),
        notes=(
            *_notes(incore, terms.transfers),
            *_held_notes(held * passes, machine),
            *_machine_notes(terms),
            *_executed_notes(terms),
        ),
        cycles_interval=union(intervals(terms, composed)),
        outside=outside,
        calls=calls,
        penalties=fitted,
        textbook=streams is None,
        saturation_is_least=_unmeasured(machine, terms.transfers[-1], domain) is not None,
    )


def interval_of(predictions: Sequence[EcmPrediction], cause: str, assumed: str) -> Interval | None:
    """Between which values T_ECM lies where any of these predictions may hold, with the intervals that they have.

    Args:
        cause: what they differ in; assumed: what is taken for it. Named where T_ECM differs enough to matter.
    """
    found = between((one.cycles for one in predictions), cause, assumed)
    return union((found, *(one.cycles_interval for one in predictions)))


def _held_notes(cycles: float, machine: Machine) -> Iterator[Note]:
    if cycles >= _NOTABLE:
        text = (
            f"T_OL is {cycles:.1f} cy/CL more than with data in {machine.levels[0].name}: lines that it writes back "
            "take the load pipes"
        )
        yield Note("loads-beside-written-lines", text, "assumption")


def _executed_notes(terms: Terms) -> Iterator[Note]:
    """Whether lines from memory take longer for what the core executes meanwhile."""
    if terms.streams is None or not terms.streams.vectors:
        return
    plain = transfer_times(terms.machine, terms.streams, terms.traffic, terms.runs)
    longer = terms.transfers[-1].cycles - plain[-1].cycles
    if longer >= _NOTABLE:
        own = "this machine (beside_vectors and beside_loads of its file)"
        text = (
            f"{terms.transfers[-1].name} is {longer:.1f} cy/CL more than for loads of lines alone: beside lines of "
            f"caches the {terms.executed.vectors:.0f} vectors that the code writes for a unit of work, and its loads "
            "from the first cache, leave room for fewer lines on their way from memory, as was measured on "
            f"{own if terms.machine.paths[-1].beside_vectors else 'one machine with this core'}"
        )
        yield Note("executed-beside-memory", text, "assumption")


def _penalties(terms: Terms) -> tuple[float, ...]:
    """Those of cores that share the memory bandwidth; none in the textbook model, nor where no bandwidth is known."""
    bandwidth = terms.transfers[-1].bandwidth
    return penalties(terms.machine, bandwidth) if bandwidth and terms.streams is not None else ()


def _machine_notes(terms: Terms) -> Iterator[Note]:
    """What the machine's figures and streams have to do with the times of its paths."""
    machine, traffic, streams = terms.machine, terms.traffic, terms.streams
    yield from _unknown_notes(machine, terms.transfers)
    yield from _stream_notes(machine, streams, terms.transfers[-1])
    yield from _restart_notes(machine, traffic, terms.runs)
    yield from _prefetch_notes(machine, traffic, streams)
    yield from _beside_notes(machine, traffic, streams)
    yield from _rows_notes(machine, traffic, streams)
    memory = terms.transfers[-1]
    if memory.hidden_cycles >= _NOTABLE:
        text = (
            f"lines from {machine.levels[1].name} and from memory are waited for at once: {memory.name} is "
            f"{memory.hidden_cycles:.1f} cy/CL less than for its lines by themselves"
        )
        yield Note("waits-overlap", text, "assumption")


def _binding_terms(terms: Terms) -> tuple[str, ...]:
    """The times that add up to T_ECM, with the terms for called functions and for work outside the innermost loop."""
    times = binding_times(terms.machine.overlap, terms.beside_outside())
    if terms.t_call > 0 and "T_OL" in times:
        at = times.index("T_OL") + 1
        times = (*times[:at], CALLS, *times[at:])
    return (*times[:1], OUTSIDE, *times[1:]) if terms.t_out > 0 else times


def _otherwise_composed(machine: Machine, streams: Streams | None) -> Iterator[tuple[Machine, Streams | None]]:
    """The machine with each composition that experiments do not tell apart from its own, and what streams imply so."""
    for overlap in machine.undecided:
        other = replace(machine, overlap=overlap, undecided=())
        yield other, None if streams is None else recomposed(streams, overlap)


def _stream_notes(machine: Machine, streams: Streams | None, memory: TransferTime) -> Iterator[Note]:
    """Whether streams of one core decide, and what they show."""
    if streams is not None and streams.narrow == machine.overlap:
        text = (
            f"loads that find their line in {machine.levels[0].name} add to lines from {machine.levels[1].name}: of a "
            "line on its way one load gets its part, and this loop loads lines in parts"
        )
        yield Note("loads-of-parts", text, "assumption")
    elif streams is not None and streams.shown:
        yield Note("streams-overlap", streams.shown, "assumption")
    if lacks_one_core(machine, streams, memory):
        text = (
            f"the file of {machine.name} has no bandwidth of one core from memory, so that of many cores counts: one "
            "core draws less"
        )
        yield Note("one-core-bandwidth", text, "assumption")


def _work(traffic: Traffic, machine: Machine) -> Work:
    return Work(
        iterations_per_unit=traffic.iterations_per_unit,
        flops_per_iteration=traffic.flops_per_iteration,
        updates_per_iteration=traffic.updates_per_iteration,
        iterations_per_sweep=traffic.iterations_per_sweep,
        clock_hz=machine.clock_hz,
    )


def _composition(streams: Streams, traffic: Traffic, machine: Machine, t_nol: float) -> Overlap:
    """How times compose in a loop whose loads take so long."""
    accesses = t_nol * len(machine.core.non_overlapping_ports)
    read = (row for row in traffic.accesses if row.kind != "write")
    return streams.composition(accesses, math.fsum(lines for row in read for lines in row.served_by.values()))


def _incore_times(incore: InCore, machine: Machine, passes: float, held: float) -> tuple[float, float, OlBoundBy]:
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
    return (t_ol + held) * passes, t_nol * passes, _bound_by(t_ol, ports, lcd, incore)


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


def residence_predictions(
    machine: Machine, times: Mapping[str, float], t_out: float = 0.0
) -> tuple[tuple[str, float], ...]:
    """The prediction if the data came from each level: paths beyond it take no time. `t_out` adds to all of them."""
    names = [path.time_name for path in machine.paths]
    return tuple(
        (level, t_out + evaluate(machine.overlap, {name: v for name, v in times.items() if name not in names[depth:]}))
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
        if found and transfer.bytes and found.from_caches:
            text = (
                f"{transfer.name}: caches served {found.from_caches:.1%} of the lines of the machine's streams from "
                "memory, which its bandwidth leaves out"
            )
            yield Note("streams-from-caches", text, "assumption")


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


def _restart_notes(machine: Machine, traffic: Traffic, runs: Runs) -> Iterator[Note]:
    """Which times have cycles of streams that start anew."""
    for path in machine.paths:
        cycles, shortest = restart_cycles(path, traffic, runs), shortest_run(traffic, runs, path.outer)
        if cycles > 0 and shortest is not None:
            text = (
                f"{path.time_name} has {cycles:.1f} cy/CL in which streams start anew: lines from {path.outer} come in "
                f"contiguous runs, the shortest of {format_bytes(shortest[0])} ({shortest[1]})"
            )
            yield Note("short-runs", text, "assumption")


def _prefetch_notes(machine: Machine, traffic: Traffic, streams: Streams | None) -> Iterator[Note]:
    """Whether there are more streams than the prefetcher follows."""
    known = unfollowed_streams(streams, traffic, machine) if streams else None
    if known and traffic.paths[-1].loads:
        several, measured = streams_beyond(traffic, machine), known.cycles_per_line is None
        what = (
            "lines from memory take longer, as was measured on this machine (streams of its file)"
            if measured
            else f"a line from memory takes {known.cycles_per_line:.1f} cycles on all paths together"
        )
        who = "the core" if measured else "the prefetcher"
        text = f"{several} streams miss {machine.levels[0].name} and {who} follows {known.followed}: {what}"
        yield Note("streams-not-prefetched", text, "assumption")


def _beside_notes(machine: Machine, traffic: Traffic, streams: Streams | None) -> Iterator[Note]:
    """Whether lines from memory, or from the last cache, take longer beside lines from caches."""
    for code, lines, of, key in (
        ("beside-memory", beside_lines, "memory", "beside_memory"),
        ("beside-last-cache", beside_last_lines, machine.levels[-1].name, "beside_last"),
    ):
        found = lines(machine, streams, traffic) if streams else {}
        if sum(found.values()) < _NOTABLE:
            continue
        parts = " and ".join(f"{cycles:.1f} cy/CL beside lines that lie in {level}" for level, cycles in found.items())
        own = {path.outer for path in machine.paths if getattr(path, key)}
        where = f"on this machine ({key} of its file)" if own >= found.keys() else "on one machine with this core"
        text = f"lines from {of} take longer than by themselves, {parts}, as was measured {where}"
        yield Note(code, text, "assumption")


def _rows_notes(machine: Machine, traffic: Traffic, streams: Streams | None) -> Iterator[Note]:
    """Whether rows that are loaded again make lines from memory take longer."""
    cycles = rows_again_cycles(machine, streams, traffic) if streams else 0.0
    if cycles >= _NOTABLE:
        text = (
            f"lines from memory take {cycles:.1f} cy/CL longer since rows are loaded again that "
            f"{machine.levels[0].name} has since a row before, as was measured on one machine with this core: the mean "
            "over lengths of rows, of which some cost nothing and some twice as much (in the interval)"
        )
        yield Note("rows-again", text, "assumption")


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
    rates = {n: domain_rate(machine, one, n) for n, one in single.items()}
    total = together(rates, counts, spread)
    if spread.schedule != "dynamic":
        rates = {n: total * n / cores for n in rates}
    drawn_over, beyond = _overdrawn(machine, single, rates, counts), beyond_channels(machine, single, rates, counts)
    over = max(1.0, drawn_over, beyond)
    cycles, saturated = over / total if total else 0.0, all(u >= 1.0 for u in used.values())
    unmeasured = {n: _unmeasured(machine, one.transfers[-1], n) for n, one in single.items()}
    least = any(one.saturation_is_least for one in single.values())
    return ScalingPoint(
        cores=cores,
        domains=len(counts),
        units_per_cycle=total / over,
        cycles=cycles,
        utilization=None if least else drawn[counts[0]] / over,
        # what does not saturate the least that the domains have does not saturate what they have
        saturated=None if saturated and least else saturated,
        single_core_cycles=single[counts[0]].cycles,
        cycles_interval=_unmeasured_interval(machine, single, unmeasured, counts, spread, cycles),
        at_channels=beyond >= over > 1.0,
    )


def _unmeasured(machine: Machine, memory: TransferTime, cores: int) -> int | None:
    """On how many cores of a domain the streams of memory were measured, where so many draw on it and those are fewer;
    else None."""
    bandwidth = memory.bandwidth
    return fewer_cores(machine, bandwidth, cores) if bandwidth and memory.bandwidth_cycles > 0 else None


def _unmeasured_interval(
    machine: Machine,
    single: Mapping[int, EcmPrediction],
    unmeasured: Mapping[int, int | None],
    counts: Sequence[int],
    spread: Spread,
    cycles: float,
) -> Interval | None:
    """From what cores take that do not share the bandwidth of memory, but for what its channels can move in theory, to
    what they take if all of a domain draw no more than the few that were measured.

    Args:
        single: the prediction of one core, by the active cores of a domain; unmeasured: the measured cores, by these.
        counts: active cores of each domain; cycles: of all together in the latter case.
    """
    measured = next((few for few in unmeasured.values() if few is not None), None)
    if measured is None:
        return None
    rates = {n: n / one.cycles for n, one in single.items()}
    total = together(rates, counts, spread)
    if spread.schedule != "dynamic":
        rates = {n: total * n / sum(counts) for n in rates}
    least = max(1.0, beyond_channels(machine, single, rates, counts)) / total
    if least >= cycles * (1 - 1e-9):
        return None
    return Interval(min(least, cycles), cycles, *not_drawn(measured))


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
    occupied = sum(rates[active] * single[active].memory_cycles for active in counts)
    return occupied * bandwidth.bytes_per_second / with_cores(machine, bandwidth, cores)[0]


def beyond_channels(
    machine: Machine, single: Mapping[int, EcmPrediction], rates: Mapping[int, float], counts: Sequence[int]
) -> float:
    """What the domains move from and to memory at these rates over what its channels can move in theory; 0 in textbook
    predictions, which know no channels.

    Args:
        single: the prediction of one core, by the active cores of a domain; rates: units of work per cycle of a domain,
            by the same.
        counts: active cores of each domain.
    """
    if single[counts[0]].textbook:
        return 0.0
    moved = sum(rates[active] * single[active].transfers[-1].bytes for active in counts)
    return moved * machine.clock_hz / channels_bandwidth(machine, len(counts))


def together(rates: Mapping[int, float], counts: Sequence[int], spread: Spread) -> float:
    """Units of work per cycle of all domains.

    With equal work for every core all wait for the slowest: n times its rate; else every domain does what it can.

    Args:
        rates: of a domain, by its active cores; counts: active cores of each domain.
    """
    if spread.schedule != "dynamic":
        return sum(counts) * min(rates[active] / active for active in counts)
    return sum(rates[active] for active in counts)


def domain_rate(machine: Machine, prediction: EcmPrediction, cores: int) -> float:
    """Units of work per cycle of one domain of which so many cores are at work, each as predicted: u/T_Mem where memory
    moves (u is the share that they use of the bandwidth that all draw), else n/T_ECM."""
    if prediction.cycles <= 0:
        return 0.0
    if prediction.memory_cycles <= 0:
        return cores / prediction.cycles
    return min(recursive_use(prediction, cores), _drawn(machine, prediction, cores)) / prediction.memory_cycles
