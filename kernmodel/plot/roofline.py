"""The roofline chart: log-log, roofs with their values on the line, ridge points, kernels as points.

One set of axes for each model. Roofs of several kernels that differ (their own mixes, their own ratios of loads) are
drawn at their highest and name the kernels that they belong to; the bound of each kernel stands as a short bar at its
intensity. Measured roofs are solid lines, derived ones dashed. A prediction above its own roof has a ring around it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from kernmodel.plot import style
from kernmodel.plot.caption import Caption, caption_of, draw_caption, on_machine
from kernmodel.plot.placement import Board, Place, text_width
from kernmodel.studies.predict.arranged import UNARRANGED, Arrangement, AxisLimits, step_ends
from kernmodel.units import format_si
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from kernmodel.machine.model import Machine
    from kernmodel.models.chart import ComputeRoof, LevelShare, MeasuredMark, MemoryRoof, Point, Roofline
    from kernmodel.studies.predict.arranged import Step
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer, Subject

TITLES = {
    "orm": "Original roofline",
    "hierarchical": "Hierarchical roofline",
    "carm": "Cache-aware roofline (CARM)",
    "irm": "Integrated roofline (IRM)",
    "adcarm": "Application-driven CARM (adCARM)",
}
"""Above the axes."""
_X_LABELS = {
    "orm": "arithmetic intensity (FLOP per byte at memory)",
    "hierarchical": "arithmetic intensity (FLOP per byte between levels; L1: per core-side byte)",
    "irm": "arithmetic intensity (FLOP per byte between levels; L1: per core-side byte)",
    "carm": "arithmetic intensity (FLOP per core-side byte of loads and stores)",
    "adcarm": "arithmetic intensity (FLOP per core-side byte of loads and stores)",
}
_OWN_STYLES = {"in-core": "-.", "dependency": ":"}
_DERIVED_STYLE = (0, (9, 2))
_OWN_COLOUR, _OVER_COLOUR = "#a0410d", "#c00000"
GIGA = 1e9
_MOST_ROOFS = 10
"""Compute roofs that a chart has room for; the lowest are left out."""
_MOST_NAMED = 2
"""Kernels that the label of a roof names; of more, their number."""
_LABEL_SHARE = 0.45
"""The most of the width of a chart that a label of a roof is to take."""
_LEFT, _RIGHT, _BOTTOM, _TOP, _GAP = 0.75, 0.2, 0.6, 0.38, 0.85
_WIDTH, _HEIGHT, _BARS = 6.2, 4.2, 2.1
"""Inches."""
_MOST_LABELLED = 4
"""Kernels whose levels are named beside their points."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What one set of axes shows: names and charts of the kernels, all of one model, and how they stand together."""

    names: tuple[str, ...]
    charts: tuple[Roofline, ...]
    arrangement: Arrangement = UNARRANGED

    @property
    def memory_roofs(self) -> tuple[MemoryRoof, ...]:
        """Of each level the highest, highest first."""
        found: dict[str, MemoryRoof] = {}
        for roof in (roof for chart in self.charts for roof in chart.memory_roofs):
            if roof.level not in found or roof.bytes_per_second > found[roof.level].bytes_per_second:
                found[roof.level] = roof
        return tuple(sorted(found.values(), key=lambda roof: -roof.bytes_per_second))

    @property
    def compute_roofs(self) -> tuple[ComputeRoof, ...]:
        """Of each name the highest, highest first; of a single kernel also those of its own code that are not above all
        others."""
        roofs = sorted((roof for chart in self.charts for roof in chart.compute_roofs), key=lambda r: r.flop_per_second)
        found = {roof.name: roof for roof in roofs if roof.role in ("peak", "scaled")}
        highest = max((roof.flop_per_second for roof in found.values()), default=math.inf)
        own = [roof for roof in roofs if roof.role in ("in-core", "dependency")] if len(self.charts) == 1 else []
        shown = [*found.values(), *(roof for roof in own if roof.flop_per_second <= highest)]
        return tuple(sorted(shown, key=lambda roof: -roof.flop_per_second)[:_MOST_ROOFS])

    @property
    def roofs_differ(self) -> bool:
        """Whether the kernels have memory roofs or peaks of their own."""
        memory = {tuple((r.level, r.bytes_per_second) for r in one.memory_roofs) for one in self.charts}
        peaks = {
            frozenset((r.name, r.flop_per_second) for r in one.compute_roofs if r.role in ("peak", "scaled"))
            for one in self.charts
        }
        return len(memory) > 1 or len(peaks) > 1

    @property
    def points(self) -> tuple[tuple[int, Point], ...]:
        """Number of the kernel and point, of those that have a place on the axes."""
        return tuple(
            (number, point)
            for number, chart in enumerate(self.charts)
            for point in chart.points
            if point.intensity and point.flop_per_second > 0
        )

    def owners(self, roof: MemoryRoof | ComputeRoof) -> tuple[int, ...]:
        """Numbers of the kernels that have this very roof."""
        return tuple(
            number
            for number, one in enumerate(self.charts)
            if any(_mark(other) == _mark(roof) for other in _roofs(one))
        )

    @property
    def regions(self) -> dict[float, tuple[int, ...]]:
        """The intensities at which memory regions end, and the numbers of the kernels whose regions do."""
        found: dict[float, tuple[int, ...]] = {}
        for number, one in enumerate(self.charts):
            if one.memory_until is not None:
                found[one.memory_until] = (*found.get(one.memory_until, ()), number)
        return dict(sorted(found.items()))

    def named(self, numbers: Sequence[int], most: int = _MOST_NAMED) -> str:
        """Kernels in a label, the first of many; empty for all of them."""
        if len(numbers) == len(self.charts):
            return ""
        return _some([self.names[number] for number in numbers], most)

    @property
    def compute_labels(self) -> tuple[tuple[float, str, bool], ...]:
        """Height in FLOP/s and text of the labels of compute roofs, those of one height together, and whether they are
        of the kernel's own code."""
        found = []
        for roofs in _alike(self.compute_roofs):
            owners = tuple(dict.fromkeys(number for roof in roofs for number in self.owners(roof)))
            value = roofs[0].flop_per_second
            for most_roofs, most_owners in ((len(roofs), _MOST_NAMED), (2, 1), (1, 1)):
                names = _some([roof.name for roof in roofs], most_roofs)
                kernels = self.named(owners, most_owners)
                text = f"{names} {format_si(value, 'FLOP/s')}" + (f" ({kernels})" if kernels else "")
                if text_width(text, style.TINY) <= _LABEL_SHARE * _WIDTH:
                    break
            found.append((value, text, all(roof.role in ("in-core", "dependency") for roof in roofs)))
        return tuple(found)

    def share(self, number: int) -> float | None:
        """Of the time that all kernels take, that of one; None where it was not asked for."""
        shares = self.arrangement.time_shares
        return shares[number] if shares else None

    def share_text(self, number: int) -> str:
        """ ", 37 % of the time", empty where it was not asked for."""
        share = self.share(number)
        return "" if share is None else f", {100 * share:.3g} % of the time"

    def colour(self, number: int) -> str:
        """Of a kernel: its own, or that of its share of the time."""
        share = self.share(number)
        return style.colour(number) if share is None else style.heat(share / max(self.arrangement.time_shares))

    @property
    def joined(self) -> tuple[tuple[Point, Point, Step], ...]:
        """The points that steps from version to version join."""
        found = []
        for number, step in enumerate(self.arrangement.steps):
            ends = step_ends(self.charts[number], self.charts[number + 1])
            if ends is not None:
                found.append((*ends, step))
        return tuple(found)

    def without_place(self) -> tuple[tuple[int, str], ...]:
        """Number of each kernel that has no point, and why."""
        placed = {number for number, _ in self.points}
        return tuple((number, _why(chart)) for number, chart in enumerate(self.charts) if number not in placed)


