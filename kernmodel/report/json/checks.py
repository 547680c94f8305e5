"""`kernmodel.check/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.json.document import Json, document, interval_json, pick, record

if TYPE_CHECKING:
    from kernmodel.studies.checks.model import CheckResult, ChecksAnswer, Verdict


def checks_document(answer: ChecksAnswer) -> Json:
    """The answer of `kernmodel check`, which a later run compares with (`--against`)."""
    return document(
        "kernmodel.check/1",
        pick(answer, "file", "holds"),
        checks=[_check(result) for result in answer.results],
        against=answer.against,
        changes=answer.changes,
    )


def _check(result: CheckResult) -> Json:
    return record(
        {"name": result.check.name, "line": result.check.where.line},
        pick(result, "outcome", "error", "figures", "inputs"),
        assertions=[_verdict(verdict) for verdict in result.verdicts],
    )


def _verdict(verdict: Verdict) -> Json:
    meaning = verdict.assertion.meaning
    return record(
        {"assertion": verdict.assertion.text, "line": verdict.assertion.where.line},
        pick(verdict, "outcome", "found", "value"),
        interval_json("value", verdict.interval),
        unit=None if isinstance(meaning, str) else meaning.unit,
    )
