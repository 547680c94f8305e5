"""The answers of `kernmodel what-if` as text: changes of the machine, all its figures, and ways to compile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Column, Heading, Line, Pair, Value, cells, entry, fields, left, right, table
from kernmodel.report.number_text import MISSING, decimal
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.report.text.ecm import performance_text
from kernmodel.report.text.sections import (
    code_fields,
    kernel_fields,
    machine_fields,
    notes_section,
    sources_section,
    unit_of_work,
)
from kernmodel.report.what_if_reasons import reason_of
from kernmodel.uncertainty import with_interval
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.machine.changes.figures import MachineFigures
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.what_if.code import CodeAnswer, CodeVariant
    from kernmodel.studies.what_if.machine import Effect, WhatIfAnswer
    from kernmodel.studies.what_if.sensitivity import SensitivityAnswer
    from kernmodel.uncertainty import Interval

_SAME = 5e-5
"""|ratio − 1| that prints as no change."""
_LEAST_ELASTICITY = 5e-4


def _inputs(answer: EcmAnswer, title: str, more: tuple[Pair, ...]) -> Blocks:
    """Kernel and machine that the question is about, and more fields."""
    return fields(
        title,
        *kernel_fields(answer.nest, answer.sizes),
        *machine_fields(answer.machine),
        *more,
        ("unit of work", unit_of_work(answer.traffic)),
        ("cores", str(answer.scaling[0].cores)),
    )


def _time(answer: EcmAnswer, unit: str) -> str:
    """Runtime of all cores in the unit asked for, at the clock that the prediction has."""
    return performance_text(answer.scaling[0], unit, answer.prediction.work)


def _time_name(answer: EcmAnswer) -> str:
    cores = answer.scaling[0].cores
    return "T_ECM" if cores == 1 else f"time of {cores} cores"


def _ratio(value: float | None, interval: Interval | None = None, *, cause: bool = False) -> str:
    return MISSING if value is None else with_interval(value, interval, lambda one: decimal(one, 3), cause=cause)


def _changed(ratio: float, interval: Interval | None) -> str:
    """How the runtime changes, in words."""
    if interval is not None:
        return f"the runtime becomes × {_ratio(ratio, interval, cause=True)}"
    if abs(ratio - 1) < _SAME:
        return f"the runtime stays the same (× {_ratio(ratio)})"
    return f"the runtime {'falls' if ratio < 1 else 'rises'} by {abs(100 * (1 - ratio)):.3g} % (× {_ratio(ratio)})"


def _shortens(ratio: float, interval: Interval | None) -> bool:
    """Whether the runtime falls, or may do so."""
    return (ratio if interval is None else interval.low) <= 1 - _SAME


def what_if_report(answer: WhatIfAnswer, unit: str, *, verbose: bool = False) -> Blocks:
    """Each change alone, the most valuable first, and all together; `unit` is the unit of the runtimes.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    before = answer.before
    sources = before.machine.sources
    title = f"What if: {before.nest.name} on a changed {before.machine.name}"
    reasons = ((_effect_name(answer, effect), reason_of(before, effect)) for effect in _all_effects(answer))
    return (
        *_inputs(before, title, code_fields(before.origin)),
        *_headline(answer, unit),
        *_effects(answer, unit),
        *fields("Why", *reasons),
        *(_times(answer) if verbose else ()),
        *(sources_section(sources, f"Sources of {before.machine.file}") if verbose else ()),
        *notes_section(answer.notes),
    )


def _headline(answer: WhatIfAnswer, unit: str) -> Blocks:
    best = answer.effects[0]
    before = f"{_time_name(answer.before)} = {_time(answer.before, unit)} as the machine is"
    if not _shortens(best.ratio, best.ratio_interval):
        text = "None of the changes shortens the runtime."
    else:
        most = "Most valuable: " if len(answer.effects) > 1 else ""
        text = f"{most}{_name(best)}: {_changed(best.ratio, best.ratio_interval)}"
    return (Heading("Answer"), Line(f"  {before}"), Line(f"  {text}", "strong"))


def _name(effect: Effect) -> str:
    return ", ".join(map(str, effect.changes))


