"""Predict measured kernels by ECM and compare: by machine, residence, class, size and cores, every series alike."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING

from kernmodel.errors import KernmodelError
from kernmodel.evaluate.kernel_model import (
    OURS,
    ErrorSummary,
    JudgedPoint,
    JudgedSeries,
    KernelEvaluation,
    KernelFile,
    MeasuredPoint,
    PointGroup,
    Series,
    TrafficError,
)
from kernmodel.models.ecm import refuse_unknown
from kernmodel.source.emit.whole_function import compiler_defines
from kernmodel.source.find import find_source
from kernmodel.source.nest.sizes import declared_bytes
from kernmodel.studies.predict.ecm import predict_ecm_sweep
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest
from kernmodel.traffic.options import CacheMode
from kernmodel.units import Work, convert_cycles

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine

_EDGE = (0.8, 1.25)
"""Of a cache's size: sets of data between are on the edge of it, where measured traffic changes gradually."""
_LINES = 0.05
"""Lines per unit of work that come from a level where data lie."""
_SIZES = (50, 100, 200, 500, 1000)
"""Upper bounds of the groups by size."""
_SIZE_NAMES = (
    f"up to {_SIZES[0]}",
    *(f"{below + 1} to {bound}" for below, bound in pairwise(_SIZES)),
    f"over {_SIZES[-1]}",
)
"""Of these groups, and of what is larger."""


def evaluate_kernels(
    source: KernelFile,
    *,
    cache: CacheMode = "auto",
    code: CodeRequest | None = None,
    sample: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[Iterator[JudgedSeries]], Iterable[JudgedSeries]] = lambda series: series,
) -> KernelEvaluation:
    """Predict every point of a file and compare.

    Args:
        cache: how the traffic is found.
        code: choices for all series (`classic`); what a series says of its code goes before them.
        sample: at most so many points of each series and core count, evenly spread; None: all.
        executor: where series are predicted, None: here.
        progress: is handed the series as they come.
    """
    tasks = [(series, _sampled(points, sample)) for series, points in source.series.items()]
    run: Callable[..., Iterable[JudgedSeries]] = map if executor is None else executor.map
    judge = partial(_judge, cache=cache, code=code or CodeRequest())
    judged = tuple(progress(iter(run(judge, [task[0] for task in tasks], [task[1] for task in tasks]))))
    left_out = any(len(points) < len(source.series[series]) for series, points in tasks)
    return KernelEvaluation(source.file, source.skipped, judged, _groups(judged), _traffic(judged), left_out)


def _sampled(points: Sequence[MeasuredPoint], most: int | None) -> tuple[MeasuredPoint, ...]:
    """At most so many of one core, and of several: the middles of as many parts of equal length."""
    if most is None:
        return tuple(points)
    found = []
    for part in ([p for p in points if p.cores == 1], [p for p in points if p.cores > 1]):
        taken = min(most, len(part))
        found += [part[int((at + 0.5) * len(part) / taken)] for at in range(taken)]
    return tuple(found)


def _judge(series: Series, points: Sequence[MeasuredPoint], cache: CacheMode, code: CodeRequest) -> JudgedSeries:
    """The points of a series; where they cannot be predicted together, each by itself."""
    code = replace(code, asm=series.listing, compiler=series.compiler, flags=series.flags)
    try:
        answers = list(_predicted(series, points, cache, code))
    except KernmodelError as error:
        if len(points) == 1:
            return JudgedSeries(series, series.machine, (), ((points[0].line, str(error)),))
        parts = [_judge(series, [point], cache, code) for point in points]
        return JudgedSeries(
            series,
            next((part.machine for part in parts if part.points), series.machine),
            tuple(point for part in parts for point in part.points),
            tuple(failure for part in parts for failure in part.failed),
        )
    return JudgedSeries(series, answers[0][1].machine.name, tuple(judged_point(*pair) for pair in answers))


