"""Points on their way through an executor: batches of them, a few at a time, and results in the order of the points.

What is sent to where points are evaluated, and what is done there, are functions and values that travel by pickle.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import field, replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kernmodel.errors import KernmodelError
from kernmodel.studies.predict.division import divided, working_cores
from kernmodel.studies.predict.request import Point
from kernmodel.studies.predict.stages import Code, Stages
from kernmodel.studies.sweep.code_groups import CodeGroup, CodeGroups
from kernmodel.studies.sweep.grid import Grid, Outcome
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer

View = TypeVar("View")
Packed = Future[bytes | str]
Found = tuple[Any, str | None]
"""The view of a point's answer, or None and the text of the error."""

_BATCHES_PER_WORKER = 4
_SECONDS = 0.25
"""How long a batch is to take: long beside what it costs to send it, short beside a study."""
_FIRST, _GROWTH, _MOST = 2, 4, 1000
"""Points of the first batches, by how much a batch may be larger than the last one, and its greatest size."""
_CODES = 2048
"""Codes that are kept for groups whose points lie in several batches."""


@dataclass(frozen=True, slots=True)
class Work(Generic[View]):
    """What is asked of every point of a study.

    Attributes:
        study: tells studies apart, so that none meets what is remembered of another.
        folder: from which the paths of its files start.
    """

    study: str
    folder: str
    view: Callable[[Point, EcmAnswer], View]
    scaling_cores: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """The code of one group as it is sent.

    Attributes:
        at: the point that it is compiled at; None: every point with its own sizes.
        code: pickled, where it was made before; the text of the error where that failed; None: it is made where the
            points are evaluated.
    """

    at: Point | None
    code: bytes | str | None = None


@dataclass(frozen=True, slots=True)
class Batch(Generic[View]):
    """Points that are evaluated in one go, each with the number of its group in `groups`."""

    work: Work[View]
    points: tuple[tuple[Point, int], ...]
    groups: tuple[Sent, ...]


def evaluate_batch(batch: Batch[Any]) -> tuple[list[Found], float]:
    """What comes of the points of a batch, and the seconds that it took."""
    begin = time.perf_counter()
    work, stages = batch.work, _stages_of(batch.work.study)
    groups = [
        (sent.at and _placed(sent.at, work), pickle.loads(sent.code) if isinstance(sent.code, bytes) else sent.code)
        for sent in batch.groups
    ]
    found = [evaluate_point(stages, _placed(point, work), work, *groups[number]) for point, number in batch.points]
    return found, time.perf_counter() - begin


def _placed(point: Point, work: Work[Any]) -> Point:
    """The point with paths that hold here, if the worker was started in another folder than the study."""
    if Path.cwd() == Path(work.folder):
        return point
    kernel, asm = point.kernel, point.code.asm
    kernel = replace(kernel, kernel=_path(kernel.kernel, work.folder), machine=_path(kernel.machine, work.folder))
    return replace(point, kernel=kernel, code=replace(point.code, asm=asm and _path(asm, work.folder)))


def _path(name: str, folder: str) -> str:
    """A file of the study's folder; else the name, which may be that of a carried file."""
    path = Path(folder) / name
    return str(path) if path.is_file() else name


def _some_idle(point: Point, answer: EcmAnswer) -> bool:
    """Whether cores of a single domain have no iterations of a loop that a pragma divides."""
    kernel = point.kernel
    if answer.nest.parallel is None or answer.prediction.unknown:
        return False
    made = divided(answer.nest, kernel.spread, answer.sizes, kernel.cores)
    domain = answer.machine.topology.cores_per_numa_domain
    return kernel.cores <= domain and working_cores(made, kernel.cores) < kernel.cores


def evaluate_point(
    stages: Stages, point: Point, work: Work[Any], at: Point | None, code: Code | str | None = None
) -> Found:
    """What comes of one point; an error about the input is one of the point."""
    try:
        if isinstance(code, str):
            stages.check(point, work.scaling_cores, at=at)
            return None, code
        answer = stages.answer(point, work.scaling_cores, at=at, code=code)
        if _some_idle(point, answer):  # what the others have of shared caches is a prediction of its own
            answer = stages.answer(point, (point.kernel.cores,), at=at, code=code)
        return work.view(point, answer), None
    except KernmodelError as error:
        return None, str(error)


def compile_group(work: Work[Any], at: Point) -> bytes | str:
    """The code of a group, pickled, or the text of the error."""
    return packed_code(_stages_of(work.study), _placed(at, work))


def packed_code(stages: Stages, at: Point) -> bytes | str:
    """The code of a group as it is sent."""
    try:
        return pickle.dumps(stages.code(at, stages.machine(at.kernel.machine, at.changes)))
    except KernmodelError as error:
        return str(error)


_worker = threading.local()
# one memory per thread of a worker process, for the study that it works on


