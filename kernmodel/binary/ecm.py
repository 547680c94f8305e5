"""The ECM model and the roofline of a whole function: in-core time as it was lifted, traffic as it was traced.

The unit of work is one call. T_OL is the lifted in-core time of a call, T_nOL what its loads occupy of the ports whose
time does not overlap with transfers, and the lines over each path are those that the simulated caches counted for the
addresses of a run. How the times compose is the machine's matter (`models.ecm`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernmodel.binary.lifting import LiftedPrediction
from kernmodel.binary.predictors.own import OWN_ECM, OwnPredictor, as_loop
from kernmodel.binary.predictors.protocol import without_calls
from kernmodel.binary.residency import Residency
from kernmodel.binary.walks import CountedFlow
from kernmodel.code.mix import InstructionMix, combined_mix, instruction_mix
from kernmodel.errors import KernmodelError, Note
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.machine.model import Machine
from kernmodel.machine.overlap import evaluate
from kernmodel.models.chart import Case, MeasuredMark
from kernmodel.models.ecm import binding_times, residence_predictions
from kernmodel.models.roofline import roofline
from kernmodel.models.streams import streams_of
from kernmodel.models.transfers import TransferTime, transfer_times, unknown_names
from kernmodel.studies.predict.roofline import DEFAULT_MODEL, Charted, RooflineAnswer, Subject
from kernmodel.traffic.model import PathLines, PathTraffic, Traffic, arithmetic_intensity
from kernmodel.traffic.simulation.paths import moved_lines, path_traffic
from kernmodel.traffic.simulation.rates import rates_of
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass

TRACED = "addresses of a run, simulated"


@dataclass(frozen=True, slots=True)
class FunctionEcm:
    """The ECM prediction of a call of a function, on one core.

    Attributes:
        machine: its name.
        t_ol: cycles of a call that overlap with transfers: its in-core time.
        t_nol: cycles in which its loads occupy the ports that do not overlap.
        transfers: per path, innermost first.
        levels: prediction per residence level, (level, cycles), innermost first; the last one is T_ECM.
        least: T_ECM with the least in-core time that is possible, where that is not known.
        binding: names of the times that add up to T_ECM; overlap: how all compose.
    """

    machine: str
    t_ol: float
    t_nol: float
    transfers: tuple[TransferTime, ...]
    levels: tuple[tuple[str, float], ...]
    least: float
    binding: tuple[str, ...]
    overlap: str

    @property
    def cycles(self) -> float:
        """T_ECM: of a call, with its data where the caches hold them."""
        return self.levels[-1][1]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Times that are not known, since the machine file lacks a figure."""
        return unknown_names(self.transfers)


def call_paths(found: Residency, machine: Machine, store_bytes: float | None = None) -> tuple[PathTraffic, ...]:
    """Lines that cross each path of the machine in a call, innermost first.

    Args:
        store_bytes: of a store, in the mean, for caches that pass each on by itself; None: whole lines.
    """
    share = 1.0 if store_bytes is None else store_bytes / machine.line_bytes
    moved = moved_lines(machine, rates_of(found.counters), share)
    each = max(1, found.calls)
    return tuple(
        path_traffic(path.name, PathLines(*(number / each for number in lines)))
        for path, lines in zip(machine.paths, moved, strict=True)
    )


def call_mix(flow: CountedFlow) -> InstructionMix:
    """What instructions of each class a call of the function executes, what it calls left out.

    Raises:
        InputError: none ran.
    """
    ran = [
        (code, flow.count(block.address))
        for block in flow.function.blocks
        if flow.count(block.address) and (code := without_calls(block.instructions))
    ]
    mean = combined_mix([(instruction_mix(as_loop(code)), float(count)) for code, count in ran])
    each = sum(count for _, count in ran) / max(1, flow.occurrences.calls)
    return replace(
        mean,
        memory=tuple((kind, count * each) for kind, count in mean.memory),
        fp=tuple((kind, count * each) for kind, count in mean.fp),
        other=mean.other * each,
        source=f"function {flow.function.name} of {flow.function.file}",
        per="source iteration",
    )


