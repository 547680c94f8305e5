"""The answer of `kernmodel evaluate blocks` as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kernmodel.code.blocks import parse_hex
from kernmodel.code.listing import decode_bytes
from kernmodel.evaluate.statistics import TOLERANCES
from kernmodel.report.layout import Block, Blocks, Column, Fields, Heading, Line, entry, fields, left, right, table
from kernmodel.report.number_text import MISSING, decimal
from kernmodel.report.text.reasons import reason_text
from kernmodel.report.text.sections import failures_section
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.evaluate.model import Category, Evaluation, Group, Judged
    from kernmodel.evaluate.statistics import Summary

_SHOWN_INSTRUCTIONS = 24


def evaluation_report(evaluation: Evaluation) -> Blocks:
    """The whole answer."""
    source = evaluation.source
    judged = sum(next(iter(group.summaries.values())).count for group in evaluation.groups)
    uncertain, placed, skipped = evaluation.uncertain, evaluation.placed, len(source.skipped)
    return (
        *fields(
            f"Predictions against {source.reference}",
            ("file", f"{source.file} ({source.form})"),
            ("reference", f"{source.reference} (a {'measurement' if source.kind == 'measured' else 'model'})"),
            ("blocks", f"{judged} predicted, {len(evaluation.failed)} refused, {evaluation.left_out} left out"),
            ("uncertain", f"{count(uncertain, 'block')} with unknown instructions" if uncertain else None),
            (
                "placed",
                f"arrays of {count(placed, 'block')} so that as many loads cross lines as it says" if placed else None,
            ),
            ("skipped", f"{count(skipped, 'line')} without a usable block or reference" if skipped else None),
        ),
        *_group_section(evaluation.groups),
        *_category_sections(evaluation.categories),
        *_worst_section(evaluation.worst, source.reference),
        *failures_section("Blocks without a prediction", evaluation.failed),
    )


def _summary_columns(summary: Callable[[Any], Summary]) -> tuple[Column, ...]:
    """The error statistics of an item."""

    def share(at: int) -> Callable[[Any], str | None]:
        return lambda item: f"{summary(item).within[at]:.1f} %" if summary(item).count else None

    return (
        right("blocks", lambda item: summary(item).count),
        right("mean %", lambda item: summary(item).mean_percent),
        right("median %", lambda item: summary(item).median_percent),
        right("Kendall τ", lambda item: decimal(summary(item).tau, 3)),
        *(right(f"within {bound:g} %", share(at)) for at, bound in enumerate(TOLERANCES)),
    )


def _group_section(groups: Sequence[Group]) -> Blocks:
    """Every predictor per core and notion: mean and median of the absolute difference in percent of the reference."""
    columns = (
        left("core", lambda found: found[0].core),
        left("notion", lambda found: found[0].notion),
        left("predictor", itemgetter(1)),
        *_summary_columns(itemgetter(2)),
    )
    rows = ((group, name, summary) for group in groups for name, summary in group.summaries.items())
    return table("Absolute difference from the reference, on the same blocks", columns, rows)


def _category_sections(categories: Sequence[Category]) -> Blocks:
    """A table per grouping: ours, and the mean of each peer on the same blocks."""
    blocks: list[Block] = []
    for grouping, group in groupby(categories, key=lambda category: category.grouping):
        members = tuple(group)
        peers = dict.fromkeys(name for member in members for name in list(member.summaries)[1:])
        columns = (
            left(grouping, "name"),
            *_summary_columns(lambda category: next(iter(category.summaries.values()))),
            *(right(f"{name} mean %", entry(_means, name)) for name in peers),
        )
        blocks += table(f"By {grouping}", columns, members)
    return tuple(blocks)


def _means(category: Category) -> dict[str, float | None]:
    return {name: summary.mean_percent for name, summary in category.summaries.items()}


def _worst_section(worst: Sequence[Judged], reference: str) -> Blocks:
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
                    ("  reason", reason_text(result.reason)),
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