def _effects(answer: WhatIfAnswer, unit: str) -> Blocks:
    def applied(end: str) -> Callable[[Effect], str]:
        """The figure before or after the change; nothing where there are several."""
        return lambda effect: "" if effect is answer.together else getattr(effect.applied[0], end)

    together = () if answer.together is None else (answer.together,)
    columns = (
        left("change", partial(_effect_name, answer)),
        right("before", applied("before")),
        right("after", applied("after")),
        right(f"{_time_name(answer.before)} before", lambda _: _time(answer.before, unit)),
        right("after", lambda effect: _time(effect.after, unit)),
        right("runtime ×", lambda effect: _ratio(effect.ratio, effect.ratio_interval)),
        right("elasticity", lambda effect: elasticity_text(effect.elasticity, effect.elasticity_interval)),
    )
    sums = (cells(columns, effect) for effect in together)
    return table("Effects (runtime of the same work, in seconds)", columns, answer.effects, sums, always=True)


def _effect_name(answer: WhatIfAnswer, effect: Effect) -> str:
    return "all together" if effect is answer.together else _name(effect)


def elasticity_text(value: float | None, interval: Interval | None = None) -> str:
    """An elasticity with its interval; 0 without a sign."""
    if value is None:
        return MISSING
    return with_interval(
        value, interval, lambda one: "0" if abs(one) < _LEAST_ELASTICITY else decimal(one, 3), cause=False
    )


def _all_effects(answer: WhatIfAnswer) -> tuple[Effect, ...]:
    return answer.effects if answer.together is None else (*answer.effects, answer.together)


def _times(answer: WhatIfAnswer) -> Blocks:
    """The times of the model in each case; cy/CL at the clock of the case."""
    cases = [("as it is", answer.before.prediction)]
    cases += [(_effect_name(answer, effect), effect.after.prediction) for effect in _all_effects(answer)]
    columns = (
        left("change", itemgetter(0)),
        *(right(name, entry(lambda case: case[1].times, name)) for name in answer.before.prediction.times),
        right("T_ECM", lambda case: case[1].cycles),
        left("bottleneck", lambda case: bottleneck_text(case[1]), fold=True),
    )
    return table("Times of the model (cy/CL, at the clock of each case)", columns, cases)


def sensitivity_report(answer: SensitivityAnswer, unit: str, *, verbose: bool = False) -> Blocks:
    """Every figure that matters, the greatest effect first; `unit` is the unit of the runtime.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    before = answer.before
    title = f"Sensitivity of {before.nest.name} to the figures of {before.machine.name}"
    return (
        *_inputs(before, title, code_fields(before.origin)),
        *_worth(answer, unit),
        *_figures(answer, verbose=verbose),
        *_without_effect(answer),
        *notes_section(answer.notes),
    )


def _worth(answer: SensitivityAnswer, unit: str) -> Blocks:
    before = Line(f"  {_time_name(answer.before)} = {_time(answer.before, unit)}")
    text = "No figure of the machine changes the runtime."
    slopes = [one for one in answer.figures if one.elasticity is not None]
    if slopes:
        # of equal ones the first, whose effect is the greatest over the wider range
        best = max(slopes, key=lambda one: round(abs(one.elasticity or 0.0), 3))
        percent = with_interval(best.elasticity or 0.0, best.elasticity_interval, "{:+.2f} %".format)
        worth = f"1 % more of it changes the runtime by {percent}"
        text = f"{best.figure.short} ({best.figure.text}) matters most: {worth}"
    return (Heading("Answer"), before, Line(f"  {text}", "strong"))


def _figures(answer: SensitivityAnswer, *, verbose: bool) -> Blocks:
    step = f"{100 * answer.step:g} %"
    columns = (
        left("figure", "figure.short"),
        right("value", "figure.text"),
        right("elasticity", lambda one: elasticity_text(one.elasticity, one.elasticity_interval)),
        right("× 0.5", lambda one: _ratio(one.less, one.less_interval)),
        right(f"− {step}", lambda one: _ratio(one.below, one.below_interval)),
        right(f"+ {step}", lambda one: _ratio(one.above, one.above_interval)),
        right("× 2", lambda one: _ratio(one.more, one.more_interval)),
        *((left("source", "figure.source", fold=True),) if verbose else ()),
    )
    return table("Runtime with one figure changed (× the runtime as it is)", columns, answer.figures)


def _without_effect(answer: SensitivityAnswer) -> Blocks:
    sections: dict[str, list[str]] = {}
    for path in answer.without_effect:
        section, _, name = path.rpartition(".")
        sections.setdefault(section or "top", []).append(name)
    pairs = ((section, ", ".join(names)) for section, names in sections.items())
    return fields("Without effect here (less than 0.05 %), from half to twice the value", *pairs)


def code_report(answer: CodeAnswer, unit: str, *, verbose: bool = False) -> Blocks:
    """The ways to compile side by side; `unit` is the unit of the runtime.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    first = next(variant.answer for variant in answer.variants if variant.answer is not None)
    title = f"What if: {first.nest.name} on {first.machine.name}, compiled in {count(len(answer.variants), 'way')}"
    changed = tuple(("changed", str(change)) for change in answer.changes)
    return (
        *_inputs(first, title, changed),
        *_best_code(answer),
        *_variants(answer, unit, _time_name(first)),
        *_limits(answer),
        *(_commands(answer) if verbose else ()),
        *notes_section(answer.notes),
    )