def _some(names: Sequence[str], most: int) -> str:
    """The first names, and how many there are beside them."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _roofs(chart: Roofline) -> list[MemoryRoof | ComputeRoof]:
    return [*chart.memory_roofs, *chart.compute_roofs]


def _mark(roof: MemoryRoof | ComputeRoof) -> tuple[str, float]:
    """What roofs of several kernels have in common if they are the same; no level is called as an instruction class."""
    from kernmodel.models.chart import MemoryRoof

    if isinstance(roof, MemoryRoof):
        return roof.level, roof.bytes_per_second
    return roof.name, roof.flop_per_second


def _why(chart: Roofline) -> str:
    if chart.bound is None:
        return "AI not known: roofs alone"
    if chart.bound:
        return f"AI = ∞ (moves no data), {format_si(chart.points[0].flop_per_second, 'FLOP/s')}"
    return f"AI = 0 (no FLOP): bandwidth only, at most {format_si(chart.iterations_per_second, 'It/s')}"


# {{{ figures


def charts_of(answer: RooflineAnswer) -> list[Chart]:
    """One chart for each model."""
    names = tuple(kernel.subject.name for kernel in answer.kernels)
    return [
        Chart(names, tuple(kernel.rooflines[number] for kernel in answer.kernels), answer.arrangement)
        for number in range(len(answer.models))
    ]


def carm_charts_of(answer: CarmAnswer) -> list[Chart]:
    """The cache-aware chart and the application-driven one, on the same axes."""
    findings, together = answer.findings, Arrangement(axes="same")
    return [Chart((answer.subject.name,), (one,), together) for one in (findings.beside, findings.roofline)]


def roofline_figure(answer: RooflineAnswer) -> Figure:
    """One chart for each model, with memory share and impact beside cache-aware ones of few kernels."""
    charts = charts_of(answer)
    names = charts[0].names
    shares = [(kernel.subject.name, kernel.shares) for kernel in answer.kernels if kernel.shares]
    wanted = bool({"carm", "adcarm"} & set(answer.models)) and 0 < len(shares) <= _MOST_BARS
    subjects = [kernel.subject for kernel in answer.kernels]
    title = on_machine(", ".join(names), answer.machine, answer.cores)
    return figure_of(charts, shares if wanted else [], subjects_caption(title, subjects, answer.machine))


def carm_figure(answer: CarmAnswer) -> Figure:
    """The cache-aware chart and the application-driven one on the same axes, beside them memory share and impact."""
    name, shares = answer.subject.name, answer.findings.shares
    caption = subjects_caption(on_machine(name, answer.machine, answer.cores), [answer.subject], answer.machine)
    return figure_of(carm_charts_of(answer), [(name, shares)] if shares else [], caption)


def subjects_caption(title: str, subjects: Sequence[Subject], machine: Machine) -> Caption:
    """The caption of charts of these kernels."""
    kernels = [(one.name, [one.sizes] if one.sizes else []) for one in subjects]
    return caption_of(title, kernels, [one.origin for one in subjects], [machine])


_MOST_BARS = 8
_LEGEND_ROW = 0.16
"""Inches."""
_MOST_BESIDE = 3
"""Kernels whose memory shares stand beside the charts; those of more take a row of their own below."""


def figure_of(charts: Sequence[Chart], shares: Sequence[tuple[str, Sequence[LevelShare]]], caption: Caption) -> Figure:
    """Charts in rows, the panel of memory share and impact at the end of the last one, or below where it is wide."""
    with style.settings():
        across = min(len(charts), 3 if len(charts) > 4 else 2)
        down = math.ceil(len(charts) / across)
        panel = max(_BARS, 0.35 + 0.85 * len(shares)) if shares else 0.0
        below = len(shares) > _MOST_BESIDE
        spare = bool(shares) and not below and len(charts) % across
        beside = panel + _GAP if shares and not spare and not below else 0.0
        told = max(charts, key=lambda chart: len(_placed(chart)))
        legend = _legend_height(told, across)
        cell = _BOTTOM + _HEIGHT + _TOP
        width = _LEFT + across * _WIDTH + (across - 1) * _GAP + beside + _RIGHT
        height = (down + below) * cell + legend
        figure = style.new_figure(width, height)
        limits = limits_of_each(charts)
        for number, chart in enumerate(charts):
            row, column = divmod(number, across)
            corner = (_LEFT + column * (_WIDTH + _GAP), height - (row + 1) * cell + _BOTTOM)
            draw_chart(_axes(figure, (*corner, _WIDTH, _HEIGHT)), chart, limits[number])
        if shares:
            column = 0 if below else len(charts) % across if spare else across
            corner = (_LEFT + column * (_WIDTH + _GAP), height - (down + below) * cell + _BOTTOM)
            wide = max(_WIDTH, min(panel, width - _LEFT - _RIGHT)) if below else panel
            draw_shares(_axes(figure, (*corner, wide, _HEIGHT)), shares)
        draw_caption(figure, caption, left=_LEFT, above=0.35)
        if legend:
            _legend(figure, told, across)
        return figure


def _axes(figure: Figure, inches: tuple[float, float, float, float]) -> Axes:
    width, height = figure.get_size_inches()
    left, bottom, wide, high = inches
    return figure.add_axes((left / width, bottom / height, wide / width, high / height))


def _legend_columns(chart: Chart, across: int) -> int:
    longest = max((text_width(name, style.SMALL) for name in _legend_names(chart).values()), default=1.0) + 0.5
    return max(1, min(len(_placed(chart)), int((across * _WIDTH + (across - 1) * _GAP) / longest)))


def _placed(chart: Chart) -> list[int]:
    """Numbers of the kernels that have a point."""
    return sorted({number for number, _ in chart.points})


def _legend_names(chart: Chart) -> dict[int, str]:
    """Of the kernels that have a point, by number."""
    return {number: chart.names[number] + chart.share_text(number) for number in _placed(chart)}


def _legend_height(chart: Chart, across: int) -> float:
    rows = math.ceil(len(_placed(chart)) / _legend_columns(chart, across))
    return (rows + len(_meanings(chart)) + len(chart.without_place())) * _LEGEND_ROW + 0.15


def _meanings(chart: Chart) -> list[str]:
    """What the signs of a chart mean, as far as it has them."""
    points = [point for _, point in chart.points]
    roofs = [roof.basis for one in chart.charts for roof in _roofs(one)]
    derived = "dashed roofs: derived from ports and widths; solid ones: measured"
    found = [
        ("point: predicted; bar above it: bound of the model", any(point.predicted for point in points)),
        ("point: bound of the model, nothing is predicted", any(not point.predicted for point in points)),
        ("cross: measured", any(one.measured for one in chart.charts)),
        ("size and colour of a point: share of the time", bool(chart.arrangement.time_shares)),
        ("arrow: from a version to the next, with what the performance becomes", bool(chart.joined)),
        ("ring: the prediction is above its own roof", any(point.above_roof for point in points)),
        (derived if "derived" in roofs else "all roofs: measured", bool(roofs)),
        ("roofs of several kernels: the highest of each kind, (its kernels)", chart.roofs_differ),
        ("memory regions differ by kernel, see the table", len(chart.regions) > _MOST_REGIONS),
    ]
    return [text for text, applies in found if applies]


def _legend(figure: Figure, chart: Chart, across: int) -> None:
    """The kernels below the charts, and under them those without a place on the axes, with the reason."""
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    reasons = [f"{chart.names[number]}: {why}" for number, why in chart.without_place()]
    meanings = _meanings(chart)
    for row, text in enumerate(reversed([*reasons, *meanings])):
        shade = style.GREY if text in meanings else "black"
        figure.text(_LEFT / width, (0.06 + row * _LEGEND_ROW) / height, text, fontsize=style.SMALL, color=shade)
    handles = [
        Line2D([], [], linestyle="", marker=style.marker(number), color=chart.colour(number), label=name)
        for number, name in _legend_names(chart).items()
    ]
    if handles:
        above = (len(reasons) + len(meanings)) * _LEGEND_ROW / height
        figure.legend(
            handles=handles, loc="lower left", ncols=_legend_columns(chart, across), fontsize=style.SMALL,
            frameon=False, bbox_to_anchor=((_LEFT - 0.1) / width, above),
            borderaxespad=0.3, columnspacing=1.2, handletextpad=0.4, labelspacing=0.4,
        )  # fmt: skip


# }}}
# {{{ one chart


@dataclass(frozen=True, slots=True)
class _Scale:
    """Limits of the axes in data, and how data become inches."""

    left: float
    right: float
    bottom: float
    top: float
    width: float
    height: float

    def inches(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point on the axes."""
        across = math.log(x / self.left) / math.log(self.right / self.left)
        up = math.log(y / self.bottom) / math.log(self.top / self.bottom)
        return across * self.width, up * self.height

    def data(self, x: float, y: float) -> tuple[float, float]:
        """The reverse."""
        return (
            self.left * (self.right / self.left) ** (x / self.width),
            self.bottom * (self.top / self.bottom) ** (y / self.height),
        )

    @property
    def angle(self) -> float:
        """Of a memory roof, in degrees."""
        across, up = math.log(self.right / self.left), math.log(self.top / self.bottom)
        return math.degrees(math.atan2(self.height / up, self.width / across))


