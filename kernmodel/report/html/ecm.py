"""Charts of ECM predictions: the times of one, and times and traffic over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel.machine.overlap import Max, Overlap, Sum, Time, evaluate, parse_overlap
from kernmodel.models.calls import CALLS
from kernmodel.models.outside import OUTSIDE
from kernmodel.report.html.charts import Axis, Bar, BarChart, Chart, LineChart, Segment, Series, stacked
from kernmodel.report.html.scaling import curves_chart
from kernmodel.report.number_text import short
from kernmodel.studies.sweep.values import is_wide, varying_names
from kernmodel.uncertainty import with_interval

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction
    from kernmodel.studies.predict.request import EcmAnswer

CYCLES = "cycles per unit of work (cy/CL)"
_TOTAL = "T_ECM"
_TOTAL_COLOUR = 6
_TIMES_BEFORE = 3
"""Times before those of the paths, which have the same colours in all charts."""


def ecm_charts(answers: Sequence[EcmAnswer]) -> tuple[Chart, ...]:
    """Performance over cores where it was asked for; the times of one answer, or of several over what varies."""
    charts: list[Chart] = [curves_chart(answers)] if answers[0].scaling else []
    if len(answers) == 1:
        return (times_chart(answers), levels_chart(answers), *charts)
    name = varying_size(answers)
    if name is None:
        return (times_chart(answers, tuple(_size_text(answer) for answer in answers)), *charts)
    return (over_sizes_chart(answers, name), bytes_chart(answers, name), *charts)


def _size_text(answer: EcmAnswer) -> str:
    return ", ".join(f"{name}={value}" for name, value in answer.sizes.items())


def varying_size(answers: Sequence[EcmAnswer]) -> str | None:
    """The size that alone differs between the answers; None if several do."""
    names = varying_names([answer.sizes for answer in answers])
    return names[0] if len(names) == 1 else None


def time_names(predictions: Sequence[EcmPrediction]) -> tuple[str, ...]:
    """The names of all times of predictions on one machine; not all of them may call functions."""
    names = [tuple(one.times) for one in predictions]
    return max(names, key=len)


def times_chart(
    answers: Sequence[EcmAnswer], labels: tuple[str, ...] = (), *, follows: str = "", place: int = 0
) -> BarChart:
    """How the times compose to T_ECM: what overlaps stands below each other, what adds up side by side.

    Args:
        labels: of several answers that stand below each other; without, each is the chart at a place of the slider.
    """
    first = answers[0].prediction
    names = (*time_names([answer.prediction for answer in answers]), _TOTAL)
    frames = tuple(tuple(_bars(answer.prediction, names)) for answer in answers)
    if labels:
        pairs = zip(labels, frames, strict=True)
        frames = (tuple(Bar(f"{label}: {bar.name}", bar.segments) for label, bars in pairs for bar in bars),)
    about = (
        f"Bars below each other overlap, times in one bar add up ({first.overlap}). {first.shorthand()} gives "
        f"{first.level_shorthand()}."
    )
    title = f"How the times compose: {first.overlap}"
    return BarChart(title, about, Axis(CYCLES), names, frames, follows=follows, place=place)


def _bars(prediction: EcmPrediction, names: Sequence[str]) -> Iterator[Bar]:
    """A bar for each of the times that overlap, T_out before it, and one for T_ECM."""
    times = {**prediction.times, "T_OL": max(0.0, prediction.core_cycles - prediction.t_out - prediction.t_call)}
    numbers = {name: number for number, name in enumerate(names)}
    expression = parse_overlap(prediction.overlap)
    for term in expression.terms if isinstance(expression, Max) else (expression,):
        parts = [(numbers[name], name, times[name]) for name in _added(term, times)]
        if prediction.t_call and any(name == "T_OL" for _, name, _ in parts):
            parts.append((numbers[CALLS], CALLS, prediction.t_call))
        outside = [(numbers[OUTSIDE], OUTSIDE, prediction.t_out)]
        unknown = ", ".join(name for _, name, _ in parts if name in prediction.unknown)
        which = "" if unknown == str(term) else f"{unknown} "
        label = f"{term} ({which}not known)" if unknown else str(term)
        yield stacked(label, [*outside, *parts], "cy/CL")
    total = len(names) - 1
    interval, cycles = prediction.cycles_interval, prediction.cycles
    found = with_interval(cycles, interval, lambda value: f"{value:.2f} cy/CL")
    tip = f"{_TOTAL}: {'at least ' if prediction.unknown else ''}{found}"
    yield Bar(_TOTAL, (Segment(total, 0.0, cycles, tip),))


def _added(term: Overlap, times: Mapping[str, float]) -> tuple[str, ...]:
    """The names of the times that a term adds up; of those in it that overlap, the longest."""
    match term:
        case Time(name):
            return (name,)
        case Sum(terms):
            return tuple(name for part in terms for name in _added(part, times))
        case Max(terms):
            return _added(max(terms, key=lambda part: evaluate(part, times)), times)


def levels_chart(answers: Sequence[EcmAnswer], *, follows: str = "", place: int = 0) -> BarChart:
    """The prediction if the data came from each level."""

    def bars(prediction: EcmPrediction) -> tuple[Bar, ...]:
        found = []
        for level, cycles in prediction.levels:
            least = "at least " if prediction.is_least(level) else ""
            found.append(Bar(f"data in {level}", (Segment(0, 0.0, cycles, f"{least}{cycles:.2f} cy/CL"),)))
        return tuple(found)

    first = answers[0].prediction
    about = f"The prediction by the level that the data come from: {first.level_shorthand()}."
    frames = tuple(bars(answer.prediction) for answer in answers)
    title = "Prediction by the level that holds the data"
    return BarChart(title, about, Axis(CYCLES), ("prediction",), frames, follows=follows, place=place)


def over_sizes_chart(answers: Sequence[EcmAnswer], name: str, *, follows: str = "") -> LineChart:
    """All times and T_ECM over a size."""
    predictions = [answer.prediction for answer in answers]
    xs = [float(answer.sizes[name]) for answer in answers]
    series = [_total_interval(name, xs, predictions)] if any(one.cycles_interval for one in predictions) else []
    for number, time in enumerate(time_names(predictions)):
        values = [one.times.get(time, 0.0) for one in predictions]
        if any(values):
            series.append(_over(name, time, xs, values, number))
    least = "at least " if any(one.unknown for one in predictions) else ""
    total = _over(name, f"{_TOTAL}{', at least' if least else ''}", xs, [one.cycles for one in predictions], 6)
    about = (
        f"Times in cycles per cache line of work while {name} goes from {xs[0]:g} to {xs[-1]:g}. {_TOTAL} is "
        f"{least}{predictions[0].cycles:.1f} at the first and {least}{predictions[-1].cycles:.1f} at the last."
    )
    return LineChart(
        title=f"Times over {name}",
        about=about,
        x=Axis(name, log=is_wide(xs)),
        y=Axis("cy/CL"),
        series=(*series, total),
        follows=follows,
        places=tuple(xs) if follows else (),
    )


def _over(name: str, what: str, xs: Sequence[float], ys: Sequence[float], colour: int, unit: str = "cy/CL") -> Series:
    tips = tuple(f"{name} = {x:g}\n{what}: {short(y)} {unit}" for x, y in zip(xs, ys, strict=True))
    points = tuple(zip(xs, ys, strict=True))
    return Series(what, points, tips, colour=colour, dashed=what == "T_OL", label=what)


def _total_interval(name: str, xs: Sequence[float], predictions: Sequence[EcmPrediction]) -> Series:
    """Between which values T_ECM lies."""
    ends = [
        (one.cycles, one.cycles) if one.cycles_interval is None else (one.cycles_interval.low, one.cycles_interval.high)
        for one in predictions
    ]
    points = tuple((x, low, high) for x, (low, high) in zip(xs, ends, strict=True))
    tips = tuple(f"{name} = {x:g}\n{_TOTAL}: {low:.2f} to {high:.2f} cy/CL" for x, low, high in points)
    return Series(f"interval of {_TOTAL}", points, tips, "area", _TOTAL_COLOUR)


def bytes_chart(answers: Sequence[EcmAnswer], name: str, *, follows: str = "") -> LineChart:
    """Bytes over each path for each lattice update (of kernels without, each iteration) over a size."""
    first = answers[0].traffic
    of_updates = bool(first.updates_per_iteration)
    unit = "B/LUP" if of_updates else "B/It"
    xs = [float(answer.sizes[name]) for answer in answers]
    series = []
    for number, path in enumerate(first.paths):
        ys = [
            answer.traffic.path(path.path).lines * answer.machine.line_bytes / _work(answer, of_updates=of_updates)
            for answer in answers
        ]
        series.append(_over(name, path.path, xs, ys, number + _TIMES_BEFORE, unit))
    about = f"Bytes over each path of the hierarchy for each {'lattice update' if of_updates else 'iteration'}."
    return LineChart(
        title=f"Traffic over {name} ({unit})",
        about=about,
        x=Axis(name, log=is_wide(xs)),
        y=Axis(unit),
        series=tuple(series),
        follows=follows,
        places=tuple(xs) if follows else (),
    )


def _work(answer: EcmAnswer, *, of_updates: bool) -> float:
    """Lattice updates, or iterations, of a unit of work."""
    traffic = answer.traffic
    return traffic.iterations_per_unit * (traffic.updates_per_iteration or 1.0 if of_updates else 1.0)
