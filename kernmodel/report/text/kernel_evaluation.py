"""The answer of `kernmodel evaluate kernels` as text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from kernmodel.report.layout import Block, Blocks, fields, left, right, table
from kernmodel.report.number_text import decimal
from kernmodel.report.text.sections import failures_section
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.evaluate.kernel_model import ErrorSummary, JudgedPoint, JudgedSeries, KernelEvaluation, PointGroup


def kernel_evaluation_report(evaluation: KernelEvaluation, worst: int) -> Blocks:
    """The whole answer, with so many of the worst series."""
    points = [point for one in evaluation.series for point in one.points]
    failed = sorted(failure for one in evaluation.series for failure in one.failed)
    return (
        *fields(
            "Predictions against measured kernels",
            ("file", evaluation.file),
            ("points", f"{len(points)} predicted, {len(failed)} refused, {len(evaluation.skipped)} skipped"),
            ("series", f"{len(evaluation.series)}, each of which weighs the same"),
            ("sample", "some points of each series (--sample)" if evaluation.sampled else None),
        ),
        *group_sections(evaluation.groups),
        *table(
            "Bytes over each path, data in memory",
            (
                left("path", "path"),
                right("series", "series"),
                right("points", "points"),
                right("mean %", "mean_percent"),
                right("median %", "median_percent"),
            ),
            evaluation.traffic,
        ),
        *_worst_section(evaluation.series, worst),
        *failures_section("Lines without a prediction", (*evaluation.skipped, *failed)),
    )


def group_sections(groups: Sequence[PointGroup]) -> Blocks:
    """A table per grouping; of other models the mean absolute and the mean error on the same points."""
    blocks: list[Block] = []
    for grouping, members in groupby(groups, key=lambda group: group.grouping):
        items = tuple(members)
        peers = list(dict.fromkeys(name for item in items for name in list(item.summaries)[1:]))
        columns = [
            left(grouping, "name"),
            right("series", lambda item: _ours(item).series),
            right("points", lambda item: _ours(item).points),
            right("mean %", lambda item: _ours(item).mean_percent),
            right("signed %", lambda item: signed(_ours(item).signed_percent)),
            right("median %", lambda item: _ours(item).median_percent),
            *(right(f"{name} mean %", partial(_peer, name, "mean_percent")) for name in peers),
            *(right(f"{name} signed %", partial(_peer_signed, name)) for name in peers),
        ]
        blocks += table(f"Absolute and signed error by {grouping}", columns, items)
    return tuple(blocks)


def _ours(group: PointGroup) -> ErrorSummary:
    return next(iter(group.summaries.values()))


def _peer(name: str, figure: str, group: PointGroup) -> float | None:
    return getattr(group.summaries[name], figure) if name in group.summaries else None


def _peer_signed(name: str, group: PointGroup) -> str | None:
    return signed(group.summaries[name].signed_percent) if name in group.summaries else None


def signed(percent: float) -> str:
    """An error with its sign."""
    return f"{percent:+.2f}"


def _worst_section(series: Sequence[JudgedSeries], worst: int) -> Blocks:
    """The series with the largest mean errors, and the point of each where the prediction is farthest off."""
    judged = [(_mean(one.points), one) for one in series if one.points]
    shown = sorted(judged, key=lambda pair: -pair[0])[:worst]
    columns = (
        left("kernel", lambda pair: pair[1].series.kernel),
        left("machine", lambda pair: pair[1].machine),
        right("points", lambda pair: len(pair[1].points)),
        right("mean %", itemgetter(0)),
        left("farthest off", lambda pair: _farthest(pair[1].points)),
    )
    return table("The worst series", columns, shown)


def _mean(points: Sequence[JudgedPoint]) -> float:
    return sum(abs(point.error_percent) for point in points) / len(points)


def _farthest(points: Sequence[JudgedPoint]) -> str:
    worst = max(points, key=lambda point: abs(point.error_percent))
    sizes = ", ".join(f"{name} = {value}" for name, value in worst.point.sizes.items())
    cores = f", {count(worst.point.cores, 'core')}" if worst.point.cores > 1 else ""
    numbers = f"predicted {decimal(worst.predicted)}, measured {decimal(worst.measured)} cy/CL"
    return f"{sizes}{cores}: {numbers} ({worst.error_percent:+.1f} %); {worst.prediction.shorthand()}"
