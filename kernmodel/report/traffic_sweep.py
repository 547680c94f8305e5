"""Traffic over sizes and cores as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from kernmodel.report.caches import STORES, evaded_share
from kernmodel.report.layout import Block, Column, Fields, Heading, Line
from kernmodel.report.numbers import MISSING, decimal, with_interval
from kernmodel.report.sections import machine_fields
from kernmodel.report.traffic import method_text
from kernmodel.traffic.model import ENDS, reuse_in
from kernmodel.uncertainty import Interval, union

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import TrafficAnswer
    from kernmodel.traffic.model import Traffic

TrafficUnit = Literal["CL", "B", "B/It"]
"""Units of the traffic in a sweep: cache lines or bytes per unit of work, bytes per iteration."""

_INTERVAL_WIDTH = len("0% (0% … 100%)")


@dataclass(frozen=True, slots=True)
class SweepShape:
    """What decides the columns of a sweep.

    Attributes:
        unit: of the traffic.
        points: all sizes, which must fit the columns.
        cores: the core counts; a column of their own if there are several.
        compared: whether layer conditions stand beside the simulation.
    """

    unit: TrafficUnit
    points: tuple[Mapping[str, int], ...]
    cores: tuple[int, ...] = (1,)
    compared: bool = False


def sweep_inputs(answer: TrafficAnswer, shape: SweepShape) -> tuple[Block, ...]:
    """What all points of a sweep share."""
    over = " and ".join(
        name for name, count in (("sizes", len(shape.points)), ("cores", len(shape.cores))) if count > 1
    )
    several = len(shape.cores) > 1
    pairs = (
        ("kernel", f"{answer.nest.name}, {answer.nest.file}"),
        *machine_fields(answer.machine),
        ("method", method_text(answer)),
        ("stores", STORES[answer.traffic.stores]),
        *(() if several else (("active cores", str(answer.traffic.cores)),)),
    )
    title = f"Data traffic of {answer.nest.name} on {answer.machine.name} over {over}"
    return (Heading(title), Fields(pairs), Line(""))


def size_columns(points: Iterable[Mapping[str, int]], names: Iterable[str]) -> tuple[Column, ...]:
    """A column for each size symbol of a sweep, wide enough for its largest value."""
    points = tuple(points)
    return tuple(Column(name, least=max(len(str(point.get(name, ""))) for point in points)) for name in names)


def sweep_columns(answer: TrafficAnswer, shape: SweepShape) -> tuple[Column, ...]:
    """The columns of a sweep: sizes, cores, loads and stores per path, and what is reused in each cache."""
    symbols = size_columns(shape.points, answer.sizes)
    cores = (Column("cores"),) if len(shape.cores) > 1 else ()
    methods = (" lc", " sim") if shape.compared else ("",)
    paths = (
        Column(f"{path.path} {kind}{method} {shape.unit}")
        for path in answer.traffic.paths
        for kind in ("in", "out")
        for method in methods
    )
    caches = (Column(f"reuse in {level.name}", "left") for level in answer.machine.levels)
    evaded = (Column("evaded", least=_INTERVAL_WIDTH),) if answer.traffic.stores == "evading" else ()
    differs = (Column("differs by", "left"),) if shape.compared else ()
    return (*symbols, *cores, *paths, *evaded, *caches, *differs)


def sweep_row(answer: TrafficAnswer, shape: SweepShape) -> tuple[str, ...]:
    """The row of one point: lines toward the core (in), and modified lines and clean victims away from it (out)."""
    traffics = (answer.symbolic, answer.traffic) if shape.compared else (answer.traffic,)
    factor = {
        "CL": 1.0,
        "B": answer.machine.line_bytes,
        "B/It": answer.machine.line_bytes / answer.traffic.iterations_per_unit,
    }[shape.unit]
    moved = zip(*(_moved(traffic, len(answer.traffic.paths), factor) for traffic in traffics), strict=True)
    reasons = ", ".join(dict.fromkeys(difference.reason_code for difference in answer.differences))
    return (
        *(str(value) for value in answer.sizes.values()),
        *((str(answer.traffic.cores),) if len(shape.cores) > 1 else ()),
        *(cell for cells in moved for cell in cells),
        *((_evaded(answer.traffic),) if answer.traffic.stores == "evading" else ()),
        *(reuse_in(answer.symbolic or answer.traffic, level.name) or MISSING for level in answer.machine.levels),
        *((reasons or MISSING,) if shape.compared else ()),
    )


def _evaded(traffic: Traffic) -> str:
    """The share of the write-allocates that is evaded; nothing where there are none to evade at these sizes."""
    return MISSING if traffic.evasion is None else evaded_share(traffic.evasion)


def _moved(traffic: Traffic | None, paths: int, factor: float) -> Iterator[str]:
    """Loads, then stores and clean victims together, of every path; with their intervals."""
    if traffic is None:
        yield from [MISSING] * (2 * paths)
        return
    for path in traffic.paths:
        yield _with_interval(path.loads, path.loads_interval, factor)
        away = union((path.stores_interval, path.clean_victims_interval))
        if away is not None:
            low, high = (path.at(end) for end in ENDS)
            away = replace(away, low=low.stores + low.clean_victims, high=high.stores + high.clean_victims)
        yield _with_interval(path.stores + path.clean_victims, away, factor)


def _with_interval(value: float, interval: Interval | None, factor: float) -> str:
    return with_interval(value, interval, lambda lines: decimal(lines * factor), cause=False)