def _best_code(answer: CodeAnswer) -> Blocks:
    made = [variant for variant in answer.variants if variant.ratio is not None]
    best = min(made, key=lambda variant: variant.ratio or 0.0)
    ratio, held = best.ratio or 0.0, best.ratio_interval
    text = "None of them is faster than the first."
    if _shortens(ratio, held):
        text = f"Fastest: {best.label}: {_changed(ratio, held)}"
    return (Heading("Answer"), Line(f"  {text}", "strong"))


def _variants(answer: CodeAnswer, unit: str, time_name: str) -> Blocks:
    def predicted(header: str, value: Value) -> Column:
        """Of a variant with a prediction; nothing where it fails."""
        column = right(header, value)
        return right(header, lambda found: None if found[1].answer is None else column.cell(found[1]))

    columns = (
        right("", itemgetter(0)),
        left("code", lambda found: found[1].label),
        predicted("T_OL", "answer.prediction.t_ol"),
        predicted("T_nOL", "answer.prediction.t_nol"),
        predicted("T_ECM cy/CL", "answer.prediction.cycles"),
        predicted(time_name, lambda variant: _time(variant.answer, unit)),
        predicted("runtime ×", lambda variant: _ratio(variant.ratio, variant.ratio_interval)),
        predicted("vector", lambda variant: vector_width(variant.answer)),
        predicted("instructions/It", lambda variant: _instructions(variant.answer)),
    )
    return table("Code", columns, enumerate(answer.variants, 1))


def vector_width(answer: EcmAnswer) -> str:
    """The widest floating-point instruction of the loop in elements ("4 DP"), or "scalar"."""
    from kernmodel.code.mix import instruction_mix

    classes = [kind for kind, _ in instruction_mix(answer.loop).fp]
    widest = max(classes, key=lambda kind: kind.lanes, default=None)
    if widest is None:
        return MISSING
    return f"{widest.lanes} {widest.precision}" if widest.lanes > 1 else "scalar"


def _instructions(answer: EcmAnswer) -> str:
    passes = answer.loop.iterations_per_pass
    return decimal(len(answer.loop.instructions) / passes) if passes else MISSING


def _limits(answer: CodeAnswer) -> Blocks:
    return fields("What limits", *((str(at), _limit(variant)) for at, variant in enumerate(answer.variants, 1)))


def _limit(variant: CodeVariant) -> str:
    return f"fails: {variant.error}" if variant.answer is None else bottleneck_text(variant.answer.prediction)


def _commands(answer: CodeAnswer) -> Blocks:
    pairs = (
        (str(number), " ".join(variant.answer.origin.command))
        for number, variant in enumerate(answer.variants, 1)
        if variant.answer is not None
    )
    return fields("Commands", *pairs)


def figures_report(figures: MachineFigures) -> Blocks:
    """Every figure of a machine file that can be set."""
    columns = (
        left("figure", "path"),
        left("short", lambda figure: "" if figure.short == figure.path else figure.short),
        right("value", "text"),
        left("source", "source", fold=True),
    )
    machine = figures.machine()
    _, listed = table("", columns, figures.figures(), always=True)
    inputs = fields(f"Figures of {machine.name} that --set can change", *machine_fields(machine))
    return (*inputs, Line(""), listed)
