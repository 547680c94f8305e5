"""Kernels under the rooflines: each predicted on so many cores, with its instruction mix, on the charts of the models.

The point of a kernel is its ECM prediction for these cores, its intensity is by the bytes of the model. Without a
prediction (assembly, or a mix file alone) the bound of the model is the point.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, get_args

from kernmodel.code.mix import InstructionMix, instruction_mix
from kernmodel.errors import KernmodelError, Location, MachineError, Note, UnsupportedKernelError, UsageError
from kernmodel.incore.core import Settings
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.machine.cores import check_cores
from kernmodel.machine.load import load_machine
from kernmodel.models.bandwidths import FEW_CORES
from kernmodel.models.ceilings import BandwidthNotKnownError
from kernmodel.models.chart import Case, LevelShare, ModelName, Roofline, demand
from kernmodel.models.roofline import roofline
from kernmodel.source.text import is_description
from kernmodel.studies.predict.arranged import UNARRANGED, Arrangement
from kernmodel.studies.predict.machine_check import core_parameters
from kernmodel.studies.predict.nests import label_of, nest_suffix
from kernmodel.studies.predict.request import CodeRequest, KernelRequest, Loop
from kernmodel.units import convert_cycles
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.isa.model import Precision
    from kernmodel.machine.model import Machine
    from kernmodel.models.findings import Findings, WhatIf
    from kernmodel.source.model import LoopNest
    from kernmodel.studies.predict.request import CodeOrigin, EcmAnswer
    from kernmodel.studies.predict.stages import Stages
    from kernmodel.uncertainty import Interval

MODELS: tuple[ModelName, ...] = get_args(ModelName)
DEFAULT_MODEL: ModelName = "hierarchical"
"""Has a point and a roof for each level, and needs no instruction mix."""

_OF_CODE: tuple[ModelName, ...] = ("carm", "adcarm")
"""Models that need no traffic between levels."""


@dataclass(frozen=True, slots=True)
class ChartRequest:
    """What the charts are asked for.

    Attributes:
        machine: path or carried name.
        models: which charts; "all" of the command line is all that apply.
        cores: active cores; None: all of one ccNUMA domain.
        mix: a file that gives the instruction mix in place of the code's.
        mask_utilization: η of equation 4.
    """

    machine: str
    models: tuple[ModelName, ...] = (DEFAULT_MODEL,)
    cores: int | None = None
    mix: str | None = None
    mask_utilization: float = 1.0


@dataclass(frozen=True, slots=True)
class Subject:
    """One kernel at one point of sizes, as the models read it.

    Attributes:
        name: as it is labelled, unique on the chart.
        case: what the models read; `case.performance` is the prediction in FLOP/s, or None.
        iterations_per_second: predicted, of all cores; None without a prediction.
        iterations_per_second_interval: between which values that lies where it is not known.
        predicted: the prediction on the cores of the chart.
        nest, sizes: the source; loop, origin: the code. None where there is none, as the prediction is then.
    """

    name: str
    case: Case
    iterations_per_second: float | None
    predicted: EcmAnswer | None
    nest: LoopNest | None
    sizes: Mapping[str, int]
    loop: AssemblyLoop | None
    origin: CodeOrigin | None
    notes: tuple[Note, ...]
    iterations_per_second_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Charted:
    """A kernel with its charts, one for each model in the order of the request, and its memory shares and impacts
    (empty where the traffic is not known)."""

    subject: Subject
    rooflines: tuple[Roofline, ...]
    shares: tuple[LevelShare, ...]


@dataclass(frozen=True, slots=True)
class RooflineAnswer:
    """The answer of `kernmodel roofline`: kernels on the charts of one machine; `failed`: the error of each kernel that
    could not be charted; `arrangement`: how those that are there stand to one another."""

    machine: Machine
    cores: int
    models: tuple[ModelName, ...]
    kernels: tuple[Charted, ...]
    notes: tuple[Note, ...]
    failed: Mapping[str, str] = field(default_factory=dict)
    arrangement: Arrangement = UNARRANGED

    @property
    def times(self) -> dict[str, float]:
        """Of the time that all kernels take, the share of each; empty where it was not asked for."""
        names = (one.subject.name for one in self.kernels)
        return dict(zip(names, self.arrangement.time_shares, strict=False))


@dataclass(frozen=True, slots=True)
class CarmAnswer:
    """The answer of `kernmodel carm`: one kernel, read on the application-driven chart beside the cache-aware one."""

    machine: Machine
    cores: int
    subject: Subject
    findings: Findings
    notes: tuple[Note, ...]


def chart_kernels(
    request: ChartRequest,
    kernels: Sequence[KernelRequest],
    code: CodeRequest,
    points: Sequence[Mapping[str, int]],
    *,
    stages: Stages | None = None,
) -> RooflineAnswer:
    """All kernels at all points of sizes on the charts that are asked for.

    A size that a kernel does not have is left out for it if another kernel has it. A kernel that fails is left out of
    the charts with its error as a warning, as long as there is another.

    Args:
        stages: what is known from other predictions, and remembers these.

    Raises:
        KernmodelError: any stage's error about its input, if no kernel is left.
    """
    machine, cores = _machine(request)
    mix = _given_mix(request)
    subjects: list[Subject] = []
    failed: dict[str, KernmodelError] = {}
    for kernel, own in zip(kernels, _own_points(kernels, points), strict=True):
        beside = sum((one.kernel, one.function) == (kernel.kernel, kernel.function) for one in kernels) > 1
        number = nest_suffix(kernel.nest) if beside else ""
        try:
            made = _subjects(replace(kernel, machine=request.machine), code, own, cores, mix, request, stages)
            subjects += [replace(one, name=one.name + number) for one in made]
        except KernmodelError as error:
            failed[label_of(kernel)] = error
    if not subjects:
        raise next(iter(failed.values()))
    return _charted(request, machine, cores, _named(subjects), failed)


def chart_code(request: ChartRequest, file: str | None, code: CodeRequest) -> RooflineAnswer:
    """A loop of a listing, or a mix file without code, on the charts.

    Raises:
        KernmodelError: any stage's error; a model needs the traffic between levels.
    """
    machine, cores = _machine(request)
    return _charted(request, machine, cores, [_code_subject(request, machine, cores, file, code)])


def read_kernel(
    request: ChartRequest, kernel: KernelRequest, code: CodeRequest, *, stages: Stages | None = None
) -> CarmAnswer:
    """The application-driven reading of one kernel.

    Args:
        stages: what is known from other predictions, and remembers these.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    machine, cores = _machine(request)
    kernel = replace(kernel, machine=request.machine)
    subject = next(_subjects(kernel, code, (kernel.sizes,), cores, _given_mix(request), request, stages))
    blockings, notes = _blockings(replace(kernel, cores=_sharing(machine, cores), parts=cores), code, subject, cores)
    return _read(machine, cores, replace(subject, notes=(*subject.notes, *notes)), blockings)


