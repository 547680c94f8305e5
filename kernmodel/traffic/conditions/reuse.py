"""The ways data is reused in a nest, each with the window it spans, and what misses where only some of them hold.

A reference's line was touched before by the reference ahead of it in its stream (group reuse); the leading reference
finds its lines again where a loop does not move it, or moves it by less than a line (self reuse); and everything is
found again when the whole nest is repeated (the sweep).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd

from kernmodel.errors import Note
from kernmodel.formulas.terms import Number
from kernmodel.traffic.conditions.cache_sets import FewSets, Room, StridedFootprint, few_sets, strided_footprint
from kernmodel.traffic.conditions.halos import Border, borders_of, with_border
from kernmodel.traffic.conditions.quantities import NEVER, NOTHING, ONE, Rate, Size, fixed
from kernmodel.traffic.conditions.rows import Rows, rows_of
from kernmodel.traffic.conditions.streams import Reference, SizedNest, Stream
from kernmodel.traffic.conditions.windows import (
    SWEEP,
    Window,
    capped,
    lines_per_iteration,
    region_volume,
    runs_against,
    stretch_of,
    touched_region,
    unit_window,
    volume,
    volume_of,
)
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """Group reuse of `reference` from the one ahead of it.

    Attributes:
        source: the reference ahead.
        window: the time between them; None if both touch the line in the same iteration (always holds).
        possible: False if it is longer than the carrying loop runs.
        fresh: share of lines that are new if the reuse fails, as bytes of a line (at most a whole line): a neighbour
            less than a line away finds most lines already fetched for the reference ahead.
    """

    reference: Reference
    source: Reference
    window: Window | None
    possible: bool
    fresh: Size


@dataclass(frozen=True, slots=True)
class SelfReuse:
    """Reuse carried by a loop (or `SWEEP`): the time it spans, and lines per iteration of a leading reference with it.

    The window is shorter than an iteration of the carrying loop where the next inner loop does not move the reference:
    then the line was touched in that loop's last iteration. `rows` are set where the rate counts the
    lines at the ends of rows.
    """

    carrier: int
    window: Window
    rate: Rate
    rows: Rows | None = None

    @property
    def found_after(self) -> int:
        """The loop that carries it, `SWEEP`, or below that the neighbour whose lines it finds."""
        return min(self.carrier, self.window.carrier) if self.window.carrier < SWEEP else self.carrier


@dataclass(frozen=True, slots=True)
class StreamReuse:
    """All reuse of one stream.

    Attributes:
        base: lines per iteration of one reference alone, reuse within the innermost loop counted.
        links: group reuse of all references but the first.
        selves: self reuse from inner to outer loops, the sweep last.
        borders: blocked loops along which its references lie apart.
        rows: set where `base` counts the lines at the ends of rows.
        written_later: the times until nests that are executed later write lines which this one has only read.
    """

    stream: Stream
    base: Rate
    links: tuple[Link, ...]
    selves: tuple[SelfReuse, ...]
    borders: tuple[Border, ...] = ()
    rows: Rows | None = None
    written_later: tuple[Window, ...] = ()

    @property
    def windows(self) -> Iterator[Window]:
        """All times that data may have to survive."""
        yield from (link.window for link in self.links if link.window is not None and link.possible)
        yield from (own.window for own in self.selves)
        for border in self.borders:
            yield from (border.window, *border.meetings)
        for rows in (self.rows, *(own.rows for own in self.selves)):
            yield from (end.window for end in (rows.shared if rows else ()) if end.window is not None)


@dataclass(frozen=True, slots=True)
class ReferenceMisses:
    """Lines per iteration that a reference misses, those that leave modified for it and for those that find its lines,
    and whether they are read before they leave."""

    reference: Reference
    misses: Rate
    modified: Rate
    read: bool


Holds = Callable[[Window], bool]


def _stream_reuse(stream: Stream, siblings: Sequence[Stream], nest: SizedNest, line_bytes: int) -> StreamReuse:
    depth = len(nest.trips)

    borders = borders_of(nest, stream)

    def rows(outermost: int) -> Rows | None:
        stretch = stretch_of(stream, nest.trips, outermost, line_bytes)
        if stretch is None or any(border.loop in stretch.loops for border in borders):
            return None
        return rows_of(stream, stretch, siblings, nest.trips, line_bytes)

    base = Rate(*lines_per_iteration(stream, nest.trips, depth - 1, line_bytes))
    selves, rate = list[SelfReuse](), base
    for loop in reversed(range(depth - 1)):
        outer = Rate(*lines_per_iteration(stream, nest.trips, loop, line_bytes))
        if outer.value < rate.value:
            selves.append(SelfReuse(loop, _again(stream, nest, loop, line_bytes), outer, rows(loop)))
            rate = outer
    selves.append(SelfReuse(SWEEP, unit_window(depth, span_of(stream, SWEEP)), NEVER))
    return StreamReuse(stream, base, links_of(stream, nest, line_bytes), tuple(selves), borders, rows(depth - 1))


def _again(stream: Stream, nest: SizedNest, carrier: int, line_bytes: int) -> Window:
    """The time between two touches of a line that `carrier` brings together.

    Where it puts one row behind the other and rows are run through in the other direction, the line between them is
    touched at the beginning of one and at the end of the next: the time of a row more.
    """
    depth = len(nest.trips)
    window = unit_window(depth, span_of(stream, carrier))
    row = stretch_of(stream, nest.trips, depth - 1, line_bytes)
    if not stream.strides[carrier].value or row is None or not runs_against(stream, row.loops, carrier):
        return window
    outside = min(row.loops) - 1
    vector = (part + ONE if loop == outside else part for loop, part in enumerate(window.vector))
    return Window(window.carrier, tuple(vector))


def span_of(stream: Stream, carrier: int) -> int:
    """The loop of which one iteration passes between two touches that `carrier` brings together.

    While the innermost loops that do not move it run, a reference is held in a register: a touch is then one before or
    after them.
    """
    inner = carrier + 1
    while inner < stream.held_from and not stream.strides[inner].value:
        inner += 1
    return inner - 1


def links_of(stream: Stream, nest: SizedNest, line_bytes: int) -> tuple[Link, ...]:
    """The group reuse of all references of a stream but the first."""
    pairs = zip(stream.references, stream.references[1:], strict=False)
    return tuple(_link(stream, nest, ahead, behind, line_bytes) for ahead, behind in pairs)


def _link(stream: Stream, nest: SizedNest, ahead: Reference, behind: Reference, line_bytes: int) -> Link:
    vector = tuple(a - b for a, b in zip(ahead.shift, behind.shift, strict=True))
    carrier = next((loop for loop, part in enumerate(vector) if part.value), None)
    if carrier is None:
        return Link(behind, ahead, None, True, NOTHING)
    fresh = _fresh_bytes(stream, ahead, stream.strides[carrier].value * vector[carrier].value, line_bytes)
    if not fresh:
        return Link(behind, ahead, None, True, NOTHING)
    possible = vector[carrier].value < nest.trips[carrier].value
    return Link(behind, ahead, Window(carrier, vector), possible, fixed(fresh))


def _fresh_bytes(stream: Stream, ahead: Reference, distance: Number, line_bytes: int) -> Number:
    """Bytes of a line that lie in another line than `ahead`, `distance` bytes from it, mean over all iterations."""
    if not -line_bytes < distance < line_bytes:
        return line_bytes
    steps = zip(stream.strides, ahead.shift, stream.references[0].shift, strict=True)
    start = stream.start + sum(stride.value * (own.value - first.value) for stride, own, first in steps)
    grain = gcd(line_bytes, *(int(stride.value) for stride in stream.strides))
    places = range(int(start) % grain, line_bytes, grain)
    return Fraction(sum((place - distance) // line_bytes != 0 for place in places) * line_bytes, len(places))


def misses_where(
    reuse: StreamReuse, nest: SizedNest, holds: Holds, line_bytes: int, sharers: int = 1
) -> tuple[ReferenceMisses, ...]:
    """What the references of a stream miss in a cache where exactly the windows hold that `holds` says.

    `sharers` are the cores with neighbouring parts that share it.

    A line stays from the reference that misses it to the last one that still hits it, and leaves modified if any of
    them writes; so modified lines leave at the rate at which they entered.
    """
    lone, rows = reuse.base, reuse.rows
    for own in reuse.selves:
        if holds(own.window) and own.rate.value <= lone.value:
            lone, rows = own.rate, own.rows
    rates = [lone]
    for link in reuse.links:
        if link.window is None or (link.possible and holds(link.window)):
            rates.append(NEVER)
        elif link.fresh.value >= line_bytes or not lone.numerator.value:
            rates.append(lone)
        else:
            rates.append(Rate(lone.numerator * link.fresh, lone.denominator.scaled(line_bytes)))
    lost = [border for border in reuse.borders if not holds(border.window)]
    found = []
    for index, (reference, rate) in enumerate(zip(reuse.stream.references, rates, strict=True)):
        written, read = _residency(reuse, rates, index)
        written = written or (rates[index] is lone and any(map(holds, reuse.written_later)))
        chain = _chain(reuse, rates, index) if lost or rows else ()
        counted = (rate, rate)
        if rows and rate is lone:
            missed, modified = rows.lines(chain, holds, line_bytes)
            counted = _of_rows(rate, rows, missed, line_bytes), _of_rows(rate, rows, modified, line_bytes)
        missing, leaving = counted
        # rows beyond the border leave modified where they are written, not where they are only read
        written_to = tuple(one for one in chain if one.access.kind == "write")
        for border in lost:
            left = border.found(sharers, holds)
            missing = with_border(missing, border, nest, reuse.stream, chain, line_bytes, left)
            leaving = with_border(leaving, border, nest, reuse.stream, written_to, line_bytes)
        found.append(ReferenceMisses(reference, missing, leaving if written else NEVER, read))
    return tuple(found)


def _of_rows(rate: Rate, rows: Rows, lines: Number, line_bytes: int) -> Rate:
    """The rate of rows of the leading reference, with so many lines for each."""
    more = lines - rows.stretch.lines(line_bytes)
    return Rate(rate.numerator + fixed(more * line_bytes), rate.denominator) if more else rate


def _chain(reuse: StreamReuse, rates: Sequence[Rate], index: int) -> tuple[Reference, ...]:
    """The reference, and those behind it that find its lines; nothing where it finds all lines itself."""
    if rates[index] is NEVER:
        return ()
    end = next((k for k in range(index + 1, len(rates)) if rates[k] is not NEVER), len(rates))
    return reuse.stream.references[index:end]


def _residency(reuse: StreamReuse, rates: list[Rate], index: int) -> tuple[bool, bool]:
    """Whether the lines that reference `index` brings in are written, and read, while they stay.

    A reference that brings in only part of its lines writes mostly to those of the one ahead, which counts for both.
    """
    if rates[index] is not rates[0]:
        return False, rates[index] is not NEVER
    end = next((k for k in range(index + 1, len(rates)) if rates[k] is rates[0]), len(rates))
    kinds = {reference.access.kind for reference in reuse.stream.references[index:end]}
    return "write" in kinds, "read" in kinds


@dataclass(frozen=True, slots=True)
class Analysis:
    """The reuse of a nest at given sizes, before any cache is looked at.

    `volumes` gives the cache volume of each window by `Window.key`, `strided` what of it is touched in separate pieces;
    `reloaded` are the references (by `order`) that always miss, because a streaming store has taken their line out of
    the caches.
    """

    nest: SizedNest
    line_bytes: int
    reuses: tuple[StreamReuse, ...]
    volumes: Mapping[tuple[object, ...], Size]
    strided: Mapping[tuple[object, ...], tuple[StridedFootprint, ...]]
    reloaded: frozenset[int] = frozenset()

    def volume(self, window: Window) -> Size:
        """Bytes that a cache must hold for data to survive the window."""
        known = self.volumes.get(window.key)
        return volume(self.nest, window, self.line_bytes) if known is None else known

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is assumed of the nest at these sizes."""
        return ()

    def condition_key(self, window: Window) -> object:
        """Equal for windows of which one condition tells all."""
        return self.volume(window).formula

    def few_sets(self, window: Window, room: Room) -> FewSets | None:
        """What of the data touched during the window has a part of a cache only, because it falls into few sets."""
        strided = self.strided[window.key]
        return few_sets(strided, room) if strided and room.banks else None

    def holds(self, window: Window, room: Room) -> bool:
        """Whether data survive the window in a cache."""
        if self.volume(window).value > room.capacity:
            return False
        crowded = self.few_sets(window, room)
        return crowded is None or crowded.share() <= 1

    def share(self, window: Window, room: Room) -> Fraction:
        """The share of the iterations in which data survive the window in a cache."""
        return Fraction(self.holds(window, room))

    def misses_in(self, room: Room) -> tuple[tuple[ReferenceMisses, ...], ...]:
        """Per stream, what its references miss in a cache."""
        found = self._misses_in(room)
        return self._with_reloads(found) if self.reloaded else found

    def _misses_in(self, room: Room) -> tuple[tuple[ReferenceMisses, ...], ...]:
        return tuple(
            misses_where(reuse, self.nest, lambda window: self.holds(window, room), self.line_bytes, room.sharers)
            for reuse in self.reuses
        )

    def _with_reloads(self, found: tuple[tuple[ReferenceMisses, ...], ...]) -> tuple[tuple[ReferenceMisses, ...], ...]:
        return tuple(
            tuple(replace(m, misses=reuse.base) if m.reference.order in self.reloaded else m for m in misses)
            for reuse, misses in zip(self.reuses, found, strict=True)
        )


