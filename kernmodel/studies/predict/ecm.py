"""One prediction from end to end, and the same kernel over many sizes.

The stages meet here and nowhere else. The compiler is started before sympy is imported, so that both take their time at
once; a sweep over sizes compiles once for all sizes that leave the text of the kernel alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.machine.limits import check_cores
from kernmodel.machine.load import load_machine
from kernmodel.studies.predict.compiled import checked_sizes, load, shown_sizes
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest, TrafficAnswer
from kernmodel.studies.predict.traffic import TrafficMethod, traffic_method
from kernmodel.studies.sweep.grid import Point

if TYPE_CHECKING:
    from kernmodel.source.model import LoopNest


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
    from kernmodel.studies.predict.stages import Stages

    stages = Stages()
    machine = stages.machine(kernel.machine)
    requests = [Point(replace(kernel, sizes=sizes), code) for sizes in points]
    for cores in scaling_cores:
        check_cores(machine, cores)
    if len(points) == 1:
        yield stages.answer(requests[0], scaling_cores)
        return
    with ExitStack() as stack:
        largest = Point(replace(kernel, sizes=_largest(points)), code)
        stages.start(stack, largest)
        nest = stages.nest(largest.kernel)
        shared = {key: _shared(largest, group) for key, group in _groups(nest, points)}
        for request in requests:
            at = shared[_key(nest, request.kernel.sizes)] or request
            checked_sizes(stages.nest(at.kernel), request.kernel.sizes)
        for request in requests:
            yield stages.answer(request, scaling_cores, at=shared[_key(nest, request.kernel.sizes)])


def _shared(largest: Point, points: _Points) -> Point | None:
    """The point that some points share their code with; None for one alone."""
    return replace(largest, kernel=replace(largest.kernel, sizes=_largest(points))) if len(points) > 1 else None


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
        return TrafficAnswer(nest, method.machine, shown, traffic, notes, traffic.symbolic, traffic.differences)
    beside = method.compare(traffic)
    notes = tuple(dict.fromkeys((*notes, *beside.notes)))
    return TrafficAnswer(nest, method.machine, shown, traffic, notes, beside.symbolic, beside.differences)


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


def _largest(points: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The largest value of each size over all points."""
    return {name: max(point[name] for point in points) for name in points[0]}
