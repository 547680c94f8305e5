"""One prediction from end to end, and the same kernel over many sizes.

The stages meet here and nowhere else. The compiler is started before sympy is imported, so that both take their time at
once; a sweep over sizes compiles once for all sizes that leave the text of the kernel alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

from kernmodel.assembly.model import AssemblyLoop
from kernmodel.errors import Note
from kernmodel.incore.model import InCore, Parameters
from kernmodel.incore.parameters import load_parameters
from kernmodel.incore.tables import InstructionTable
from kernmodel.machine.limits import check_cores
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine
from kernmodel.studies.compiled import (
    checked_sizes,
    find_kernel_loop,
    load,
    shown_sizes,
    start_early,
    start_late,
)
from kernmodel.studies.method import TrafficMethod, traffic_method
from kernmodel.studies.request import CodeOrigin, CodeRequest, EcmAnswer, KernelRequest, TrafficAnswer

if TYPE_CHECKING:
    from kernmodel.assembly.compile import Compilation
    from kernmodel.source.model import LoopNest
    from kernmodel.traffic.model import Traffic
    from kernmodel.traffic.options import StoreMode


def predict_ecm(kernel: KernelRequest, code: CodeRequest, scaling_cores: Sequence[int] = ()) -> EcmAnswer:
    """The ECM prediction of one kernel on one machine at one point.

    Args:
        scaling_cores: core counts to predict the performance for; empty for none.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    return next(predict_ecm_sweep(kernel, code, (kernel.sizes,), scaling_cores))


def predict_ecm_sweep(
    kernel: KernelRequest,
    code: CodeRequest,
    points: Sequence[Mapping[str, int]],
    scaling_cores: Sequence[int] = (),
) -> Iterator[EcmAnswer]:
    """The ECM prediction for each point of sizes, as they come.

    The kernel is compiled once, at the largest sizes; once more for every value of a macro that decides what the source
    says (the step of a loop, the condition of an `#if`).
    """
    machine = load_machine(kernel.machine)
    for cores in scaling_cores:
        check_cores(machine, cores)
    parameters = load_parameters(machine.core.microarchitecture)
    at = _largest(points)
    with ExitStack() as stack:
        pending = start_early(stack, kernel, code, machine, at)
        nest = load(kernel, at)
        groups = _groups(nest, points)
        if len(groups) == 1:
            prepared = {key: _prepare(stack, kernel, code, machine, nest, group, pending) for key, group in groups}
    if len(groups) > 1:
        prepared = {key: _prepare_anew(kernel, code, machine, group) for key, group in groups}
    incores = {key: _analyse(case.loop, parameters, code) for key, case in prepared.items()}
    for point in points:
        key = _key(nest, point)
        yield _answer(prepared[key], point, kernel.cores, parameters, incores[key], scaling_cores)


def predict_traffic(kernel: KernelRequest) -> TrafficAnswer:
    """The data traffic of one kernel on one machine at one point."""
    return next(predict_traffic_sweep(kernel, (kernel.sizes,)))


def predict_traffic_sweep(
    kernel: KernelRequest, points: Sequence[Mapping[str, int]], core_counts: Sequence[int] = ()
) -> Iterator[TrafficAnswer]:
    """The data traffic for each point of sizes and, within it, each core count (`kernel.cores` if none), as they come.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    machine = load_machine(kernel.machine)
    core_counts = core_counts or (kernel.cores,)
    for cores in core_counts:
        check_cores(machine, cores)
    nest = load(kernel, _largest(points))
    groups = _groups(nest, points)
    nests = {key: nest if len(groups) == 1 else load(kernel, group[0]) for key, group in groups}
    methods = {key: traffic_method(nest, machine, kernel) for key, nest in nests.items()}
    for point in points:
        method = methods[_key(nest, point)]
        for cores in core_counts:
            yield _traffic_answer(method, point, cores)


def _traffic_answer(method: TrafficMethod, point: Mapping[str, int], cores: int) -> TrafficAnswer:
    nest = method.nest
    sizes = checked_sizes(nest, point)
    traffic = method.traffic(sizes, cores, method.stores())
    shown = shown_sizes(nest, point, sizes)
    notes = (*nest.notes, *traffic.notes)
    if method.request.cache != "both":
        return TrafficAnswer(nest, method.machine, shown, traffic, notes)
    beside = method.compare(traffic)
    notes = tuple(dict.fromkeys((*notes, *beside.notes)))
    return TrafficAnswer(nest, method.machine, shown, traffic, notes, beside.symbolic, beside.differences)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Points that share their code: the compiled loop with its stores, and the traffic of the first point, found while
    the compiler ran."""

    method: TrafficMethod
    stores: StoreMode
    first_traffic: Traffic
    loop: AssemblyLoop
    origin: CodeOrigin
    notes: tuple[Note, ...]

    def traffic(self, sizes: Mapping[str, int], cores: int) -> Traffic:
        first = self.first_traffic
        if (first.sizes, first.cores, first.stores) == (sizes, cores, self.stores):
            return first
        return self.method.traffic(sizes, cores, self.stores)


