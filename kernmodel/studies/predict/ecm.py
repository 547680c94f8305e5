"""The ECM prediction of one kernel from end to end, and over many sizes.

The compiler is started before the analysis is imported, so that both take their time at once; a sweep over sizes
compiles once for all sizes that leave the text of the kernel alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from kernmodel.studies.predict.nests import alike, largest, sizes_at
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.stages import Stages


def predict_ecm(kernel: KernelRequest, code: CodeRequest, scaling_cores: Sequence[int] = ()) -> EcmAnswer:
    """The ECM prediction of one kernel on one machine at one point.

    Args:
        scaling_cores: core counts to predict the performance for; empty for none.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    return Stages().answer(Point(kernel, code), scaling_cores)


def predict_ecm_sweep(
    kernel: KernelRequest,
    code: CodeRequest,
    points: Sequence[Mapping[str, int]],
    scaling_cores: Sequence[int] = (),
    *,
    stages: Stages | None = None,
    each: bool = False,
) -> Iterator[EcmAnswer]:
    """The ECM prediction for each point of sizes, as they come.

    The kernel is compiled once, at the largest sizes; once more for every value of a macro that decides what the source
    says (the step of a loop, the condition of an `#if`).

    Args:
        points: sizes; scaling_cores: core counts to predict the performance for; empty for none.
        stages: what is known from other predictions, and remembers these.
        each: whether each point is compiled with its own sizes instead, as `predict_ecm` does.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    stages, points = stages or Stages(), tuple(points)

    def point(sizes: Mapping[str, int]) -> Point:
        return Point(replace(kernel, sizes=sizes), code)

    if len(points) == 1:
        yield stages.answer(point(points[0]), scaling_cores)
        return
    stages.check_cores(point(points[0]), scaling_cores)
    with ExitStack() as stack:
        whole = point(largest(points))
        if not each:
            stages.start(stack, whole)
        groups = alike(stages.nest(whole.kernel), points)
        shared = {id(one): point(largest(group)) for group in groups if len(group) > 1 for one in group}
        requests = [(point(sizes), shared.get(id(sizes))) for sizes in points]
        for request, at in requests:
            sizes_at(stages.nest((at or request).kernel), request.kernel.sizes)
        for request, at in requests:
            if each and at is not None:
                stages.know(request.kernel, stages.nest(at.kernel))
            yield stages.answer(request, scaling_cores, at=None if each else at)
