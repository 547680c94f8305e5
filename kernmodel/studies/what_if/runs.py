"""Predictions of one kernel with the machine or the code changed, and how their runtimes compare."""

from __future__ import annotations

from dataclasses import replace

from kernmodel.errors import Note
from kernmodel.machine.cores import check_cores
from kernmodel.models.ecm import refuse_unknown
from kernmodel.models.memory_ends import Ratio, cycles_ratio
from kernmodel.studies.predict.request import Change, CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.stages import Stages


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


def runtime_ratio(before: EcmAnswer, after: EcmAnswer) -> Ratio:
    """Runtime after over before of the same work; 1 where neither takes time."""
    # per iteration: the unit of work changes with the cache line, an iteration never does
    old, new = (answer.machine.clock_hz * answer.traffic.iterations_per_unit for answer in (before, after))
    return cycles_ratio(after.scaling[0], before.scaling[0], old / new)