def draw_chart(axes: Axes, chart: Chart, limits: tuple[float, float, float, float] | None = None) -> None:
    """One model; `limits` (left, right, bottom, top in FLOP/B and GFLOP/s) are found if they are not given."""
    box = axes.get_position()
    figure = axes.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    scale = _Scale(*(limits or limits_of((chart,))), box.width * width, box.height * height)
    model = chart.charts[0].model
    axes.set(xscale="log", yscale="log", xlim=(scale.left, scale.right), ylim=(scale.bottom, scale.top))
    axes.set(xlabel=_X_LABELS[model], ylabel="performance (GFLOP/s; an FMA counts 2)")
    axes.xaxis.set_major_formatter(_tick)
    axes.yaxis.set_major_formatter(_tick)
    style.title(axes, TITLES[model])
    axes.grid(which="major", color="#e5e5e5", linewidth=0.6, zorder=0)
    board = Board()
    _draw_roofs(axes, chart, scale, board)
    _draw_kernels(axes, chart, scale, board)
    _draw_steps(axes, chart, scale, board)
    _draw_region(axes, chart, scale, board)
    _label_compute_roofs(axes, chart, scale, board)
    _label_memory_roofs(axes, chart, scale, board)
    _label_levels(axes, chart, scale, board)


def _tick(value: float, _position: float) -> str:
    return f"{value:.10g}" if 1e-3 <= value < 1e6 else f"{value:.0e}"