def _predicted(
    series: Series, points: Sequence[MeasuredPoint], cache: CacheMode, code: CodeRequest
) -> Iterator[tuple[MeasuredPoint, EcmAnswer]]:
    several = sorted({point.cores for point in points} - {1})
    for wanted, cores in (([p for p in points if p.cores == 1], ()), ([p for p in points if p.cores > 1], several)):
        by_sizes: dict[tuple[tuple[str, int], ...], list[MeasuredPoint]] = defaultdict(list)
        for point in wanted:
            by_sizes[tuple(point.sizes.items())].append(point)
        sizes = [dict(key) for key in by_sizes]
        if sizes:
            request = KernelRequest(series.source, series.machine, sizes[0], cache=cache)
            answers = predict_ecm_sweep(request, code, sizes, cores, each=_is_compiled_by_size(request, code))
            for answer, group in zip(answers, by_sizes.values(), strict=True):
                yield from ((point, answer) for point in group)


def _is_compiled_by_size(request: KernelRequest, code: CodeRequest) -> bool:
    """Whether the code has the sizes in it, since they are macros of the source, and is that of each size."""
    return code.asm is None and bool(compiler_defines(find_source(request.kernel)[0], request.defines))


def judged_point(point: MeasuredPoint, answer: EcmAnswer) -> JudgedPoint:
    """A measurement beside its prediction.

    Raises:
        MachineError: a time of the prediction is not known.
    """
    prediction, work = answer.prediction, answer.prediction.work
    refuse_unknown(prediction, answer.machine, "the error of a prediction")
    scaled = {one.cores: one for one in answer.scaling}
    found = scaled[point.cores] if point.cores > 1 else prediction

    per_line = answer.machine.line_bytes / answer.traffic.iterations_per_unit
    moved = {path.path: (path.loads + path.stores + path.clean_victims) * per_line for path in answer.traffic.paths}
    return JudgedPoint(
        point=point,
        measured=in_cycles(point.measured, point.unit, work),
        predicted=found.cycles,
        predicted_interval=found.cycles_interval,
        peers={name: in_cycles(value, point.unit, work) for name, value in point.peers.items()},
        prediction=prediction,
        residence=_residence(answer),
        share=_share(point.cores, answer.machine),
        moved={name: moved[name] for name in point.traffic if name in moved},
    )


def in_cycles(value: float, unit: str, work: Work) -> float:
    """A time or rate as cycles per unit of work; every unit is one or the other of it."""
    one = convert_cycles(1.0, unit, work)
    return one / value if unit.endswith("/s") else value / one


def _residence(answer: EcmAnswer) -> str:
    """The innermost level that has room for all arrays, or the edge between it and the next; where the extent of one is
    not declared, the outermost level that lines come from."""
    machine, data = answer.machine, declared_bytes(answer.nest, answer.sizes)
    names = machine.residence_levels
    if data is None:
        busy = [path.loads + path.stores >= _LINES for path in answer.traffic.paths]
        return names[max((at for at, moves in enumerate(busy, 1) if moves), default=0)]
    for level, outer in zip(machine.levels, names[1:], strict=True):
        if data <= _EDGE[0] * level.size_bytes:
            return level.name
        if data <= _EDGE[1] * level.size_bytes:
            return f"edge {level.name}/{outer}"
    return names[-1]


def _share(cores: int, machine: Machine) -> str:
    domain = machine.topology.cores_per_numa_domain
    if cores == 1:
        return "one core"
    return "part of a domain" if cores < domain else "full domain" if cores == domain else "beyond a domain"


