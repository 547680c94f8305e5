"""Several kernels on one chart: steps between versions of a kernel, shares of time, the limits of the axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from kernmodel.errors import InputError, Note
from kernmodel.schema.fields import suggest
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.models.chart import Point, Roofline
    from kernmodel.studies.predict.roofline import Charted, RooflineAnswer, Subject

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Step:
    """The change from one version of a kernel to the next.

    Attributes:
        before, after: names of the versions.
        flop_rate, iteration_rate: FLOP/s and source iterations/s of the later over those of the earlier; None where one
            of them is not known or 0.
    """

    before: str
    after: str
    flop_rate: float | None
    iteration_rate: float | None


@dataclass(frozen=True, slots=True)
class AxisLimits:
    """Where axes begin and end: arithmetic intensity in FLOP/B, performance in FLOP/s."""

    intensity: Range
    flop_per_second: Range


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What a chart shows of several kernels beside their points.

    Attributes:
        steps: from each version to the next; empty: the kernels are no versions of one.
        time_shares: of each kernel, of the time that all take together; empty: not asked for.
        axes: limits of all charts, "same": those that hold what any of them shows; None: each chart has its own.
    """

    steps: tuple[Step, ...] = ()
    time_shares: tuple[float, ...] = ()
    axes: AxisLimits | Literal["same"] | None = None


UNARRANGED = Arrangement()


def arranged(
    answer: RooflineAnswer,
    *,
    versions: bool = False,
    calls: Mapping[str, float] | None = None,
    axes: AxisLimits | Literal["same"] | None = None,
) -> RooflineAnswer:
    """The charts with steps between versions, shares of time and common limits of the axes.

    Args:
        versions: whether the kernels are versions of one, in this order.
        calls: how often each kernel is executed, once those that are not named; None: no shares of time.
        axes: as of `Arrangement`.

    Raises:
        InputError: a single version, no such kernel, a time that is not known.
    """
    subjects = [one.subject for one in answer.kernels]
    if versions and answer.failed:
        name, error = next(iter(answer.failed.items()))
        raise InputError(f"there is no chart of {name}: {error}", where="--versions", todo="mend it, or leave it out")
    if versions and len(subjects) < 2:
        todo = "give the versions of the kernel, the first one first"
        raise InputError(f"{subjects[0].name} is the only version", where="--versions", todo=todo)
    steps = tuple(_step(*pair) for pair in pairwise(subjects)) if versions else ()
    shares = time_shares(subjects, calls) if calls is not None else ()
    notes = answer.notes if calls is None else (*answer.notes, _once(calls))
    if isinstance(axes, AxisLimits):
        notes = (*notes, *_outside(answer.kernels, axes))
    return replace(answer, arrangement=Arrangement(steps, shares, axes), notes=notes)


def _step(before: Subject, after: Subject) -> Step:
    flops = _ratio(before.case.performance, after.case.performance)
    return Step(before.name, after.name, flops, _ratio(before.iterations_per_second, after.iterations_per_second))


def _ratio(before: float | None, after: float | None) -> float | None:
    return after / before if before and after else None


def step_ends(before: Roofline, after: Roofline) -> tuple[Point, Point] | None:
    """The points of two versions that a step joins: at the level that limits the earlier where both have a point there,
    else at the outermost that both have; None where there is none."""
    first, second = ({point.level: point for point in one.points if _is_placed(point)} for one in (before, after))
    common = [level for level in first if level in second]
    if not common:
        return None
    level = before.bound_by if before.bound_by in common else common[-1]
    return first[level], second[level]


def _is_placed(point: Point) -> bool:
    return bool(point.intensity) and point.flop_per_second > 0


def time_shares(subjects: Sequence[Subject], calls: Mapping[str, float]) -> tuple[float, ...]:
    """Of the time that all kernels take, the share of each.

    Raises:
        InputError: no such kernel, a time that is not known, or none that takes any.
    """
    names = [subject.name for subject in subjects]
    for name in calls:
        if name not in names:
            raise InputError(f"there is no kernel {name!r} on the chart", where="--calls", todo=suggest(name, names))
    times = [calls.get(subject.name, 1.0) * _seconds(subject) for subject in subjects]
    total = sum(times)
    if not total:
        raise InputError("no kernel takes any time", where="--calls", todo="let one be called at least once")
    return tuple(time / total for time in times)


def _seconds(subject: Subject) -> float:
    """Predicted time of one execution of the whole nest on the cores of the chart.

    Raises:
        InputError: the nest, or the prediction, is not known.
    """
    from kernmodel.source.nest.sizes import iterations_per_sweep

    if subject.nest is None or not subject.iterations_per_second:
        what = f"the time of {subject.name} is not known: " + (
            "it has no source" if subject.nest is None else "a bandwidth of the machine is missing"
        )
        raise InputError(what, where="--by-time", todo="leave out the shares of time, or the kernel")
    return iterations_per_sweep(subject.nest, subject.sizes) / subject.iterations_per_second


def _once(calls: Mapping[str, float]) -> Note:
    often = ", ".join(f"{name} {count:g} times" for name, count in calls.items())
    others = "each other nest" if calls else "each nest"
    return Note("time-shares", f"shares of time: {often + ', ' if often else ''}{others} executed once", "assumption")


def _outside(kernels: Sequence[Charted], axes: AxisLimits) -> tuple[Note, ...]:
    """Says which kernels have points that the axes do not reach."""

    def is_outside(intensity: float | None, rate: float) -> bool:
        (left, right), (bottom, top) = axes.intensity, axes.flop_per_second
        return intensity is not None and rate > 0 and not (left <= intensity <= right and bottom <= rate <= top)

    names = [
        one.subject.name
        for one in kernels
        if any(is_outside(point.intensity, point.flop_per_second) for chart in one.rooflines for point in chart.points)
    ]
    return (Note("outside-axes", f"the axes leave out points of {', '.join(names)}", "assumption"),) if names else ()
