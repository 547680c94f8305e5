"""The answer of `kernmodel binary suite` as text: errors by predictor, on all variants and on those of each kind."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Blocks, fields, left, lines, right, table
from kernmodel.report.number_text import decimal
from kernmodel.units import format_bytes
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.binary.suite.model import Class, Judged, SuiteAnswer

_WORST = 5
_SHOWN_FAILURES = 8


def suite_report(answer: SuiteAnswer) -> Blocks:
    """The whole answer."""
    took = ", ".join(f"{what} {seconds:.0f} s" for what, seconds in answer.seconds.items())
    versions = ", ".join(f"{name} {version}".strip() for name, version in answer.predictors.items())
    return (
        *fields(
            "Suite",
            ("file", answer.file),
            ("core", answer.core),
            ("binaries", f"{len(answer.judged)} measured, {len(answer.failed)} without a result"),
            ("predictors", versions),
            ("data", _residency_text(answer.judged)),
            ("time", took),
            ("kept", f"{count(answer.reused, 'record')} of an earlier run" if answer.reused else None),
            ("output", answer.output),
        ),
        *_class_sections(answer.classes),
        *_worst_section(answer.judged),
        *_failed_section(answer.failed),
    )


def _residency_text(judged: Sequence[Judged]) -> str:
    """How many are not resident in the first cache, and stand in a table of their own."""
    known = [one for one in judged if one.data is not None]
    if not known:
        return "addresses were not traced: all are taken to lie in the first cache"
    beyond = sum(one.is_resident is False for one in known)
    largest = format_bytes(int(max(one.data["footprint_bytes"] for one in known if one.data is not None)))
    untraced = f", {len(judged) - len(known)} not traced" if len(known) < len(judged) else ""
    return f"{beyond} of {len(known)} not in the first cache, footprints up to {largest}{untraced}"


def _failed_section(failed: Sequence[tuple[str, str]]) -> Blocks:
    """The first variants without a result, and why."""
    shown = [f"{name}: {why}" for name, why in failed[:_SHOWN_FAILURES]]
    more = len(failed) - _SHOWN_FAILURES
    return lines("Without a result", [*shown, *([f"… and {more} more"] if more > 0 else [])], "warning")


def _class_sections(classes: Sequence[Class]) -> Blocks:
    blocks: list[Block] = []
    for grouping, members in groupby(classes, key=lambda one: one.grouping):
        rows = [(one, label, summary) for one in members for label, summary in one.summaries.items()]
        columns = (
            left(grouping if grouping != "all" else "binaries", lambda row: row[0].name),
            left("predictor", lambda row: row[1]),
            right("coverage", lambda row: f"{row[2].count} of {row[0].count}"),
            right("mean %", lambda row: row[2].mean_percent),
            right("median %", lambda row: row[2].median_percent),
            right("Kendall τ", lambda row: decimal(row[2].tau, 3)),
        )
        title = "Absolute error in percent of the measured cycles" if grouping == "all" else f"By {grouping}"
        blocks += table(title, columns, rows)
    return tuple(blocks)


def _worst_section(judged: Sequence[Judged]) -> Blocks:
    """The variants that the first predictor of the last way of ours is furthest from."""
    labels = [label for one in judged[:1] for label in one.predicted]
    best = next((label for label in reversed(labels) if label.startswith("kernmodel")), "")
    found = [
        (one, 100 * (cycles / one.measured - 1)) for one in judged if (cycles := one.predicted.get(best)) is not None
    ]
    worst = sorted(found, key=lambda row: -abs(row[1]))[:_WORST]
    columns = (
        left("binary", lambda row: row[0].variant.name, fold=True),
        right("measured cy", lambda row: f"{row[0].measured:,.0f}"),
        right("error", lambda row: f"{row[1]:+.1f} %"),
    )
    return table(f"The worst of {best}", columns, worst)