def call_traffic(flow: CountedFlow, found: Residency, machine: Machine, mix: InstructionMix) -> Traffic:
    """The traffic of the function as the models read it: the unit of work, and its one iteration, is a call."""
    loads = sum(kind.size_bytes * count for kind, count in mix.memory if not kind.store)
    stored = mix.bytes - loads
    paths = call_paths(found, machine, stored / mix.stores if mix.stores else None)
    return Traffic(
        method=TRACED,
        iterations_per_unit=1.0,
        unit_stream=f"a call of {flow.function.name}",
        iterations_per_sweep=1.0,
        updates_per_iteration=None,
        flops_per_iteration=mix.flops,
        register_loads_bytes=loads,
        register_stores_bytes=stored,
        paths=paths,
        accesses=(),
        conditions=(),
        arithmetic_intensity=arithmetic_intensity(mix.flops, mix.bytes, paths, machine),
        cores=1,
        safety=1.0,
        sizes={},
        notes=found.notes,
    )


def function_ecm(
    flow: CountedFlow, in_core: LiftedPrediction, traffic: Traffic, machine: Machine, predictor: OwnPredictor
) -> FunctionEcm:
    """The ECM prediction of a call.

    Args:
        in_core: the lifted in-core time, which is known; predictor: of the machine's core.

    Raises:
        MachineError: the machine file has no bandwidth for a path that needs one.
    """
    t_ol = in_core.cycles or 0.0
    least = t_ol if in_core.interval is None else in_core.interval.low
    ports, calls = machine.core.non_overlapping_ports, max(1, flow.occurrences.calls)
    t_nol = sum(
        flow.count(block.address) * predictor.on_ports(without_calls(block.instructions), ports)
        for block in flow.function.blocks
        if flow.count(block.address)
    )
    streams = streams_of(machine, predictor.core.parameters.misses)
    # of which lines the accesses read is not known
    machine = replace(machine, overlap=streams.composition(t_nol / calls * len(ports), 0.0))
    transfers = transfer_times(machine, streams, traffic, {})
    times = {"T_OL": t_ol, "T_nOL": t_nol / calls, **{one.name: one.cycles for one in transfers}}
    return FunctionEcm(
        machine=machine.name,
        t_ol=t_ol,
        t_nol=t_nol / calls,
        transfers=transfers,
        levels=residence_predictions(machine, times),
        least=evaluate(machine.overlap, {**times, "T_OL": least}),
        binding=binding_times(machine.overlap, times),
        overlap=str(machine.overlap),
    )


def ecm_prediction(found: FunctionEcm, in_core: LiftedPrediction) -> LiftedPrediction:
    """The same as the prediction of a predictor; blocks and loops have their shares of the in-core time.

    A time that is not known leaves no prediction.
    """
    if found.unknown:
        names = ", ".join(found.unknown)
        failed = f"{found.machine} has no bandwidth for {names}: a call takes at least {found.cycles:,.0f} cy"
        return LiftedPrediction(OWN_ECM, in_core.way, None, failed=failed)
    interval = None
    if in_core.interval is not None and found.least < found.cycles:
        interval = Interval(found.least, found.cycles, in_core.interval.cause, in_core.interval.assumed)
    scale = found.cycles / in_core.cycles if in_core.cycles else 0.0
    return replace(
        in_core,
        predictor=OWN_ECM,
        cycles=found.cycles,
        blocks=tuple(replace(one, cycles=one.cycles * scale) for one in in_core.blocks),
        loops={header: cycles * scale for header, cycles in in_core.loops.items()},
        interval=interval,
    )


