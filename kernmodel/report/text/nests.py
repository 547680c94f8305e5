"""Answers for all nests of a function or file as text: a row for each, a sum for each function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from kernmodel.errors import KernmodelError, Note
from kernmodel.models.ecm import AT_LEAST
from kernmodel.report.layout import Blocks, Column, Heading, Line, Table, cells, fields, left, right
from kernmodel.report.number_text import MISSING, prefixed, sizes, time_in
from kernmodel.report.text.bottleneck import limit_short
from kernmodel.report.text.ecm import bound_sign
from kernmodel.report.text.sections import machine_fields, merged_notes, notes_section
from kernmodel.studies.predict.whole import sums_by_function
from kernmodel.uncertainty import with_interval
from kernmodel.units import convert_cycles, format_bytes, meaningful_units
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer, TrafficAnswer
    from kernmodel.studies.predict.whole import NestAnswer

    Predicted = NestAnswer[EcmAnswer]
    Moved = NestAnswer[TrafficAnswer]

APART = Note(
    "nests-apart",
    "a sum takes each nest as often as the loops of its row say (a loop around it that is not among them, as a while "
    "until something converges, once), as if the function were called again and again: what nests find in caches of "
    "one another is counted, but not what stands outside of loops nor the calls of functions",
    "assumption",
)
"""What a sum over nests leaves out."""


def seconds_of(one: Predicted) -> float | None:
    """Seconds of one execution of a nest; None where they are not known."""
    if isinstance(one.answer, KernmodelError) or "s" not in meaningful_units(one.answer.prediction.work):
        return None
    return convert_cycles(one.answer.prediction.cycles, "s", one.answer.prediction.work)


def ecm_nests_report(nests: Sequence[Predicted], unit: str, *, verbose: bool = False) -> Blocks:
    """One row for each nest: its loops, its time in the unit and of one execution, its share, and what limits."""
    sums = sums_by_function(nests, seconds_of)

    def time(one: Predicted) -> str:
        if isinstance(one.answer, KernmodelError):
            return MISSING
        prediction = one.answer.prediction
        if unit not in meaningful_units(prediction.work):
            return MISSING
        interval = prediction.cycles_interval
        text = with_interval(
            prediction.cycles, interval, lambda value: time_in(value, unit, prediction.work), cause=False
        )
        return bound_sign(unit, prediction) + text

    def share(one: Predicted) -> str:
        seconds, whole = seconds_of(one), sums.get(one.found.function)
        return MISSING if seconds is None or not whole else f"{seconds / whole:.0%}"

    columns = (
        *_place_columns(),
        right(f"T_ECM {unit}", time),
        right("one execution", lambda one: _least([one]) + _duration(seconds_of(one))),
        right("share", share),
        left("what limits", _limits),
    )
    rows = [cells(columns, one) for one in nests]
    totals = [
        (name or "(bare)", _modelled(nests, name), "", "", "", _least(nests, name) + _duration(sums.get(name)), "", "")
        for name in _functions(nests)
    ]
    return _report("ECM prediction", nests, Table(columns, tuple(rows), tuple(totals)), verbose=verbose)


def _least(nests: Sequence[Predicted], function: str | None = None) -> str:
    """What tells that a time is a lower bound, since a part of it is not known."""
    own = (one.answer for one in nests if function in (None, one.found.function))
    known = (answer.prediction for answer in own if not isinstance(answer, KernmodelError))
    return AT_LEAST if any(prediction.is_lower_bound for prediction in known) else ""


def _duration(seconds: float | None) -> str:
    return MISSING if seconds is None else prefixed(seconds, "s")


def _limits(one: Predicted) -> str:
    if isinstance(one.answer, KernmodelError):
        return "not modelled"
    return limit_short(one.answer.prediction) + (", calls left out" if one.answer.prediction.lacks_calls else "")


def bytes_of(one: Moved, path: int) -> float | None:
    """Bytes that cross a path of the hierarchy, by its number, in one execution of a nest."""
    if isinstance(one.answer, KernmodelError) or one.iterations is None:
        return None
    traffic, line = one.answer.traffic, one.answer.machine.line_bytes
    return traffic.paths[path].lines * line / traffic.iterations_per_unit * one.iterations


def traffic_nests_report(nests: Sequence[Moved], *, verbose: bool = False) -> Blocks:
    """One row for each nest: its loops, and the bytes of one execution over each path."""
    first = next(one.answer for one in nests if not isinstance(one.answer, KernmodelError))

    def column(number: int, name: str) -> Column:
        return right(name, lambda one: _bytes(bytes_of(one, number)))

    paths = [path.path for path in first.traffic.paths]
    columns = (
        *_place_columns(),
        *(column(number, name) for number, name in enumerate(paths)),
        left("method", lambda one: "not modelled" if isinstance(one.answer, KernmodelError) else _method(one)),
    )
    by_path = [sums_by_function(nests, partial(bytes_of, path=number)) for number in range(len(paths))]
    totals = [
        (name or "(bare)", _modelled(nests, name), "", "", *(_bytes(found.get(name)) for found in by_path), "")
        for name in _functions(nests)
    ]
    table = Table(columns, tuple(cells(columns, one) for one in nests), tuple(totals))
    return _report("Data traffic of one execution", nests, table, verbose=verbose)


def _bytes(value: float | None) -> str:
    return MISSING if value is None else format_bytes(value)


def _method(one: Moved) -> str:
    return MISSING if isinstance(one.answer, KernmodelError) else one.answer.traffic.method


def _place_columns() -> tuple[Column, ...]:
    return (
        left("function", lambda one: one.found.function or "(bare)"),
        left("nest", lambda one: str(one.found.number)),
        right("line", lambda one: one.found.location.line or MISSING),
        left("loops", lambda one: ", ".join(one.found.variables)),
    )


def _functions(nests: Iterable[NestAnswer[EcmAnswer]] | Iterable[NestAnswer[TrafficAnswer]]) -> list[str]:
    return list(dict.fromkeys(one.found.function for one in nests))


def _modelled(nests: Sequence[Predicted] | Sequence[Moved], function: str) -> str:
    """How many of the nests of a function are modelled."""
    own = [one for one in nests if one.found.function == function]
    known = sum(not isinstance(one.answer, KernmodelError) for one in own)
    return f"sum of {known}" if known == len(own) else f"sum of {known} of {len(own)}"


def _of_others(notes: Iterable[Note]) -> list[Note]:
    """What is said of the reuse between nests."""
    return [note for note in notes if note.code in ("reuse-between-nests", "near-threshold-between-nests")]


def _report(what: str, nests: Sequence[Predicted] | Sequence[Moved], table: Table, *, verbose: bool) -> Blocks:
    first = next(one.answer for one in nests if not isinstance(one.answer, KernmodelError))
    errors = [one.answer for one in nests if isinstance(one.answer, KernmodelError)]
    values: dict[str, int] = {}
    for one in nests:
        if not isinstance(one.answer, KernmodelError):
            values |= one.answer.sizes
    notes = merged_notes(note for one in nests for note in one.notes)
    warned = sum(note.kind == "warning" for note in notes)
    hint = "each nest alone, with its notes: --function F --nest K" + (
        f" ({count(warned, 'warning')})" if warned else ""
    )
    pairs = (("file", first.nest.file), ("sizes", sizes(values)), *machine_fields(first.machine), ("see", hint))
    return (
        *fields(f"{what} of {len(nests)} loop nests on {first.machine.name}", *pairs),
        Line(""),
        table,
        *((Heading("Not modelled"),) if errors else ()),
        *(Line(str(error)) for error in dict.fromkeys(map(str, errors))),
        *notes_section((APART, *(notes if verbose else _of_others(notes)))),
    )
