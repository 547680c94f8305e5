"""Layer conditions: every reuse with the cache volume it needs, judged against every cache and solved for the sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from math import prod

from kernmodel.formulas.formula import Formula
from kernmodel.formulas.terms import Number
from kernmodel.machine.model import Machine
from kernmodel.traffic.conditions.cache_sets import FewSets, Room
from kernmodel.traffic.conditions.quantities import Size
from kernmodel.traffic.conditions.reuse import Analysis, StreamReuse
from kernmodel.traffic.conditions.streams import SizedNest
from kernmodel.traffic.conditions.windows import SWEEP, Window
from kernmodel.traffic.model import LayerCondition, Reuse, SharedSets
from kernmodel.units import format_bytes
from kernmodel.value_types import LateMapping, dataclass

Transition = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class Saving:
    """One reuse, and the `lines` per unit of work that it saves."""

    window: Window
    carrier: str
    array: str
    access: str
    source: str
    lines: float


@dataclass(frozen=True, slots=True)
class Requirement:
    """A volume, the windows and reuses that need it, and how many references hit and miss where no larger one fits."""

    volume: Size
    windows: tuple[Window, ...]
    reuses: tuple[Reuse, ...]
    hits: int
    misses: int


def layer_conditions_of(
    analysis: Analysis, requirements: Sequence[Requirement], machine: Machine, rooms: Sequence[Room]
) -> tuple[LayerCondition, ...]:
    """All conditions of all caches, innermost cache first, per cache the one that needs least first.

    Args:
        analysis: the reuse of the nest; requirements: what it needs.
        machine: gives the caches their names.
        rooms: what a core has of each cache.
    """
    return tuple(
        _condition(level.name, room, requirement, analysis)
        for level, room in zip(machine.levels, rooms, strict=True)
        for requirement in requirements
    )


def volumes_of(analysis: Analysis) -> dict[tuple[str, ...], float]:
    """The bytes that each reuse needs, whatever caches there are, by the loop that carries it, array and references."""
    found = (saving for reuse in analysis.reuses for saving in savings(reuse, analysis, Fraction(1)))
    return {(s.carrier, s.array, s.access, s.source): float(analysis.volume(s.window).value) for s in found}


def requirements_of(analysis: Analysis, unit: Fraction) -> list[Requirement]:
    """The distinct volumes that reuses need, smallest first; `unit` is the iterations in a unit of work."""
    gathered: dict[object, tuple[Size, list[Saving]]] = {}
    for reuse in analysis.reuses:
        for saving in savings(reuse, analysis, unit):
            needed = analysis.volume(saving.window)
            gathered.setdefault(analysis.condition_key(saving.window), (needed, []))[1].append(saving)
    ordered = sorted(gathered.values(), key=lambda item: item[0].value)
    return [_requirement(analysis, needed, saved) for needed, saved in ordered]


def _requirement(analysis: Analysis, needed: Size, saved: Sequence[Saving]) -> Requirement:
    formula = needed.formula
    reuses = tuple(Reuse(s.array, s.access, s.carrier, s.source, formula, float(needed.value), s.lines) for s in saved)
    hits = references = 0
    for reuse, misses in zip(analysis.reuses, analysis.misses_in(Room(float(needed.value))), strict=True):
        references += len(misses)
        hits += sum(2 * m.misses.value < reuse.base.value for m in misses)
    windows = tuple({saving.window.key: saving.window for saving in saved}.values())
    return Requirement(needed, windows, reuses, hits, references - hits)


def loop_name(carrier: int, nest: SizedNest) -> str:
    """The loop variable that carries a reuse, "sweep", or the nest whose lines are found."""
    if carrier < SWEEP:
        return nest.neighbours[SWEEP - 1 - carrier].label
    return "sweep" if carrier == SWEEP else nest.variables[carrier]


def savings(reuse: StreamReuse, analysis: Analysis, unit: Fraction) -> Iterator[Saving]:
    """All reuse of a stream; `unit` is the iterations in a unit of work."""
    stream, first, nest = reuse.stream, reuse.stream.references[0], analysis.nest
    for link in reuse.links:
        if link.window is not None and link.possible and link.reference.order not in analysis.reloaded:
            lines = float(reuse.base.value * unit * link.fresh.value / analysis.line_bytes)
            texts = link.reference.access.text, link.source.access.text
            yield Saving(link.window, loop_name(link.window.carrier, nest), stream.array, *texts, lines)
    yield from _end_savings(reuse, analysis, unit)
    if first.order in analysis.reloaded:
        return
    lone, leader = reuse.base, first.access
    for own in reuse.selves:
        lines = float((lone.value - own.rate.value) * unit)
        yield Saving(own.window, loop_name(own.found_after, nest), stream.array, leader.text, leader.text, lines)
        lone = own.rate


def _end_savings(reuse: StreamReuse, analysis: Analysis, unit: Fraction) -> Iterator[Saving]:
    """The lines at ends of rows that another stream's row has touched."""
    line_bytes, known = analysis.line_bytes, set[tuple[int, object, int]]()
    levels = [(reuse.base, reuse.rows), *((own.rate, own.rows) for own in reuse.selves)]
    ends = ((rate, among, end) for rate, among in levels if among for end in among.shared)
    for rate, rows, end in ends:
        if end.window is None or end.reference.order in analysis.reloaded:
            continue
        lines = float(rows.saved(end, line_bytes) * line_bytes / rate.denominator.value * unit)
        key = end.reference.order, end.window.key, end.distance
        if lines and key not in known:
            known.add(key)
            loop = loop_name(end.window.carrier, analysis.nest)
            texts = end.reference.access.text, end.source.access.text
            yield Saving(end.window, loop, reuse.stream.array, *texts, lines)


