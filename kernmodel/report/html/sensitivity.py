"""The chart of a sensitivity: what each figure of the machine is worth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.report.html.charts import Axis, Bar, BarChart, Segment

if TYPE_CHECKING:
    from kernmodel.studies.what_if.sensitivity import Sensitivity, SensitivityAnswer

_MOST = 20
"""Figures of one chart; the table has all of them."""


def sensitivity_charts(answers: Sequence[SensitivityAnswer]) -> tuple[BarChart, ...]:
    """The chart, where a figure has an effect."""
    return tuple(sensitivity_chart(answer) for answer in answers if answer.figures)


def sensitivity_chart(answer: SensitivityAnswer) -> BarChart:
    """Bars from the runtime as it is to that with half and with twice each figure, the greatest effect on top."""
    first = answer.figures[0]
    bars = tuple(Bar(one.figure.short, tuple(_segments(one))) for one in answer.figures[:_MOST])
    return BarChart(
        title="Runtime with half and with twice a figure of the machine",
        about=f"× the runtime as it is. {first.figure.short} ({first.figure.text}) matters most.",
        x=Axis("runtime with the figure changed, × the runtime as it is"),
        legend=("half the figure", "twice the figure"),
        frames=(bars,),
        origin=1.0,
    )


def _segments(one: Sensitivity) -> Iterator[Segment]:
    for part, (what, ratio) in enumerate((("half", one.less), ("twice", one.more))):
        if ratio is not None and math.isfinite(ratio):
            yield Segment(part, 1.0, ratio, f"{what} of {one.figure.text}: {ratio:.3f} × the runtime")
