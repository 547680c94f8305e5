"""What a roofline chart shows, however it is drawn: roofs, points, what joins them, and where its axes end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kernmodel.plot import style
from kernmodel.plot.placement import text_width
from kernmodel.studies.predict.arranged import UNARRANGED, Arrangement, AxisLimits, step_ends
from kernmodel.uncertainty import with_interval
from kernmodel.units import format_si
from kernmodel.value_types import dataclass
from kernmodel.words import first_names

if TYPE_CHECKING:
    from kernmodel.models.chart import ComputeRoof, MeasuredMark, MemoryRoof, Point, Roofline
    from kernmodel.studies.predict.arranged import Step
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer

GIGA = 1e9
_MOST_ROOFS = 10
"""Compute roofs that a chart has room for; the lowest are left out."""
_MOST_NAMED = 2
"""Kernels that the label of a roof names; of more, their number."""
_LABEL_SHARE = 0.45
"""The most of the width of a chart that a label of a roof is to take."""
WIDTH = 6.2
"""Inches of the axes."""


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
            if any(_mark(other) == _mark(roof) for other in roofs_of(one))
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
        return first_names([self.names[number] for number in numbers], most)

    @property
    def compute_labels(self) -> tuple[tuple[float, str, bool], ...]:
        """Height in FLOP/s and text of the labels of compute roofs, those of one height together, and whether they are
        of the kernel's own code."""
        found = []
        for roofs in _alike(self.compute_roofs):
            owners = tuple(dict.fromkeys(number for roof in roofs for number in self.owners(roof)))
            value = roofs[0].flop_per_second
            for most_roofs, most_owners in ((len(roofs), _MOST_NAMED), (2, 1), (1, 1)):
                names = first_names([roof.name for roof in roofs], most_roofs)
                kernels = self.named(owners, most_owners)
                text = f"{names} {format_si(value, 'FLOP/s')}" + (f" ({kernels})" if kernels else "")
                if text_width(text, style.TINY) <= _LABEL_SHARE * WIDTH:
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


def roof_label(roof: MemoryRoof) -> str:
    """Level and bandwidth of a roof, with its interval."""
    held = roof.bytes_per_second_interval
    value = with_interval(roof.bytes_per_second, held, lambda one: format_si(one, "B/s"), cause=False)
    return f"{roof.level} {value}"


def most_of(roof: MemoryRoof) -> float | None:
    """The most bytes/s that a roof may have, where it is not known."""
    held = roof.bytes_per_second_interval
    return None if held is None else held.high


def roofs_of(chart: Roofline) -> list[MemoryRoof | ComputeRoof]:
    """All of one chart."""
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


def _alike(roofs: Sequence[ComputeRoof]) -> list[list[ComputeRoof]]:
    """The roofs, those of one height together."""
    rows: list[list[ComputeRoof]] = []
    for roof in roofs:
        if rows and rows[-1][0].flop_per_second <= 1.005 * roof.flop_per_second:
            rows[-1].append(roof)
        else:
            rows.append([roof])
    return rows


def limits_of(charts: Iterable[Chart]) -> tuple[float, float, float, float]:
    """Limits that hold all points, all ridge points and the labels of the roofs."""
    charts = tuple(charts)
    roofs = [roof.flop_per_second / GIGA for chart in charts for roof in chart.compute_roofs]
    slopes = [roof.bytes_per_second / GIGA for chart in charts for roof in chart.memory_roofs]
    points: list[Point | MeasuredMark] = [point for chart in charts for _, point in chart.points]
    points += [mark for chart in charts for one in chart.charts for mark in one.measured]
    intensities = [point.intensity for point in points if point.intensity]
    heights = [point.flop_per_second / GIGA for point in points]
    intervals = [point.flop_per_second_interval for chart in charts for _, point in chart.points]
    heights += [held.high / GIGA for held in intervals if held is not None]
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
            share = min(_LABEL_SHARE, (text_width(text, style.TINY) + 0.15) / WIDTH)
            crossing = max(value / flattest, left)
            yield float(crossing * (crossing / left) ** (share / (1 - share)))
