"""Reuse in nests whose trip counts follow outer loops: volumes as functions of those, misses as sums over them.

In a triangle the data that one iteration of a loop touches grows or shrinks over the sweep, so a layer condition may
hold for some iterations of the outer loops and fail for the others. The iterations are divided where it changes. Where
one iteration of a loop fits, all that this loop touches is loaded once; elsewhere, what the next loop inside touches is
loaded in each of its iterations. Both are counted as sets of elements (`array_footprints`), in closed form.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from math import ceil, lcm

from kernmodel.errors import Note
from kernmodel.formulas.formula import ZERO, Formula
from kernmodel.formulas.terms import Number, exact
from kernmodel.traffic.conditions.affine_sets import AffineSet, Linear, Piece, beyond, coprime, total_of, variable
from kernmodel.traffic.conditions.array_footprints import (
    ArrayFootprint,
    Layout,
    array_footprint,
    joined,
    nearest_bounds,
    number_at,
    united,
)
from kernmodel.traffic.conditions.cache_sets import FewSets, Room, StridedFootprint, few_sets
from kernmodel.traffic.conditions.iteration_space import IterationSpace
from kernmodel.traffic.conditions.quantities import NEVER, NOTHING, Rate, Size, fixed, sized, total
from kernmodel.traffic.conditions.reuse import (
    Analysis,
    Holds,
    ReferenceMisses,
    SelfReuse,
    StreamReuse,
    links_of,
    misses_where,
    span_of,
)
from kernmodel.traffic.conditions.streams import SizedNest, Stream, steps_to_meet
from kernmodel.traffic.conditions.windows import SWEEP, Window, capped, unit_window
from kernmodel.value_types import dataclass

_SAMPLES = 32
"""Places at which a volume is looked at between the ends of a loop, to find where it crosses a capacity."""

_LESS = Fraction(999, 1000)
"""A loop carries a reuse if lines are fewer by more than this factor."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The footprint in one array during a window.

    Attributes:
        pieces: bytes of its lines, over the outer loop variables.
        whole: bytes of the array; None where its extent is not known.
        strided: what it consists of, each with its own pieces.
    """

    pieces: tuple[Piece, ...]
    whole: Size | None
    strided: tuple[tuple[StridedFootprint, tuple[Piece, ...]], ...]


class WindowVolume:
    """Bytes of cache lines that are touched during a window, as a function of the outer loop variables.

    Attributes:
        arrays: what is touched of each.
        where: the values that the variables take.
        values: the number of each size symbol.
    """

    def __init__(self, arrays: Sequence[Touched], where: AffineSet, values: Mapping[str, int]) -> None:
        self.arrays = tuple(arrays)
        self.where = where
        self.values = values

    @property
    def strided(self) -> tuple[StridedFootprint, ...]:
        """The strided footprints in all arrays."""
        return tuple(footprint for touched in self.arrays for footprint, _ in touched.strided)

    @cached_property
    def largest(self) -> Size:
        """The bytes where they are most, as a formula in the sizes."""
        points = [({name: form.constant.value for name, form in corner.items()}, corner) for corner in self._corners()]
        found = [
            total(capped(self._size(one.pieces, corner, point), one.whole) for one in self.arrays)
            for point, corner in points
        ]
        top = max(found, key=lambda size: size.value, default=NOTHING)
        inside = max((self._number(point) for point in self._places()), default=0)
        return fixed(inside) if inside > top.value else top

    def _corners(self) -> list[dict[str, Linear]]:
        """Values of the variables at the ends of their ranges, as forms of the sizes."""
        corners: list[dict[str, Linear]] = [{}]
        points = [self.where]
        while points[-1].variables:
            points.append(points[-1].outer)
        for part in reversed(points[:-1]):
            name, bounds = part.variables[-1], nearest_bounds(part, part.variables[-1])
            corners = [{**corner, name: _filled(bound, corner)} for corner in corners for bound in bounds]
        return corners

    def _places(self) -> Iterator[dict[str, Number]]:
        """Points between the corners, along the diagonals and in the middle."""
        corners = [{name: form.constant.value for name, form in corner.items()} for corner in self._corners()]
        for one, other in product(corners, repeat=2) if len(self._names) == 1 else ():
            for step in range(1, 8):
                point = {name: one[name] + (other[name] - one[name]) * step // 8 for name in one}
                if self.where.has(point):
                    yield point
        yield dict(self.where.middle)

    def _size(self, pieces: Iterable[Piece], corner: Mapping[str, Linear], point: Mapping[str, Number]) -> Size:
        there = {name: form.formula for name, form in corner.items()}
        parts = (Piece(one.where, one.formula.substitute(there)) for one in pieces if one.where.has(point))
        return total_of(parts, self.values)

    def _number(self, point: Mapping[str, Number]) -> Number:
        known = ((fixed(number_at(one.pieces, point, self.values)), one.whole) for one in self.arrays)
        return total(capped(size, whole) for size, whole in known).value

    @property
    def _pieces(self) -> tuple[Piece, ...]:
        return tuple(piece for one in self.arrays for piece in one.pieces)

    @cached_property
    def _names(self) -> set[str]:
        """The variables on which it depends."""
        return {name for piece in self._pieces for name in _variables(piece.formula, self.where)}

    @cached_property
    def is_exact(self) -> bool:
        """Whether the iterations for which it fits a capacity can be told apart in closed form."""
        formulas = [piece.formula for piece in self._pieces]
        return len(self._names) <= 1 or all(_degree(formula, self._names) <= 1 for formula in formulas)

    def divide(self, points: AffineSet, room: Room) -> tuple[list[AffineSet], list[AffineSet]]:
        """The parts of a set of iterations for which it fits a cache, and for which it does not.

        It does where all lines fit, and where those of each footprint fit the sets into which they fall.
        """
        fitting, failing = [points], list[AffineSet]()
        demands = [(self._pieces, room.capacity)] if self.largest.value > room.capacity else []
        for footprint, pieces in (one for touched in self.arrays for one in touched.strided):
            crowded = few_sets((footprint,), room)
            demands += [(pieces, crowded.usable)] if crowded is not None and crowded.share() > 1 else []
        for pieces, capacity in demands:
            divided = [self._divide(part, pieces, Fraction(capacity)) for part in fitting]
            fitting = [part for inside, _ in divided for part in inside]
            failing += [part for _, outside in divided for part in outside]
        return fitting, failing

    def _divide(
        self, points: AffineSet, pieces: Iterable[Piece], capacity: Fraction
    ) -> tuple[list[AffineSet], list[AffineSet]]:
        fitting, failing = list[AffineSet](), list[AffineSet]()
        for part, formula in _parts(points, pieces):
            inside, outside = self._divided(part, formula, capacity)
            fitting += inside
            failing += outside
        return fitting, failing

    def _divided(
        self, points: AffineSet, formula: Formula, capacity: Number
    ) -> tuple[list[AffineSet], list[AffineSet]]:
        names = sorted(_variables(formula, self.where))
        if names and _degree(formula, names) <= 1:
            room = _linear(formula, names, self.values).scaled(-1).plus(capacity)
            bound = coprime(room)
            sides = points.within(bound), points.within(beyond(bound))
            return [s for s in sides[:1] if not s.is_empty], [s for s in sides[1:] if not s.is_empty]
        if len(names) == 1:
            return _intervals(points, names[0], formula, capacity, self.values)
        fits = formula.value({**self.values, **points.middle}) <= capacity
        return ([points], []) if fits else ([], [points])


def _parts(points: AffineSet, pieces: Iterable[Piece]) -> Iterator[tuple[AffineSet, Formula]]:
    """Parts of a set in which the bytes are one polynomial each."""
    parts = [(points, ZERO)]
    for piece in pieces:
        divided = []
        for part, formula in parts:
            inside = part
            for c in piece.where.constraints:
                least = inside.least(c)
                if least is None or least < 0:
                    outside = inside.within(beyond(c))
                    divided += [] if outside.is_empty else [(outside, formula)]
                    inside = inside.within(c)
            divided += [] if inside.is_empty else [(inside, formula + piece.formula)]
        parts = divided
    yield from parts


def _filled(bound: Linear, corner: Mapping[str, Linear]) -> Linear:
    for name, form in corner.items():
        bound = bound.with_variable(name, form)
    return bound


def _variables(formula: Formula, where: AffineSet) -> set[str]:
    return {str(name) for name in formula.free_symbols & set(where.variables)}


def _degree(formula: Formula, names: Iterable[str]) -> int:
    """The largest sum of the exponents of these variables."""
    known = set(names)
    return max((sum(e for name, e in monomial if name in known) for monomial in formula.terms), default=0)


def _linear(formula: Formula, names: Sequence[str], values: Mapping[str, int]) -> Linear:
    """A polynomial of degree 1 in the variables, as a form with numbers for the sizes."""
    origin = {**values, **dict.fromkeys(names, 0)}
    first = formula.value(origin)
    slopes = {name: formula.value({**origin, name: 1}) - first for name in names}
    return Linear({name: slope for name, slope in slopes.items() if slope}, fixed(first))


def _intervals(
    points: AffineSet, name: str, formula: Formula, capacity: Number, values: Mapping[str, int]
) -> tuple[list[AffineSet], list[AffineSet]]:
    """Parts of a set along one variable, by whether a polynomial of it is at most the capacity."""
    least, most = points.least(variable(name)), points.least(variable(name).scaled(-1))
    if least is None or most is None:
        return [], [points]
    low, high = ceil(least), -ceil(most)

    def fits(place: int) -> bool:
        return formula.value({**values, name: place}) <= capacity

    places = sorted({low + (high - low) * k // _SAMPLES for k in range(_SAMPLES + 1)})
    cuts = [low]
    for before, after in pairwise(places):
        if fits(before) != fits(after):
            known = fits(before)
            cuts.append(bisect_left(range(after), True, lo=before, key=lambda place: fits(place) != known))
    parts: tuple[list[AffineSet], list[AffineSet]] = [], []
    for first, end in pairwise([*cuts, high + 1]):
        part = points.within(variable(name).plus(-first), variable(name).scaled(-1).plus(end - 1))
        parts[not fits(first)].append(part)
    return parts


class NestFootprints:
    """The footprints of the streams of a nest: during windows, and over parts of the sweep.

    Attributes:
        nest: at given sizes, with its iterations.
        space: the same iterations.
        line_bytes: length of a cache line.
    """

    def __init__(self, nest: SizedNest, space: IterationSpace, line_bytes: int) -> None:
        self.nest = nest
        self.space = space
        self.line_bytes = line_bytes
        self.iterations = space.count(space.points)
        self._volumes: dict[object, WindowVolume] = {}
        self._lines: dict[object, Size] = {}
        self._footprints: dict[object, ArrayFootprint] = {}
        self._surroundings: dict[object, ArrayFootprint] = {}
        self._unions: dict[object, Size] = {}
        self._counts: dict[object, Size] = {}
        self._known_partners: dict[int, dict[int, tuple[int, ...]]] = {}
        self._layouts: dict[str, Layout] = {}
        for members in nest.prepared.classes:
            pitches = (sized(pitch, space.values).scaled(members.element_bytes) for pitch in members.pitches)
            layout = Layout(members.array, members.element_bytes, tuple(pitches), line_bytes)
            self._layouts.setdefault(members.array, layout)

    # windows

    def volume(self, window: Window) -> WindowVolume:
        """The bytes of lines that all streams touch in a window."""
        if window.key not in self._volumes:
            self._volumes[window.key] = self._volume(window)
        return self._volumes[window.key]

    def _volume(self, window: Window) -> WindowVolume:
        points, kept, moved = self._during(window)
        touched: dict[str, dict[object, ArrayFootprint]] = {}
        for stream in self.nest.streams:
            for reference in stream.references:
                index = self.space.indices[reference.order]
                key = tuple((*sorted(form.terms.items()), form.constant.formula) for form in index)
                known = touched.setdefault(stream.array, {})
                if key not in known:
                    shown = [form.with_variable(*moved) for form in index]
                    known[key] = array_footprint(self._layouts[stream.array], shown, points, kept, self.space.values)
        where = points.onto(kept)
        arrays = [self._touched(array, united(footprints.values()), where) for array, footprints in touched.items()]
        return WindowVolume(arrays, where, self.space.values)

    def _touched(self, array: str, footprints: Sequence[ArrayFootprint], where: AffineSet) -> Touched:
        pieces = [footprint.bytes_touched(summed=False) for footprint in footprints]
        strided = []
        for footprint, own in zip(footprints, pieces, strict=True):
            largest = WindowVolume([Touched(own, None, ())], where, self.space.values).largest
            apart = footprint.strided(largest)
            strided += [(apart, own)] if apart.repeats else []
        return Touched(tuple(piece for own in pieces for piece in own), self.nest.whole_bytes(array), tuple(strided))

    def _during(self, window: Window) -> tuple[AffineSet, int, tuple[str, Linear]]:
        """The iterations of a window, how many variables stand still, and what the carrying loop's is called.

        Of a window of several iterations the first stands still.
        """
        points, place = self.space.points, window.carrier
        own = points.variables[place]
        if place == SWEEP:
            return points, 0, (own, variable(own))
        count = max(1, ceil(window.vector[place].value))
        if count == 1:
            return points, place + 1, (own, variable(own))
        now = variable(f"{own}'")
        since = now - variable(own)
        running = [constraint.with_variable(own, now) for constraint in points.constraints]
        first = points.onto(place + 1).constraints
        variables = (*points.variables[: place + 1], f"{own}'", *points.variables[place + 1 :])
        moved = points.like(variables, [*running, *first, since, since.scaled(-1).plus(count - 1)])
        return moved, place + 1, (own, now)

    # parts of the sweep

    def lines(self, number: int, level: int, points: AffineSet) -> Size:
        """Bytes of lines that the leading reference of a stream loads in a part of the sweep if all that loops from
        `level` on touch stays in a cache while they run.

        Lines that an earlier stream of the array touches in the same iterations of the loops outside count there.
        """
        key = number, level, points.key
        if key not in self._lines:
            earlier = self._partners(level)[number]
            before = self._together(earlier, level, points)
            together = self._together((*earlier, number), level, points)
            self._lines[key] = together - before if together.value > before.value else NOTHING
        return self._lines[key]

    def _together(self, numbers: tuple[int, ...], level: int, points: AffineSet) -> Size:
        key = numbers, level, points.key
        if key not in self._unions:
            around = (self._around(number, level, points) for number in numbers)
            self._unions[key] = total(footprint.total for footprint in united(around))
        return self._unions[key]

    def written_share(self, number: int, level: int, points: AffineSet) -> Fraction:
        """Of the lines that a stream loads in a part of the sweep, the share that is under what it writes."""
        references = self.nest.streams[number].references
        writers = [place for place, one in enumerate(references) if one.access.kind == "write"]
        around = self._around(number, level, points).total.value
        if not writers or len(writers) == len(references) or not around:
            return Fraction(1)
        return min(Fraction(1), Fraction(self._footprint(number, level, points, writers[0]).total.value) / around)

    def _around(self, number: int, level: int, points: AffineSet) -> ArrayFootprint:
        """What the leading reference of a stream touches, with what those beside it reach beyond it: those that are
        behind it in the loops from `level` on only."""
        key = number, level, points.key
        if key in self._surroundings:
            return self._surroundings[key]
        stream, footprint = self.nest.streams[number], self._footprint(number, level, points)
        for place, reference in enumerate(stream.references[1:], start=1):
            ahead = zip(stream.references[0].shift[:level], reference.shift[:level], strict=True)
            if all(one.value == other.value for one, other in ahead):
                footprint = joined(footprint, self._footprint(number, level, points, place)) or footprint
        self._surroundings[key] = footprint
        return footprint

    def _footprint(self, number: int, level: int, points: AffineSet, place: int = 0) -> ArrayFootprint:
        key = number, place, level, points.key
        if key not in self._footprints:
            stream = self.nest.streams[number]
            index = self.space.indices[stream.references[place].order]
            self._footprints[key] = array_footprint(
                self._layouts[stream.array], index, points, level, self.space.values
            )
        return self._footprints[key]

    def count(self, points: AffineSet) -> Size:
        """The iterations in a part of the sweep."""
        if points.key not in self._counts:
            self._counts[points.key] = self.space.count(points)
        return self._counts[points.key]

    def ends_with_all(self, number: int, loop: int) -> bool:
        """Whether the last iteration of a loop touches all that the leading reference of a stream does in a sweep."""
        points = self.space.points.onto(loop + 1)
        last: dict[str, Linear] = {}
        for k, name in enumerate(points.variables):
            ends = nearest_bounds(points.onto(k + 1), name)
            last[name] = _filled(ends[self.nest.prepared.loops[k].step != -1], last)
        place = {name: form.constant.value for name, form in last.items()}
        touched = self._footprint(number, loop + 1, self.space.points).bytes_touched(summed=False)
        return (
            number_at(touched, place, self.space.values)
            >= self._footprint(number, 0, self.space.points).total.value * _LESS
        )

    def _partners(self, level: int) -> dict[int, tuple[int, ...]]:
        """Per stream, those before it that touch nearly the same lines while the loops from `level` on run."""
        if level in self._known_partners:
            return self._known_partners[level]
        streams = self.nest.streams
        found: dict[int, tuple[int, ...]] = {}
        groups: dict[str, list[tuple[ArrayFootprint, tuple[int, ...]]]] = {}
        for number in sorted(range(len(streams)), key=lambda k: not streams[k].is_written):
            known = groups.setdefault(streams[number].array, [])
            footprint, members = self._footprint(number, level, self.space.points), tuple[int, ...]()
            for group in list(known):
                around = joined(group[0], footprint)
                if around is not None:
                    known.remove(group)
                    footprint, members = around, (*members, *group[1])
            found[number] = members
            known.append((footprint, (*members, number)))
        self._known_partners[level] = found
        return found


@dataclass(frozen=True, slots=True)
class VaryingAnalysis(Analysis):
    """The reuse of a nest whose trip counts follow outer loops; `volumes` are those where most is touched."""

    footprints: NestFootprints | None = None

    @property
    def _known(self) -> NestFootprints:
        assert self.footprints is not None
        return self.footprints

    @property
    def notes(self) -> tuple[Note, ...]:
        """Where one number stands for all iterations."""
        windows = (window for reuse in self.reuses for window in reuse.windows if not _is_between_nests(window))
        if all(self._known.volume(window).is_exact for window in windows):
            return ()
        text = "what a window touches depends on several outer loops; its mean decides for all iterations"
        return (Note("mean-trip-count", text, "assumption"),)

    def volume(self, window: Window) -> Size:
        """Bytes that a cache must hold for data to survive the window in all iterations of the outer loops."""
        return self.volumes[window.key] if _is_between_nests(window) else self._known.volume(window).largest

    def condition_key(self, window: Window) -> object:
        """Equal for windows of which one condition tells all: the same share of the iterations holds."""
        return self.volume(window).formula, window.key

    def few_sets(self, window: Window, room: Room) -> FewSets | None:
        """What of the data touched during the window has a part of a cache only, because it falls into few sets."""
        return None if _is_between_nests(window) else few_sets(self._known.volume(window).strided, room)

    def share(self, window: Window, room: Room) -> Fraction:
        """The share of the iterations in which data survive the window in a cache."""
        known = self._known
        fitting, _ = self._divide(window, known.space.points, room)
        return Fraction(sum(known.count(part).value for part in fitting)) / known.iterations.value

    def _misses_in(self, room: Room) -> tuple[tuple[ReferenceMisses, ...], ...]:
        return tuple(self._stream_misses(number, room) for number in range(len(self.reuses)))

    def _stream_misses(self, number: int, room: Room) -> tuple[ReferenceMisses, ...]:
        reuse, known = self.reuses[number], self._known
        found = [ReferenceMisses(reference, NEVER, NEVER, False) for reference in reuse.stream.references]
        for part, level in self._parts(reuse, room):
            if level is None:
                continue
            lines = Rate(known.lines(number, level, part), known.iterations.scaled(self.line_bytes))
            whole, written = known.count(part).value, known.written_share(number, level, part)
            for cell, holding in self._cells(reuse, part, room):
                share = Fraction(known.count(cell).value) / whole if cell is not part else 1
                base = Rate(lines.numerator.scaled(share), lines.denominator) if share else NEVER
                lone = StreamReuse(reuse.stream, base, reuse.links, (), written_later=reuse.written_later)
                more = misses_where(lone, self.nest, self._holding(holding, room), self.line_bytes)
                found = [_added(one, other, written) for one, other in zip(found, more, strict=True)]
        return tuple(found)

    def _parts(self, reuse: StreamReuse, room: Room) -> Iterator[tuple[AffineSet, int | None]]:
        """Parts of the sweep, each with the outermost loop from which on lines stay (None: everything stays)."""
        failing = [self._known.space.points]
        for own in reversed(reuse.selves) if self._sweep_fails(reuse, room) else ():
            if own.rate is NEVER:
                continue
            pending, failing = failing, []
            for points in pending:
                fitting, rest = self._divide(own.window, points, room)
                yield from ((part, own.carrier) for part in fitting)
                failing += rest
        if self._sweep_fails(reuse, room):
            yield from ((part, len(self.nest.trips) - 1) for part in failing)

    def _holding(self, links: frozenset[object], room: Room) -> Holds:
        """Which windows hold in a part of the sweep: those of links within the nest, and those between nests."""
        return lambda window: self.holds(window, room) if _is_between_nests(window) else window.key in links

    def _sweep_fails(self, reuse: StreamReuse, room: Room) -> bool:
        return not any(self.holds(own.window, room) for own in reuse.selves if own.rate is NEVER)

    def _divide(self, window: Window, points: AffineSet, room: Room) -> tuple[list[AffineSet], list[AffineSet]]:
        """The parts of a set of iterations for which the window fits a cache, and for which it does not."""
        if not _is_between_nests(window):
            return self._known.volume(window).divide(points, room)
        return ([points], []) if self.holds(window, room) else ([], [points])

    def _cells(self, reuse: StreamReuse, part: AffineSet, room: Room) -> list[tuple[AffineSet, frozenset[object]]]:
        """Divides a part of the sweep into parts in each of which the same links hold."""
        cells: list[tuple[AffineSet, frozenset[object]]] = [(part, frozenset())]
        for window in {link.window.key: link.window for link in reuse.links if link.window is not None}.values():
            divided = list[tuple[AffineSet, frozenset[object]]]()
            for points, holding in cells:
                fitting, failing = self._known.volume(window).divide(points, room)
                divided += [(cell, holding | {window.key}) for cell in fitting]
                divided += [(cell, holding) for cell in failing]
            cells = divided
        return cells


def _is_between_nests(window: Window) -> bool:
    return window.carrier < SWEEP


def _added(one: ReferenceMisses, other: ReferenceMisses, written: Fraction) -> ReferenceMisses:
    """The misses of two parts, of which the second leaves this share of its lines modified where it writes any."""
    modified = Rate(other.modified.numerator.scaled(exact(written)), other.modified.denominator)
    return ReferenceMisses(one.reference, one.misses + other.misses, one.modified + modified, one.read or other.read)


def analyse_varying(nest: SizedNest, space: IterationSpace, line_bytes: int) -> Analysis:
    """All reuse of a nest over these iterations, with the volume that each needs."""
    footprints = NestFootprints(nest, space, line_bytes)
    reuses = tuple(_stream_reuse(number, stream, footprints) for number, stream in enumerate(nest.streams))
    windows = {window.key: window for reuse in reuses for window in reuse.windows}
    volumes = {key: footprints.volume(window).largest for key, window in windows.items()}
    return VaryingAnalysis(nest, line_bytes, reuses, volumes, {}, footprints=footprints)


def _stream_reuse(number: int, stream: Stream, footprints: NestFootprints) -> StreamReuse:
    nest, points = footprints.nest, footprints.space.points
    depth, divisor = len(nest.trips), footprints.iterations.scaled(footprints.line_bytes)
    base = rate = Rate(footprints.lines(number, depth - 1, points), divisor)
    selves = list[SelfReuse]()
    for loop in reversed(range(depth - 1)):
        outer = Rate(footprints.lines(number, loop, points), divisor)
        if outer.value < rate.value * _LESS:
            selves.append(SelfReuse(loop, _again(stream, footprints, loop), outer))
            rate = outer
    selves.append(SelfReuse(SWEEP, _over_sweeps(number, stream, footprints), NEVER))
    return StreamReuse(stream, base, links_of(stream, nest, footprints.line_bytes), tuple(selves))


def _over_sweeps(number: int, stream: Stream, footprints: NestFootprints) -> Window:
    """The time between two touches of a line in successive sweeps: of a loop's last iteration and its first one where
    the last touches all that the stream does, as in a lower triangle that is run through from its top."""
    depth, span = len(footprints.nest.trips), span_of(stream, SWEEP)
    return unit_window(depth, span if span >= 0 and footprints.ends_with_all(number, span) else SWEEP)


def _again(stream: Stream, footprints: NestFootprints, carrier: int) -> Window:
    """The time between two touches of a line that a loop brings together: more than one of its iterations where the
    loops inside take other values in between."""
    span = span_of(stream, carrier)
    meeting = steps_to_meet(stream, footprints.nest.trips, carrier, footprints.line_bytes) if span == carrier else 1
    count = fixed(lcm(footprints.space.periods[span], meeting))
    return Window(span, tuple(count if loop == span else NOTHING for loop in range(len(footprints.nest.trips))))
