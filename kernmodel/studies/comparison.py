"""Several kernels, or the nests of a file, on one or several machines: what a report of them holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.errors import KernmodelError, Note
from kernmodel.models.chart import ModelName
from kernmodel.studies.compare import CompareAnswer, compare
from kernmodel.studies.predict.arranged import arranged
from kernmodel.studies.predict.nests import nests_of
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.studies.predict.roofline import ChartRequest, RooflineAnswer, chart_kernels
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.report import Part
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

MODELS: tuple[ModelName, ...] = ("hierarchical", "carm")
"""The charts of a comparison: where data come from, and what the core sees."""


@dataclass(frozen=True, slots=True)
class ComparisonReport:
    """The answer of `kernmodel report` for several kernels or machines.

    Attributes:
        kernels: what was asked for, nest by nest; code: whose.
        compared: each on each machine.
        rooflines: by machine its charts with all kernels, and their shares of the time where all have a prediction.
    """

    kernels: tuple[KernelRequest, ...]
    code: CodeRequest
    compared: CompareAnswer
    rooflines: Mapping[str, Part[RooflineAnswer]]

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the predictions assume or do not know."""
        charts = [part.answer.notes for part in self.rooflines.values() if part.answer is not None]
        return tuple(dict.fromkeys((*self.compared.notes, *(note for notes in charts for note in notes))))


def comparison(
    kernels: Sequence[KernelRequest],
    machines: Sequence[str],
    code: CodeRequest,
    *,
    beside: Callable[[RooflineAnswer], RooflineAnswer] = lambda answer: answer,
    watched: Callable[[Sequence[str]], Iterable[str]] = iter,
) -> ComparisonReport:
    """Every kernel, and every nest of those files of which none is chosen, on every machine.

    Args:
        beside: adds measurements to the charts of a machine.
        watched: gives the names of the machines one by one, to show how far it is.

    Raises:
        KernmodelError: an unknown machine or kernel, or no kernel has a prediction on any machine.
    """
    nests = [nest for kernel in kernels for nest in nests_of(kernel)]
    stages = Stages()
    compared = compare(nests, machines, code, stages=stages)
    names = list(dict.fromkeys(result.machine for result in compared.results))
    rooflines = {name: _charts(stages, nests, name, code, beside) for name in watched(names)}
    return ComparisonReport(tuple(nests), code, compared, rooflines)


def _charts(
    stages: Stages,
    nests: Sequence[KernelRequest],
    machine: str,
    code: CodeRequest,
    beside: Callable[[RooflineAnswer], RooflineAnswer],
) -> Part[RooflineAnswer]:
    here = [replace(nest, machine=machine) for nest in nests]
    sizes = {name: value for nest in nests for name, value in nest.sizes.items()}
    try:
        answer = chart_kernels(ChartRequest(machine, MODELS), here, code, (sizes,), stages=stages)
    except KernmodelError as error:
        return Part(None, str(error))
    answer = beside(answer)
    whole = len(answer.kernels) > 1 and all(one.subject.iterations_per_second for one in answer.kernels)
    return Part(arranged(answer, calls={}) if whole else answer)
