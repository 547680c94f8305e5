"""Scaling over cores: performance, utilisation and saturation in every ccNUMA domain, by both saturation rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from kernmodel.errors import Note
from kernmodel.machine.cores import SPREAD, Spread, check_cores
from kernmodel.models.outside import OUTSIDE
from kernmodel.studies.predict.division import (
    CoreParts,
    divided,
    division_notes,
    scale_divided,
    spread_of,
    unequal_work,
    working_cores,
)
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.units import Work, convert_cycles, format_bytes, meaningful_units
from kernmodel.value_types import dataclass
from kernmodel.words import plural

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.source.nest.division import Division
    from kernmodel.traffic.model import Reuse, Traffic

ENOUGH = 0.95
"""Share of the best performance that is asked of the fewest cores."""
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """One core count.

    Attributes:
        point: by the recursive latency-aware rule.
        simple_cycles: cycles per unit of work of all cores together by the simple rule min(n·P(1), P_sat) of each
            domain; at most so many where `point` has an interval.
        speedup: over one core; efficiency: speedup / cores.
        limit: what limits there, in a few words ("T_nOL + T_L3Mem of one core", "memory bandwidth of 2 domains").
        fits: what of the shared caches a core still has and which reuse fits there, where that differs from the row
            before ("L3: 2.75 MiB a core; reuse over j (3.7 MiB) no longer fits"; in the first row from
            one core), else "".
        division: of the loop that a pragma divides, None: none does.
    """

    point: ScalingPoint
    simple_cycles: float
    speedup: float
    efficiency: float
    limit: str
    fits: str
    division: Division | None = None


@dataclass(frozen=True, slots=True)
class ScalingAnswer:
    """The answer of `kernmodel scaling`.

    Attributes:
        single: the answer for one core; rows: per core count, ascending.
        spread: how work and threads are spread.
        saturation_simple, saturation_recursive: cores of the first domain that saturate it, by both rules, with the
            shared caches shared by as many; None: they do not.
        best_cores: fewest cores with at least 95 % of the best performance among the rows.
    """

    single: EcmAnswer
    rows: tuple[ScalingRow, ...]
    saturation_simple: int | None
    saturation_recursive: int | None
    best_cores: int
    notes: tuple[Note, ...]
    spread: Spread = SPREAD


def own_rate(work: Work) -> str:
    """The rate in which performance of a kernel is best told: LUP/s, else FLOP/s, else It/s."""
    known = meaningful_units(work)
    return next(unit for unit in ("LUP/s", "FLOP/s", "It/s") if unit in known)


def rate_in(unit: str | None, work: Work) -> str:
    """The rate in which performance is drawn: the unit if it is a rate, else the kernel's own."""
    return unit if unit is not None and unit.endswith("/s") else own_rate(work)


def unit_of_performance(unit: str | None, work: Work) -> str:
    """The unit in which performance is told: the one asked for, else the kernel's own rate.

    Raises:
        UsageError: the unit has no meaning for the kernel.
    """
    shown = unit or own_rate(work)
    convert_cycles(1.0, shown, work)
    return shown


_AnswerAt = Callable[[int, int], EcmAnswer]
"""The answer for one core with so many active in its ccNUMA domain, and so many at work in all."""
_Place = tuple[int, int]
"""Active cores of a domain, and cores at work in all."""


_WORTH_ASKING = 6
"""So many answers that are saved make up for the two traffics that tell whether they are, of places that nobody asks
for."""


