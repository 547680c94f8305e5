"""The lines that a nest keeps in use while a loop iterates, per array and relative to its start: plain numbers.

What is touched in one iteration of a loop has to stay in a cache if the next iteration is to find it again. Where the
arrays begin decides which of these lines share a set; how many there are, and how they lie within each array, does not
depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import TYPE_CHECKING

from kernmodel.traffic.conditions.streams import SizedNest, Stream
from kernmodel.traffic.conditions.windows import is_dense
from kernmodel.traffic.simulation.array_layout import ArrayReach, declared_order, reaches_of
from kernmodel.traffic.simulation.program import declared_bytes
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.traffic.simulation.work import Work

_FARTHEST = 4
"""Most iterations of a loop between two uses of a line that are looked for."""

_ASKED_LATELY = 128
"""For so many loops and caches the stretches are remembered."""

_MANY = 256
"""More stretches of one array than this are taken to spread evenly."""


@dataclass(frozen=True, slots=True)
class ReferenceGroup:
    """References to one array that move alike.

    Attributes:
        array: its name.
        element_bytes: size of an element.
        strides: bytes per iteration of each loop, outermost first, signed.
        places: where the references are in the middle of the nest, in bytes from the start of the array.
    """

    array: str
    element_bytes: int
    strides: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """What a nest touches.

    Attributes:
        variables: of the loops, outermost first.
        trips: iterations of each; a mean where they depend on outer loops.
        arrays: in the order in which they are declared.
        groups: at least one per array that moves.
        divided: variables of loops of which other cores have iterations, too.
    """

    variables: tuple[str, ...]
    trips: tuple[int, ...]
    arrays: tuple[ArrayReach, ...]
    groups: tuple[ReferenceGroup, ...]
    divided: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LiveStretch:
    """A stretch of memory whose lines are in use.

    Attributes:
        array, begin, length: where it lies, in bytes from the start of the array.
        weight: how many such stretches there are at this place modulo the sets of the cache.
        reused: whether the next iterations touch its lines again.
    """

    array: str
    begin: int
    length: int
    weight: float
    reused: bool


def working_set_of_streams(sized: SizedNest) -> WorkingSet:
    """The working set of a nest as layer conditions have it."""
    trips = tuple(max(1, round(trip.value)) for trip in sized.trips)
    groups = tuple(_group_of(stream, trips) for stream in sized.streams)
    nest = sized.prepared.nest
    arrays = []
    for name in declared_order(nest):
        own = [group for group in groups if group.array == name]
        low = min(place + _reach(group, trips, -1) for group in own for place in group.places)
        high = max(place + _reach(group, trips, 1) + group.element_bytes for group in own for place in group.places)
        declared, element = declared_bytes(nest, name, sized.values), nest.arrays[name].element.size_bytes
        arrays.append(ArrayReach(name, min(0, low), max(declared, high), element))
    return WorkingSet(sized.variables, trips, tuple(arrays), groups, nest.divided)


def _group_of(stream: Stream, trips: Sequence[int]) -> ReferenceGroup:
    strides = tuple(round(stride.value) for stride in stream.strides)
    middle = int(stream.start) + sum(stride * (trip // 2) for stride, trip in zip(strides, trips, strict=True))
    first = stream.references[0]
    places = {
        middle
        + int(reference.offset.value - first.offset.value)
        + int(
            sum(
                stride * (mine.value - its.value)
                for stride, mine, its in zip(strides, reference.shift, first.shift, strict=True)
            )
        )
        for reference in stream.references
    }
    return ReferenceGroup(stream.array, stream.element_bytes, strides, tuple(sorted(places)))


def _reach(group: ReferenceGroup, trips: Sequence[int], sign: int) -> int:
    """How far a group gets from the middle of the nest, toward lower (−1) or higher (1) addresses."""
    halves = ((trip - 1 - trip // 2, trip // 2) for trip in trips)
    moved = 0
    for stride, (after, before) in zip(group.strides, halves, strict=True):
        moved += sign * max(sign * stride * after, -sign * stride * before)
    return moved


def working_set_of_program(work: Work) -> WorkingSet:
    """The working set of a nest as the simulation executes it; indices from index arrays are left out."""
    nest, loops = work.nest, work.program.loops
    trips = tuple(
        max(1, round(inside / max(1, around))) for around, inside in zip(work.bodies, work.bodies[1:], strict=False)
    )
    middle = work.values_at(len(loops) - 1, (0.5,) * len(loops))
    found: dict[tuple[str, int, tuple[int, ...]], set[int]] = {}
    for each in nest.references:
        if each.reference.indirections:
            continue
        address = each.reference.address
        place = address.constant + sum(c * value for c, value in zip(address.coefficients, middle, strict=True))
        strides = tuple(c * loop.step for c, loop in zip(address.coefficients, loops, strict=True))
        found.setdefault((each.access.array, each.reference.size_bytes, strides), set()).add(place)
    groups = tuple(ReferenceGroup(*key, tuple(sorted(places))) for key, places in found.items())
    variables = tuple(loop.variable for loop in nest.nest.loops)
    return WorkingSet(variables, trips, reaches_of(nest), groups, nest.nest.divided)


@lru_cache(maxsize=_ASKED_LATELY)
def live_stretches(working_set: WorkingSet, loop: int, turn: int, line_bytes: int) -> tuple[LiveStretch, ...]:
    """The stretches that must stay if what one iteration of a loop touches is to be found again by the next ones.

    Doubts and layouts ask about the same ones, of caches that cores share or do not, time and again.

    Args:
        loop: number of the loop; −1 for the repetition of the whole nest.
        turn: bytes after which a cache is at the same set again.
    """
    steps = {group: _steps_to_reuse(group, working_set.trips, loop, line_bytes) for group in working_set.groups}
    if not any(steps.values()):
        return ()
    window = max(1, *steps.values())
    found: list[LiveStretch] = []
    for group, step in steps.items():
        found += _stretches(group, working_set.trips, loop, window, turn, line_bytes, reused=step > 0)
    return tuple(found)


def _dense_and_apart(
    group: ReferenceGroup, trips: Sequence[int], loop: int, line_bytes: int
) -> tuple[int, int, list[tuple[int, int]]]:
    """The stretch that the loops inside run through: its length, its begin before the middle, and the (stride, trips)
    of the loops that repeat it at a distance."""
    inside = [(abs(group.strides[k]), trips[k]) for k in range(loop + 1, len(trips)) if group.strides[k]]
    length, back, apart = group.element_bytes, 0, list[tuple[int, int]]()
    for stride, count in sorted(inside):
        if not apart and is_dense(stride, length, line_bytes):
            length += stride * (count - 1)
            back += stride * (count // 2)
        else:
            apart.append((stride, count))
    return length, back, apart


def _steps_to_reuse(group: ReferenceGroup, trips: Sequence[int], loop: int, line_bytes: int) -> int:
    """Iterations of a loop after which references of a group come to lines that one of them has touched; 0: never."""
    stride = group.strides[loop] if loop >= 0 else 0
    if not stride:
        return 1
    length, _, _ = _dense_and_apart(group, trips, loop, line_bytes)
    near = max(length, line_bytes)
    for steps in range(1, _FARTHEST + 1):
        moved = steps * stride
        if any(abs(one - other - moved) < near for one in group.places for other in group.places):
            return steps
    return 0


def _stretches(
    group: ReferenceGroup, trips: Sequence[int], loop: int, window: int, turn: int, line_bytes: int, *, reused: bool
) -> Iterator[LiveStretch]:
    length, back, apart = _dense_and_apart(group, trips, loop, line_bytes)
    moves, weight = [], 1.0
    for stride, count in apart:
        period = turn // gcd(stride, turn)
        moves.append([(step - count // 2) * stride for step in range(min(count, period))])
        weight *= max(1.0, count / period)
    if loop >= 0 and group.strides[loop]:
        moves.append([step * group.strides[loop] for step in range(window)])
    starts = len(group.places) * prod(len(each) for each in moves)
    if starts > _MANY:
        yield LiveStretch(group.array, group.places[0], int(starts * weight * max(length, line_bytes)), 1.0, reused)
        return
    begins = sorted({place - back + sum(offset) for place in group.places for offset in product(*moves)})
    first = last = begins[0]
    for begin in begins[1:]:
        if begin > last + length:
            yield LiveStretch(group.array, first, last + length - first, weight, reused)
            first = begin
        last = begin
    yield LiveStretch(group.array, first, last + length - first, weight, reused)


@dataclass(frozen=True, slots=True)
class SetLines:
    """The lines of one array over the sets of a cache, for a start at the first set.

    Attributes:
        lines, reused: how many there are, and how many are reused.
        changes: by set, how many more lines there are than in the set before, and how many more that are reused.
    """

    lines: float
    reused: float
    changes: Mapping[int, tuple[float, float]]


def set_lines(stretches: Sequence[LiveStretch], sets: int, line_bytes: int) -> dict[str, SetLines]:
    """The lines of each array over the sets of a cache."""
    return {
        array: _set_lines([each for each in stretches if each.array == array], sets, line_bytes)
        for array in dict.fromkeys(each.array for each in stretches)
    }


def _set_lines(stretches: Iterable[LiveStretch], sets: int, line_bytes: int) -> SetLines:
    lines = reused = 0.0
    changes: dict[int, tuple[float, float]] = {}
    for each in stretches:
        first = each.begin // line_bytes
        count = (each.begin + each.length - 1) // line_bytes - first + 1
        again = each.weight if each.reused else 0.0
        lines, reused = lines + count * each.weight, reused + count * again
        for place, sign in ((first % sets, 1), ((first + count) % sets, -1)):
            more, more_again = changes.get(place, (0.0, 0.0))
            changes[place] = more + sign * each.weight, more_again + sign * again
    return SetLines(lines, reused, changes)


def lines_over_sets(
    arrays: Mapping[str, SetLines], bases: Mapping[str, int], sets: int, line_bytes: int
) -> list[tuple[float, float, int]]:
    """How many lines share each set: (lines, those of them that are reused, number of such sets) for runs of sets."""
    changes: dict[int, tuple[float, float]] = {0: (0.0, 0.0)}
    for name, array in arrays.items():
        begin = bases[name] // line_bytes
        for place, (more, more_reused) in array.changes.items():
            place = (place + begin) % sets  # noqa: PLW2901
            known = changes.get(place, (0.0, 0.0))
            changes[place] = known[0] + more, known[1] + more_reused
    runs, lines, reused, ordered = [], 0.0, 0.0, sorted(changes)
    for place, following in zip(ordered, (*ordered[1:], sets), strict=True):
        more, more_reused = changes[place]
        lines, reused = lines + more, reused + more_reused
        runs.append((lines, reused, following - place))
    # the changes say how sets differ; what all have follows from the whole
    rest = (sum(each.lines for each in arrays.values()) - sum(n * count for n, _, count in runs)) / sets
    again = (sum(each.reused for each in arrays.values()) - sum(n * count for _, n, count in runs)) / sets
    return [(lines + rest, reused + again, count) for lines, reused, count in runs]