def _condition(cache: str, room: Room, requirement: Requirement, analysis: Analysis) -> LayerCondition:
    nest, needed, capacity = analysis.nest, requirement.volume, room.capacity
    crowded = _crowded(requirement, room, analysis)
    if crowded is not None:
        needed, capacity = crowded.footprint.volume, crowded.usable
    strides = crowded.footprint.strides_text() if crowded else ""
    symbols = tuple(nest.prepared.nest.symbols)
    breaks_at = LateMapping(partial(_largest_sizes, needed.formula, capacity, symbols, nest.values))
    share = min(analysis.share(window, room) for window in requirement.windows)
    return LayerCondition(
        cache=cache,
        capacity_bytes=capacity,
        required_bytes=needed.formula,
        required=float(needed.value),
        holds=share == 1,
        reuses=requirement.reuses,
        breaks_at=breaks_at,
        solved=LateMapping(partial(_solutions, breaks_at, needed.formula, nest.values, strides)),
        hits=requirement.hits,
        misses=requirement.misses,
        share=float(share),
        few_sets=SharedSets(crowded.footprint.array, crowded.touched, crowded.sets) if crowded else None,
    )


def _largest_sizes(
    required: Formula, capacity: float, symbols: Sequence[str], sizes: Mapping[str, int]
) -> dict[str, int | None]:
    """By symbol, `largest_size`."""
    return {symbol: largest_size(required, capacity, symbol, sizes) for symbol in symbols}


def _solutions(
    breaks_at: Mapping[str, int | None], required: Formula, sizes: Mapping[str, int], strides: str
) -> dict[str, str]:
    """By symbol that the requirement depends on, `solution`."""
    names = required.free_symbols
    return {s: solution(s, largest, required, sizes, strides) for s, largest in breaks_at.items() if s in names}


def _crowded(requirement: Requirement, room: Room, analysis: Analysis) -> FewSets | None:
    """What of the data falls into few sets, if it has less room there than all data have in the whole cache."""
    found = (analysis.few_sets(window, room) for window in requirement.windows)
    crowded = max((use for use in found if use is not None), key=FewSets.share, default=None)
    whole = requirement.volume.value / room.capacity
    return crowded if crowded is not None and crowded.share() > whole else None


