"""What changes of figures of the machine do to the runtime of a kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernmodel.errors import Note
from kernmodel.machine.changes.figures import Applied, MachineFigures
from kernmodel.studies.predict.request import Change, CodeRequest, EcmAnswer, KernelRequest
from kernmodel.studies.what_if.runs import Runs, runtime_ratio
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Effect:
    """One change alone, or all together (`applied` has several entries then).

    Attributes:
        changes: as asked for; applied: as carried out.
        after: the prediction with the change.
        ratio: runtime after / before (0.8: 20 % faster).
        elasticity: per cent of runtime per per cent of the figure, ln(ratio) / ln(figure after / before); None where
            the figure is no number or several change.
        ratio_interval, elasticity_interval: between which values they lie where the runtimes are not known.
    """

    changes: tuple[Change, ...]
    applied: tuple[Applied, ...]
    after: EcmAnswer
    ratio: float
    elasticity: float | None
    ratio_interval: Interval | None = None
    elasticity_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class WhatIfAnswer:
    """The answer of `what-if --set`: effects of each change alone, the most valuable first, and of all together."""

    before: EcmAnswer
    effects: tuple[Effect, ...]
    together: Effect | None
    notes: tuple[Note, ...]


def what_if(kernel: KernelRequest, code: CodeRequest, changes: Sequence[Change], cores: int = 1) -> WhatIfAnswer:
    """Each change alone and all together; one that is asked for twice counts once.

    The effects come by runtime, the greatest gain first; among equal ones the most negative elasticity.

    Raises:
        UsageError: a change that cannot be made (`kernmodel.machine.changes.figures`).
        KernmodelError: any stage's error about its input.
    """
    figures = MachineFigures.open(kernel.machine)
    changes = tuple(dict.fromkeys(changes))
    applied = [figures.applied([(change.path, change.value)])[1] for change in changes]
    paths = [one.path for (one,) in applied]
    twice = dict.fromkeys(path for path in paths if paths.count(path) > 1)
    text = f"several values of {', '.join(twice)} are alternatives, so that nothing is changed together"
    alternatives = (Note("alternatives", text, "assumption"),) if twice else ()
    joined = () if alternatives else figures.applied([(change.path, change.value) for change in changes])[1]
    runs = Runs(kernel, code, cores)
    before = runs.answer()
    effects = [_effect(runs, before, (change,), done) for change, done in zip(changes, applied, strict=True)]
    together = _effect(runs, before, tuple(changes), joined) if len(joined) > 1 else None
    followed = (note for each in (*applied, joined) for one in each for note in one.notes)
    return WhatIfAnswer(
        before=before,
        effects=tuple(sorted(effects, key=lambda effect: (round(effect.ratio, 9), effect.elasticity or 0.0))),
        together=together,
        notes=alternatives + tuple(dict.fromkeys((*before.notes, *runs.warnings, *followed))),
    )


def _effect(runs: Runs, before: EcmAnswer, changes: tuple[Change, ...], applied: tuple[Applied, ...]) -> Effect:
    after = runs.answer(changes)
    ratio, figure_ratio = runtime_ratio(before, after), applied[0].ratio if len(applied) == 1 else None
    elasticity = elasticity_of(ratio.value, figure_ratio)
    held = None if elasticity is None else ratio.interval(lambda one: elasticity_of(one, figure_ratio) or 0.0)
    return Effect(changes, applied, after, ratio.value, elasticity, ratio.interval(), held)


def elasticity_of(ratio: float, figure_ratio: float | None) -> float | None:
    """Per cent of runtime per per cent of a figure: ln(runtime ratio) / ln(figure ratio)."""
    if figure_ratio is None or figure_ratio <= 0 or figure_ratio == 1 or not 0 < ratio < math.inf:
        return None
    return math.log(ratio) / math.log(figure_ratio) + 0.0