def limits_of(charts: Iterable[Chart]) -> tuple[float, float, float, float]:
    """Limits that hold all points, all ridge points and the labels of the roofs."""
    charts = tuple(charts)
    roofs = [roof.flop_per_second / GIGA for chart in charts for roof in chart.compute_roofs]
    slopes = [roof.bytes_per_second / GIGA for chart in charts for roof in chart.memory_roofs]
    points: list[Point | MeasuredMark] = [point for chart in charts for _, point in chart.points]
    points += [mark for chart in charts for one in chart.charts for mark in one.measured]
    intensities = [point.intensity for point in points if point.intensity]
    heights = [point.flop_per_second / GIGA for point in points]
    peak = max(roofs, default=max(slopes))
    ridges = [peak / slope for slope in slopes]
    first = min(roofs, default=peak) / max(slopes)
    left = min([0.5 * min(ridges), 0.5 * first, *(0.4 * x for x in intensities)])
    right = max([3 * max(ridges), *(4 * x for x in intensities), *_ends_of_labels(charts, left)])
    bottom = min([0.4 * min(roofs, default=peak), *(0.3 * y for y in heights), 3 * left * min(slopes)])
    top = 3 * max([peak, *heights])
    return left, right, bottom, top


def limits_of_each(charts: Sequence[Chart]) -> list[tuple[float, float, float, float]]:
    """Limits of charts side by side: given ones, the same for all, or of each its own."""
    axes = charts[0].arrangement.axes
    if isinstance(axes, AxisLimits):
        return [(*axes.intensity, axes.flop_per_second[0] / GIGA, axes.flop_per_second[1] / GIGA)] * len(charts)
    return [limits_of(charts)] * len(charts) if axes == "same" else [limits_of((chart,)) for chart in charts]


