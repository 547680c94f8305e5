"""Predictions of one kernel with the machine or the code changed, and how their runtimes compare."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from kernmodel.errors import Note
from kernmodel.machine.cores import check_cores
from kernmodel.models.ecm import refuse_unknown
from kernmodel.studies.predict.request import Change, CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.uncertainty import Interval, between, union
from kernmodel.value_types import NamedTuple


class Runs:
    """Predictions of one kernel with figures changed; the kernel is read and compiled once.

    Attributes:
        warnings: all that the predictions so far carry, each once.
    """

    def __init__(self, kernel: KernelRequest, code: CodeRequest, cores: int) -> None:
        self._kernel, self._code, self._cores = kernel, code, cores
        self._stages = Stages()
        self.warnings: dict[Note, None] = {}

    def answer(self, changes: tuple[Change, ...] = (), code: CodeRequest | None = None) -> EcmAnswer:
        """The prediction with these changes, and other code where it is given; its `scaling` has the one point of all
        cores.

        One core is predicted while as many as fit are active in its ccNUMA domain, so that the cores share its caches.

        Raises:
            KernmodelError: any stage's error about its input.
        """
        machine = self._stages.machine(self._kernel.machine, changes)
        check_cores(machine, self._cores)
        active = min(self._cores, machine.topology.cores_per_numa_domain)
        point = Point(replace(self._kernel, cores=active, parts=self._cores), code or self._code, changes)
        answer = self._stages.answer(point, (self._cores,))
        refuse_unknown(answer.prediction, machine, "what changes are worth")
        self.warnings |= dict.fromkeys(note for note in answer.notes if note.kind == "warning")
        return answer


def seconds(answer: EcmAnswer) -> float:
    """Per unit of work of all cores together, so that changes of the clock compare."""
    return answer.scaling[0].cycles / answer.machine.clock_hz


class Ratio(NamedTuple):
    """Runtime after over before.

    Attributes:
        value: as both are predicted; least: where both are as short as they may be. The same where they are known: what
            is not known, what the cores draw from memory, is the same before and after.
        cause, assumed: of the interval in between.
    """

    value: float
    least: float
    cause: str = ""
    assumed: str = ""

    def interval(self, of: Callable[[float], float] = float) -> Interval | None:
        """The interval of what follows from the ratio, of the ratio itself if nothing is said."""
        return between((of(self.value), of(self.least)), self.cause, self.assumed)


def runtime_ratio(before: EcmAnswer, after: EcmAnswer) -> Ratio:
    """Runtime after over before of the same work; 1 where neither takes time."""
    points = [answer.scaling[0] for answer in (before, after)]
    held = union(point.cycles_interval for point in points)
    value = _ratio(before, after, *(point.cycles for point in points))
    if held is None:
        return Ratio(value, value)
    least = (point.cycles if point.cycles_interval is None else point.cycles_interval.low for point in points)
    return Ratio(value, _ratio(before, after, *least), held.cause, held.assumed)


def _ratio(before: EcmAnswer, after: EcmAnswer, old_cycles: float, new_cycles: float) -> float:
    # per iteration: the unit of work changes with the cache line, an iteration never does
    old = old_cycles / before.machine.clock_hz / before.traffic.iterations_per_unit
    new = new_cycles / after.machine.clock_hz / after.traffic.iterations_per_unit
    if not old:
        return math.inf if new else 1.0
    return new / old
