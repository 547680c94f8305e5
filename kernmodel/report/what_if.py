"""The answers of `kernmodel what-if` as text: changes of the machine, all its figures, and ways to compile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import MISSING, count, decimal, time_in
from kernmodel.report.sections import (
    code_fields,
    kernel_fields,
    machine_fields,
    notes_section,
    sources_section,
    unit_of_work,
)
from kernmodel.report.what_if_reasons import reason_of

if TYPE_CHECKING:
    from kernmodel.machine.changes.figures import Figure, MachineFigures
    from kernmodel.models.ecm import EcmPrediction
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.what_if.code import CodeAnswer, CodeVariant
    from kernmodel.studies.what_if.machine import Effect, WhatIfAnswer
    from kernmodel.studies.what_if.sensitivity import Sensitivity, SensitivityAnswer

_SAME = 5e-5
"""|ratio − 1| that prints as no change."""
_LEAST_ELASTICITY = 5e-4


def _inputs(answer: EcmAnswer, title: str, more: tuple[tuple[str, str], ...]) -> tuple[Block, ...]:
    """Kernel and machine that the question is about, and more fields."""
    pairs = (
        *kernel_fields(answer.nest, answer.sizes),
        *machine_fields(answer.machine),
        *more,
        ("unit of work", unit_of_work(answer.traffic)),
        ("cores", str(answer.scaling[0].cores)),
    )
    return (Heading(title), Fields(pairs))


def _time(answer: EcmAnswer, unit: str) -> str:
    """Runtime of all cores in the unit asked for, at the clock that the prediction has."""
    return time_in(answer.scaling[0].cycles, unit, answer.prediction.work)


def _time_name(answer: EcmAnswer) -> str:
    cores = answer.scaling[0].cores
    return "T_ECM" if cores == 1 else f"time of {cores} cores"


def _ratio(value: float | None) -> str:
    return decimal(value, 3)


def _percent(ratio: float) -> str:
    """How the runtime changes, in words."""
    if abs(ratio - 1) < _SAME:
        return "the runtime stays the same"
    return f"the runtime {'falls' if ratio < 1 else 'rises'} by {abs(100 * (1 - ratio)):.3g} %"


# {{{ changes of the machine


def what_if_report(answer: WhatIfAnswer, unit: str, *, verbose: bool = False) -> tuple[Block, ...]:
    """Each change alone, the most valuable first, and all together; `unit` is the unit of the runtimes.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    before = answer.before
    sources = before.machine.sources
    title = f"What if: {before.nest.name} on a changed {before.machine.name}"
    return (
        *_inputs(before, title, code_fields(before.origin)),
        *_headline(answer, unit),
        *_effects(answer, unit),
        *_reasons(answer),
        *(_times(answer) if verbose else ()),
        *(sources_section(sources, f"Sources of {before.machine.file}") if verbose else ()),
        *notes_section(answer.notes),
    )


def _headline(answer: WhatIfAnswer, unit: str) -> tuple[Block, ...]:
    best = answer.effects[0]
    before = f"{_time_name(answer.before)} = {_time(answer.before, unit)} as the machine is"
    if best.ratio > 1 - _SAME:
        text = "None of the changes shortens the runtime."
    else:
        most = "Most valuable: " if len(answer.effects) > 1 else ""
        text = f"{most}{_name(best)}: {_percent(best.ratio)} (× {_ratio(best.ratio)})"
    return (Heading("Answer"), Line(f"  {before}"), Line(f"  {text}", "strong"))


def _name(effect: Effect) -> str:
    return ", ".join(map(str, effect.changes))


def _effects(answer: WhatIfAnswer, unit: str) -> tuple[Block, ...]:
    columns = (
        Column("change", "left"),
        Column("before"),
        Column("after"),
        Column(f"{_time_name(answer.before)} before"),
        Column("after"),
        Column("runtime ×"),
        Column("elasticity"),
    )
    rows = tuple(_effect_row(answer, effect, unit) for effect in answer.effects)
    sums = (_together_row(answer, answer.together, unit),) if answer.together else ()
    return (Heading("Effects (runtime of the same work, in seconds)"), Table(columns, rows, sums))


