"""The answer of `kernmodel check` as text, and as annotations of GitHub."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.report.layout import Blocks, Heading, Line, left, table
from kernmodel.report.number_text import quantity
from kernmodel.uncertainty import with_interval
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.errors import Location
    from kernmodel.studies.checks.model import Changed, CheckResult, ChecksAnswer, Verdict

_SIGNS = {"holds": "ok", "open": "OPEN", "fails": "FAIL"}
_SHOWN_CHANGES = 4
"""Figures of a check that are named where several changed."""


def checks_report(answer: ChecksAnswer) -> Blocks:
    """The verdicts of every check, what changed since an earlier run, and the count."""
    verdicts = [verdict for result in answer.results for verdict in result.verdicts]
    refused = [result for result in answer.results if result.error is not None]
    failed = sum(verdict.outcome == "fails" for verdict in verdicts)
    unclear = sum(verdict.outcome == "open" for verdict in verdicts)
    parts = [
        f"{count(len(verdicts) - failed - unclear, 'assertion')} of {len(verdicts)} hold",
        f"{failed} failed" if failed else "",
        f"{unclear} open: the number is known between two values only" if unclear else "",
        f"{count(len(refused), 'check')} without a prediction" if refused else "",
    ]
    return (
        *(block for result in answer.results for block in _result_section(result)),
        *_changes_section(answer),
        Heading("Summary"),
        Line(f"  {', '.join(filter(None, parts))}", "plain" if answer.holds else "warning"),
    )


def _result_section(result: CheckResult) -> Blocks:
    if result.error is not None:
        return Heading(result.check.name), Line(f"  FAIL  {result.error}", "warning")
    return table(
        result.check.name,
        (
            left("", lambda verdict: _SIGNS[verdict.outcome]),
            left("assertion", "assertion.text"),
            left("found", _found, fold=True),
        ),
        result.verdicts,
    )


def _found(verdict: Verdict) -> str:
    """What was found, with its interval where an assertion is open."""
    meaning = verdict.assertion.meaning
    if verdict.value is None or isinstance(meaning, str):
        return verdict.found
    interval = verdict.interval if verdict.outcome == "open" else None
    if interval is not None and not isfinite(interval.high):
        return f"at least {_written(interval.low, meaning.unit)}: {interval.cause}"
    return with_interval(verdict.value, interval, lambda value: _written(value, meaning.unit))


def _written(value: float, unit: str) -> str:
    return f"{value:g} {unit}" if unit == "cores" else quantity(value, unit)


def _changes_section(answer: ChecksAnswer) -> Blocks:
    if answer.against is None:
        return ()
    title = f"Changed since {answer.against}"
    if not answer.changes:
        return Heading(title), Line("  nothing")
    return table(
        title,
        (
            left("check", lambda item: item[0]),
            left("figures (per cache line of work)", lambda item: _named(item[1]), fold=True),
            left("because these changed", lambda item: ", ".join(item[1][0].inputs) or "nothing that is known"),
        ),
        [(name, tuple(found)) for name, found in groupby(answer.changes, key=lambda change: change.check)],
    )


def _named(changes: tuple[Changed, ...]) -> str:
    """The figures that changed, those that changed most first."""
    ordered = sorted(changes, key=_size, reverse=True)
    shown = ", ".join(f"{one.figure} {_cycles(one.before)} → {_cycles(one.after)}" for one in ordered[:_SHOWN_CHANGES])
    more = len(ordered) - _SHOWN_CHANGES
    return f"{shown}, and {more} more" if more > 0 else shown


def _size(change: Changed) -> float:
    if not change.before or not change.after:
        return float("inf")
    return max(change.before / change.after, change.after / change.before)


def _cycles(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def github_lines(answer: ChecksAnswer) -> Iterator[str]:
    """An annotation for each assertion that does not hold, at the loop in the kernel's file if that is the user's own
    (GitHub, "Workflow commands for GitHub Actions", error and warning messages)."""
    for result in answer.results:
        if result.error is not None:
            yield _annotation("error", result.check.where, result.check.name, result.error)
        for verdict in result.verdicts:
            if verdict.outcome == "holds":
                continue
            own = result.place is not None and Path(result.check.kernel.kernel).is_file()
            place = result.place if own and result.place else verdict.assertion.where
            message = f"{verdict.assertion.text}: found {_found(verdict)}"
            yield _annotation("error" if verdict.outcome == "fails" else "warning", place, result.check.name, message)


def _annotation(kind: str, place: Location, title: str, message: str) -> str:
    return f"::{kind} file={_property(place.file)},line={place.line},title={_property(title)}::{_escaped(message)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
