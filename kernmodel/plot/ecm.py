"""Pictures of `kernmodel ecm`: the contributions as stacked bars over the sizes, or performance over cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernmodel.models.outside import OUTSIDE
from kernmodel.plot import style
from kernmodel.plot.caption import answers_caption, draw_caption, on_machine
from kernmodel.plot.scaling import Curve, draw_curve, frame_cores, performance, rate_of, varying_sizes

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
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=style.SMALL, frameon=False, reverse=True)
        return figure


# {{{ over sizes


def _contributions(axes: Axes, answers: Sequence[EcmAnswer]) -> None:
    """The contributions, T_OL, which overlaps with them, as a line, and T_ECM as marks."""
    places = range(len(answers))
    times = [answer.prediction.times for answer in answers]
    if all(stacks(answer.prediction) for answer in answers):
        heights = _stacked(axes, times)
    else:
        heights = _side_by_side(axes, times)
    overlapping = [answer.prediction.core_cycles for answer in answers]
    total = [answer.prediction.cycles for answer in answers]
    axes.plot(places, overlapping, "--", color="#000000", linewidth=1.2, marker="_", label="T_OL + T_out (overlap)")
    axes.plot(places, total, linestyle="", color="#000000", marker="D", markersize=3, label="T_ECM")
    step = max(1, -(-len(answers) // _MOST_TICKS))
    shown = list(places)[::step]
    varying = varying_sizes([answer.sizes for answer in answers])
    axes.set_xticks(shown, [_size_label(answers[at], varying) for at in shown], fontsize=style.SMALL, rotation=45,
                    ha="right", rotation_mode="anchor")  # fmt: skip
    axes.set(xlabel=" × ".join(varying) or "sizes", ylabel="cycles per unit of work (cy/CL)")
    axes.set(xlim=(-0.7, len(answers) - 0.3), ylim=(0, 1.08 * max(*heights, *overlapping, *total, 1e-9)))


def stacks(prediction: EcmPrediction) -> bool:
    """Whether T_ECM is the larger of T_OL with T_out and the sum of the other times, so that a stack of them shows it;
    where transfers overlap it is not."""
    times = prediction.times
    others = sum(cycles for name, cycles in times.items() if name != "T_OL")
    rounding = 1e-6 * max(prediction.cycles, 1e-9)
    # chains of several rows take something off T_OL
    most = max(prediction.t_ol + times.get(OUTSIDE, 0.0), others)
    return others - rounding <= prediction.cycles <= most + rounding


def _stacked(axes: Axes, times: Sequence[Mapping[str, float]]) -> list[float]:
    """T_nOL and the transfer times on one another; the heights that they reach."""
    ends = [0.0 for _ in times]
    for number, name in enumerate(_others(times)):
        values = [one[name] for one in times]
        axes.bar(range(len(times)), values, 0.86, ends, label=name, **_looks(number))
        ends = [end + value for end, value in zip(ends, values, strict=True)]
    return ends


def _side_by_side(axes: Axes, times: Sequence[Mapping[str, float]]) -> list[float]:
    """The same times beside one another, for machines on which they overlap; their heights."""
    names = _others(times)
    wide, heights = 0.86 / len(names), [0.0]
    for number, name in enumerate(names):
        values = [one[name] for one in times]
        places = [place + (number - (len(names) - 1) / 2) * wide for place in range(len(times))]
        axes.bar(places, values, wide, label=f"{name} (overlaps)", **_looks(number))
        heights += values
    return heights


def _others(times: Sequence[Mapping[str, float]]) -> list[str]:
    return [name for name in times[0] if name != "T_OL"]


def _looks(number: int) -> dict[str, Any]:
    kind = number % len(style.LEVELS)
    return {"color": style.LEVELS[kind], "hatch": style.HATCHES[kind], "edgecolor": "white", "linewidth": 0.3}


def _size_label(answer: EcmAnswer, names: Sequence[str]) -> str:
    return " × ".join(str(answer.sizes[name]) for name in names)


# }}}
# {{{ over cores


def _scaling(axes: Axes, answers: Sequence[EcmAnswer], unit: str) -> None:
    """One line for each point of sizes, and where the first domain saturates by the recursive rule."""
    rate = rate_of(unit, answers[0])
    varying = varying_sizes([answer.sizes for answer in answers])
    for number, answer in enumerate(answers):
        cores = tuple(point.cores for point in answer.scaling)
        values = tuple(performance(point.cycles, rate, answer) for point in answer.scaling)
        label = ", ".join(f"{name}={answer.sizes[name]}" for name in varying) if len(answers) > 1 else "prediction"
        saturated = next((point for point in answer.scaling if point.saturated), None)
        saturation = saturated.cores if saturated is not None and saturated.domains == 1 else None
        draw_curve(axes, Curve(label, cores, values, number, saturation))
    domain, most = answers[0].machine.topology.cores_per_numa_domain, max(point.cores for point in answers[0].scaling)
    frame_cores(axes, domain, most, rate)


# }}}
