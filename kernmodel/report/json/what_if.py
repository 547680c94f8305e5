"""`kernmodel.what-if/1`, `kernmodel.sensitivity/1`, `kernmodel.code-variants/1` and `kernmodel.machine-figures/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import (
    Json,
    document,
    in_units,
    interval_json,
    kernel_json,
    pick,
    plain,
    record,
    subject_json,
)
from kernmodel.report.json.ecm import prediction_json
from kernmodel.report.what_if_reasons import reason_of
from kernmodel.studies.what_if.runs import seconds
from kernmodel.units import convert_cycles

if TYPE_CHECKING:
    from kernmodel.machine.changes.figures import MachineFigures
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.what_if.code import CodeAnswer, CodeVariant
    from kernmodel.studies.what_if.machine import Effect, WhatIfAnswer
    from kernmodel.studies.what_if.sensitivity import SensitivityAnswer


def what_if_document(answer: WhatIfAnswer, unit: str) -> Json:
    """Each change of the machine alone, the most valuable first, and all together (null where there is one only)."""
    before, together = answer.before, answer.together
    return document(
        "kernmodel.what-if/1",
        _before(before, unit),
        effects=[_effect(before, effect, unit) for effect in answer.effects],
        together=None if together is None else _effect(before, together, unit),
        notes=answer.notes,
    )


def sensitivity_document(answer: SensitivityAnswer, unit: str) -> Json:
    """What every figure is worth, the greatest effect first."""
    return document(
        "kernmodel.sensitivity/1",
        _before(answer.before, unit),
        step=answer.step,
        figures=list(answer.figures),
        without_effect=answer.without_effect,
        notes=answer.notes,
    )


def code_document(answer: CodeAnswer, unit: str) -> Json:
    """The kernel compiled in several ways, on a machine with these changes."""
    first = next(variant.answer for variant in answer.variants if variant.answer is not None)
    return document(
        "kernmodel.code-variants/1",
        kernel=kernel_json(first.nest, first.sizes),
        machine=first.machine,
        changes=answer.changes,
        cores=first.scaling[0].cores,
        variants=[_variant(variant, unit) for variant in answer.variants],
        notes=answer.notes,
    )


def figures_document(figures: MachineFigures) -> Json:
    """Every figure of a machine file that can be set."""
    return document("kernmodel.machine-figures/1", machine=figures.machine(), figures=figures.figures())


def _before(answer: EcmAnswer, unit: str) -> Json:
    return record(subject_json(answer), cores=answer.scaling[0].cores, before=_runtime(answer, unit))


def _runtime(answer: EcmAnswer, unit: str) -> Json:
    """Seconds per unit of work of all cores, the same in the unit of the headline, and the prediction of one core."""
    prediction, point = answer.prediction, answer.scaling[0]
    held = point.cycles_interval
    in_seconds = None if held is None else held.map(lambda cycles: cycles / answer.machine.clock_hz)
    in_unit = None if held is None else held.map(lambda cycles: convert_cycles(cycles, unit, prediction.work))
    return record(
        interval_json("seconds", in_seconds),
        seconds=seconds(answer),
        headline={
            "unit": unit,
            "value": in_units(point.cycles, prediction.work)[unit],
            **interval_json("value", in_unit),
        },
        prediction=prediction_json(prediction),
        point=point,
    )


def _effect(before: EcmAnswer, effect: Effect, unit: str) -> Json:
    return record(
        interval_json("ratio", effect.ratio_interval),
        interval_json("elasticity", effect.elasticity_interval),
        changes=effect.changes,
        applied=[pick(one, "path", "before", "after", "ratio", "notes") for one in effect.applied],
        after=_runtime(effect.after, unit),
        ratio=effect.ratio,
        elasticity=effect.elasticity,
        reason=reason_of(before, effect),
    )


def _variant(variant: CodeVariant, unit: str) -> Json:
    answer = variant.answer
    return record(
        pick(variant, "label", "ratio", "error"),
        interval_json("ratio", variant.ratio_interval),
        asked=pick(variant.code, "compiler", "flags"),
        code=None if answer is None else answer.origin,
        loop=None if answer is None else _loop(answer),
        after=None if answer is None else _runtime(answer, unit),
    )


def _loop(answer: EcmAnswer) -> Json:
    """Instructions of a pass of the loop, iterations that it does, and elements of its widest instruction."""
    from kernmodel.code.mix import instruction_mix

    loop = answer.loop
    lanes = max((kind.lanes for kind, _ in instruction_mix(loop).fp), default=None)
    return {
        "instructions": len(loop.instructions),
        "iterations_per_pass": plain(loop.iterations_per_pass),
        "widest_lanes": lanes,
    }