def _effect_row(answer: WhatIfAnswer, effect: Effect, unit: str) -> tuple[str, ...]:
    (applied,) = effect.applied
    return (_name(effect), applied.before, applied.after, *_result_cells(answer, effect, unit))


def _together_row(answer: WhatIfAnswer, effect: Effect, unit: str) -> tuple[str, ...]:
    return ("all together", "", "", *_result_cells(answer, effect, unit))


def _result_cells(answer: WhatIfAnswer, effect: Effect, unit: str) -> tuple[str, ...]:
    times = (_time(answer.before, unit), _time(effect.after, unit))
    return (*times, _ratio(effect.ratio), elasticity_text(effect.elasticity))


def elasticity_text(value: float | None) -> str:
    """An elasticity; 0 without a sign."""
    if value is not None and abs(value) < _LEAST_ELASTICITY:
        return "0"
    return decimal(value, 3)


def _reasons(answer: WhatIfAnswer) -> tuple[Block, ...]:
    pairs = [(_name(effect), reason_of(answer.before, effect)) for effect in answer.effects]
    if answer.together is not None:
        pairs.append(("all together", reason_of(answer.before, answer.together)))
    return (Heading("Why"), Fields(tuple(pairs)))


def _times(answer: WhatIfAnswer) -> tuple[Block, ...]:
    """The times of the model in each case; cy/CL at the clock of the case."""
    cases: list[tuple[str, EcmPrediction]] = [("as it is", answer.before.prediction)]
    cases += [(_name(effect), effect.after.prediction) for effect in answer.effects]
    if answer.together is not None:
        cases.append(("all together", answer.together.after.prediction))
    names = list(cases[0][1].times)
    columns = (Column("change", "left"), *map(Column, names), Column("T_ECM"), Column("bottleneck", "left", fold=True))
    rows = tuple(
        (name, *(decimal(one.times.get(time)) for time in names), decimal(one.cycles), one.bottleneck)
        for name, one in cases
    )
    return (Heading("Times of the model (cy/CL, at the clock of each case)"), Table(columns, rows))


# }}}
# {{{ all figures


def sensitivity_report(answer: SensitivityAnswer, unit: str, *, verbose: bool = False) -> tuple[Block, ...]:
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


def _worth(answer: SensitivityAnswer, unit: str) -> tuple[Block, ...]:
    before = Line(f"  {_time_name(answer.before)} = {_time(answer.before, unit)}")
    text = "No figure of the machine changes the runtime."
    slopes = [one for one in answer.figures if one.elasticity is not None]
    if slopes:
        # of equal ones the first, whose effect is the greatest over the wider range
        best = max(slopes, key=lambda one: round(abs(one.elasticity or 0.0), 3))
        worth = f"1 % more of it changes the runtime by {best.elasticity:+.2f} %"
        text = f"{best.figure.short} ({best.figure.text}) matters most: {worth}"
    return (Heading("Answer"), before, Line(f"  {text}", "strong"))


def _figures(answer: SensitivityAnswer, *, verbose: bool) -> tuple[Block, ...]:
    if not answer.figures:
        return ()
    step = f"{100 * answer.step:g} %"
    columns = (
        Column("figure", "left"),
        Column("value"),
        Column("elasticity"),
        *map(Column, ("× 0.5", f"− {step}", f"+ {step}", "× 2")),
        *((Column("source", "left", fold=True),) if verbose else ()),
    )
    rows = tuple((*_figure_row(one), *((one.figure.source,) if verbose else ())) for one in answer.figures)
    return (Heading("Runtime with one figure changed (× the runtime as it is)"), Table(columns, rows))


