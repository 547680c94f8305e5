"""One roofline chart on axes of a picture: roofs with their values on the line, ridge points, kernels as points.

Roofs of several kernels that differ (their own mixes, their own ratios of loads) are drawn at their highest and name
the kernels that they belong to; the bound of each kernel stands as a short bar at its intensity. Measured roofs are
solid lines, derived ones dashed. A prediction above its own roof has a ring around it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kernmodel.models.chart import TITLES
from kernmodel.plot import style
from kernmodel.plot.placement import Board, Place, text_width
from kernmodel.plot.roofline_chart import GIGA, Chart, limits_of, most_of, roof_label
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kernmodel.models.chart import ComputeRoof, MemoryRoof, Roofline

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
_MOST_LABELLED = 4
"""Kernels whose levels are named beside their points."""


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


def _height(chart: Chart) -> float:
    """Of the highest compute roof in GFLOP/s; above all memory roofs where there is none."""
    found = [roof.flop_per_second / GIGA for roof in chart.compute_roofs]
    return max(found, default=math.inf)


MOST_REGIONS = 3
"""Memory regions that a chart has room for."""


def _draw_region(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    """The memory region: left of the first ridge point, under the highest memory roof; of several kernels each its own,
    with its name.

    Where the levels have intensities of their own, no one line divides the regions.
    """
    regions = chart.regions
    if len(regions) > MOST_REGIONS:
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
        _draw_interval(axes, roof, scale, peak)
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


def _draw_interval(axes: Axes, roof: MemoryRoof, scale: _Scale, peak: float) -> None:
    """From a roof of memory that is not known up to the most that it may be."""
    most = most_of(roof)
    if most is not None:
        xs = sorted({scale.left, *(min(peak * GIGA / rate, scale.right) for rate in (roof.bytes_per_second, most))})
        low, high = ([min(x * rate / GIGA, peak) for x in xs] for rate in (roof.bytes_per_second, most))
        axes.fill_between(xs, low, high, color=style.GREY, alpha=0.25, linewidth=0, zorder=1, label="interval")


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
        for p in (p for n, p in chart.points if n == number):
            if held := p.flop_per_second_interval:
                axes.vlines([p.intensity or 0.0], held.low / GIGA, held.high / GIGA, colors=shade, linewidth=1.8,
                            zorder=4, label="interval of the point")  # fmt: skip
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


def _label_memory_roofs(axes: Axes, chart: Chart, scale: _Scale, board: Board) -> None:
    """On the line near its left end, further along where that is taken."""
    angle = scale.angle
    along = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    for roof in chart.memory_roofs:
        text = roof_label(roof) + _of(chart, chart.owners(roof))
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
