"""`kernmodel.evaluation/1`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernmodel.evaluate.statistics import TOLERANCES
from kernmodel.report.json.document import Json, envelope, pick, plain

if TYPE_CHECKING:
    from kernmodel.evaluate.model import Evaluation, Judged
    from kernmodel.evaluate.statistics import Summary


def evaluation_document(evaluation: Evaluation) -> Json:
    """The answer of `kernmodel evaluate blocks`."""
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
