"""Everything that is known of one kernel on one machine: the parts of a report, each with its answer or why there is
none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kernmodel.errors import InputError, KernmodelError, Note
from kernmodel.studies.predict.nests import alike
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, InCoreAnswer, KernelRequest, Point
from kernmodel.studies.predict.roofline import MODELS, ChartRequest, chart_kernels, read_kernel
from kernmodel.studies.predict.stages import Stages
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.incore.dependences.graph import Graph
    from kernmodel.studies.blocking.answer import BlockingAnswer
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer
    from kernmodel.studies.scaling import ScalingAnswer
    from kernmodel.studies.what_if.sensitivity import SensitivityAnswer

Answer = TypeVar("Answer")

PARTS = ("sizes", "rooflines", "carm", "dependences", "scaling", "blocking", "sensitivity")
"""What a report has besides the prediction itself."""
_POINTS = 40
"""Sizes at which a report tells the prediction."""
_LEAST, _BEYOND, _MOST, _PAST = 16, 4, 20, 1.5
"""The least of them; how many times the size that was asked for they reach, and at most to come past the last size at
which a layer condition breaks, by this factor."""


@dataclass(frozen=True, slots=True)
class Part(Generic[Answer]):
    """A part of a report: its answer, or why there is none."""

    answer: Answer | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class SizeAnswers:
    """The prediction over one size, all others as asked for.

    Attributes:
        name: of the size; answers: by ascending size; place: of the one that was asked for.
        failed: sizes without a prediction, and why.
    """

    name: str
    answers: tuple[EcmAnswer, ...]
    place: int
    failed: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The answer of `kernmodel report` for one kernel on one machine.

    Attributes:
        kernel, code: what was asked for.
        ecm: the prediction, of code whose instructions know their source lines.
        sizes: the prediction over one size; rooflines: charts of all models; carm: the application-driven reading.
        dependences: between the instructions of the loop; scaling: over all cores of the machine.
        blocking, sensitivity: what blocks and figures of the machine are worth.
    """

    kernel: KernelRequest
    code: CodeRequest
    ecm: EcmAnswer
    sizes: Part[SizeAnswers]
    rooflines: Part[RooflineAnswer]
    carm: Part[CarmAnswer]
    dependences: Part[Graph]
    scaling: Part[ScalingAnswer]
    blocking: Part[BlockingAnswer]
    sensitivity: Part[SensitivityAnswer]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the prediction assumes or does not know."""
        return self.ecm.notes


def report(
    kernel: KernelRequest,
    code: CodeRequest,
    *,
    over: tuple[str, Sequence[int]] | None = None,
    without: Sequence[str] = (),
    watched: Callable[[Sequence[str]], Iterable[str]] = iter,
) -> KernelReport:
    """All parts of a report; only the prediction itself has to succeed.

    Args:
        over: a size and the values at which the prediction is told besides; None: a size that layer conditions depend
            on, around the value that was asked for.
        without: names of `PARTS` that are left out.
        watched: gives the names of the parts one by one, to show how far it is.

    Raises:
        KernmodelError: any stage's error about the input of the prediction.
    """
    stages = Stages()
    point = Point(_with_lines(kernel, code, stages), code)
    answer = stages.answer(point)
    if over is not None and over[0] not in answer.sizes:
        todo = f"take one of {', '.join(answer.sizes) or 'none: the kernel has no size'}"
        raise InputError(f"the kernel has no size {over[0]}", where="--over", todo=todo)
    makes: Mapping[str, Callable[[], Any]] = {
        "sizes": lambda: _over_sizes(stages, point, answer, *(over or default_sizes(answer))),
        "rooflines": lambda: _rooflines(stages, point),
        "carm": lambda: read_kernel(ChartRequest(kernel.machine, ("adcarm",)), point.kernel, code, stages=stages),
        "dependences": lambda: _dependences(answer),
        "scaling": lambda: _scaling(stages, point),
        "blocking": lambda: _blocking(kernel, code),
        "sensitivity": lambda: _sensitivity(kernel, code),
    }
    found = {name: _part(makes[name], left_out=name in without) for name in watched(PARTS)}
    return KernelReport(kernel, code, answer, **found)


def _part(make: Callable[[], Answer], *, left_out: bool) -> Part[Answer]:
    if left_out:
        return Part(None, "left out, as was asked for")
    try:
        return Part(make())
    except KernmodelError as error:
        return Part(None, str(error))


def _with_lines(kernel: KernelRequest, code: CodeRequest, stages: Stages) -> KernelRequest:
    """The request by a line of its innermost loop, so that the compiler tells the source lines of instructions."""
    if kernel.is_one_of_several or kernel.function is not None or code.asm is not None:
        return kernel
    lines = stages.nest(kernel).inner_lines
    return kernel if lines is None else replace(kernel, line=lines[0])


def default_sizes(answer: EcmAnswer) -> tuple[str, tuple[int, ...]]:
    """The size that most layer conditions depend on, else the bound of the inner loop; and values around that of the
    answer, evenly spaced in the logarithm.

    Raises:
        InputError: the kernel has no size.
    """
    transitions, inner = answer.traffic.transitions, answer.nest.inner.stop.free_symbols
    bounds = [str(symbol) for symbol in sorted(inner, key=str)]
    name = next((one for one in (*(t[0] for t in transitions), *bounds, *answer.sizes) if one in answer.sizes), None)
    if name is None:
        raise InputError(
            "the kernel has no size that could vary", where=answer.nest.file, todo="give it one as a macro"
        )
    asked = answer.sizes[name]
    last = max((limit for symbol, limit, *_ in transitions if symbol == name), default=0)
    most = round(max(_BEYOND * asked, min(_PAST * last, _MOST * asked)))
    least = min(_LEAST, asked)
    return name, tuple(round(least * (most / least) ** (number / (_POINTS - 1))) for number in range(_POINTS))


def _over_sizes(stages: Stages, point: Point, answer: EcmAnswer, name: str, values: Sequence[int]) -> SizeAnswers:
    """The prediction at these sizes; those for which the source says the same share the code of the answer.

    Raises:
        InputError: no other size has a prediction.
    """
    asked = answer.sizes[name]
    answers: list[EcmAnswer] = []
    failed: list[tuple[int, str]] = []
    for value in sorted({*values, asked}):
        kernel = replace(point.kernel, sizes={**point.kernel.sizes, name: value})
        shares = len(alike(answer.nest, [{**answer.sizes, name: value}, answer.sizes])) == 1
        try:
            made = stages.answer(replace(point, kernel=kernel), at=point if shares else None)
            answers.append(answer if value == asked else made)
        except KernmodelError as error:
            failed.append((value, str(error)))
    if len(answers) < 2:
        reason = failed[0][1] if failed else f"{asked} is the only one"
        raise InputError(f"no other value of {name} has a prediction: {reason}", where="--over", todo="take others")
    return SizeAnswers(name, tuple(answers), answers.index(answer), tuple(failed))


def _rooflines(stages: Stages, point: Point) -> RooflineAnswer:
    kernel = point.kernel
    return chart_kernels(ChartRequest(kernel.machine, MODELS), [kernel], point.code, (kernel.sizes,), stages=stages)


def _dependences(answer: EcmAnswer) -> Graph:
    from kernmodel.incore.core import Settings
    from kernmodel.studies.predict.incore import dependencies

    incore = InCoreAnswer(
        answer.machine, answer.parameters, answer.loop, answer.incore, answer.origin, answer.incore.notes
    )
    return dependencies(incore, Settings(port_model=answer.incore.port_model))


def _scaling(stages: Stages, point: Point) -> ScalingAnswer:
    from kernmodel.studies.scaling import scaling

    return scaling(point.kernel, point.code, (), stages=stages)


def _blocking(kernel: KernelRequest, code: CodeRequest) -> BlockingAnswer:
    from kernmodel.studies.blocking.study import blocking

    return blocking(replace(kernel, cache="lc", simulation=None), code)


def _sensitivity(kernel: KernelRequest, code: CodeRequest) -> SensitivityAnswer:
    from kernmodel.studies.what_if.sensitivity import sensitivity

    return sensitivity(kernel, code)