_Key = tuple[int | None, ...]
_Points = Sequence[Mapping[str, int]]


def _key(nest: LoopNest, point: Mapping[str, int]) -> _Key:
    """The values in which a point may differ only if the kernel is read anew."""
    from kernmodel.source.sizes import deciding_names

    return tuple(point[name] for name in deciding_names(nest, point))


def _groups(nest: LoopNest, points: _Points) -> tuple[tuple[_Key, list[Mapping[str, int]]], ...]:
    """The points by the text of the kernel that they share, in the order in which they come."""
    groups: dict[_Key, list[Mapping[str, int]]] = {}
    for point in points:
        groups.setdefault(_key(nest, point), []).append(point)
    return tuple(groups.items())


def _prepare_anew(kernel: KernelRequest, code: CodeRequest, machine: Machine, points: _Points) -> _Prepared:
    """Read the kernel for these points, and compile it."""
    at = _largest(points)
    with ExitStack() as stack:
        pending = start_early(stack, kernel, code, machine, at)
        return _prepare(stack, kernel, code, machine, load(kernel, at), points, pending)


def _prepare(
    stack: ExitStack,
    kernel: KernelRequest,
    code: CodeRequest,
    machine: Machine,
    nest: LoopNest,
    points: _Points,
    pending: Compilation | None,
) -> _Prepared:
    """Check all points, find the traffic of the first while the compiler runs, and then the loop."""
    from kernmodel.source.sizes import deciding_names

    at = _largest(points)
    if pending is None and code.asm is None:
        pending = start_late(stack, nest, code, machine, at)
    sizes = [checked_sizes(nest, point) for point in points]
    method = traffic_method(nest, machine, kernel)
    traffic = method.traffic(sizes[0], kernel.cores, method.stores())
    compiled = checked_sizes(nest, at)
    loop, origin = find_kernel_loop(nest, compiled, code, pending)
    stores, notes = _stores_of(loop, method)
    if len(points) > 1 and code.asm is None:
        notes = (_compiled_once(shown_sizes(nest, at, compiled), deciding_names(nest, at)), *notes)
    return _Prepared(method, stores, traffic, loop, origin, notes)


def _stores_of(loop: AssemblyLoop, method: TrafficMethod) -> tuple[StoreMode, tuple[Note, ...]]:
    """The stores that the user named, else those in the code, else those of the machine."""
    from kernmodel.traffic.stores import stores_of

    if method.request.stores is not None:
        return method.request.stores, ()
    found, note = stores_of(loop, method.machine)
    return found or method.stores(), (note,) if note else ()


def _answer(
    prepared: _Prepared,
    point: Mapping[str, int],
    cores: int,
    parameters: Parameters,
    incore: InCore,
    scaling_cores: Sequence[int],
) -> EcmAnswer:
    from kernmodel.models.ecm import predict, scale

    nest, machine, loop = prepared.method.nest, prepared.method.machine, prepared.loop
    sizes = checked_sizes(nest, point)
    traffic_at = cache(partial(prepared.traffic, sizes))
    predict_at = cache(lambda active: predict(traffic_at(active), incore, machine))
    traffic, prediction = traffic_at(cores), predict_at(cores)
    scaling = tuple(scale(predict_at, count, machine) for count in scaling_cores)
    everything = (*prepared.notes, *nest.notes, *traffic.notes, *loop.notes, *incore.notes, *prediction.notes)
    return EcmAnswer(
        nest=nest,
        machine=machine,
        sizes=shown_sizes(nest, point, sizes),
        traffic=traffic,
        origin=prepared.origin,
        loop=loop,
        parameters=parameters,
        incore=incore,
        prediction=prediction,
        scaling=scaling,
        notes=tuple(dict.fromkeys(everything)),
    )


def _largest(points: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The largest value of each size over all points."""
    return {name: max(point[name] for point in points) for name in points[0]}


def _compiled_once(sizes: Mapping[str, int], deciding: Sequence[str]) -> Note:
    at = ", ".join(f"{name}={value}" for name, value in sizes.items())
    same = ", ".join(f"{name}={sizes[name]}" for name in deciding)
    points = f"all points with {same}" if same else "all points"
    text = f"the kernel was compiled once, with {at}; {points} share its in-core time"
    return Note("compiled-once", text, "assumption")


def _analyse(loop: AssemblyLoop, parameters: Parameters, code: CodeRequest) -> InCore:
    from kernmodel.incore.analyse import analyse

    return analyse(loop, parameters, InstructionTable.open(parameters), port_model=code.port_model)
