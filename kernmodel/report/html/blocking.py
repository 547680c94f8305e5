"""The chart of a blocking study: times over block sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.report.html.charts import Axis, LineChart, Series
from kernmodel.report.html.ecm import time_names
from kernmodel.report.number_text import short
from kernmodel.report.text.blocking import headline
from kernmodel.studies.sweep.values import is_wide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernmodel.studies.blocking.answer import BlockingAnswer


def blocking_charts(answers: Sequence[BlockingAnswer], unit: str) -> tuple[LineChart, ...]:
    """The times over block sizes; none where blocking buys nothing."""
    return tuple(blocking_chart(one, unit) for one in answers if one.sweep)


def blocking_chart(answer: BlockingAnswer, unit: str) -> LineChart:
    """T_ECM and its times over the block size of the innermost blocked loop, with the time of the nest as it stands."""
    loop, before = answer.swept_loop, answer.before.prediction.cycles
    sizes = [float(size) for size, _ in answer.sweep]
    predictions = [one for _, one in answer.sweep]
    times = {name: [one.times.get(name, 0.0) for one in predictions] for name in time_names(predictions)}
    shown = {name: values for name, values in times.items() if any(values)}
    series = [_over(loop, name, sizes, values, at) for at, (name, values) in enumerate(shown.items())]
    series.append(_over(loop, "T_ECM", sizes, [one.cycles for _, one in answer.sweep], 6))
    stands = f"T_ECM as it stands: {short(before)} cy/CL"
    ends = tuple((size, before) for size in (sizes[0], sizes[-1]))
    series.append(Series("without blocking", ends, (stands,), colour=7, dashed=True, label="without blocking"))
    best = answer.candidates[0]
    place = ((float(best.blocks[loop]), best.prediction.cycles),)
    blocks = ", ".join(f"{name} = {size}" for name, size in best.blocks.items())
    told = f"best candidate: {blocks}\n{short(best.prediction.cycles)} cy/CL"
    series.append(Series("best candidate", place, (told,), "marks", 4))
    return LineChart(
        title=f"Times over the block size of {loop}",
        about=f"{' '.join(headline(answer, unit))} {stands}.",
        x=Axis(f"block of {loop}", log=is_wide(sizes)),
        y=Axis("cy/CL"),
        series=tuple(series),
    )


def _over(loop: str, name: str, sizes: Sequence[float], ys: Sequence[float], colour: int) -> Series:
    points = tuple(zip(sizes, ys, strict=True))
    tips = tuple(f"block of {loop} = {size:g}\n{name}: {short(y)} cy/CL" for size, y in points)
    return Series(name, points, tips, colour=colour, dashed=name == "T_OL")
