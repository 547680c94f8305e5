"""Charts, shares and ratios where more cores draw from memory than its streams were measured on.

What these draw is no less than what the fewer do, which is what all numbers say, and no more than if each drew what it
does by itself. So all is computed for both ends, and what differs gets an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from kernmodel.errors import Note
from kernmodel.models.bandwidths import FEW_CORES, most_drawn, not_drawn
from kernmodel.models.chart import Case, LevelShare, Point, Roofline
from kernmodel.models.ecm import ScalingPoint
from kernmodel.uncertainty import Interval, between, union
from kernmodel.value_types import NamedTuple, dataclass


@dataclass(frozen=True, slots=True)
class OtherEnd:
    """The case where its cores draw the most from memory that is possible; measured: on how many its streams were."""

    case: Case
    measured: int

    def between(self, value: float | None, other: float | None) -> Interval | None:
        """The interval of a number, by its value and that at this end; None where they agree or one is not known."""
        return None if value is None or other is None else between((value, other), *not_drawn(self.measured))


class Ratio(NamedTuple):
    """One runtime of several cores over another.

    Attributes:
        value: as both are predicted; least: where both are as short as they may be. The same where they are known: what
            is not known, what the cores draw from memory, is the same in both.
        cause, assumed: of the interval in between.
    """

    value: float
    least: float
    cause: str = ""
    assumed: str = ""

    def interval(self, of: Callable[[float], float] = float) -> Interval | None:
        """The interval of what follows from the ratio, of the ratio itself if nothing is said."""
        return between((of(self.value), of(self.least)), self.cause, self.assumed)


def cycles_ratio(one: ScalingPoint, other: ScalingPoint, factor: float = 1.0) -> Ratio:
    """Times of one over those of the other, times a factor; 1 where neither takes any."""
    ends = [(point.cycles, point.least_cycles) for point in (one, other)]
    value, least = (mine * factor / its if its else math.inf if mine else 1.0 for mine, its in zip(*ends, strict=True))
    held = union((one.cycles_interval, other.cycles_interval))
    return Ratio(value, least) if held is None else Ratio(value, least, held.cause, held.assumed)


def other_end(case: Case) -> OtherEnd | None:
    """The other end of a case; None where streams of memory were measured on as many cores."""
    found = most_drawn(case.machine, case.cores)
    if found is None:
        return None
    machine, measured = found
    reached = case.performance_interval.high if case.performance_interval else case.performance
    return OtherEnd(replace(case, machine=machine, performance=reached, performance_interval=None), measured)


def interval_of(case: Case, value: float, other: float) -> Interval | None:
    """The interval of a number of a case, by its value at both ends; None where they agree or there is one alone."""
    end = other_end(case)
    return None if end is None else end.between(value, other)


def chart_of_both(make: Callable[[Case], Roofline], case: Case) -> Roofline:
    """The chart of a case, with intervals where it is another one at the other end.

    Raises:
        InputError, MachineError: as `make`.
    """
    found, end = make(case), other_end(case)
    if end is None:
        return found
    most = make(end.case)
    bandwidths = {roof.level: roof.bytes_per_second for roof in most.memory_roofs}
    roofs = tuple(
        replace(roof, bytes_per_second_interval=end.between(roof.bytes_per_second, bandwidths.get(roof.level)))
        for roof in found.memory_roofs
    )
    if not any(roof.bytes_per_second_interval for roof in roofs):
        return found
    return replace(
        found,
        memory_roofs=roofs,
        points=tuple(map(partial(_point, end), found.points, most.points)),
        bound_interval=end.between(found.bound, most.bound),
        iterations_per_second_interval=end.between(found.iterations_per_second, most.iterations_per_second),
        most=most,
        notes=(_note(case, end.measured), *found.notes),
    )


def _point(end: OtherEnd, point: Point, other: Point) -> Point:
    held = point.flop_per_second_interval or end.between(point.flop_per_second, other.flop_per_second)
    return replace(point, flop_per_second_interval=held)


def _note(case: Case, measured: int) -> Note:
    text = (
        f"streams of memory were measured on {measured} of {case.machine.topology.cores_per_numa_domain} cores of a "
        "domain: what more of them draw is not known; its roof takes them to draw no more"
    )
    return Note(FEW_CORES, text)


def shares_of_both(make: Callable[[Case], Sequence[LevelShare]], case: Case) -> tuple[LevelShare, ...]:
    """Shares and impacts of the levels, with intervals where they are others at the other end.

    Raises:
        InputError, MachineError: as `make`.
    """
    found, end = tuple(make(case)), other_end(case)
    if end is None:
        return found
    return tuple(
        replace(
            one,
            bandwidth_interval=end.between(one.bandwidth, other.bandwidth),
            impact_interval=end.between(one.impact, other.impact),
        )
        for one, other in zip(found, make(end.case), strict=True)
    )
