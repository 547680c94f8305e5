"""Pictures of `kernmodel compare`: times of one core, and performance of core and ccNUMA domain, by machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernmodel.plot import style
from kernmodel.plot.caption import answers_caption, draw_caption
from kernmodel.plot.ecm import shown_times, stacks
from kernmodel.plot.scaling import performance
from kernmodel.plot.terminal_lines import TextBar, bars_text
from kernmodel.studies.scaling import rate_in
from kernmodel.value_types import dataclass
from kernmodel.words import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.models.ecm import ScalingPoint
    from kernmodel.studies.compare import CompareAnswer
    from kernmodel.studies.predict.request import EcmAnswer

_WIDTH, _ROW, _EDGE = 9.0, 0.42, 1.05
"""Inches: of the picture, of a machine, and around the machines of a kernel."""
_ACROSS = 4
"""Entries of a legend side by side, at most: more would reach over the next panel."""
_BARS = (("one core", style.COLOURS[5], ""), ("ccNUMA domain", style.COLOURS[0], "///"))
_HALF = 0.38


@dataclass(frozen=True, slots=True)
class Compared:
    """One kernel on one machine: performance of a core and of a domain in 10⁹ of the rate, and the most that the latter
    may be."""

    machine: str
    answer: EcmAnswer
    core: float
    domain: float
    most: float

    @property
    def domain_text(self) -> str:
        """Performance of a domain, with what it is at most."""
        return f"{self.domain:.3g}" + (f" to {self.most:.3g}" if self.most > self.domain else "")


def compared(answer: CompareAnswer, unit: str | None) -> dict[str, tuple[str, list[Compared]]]:
    """By kernel the rate, and what is to draw of the machines that have a prediction."""
    found: dict[str, tuple[str, list[Compared]]] = {}
    for result in answer.results:
        if result.answer is not None and result.domain is not None:
            rate, rows = found.setdefault(result.kernel, (rate_in(unit, result.answer.prediction.work), []))
            rows.append(_compared(result.machine, result.answer, result.domain, rate))
    return found


def _compared(machine: str, answer: EcmAnswer, domain: ScalingPoint, rate: str) -> Compared:
    core, most = performance(answer.prediction.cycles, rate, answer), performance(domain.least_cycles, rate, answer)
    return Compared(machine, answer, core, performance(domain.cycles, rate, answer), most)


def compare_figure(answer: CompareAnswer, unit: str | None) -> Figure:
    """For each kernel a row: what one core's time is made of, in ns, and how fast a core and a full domain are."""
    with style.settings():
        kernels = list(compared(answer, unit).values())
        heights = [_ROW * len(rows) + _EDGE for _, rows in kernels]
        figure = style.new_figure(_WIDTH, sum(heights) + 0.3)
        top = sum(heights)
        for (rate, rows), height in zip(kernels, heights, strict=True):
            bottom = (top - height + 0.45) / (sum(heights) + 0.3)
            tall = (height - _EDGE + 0.1) / (sum(heights) + 0.3)
            left = figure.add_axes((0.12, bottom, 0.40, tall))
            right = figure.add_axes((0.56, bottom, 0.39, tall))
            _times(left, rows)
            _performance(right, rows, rate)
            style.title(left, f"{rows[0].answer.nest.name}: one core")
            style.title(right, "one core and a full domain")
            top -= height
        for axes in figure.axes[:2]:
            _legend(figure, axes)
        answers = [row.answer for _, rows in kernels for row in rows]
        machines = {one.machine.name for one in answers}
        title = ", ".join(dict.fromkeys(one.nest.name for one in answers))
        where = answers[0].machine.title if len(machines) == 1 else f"{len(machines)} machines"
        draw_caption(figure, answers_caption(f"{title} on {where}", answers), above=0.72)
        return figure


def _legend(figure: Figure, axes: Axes) -> None:
    """Above the first row, over its panel."""
    box = axes.get_position()
    height = float(figure.get_size_inches()[1])
    place = (box.x0, box.y1 + 0.25 / height)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=place,
        ncol=min(len(labels), _ACROSS),
        fontsize=style.TINY,
        frameon=False,
        handlelength=1.2,
        columnspacing=0.8,
        handletextpad=0.4,
        borderaxespad=0.0,
    )


