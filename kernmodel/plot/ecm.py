"""Pictures of `kernmodel ecm`: the contributions as stacked bars over the sizes, or performance over cores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel.models.calls import IN_CORE
from kernmodel.models.ecm import AT_LEAST, UNKNOWN
from kernmodel.models.outside import OUTSIDE
from kernmodel.plot import style
from kernmodel.plot.caption import answers_caption, draw_caption, on_machine
from kernmodel.plot.scaling import (
    Curve,
    curve_of,
    curves_text,
    draw_curve,
    frame_cores,
    size_labels,
)
from kernmodel.plot.terminal_lines import TextBar, TextLine, bars_text, lines_text
from kernmodel.studies.scaling import rate_in
from kernmodel.studies.sweep.values import is_wide, varying_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.models.ecm import EcmPrediction
    from kernmodel.studies.predict.request import EcmAnswer

_MOST_TICKS = 16


def ecm_figure(answers: Sequence[EcmAnswer], unit: str) -> Figure:
    """Performance over cores where the answers were scaled, else the contributions to T_ECM at each point."""
    with style.settings():
        figure = style.new_figure(8.0, 4.4)
        axes = figure.add_axes((0.09, 0.16, 0.66, 0.74))
        if answers[0].scaling:
            _scaling(axes, answers, unit)
        else:
            _contributions(axes, answers)
        caption = on_machine(answers[0].nest.name, answers[0].machine)
        draw_caption(figure, answers_caption(caption, answers))
        style.legend_beside(axes, reverse=True)
        return figure


def _contributions(axes: Axes, answers: Sequence[EcmAnswer]) -> None:
    """The contributions, T_OL, which overlaps with them, as a line, and T_ECM as marks."""
    places = range(len(answers))
    times = [shown_times(answer.prediction) for answer in answers]
    if all(stacks(answer.prediction) for answer in answers):
        heights = _stacked(axes, times)
    else:
        heights = _side_by_side(axes, times)
    overlapping = [answer.prediction.core_cycles for answer in answers]
    core = style.core_label(called=any(answer.prediction.t_call for answer in answers))
    total = [answer.prediction.cycles for answer in answers]
    axes.plot(places, overlapping, "--", color="#000000", linewidth=1.2, marker="_", label=f"{core} (overlap)")
    unknown = tuple(dict.fromkeys(name for answer in answers for name in answer.prediction.unknown))
    # an arrow upwards: T_ECM is there or above
    mark, label = ("^", f"T_ECM, at least:\n{', '.join(unknown)}\nnot known") if unknown else ("D", "T_ECM")
    axes.plot(places, total, linestyle="", color="#000000", marker=mark, markersize=3, label=label)
    step = max(1, -(-len(answers) // _MOST_TICKS))
    shown = list(places)[::step]
    varying = varying_names([answer.sizes for answer in answers]) or list(answers[0].sizes)
    axes.set_xticks(shown, [_size_label(answers[at], varying) for at in shown], fontsize=style.SMALL, rotation=45,
                    ha="right", rotation_mode="anchor")  # fmt: skip
    axes.set(xlabel=" × ".join(varying) or "sizes", ylabel="cycles per unit of work (cy/CL)")
    axes.set(xlim=(-0.7, len(answers) - 0.3), ylim=(0, 1.08 * max(*heights, *overlapping, *total, 1e-9)))


def stacks(prediction: EcmPrediction) -> bool:
    """Whether T_ECM is the larger of the in-core times with T_out and a sum of the others, so that a stack of them
    shows it; where transfers overlap it is not."""
    return _added(prediction) is not None


def shown_times(prediction: EcmPrediction) -> dict[str, float]:
    """The times that a stack consists of; without one, all but T_OL and T_call. T_nOL is none of a stack where it
    overlaps."""
    return _added(prediction) or {name: cycles for name, cycles in prediction.times.items() if name not in IN_CORE}


def _added(prediction: EcmPrediction) -> dict[str, float] | None:
    times = prediction.times
    rounding = 1e-6 * max(prediction.cycles, 1e-9)
    # chains of several rows take something off T_OL
    most = max(times["T_OL"] + prediction.t_call, times["T_nOL"]) + times.get(OUTSIDE, 0.0)
    for left_out in (IN_CORE, (*IN_CORE, "T_nOL")):
        added = {name: cycles for name, cycles in times.items() if name not in left_out}
        others = sum(added.values())
        if others - rounding <= prediction.cycles <= max(most, others) + rounding:
            return added
    return None


def _stacked(axes: Axes, times: Sequence[Mapping[str, float]]) -> list[float]:
    """T_nOL and the transfer times on one another; the heights that they reach."""
    ends = [0.0 for _ in times]
    for number, name in enumerate(_names(times)):
        values = [one.get(name, 0.0) for one in times]
        axes.bar(range(len(times)), values, 0.86, ends, label=name, linewidth=0.3, **style.part(number))
        ends = [end + value for end, value in zip(ends, values, strict=True)]
    return ends


def _side_by_side(axes: Axes, times: Sequence[Mapping[str, float]]) -> list[float]:
    """The same times beside one another, for machines on which they overlap; their heights."""
    names = _names(times)
    wide, heights = 0.86 / len(names), [0.0]
    for number, name in enumerate(names):
        values = [one.get(name, 0.0) for one in times]
        places = [place + (number - (len(names) - 1) / 2) * wide for place in range(len(times))]
        axes.bar(places, values, wide, label=f"{name} (overlaps)", linewidth=0.3, **style.part(number))
        heights += values
    return heights


def _names(times: Sequence[Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for one in times for name in one))


def _size_label(answer: EcmAnswer, names: Sequence[str]) -> str:
    return " × ".join(str(answer.sizes[name]) for name in names)


def _scaling(axes: Axes, answers: Sequence[EcmAnswer], unit: str) -> None:
    """One line for each point of sizes, and where the first domain saturates by the recursive rule."""
    rate = rate_in(unit, answers[0].prediction.work)
    for curve in _curves(answers, rate):
        draw_curve(axes, curve)
    domain, most = answers[0].machine.topology.cores_per_numa_domain, max(point.cores for point in answers[0].scaling)
    frame_cores(axes, domain, most, rate)


def _curves(answers: Sequence[EcmAnswer], rate: str) -> Iterator[Curve]:
    for number, (answer, label) in enumerate(zip(answers, size_labels(answers, "prediction"), strict=True)):
        saturated = next((point for point in answer.scaling if point.saturated), None)
        saturation = saturated.cores if saturated is not None and saturated.domains == 1 else None
        yield curve_of(answer, answer.scaling, rate, number, label, saturation)


def ecm_text(answers: Sequence[EcmAnswer], unit: str, width: int = 80, ascii_only: bool = False) -> str:
    """Performance over cores where the answers were scaled; else the times, over the sizes where these vary."""
    first = answers[0]
    if first.scaling:
        rate = rate_in(unit, first.prediction.work)
        return curves_text(_curves(answers, rate), first, rate, width, ascii_only)
    title = f"{first.nest.name} on {first.machine.name}: cycles per unit of work (cy/CL), {first.prediction.overlap}"
    if len(answers) == 1:
        return bars_text(_bars(first), title, width, ascii_only, origin=0.0)
    return _over_sizes(answers, title, width, ascii_only)


def _bars(answer: EcmAnswer) -> list[TextBar]:
    prediction = answer.prediction
    values = {name: f"{cycles:.1f}" for name, cycles in prediction.times.items()}
    values |= dict.fromkeys(prediction.unknown, UNKNOWN)
    values["T_ECM"] = f"{AT_LEAST * prediction.is_lower_bound}{prediction.cycles:.1f}"
    times = {**prediction.times, "T_ECM": prediction.cycles}
    return [TextBar(name, 0.0, cycles, values[name]) for name, cycles in times.items()]


def _over_sizes(answers: Sequence[EcmAnswer], title: str, width: int, ascii_only: bool) -> str:
    """A line for each time; over the number of the point where several sizes vary at once."""
    names = varying_names([answer.sizes for answer in answers]) or list(answers[0].sizes)
    alone = len(names) == 1
    xs = [float(answer.sizes[names[0]]) if alone else float(at) for at, answer in enumerate(answers, 1)]
    order = sorted(range(len(xs)), key=xs.__getitem__)
    unknown = {name for answer in answers for name in answer.prediction.unknown}
    shown = [name for name in answers[0].prediction.times if name not in unknown]
    series = {name: [answers[at].prediction.times[name] for at in order] for name in shown}
    total = f"T_ECM, at least: {', '.join(sorted(unknown))} not known" if unknown else "T_ECM"
    series[total] = [answers[at].prediction.cycles for at in order]
    places = tuple(xs[at] for at in order)
    lines = [TextLine(name, places, tuple(values)) for name, values in series.items()]
    label = names[0] if alone else f"number of the point ({', '.join(names)} vary)"
    return lines_text(lines, title, width, ascii_only, x_label=label, log_x=alone and is_wide(places))
