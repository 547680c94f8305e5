"""`kernmodel.evaluation/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.evaluate.statistics import TOLERANCES
from kernmodel.report.json.document import Json, document, pick, plain, record
from kernmodel.report.text.reasons import reason_text

if TYPE_CHECKING:
    from kernmodel.evaluate.model import Category, Evaluation, Group, Judged


def evaluation_document(evaluation: Evaluation) -> Json:
    """The answer of `kernmodel evaluate blocks`."""
    source, skipped = evaluation.source, evaluation.source.skipped
    return document(
        "kernmodel.evaluation/1",
        pick(source, "file", "form", "reference", "kind"),
        tolerances_percent=TOLERANCES,
        groups=[record(pick(one, "core", "notion"), summaries=_summaries(one)) for one in evaluation.groups],
        categories=[record(pick(one, "grouping", "name"), summaries=_summaries(one)) for one in evaluation.categories],
        worst=[_judged_json(item) for item in evaluation.worst],
        failed=[{"line": line, "error": error} for line, error in evaluation.failed],
        skipped=[{"line": line, "error": error} for line, error in skipped],
        left_out=evaluation.left_out,
        uncertain=evaluation.uncertain,
        placed=evaluation.placed,
    )


def _summaries(group: Group | Category) -> list[Json]:
    return [{"predictor": name, **plain(summary)} for name, summary in group.summaries.items()]


def _judged_json(item: Judged) -> Json:
    return record(
        pick(item.block, "line", "code", "reference"),
        pick(item.result, "core", "notion"),
        pick(item, "prediction", "error_percent"),
        pick(item.result, "bound_by", "binding", "components"),
        {"reason": reason_text(item.result.reason)},
        peers=[{"predictor": name, "prediction": value} for name, value in item.block.peers.items()],
    )