def _times(axes: Axes, rows: Sequence[Compared]) -> None:
    """T_nOL and the transfers, stacked where they add up and one below the other where they overlap; T_OL and T_ECM as
    marks, in ns per iteration."""
    shown = [shown_times(row.answer.prediction) for row in rows]
    names = list(dict.fromkeys(name for times in shown for name in times))
    ends, stacked = [0.0] * len(rows), [stacks(row.answer.prediction) for row in rows]
    thin = 2 * _HALF / len(names)
    for number, name in enumerate(names):
        values = [_ns(row, times.get(name, 0.0)) for row, times in zip(rows, shown, strict=True)]
        places = [at if adds else at - _HALF + (number + 0.5) * thin for at, adds in enumerate(stacked)]
        heights = [2 * _HALF if adds else thin for adds in stacked]
        starts = [end if adds else 0.0 for end, adds in zip(ends, stacked, strict=True)]
        axes.barh(places, values, heights, starts, linewidth=0.3, label=name, **style.part(number))
        ends = [start + value if adds else max(end, value)
                for start, end, value, adds in zip(starts, ends, values, stacked, strict=True)]  # fmt: skip
    overlapping = [_ns(row, row.answer.prediction.core_cycles) for row in rows]
    core = style.core_label(called=any(row.answer.prediction.t_call for row in rows))
    total = [_ns(row, row.answer.prediction.cycles) for row in rows]
    lows, highs = ([at + side for at in range(len(rows))] for side in (-_HALF, _HALF))
    axes.vlines(overlapping, lows, highs, colors="black", linestyles="--", linewidth=1.2, label=core)
    axes.plot(total, range(len(rows)), linestyle="", color="black", marker="D", markersize=4, label="T_ECM")
    _machines(axes, [row.machine for row in rows])
    axes.set_xlim(0, 1.05 * max(*ends, *overlapping, *total, 1e-9))
    axes.set_xlabel("time (ns per iteration)")


def _ns(row: Compared, cycles: float) -> float:
    work = row.answer.prediction.work
    return 1e9 * cycles / work.iterations_per_unit / work.clock_hz


def _performance(axes: Axes, rows: Sequence[Compared], rate: str) -> None:
    """Two bars a machine, with their numbers behind them."""
    bar = _HALF
    for side, (label, shade, hatch) in enumerate(_BARS):
        places = [at + (side - 0.5) * bar for at in range(len(rows))]
        values = [row.domain if side else row.core for row in rows]
        axes.barh(places, values, bar, color=shade, hatch=hatch, edgecolor="white", linewidth=0.3, label=label)
        for place, value, row in zip(places, values, rows, strict=True):
            text, end = f" {value:.3g}", value
            if side:
                cores = count(row.answer.machine.topology.cores_per_numa_domain, "core")
                text, end = f" {row.domain_text} ({cores})", row.most
                if end > value:
                    axes.hlines([place], value, end, colors="black", linewidth=1.4, label="interval")
            axes.text(end, place, text, va="center", fontsize=style.TINY)
    _machines(axes, [""] * len(rows))
    axes.set_xlim(0, 1.3 * max((value for row in rows for value in (row.core, row.most)), default=1.0) or 1.0)
    axes.set_xlabel(f"performance (G{rate}{'; an FMA counts 2' if rate == 'FLOP/s' else ''})")


def _machines(axes: Axes, names: Sequence[str]) -> None:
    """One row for each machine, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def compare_text(answer: CompareAnswer, unit: str | None, width: int = 80, ascii_only: bool = False) -> str:
    """For each kernel the performance of one core and of a full ccNUMA domain, a bar for each machine."""
    core, domain = ("-", "#") if ascii_only else ("░", "█")
    drawings = []
    for rate, rows in compared(answer, unit).values():
        name = rows[0].answer.nest.name
        title = f"{name}: performance (G{rate}), one core ({core}) and a full ccNUMA domain ({domain})"
        drawings.append(bars_text([_bar(row) for row in rows], title, width, ascii_only, origin=0.0))
    return "\n".join(drawings)


def _bar(row: Compared) -> TextBar:
    return TextBar(row.machine, row.core, row.domain, f"{row.core:.3g}, {row.domain_text}")
