"""Kernels run on this host beside what the machine file of this host predicts for the same code at the same place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from kernmodel.errors import InputError, KernmodelError, MeasurementError, Note
from kernmodel.evaluate.causes import model_experiments, run_experiments
from kernmodel.evaluate.host_kernels import HostRun, host_kernel
from kernmodel.evaluate.kernel_model import JudgedPoint, JudgedSeries, MeasuredPoint, PointGroup, Series
from kernmodel.evaluate.kernels import groups_by, judged_point, summaries
from kernmodel.evaluate.validation_model import Left, ValidatedPoint, Validation
from kernmodel.incore.tables.parameters import canonical_name
from kernmodel.isa import split_rows
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine
from kernmodel.measure.bandwidth import level_sizes
from kernmodel.measure.host_topology import HostTopology, host_topology
from kernmodel.measure.kernels import Conditions
from kernmodel.measure.probe import nearest_machine
from kernmodel.source.model import LoopNest
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.nests import read_nest
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.value_types import dataclass

CLOCK_PERCENT = 5.0
"""Difference of clocks beyond which cycles of memory, which the file has for its own clock, are not this host's."""
LARGE_PERCENT = 30.0
"""Error beyond which the cause is asked if nothing else is said."""
Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is validated, and how.

    Attributes:
        code: compiler and flags; conditions: where code and data lie.
        levels: where the data lie; empty: all that this host has.
        large_percent: of errors beyond the cause is asked; again: also by running the kernel again.
    """

    code: CodeRequest
    conditions: Conditions
    levels: tuple[str, ...] = ()
    large_percent: float = LARGE_PERCENT
    again: bool = True


@dataclass(frozen=True, slots=True)
class _Host:
    """What all points share."""

    machine: Machine
    topology: HostTopology
    plan: Plan


def validate(requests: Sequence[KernelRequest], plan: Plan, progress: Progress = lambda what: None) -> Validation:
    """Run kernels on this host and compare with their predictions.

    Args:
        requests: kernels, all on the machine file of this host.

    Raises:
        KernmodelError: the machine file is at fault, or nothing can be measured here.
    """
    machine, topology = load_machine(requests[0].machine), host_topology()
    host = _Host(machine, topology, plan)
    points: list[ValidatedPoint] = []
    left: list[Left] = []
    first: KernmodelError | None = None
    for request in requests:
        name = Path(request.kernel).stem
        try:
            nest = read_nest(request)
            _refuse_indices(nest)
        except KernmodelError as error:
            first, left = first or error, [*left, Left(name, "", error.what)]
            continue
        l1_cycles = None
        for level in plan.levels or tuple(level_sizes(topology)):
            progress(f"{name} {level}")
            try:
                point = _point(host, request, nest, level)
            except KernmodelError as error:
                first, left = first or error, [*left, Left(name, level, error.what)]
                continue
            if level == "L1":
                l1_cycles = point.run.cycles.value
            points.append(_explained(host, request, nest, point, l1_cycles, progress))
    if first is not None and not points:
        raise first
    clock = median(point.run.clock_hz for point in points)
    return Validation(
        machine.name, machine.clock_hz, clock, plan.large_percent, tuple(points), tuple(left),
        tuple(point_groups(points)), (*_core_notes(machine, topology), *_notes(machine, clock, points)),
    )  # fmt: skip


def _refuse_indices(nest: LoopNest) -> None:
    """Index arrays of a measurement hold zeros, which is no pattern that a model knows.

    Raises:
        MeasurementError: the kernel has some.
    """
    if any(access.indirect for access in nest.accesses):
        raise MeasurementError("it reads index arrays, whose values a measurement does not know", where=nest.name)


def _point(host: _Host, request: KernelRequest, nest: LoopNest, level: str) -> ValidatedPoint:
    plan = host.plan
    run = host_kernel(request, nest, plan.code, host.machine, level, plan.conditions, host.topology)
    return ValidatedPoint(Path(request.kernel).stem, loop_class(nest), run.measured, judged_run(run))


def judged_run(run: HostRun) -> JudgedPoint:
    """A measurement beside the prediction of the same code, with its loop and its arrays where they lay.

    Raises:
        MeasurementError: it is not confirmed; KernmodelError: there is no prediction.
    """
    measured = run.measured
    if not measured.cycles.confirmed:
        raise MeasurementError("no two rounds agree: the measurement is not judged", todo="try it on a quieter host")
    point = MeasuredPoint(0, measured.sizes, 1, "cy/It", measured.cycles.value, {}, {})
    return judged_point(point, predict_ecm(run.request, run.code))


def _explained(
    host: _Host,
    request: KernelRequest,
    nest: LoopNest,
    point: ValidatedPoint,
    l1_cycles: float | None,
    progress: Progress,
) -> ValidatedPoint:
    """The point with experiments on its cause, where its error is large."""
    plan, level = host.plan, point.level
    if abs(point.error_percent) <= plan.large_percent:
        return point
    modelled = () if level == "L1" else tuple(model_experiments(point.judged, l1_cycles))
    if not plan.again:
        return replace(point, experiments=modelled)

    def rerun(conditions: Conditions, sizes: Mapping[str, int], flags: tuple[str, ...]) -> JudgedPoint:
        progress(f"{point.kernel} {level}: looking for the cause")
        other = replace(request, sizes={**request.sizes, **sizes})
        if flags and plan.code.asm is not None:
            raise InputError("a listing is not compiled", where=point.kernel)
        code = replace(plan.code, flags=(*point.run.flags, *flags)) if flags else plan.code
        return judged_run(host_kernel(other, nest, code, host.machine, None, conditions, host.topology))

    run = run_experiments(nest, point.judged, level, plan.conditions, rerun)
    return replace(point, experiments=(*modelled, *run))


def loop_class(nest: LoopNest) -> str:
    """The class of a loop: "stencil" reads an array at several places that move together, "reuse" has an access that
    stands still in a loop, "reduction" carries a sum, "stream" does nothing of it."""
    inner = [access for access in nest.accesses if access.depth == len(nest.loops)]
    by_motion: dict[object, set[object]] = {}
    for access in inner:
        if access.kind == "read" and access.moves(nest.loops):
            by_motion.setdefault((access.array, access.coefficients), set()).add(access.index)
    if any(len(places) > 1 for places in by_motion.values()):
        return "stencil"
    if any(not access.moves(nest.loops, number) for access in inner for number in range(len(nest.loops))):
        return "reuse"
    return "reduction" if nest.operations.reductions else "stream"


def point_groups(points: Sequence[ValidatedPoint]) -> Iterator[PointGroup]:
    """Errors of all points, by level, by class, and of each class in each level; every point weighs the same."""
    series = []
    of: dict[int, ValidatedPoint] = {}
    for number, point in enumerate(points):
        judged = replace(point.judged, point=replace(point.judged.point, line=number))
        of[number] = point
        series.append(JudgedSeries(Series(point.kernel, "", "", kind=f"{number}"), "", (judged,)))
    yield PointGroup("level", "all", summaries(series))
    yield from groups_by(
        series,
        {
            "level": lambda _, one: of[one.point.line].level,
            "class": lambda _, one: of[one.point.line].kind,
            "class and level": lambda _, one: f"{of[one.point.line].kind} {of[one.point.line].level}",
        },
    )


def _core_notes(machine: Machine, topology: HostTopology) -> Iterator[Note]:
    """Whether the file describes another core than CPUID says this host has."""
    try:
        name, doubt = nearest_machine(topology)
    except MeasurementError:
        return
    here, there = load_machine(name).core.microarchitecture, split_rows(machine.core.microarchitecture)[0]
    if not doubt and canonical_name(there) != canonical_name(here):
        text = f"the file describes a {there} core, this host has a {here}: it predicts nothing of this host"
        yield Note("other-core", f"{text}; make a file with `kernmodel machine probe`")


def _notes(machine: Machine, clock: float, points: Sequence[ValidatedPoint]) -> Iterator[Note]:
    if abs(clock / machine.clock_hz - 1) > CLOCK_PERCENT / 100:
        text = (
            f"this host runs at {clock / 1e9:.2f} GHz, the machine file says {machine.clock_hz / 1e9:.2f} GHz: what it "
            "has in bytes per second is not this host's; make a file with `kernmodel machine probe`"
        )
        yield Note("other-clock", text)
    yield from dict.fromkeys(note for point in points for note in point.run.notes if note.code != "not-confirmed")
