"""What-if on the machine and on the code: what a change of a figure, of flags or of a compiler does to the runtime."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernmodel.errors import Note
from kernmodel.machine.limits import check_cores
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest
from kernmodel.studies.sweep.grid import Change, Point

if TYPE_CHECKING:
    from kernmodel.machine.changes import Applied, Figure
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint


@dataclass(frozen=True, slots=True)
class Runtime:
    """A prediction as time, so that changes of the clock compare.

    Attributes:
        prediction: of one core; point: of all cores asked for.
        seconds: per unit of work of all cores together.
    """

    prediction: EcmPrediction
    point: ScalingPoint
    seconds: float


@dataclass(frozen=True, slots=True)
class Effect:
    """One change alone, or all together (`applied` has several entries then).

    Attributes:
        changes: as asked for; applied: as carried out.
        runtime: with the change.
        ratio: runtime after / before (0.8: 20 % faster).
        elasticity: per cent of runtime per per cent of the figure, ln(ratio) / ln(figure after / before); None where
            the figure is no number or several change.
        reason: which times changed and what binds then, as one sentence.
    """

    changes: tuple[Change, ...]
    applied: tuple[Applied, ...]
    runtime: Runtime
    ratio: float
    elasticity: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """The answer of `what-if --set`: effects of each change alone, the most valuable first, and of all together."""

    before: EcmAnswer
    runtime: Runtime
    cores: int
    effects: tuple[Effect, ...]
    together: Effect | None
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What one figure is worth.

    Attributes:
        figure: of the machine file.
        elasticity: per cent of runtime per per cent of the figure, from `step` below and above.
        less, more: runtime ratio with the figure at 1/2 and at 2 times; below, above: at −step and +step. None where
            the figure cannot take the value (a fraction of a core).
    """

    figure: Figure
    elasticity: float | None
    less: float | None
    below: float | None
    above: float | None
    more: float | None


