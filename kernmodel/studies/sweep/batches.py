"""What is sent to where points are evaluated, and what is done there: functions and values that travel by pickle."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kernmodel.errors import KernmodelError
from kernmodel.studies.predict.request import Point
from kernmodel.studies.predict.stages import Code, Stages

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer

View = TypeVar("View")

Found = tuple[Any, str | None]
"""The view of a point's answer, or None and the text of the error."""


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


def evaluate_point(
    stages: Stages, point: Point, work: Work[Any], at: Point | None, code: Code | str | None = None
) -> Found:
    """What comes of one point; an error about the input is one of the point."""
    try:
        if isinstance(code, str):
            stages.check(point, work.scaling_cores, at=at)
            return None, code
        return work.view(point, stages.answer(point, work.scaling_cores, at=at, code=code)), None
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