def _representatives(places: Sequence[_Place], alike: Callable[[_Place, _Place], bool]) -> dict[_Place, _Place]:
    """By place, one with as many active cores and no more at work that has the same prediction.

    More cores at work leave each a smaller part, more active ones smaller shares of the caches: no condition is nearer
    to failing than with the most active of the fewest at work, or nearer to holding than with the fewest of the most.
    Where conditions are not doubted or simulations agree with them, and all is the same in both cases, it is between
    them, too.

    Args:
        alike: whether the traffics of two places are the same, and layer conditions hold there.
    """
    active, parts = (sorted(set(numbers)) for numbers in zip(*places, strict=True))
    if len(places) < 3:
        return {place: place for place in places}
    worth = len(active) == 1 or len(places) - len(active) >= _WORTH_ASKING
    if worth and alike((active[-1], parts[0]), (active[0], parts[-1])):
        fewest = {one: min(count for other, count in places if other == one) for one in active}
        return {(one, count): (one, fewest[one]) for one, count in places}
    number, values = max(enumerate((active, parts)), key=lambda each: each[1][-1] / each[1][0])
    if not worth:
        number, values = 0, active
    middle = values[len(values) // 2]
    halves = ([place for place in places if (place[number] < middle) is below] for below in (True, False))
    return {place: one for half in halves for place, one in _representatives(half, alike).items()}


def _same_lines(one: Traffic | None, other: Traffic | None) -> bool:
    """Whether the same lines move in two traffics by the same layer conditions, none of which few sets of a cache
    decide."""
    if one is None or other is None or one.paths != other.paths:
        return False
    if any(found.few_sets for found in (*one.conditions, *other.conditions)):
        return False
    first, second = (
        ([found.holds for found in each.conditions], [row.served_by for row in each.accesses]) for each in (one, other)
    )
    return first == second


def _same_notes(one: Traffic | None, other: Traffic | None) -> bool:
    """Whether the same is to be said of two traffics, but for how large the share of a cache is."""
    if one is None or other is None:
        return False
    first, second = ([note for note in each.notes if note.code != "shared-cache"] for each in (one, other))
    return first == second


def scaling(
    kernel: KernelRequest, code: CodeRequest, cores: Sequence[int], *, stages: Stages | None = None
) -> ScalingAnswer:
    """Performance over core counts.

    Args:
        cores: core counts; empty: 1 to all of the machine.
        stages: what is known from other points.

    Raises:
        UsageError: a core count that the machine lacks.
        KernmodelError: any stage's error about its input.
    """
    known = stages or Stages()
    if code.classic:  # textbooks add up the domains
        kernel = replace(kernel, spread=replace(kernel.spread, schedule="dynamic"))
    machine = known.machine(kernel.machine)
    counts = sorted(set(cores)) or list(range(1, machine.topology.cores + 1))
    for count in counts:
        check_cores(machine, count)

    def at(active: int, parts: int) -> Point:
        return Point(replace(kernel, cores=active, parts=parts), code)

    single = known.answer(at(1, 1))
    nest, sizes = single.nest, single.sizes
    same: dict[Hashable, int] = {}
    # numbers of cores whose parts are the same share one answer
    core_parts = CoreParts(nest, kernel.spread, sizes)
    fewest = cache(lambda parts: same.setdefault(core_parts.extent(parts), parts))
    asked_at = cache(lambda active, parts: single if parts == 1 else known.answer(at(active, parts), bounded=False))
    spread, domain = spread_of(nest, kernel.spread), machine.topology.cores_per_numa_domain
    working = [working_cores(divided(nest, kernel.spread, sizes, count), count) for count in counts]
    places = [(active, fewest(count)) for count in working for active in spread.by_domain(machine, count)]
    places += [(active, fewest(active)) for active in range(1, domain + 1)]
    asked = dict.fromkeys(places)
    conditions = cache(lambda place: known.conditions(at(*place)))
    settled = cache(lambda place: known.settled_traffic(at(*place), simulated=place in asked))

    def alike(one: _Place, other: _Place) -> bool:
        if not _same_lines(conditions(one), conditions(other)):
            return False
        # simulations are asked last: none is of a place that nobody asks for
        first, second = sorted((one, other), key=lambda place: place in asked)
        return settled(first) is not None and _same_notes(settled(first), settled(second))

    chosen = _representatives(list(asked), alike)

    def exact(active: int, parts: int) -> EcmAnswer:
        place = active, fewest(parts)
        if chosen[place] == place:
            return asked_at(*place)
        # what a condition needs is all that is told of it, for which no simulation is to be asked
        traffic = conditions(place)
        return replace(answer_at(*place), traffic=traffic) if traffic and traffic.conditions else asked_at(*place)

    def answer_at(active: int, parts: int) -> EcmAnswer:
        return asked_at(*chosen[active, fewest(parts)])

    rows = tuple(_rows(answer_at, exact, counts, kernel.spread))
    enough = ENOUGH * (1 - _ROUNDING) * max(row.point.units_per_cycle for row in rows)
    parts = [working_cores(row.division, row.point.cores) for row in rows]
    asked = dict.fromkeys((active, count) for count in parts for active in spread.by_domain(machine, count))
    used = [answer_at(*one) for one in {(1, 1): None, **asked}]
    told = division_notes(nest, kernel.spread, [row.division for row in rows])
    return ScalingAnswer(
        single=used[0],
        rows=rows,
        saturation_simple=_first(domain, lambda n: _simple_use(answer_at(n, n).prediction, n)),
        saturation_recursive=_first(domain, lambda n: _recursive_use(answer_at(n, n).prediction, n)),
        best_cores=next(row.point.cores for row in rows if row.point.units_per_cycle >= enough),
        notes=tuple(dict.fromkeys((*(note for answer in used for note in answer.notes), *told, *_falls(rows)))),
        spread=spread,
    )


def _rows(answer_at: _AnswerAt, exact: _AnswerAt, counts: Sequence[int], asked: Spread) -> Iterator[ScalingRow]:
    from kernmodel.models.ecm import beyond_channels, together

    single = answer_at(1, 1)
    machine, spread = single.machine, spread_of(single.nest, asked)
    before: Sequence[EcmAnswer] = (single,)
    for count in counts:
        point, made, unequal = scale_divided(
            lambda *active: answer_at(*active).prediction, count, machine, asked, single.nest, single.sizes
        )
        parts = working_cores(made, count)
        filled = spread.by_domain(machine, parts)
        answers = [answer_at(active, parts) for active in filled]
        predictions = {active: answer.prediction for active, answer in zip(filled, answers, strict=True)}
        rates = {n: _simple_rate(one, n) for n, one in predictions.items()}
        rate = together(rates, filled, spread) / max(1.0, beyond_channels(machine, predictions, rates, filled))
        of_domains = [predictions[active] for active in filled]
        rate *= unequal_work(made, of_domains, machine, spread, rate, _simple_rate).all_cores
        fits = _fits(before, answers, single)
        if fits:  # what is needed there is that of these parts
            fits = _fits(before, [exact(active, parts) for active in filled], single)
        speedup = point.units_per_cycle * single.prediction.cycles
        yield ScalingRow(
            point=point,
            simple_cycles=1 / rate if rate else 0.0,
            speedup=speedup,
            efficiency=speedup / count,
            limit=_waiting(made, unequal)
            or _unsure(point, predictions[filled[-1]])
            or _limit(predictions, filled, spread),
            fits=fits,
            division=made,
        )
        before = answers


def _fits(before: Sequence[EcmAnswer], now: Sequence[EcmAnswer], single: EcmAnswer) -> str:
    """What changes in the shared caches of the fullest domain, and of the last one where it is another; the answers are
    those of the domains in use."""
    fullest = cache_effect(before[0], now[0])
    if len(now) == 1:
        return fullest
    last = cache_effect(before[-1] if len(before) == len(now) else single, now[-1])
    return "; ".join(text for text in (fullest, last and f"in the last domain {last}") if text)


_SIGNIFICANT = 0.01
"""Relative change of simulated traffic that is told."""


def cache_effect(before: EcmAnswer, now: EcmAnswer) -> str:
    """What a core has of each shared cache whose reuse differs between two numbers of active cores, and what of the
    reuse fits there or no longer does; "" where nothing differs."""
    if before is now:
        return ""
    shared = [level for level in now.machine.levels if level.cores_sharing > 1]
    texts = []
    for level in shared:
        changed = list((_flips if now.traffic.conditions else _moved)(level.name, before.traffic, now.traffic))
        # bytes that a core has of it: as the conditions count them, else its part of the sets
        sizes = (one.capacity_bytes for one in now.traffic.conditions if one.cache == level.name)
        share = next(sizes, level.size_bytes / min(now.traffic.cores, level.cores_sharing))
        texts += [f"{level.name}: {format_bytes(share)} a core; {', '.join(changed)}"] if changed else []
    return "; ".join(texts)


def _flips(cache: str, before: Traffic, now: Traffic) -> Iterator[str]:
    """The layer conditions that hold with one number of cores only. What they need may differ with it, too."""
    held = {(one.cache, *_saved(reuse)): one.holds for one in before.conditions for reuse in one.reuses}
    needed: dict[tuple[str, bool], dict[str, None]] = {}
    for condition in now.conditions:
        known = (held.get((cache, *_saved(reuse)), condition.holds) for reuse in condition.reuses)
        if condition.cache == cache and any(holds != condition.holds for holds in known):
            loops = ", ".join(dict.fromkeys(reuse.carried_by for reuse in condition.reuses))
            needed.setdefault((loops, condition.holds), {})[format_bytes(condition.required)] = None
    for (loops, holds), sizes in needed.items():
        yield f"reuse over {loops} ({' and '.join(sizes)}) {'fits' if holds else 'no longer fits'}"


def _saved(reuse: Reuse) -> tuple[str, ...]:
    """Which reuse it is, whatever it needs."""
    return reuse.carried_by, reuse.array, reuse.access, reuse.source


def _moved(cache: str, before: Traffic, now: Traffic) -> Iterator[str]:
    """How much more crosses the paths beyond a cache."""
    names = [level.level for level in now.levels]
    if cache not in names:
        return
    path = now.paths[names.index(cache)]
    lines, earlier = (one.lines for one in (path, before.path(path.path)))
    if abs(lines - earlier) > _SIGNIFICANT * max(lines, earlier):
        yield f"{lines:.2f} lines over {path.path} in place of {earlier:.2f}"


def _simple_use(prediction: EcmPrediction, cores: int) -> float:
    """Utilisation of the memory bandwidth by the simple rule, min(1, n·T_Mem/T_ECM)."""
    if prediction.memory_cycles <= 0:
        return 0.0
    return min(1.0, round(cores * prediction.memory_cycles / prediction.cycles, 9))


def _recursive_use(prediction: EcmPrediction, cores: int) -> float:
    """Utilisation of the memory bandwidth by the recursive latency-aware rule."""
    from kernmodel.models.ecm import recursive_use

    return recursive_use(prediction, cores)


def _first(domain: int, used: Callable[[int], float]) -> int | None:
    """The fewest cores of a domain that use all of its bandwidth."""
    return next((n for n in range(1, domain + 1) if used(n) >= 1.0), None)


def _simple_rate(prediction: EcmPrediction, cores: int) -> float:
    """Units of work per cycle of one domain by the simple rule, min(n·P(1), P_sat) (Stengel et al. 2015)."""
    if prediction.cycles <= 0:
        return 0.0
    alone = cores / prediction.cycles
    return alone if prediction.memory_cycles <= 0 else min(alone, 1 / prediction.memory_cycles)


def _limit(predictions: dict[int, EcmPrediction], filled: Sequence[int], spread: Spread) -> str:
    """What limits the domains: the bandwidth of those that are saturated, else what a core does. Where all cores have
    the same work, cores of other domains wait for those of saturated ones."""
    saturated = [active for active in filled if _recursive_use(predictions[active], active) >= 1.0]
    bandwidth = f"memory bandwidth of {len(saturated)} {plural(len(saturated), 'domain')}"
    if len(saturated) == len(filled):
        return bandwidth
    if saturated and spread.schedule != "dynamic":
        return f"{bandwidth}, which the others wait for"
    core = of_core(predictions[filled[-1]])
    return f"{bandwidth}; {core} in the last" if saturated else core


def _unsure(point: ScalingPoint, last: EcmPrediction) -> str:
    """What limits where it is not known whether the domains are saturated; `last` is of the last domain."""
    if point.at_channels:
        return "what the channels of the memory can move in theory"
    if point.saturated is not None:
        return ""
    if point.cycles_interval is not None:
        return f"not known: {point.cycles_interval.cause}"
    return of_core(last) if last.cores == 1 else f"memory bandwidth that {last.cores} cores draw"


def _waiting(made: Division | None, unequal: float) -> str:
    """That the core with the most iterations limits, where it does."""
    if made is None or unequal < _WORTH_A_WORD:
        return ""
    return f"the busiest core: {made.most:.6g} of {made.iterations:.6g} iterations of the divided loop"


_WORTH_A_WORD = 0.01
"""Share of T_ECM from which the time outside the innermost loop is named as a part of it."""


def of_core(prediction: EcmPrediction) -> str:
    """What limits one core, in a few words: the times that make up T_ECM."""
    told = prediction.t_out >= _WORTH_A_WORD * prediction.cycles
    names = tuple(name for name in prediction.binding if told or name != OUTSIDE)
    transfers = {transfer.name for transfer in prediction.transfers}
    first = len([name for name in names if name not in transfers])
    if len(names) > first + 1 and transfers.issuperset(names[first:]):
        names = (*names[:first], "transfers")
    return f"{' + '.join(names) or 'nothing'} of one core"


_SPREAD = 0.01
"""By how much of it performance may fall with the machine's own streams, whose measurements spread as much."""


def _falls(rows: Sequence[ScalingRow]) -> Iterator[Note]:
    """Where more cores are slower, and why."""
    for before, row in pairwise(rows):
        if row.point.cycles_interval is not None:
            continue  # more cores draw no less than the fewer that were measured, which is what they are taken to draw
        now, earlier = row.point.utilization or 0.0, before.point.utilization or 0.0
        fewer = now < earlier and not row.fits
        if row.point.units_per_cycle < before.point.units_per_cycle * (1 - (_SPREAD if fewer else _ROUNDING)):
            because = f": {row.fits}" if row.fits else ": so are the machine's streams" if fewer else ""
            text = f"{row.point.cores} cores are slower than {before.point.cores}{because}"
            yield Note("slower-with-more-cores", text, "assumption")
