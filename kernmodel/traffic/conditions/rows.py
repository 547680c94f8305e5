"""Rows of memory that lie apart: the lines under what the references of a stream touch of a row, and shared ends.

A row is counted in whole lines, from the first to the last that any reference touches which finds its lines there; what
is written of it leaves modified, and no more. References of one stream begin at different places of a line.

Two streams of an array may share lines at the ends of rows. With `j += 2`, `a[j][i]` and `a[j+1][i]` are two streams,
and every row of one lies between two rows of the other. The line in which one ends and the next begins is loaded once
if it stays until both have touched it, which takes a row or so. So do references of one stream whose rows lie that
near, where rows are run through against the order in which they follow one another.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from kernmodel.formulas.terms import Number
from kernmodel.traffic.conditions.quantities import Size, fixed
from kernmodel.traffic.conditions.streams import Reference, Stream
from kernmodel.traffic.conditions.windows import Stretch, Window
from kernmodel.value_types import dataclass

Time = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SharedEnd:
    """A line at an end of a reference's rows that `source` has touched before.

    Attributes:
        reference: the reference that may find the line.
        source: the one that touched it before.
        modified: whether the source's stream writes, so that the line leaves modified in any case.
        window: the time between the two; None if one row follows the other at once (always holds).
        distance: bytes from the last byte of the reference's row to the first one of the source's; if the source's lies
            below, from the first byte to the last one of the source's (negative).
    """

    reference: Reference
    source: Reference
    modified: bool
    window: Window | None
    distance: int


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that the references of a stream run through.

    Attributes:
        stretch: a row of the leading reference.
        offsets: where the rows of the references begin, in bytes from the leading one's row, by `order`.
        shared: lines that rows of other references may have brought.
    """

    stretch: Stretch
    offsets: Mapping[int, int]
    shared: tuple[SharedEnd, ...]

    def lines(
        self, chain: Sequence[Reference], holds: Callable[[Window], bool], line_bytes: int
    ) -> tuple[Fraction, Fraction]:
        """Lines of a row that are loaded for a chain of references, and that leave modified by them.

        Means over the places where rows begin in a line. `chain` is a reference that finds none of its lines and those
        that find theirs because of it; `holds` tells which windows a cache survives.
        """
        members = {reference.order for reference in chain}
        held = [
            end for end in self.shared if end.reference.order in members and (end.window is None or holds(end.window))
        ]
        writers = [reference for reference in chain if reference.access.kind == "write"] or chain
        loaded = modified = 0
        for place, often in self.stretch.places.items():
            found, kept = (
                self._found(place, chain, ends, line_bytes) for ends in (held, [e for e in held if e.modified])
            )
            loaded += often * (len(self._span(place, chain, line_bytes)) - len(found))
            written = self._span(place, writers, line_bytes)
            modified += often * (len(written) - sum(line in written for line in kept))
        rows = sum(self.stretch.places.values())
        return Fraction(loaded, rows), Fraction(modified, rows)

    def saved(self, end: SharedEnd, line_bytes: int) -> Fraction:
        """Lines of a row that are found at this end of it alone."""
        places = self.stretch.places.items()
        found = sum(often * len(self._found(place, [end.reference], [end], line_bytes)) for place, often in places)
        return Fraction(found, sum(self.stretch.places.values()))

    def _span(self, place: int, references: Sequence[Reference], line_bytes: int) -> range:
        """The lines under the rows of references where the leading one's begins at this place of a line."""
        offsets = [self.offsets[reference.order] for reference in references]
        low, high = place + min(offsets), place + max(offsets) + self.stretch.length - 1
        return range(low // line_bytes, high // line_bytes + 1)

    def _found(self, place: int, chain: Sequence[Reference], ends: Sequence[SharedEnd], line_bytes: int) -> set[int]:
        """The first and last line of the row, as far as the first of the references to touch them finds them."""
        if not ends:
            return set()
        span, found = self._span(place, chain, line_bytes), set[int]()
        for line in (span[0], span[-1]):
            first = next(r for r in chain if line in self._span(place, [r], line_bytes))
            if any(end.reference is first and self._reached(place, end, line_bytes) == line for end in ends):
                found.add(line)
        return found

    def _reached(self, place: int, end: SharedEnd, line_bytes: int) -> int:
        """The line in which the row beside ends."""
        edge = self.stretch.length - 1 if end.distance > 0 else 0
        return (place + self.offsets[end.reference.order] + edge + end.distance) // line_bytes


@dataclass(frozen=True, slots=True)
class _Row:
    """A reference's rows as a lattice: where they begin is Σ stride × time + place, over the loops outside the row.

    Attributes:
        phases: parts of its shifts that are no whole iteration, but for the nearest loop: rows whose phases differ in
            the others lie planes apart.
        time: iterations of each loop outside by which it is ahead.
        place: bytes, less than a step of the nearest loop.
    """

    reference: Reference
    stream: Stream
    phases: tuple[Number, ...]
    time: Time
    place: int


def rows_of(
    stream: Stream, stretch: Stretch, siblings: Sequence[Stream], trips: Sequence[Size], line_bytes: int
) -> Rows | None:
    """The rows of a stream; None if its loops do not run through them one after the other.

    Args:
        stream: the stream, whose rows are `stretch`.
        stretch: the loops that make up a row, which the next does not continue.
        siblings: all streams of the array with the same strides, itself among them.
        trips: trip count per loop.
        line_bytes: length of a cache line.
    """
    outside, inside = range(min(stretch.loops)), range(min(stretch.loops), len(stream.strides))
    # a loop that is run through within a row but moves it as a whole: then it is no row in time
    if any(stream.strides[loop].value for loop in inside if loop not in stretch.loops):
        return None
    nearest = min((loop for loop in outside if stream.strides[loop].value), key=lambda k: stream.strides[k].magnitude)
    groups: dict[tuple[tuple[Number, ...], int], list[_Row]] = {}
    for sibling in siblings:
        for row in (_row(sibling, reference, outside, nearest) for reference in sibling.references):
            groups.setdefault((row.phases, row.place), []).append(row)
    for group in groups.values():
        group.sort(key=lambda row: row.time)
    rows = [_row(stream, reference, outside, nearest) for reference in stream.references]
    shared = tuple(
        end
        for row in rows
        for end in _ends(row, groups, stretch, nearest, line_bytes)
        if end.window is None or all(p.magnitude < t.value for p, t in zip(end.window.vector, trips, strict=True))
    )
    return Rows(stretch, _offsets(rows, stream.strides[nearest].magnitude), shared)


def _offsets(rows: Sequence[_Row], step: Number) -> dict[int, int]:
    """Where rows begin, from the first of them on: the nearest way, since `place` is one modulo the step."""
    half = int(step) // 2
    return {row.reference.order: (row.place - rows[0].place + half) % int(step) - half for row in rows}


def _row(stream: Stream, reference: Reference, outside: Sequence[int], nearest: int) -> _Row:
    time, phases, address = list[int](), list[Number](), int(stream.start_of(reference))
    for loop in outside:
        whole = int(reference.shift[loop].value // 1) if loop != nearest else 0
        time.append(whole)
        phases.append(reference.shift[loop].value - whole if loop != nearest else 0)
        address -= int(stream.strides[loop].value) * whole
    stride = int(stream.strides[nearest].value)
    time[nearest], place = (address // abs(stride)) * (1 if stride > 0 else -1), address % abs(stride)
    return _Row(reference, stream, tuple(phases), tuple(time), place)


def _ends(
    row: _Row,
    groups: Mapping[tuple[tuple[Number, ...], int], Sequence[_Row]],
    stretch: Stretch,
    nearest: int,
    line_bytes: int,
) -> list[SharedEnd]:
    """The ends of a reference's rows that others touch before it, of each kind of row beside it the latest."""
    found = []
    stride = int(row.stream.strides[nearest].value)
    for (phases, place), group in groups.items():
        for steps in (-1, 0, 1) if phases == row.phases else ():
            apart = place - row.place - stride * steps
            gap = abs(apart) - stretch.length + 1
            if 0 < gap < line_bytes:
                end = _latest(row, group, stretch, (nearest, steps), gap if apart > 0 else -gap)
                found += [end] if end else []
    return found


def _latest(
    row: _Row, group: Sequence[_Row], stretch: Stretch, later: tuple[int, int], distance: int
) -> SharedEnd | None:
    """The last of the rows beside a reference's that are touched before, if any is.

    `later` is a loop, and by how many of its iterations the row beside is earlier than the references' times say. Of
    the two ends that meet, the end of a row is touched a row's time after its beginning.
    """
    loop, steps = later
    beside = list(row.time)
    beside[loop] -= steps
    meeting = list(beside)
    meeting[-1] -= 1 if (distance > 0) == stretch.forward else -1
    for other in group[bisect_left(group, tuple(meeting), key=lambda one: one.time) :]:
        passed = tuple(a - b for a, b in zip(other.time, meeting, strict=True))
        if other.reference is not row.reference and (any(passed) or other.time > tuple(beside)):
            return SharedEnd(row.reference, other.reference, other.stream.is_written, _window(row, passed), distance)
    return None


def _window(row: _Row, passed: Time) -> Window | None:
    carrier = next((loop for loop, steps in enumerate(passed) if steps), None)
    if carrier is None:
        return None
    inner = len(row.stream.strides) - len(passed)
    return Window(carrier, tuple(fixed(steps) for steps in (*passed, *[0] * inner)))