@dataclass(frozen=True, slots=True)
class SensitivityAnswer:
    """The answer of `what-if --sensitivity`: all figures that matter, the greatest effect first, and the paths of those
    that do not."""

    before: EcmAnswer
    runtime: Runtime
    cores: int
    step: float
    figures: tuple[Sensitivity, ...]
    without_effect: tuple[str, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class CodeVariant:
    """The kernel compiled in one way: what was asked for, the answer (None where it failed, with the error), and the
    runtime ratio to the first variant."""

    label: str
    code: CodeRequest
    answer: EcmAnswer | None
    runtime: Runtime | None
    ratio: float | None
    error: str | None


@dataclass(frozen=True, slots=True)
class CodeAnswer:
    """The answer of `what-if --flags … --compiler …`: the machine's own code first."""

    variants: tuple[CodeVariant, ...]
    cores: int
    notes: tuple[Note, ...]


def what_if(kernel: KernelRequest, code: CodeRequest, changes: Sequence[Change], cores: int = 1) -> WhatIfAnswer:
    """Each change alone and all together; one that is asked for twice counts once.

    The effects come by runtime, the greatest gain first; among equal ones the most negative elasticity.

    Raises:
        UsageError: a change that cannot be made (`kernmodel.machine.changes`).
        KernmodelError: any stage's error about its input.
    """
    from kernmodel.machine.changes import MachineFigures

    figures = MachineFigures.open(kernel.machine)
    changes = tuple(dict.fromkeys(changes))
    applied = [figures.applied([(change.path, change.value)])[1] for change in changes]
    alternatives = _alternatives([one.path for (one,) in applied])
    joined = () if alternatives else figures.applied([(change.path, change.value) for change in changes])[1]
    runs = Runs(kernel, code, cores)
    base = runs.case()
    effects = [runs.effect(base, (change,), done) for change, done in zip(changes, applied, strict=True)]
    together = runs.effect(base, tuple(changes), joined) if len(joined) > 1 else None
    return WhatIfAnswer(
        before=base.answer,
        runtime=base.runtime,
        cores=cores,
        effects=tuple(sorted(effects, key=lambda effect: (round(effect.ratio, 9), effect.elasticity or 0.0))),
        together=together,
        notes=alternatives + notes_of(base, runs.warnings, [one for each in (*applied, joined) for one in each]),
    )


def _alternatives(paths: Sequence[str]) -> tuple[Note, ...]:
    """Where a figure is changed twice, the changes are alternatives that cannot be made together."""
    twice = dict.fromkeys(path for path in paths if paths.count(path) > 1)
    text = f"several values of {', '.join(twice)} are alternatives, so that nothing is changed together"
    return (Note("alternatives", text, "assumption"),) if twice else ()


def notes_of(base: Case, warnings: Iterable[Note], applied: Iterable[Applied]) -> tuple[Note, ...]:
    """Those of the prediction before, warnings that only a change brings, and what followed from each change."""
    followed = (note for one in applied for note in one.notes)
    return tuple(dict.fromkeys((*base.answer.notes, *warnings, *followed)))


def elasticity_of(ratio: float, figure_ratio: float | None) -> float | None:
    """Per cent of runtime per per cent of a figure: ln(runtime ratio) / ln(figure ratio)."""
    if figure_ratio is None or figure_ratio <= 0 or figure_ratio == 1 or not 0 < ratio < math.inf:
        return None
    return math.log(ratio) / math.log(figure_ratio) + 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """One prediction with its runtime."""

    answer: EcmAnswer
    runtime: Runtime

    @property
    def seconds_per_iteration(self) -> float:
        """Of all cores together; the unit of work changes with the cache line, an iteration never does."""
        return self.runtime.seconds / self.answer.traffic.iterations_per_unit


def runtime_ratio(before: Case, after: Case) -> float:
    """Runtime after over before of the same work; 1 where neither takes time."""
    if not before.seconds_per_iteration:
        return math.inf if after.seconds_per_iteration else 1.0
    return after.seconds_per_iteration / before.seconds_per_iteration


class Runs:
    """Predictions of one kernel with figures changed; the kernel is read and compiled once.

    Attributes:
        warnings: all that the predictions so far carry, each once.
    """

    def __init__(self, kernel: KernelRequest, code: CodeRequest, cores: int) -> None:
        from kernmodel.studies.predict.stages import Stages

        self._kernel = kernel
        self._code = code
        self._cores = cores
        self._stages = Stages()
        self.warnings: dict[Note, None] = {}

    def case(self, changes: tuple[Change, ...] = (), code: CodeRequest | None = None) -> Case:
        """The prediction with these changes, and other code where it is given.

        One core is predicted while as many as fit are active in its ccNUMA domain, so that the cores share its caches.

        Raises:
            KernmodelError: any stage's error about its input.
        """
        machine = self._stages.machine(self._kernel.machine, changes)
        check_cores(machine, self._cores)
        active = min(self._cores, machine.topology.cores_per_numa_domain)
        point = Point(replace(self._kernel, cores=active), code or self._code, changes)
        answer = self._stages.answer(point, (self._cores,))
        self.warnings |= dict.fromkeys(note for note in answer.notes if note.kind == "warning")
        scaled = answer.scaling[0]
        return Case(answer, Runtime(answer.prediction, scaled, scaled.cycles / machine.clock_hz))

    def effect(self, before: Case, changes: tuple[Change, ...], applied: tuple[Applied, ...]) -> Effect:
        """What these changes do."""
        from kernmodel.studies.what_if.reasons import reason_of

        after = self.case(changes)
        ratio = runtime_ratio(before, after)
        return Effect(
            changes=changes,
            applied=applied,
            runtime=after.runtime,
            ratio=ratio,
            elasticity=elasticity_of(ratio, applied[0].ratio) if len(applied) == 1 else None,
            reason=reason_of(before, after, tuple(one.path for one in applied)),
        )