def read_code(request: ChartRequest, file: str | None, code: CodeRequest) -> CarmAnswer:
    """The same of a loop of a listing, or of a mix file alone.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    machine, cores = _machine(request)
    return _read(machine, cores, _code_subject(request, machine, cores, file, code))


def _read(machine: Machine, cores: int, subject: Subject, blockings: Sequence[WhatIf] = ()) -> CarmAnswer:
    from kernmodel.models.findings import findings as findings_of

    findings = findings_of(subject.case, blockings=blockings)
    notes = _notes((subject,), (findings.roofline, findings.beside))
    return CarmAnswer(machine, cores, subject, findings, notes)


def _notes(subjects: Iterable[Subject], charts: Iterable[Roofline]) -> tuple[Note, ...]:
    """The notes of predictions and of charts. What predictions say of mixes that were measured on fewer cores, charts
    need not say again."""
    predicted = [note for subject in subjects for note in subject.notes]
    said = {note.code for note in predicted} & {FEW_CORES}
    drawn = (note for chart in charts for note in chart.notes if note.code not in said)
    return tuple(dict.fromkeys((*predicted, *drawn)))


def _sharing(machine: Machine, cores: int) -> int:
    """The active cores of one ccNUMA domain, which share its caches."""
    return min(cores, machine.topology.cores_per_numa_domain)


def _blockings(
    kernel: KernelRequest, code: CodeRequest, subject: Subject, cores: int
) -> tuple[list[WhatIf], tuple[Note, ...]]:
    """What blocking brings for each cache, by the study of it; looked for only where a layer condition fails that
    blocks could mend."""
    from kernmodel.models.findings import WhatIf
    from kernmodel.studies.blocking.study import best_of_caches, blocks_in_words

    case, traffic = subject.case, subject.case.traffic
    mendable = traffic is not None and any(
        not condition.holds and any(reuse.carried_by != "sweep" for reuse in condition.reuses)
        for condition in traffic.conditions
    )
    if not mendable:
        return [], ()
    with_cores = f"`kernmodel blocking --cores {kernel.cores}`"
    try:
        found = best_of_caches(kernel, code, cores)
    except (UnsupportedKernelError, MachineError) as error:
        return [], (Note("no-blocking", f"what blocking brings is not known: {error.what}", "assumption"),)
    flops = demand(case).flops or 1.0
    what_ifs = [
        WhatIf(
            name=f"blocking for {best.cache}",
            change=f"{blocks_in_words(best.blocks)}, as {with_cores} finds",
            model="ECM",
            bound_by=max(best.prediction.binding, key=lambda name: best.prediction.times[name], default=""),
            before=convert_cycles(best.prediction.cycles * best.speedup, "It/s", best.prediction.work) * flops,
            bound=convert_cycles(best.prediction.cycles, "It/s", best.prediction.work) * flops,
            gain=best.speedup,
            gain_of_all=of_all.value if cores > 1 else None,
            gain_of_all_interval=of_all.interval() if cores > 1 else None,
            roofline=None,
        )
        for best, of_all in found
    ]
    none = "" if what_ifs else "; it finds none"
    text = f"gains of blocking are those of {with_cores}: times predicted by ECM, before and after, by simulation{none}"
    return what_ifs, (Note("blocking-gains", text, "assumption"),)


def _machine(request: ChartRequest) -> tuple[Machine, int]:
    machine = load_machine(request.machine)
    cores = machine.topology.cores_per_numa_domain if request.cores is None else request.cores
    check_cores(machine, cores)
    return machine, cores


def _given_mix(request: ChartRequest) -> InstructionMix | None:
    if request.mix is None:
        return None
    from kernmodel.code.mix_file import read_mix

    return read_mix(Path(request.mix))


def _charted(
    request: ChartRequest,
    machine: Machine,
    cores: int,
    subjects: Sequence[Subject],
    failed: Mapping[str, KernmodelError] = MappingProxyType({}),
) -> RooflineAnswer:
    from kernmodel.models.carm import memory_shares

    models = request.models
    if models == MODELS and any(subject.case.mix is None for subject in subjects):
        models = tuple(model for model in models if model != "adcarm")
    elif models == MODELS and any(subject.case.traffic is None for subject in subjects):
        models = _OF_CODE
    elif models == MODELS and not _has_memory_roof(subjects[0].case):
        models = tuple(model for model in models if model != "orm")
    kernels, errors = [], dict(failed)
    for subject in subjects:
        try:
            charts = tuple(roofline(model, subject.case) for model in models)
            shares = memory_shares(subject.case) if subject.case.traffic is not None else ()
            kernels.append(Charted(subject, charts, shares))
        except KernmodelError as error:
            errors[subject.name] = error
    if not kernels:
        raise next(iter(errors.values()))
    notes = _notes((one.subject for one in kernels), (chart for one in kernels for chart in one.rooflines))
    left_out = [Note("kernel-left-out", f"{name} is left out of the chart: {error}") for name, error in errors.items()]
    reasons = {name: str(error) for name, error in errors.items()}
    return RooflineAnswer(machine, cores, models, tuple(kernels), tuple(dict.fromkeys((*left_out, *notes))), reasons)


def _has_memory_roof(case: Case) -> bool:
    """Whether a bandwidth of memory is known, without which the original roofline has but its compute roofs."""
    try:
        return bool(roofline("orm", case).memory_roofs)
    except BandwidthNotKnownError:
        return False


def _subjects(
    kernel: KernelRequest,
    code: CodeRequest,
    points: Sequence[Mapping[str, int]],
    cores: int,
    mix: InstructionMix | None,
    request: ChartRequest,
    stages: Stages | None = None,
) -> Iterator[Subject]:
    from kernmodel.studies.predict.ecm import predict_ecm_sweep

    machine = load_machine(request.machine)
    kernel = replace(kernel, cores=_sharing(machine, cores), parts=cores)
    if code.asm is None and is_description(kernel.kernel):
        yield from _described(kernel, points, cores, mix, request)
        return
    scaled = () if machine.unknown_paths else (cores,)
    for answer in predict_ecm_sweep(kernel, code, points, scaled, stages=stages):
        yield _subject(answer, cores, mix, request.mask_utilization)


def _described(
    kernel: KernelRequest,
    points: Sequence[Mapping[str, int]],
    cores: int,
    mix: InstructionMix | None,
    request: ChartRequest,
) -> Iterator[Subject]:
    """A kernel without code: its traffic and its FLOP, so that the bound of the model is its point."""
    from kernmodel.studies.predict.traffic import predict_traffic_sweep

    for answer in predict_traffic_sweep(kernel, points):
        parameters, nest = core_parameters(answer.machine), answer.nest
        case = Case(
            machine=answer.machine,
            parameters=parameters,
            table=InstructionTable.open(parameters),
            cores=cores,
            name=nest.name,
            traffic=answer.traffic,
            mix=mix,
            mask_utilization=request.mask_utilization,
            source_precisions=tuple(
                _PRECISIONS[one.element.name] for one in nest.operations.flops if one.element.name in _PRECISIONS
            ),
        )
        text = "describes no code: the point is the bound of the model, without the core's own limits"
        notes = (*answer.notes, Note("no-code", text, "assumption", Location(nest.file)))
        yield Subject(nest.name, case, None, None, nest, answer.sizes, None, None, notes)


_PRECISIONS: Mapping[str, Precision] = {"double": "DP", "float": "SP"}


def _subject(answer: EcmAnswer, cores: int, mix: InstructionMix | None, mask_utilization: float) -> Subject:
    work, outside = answer.prediction.work, answer.prediction.outside
    case = Case(
        machine=answer.machine,
        parameters=answer.parameters,
        table=InstructionTable.open(answer.parameters),
        cores=cores,
        name=answer.nest.name,
        traffic=answer.traffic,
        incore=answer.incore,
        mix=instruction_mix(answer.loop) if mix is None else mix,
        mask_utilization=mask_utilization,
        overlap=outside.less_cycles / work.iterations_per_unit if outside else 0.0,
    )
    # without the bandwidth of every path there is no prediction to draw
    point = answer.scaling[0] if answer.scaling else None
    per_cycle = work.iterations_per_unit * work.clock_hz
    rate = 0.0 if point is None else point.units_per_cycle * per_cycle
    held = None if point is None else point.cycles_interval
    rates = None if held is None else held.map(lambda cycles: per_cycle / cycles)
    flops = demand(case).flops
    if flops and rate:
        performances = None if rates is None else rates.map(lambda one: one * flops)
        case = replace(case, performance=rate * flops, performance_interval=performances)
    return Subject(
        name=answer.nest.name,
        case=case,
        iterations_per_second=rate or None,
        iterations_per_second_interval=rates,
        predicted=answer if answer.scaling else None,
        nest=answer.nest,
        sizes=answer.sizes,
        loop=answer.loop,
        origin=answer.origin,
        notes=answer.notes,
    )


def _code_subject(request: ChartRequest, machine: Machine, cores: int, file: str | None, code: CodeRequest) -> Subject:
    """A loop without its source, or nothing but a mix."""
    parameters, mix = core_parameters(machine), _given_mix(request)
    case = Case(
        machine,
        parameters,
        InstructionTable.open(parameters),
        cores,
        mix=mix,
        mask_utilization=request.mask_utilization,
    )
    if file is None:
        if mix is None:
            raise UsageError("there is no kernel", todo="give a C kernel, an assembly file, or --mix FILE")
        name = Path(request.mix or "").stem
        return Subject(name, replace(case, name=name), None, None, None, {}, None, None, mix.notes)
    from kernmodel.studies.predict.incore import analyse_one, machine_target

    source = Loop(
        file,
        syntax=code.syntax,
        loop=code.loop,
        lines=code.lines,
        iterations_per_pass=code.iterations_per_pass,
    )
    settings = Settings(notion="loop", port_model=code.port_model, offset=code.align or 0)
    found = analyse_one(source, machine_target(request.machine), settings)
    name = Path(file).stem if file != "-" else "standard input"
    case = replace(case, name=name, incore=found.incore, mix=mix or instruction_mix(found.loop))
    return Subject(name, case, None, None, None, {}, found.loop, found.origin, found.notes)


def _own_points(
    kernels: Sequence[KernelRequest], points: Sequence[Mapping[str, int]]
) -> list[tuple[Mapping[str, int], ...]]:
    """The points of each kernel, without the sizes that it lacks and another kernel has: those that are not asked of
    it, and those that its text does not name."""
    if len(kernels) == 1 or not points[0]:
        return [tuple(points) for _ in kernels]
    from kernmodel.source.find import find_source

    texts = [find_source(kernel.kernel)[0] for kernel in kernels]
    had = [{name for name in points[0] if re.search(rf"\b{re.escape(name)}\b", text)} for text in texts]
    lost = set(points[0]) - set().union(*had)  # sizes of no kernel stay, for the error that names them
    found: list[tuple[Mapping[str, int], ...]] = []
    for kernel, own in zip(kernels, had, strict=True):
        kept = (
            {name: value for name, value in point.items() if name in kernel.sizes and name in own | lost}
            for point in points
        )
        found.append(tuple({tuple(point.items()): point for point in kept}.values()))
    return found


def _named(subjects: Sequence[Subject]) -> list[Subject]:
    """Subjects whose names differ: kernels of one name get the sizes in which they differ, else a number."""
    named: list[Subject] = []
    for subject in subjects:
        same = [one for one in subjects if one.name == subject.name]
        name = subject.name
        if len(same) > 1:
            varying = [n for n in subject.sizes if len({one.sizes.get(n) for one in same}) > 1]
            name = " ".join((name, *(f"{n}={subject.sizes[n]}" for n in varying)))
        taken = {one.name for one in named}
        number, unique = 2, name
        while unique in taken:
            unique, number = f"{name} ({number})", number + 1
        named.append(replace(subject, name=unique, case=replace(subject.case, name=unique)))
    return named
