"""The answer of `kernmodel evaluate blocks`: as text, and as `kernmodel.evaluation/1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from kernmodel.code.blocks import parse_hex
from kernmodel.code.listing import decode_bytes
from kernmodel.evaluate.statistics import TOLERANCES
from kernmodel.report.json_common import Json, envelope, pick, plain
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import MISSING, count, decimal

if TYPE_CHECKING:
    from kernmodel.evaluate.model import Category, Evaluation, Group, Judged
    from kernmodel.evaluate.statistics import Summary

_SHOWN_FAILURES = 5
_SHOWN_INSTRUCTIONS = 24


def evaluation_report(evaluation: Evaluation) -> tuple[Block, ...]:
    """The whole answer."""
    source = evaluation.source
    judged = sum(next(iter(group.summaries.values())).count for group in evaluation.groups)
    pairs = [
        ("file", f"{source.file} ({source.form})"),
        ("reference", f"{source.reference} (a {'measurement' if source.kind == 'measured' else 'model'})"),
        ("blocks", f"{judged} predicted, {len(evaluation.failed)} refused, {evaluation.left_out} left out"),
    ]
    if evaluation.uncertain:
        pairs.append(("uncertain", f"{count(evaluation.uncertain, 'block')} with unknown instructions"))
    if source.skipped:
        pairs.append(("skipped", f"{count(len(source.skipped), 'line')} without a usable block or reference"))
    return (
        Heading(f"Predictions against {source.reference}"),
        Fields(tuple(pairs)),
        *_group_sections(evaluation.groups),
        *_category_sections(evaluation.categories),
        *_worst_section(evaluation.worst, source.reference),
        *_failure_section(evaluation.failed),
    )


def _summary_columns() -> tuple[Column, ...]:
    shares = (Column(f"within {bound:g} %") for bound in TOLERANCES)
    return (Column("blocks"), Column("mean %"), Column("median %"), Column("Kendall τ"), *shares)


def _summary_cells(summary: Summary) -> tuple[str, ...]:
    shares = (f"{share:.1f} %" if summary.count else MISSING for share in summary.within)
    errors = (decimal(summary.mean_percent), decimal(summary.median_percent))
    return (str(summary.count), *errors, decimal(summary.tau, 3), *shares)


def _group_sections(groups: Sequence[Group]) -> tuple[Block, ...]:
    """Every predictor per core and notion: mean and median of the absolute difference in percent of the reference."""
    columns = (Column("core", "left"), Column("notion", "left"), Column("predictor", "left"), *_summary_columns())
    rows = tuple(
        (group.core, group.notion, name, *_summary_cells(summary))
        for group in groups
        for name, summary in group.summaries.items()
    )
    title = "Absolute difference from the reference, on the same blocks"
    return (Heading(title), Table(columns, rows)) if rows else ()


def _category_sections(categories: Sequence[Category]) -> tuple[Block, ...]:
    """A table per grouping: ours, and the mean of each peer on the same blocks."""
    blocks: list[Block] = []
    for grouping, group in groupby(categories, key=lambda category: category.grouping):
        members = tuple(group)
        peers = list(dict.fromkeys(name for member in members for name in list(member.summaries)[1:]))
        columns = (Column(grouping, "left"), *_summary_columns(), *(Column(f"{name} mean %") for name in peers))
        rows = tuple((member.name, *_category_cells(member.summaries, peers)) for member in members)
        blocks += [Heading(f"By {grouping}"), Table(columns, rows)]
    return tuple(blocks)


def _category_cells(summaries: Mapping[str, Summary], peers: Iterable[str]) -> tuple[str, ...]:
    means = (decimal(summaries[name].mean_percent) if name in summaries else MISSING for name in peers)
    return (*_summary_cells(next(iter(summaries.values()))), *means)


def _worst_section(worst: Sequence[Judged], reference: str) -> tuple[Block, ...]:
    blocks: list[Block] = []
    for item in worst:
        block, result = item.block, item.result
        peers = ", ".join(f"{name} {decimal(value)}" for name, value in block.peers.items())
        parts = ", ".join(f"{name} {decimal(cycles)}" for name, cycles in (result.components or {}).items())
        numbers = f"kernmodel {decimal(item.prediction)}, {reference} {decimal(block.reference)}"
        off = item.prediction - block.reference
        signed = f"{'+' if off >= 0 else '-'}{item.error_percent:.1f} %"
        blocks += [
            Line(f"  line {block.line}, {result.core}, {result.notion}: {numbers} cy per pass ({signed})", "strong"),
            Fields(
                (
                    ("  reason", result.reason),
                    ("  components", parts or MISSING),
                    *((("  peers", peers),) if peers else ()),
                    ("  code", _code_text(block.code)),
                    ("  hex", block.code),
                )
            ),
        ]
    return (Heading("The worst blocks"), *blocks) if blocks else ()


def _code_text(code: str) -> str:
    """The instructions of a block on one line."""
    texts = [instruction.text for instruction in decode_bytes(parse_hex(code, "hex")).instructions]
    more = f"; … {len(texts) - _SHOWN_INSTRUCTIONS} more" if len(texts) > _SHOWN_INSTRUCTIONS else ""
    return "; ".join(texts[:_SHOWN_INSTRUCTIONS]) + more


def _failure_section(failed: Sequence[tuple[int, str]]) -> tuple[Block, ...]:
    lines: list[Block] = [Line(f"  line {line}: {error}", "warning") for line, error in failed[:_SHOWN_FAILURES]]
    if len(failed) > _SHOWN_FAILURES:
        lines.append(Line(f"  … and {len(failed) - _SHOWN_FAILURES} more"))
    return (Heading("Blocks without a prediction"), *lines) if lines else ()


def evaluation_document(evaluation: Evaluation) -> Json:
    """`kernmodel.evaluation/1`."""
    body = {
        **pick(evaluation.source, "file", "form", "reference", "kind"),
        "tolerances_percent": list(TOLERANCES),
        "groups": [{**pick(g, "core", "notion"), "summaries": _summaries_json(g.summaries)} for g in evaluation.groups],
        "categories": [
            {**pick(category, "grouping", "name"), "summaries": _summaries_json(category.summaries)}
            for category in evaluation.categories
        ],
        "worst": [_judged_json(item) for item in evaluation.worst],
        "failed": [{"line": line, "error": error} for line, error in evaluation.failed],
        "skipped": [{"line": line, "error": error} for line, error in evaluation.source.skipped],
        **pick(evaluation, "left_out", "uncertain"),
    }
    return envelope("kernmodel.evaluation/1", body)


def _summaries_json(summaries: Mapping[str, Summary]) -> list[Json]:
    return [{"predictor": name, **plain(summary)} for name, summary in summaries.items()]


def _judged_json(item: Judged) -> Json:
    return {
        **pick(item.block, "line", "code", "reference"),
        "core": item.result.core,
        "notion": item.result.notion,
        **pick(item, "prediction", "error_percent"),
        **pick(item.result, "bound_by", "binding", "components", "reason"),
        "peers": [{"predictor": name, "prediction": value} for name, value in item.block.peers.items()],
    }
