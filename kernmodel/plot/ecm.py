"""Pictures of `kernmodel ecm`: the contributions as stacked bars over the sizes, or performance over cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.plot import style
from kernmodel.units import convert_cycles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.studies.request import EcmAnswer

_MOST_TICKS = 16
_SCALES = {"cy/CL": 1.0, "cy/It": 1.0, "s": 1.0}
"""Divisors of the units that have no prefix on an axis; rates are shown in G."""


def ecm_figure(answers: Sequence[EcmAnswer], unit: str) -> Figure:
    """Performance over cores where the answers were scaled, else the contributions to T_ECM at each point."""
    with style.settings():
        figure = style.new_figure(8.0, 4.4)
        axes = figure.add_axes((0.09, 0.16, 0.66, 0.74))
        if answers[0].scaling:
            _scaling(axes, answers, unit)
        else:
            _contributions(axes, answers)
        machine = answers[0].machine
        style.title(axes, f"{answers[0].nest.name} on {machine.title}")
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), fontsize=style.SMALL, frameon=False, reverse=True)
        return figure


# {{{ over sizes


def _contributions(axes: Axes, answers: Sequence[EcmAnswer]) -> None:
    """T_nOL and the transfer times stacked; T_OL, which overlaps with them, as a line, and T_ECM as a line."""
    places = range(len(answers))
    bottoms = [0.0 for _ in answers]
    names = [name for name in answers[0].prediction.times if name != "T_OL"]
    for number, name in enumerate(names):
        values = [answer.prediction.times[name] for answer in answers]
        kind = number % len(style.LEVELS)
        axes.bar(places, values, 0.86, bottoms, color=style.LEVELS[kind], hatch=style.HATCHES[kind], edgecolor="white",
                 linewidth=0.3, label=name)  # fmt: skip
        bottoms = [bottom + value for bottom, value in zip(bottoms, values, strict=True)]
    overlapping = [answer.prediction.t_ol for answer in answers]
    total = [answer.prediction.cycles for answer in answers]
    axes.plot(places, overlapping, "--", color="#000000", linewidth=1.2, marker="_", label="T_OL (overlaps)")
    axes.plot(places, total, linestyle="", color="#000000", marker="D", markersize=3, label="T_ECM")
    step = max(1, -(-len(answers) // _MOST_TICKS))
    shown = list(places)[::step]
    varying = _varying(answers)
    axes.set_xticks(shown, [_size_label(answers[at], varying) for at in shown], fontsize=style.SMALL, rotation=45,
                    ha="right", rotation_mode="anchor")  # fmt: skip
    axes.set(xlabel=" × ".join(varying) or "sizes", ylabel="cycles per unit of work (cy/CL)")
    axes.set(xlim=(-0.7, len(answers) - 0.3), ylim=(0, 1.08 * max(*bottoms, *overlapping, *total, 1e-9)))


def _varying(answers: Sequence[EcmAnswer]) -> list[str]:
    """The sizes in which the points differ; all of a single point."""
    names = list(answers[0].sizes)
    found = [name for name in names if len({answer.sizes.get(name) for answer in answers}) > 1]
    return found or names


def _size_label(answer: EcmAnswer, names: Sequence[str]) -> str:
    return " × ".join(str(answer.sizes[name]) for name in names)


# }}}
# {{{ over cores


def _scaling(axes: Axes, answers: Sequence[EcmAnswer], unit: str) -> None:
    """One line for each point of sizes, and where the first domain saturates by the recursive rule."""
    from matplotlib.ticker import MaxNLocator

    rate = unit if unit not in _SCALES else _rate_unit(answers[0])
    varying = _varying(answers)
    for number, answer in enumerate(answers):
        work = answer.prediction.work
        cores = [point.cores for point in answer.scaling]
        values = [convert_cycles(point.cycles, rate, work) / 1e9 if point.cycles else 0.0 for point in answer.scaling]
        label = ", ".join(f"{name}={answer.sizes[name]}" for name in varying) if len(answers) > 1 else "prediction"
        shade = style.colour(number)
        axes.plot(cores, values, "-", color=shade, marker=style.marker(number), markersize=4, label=label)
        saturated = next((k for k, point in enumerate(answer.scaling) if point.saturated), None)
        if saturated is not None and answer.scaling[saturated].domains == 1:
            axes.axvline(cores[saturated], linestyle=":", color=shade, linewidth=1.0)
            axes.plot(
                [cores[saturated]], [values[saturated]], "o", color=shade, markersize=10, fillstyle="none",
                label=f"saturation, {cores[saturated]} core{'s' if cores[saturated] > 1 else ''}",
            )  # fmt: skip
    domain, most = answers[0].machine.topology.cores_per_numa_domain, max(point.cores for point in answers[0].scaling)
    for edge in range(domain, most, domain):
        axes.axvline(edge + 0.5, color="#bbbbbb", linewidth=0.8)
    flops = "; an FMA counts 2" if rate == "FLOP/s" else ""
    axes.set(xlabel="cores (ccNUMA domains filled one after the other)", ylabel=f"performance (G{rate}{flops})")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _rate_unit(answer: EcmAnswer) -> str:
    """The rate that shows performance where the user asked for a time."""
    work = answer.prediction.work
    if work.flops_per_iteration:
        return "FLOP/s"
    return "It/s"


# }}}