def function_roofline(
    flow: CountedFlow,
    traffic: Traffic,
    mix: InstructionMix,
    machine: Machine,
    predictor: OwnPredictor,
    cycles: float | None,
) -> RooflineAnswer:
    """The function on the hierarchical roofline of one core.

    Args:
        cycles: predicted of a call, None where no prediction is known: the bound of the model is the point.

    Raises:
        InputError: it moves no data and computes nothing; MachineError: no bandwidth of any level is known.
    """
    parameters, rate = predictor.core.parameters, machine.clock_hz / cycles if cycles else None
    case = Case(
        machine=machine,
        parameters=parameters,
        table=InstructionTable.open(parameters),
        name=flow.function.name,
        traffic=traffic,
        mix=mix,
        performance=rate * mix.flops if rate and mix.flops else None,
    )
    subject = Subject(flow.function.name, case, rate, None, None, {}, None, None, mix.notes)
    chart = roofline(DEFAULT_MODEL, case)
    return RooflineAnswer(machine, 1, (DEFAULT_MODEL,), (Charted(subject, (chart,), ()),), chart.notes)


def with_measured(answer: RooflineAnswer, seconds: float) -> RooflineAnswer:
    """The chart with the measured time of a call, at the intensity of the level that limits; as it is where the
    function computes nothing or has no such intensity."""
    (kernel,) = answer.kernels
    (chart,) = kernel.rooflines
    traffic = kernel.subject.case.traffic
    point = chart.limiting_point
    if traffic is None or not traffic.flops_per_iteration or point is None or not point.intensity:
        return answer
    if chart.bound is None or chart.bound_by is None:
        return answer
    rate = traffic.flops_per_iteration / seconds
    mark = MeasuredMark(kernel.subject.name, point.level, point.intensity, rate, chart.bound_by, chart.bound, 0)
    return replace(answer, kernels=(replace(kernel, rooflines=(replace(chart, measured=(mark,)),)),))


@dataclass(frozen=True, slots=True)
class DataAnswer:
    """Where the data of a function lie, and what that makes of its time.

    Attributes:
        residency: footprint and misses.
        paths: lines that cross each path of the machine in a call.
        ecm: the prediction with these lines, None where no in-core time is known or the machine file lacks a bandwidth.
        roofline: the function on the roofline of one core, None where there is none; why_not: of either.
        l1: name of the first cache.
    """

    residency: Residency
    paths: tuple[PathTraffic, ...]
    ecm: FunctionEcm | None
    roofline: RooflineAnswer | None
    l1: str
    why_not: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is assumed and not known; of data that the first cache does not hold, that it does not."""
        return (*self._beyond(), *self.residency.notes, *self._missing())

    def _beyond(self) -> Iterator[Note]:
        if not self.residency.is_resident:
            share = f"{100 * self.residency.misses_per_access:.0f} % of the accesses miss {self.l1}"
            text = f"{share}, where all predictions but {OWN_ECM} take the data to be"
            yield Note("not-resident", text, "warning")

    def _missing(self) -> Iterator[Note]:
        yield from (Note("no-ecm", why, "warning") for why in self.why_not)
        yield from self.roofline.notes if self.roofline is not None else ()


def data_answer(
    flow: CountedFlow, found: Residency, in_core: LiftedPrediction | None, machine: Machine, own: OwnPredictor
) -> DataAnswer:
    """ECM and roofline of a function whose addresses were traced, from a prediction with an in-core time, if any is
    known."""
    mix = call_mix(flow)
    traffic = call_traffic(flow, found, machine, mix)
    why: list[str] = []
    ecm = chart = None
    if not found.complete:
        why = ["the trace of its addresses was cut off: the lines of a whole call are not known"]
        return DataAnswer(found, traffic.paths, None, None, machine.levels[0].name, tuple(why))
    try:
        ecm = None if in_core is None else function_ecm(flow, in_core, traffic, machine, own)
    except KernmodelError as error:
        why.append(str(error))
    try:
        known = ecm.cycles if ecm is not None and not ecm.unknown else None
        chart = function_roofline(flow, traffic, mix, machine, own, known)
    except KernmodelError as error:
        why.append(str(error))
    return DataAnswer(found, traffic.paths, ecm, chart, machine.levels[0].name, tuple(why))
