"""What a nest finds in caches of the nests that are executed before it: layer conditions between nests.

A line that a nest touches in one iteration of the loops that it shares with others (or in the whole sequence) was
touched before by the nearest nest before it that runs over the same part of the array. What lies between the two
touches is what both of them touch and all nests in between: this volume decides which cache serves the line, as the
volume of an iteration does for the reuse of a nest by itself. Between the first touches of two nests lies what the
first of them touches, between their last touches what the second does: where that decides, only a simulation tells
how many lines stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from kernmodel.formulas.terms import Number
from kernmodel.source.nest.sequence import Body, NestSequence
from kernmodel.traffic.conditions.quantities import NEVER, NOTHING, Rate, Size, total
from kernmodel.traffic.conditions.reuse import Analysis, SelfReuse, StreamReuse
from kernmodel.traffic.conditions.streams import Neighbour, SizedNest
from kernmodel.traffic.conditions.varying_trips import NestFootprints, WindowVolume
from kernmodel.traffic.conditions.windows import SWEEP, Window, capped, stream_volume, unit_window
from kernmodel.value_types import dataclass

_MOST_OF = 0.9
"""A nest that touches at least this part of what another one does serves it."""

Span = tuple[Number, Number]
Volumes = Mapping[str, Size]
"""Bytes of the lines that are touched of each array."""


class Member:
    """A nest of a sequence at given sizes: what it touches of each array in an iteration of a loop that it shares."""

    def __init__(self, nest: SizedNest, line_bytes: int) -> None:
        self.nest = nest
        self.line_bytes = line_bytes
        self._volumes: dict[int, Volumes] = {}

    @cached_property
    def arrays(self) -> tuple[str, ...]:
        """The arrays that it touches."""
        return tuple(dict.fromkeys(stream.array for stream in self.nest.streams))

    def writes(self, array: str) -> bool:
        """Whether it writes an array."""
        return any(stream.is_written for stream in self.nest.streams if stream.array == array)

    def stays(self, array: str, loop: int) -> bool:
        """Whether it touches the same part of an array in every iteration of a loop (the sequence for `SWEEP`)."""
        own = (stream for stream in self.nest.streams if stream.array == array)
        return loop == SWEEP or not any(stream.strides[loop].value for stream in own)

    def volumes(self, loop: int) -> Volumes:
        """What it touches in one iteration of a loop, or in a sweep."""
        if loop not in self._volumes:
            window = unit_window(len(self.nest.trips), loop)
            self._volumes[loop] = self._regular(window) if self.nest.space is None else self._varying(window)
        return self._volumes[loop]

    def _regular(self, window: Window) -> Volumes:
        nest, found = self.nest, dict[str, Size]()
        for stream in nest.streams:
            part = stream_volume(stream, nest.trips, window, self.line_bytes)
            found[stream.array] = found.get(stream.array, NOTHING) + part
        return {array: capped(size, nest.whole_bytes(array)) for array, size in found.items()}

    def _varying(self, window: Window) -> Volumes:
        assert self.nest.space is not None
        known = NestFootprints(self.nest, self.nest.space, self.line_bytes).volume(window)
        parts = zip(self.arrays, known.arrays, strict=True)
        return {array: WindowVolume([part], known.where, known.values).largest for array, part in parts}

    def span(self, array: str, loop: int) -> Span:
        """First and last byte that it touches of an array in the first iteration of a loop."""
        lows, highs = list[Number](), list[Number]()
        for stream in (one for one in self.nest.streams if one.array == array):
            ends = [
                stream.strides[k].value * (self.nest.trips[k].value - 1) for k in range(loop + 1, len(self.nest.trips))
            ]
            starts = [stream.start_of(reference) for reference in stream.references]
            lows.append(min(starts) + sum(min(0, end) for end in ends))
            highs.append(max(starts) + sum(max(0, end) for end in ends) + stream.element_bytes)
        return min(lows), max(highs)

    def forward(self, array: str) -> bool:
        """Whether the innermost loop runs through an array toward higher addresses."""
        moves = (s.strides[k].value for s in self.nest.streams if s.array == array for k in range(len(s.strides)))
        return all(move >= 0 for move in moves)


@dataclass(frozen=True, slots=True)
class Run:
    """A nest during one iteration of one of its loops (during a whole sweep for `SWEEP`)."""

    member: Member
    loop: int

    def bytes_of(self, array: str) -> Number:
        """Bytes of the lines that it touches of an array."""
        return self.member.volumes(self.loop)[array].value

    def covered_by(self, other: Run, array: str) -> float:
        """Which part of what it touches of an array another one touches too."""
        share = min(1.0, float(Fraction(other.bytes_of(array)) / Fraction(self.bytes_of(array))))
        if self.member.nest.space is not None or other.member.nest.space is not None:
            return share
        mine, theirs = (run.member.span(array, run.loop) for run in (self, other))
        common = min(mine[1], theirs[1]) - max(mine[0], theirs[0])
        return max(0.0, min(share, float(Fraction(common) / Fraction(mine[1] - mine[0]))))

    def meets(self, other: Run, array: str) -> bool:
        """Whether both touch the same of an array for the most part."""
        return max(self.covered_by(other, array), other.covered_by(self, array)) >= 0.5


def joint(runs: Iterable[Run]) -> Size:
    """Bytes that several nests touch together: of an array most of them touch the same."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        for array in run.member.arrays:
            known = found.setdefault(array, [])
            same = next((k for k, other in enumerate(known) if run.meets(other, array)), None)
            if same is None:
                known.append(run)
            elif run.bytes_of(array) > known[same].bytes_of(array):
                known[same] = run
    return total(_whole(array, parts) for array, parts in found.items())


