"""Batches of points on their way through an executor: a few at a time, results in the order of the points."""

from __future__ import annotations

import os
from collections import Counter, OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from math import ceil
from typing import Any, Generic, TypeVar

from kernmodel.studies.predict.request import Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.sweep.batches import Batch, Found, Sent, Work, compile_group, evaluate_batch, packed_code
from kernmodel.studies.sweep.code_groups import CodeGroup, CodeGroups
from kernmodel.studies.sweep.grid import Outcome

View = TypeVar("View")
Packed = Future[bytes | str]

_BATCHES_PER_WORKER = 4
_SECONDS = 0.25
"""How long a batch is to take: long beside what it costs to send it, short beside a study."""
_FIRST, _GROWTH, _MOST = 2, 4, 1000
"""Points of the first batches, by how much a batch may be larger than the last one, and its greatest size."""
_CODES = 2048
"""Codes that are kept for groups whose points lie in several batches."""


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


class Dispatch(Generic[View]):
    """Evaluates the points of a study by an executor."""

    def __init__(
        self, executor: Executor, points: Sequence[Point], work: Work[View], groups: CodeGroups, stages: Stages
    ) -> None:
        self._executor = executor
        self._points = points
        self._work = work
        self._groups = groups
        self._stages = stages
        self._workers: int = getattr(executor, "workers", None) or os.cpu_count() or 1
        self._codes: OrderedDict[Hashable, Packed] = OrderedDict()
        self._waiting: deque[_Planned] = deque()
        self._size = _FIRST

    def outcomes(self, start: int) -> Iterator[Outcome[View]]:
        """The outcomes from number `start` on; what is under way when the caller stops is cancelled."""
        following = start
        try:
            while following < len(self._points) or self._waiting:
                while following < len(self._points) and len(self._waiting) < _BATCHES_PER_WORKER * self._workers:
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
        rest = len(self._points) - first
        count = min(self._size, max(1, ceil(rest / (2 * self._workers))))
        numbers: dict[Hashable, int] = {}
        groups: list[CodeGroup] = []
        points: list[tuple[Point, int]] = []
        for index in range(first, first + count):
            point = self._points[index]
            group = self._groups.of(point)
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
        if by_hand or group.count == len(self._points):
            # read here, since standard input is only here; one code for all points is at hand
            code = Future()
            code.set_result(packed_code(self._stages, group.at))
        else:
            code = self._executor.submit(compile_group, self._work, group.at)
        self._codes[group.key] = code
        if len(self._codes) > _CODES:
            self._codes.popitem(last=False)
        return code

    def _send(self) -> None:
        """Send what is ready to be sent."""
        for planned in self._waiting:
            if planned.result is None and not planned.awaited:
                groups = tuple(
                    Sent(group.shared, None if code is None else code.result()) for group, code in planned.groups
                )
                batch = Batch(self._work, tuple(planned.points), groups)
                planned.result = self._executor.submit(evaluate_batch, batch)

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