def transitions_of(conditions: Sequence[LayerCondition]) -> tuple[Transition, ...]:
    """The sizes at which conditions break, ascending, for the symbol that most of them depend on (else the first)."""
    symbols = conditions[0].breaks_at if conditions else ()
    dependent = {symbol: sum(symbol in condition.solved for condition in conditions) for symbol in symbols}
    symbol = max(dependent, key=lambda name: dependent[name], default="")
    found = [
        (symbol, largest, condition.cache, _transition_text(condition, symbol))
        for condition in conditions
        if (largest := condition.breaks_at.get(symbol))
    ]
    return tuple(sorted(found, key=lambda transition: transition[1]))


def _transition_text(condition: LayerCondition, symbol: str) -> str:
    saved = list(dict.fromkeys(reuse.access for reuse in condition.reuses))
    shown = ", ".join(saved[:3]) + (", …" if len(saved) > 3 else "")
    carried = " and ".join(dict.fromkeys(reuse.carried_by for reuse in condition.reuses))
    over = "repeated sweeps" if carried == "sweep" else carried if carried.startswith("nest ") else f"loop {carried}"
    return (
        f"{condition.solved[symbol]}: reuse over {over} fits {condition.cache} "
        f"({format_bytes(condition.capacity_bytes)}{in_few_sets(condition)}): {shown}"
    )


def in_few_sets(condition: LayerCondition) -> str:
    """The sets that the data of a condition fall into, if these are few: " in 4 of 64 sets"."""
    return f" in {condition.few_sets}" if condition.few_sets else ""


LARGEST = 2**62
"""Sizes beyond this are not looked at: no array has so many elements."""


def largest_size(required: Formula, capacity: float, symbol: str, sizes: Mapping[str, int]) -> int | None:
    """The largest value ≥ 1 of `symbol` for which required ≤ capacity, the other sizes as given.

    Exact: the condition holds at the result and fails at the next value. 0 if it holds for no value; None if it does
    not depend on the symbol or holds for every value. Where a requirement rises and falls with the size, the bound
    nearest to the given size is taken.
    """
    if symbol not in required.free_symbols:
        return None
    value = _function(required, symbol, sizes)

    def holds(size: int) -> bool:
        return value(size) <= capacity

    given = sizes[symbol]
    if holds(given):
        low, high = given, 2 * given
        while holds(high):
            low, high = high, 2 * high
            if high > LARGEST:
                return None
        return _bisect(holds, low, high)
    low, high = given // 2, given
    while low and not holds(low):
        low, high = low // 2, low
    return _bisect(holds, low, high)


def _bisect(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last size that holds, where `low` holds (or is 0) and `high` fails."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _function(required: Formula, symbol: str, sizes: Mapping[str, int]) -> Callable[[int], Number]:
    """The requirement as a function of one size."""
    if required.wholes:
        return lambda size: required.value({**sizes, symbol: size})
    powers: dict[int, Number] = {}
    for monomial, coefficient in required.terms.items():
        others = prod(sizes[name] ** exponent for name, exponent in monomial if name != symbol)
        power = dict[str, int](monomial).get(symbol, 0)
        powers[power] = powers.get(power, 0) + coefficient * others
    terms = tuple(powers.items())
    return lambda size: sum((c * size**power for power, c in terms), start=0)


def solution(symbol: str, largest: int | None, required: Formula, sizes: Mapping[str, int], strides: str = "") -> str:
    """The condition solved for one symbol, as text: "N ≤ 1023 (M = 100)"; `strides` are those it was solved with."""
    others = [f"{name} = {sizes[name]}" for name in sorted(required.free_symbols) if name in sizes and name != symbol]
    others += [strides] if strides else []
    given = f" ({', '.join(others)})" if others else ""
    if largest is None:
        return f"every {symbol}{given}"
    if largest == 0:
        return f"no {symbol}{given}"
    return f"{symbol} ≤ {largest}{given}"