def _groups(judged: Sequence[JudgedSeries]) -> tuple[PointGroup, ...]:
    single = _chosen(judged, lambda _, point: "all points of one core" if point.point.cores == 1 else None)
    kinds: Mapping[str, Callable[[JudgedSeries, JudgedPoint], str | None]] = {
        "machine": lambda one, _: one.machine,
        "residence": lambda _, point: point.residence,
        "class": lambda one, _: one.series.kind or None,
        "size": lambda _, point: _size_name(max(point.point.sizes.values(), default=0)),
        "machine and residence": lambda one, point: f"{one.machine} {point.residence}",
    }
    found = [PointGroup("one core", name, summaries(items)) for name, items in single.items()]
    found += groups_by(next(iter(single.values()), []), kinds)
    several = _chosen(judged, lambda _, point: point.share if point.point.cores > 1 else None)
    found += [PointGroup("cores", name, summaries(items)) for name, items in several.items()]
    domains = _chosen(judged, lambda one, point: f"{one.machine} {point.share}" if point.point.cores > 1 else None)
    found += [PointGroup("machine and cores", name, summaries(items)) for name, items in sorted(domains.items())]
    return tuple(found)


def groups_by(
    judged: Sequence[JudgedSeries], kinds: Mapping[str, Callable[[JudgedSeries, JudgedPoint], str | None]]
) -> Iterator[PointGroup]:
    """The errors by each grouping that has several groups; `kinds` name the group of a point, None: it has none."""
    for grouping, name_of in kinds.items():
        named = _chosen(judged, name_of)
        if len(named) > 1:
            yield from (PointGroup(grouping, name, summaries(items)) for name, items in sorted(named.items(), key=_key))


def _key(pair: tuple[str, object]) -> tuple[int, str]:
    """Sizes in their order, names by the alphabet."""
    name = pair[0]
    return (_SIZE_NAMES.index(name) if name in _SIZE_NAMES else 0, name)


def _size_name(size: int) -> str:
    return _SIZE_NAMES[bisect_left(_SIZES, size)]


def _chosen(
    judged: Sequence[JudgedSeries], name_of: Callable[[JudgedSeries, JudgedPoint], str | None]
) -> dict[str, list[JudgedSeries]]:
    """By name the series with the points that have it."""
    found: dict[str, list[JudgedSeries]] = {}
    for one in judged:
        parts: dict[str, list[JudgedPoint]] = {}
        for point in one.points:
            name = name_of(one, point)
            if name is not None:
                parts.setdefault(name, []).append(point)
        for name, points in parts.items():
            found.setdefault(name, []).append(replace(one, points=tuple(points)))
    return found


def summaries(judged: Sequence[JudgedSeries]) -> dict[str, ErrorSummary]:
    """The summary of every predictor, ours first."""
    names = dict.fromkeys(name for one in judged for point in one.points for name in point.peers)
    ours = [[point.error_percent for point in one.points] for one in judged]
    found = {OURS: _summary(ours)}
    for name in names:
        errors = [[100 * (p.peers[name] / p.measured - 1) for p in one.points if name in p.peers] for one in judged]
        found[name] = _summary([part for part in errors if part])
    return found


def _summary(errors: Sequence[Sequence[float]]) -> ErrorSummary:
    every = [abs(error) for part in errors for error in part]
    means = fmean(fmean(map(abs, part)) for part in errors)
    return ErrorSummary(len(errors), len(every), means, fmean(map(fmean, errors)), median(every))


def _traffic(judged: Sequence[JudgedSeries]) -> tuple[TrafficError, ...]:
    """How far the bytes over each path are from those measured, where any were."""
    paths = dict.fromkeys(path for one in judged for point in one.points for path in point.moved)
    found = []
    for path in paths:
        errors = [
            [100 * abs(p.moved[path] / p.point.traffic[path] - 1) for p in one.points if _moves(p, path)]
            for one in judged
        ]
        errors = [part for part in errors if part]
        if errors:
            every = [error for part in errors for error in part]
            found.append(TrafficError(path, len(errors), len(every), fmean(map(fmean, errors)), median(every)))
    return tuple(found)


_MOVES = 1.0
"""Bytes per iteration that are worth comparing."""


def _moves(point: JudgedPoint, path: str) -> bool:
    """Whether data lie beyond this path, so that its bytes tell something; those of a set within a cache do not."""
    outside = point.residence == "Mem"
    return outside and path in point.moved and point.point.traffic[path] > _MOVES