def _whole(array: str, runs: Sequence[Run]) -> Size:
    """Bytes that nests touch of different parts of an array."""
    touched = total(run.member.volumes(run.loop)[array] for run in runs)
    return capped(touched, runs[0].member.nest.whole_bytes(array))


class SequenceReuse:
    """The reuse between the nests of a sequence at given sizes."""

    def __init__(self, sequence: NestSequence, members: Sequence[Member]) -> None:
        self.sequence = sequence
        self.members = tuple(members)
        self._found: dict[int, tuple[Neighbour, ...]] = {}

    def sized(self, number: int) -> SizedNest:
        """A nest with what it finds in caches of other nests."""
        nest, values = self.members[number].nest, dict[str, int]()
        for member in self.members:
            values |= member.nest.values
        return replace(
            nest,
            values={**values, **nest.values},
            neighbours=(*self.neighbours(number), *self._later(number)),
            shared_loops=self.sequence.bodies(number)[-1].depth,
        )

    def neighbours(self, number: int) -> tuple[Neighbour, ...]:
        """What a nest finds its lines after, from the innermost loop that it shares to the whole sequence."""
        if number not in self._found:
            bodies = reversed(self.sequence.bodies(number))
            self._found[number] = tuple(one for body in bodies for one in self._in_body(number, body))
        return self._found[number]

    def _in_body(self, number: int, body: Body) -> Iterator[Neighbour]:
        own, loop = self.members[number], body.depth - 1
        place = next(k for k, part in enumerate(body.parts) if number in _numbers(part))
        name = "sweep" if loop == SWEEP else own.nest.variables[loop]
        everything = joint(Run(self.members[k], loop) for k in body.numbers())
        yield Neighbour("", loop, name, everything, everything, again=True)
        for array in own.arrays:
            yield from self._before(number, array, body, place, name)

    def _before(self, number: int, array: str, body: Body, place: int, name: str) -> Iterator[Neighbour]:
        """What the nest before it that runs over the same part of an array has left, in an iteration around a body."""
        own, loop, count = Run(self.members[number], body.depth - 1), body.depth - 1, len(body.parts)
        for steps in range(1, count + 1):
            again = steps > place
            if again and not own.member.stays(array, loop):
                return
            part = body.parts[place - steps]
            others = [Run(self.members[k], loop) for k in _numbers(part) if array in self.members[k].arrays]
            others = [other for other in others if not again or other.member.stays(array, loop)]
            share = max((own.covered_by(other, array) for other in others), default=0.0)
            if share >= _MOST_OF or steps == count:
                least, most = self._between([body.parts[place - k] for k in range(steps + 1)], array, loop)
                label = name if number in _numbers(part) else f"nest {_named(self.sequence, part)}"
                serving = frozenset(_numbers(part))
                yield Neighbour(array, loop, label, most, least, again=again, serving=serving)
                return
            if share > 1 - _MOST_OF:
                yield Neighbour(array, loop, "", NOTHING, NOTHING, again=again, partial=True)

    def _between(self, parts: Sequence[int | Body], array: str, loop: int) -> tuple[Size, Size]:
        """The least and the most that is touched between two touches of a line, the later part first in `parts`."""
        inside = [Run(self.members[k], loop) for part in parts[1:-1] for k in _numbers(part)]
        first, last = (self._while_touching(part, array, loop) for part in (parts[-1], parts[0]))
        most = joint([*first, *inside, *last])
        if parts[0] == parts[-1]:
            return most, most
        ways = {run.member.forward(array) for run in (*first, *last) if array in run.member.arrays}
        if len(ways) > 1:
            return joint(inside), most
        return min((joint([*part, *inside]) for part in (first, last)), key=lambda size: size.value), most

    def _while_touching(self, part: int | Body, array: str, loop: int) -> list[Run]:
        """A part while it touches an array once: one iteration of loops that touch the same of it each time."""
        members = [self.members[k] for k in _numbers(part)]
        users = [member for member in members if array in member.arrays]
        inner = part.depth if isinstance(part, Body) else len(members[0].nest.trips)
        while loop + 1 < inner and all(member.stays(array, loop + 1) for member in users):
            loop += 1
        return [Run(member, loop) for member in members]

    def _later(self, number: int) -> Iterator[Neighbour]:
        """What lies between a nest and one that writes lines which it has only read, if they stay that long."""
        for array in self.members[number].arrays:
            if not self.members[number].writes(array):
                yield from self._writers(number, array, NOTHING, {number})

    def _writers(self, number: int, array: str, passed: Size, seen: set[int]) -> Iterator[Neighbour]:
        for other in range(len(self.members)):
            served = next((n for n in self.neighbours(other) if n.array == array and number in n.serving), None)
            if other in seen or served is None:
                continue
            volume = max(passed, served.volume, key=lambda size: size.value)
            if self.members[other].writes(array):
                yield Neighbour(array, served.loop, "", volume, volume, again=served.again, writes=True)
            else:
                yield from self._writers(other, array, volume, seen | {other})


