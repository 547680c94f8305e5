"""All loop nests of a function, or of a file, each with its own answer: what is asked of a file of which no nest is
chosen. The file is parsed once and each function compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from kernmodel.errors import KernmodelError, Note, SourceError
from kernmodel.source.load import FoundNest, find_nests
from kernmodel.source.model import ROW_LENGTH, LoopNest
from kernmodel.source.nest.sequence import sequence_of
from kernmodel.studies.predict.nests import own_sizes, request_of, sizes_at, sizes_of_any, stated_of
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest, Point, TrafficAnswer
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.predict.together import Together
from kernmodel.studies.predict.traffic import traffic_method
from kernmodel.value_types import dataclass

Answer = TypeVar("Answer", EcmAnswer, TrafficAnswer)
Given = TypeVar("Given")
Among = tuple[Together, int] | None
"""The nests that are executed with a nest, and its number among them; None: it is taken alone."""


@dataclass(frozen=True, slots=True)
class NestAnswer(Generic[Given]):
    """One of several nests.

    Attributes:
        found: the nest and where it stands.
        answer: what was asked of it, or why there is no answer.
        iterations: of its innermost body in one execution of the nest; None where there is no answer.
    """

    found: FoundNest
    answer: Given | KernmodelError
    iterations: float | None = None

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the answer assumes or does not know."""
        notes: tuple[Note, ...] = getattr(self.answer, "notes", ())
        return notes


def sums_by_function(
    nests: Sequence[NestAnswer[Given]], amount: Callable[[NestAnswer[Given]], float | None]
) -> dict[str, float]:
    """The sum of an amount over the nests of each function; nests that have none are left out."""
    sums: dict[str, float] = {}
    for one in nests:
        value = amount(one)
        if value is not None:
            sums[one.found.function] = sums.get(one.found.function, 0.0) + value
    return sums


def predict_each(kernel: KernelRequest, code: CodeRequest) -> Iterator[NestAnswer[EcmAnswer]]:
    """The ECM prediction of each nest.

    Raises:
        KernmodelError: nothing is modelled at all, or an error about all nests, such as a machine that is not there.
    """
    stages = Stages()
    stages.check_cores(Point(kernel, code), ())

    def answer(one: KernelRequest, nest: LoopNest, among: Among) -> EcmAnswer:
        stages.know(one, nest, among)
        return stages.answer(Point(one, code))

    return _each(kernel, answer)


def traffic_of_each(kernel: KernelRequest) -> Iterator[NestAnswer[TrafficAnswer]]:
    """The data traffic of each nest.

    Raises:
        KernmodelError: as `predict_each`.
    """
    from kernmodel.machine.cores import check_cores
    from kernmodel.machine.load import load_machine

    machine = load_machine(kernel.machine)
    check_cores(machine, kernel.cores)

    def answer(one: KernelRequest, nest: LoopNest, among: Among) -> TrafficAnswer:
        return replace(traffic_method(nest, machine, one), among=among).answer(one.sizes, one.cores)

    return _each(kernel, answer)


def _each(
    kernel: KernelRequest, answer: Callable[[KernelRequest, LoopNest, Among], Answer]
) -> Iterator[NestAnswer[Answer]]:
    """What `answer` says of each nest, as it comes; errors before the first that has one are told with it."""
    from kernmodel.source.nest.sizes import iterations_per_sweep

    stated, include = stated_of(kernel), kernel.include
    found = find_nests(
        kernel.kernel, kernel.defines, function=kernel.function, include=include, marked=True, stated=stated
    )
    modelled = [one.nest for one in found if not isinstance(one.nest, SourceError)]
    given = sizes_of_any(modelled)
    among = _among(found, kernel.sizes, given)
    failed: list[NestAnswer[Answer]] = []
    any_answer = False
    for one in found:
        asked = request_of(one, modelled, kernel)
        try:
            known = among.get((one.function, one.number))
            nest = _nest_of(one, known, alone=sum(other.function == one.function for other in found) == 1)
            made = answer(asked, nest, known)
            sizes, _ = sizes_at(nest, asked.sizes)
            outcome = NestAnswer(one, made, iterations_per_sweep(nest, sizes))
        except KernmodelError as error:
            outcome = NestAnswer(one, error.with_traceback(None))
        if not any_answer and isinstance(outcome.answer, KernmodelError):
            failed.append(outcome)
            continue
        if not any_answer:
            yield from failed
        any_answer = True
        yield outcome
    if not any_answer and isinstance(failed[0].answer, KernmodelError):
        raise failed[0].answer


def _nest_of(found: FoundNest, among: Among, *, alone: bool) -> LoopNest:
    """The nest as it is modelled, with what is not counted of those beside it."""
    if isinstance(found.nest, SourceError):
        raise found.nest
    nest = found.nest
    if among is not None:
        return replace(nest, notes=tuple(note for note in nest.notes if note.code != "loops-beside"))
    return nest if alone else replace(nest, notes=(*nest.notes, _NOT_COUNTED))


_NOT_COUNTED = Note(
    "reuse-between-nests",
    "what the nest finds in caches of the nests around it is not counted: one of them is not modelled, or "
    "has rows whose lengths the data decide",
)


def _among(
    found: Sequence[FoundNest], sizes: Mapping[str, int], known_sizes: Container[str]
) -> dict[tuple[str, int], Among]:
    """By function and number, the nests that are executed with a nest: those of its function, or of the innermost loop
    that only repeats it. Nests that stand alone, or with one that is not modelled, are left out."""
    known: dict[tuple[str, tuple[int, ...]], Together | None] = {}
    among: dict[tuple[str, int], Among] = {}
    for one in found:
        mine = [
            other
            for other in found
            if other.function == one.function and other.repeating[: len(one.repeating)] == one.repeating
        ]
        key = one.function, one.repeating
        if key not in known:
            known[key] = _together(mine, sizes, known_sizes)
        together = known[key]
        among[one.function, one.number] = None if together is None else (together, mine.index(one))
    return among


def _together(found: Sequence[FoundNest], sizes: Mapping[str, int], known_sizes: Container[str]) -> Together | None:
    nests = [one.nest for one in found if isinstance(one.nest, LoopNest)]
    if len(nests) < max(2, len(found)) or any(ROW_LENGTH in nest.symbols for nest in nests):
        return None
    names = [str(one.number) for one in found]
    return Together(
        sequence_of(nests, names, [one.shared_loops for one in found]), own_sizes(nests, sizes, known_sizes)
    )