def _figure_row(one: Sensitivity) -> tuple[str, ...]:
    ratios = (one.less, one.below, one.above, one.more)
    return (one.figure.short, one.figure.text, elasticity_text(one.elasticity), *map(_ratio, ratios))


def _without_effect(answer: SensitivityAnswer) -> tuple[Block, ...]:
    if not answer.without_effect:
        return ()
    sections: dict[str, list[str]] = {}
    for path in answer.without_effect:
        section, _, name = path.rpartition(".")
        sections.setdefault(section or "top", []).append(name)
    pairs = tuple((section, ", ".join(names)) for section, names in sections.items())
    return (Heading("Without effect here (less than 0.05 %), from half to twice the value"), Fields(pairs))


# }}}
# {{{ ways to compile


def code_report(answer: CodeAnswer, unit: str, *, verbose: bool = False) -> tuple[Block, ...]:
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


def _best_code(answer: CodeAnswer) -> tuple[Block, ...]:
    made = [variant for variant in answer.variants if variant.ratio is not None]
    best = min(made, key=lambda variant: variant.ratio or 0.0)
    ratio = best.ratio or 0.0
    text = "None of them is faster than the first."
    if ratio < 1 - _SAME:
        text = f"Fastest: {best.label}: {_percent(ratio)} (× {_ratio(ratio)})"
    return (Heading("Answer"), Line(f"  {text}", "strong"))


def _variants(answer: CodeAnswer, unit: str, time_name: str) -> tuple[Block, ...]:
    names = ("T_OL", "T_nOL", "T_ECM cy/CL", time_name, "runtime ×", "vector", "instructions/It")
    columns = (Column("", "right"), Column("code", "left"), *map(Column, names))
    rows = tuple(_variant_row(number, variant, unit) for number, variant in enumerate(answer.variants, 1))
    return (Heading("Code"), Table(columns, rows))


def _variant_row(number: int, variant: CodeVariant, unit: str) -> tuple[str, ...]:
    answer = variant.answer
    if answer is None:
        return (str(number), variant.label, *(7 * [MISSING]))
    prediction = answer.prediction
    return (
        str(number),
        variant.label,
        decimal(prediction.t_ol),
        decimal(prediction.t_nol),
        decimal(prediction.cycles),
        _time(answer, unit),
        _ratio(variant.ratio),
        vector_width(answer),
        _instructions(answer),
    )


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


def _limits(answer: CodeAnswer) -> tuple[Block, ...]:
    pairs = tuple(_limit_rows(answer))
    return (Heading("What limits"), Fields(pairs))


def _limit_rows(answer: CodeAnswer) -> Iterator[tuple[str, str]]:
    for number, variant in enumerate(answer.variants, 1):
        if variant.answer is not None:
            yield str(number), variant.answer.prediction.bottleneck
        else:
            yield str(number), f"fails: {variant.error}"


def _commands(answer: CodeAnswer) -> tuple[Block, ...]:
    pairs = tuple(
        (str(number), " ".join(variant.answer.origin.command))
        for number, variant in enumerate(answer.variants, 1)
        if variant.answer is not None
    )
    return (Heading("Commands"), Fields(pairs))


# }}}
# {{{ what can be set


def figures_report(figures: MachineFigures) -> tuple[Block, ...]:
    """Every figure of a machine file that can be set."""
    found = figures.figures()
    columns = (Column("figure", "left"), Column("short", "left"), Column("value"), Column("source", "left", fold=True))
    rows = tuple(_listed(figure) for figure in found)
    machine = figures.machine()
    title = f"Figures of {machine.name} that --set can change"
    return (Heading(title), Fields(machine_fields(machine)), Line(""), Table(columns, rows))


def _listed(figure: Figure) -> tuple[str, ...]:
    short = "" if figure.short == figure.path else figure.short
    return (figure.path, short, figure.text, figure.source)


# }}}
