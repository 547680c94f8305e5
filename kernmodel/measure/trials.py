"""Trials: all figures of one core measured one after the other, and then all again.

Rounds one right after the other meet the same neighbours, so that they confirm one another and are wrong together.
Trials are tens of seconds apart; what two of them agree on is taken for the host's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import median
from typing import TypeVar

from kernmodel.errors import Note
from kernmodel.machine.overlap import Overlap
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import (
    ACCESS_BYTES,
    MIXES,
    PRIVATE,
    measure_bandwidths,
    mix_name,
    point_of,
)
from kernmodel.measure.composition import judged_compositions, measure_mixed
from kernmodel.measure.first_cache import measure_first_cache
from kernmodel.measure.host import Effort, Harness
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.lines_beside import (
    measure_lines_beside,
    measure_loads_beside,
    measure_many_streams,
    measure_vectors_beside,
)
from kernmodel.measure.model import (
    BandwidthPoint,
    Bandwidths,
    CacheShare,
    Compositions,
    LinesBeside,
    LoadsBeside,
    ManyStreams,
    MixedStreams,
    PassedPoint,
    Peaks,
    Runs,
    VectorsBeside,
)
from kernmodel.measure.peaks import PeakKind, measure_peaks
from kernmodel.measure.runs import measure_runs
from kernmodel.measure.samples import REPEATED, Figure, is_repeated, repeated
from kernmodel.measure.shared_cache import measure_share, usable_bytes
from kernmodel.value_types import dataclass

RATIOS = ("load", "store", "copy", "stream", "load4_store", "load8_store")
"""Mixes that are measured with narrower accesses too, for every ratio of loads and stores one."""
Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured, and how often.

    Attributes:
        mixes: of the widest accesses; narrow: whether `RATIOS` are measured with narrower ones too.
        peaks: kinds; beyond: whether runs, shared caches, page size and mixed streams are measured.
        effort: of a figure in a trial; least, most: trials that are made, down to two where they take longer than
            `seconds`, or than `patience` while streams of a level are not confirmed.
    """

    mixes: tuple[str, ...]
    peaks: tuple[PeakKind, ...]
    effort: Effort
    narrow: bool = False
    beyond: bool = True
    least: int = 6
    most: int = 9
    seconds: float = 100.0
    patience: float = 240.0


@dataclass(frozen=True, slots=True)
class OneCore:
    """Figures of one core, of one trial or of several together.

    Attributes:
        share: of the outermost cache, its level "" where nothing beyond streams and peaks was measured.
        small_pages: cycles per line of a load stream from memory in pages of 4 KiB; None: not measured.
        small_cost: by how much that is longer than in huge pages, of several trials the median; None: not told.
        beside: a line from memory beside lines of each cache; empty: not measured.
        first: lines of the second cache that come again, by what passes before; empty: not measured.
        vectors, loads: what is executed beside a line from memory and lines of the last cache; empty: not measured.
        many: passes over more streams than the core follows.
        mixed: of each trial that could compose; compositions: by all of them.
        trials: how many were made; notes: what is not confirmed, or differs from trial to trial.
    """

    bandwidths: Bandwidths
    peaks: Peaks
    runs: Runs = Runs((), ())
    share: CacheShare = CacheShare("", (), None, ())
    small_pages: BandwidthPoint | None = None
    small_cost: Figure | None = None
    beside: tuple[LinesBeside, ...] = ()
    vectors: tuple[VectorsBeside, ...] = ()
    loads: tuple[LoadsBeside, ...] = ()
    first: tuple[PassedPoint, ...] = ()
    many: ManyStreams = ManyStreams(None, ())
    mixed: tuple[MixedStreams, ...] = ()
    compositions: Compositions = Compositions((), ())
    trials: int = 1
    notes: tuple[Note, ...] = ()