def _ends_of_labels(charts: Iterable[Chart], left: float) -> Iterable[float]:
    """How far to the right the axes have to reach for each compute roof to have its label right of all memory roofs."""
    for chart in charts:
        flattest = chart.memory_roofs[-1].bytes_per_second
        for value, text, _ in chart.compute_labels:
            share = min(_LABEL_SHARE, (text_width(text, style.TINY) + 0.15) / _WIDTH)
            crossing = max(value / flattest, left)
            yield float(crossing * (crossing / left) ** (share / (1 - share)))


def _height(chart: Chart) -> float:
    """Of the highest compute roof in GFLOP/s; above all memory roofs where there is none."""
    found = [roof.flop_per_second / GIGA for roof in chart.compute_roofs]
    return max(found, default=math.inf)


_MOST_REGIONS = 3


def _draw_region(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    """The memory region: left of the first ridge point, under the highest memory roof; of several kernels each its own,
    with its name.

    Where the levels have intensities of their own, no one line divides the regions.
    """
    regions = chart.regions
    if len(regions) > _MOST_REGIONS:
        return
    for end, owners in regions.items():
        slope = max(chart.charts[number].memory_roofs[0].bytes_per_second for number in owners) / GIGA
        edge = min(end, scale.right)
        if edge <= scale.left:
            continue
        axes.fill_between(
            [scale.left, edge], [scale.left * slope, edge * slope], scale.bottom, color="#56b4e9", alpha=0.16,
            linewidth=0, zorder=0.5, label="memory region",
        )  # fmt: skip
        names = chart.named(owners)
        name = f"memory region of {names}" if names else "memory region"
        half, room = text_width(name, style.TINY) / 2, scale.inches(edge, scale.bottom)[0]
        heights = [0.12 + 0.2 * k for k in range(8)]
        lying = [Place(room - half - 0.08, y) for y in heights if room > 2 * half + 0.16]
        standing = [Place(room - 0.1, half + y, 90.0) for y in heights]
        spot = board.put(name, style.TINY, [*lying, *standing])
        _write(axes, scale, name, spot, style.TINY, "#1f6f9f")


def _draw_roofs(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    peak = _height(chart)
    roofs = chart.memory_roofs
    steepest = roofs[0].bytes_per_second / GIGA
    for roof in roofs:
        slope = roof.bytes_per_second / GIGA
        ridge = min(peak / slope, scale.right)
        axes.plot([scale.left, ridge], [scale.left * slope, ridge * slope], color=style.GREY, linewidth=1.2, zorder=2,
                  linestyle=_line_style(roof), label=f"roof {roof.level}")  # fmt: skip
        _block(board, scale, (scale.left, scale.left * slope), (ridge, ridge * slope))
        if ridge < scale.right:
            axes.plot(
                [ridge], [ridge * slope], ".", color=style.GREY, markersize=4, zorder=2, label=f"ridge {roof.level}"
            )
    for one in chart.compute_roofs:
        value = one.flop_per_second / GIGA
        own = one.role in ("in-core", "dependency")
        axes.plot(
            [max(value / steepest, scale.left), scale.right], [value, value], linestyle=_line_style(one),
            color=_OWN_COLOUR if own else style.GREY, linewidth=1.2, zorder=2, label=f"roof {one.name}",
        )  # fmt: skip
        _block(board, scale, (max(value / steepest, scale.left), value), (scale.right, value))


def _line_style(roof: MemoryRoof | ComputeRoof) -> Any:
    """Of the kernel's own code, of a figure that was derived, of a measured one."""
    own = _OWN_STYLES.get(getattr(roof, "role", ""))
    return own or (_DERIVED_STYLE if roof.basis == "derived" else "-")


def _block(board: Board, scale: _Scale, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Keep labels off a line, as far as it is on the axes."""
    board.line(scale.inches(*start), scale.inches(*end))


def _draw_kernels(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    """Points, those of one kernel joined; under few, the line of intensity; the bound as a bar above."""
    for number, one in enumerate(chart.charts):
        points = [(p.intensity or 0.0, p.flop_per_second / GIGA) for n, p in chart.points if n == number]
        if not points:
            continue
        shade, size = chart.colour(number), _marker_size(chart, number)
        for x, y in points:
            board.block(*scale.inches(x, y), 0.5 * size / 72 + 0.025)
            if len(chart.charts) <= _MOST_LABELLED:
                axes.plot([x, x], [scale.bottom, min(_top_of(chart, x), scale.top)], ":", color=shade, linewidth=0.9,
                          zorder=1, label="intensity")  # fmt: skip
        xs, ys = [x for x, _ in points], [y for _, y in points]
        axes.plot(xs, ys, "-", color=shade, linewidth=0.8, marker=style.marker(number), markersize=size,
                  markeredgecolor="white", markeredgewidth=0.5, zorder=5 + 1 / (1 + size),
                  label=chart.names[number])  # fmt: skip
        _draw_rings(axes, one)
        for mark in one.measured:
            axes.plot([mark.intensity], [mark.flop_per_second / GIGA], "x", color=shade, markersize=7,
                      markeredgewidth=1.6, zorder=7, label="measured")  # fmt: skip
        bound = (one.bound or 0.0) / GIGA
        if bound > 1.02 * ys[0]:
            at = _bound_intensity(one, points)
            axes.plot([at], [bound], marker="_", color=shade, markersize=11, markeredgewidth=1.8, zorder=4,
                      linestyle="", label=f"bound of {chart.names[number]}")  # fmt: skip


_MARKER, _LARGEST = 6.5, 22.0
"""Size of a point, and of one that takes all of the time, in points."""


def _marker_size(chart: Chart, number: int) -> float:
    """The area of a point grows with its share of the time."""
    share = chart.share(number)
    return _MARKER if share is None else max(_MARKER / 2, _LARGEST * math.sqrt(share))


def _draw_steps(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    """An arrow from each version of a kernel to the next, with the gain beside its middle."""
    for before, after, step in chart.joined:
        start, end = ((p.intensity or 0.0, p.flop_per_second / GIGA) for p in (before, after))
        axes.annotate("", end, start, zorder=6, arrowprops=_ARROW, gid="step")
        (x0, y0), (x1, y1) = scale.inches(*start), scale.inches(*end)
        board.line((x0, y0), (x1, y1))
        if step.flop_rate is not None:
            text = f"{step.flop_rate:.3g}×"
            beside = 0.12 + text_width(text, style.SMALL) / 2
            places = [
                Place(x0 + t * (x1 - x0) + side, y0 + t * (y1 - y0) + rise)
                for t in (0.5, 0.35, 0.65)
                for side, rise in ((beside, 0.0), (-beside, 0.0), (0.0, 0.15), (0.0, -0.15))
            ]
            _write(axes, scale, text, board.put(text, style.SMALL, places), style.SMALL, "#222222")


_ARROW: dict[str, Any] = {"arrowstyle": "-|>", "color": "#222222", "linewidth": 1.4, "shrinkA": 4, "shrinkB": 4}


def _draw_rings(axes: Axes, chart: Roofline) -> None:
    """Around the points that lie above a roof of their own."""
    over = [(p.intensity, p.flop_per_second / GIGA) for p in chart.points if p.above_roof and p.intensity]
    if over:
        axes.plot(*zip(*over, strict=True), linestyle="", marker="o", markersize=12, markerfacecolor="none",
                  markeredgecolor=_OVER_COLOUR, markeredgewidth=1.3, zorder=6, label="above its roof")  # fmt: skip


def _bound_intensity(chart: Roofline, points: Sequence[tuple[float, float]]) -> float:
    """Where the bar of the bound stands: at the level that limits, else at the first point."""
    found = [point.intensity for point in chart.points if point.level == chart.bound_by and point.intensity]
    return found[0] if found else points[0][0]


def _top_of(chart: Chart, x: float) -> float:
    """The highest that any roof allows at an intensity."""
    return min(x * chart.memory_roofs[0].bytes_per_second / GIGA, _height(chart))


# }}}
# {{{ labels


def _write(axes: Axes, scale: _Scale, text: str, spot: Place, size: float, colour: str) -> None:
    """A label, none for what lies outside of axes with given limits."""
    if not (0 <= spot.x <= scale.width and 0 <= spot.y <= scale.height):
        return
    x, y = scale.data(spot.x, spot.y)
    axes.text(x, y, text, fontsize=size, rotation=spot.angle, rotation_mode="anchor", ha="center", va="center",
              color=colour, zorder=6, bbox={"facecolor": "white", "alpha": 0.85, "pad": 0.3, "lw": 0})  # fmt: skip


_ABOVE = 0.085
"""Inches from a line to the middle of its label."""


def _label_compute_roofs(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    """At the right end above the line; below it or further left where that is taken."""
    for value, text, own in chart.compute_labels:
        half = text_width(text, style.TINY) / 2
        height = scale.inches(scale.right, value / GIGA)[1]
        start = scale.inches(max(value / chart.memory_roofs[0].bytes_per_second, scale.left), 1.0)[0]
        rightmost = scale.width - half
        steps = [x for k in range(24) if (x := rightmost - 0.15 * k) > start + half] or [rightmost]
        places = [Place(x, height + side) for x in steps for side in (_ABOVE, -_ABOVE)]
        _write(axes, scale, text, board.put(text, style.TINY, places), style.TINY, _OWN_COLOUR if own else "#222222")


def _of(chart: Chart, owners: Sequence[int]) -> str:
    """ " (triad)" behind a roof that is not of all kernels."""
    names = chart.named(owners)
    return f" ({names})" if names else ""


def _alike(roofs: Sequence[ComputeRoof]) -> list[list[ComputeRoof]]:
    """The roofs, those of one height together."""
    rows: list[list[ComputeRoof]] = []
    for roof in roofs:
        if rows and rows[-1][0].flop_per_second <= 1.005 * roof.flop_per_second:
            rows[-1].append(roof)
        else:
            rows.append([roof])
    return rows


def _label_memory_roofs(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    """On the line near its left end, further along where that is taken."""
    angle = scale.angle
    along = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    for roof in chart.memory_roofs:
        text = f"{roof.level} {format_si(roof.bytes_per_second, 'B/s')}" + _of(chart, chart.owners(roof))
        slope = roof.bytes_per_second / GIGA
        start = max(scale.left, scale.bottom / slope)
        x, y = scale.inches(start, start * slope)
        end = scale.inches(min(_height(chart) / slope, scale.right), 1.0)[0]
        half = text_width(text, style.TINY) / 2
        room = max(0.0, (end - x) / along[0] - 2 * half)
        places: list[Place] = []
        for k in range(25):
            far = half + 0.12 + 0.15 * k
            if far > half + room and places:
                break
            for side in (_ABOVE, -_ABOVE):
                places.append(Place(x + along[0] * far - along[1] * side, y + along[1] * far + along[0] * side, angle))
        _write(axes, scale, text, board.put(text, style.TINY, places), style.TINY, "#222222")


def _label_levels(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    """The level beside each point, where there are several and the kernels are few; levels at one place share it."""
    if len(chart.charts) > _MOST_LABELLED:
        return
    together: dict[tuple[int, float, float], list[str]] = {}
    for number, point in chart.points:
        if point.level and point.intensity:
            key = (number, round(point.intensity, 9), point.flop_per_second / GIGA)
            together.setdefault(key, []).append(point.level)
    for (number, x, y), levels in together.items():
        text = ", ".join(levels)
        across, up = scale.inches(x, y)
        beside = 0.1 + text_width(text, style.SMALL) / 2
        places = [
            Place(across + side, up + rise)
            for rise in (-0.13, 0.13, 0.0, -0.26, 0.26)
            for side in (beside, -beside, 0.0)
            if (rise, side) != (0.0, 0.0)
        ]
        _write(axes, scale, text, board.put(text, style.SMALL, places), style.SMALL, chart.colour(number))


# }}}
# {{{ memory share and impact


def draw_shares(axes: Axes, shares: Sequence[tuple[str, Sequence[LevelShare]]]) -> None:
    """MS and MI of each kernel as stacked bars."""
    positions, names = [], []
    for number, (_, levels) in enumerate(shares):
        impacts = [one.impact or 0.0 for one in levels]  # no bar where they are not known
        for offset, values in ((0.0, [one.share for one in levels]), (1.0, impacts)):
            position, base = 2.6 * number + offset, 0.0
            positions.append(position)
            names.append("MS" if not offset else "MI")
            for depth, (one, value) in enumerate(zip(levels, values, strict=True)):
                label = one.level if not positions[1:] else None
                axes.bar(position, 100 * value, 0.8, 100 * base, linewidth=0.6, label=label, **style.part(depth))
                if value >= _SHOWN_SHARE:
                    axes.text(position, 100 * (base + value / 2), f"{100 * value:.0f}", ha="center", va="center",
                              fontsize=style.TINY, bbox={"facecolor": "white", "pad": 0.8, "linewidth": 0})  # fmt: skip
                base += value
    axes.set_xticks(positions, names, fontsize=style.SMALL)
    for number, (name, _) in enumerate(shares):
        if len(shares) > 1:
            axes.text(2.6 * number + 0.5, -9.5, name, ha="center", va="top", fontsize=style.TINY)
    axes.set(ylim=(0, 100), xlim=(-0.7, positions[-1] + 0.7), ylabel="% of the bytes (MS), of the time (MI)")
    style.title(axes, "Memory share, impact")
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles, labels, loc="lower center", bbox_to_anchor=(0.5, -0.19 if len(shares) > 1 else -0.17),
                ncols=len(labels), fontsize=style.TINY, frameon=False, handlelength=1.2, columnspacing=0.8)  # fmt: skip


_SHOWN_SHARE = 0.06
"""A share large enough to hold its number."""

# }}}
