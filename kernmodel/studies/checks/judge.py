"""Predicting the kernels of checks, and judging what is asserted of them."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from kernmodel import __version__
from kernmodel.code.mix import instruction_mix
from kernmodel.errors import KernmodelError, Location, UsageError
from kernmodel.schema.fields import suggest
from kernmodel.studies.checks.model import Assertion, Bound, Check, CheckResult, Fact, Outcome, Verdict
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.uncertainty import Interval
from kernmodel.units import convert_cycles

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
_UNKNOWN = ("unknown-instruction", "around-unknown-instruction")


def judged(checks: Sequence[Check]) -> Iterator[CheckResult]:
    """What becomes of each check, as they come. An input that cannot be predicted is a check that fails."""
    for check in checks:
        try:
            answer = predict_ecm(check.kernel, check.code)
            verdicts = tuple(_verdict(answer, assertion) for assertion in check.assertions)
        except KernmodelError as error:
            yield CheckResult(check, (), str(error), {}, {}, None)
        else:
            yield CheckResult(check, verdicts, None, _known(answer), inputs(answer), _place(answer))


def figures(answer: EcmAnswer) -> dict[str, float]:
    """The figures that assertions name: cycles, and bytes over each path, per unit of work."""
    prediction, traffic = answer.prediction, answer.traffic
    levels = {f"ecm.{'memory' if level == _memory(answer) else level}": cycles for level, cycles in prediction.levels}
    times = {name: cycles for name, cycles in prediction.times.items() if name not in prediction.unknown}
    moved = {f"traffic.{path.path}": path.lines * answer.machine.line_bytes for path in traffic.paths}
    return {"ecm": prediction.cycles, **levels, **times, **moved}


def _known(answer: EcmAnswer) -> dict[str, float]:
    """The figures without lower bounds: those of which the machine file lacks a part say nothing about a change."""
    return {
        name: value
        for name, value in figures(answer).items()
        if (interval := _interval(answer, name, value)) is None or interval.high < inf
    }


def inputs(answer: EcmAnswer) -> dict[str, str]:
    """What the prediction was made of, as texts that are equal where nothing changed."""
    origin = answer.origin
    code = "\n".join(instruction.text for instruction in answer.loop.instructions)
    return {
        "kernel": _digest(answer.nest.text),
        "machine": answer.machine.sha256,
        "compiler": " ".join(filter(None, (origin.compiler, origin.version))) or str(origin.file),
        "flags": " ".join(origin.flags),
        "code of the loop": _digest(code),
        "sizes": ", ".join(f"{name}={value}" for name, value in sorted(answer.sizes.items())),
        "kernmodel": __version__,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _memory(answer: EcmAnswer) -> str:
    """Name of the memory among the levels of the prediction."""
    return answer.machine.residence_levels[-1]


def _place(answer: EcmAnswer) -> Location:
    first = (answer.nest.inner_lines or (1, 1))[0]
    return Location(answer.nest.file, first)


def _verdict(answer: EcmAnswer, assertion: Assertion) -> Verdict:
    meaning = assertion.meaning
    if not isinstance(meaning, Bound):
        holds, found = _FACTS[meaning](answer)
        return Verdict(assertion, "holds" if holds else "fails", found)
    value, interval = _figure(answer, meaning)
    if value is None:
        return Verdict(assertion, "holds" if meaning.comparison in (">", ">=") else "fails", "is not reached")
    compare = _COMPARE[meaning.comparison]
    outcome: Outcome = "holds" if compare(value, meaning.limit) else "fails"
    if interval is not None and compare(interval.low, meaning.limit) != compare(interval.high, meaning.limit):
        outcome = "open"
    return Verdict(assertion, outcome, "", value, interval)


def _figure(answer: EcmAnswer, bound: Bound) -> tuple[float | None, Interval | None]:
    """The figure in the unit of its bound, and its interval.

    Raises:
        UsageError: the prediction has no such figure, or the kernel no such unit.
    """
    prediction = answer.prediction
    if bound.figure == "saturation":
        cores = prediction.saturation_recursive
        if cores is None or not prediction.saturation_is_least:
            return None if cores is None else float(cores), None
        cause, assumed = "what all cores of a domain draw from memory", "no more than the measured ones"
        return float(cores), Interval(float(cores), inf, cause, assumed)
    found = figures(answer)
    named = {name.lower(): name for name in found} | {"ecm.mem": "ecm.memory"}
    name = named.get(bound.figure.lower())
    if name is None:
        raise UsageError(f"there is no figure {bound.figure!r}", where="assert", todo=suggest(bound.figure, found))
    if name.startswith("traffic."):
        per = prediction.work.iterations_per_unit if bound.unit == "B/It" else 1.0
        return found[name] / per, None

    def in_unit(cycles: float) -> float:
        return convert_cycles(cycles, bound.unit, prediction.work)

    interval = _interval(answer, name, found[name])
    return in_unit(found[name]), None if interval is None else interval.map(in_unit)


def _interval(answer: EcmAnswer, name: str, cycles: float) -> Interval | None:
    """Between which values a time lies: up to anything where the machine file lacks a figure for it."""
    prediction = answer.prediction
    if not name.startswith("ecm"):
        return None
    level = _memory(answer) if name in ("ecm", "ecm.memory") else name.removeprefix("ecm.")
    if prediction.is_least(level):
        return Interval(cycles, inf, f"{', '.join(prediction.unknown)} is not known", "no time there")
    return prediction.cycles_interval if level == _memory(answer) else None


def _is_vectorised(answer: EcmAnswer) -> tuple[bool, str]:
    """Whether most of the floating-point work, or of the data where there is none, is done in vectors."""
    mix = instruction_mix(answer.loop)
    total = sum(kind.flops * count for kind, count in mix.fp)
    packed = sum(kind.flops * count for kind, count in mix.fp if kind.lanes > 1)
    what = "FLOP"
    if not total:
        total = mix.bytes
        packed = sum(kind.size_bytes * count for kind, count in mix.memory if kind.kind != "scalar")
        what = "bytes"
    share = packed / total if total else 0.0
    return share > 0.5, f"{share:.0%} of the {what} in vectors"


def _without(codes: Sequence[str] | None) -> Callable[[EcmAnswer], tuple[bool, str]]:
    """Whether there is no warning of these codes, None: of any."""

    def look(answer: EcmAnswer) -> tuple[bool, str]:
        notes = [note for note in answer.notes if (note.kind == "warning" if codes is None else note.code in codes)]
        return not notes, "; ".join(map(str, notes)) or "none"

    return look


def _is_not_vectorised(answer: EcmAnswer) -> tuple[bool, str]:
    holds, found = _is_vectorised(answer)
    return not holds, found


_FACTS: Mapping[Fact, Callable[[EcmAnswer], tuple[bool, str]]] = {
    "vectorised": _is_vectorised,
    "not vectorised": _is_not_vectorised,
    "no unknown instructions": _without(_UNKNOWN),
    "no warnings": _without(None),
}