def measure_one_core(
    harness: Harness, topology: HostTopology, plan: Plan, carried: Overlap, progress: Progress = lambda what: None
) -> OneCore:
    """Figures of one core by as many trials as the plan has time for, until each is confirmed by two.

    Args:
        carried: a composition that is judged with the usual ones.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    trials: list[OneCore] = []
    begin = time.monotonic()
    busy = False
    while True:
        start = time.monotonic()
        # what is told is told early; on a busy host the others get more time with each trial
        longer = 1 + 2 * len(trials) if busy else 1
        effort = replace(plan.effort, seconds=longer * plan.effort.seconds)
        trials.append(_trial(harness, topology, replace(plan, effort=effort), trials, progress))
        now = time.monotonic()
        busy = not _streams_told(trials)
        settled = all(is_repeated(figures, shared=shared) for _, shared, figures in _figures(trials))
        enough = len(trials) >= (plan.least if settled else plan.most)
        most = max(plan.seconds, plan.patience) if busy else plan.seconds
        late = now - begin + (now - start) > most and len(trials) >= min(_LEAST_TRIALS, plan.most)
        if enough or late:
            return merged(trials, carried)


_LEAST_TRIALS = 2
"""Trials that are made however long they take, where several are to be, and that have to tell a difference: the rounds
of one do not say how far to trust it."""


def _trial(
    harness: Harness, topology: HostTopology, plan: Plan, before: Sequence[OneCore], progress: Progress
) -> OneCore:
    """All figures once; what is not confirmed is tried again only where no other trial follows."""

    def tell(what: str) -> None:
        progress(f"trial {len(before) + 1}: {what}")

    effort = plan.effort
    streams = partial(measure_bandwidths, harness, topology, twice=plan.most == 1, effort=effort, progress=tell)
    found = streams(mixes=plan.mixes)
    if plan.narrow:
        widths = tuple(width for width in ACCESS_BYTES if width < x86.vector_bytes())
        more = streams(mixes=RATIOS, widths=widths)
        points, notes = (*found.points, *more.points), (*found.notes, *more.notes)
        found = replace(found, points=points, huge=found.huge and more.huge, notes=notes)
    peaks = measure_peaks(harness, plan.peaks, effort=effort, progress=tell)
    if not plan.beyond:
        return OneCore(found, peaks)
    outside = effort.beside_others()
    runs = measure_runs(harness, topology, effort=outside, progress=tell)
    share = measure_share(harness, topology, effort=outside, progress=tell)
    small = streams(levels=("Mem",), mixes=("load",), huge=False)
    beside = measure_lines_beside(harness, topology, effort=outside, progress=tell)
    vectors = measure_vectors_beside(harness, topology, effort=outside, progress=tell)
    loads = measure_loads_beside(harness, topology, effort=outside, progress=tell)
    first = measure_first_cache(harness, topology, effort=effort, progress=tell)
    many = measure_many_streams(harness, topology, effort=outside, progress=tell)
    plain = _plain(topology, [*(one.bandwidths.points for one in before), found.points])
    mixed = (measure_mixed(harness, topology, plain, effort=effort, progress=tell),) if plain else ()
    pages = next(iter(small.points), None)
    return OneCore(found, peaks, runs, share, pages, None, beside, vectors, loads, first, many, mixed)


def _streams_told(trials: Sequence[OneCore]) -> bool:
    """Whether the streams of all levels are confirmed, without which a machine file says nothing of a level."""
    return all(point.cycles_per_line.confirmed for point in _merged_points([one.bandwidths.points for one in trials]))


def _plain(topology: HostTopology, trials: Sequence[Sequence[BandwidthPoint]]) -> dict[str, float]:
    """Cycles per line of a load stream by level; empty where one of them is not confirmed."""
    found = {
        point.level: point.cycles_per_line
        for point in _merged_points(trials)
        if (point.mix, point.width_bytes) == ("load", x86.vector_bytes())
    }
    if tuple(found) != topology.level_names or not all(figure.confirmed for figure in found.values()):
        return {}
    return {level: figure.value for level, figure in found.items()}


def merged(trials: Sequence[OneCore], carried: Overlap) -> OneCore:
    """The figures of several trials, each as `repeated` takes it; in huge pages where all were."""
    first = trials[0]
    points = _merged_points([one.bandwidths.points for one in trials])
    peaks = tuple(
        replace(same[0], per_cycle=repeated([one.per_cycle.inverse(1.0) for one in same]).inverse(1.0))
        for same in zip(*(one.peaks.peaks for one in trials), strict=True)
    )
    runs = tuple(
        replace(same[0], cycles_per_line=repeated([one.cycles_per_line for one in same], shared=True))
        for same in zip(*(one.runs.points for one in trials), strict=True)
    )
    share = _merged_points([one.share.points for one in trials])
    small = _merged_points([(one.small_pages,) for one in trials if one.small_pages is not None])
    mixed = tuple(one for trial in trials for one in trial.mixed)
    compositions = judged_compositions(mixed, carried) if first.share.level else Compositions((), ())
    told = dict.fromkeys(note for one in trials for note in one.bandwidths.notes)
    kept = (note for note in told if note.code != "not-confirmed")
    clock, huge = median(one.bandwidths.clock_hz for one in trials), all(one.bandwidths.huge for one in trials)
    return OneCore(
        Bandwidths(points, clock, huge, ()), Peaks(peaks, clock, ()), Runs(runs, ()),
        CacheShare(first.share.level, share, usable_bytes(share), ()), next(iter(small), None), _small_cost(trials),
        _merged_passes([one.beside for one in trials]), _merged_passes([one.vectors for one in trials]),
        _merged_passes([one.loads for one in trials]), _merged_passes([one.first for one in trials], shared=False),
        _merged_many([one.many for one in trials]), mixed,
        compositions,
        len(trials), (*kept, *compositions.notes, *_notes(trials)),
    )  # fmt: skip


_Pass = TypeVar("_Pass", LinesBeside, VectorsBeside, LoadsBeside, PassedPoint)


def _merged_passes(trials: Sequence[Sequence[_Pass]], *, shared: bool = True) -> tuple[_Pass, ...]:
    """Passes that all trials have measured; `shared`: with lines of caches or memory that others use, too."""
    return tuple(
        replace(same[0], cycles=repeated([one.cycles for one in same], shared=shared))
        for same in zip(*trials, strict=True)
    )


def _merged_points(trials: Sequence[Sequence[BandwidthPoint]]) -> tuple[BandwidthPoint, ...]:
    return tuple(
        point_of(
            MIXES[same[0].mix], same[0].level, same[0].width_bytes, same[0].total_bytes,
            repeated([one.cycles_per_line for one in same], shared=same[0].level not in PRIVATE),
        )
        for same in zip(*trials, strict=True)
    )  # fmt: skip


def _small_cost(trials: Sequence[OneCore]) -> Figure | None:
    """Cycles by which a line that is loaded from memory takes longer in pages of 4 KiB: the median of the trials, each
    its own difference, since memory is faster or slower from one trial to the next. None where too few tell it."""
    pairs = []
    for one in trials:
        load = next((p for p in one.bandwidths.points if (p.level, p.mix) == ("Mem", "load")), None)
        if one.bandwidths.huge and load is not None and one.small_pages is not None:
            pairs.append((one.small_pages.cycles_per_line, load.cycles_per_line))
    told = sorted(max(0.0, small.value - huge.value) for small, huge in pairs if small.confirmed and huge.confirmed)
    if len(told) < min(len(trials), _LEAST_TRIALS):
        return None
    accepted, refused = (sum(getattr(small, name) for small, _ in pairs) for name in ("accepted", "refused"))
    return Figure(median(told), told[0], told[-1], accepted, refused, True)


def _merged_many(trials: Sequence[ManyStreams]) -> ManyStreams:
    """The passes of the trials that found the same number of streams, if these are at least two of several: what a pass
    takes longer is a difference, of which both parts have to be of one trial."""
    found = [one.followed for one in trials]
    followed = max(found, key=found.count)
    if followed is None or (len(found) > 1 and found.count(followed) == 1):
        return ManyStreams(None, ())
    return ManyStreams(followed, tuple(step for one in trials if one.followed == followed for step in one.passes))


def _figures(trials: Sequence[OneCore]) -> Iterator[tuple[str, bool, list[Figure]]]:
    """The figures of all trials by name, and whether they are of what others use, too."""
    found: dict[str, tuple[bool, list[Figure]]] = {}
    for trial in trials:
        for name, shared, figure in _of_trial(trial):
            found.setdefault(name, (shared, []))[1].append(figure)
    for name, (shared, figures) in found.items():
        yield name, shared, figures


def _of_trial(trial: OneCore) -> Iterator[tuple[str, bool, Figure]]:
    """The same of one trial; names have no commas, since they are listed."""
    for point in trial.bandwidths.points:
        yield f"{point.level} {mix_name(point)}", point.level not in PRIVATE, point.cycles_per_line
    for peak in trial.peaks.peaks:
        yield peak.name, False, peak.per_cycle.inverse(1.0)
    for run in trial.runs.points:
        yield f"runs of {run.run_bytes} B" + f" of {run.streams} streams" * (run.streams > 1), True, run.cycles_per_line
    for point in trial.share.points:
        yield f"{point.total_bytes / 2**20:.3g} MiB in {point.level}", True, point.cycles_per_line
    if trial.small_pages is not None:
        yield "Mem load in pages of 4 KiB", True, trial.small_pages.cycles_per_line
    for one in trial.beside:
        where = "memory" if one.outer == "Mem" else one.outer
        yield f"{one.count} lines of {one.level} beside one of {where}", True, one.cycles
    for written in trial.vectors:
        yield f"{written.vectors} vectors beside lines", True, written.cycles
    for passed in trial.first:
        yield f"lines behind {passed.passed_bytes / 1024:g} KiB", False, passed.cycles
    for loaded in trial.loads:
        yield f"{loaded.loads} loads beside lines", True, loaded.cycles
    for step in trial.many.passes:
        how = f"{step.streams} lines of few streams" if step.single else f"{step.streams} streams"
        yield f"{how} with {step.loaded} from memory", True, step.cycles
    for mixed in trial.mixed:
        for beside in mixed.beside:
            yield beside.name, beside.outer not in PRIVATE, beside.cycles


def _notes(trials: Sequence[OneCore]) -> Iterator[Note]:
    """What no trial confirms, and what differs from trial to trial."""
    refused, differing = [], []
    for name, shared, figures in _figures(trials):
        figure = repeated(figures, shared=shared)
        if not figure.confirmed:
            refused.append(f"{name} ({figure.accepted} of {figure.accepted + figure.refused})")
        if len(trials) > 1 and figure.confirmed and not is_repeated(figures, shared=shared):
            told = sum(one.confirmed for one in figures)
            differing.append(f"{name} {f'{figure.spread_percent:.0f} %' if told > 1 else 'once'}")
    if refused:
        why = "too few samples count (so many of all), or no two rounds or trials agree: probe a quieter host"
        yield Note("not-confirmed", f"figures that are not judged, since {why}: {', '.join(refused)}")
    if differing:
        what = f"figures that no two of {len(trials)} trials confirm within {REPEATED:.0%}, with their spread"
        yield Note("not-repeated", f"{what}: {', '.join(differing)}")