def _stages_of(study: str) -> Stages:
    """The memory of this worker for a study; that of the study before is forgotten, its files may have changed."""
    if getattr(_worker, "study", None) != study:
        _worker.study, _worker.stages = study, Stages()
    stages: Stages = _worker.stages
    return stages


@dataclass(slots=True)
class _Planned:
    """A batch on its way.

    Attributes:
        first: number of its first point; points: each with the number of its group.
        groups: with their code where it is made elsewhere.
        result: once it was sent.
    """

    first: int
    points: list[tuple[Point, int]]
    groups: list[tuple[CodeGroup, Packed | None]]
    result: Future[tuple[list[Found], float]] | None = None

    @property
    def awaited(self) -> list[Packed]:
        """The codes that are not ready."""
        return [code for _, code in self.groups if code is not None and not code.done()]


@dataclass(slots=True)
class Dispatch(Generic[View]):
    """Evaluates the points of a study by an executor."""

    executor: Executor
    grid: Grid
    work: Work[View]
    groups: CodeGroups
    stages: Stages
    _codes: OrderedDict[Hashable, Packed] = field(default_factory=OrderedDict)
    _waiting: deque[_Planned] = field(default_factory=deque)
    _size: int = _FIRST
    _workers: int = 1

    def __post_init__(self) -> None:
        self._workers = getattr(self.executor, "workers", None) or os.cpu_count() or 1

    def outcomes(self, start: int) -> Iterator[Outcome[View]]:
        """The outcomes from number `start` on; what is under way when the caller stops is cancelled."""
        following = start
        try:
            while following < len(self.grid) or self._waiting:
                while following < len(self.grid) and len(self._waiting) < _BATCHES_PER_WORKER * self._workers:
                    self._waiting.append(self._plan(following))
                    following += len(self._waiting[-1].points)
                self._send()
                yield from self._next()
        except BrokenExecutor:
            # the executor fails all futures by itself, and would stumble over cancelled ones
            self._codes.clear()
            self._waiting.clear()
            raise
        finally:
            for future in (*self._codes.values(), *(planned.result for planned in self._waiting)):
                if future is not None:
                    future.cancel()

    def _plan(self, first: int) -> _Planned:
        """The next batch, with the compilations that it needs begun."""
        rest = len(self.grid) - first
        count = min(self._size, max(1, ceil(rest / (2 * self._workers))))
        numbers: dict[Hashable, int] = {}
        groups: list[CodeGroup] = []
        points: list[tuple[Point, int]] = []
        for index in range(first, first + count):
            point = self.grid.point(index)
            group = self.groups.of(point)
            if group.key not in numbers:
                numbers[group.key] = len(groups)
                groups.append(group)
            points.append((point, numbers[group.key]))
        inside = Counter(number for _, number in points)
        return _Planned(first, points, [(group, self._code(group, inside[n])) for n, group in enumerate(groups)])

    def _code(self, group: CodeGroup, inside: int) -> Packed | None:
        """The code of a group of which so many points lie in a batch; None where the batch itself makes it."""
        by_hand = group.at.code.asm is not None
        if group.count <= inside and not by_hand:
            return None
        code = self._codes.get(group.key)
        if code is not None:
            self._codes.move_to_end(group.key)
            return code
        if by_hand or group.count == len(self.grid):
            # read here, since standard input is only here; one code for all points is at hand
            code = Future()
            code.set_result(packed_code(self.stages, group.at))
        else:
            code = self.executor.submit(compile_group, self.work, group.at)
        self._codes[group.key] = code
        if len(self._codes) > _CODES:
            self._codes.popitem(last=False)
        return code

    def _send(self) -> None:
        """Send what is ready to be sent."""
        for planned in self._waiting:
            if planned.result is None and not planned.awaited:
                groups = tuple(
                    Sent(group.compiled_at, None if code is None else code.result()) for group, code in planned.groups
                )
                batch = Batch(self.work, tuple(planned.points), groups)
                planned.result = self.executor.submit(evaluate_batch, batch)

    def _next(self) -> Iterator[Outcome[View]]:
        """The outcomes of the first batch, if it is done by the time that anything is."""
        head = self._waiting[0]
        awaited: list[Future[Any]] = [
            code for planned in self._waiting if planned.result is None for code in planned.awaited
        ]
        if head.result is not None:
            awaited.append(head.result)
        wait(awaited, return_when=FIRST_COMPLETED)
        if head.result is None or not head.result.done():
            return
        found, seconds = head.result.result()
        self._waiting.popleft()
        wanted = int(_SECONDS * len(found) / max(seconds, 1e-9))
        self._size = max(1, min(wanted, _GROWTH * len(found), _MOST))
        for index, ((point, _), (view, error)) in enumerate(zip(head.points, found, strict=True), head.first):
            yield Outcome(index, point, view, error)