def _numbers(part: int | Body) -> tuple[int, ...]:
    return (part,) if isinstance(part, int) else tuple(part.numbers())


def _named(sequence: NestSequence, part: int | Body) -> str:
    return "+".join(sequence.names[number] for number in _numbers(part))


def with_neighbours(analysis: Analysis) -> Analysis:
    """The reuse of a nest with what it finds of others in place of what it finds of itself over the loops that it
    shares with them."""
    nest = analysis.nest
    reuses = tuple(_with_neighbours(reuse, nest) for reuse in analysis.reuses)
    windows = {window_of(number).key: one.volume for number, one in enumerate(nest.neighbours)}
    strided = dict.fromkeys(windows, ())
    return replace(
        analysis, reuses=reuses, volumes={**analysis.volumes, **windows}, strided={**analysis.strided, **strided}
    )


def window_of(number: int) -> Window:
    """The time since a neighbour, by its number."""
    return Window(SWEEP - 1 - number, ())


def _with_neighbours(reuse: StreamReuse, nest: SizedNest) -> StreamReuse:
    selves = [own for own in reuse.selves if own.carrier >= nest.shared_loops]
    known = {own.carrier: own for own in reuse.selves}
    later = []
    for number, one in enumerate(nest.neighbours):
        window = window_of(number)
        if one.writes:
            later += [window] if one.array == reuse.stream.array else []
            continue
        if one.partial:
            continue
        rate, rows = _rate(reuse, one, known)
        if rate is not None:
            selves.append(SelfReuse(one.loop, window, rate, rows.rows if rows else None))
    return replace(reuse, selves=tuple(selves), written_later=tuple(later))


def _rate(reuse: StreamReuse, one: Neighbour, known: Mapping[int, SelfReuse]) -> tuple[Rate | None, SelfReuse | None]:
    """Lines per iteration that a stream loads where it finds those of a neighbour; None where it finds none."""
    own = known.get(one.loop)
    moves = one.loop != SWEEP and bool(reuse.stream.strides[one.loop].value)
    if not one.array:
        # of itself, by a loop that moves it by less than a line
        return (own.rate, own) if own is not None and moves else (None, None)
    if one.array != reuse.stream.array:
        return None, None
    if not one.again or one.loop == SWEEP:
        return NEVER, None
    return (own.rate, own) if own is not None and not moves else (None, None)