def reuses_of(nest: SizedNest, line_bytes: int) -> tuple[StreamReuse, ...]:
    """All reuse of a nest at given sizes."""
    alike: dict[object, list[Stream]] = {}
    for stream in nest.streams:
        alike.setdefault(_motion(stream), []).append(stream)
    return tuple(_stream_reuse(stream, alike[_motion(stream)], nest, line_bytes) for stream in nest.streams)


def _motion(stream: Stream) -> object:
    """Equal for streams of one array that move alike."""
    return stream.array, tuple(stride.value for stride in stream.strides)


def analyse_regular(nest: SizedNest, line_bytes: int) -> Analysis:
    """All reuse of a nest whose trip counts are taken as the same in all iterations of outer loops."""
    reuses = reuses_of(nest, line_bytes)
    volumes: dict[tuple[object, ...], Size] = {}
    strided: dict[tuple[object, ...], tuple[StridedFootprint, ...]] = {}
    for window in (window for reuse in reuses for window in reuse.windows):
        if window.key not in volumes:
            regions = [touched_region(stream, nest.trips, window, line_bytes) for stream in nest.streams]
            pairs = list(zip(nest.streams, regions, strict=True))
            parts = [region_volume(stream, region, line_bytes) for stream, region in pairs]
            volumes[window.key] = volume_of(nest, parts)
            found = (
                strided_footprint(stream, region, capped(part, nest.whole_bytes(stream.array)))
                for (stream, region), part in zip(pairs, parts, strict=True)
            )
            strided[window.key] = tuple(footprint for footprint in found if footprint is not None)
    return Analysis(nest, line_bytes, reuses, volumes, strided)
