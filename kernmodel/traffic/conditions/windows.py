"""How much data a loop nest touches during a reuse window: the cache volume that a reuse needs.

A window is the time between two touches of a cache line, as a vector of iterations per loop (outermost first). What all
streams touch in it is the union of what their references touch; where references of one stream follow each other over
contiguous memory, each adds the smaller of its distance to the next one and of the way travelled in the window
(Σ min(gap, t) + t; after Hammer et al., IPTW'16 §2.4.2). Numbers decide between cases, the result keeps its formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, gcd

from kernmodel.formulas.terms import Number
from kernmodel.traffic.conditions.quantities import NOTHING, ONE, Size, fixed, product, smaller, total
from kernmodel.traffic.conditions.streams import Reference, SizedNest, Stream
from kernmodel.value_types import dataclass

HOLE_SHARE = Fraction(1, 8)
"""Rows count as contiguous if the part of a row that the loops leave out (boundaries) is at most this share of it: the
references beside the centre mostly touch it, and formulas stay those of the literature.

Measured in 2026 on the 25 carried kernels without index arrays at five sizes each, from their own down to a hundredth,
on clx, snb and zen2 (369 points, by layer conditions alone): halved or doubled, the value changes no traffic and no
formula of it. Conditions change in 6 and in 18 points, all at a tenth of the kernel's own sizes or less, where rows
merge or fall apart in windows that decide nothing there."""

EDGE_SHARE = Fraction(1, 32)
"""The lines at the ends of a stretch that stands alone are counted while they add more than this share of it.

Measured as for `HOLE_SHARE`: halved, the value changes nothing in these points; doubled, it changes the volumes of
conditions in 18 by up to 5.3 %, but neither whether they hold nor the traffic. Traffic changes at four times the value
(3 points, 8.6 % of what matmul-blocked moves on its busiest path) and at a quarter (6, 1.4 % of stencil-blocked's)."""

SWEEP = -1
"""The carrying "loop" of the repetition of the whole nest."""


@dataclass(frozen=True, slots=True)
class Window:
    """Time between two touches: `vector[carrier]` > 0 is its first component that is not 0; all 0 for a sweep."""

    carrier: int
    vector: tuple[Size, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for windows that are equal as formulas."""
        return (self.carrier, *(part.formula for part in self.vector))


def unit_window(loops: int, carrier: int) -> Window:
    """One iteration of loop `carrier` (or a sweep)."""
    return Window(carrier, tuple(ONE if loop == carrier else NOTHING for loop in range(loops)))


def volume(nest: SizedNest, window: Window, line_bytes: int) -> Size:
    """Bytes of cache lines that all streams touch during the window, of no array more than it has."""
    return volume_of(nest, [stream_volume(stream, nest.trips, window, line_bytes) for stream in nest.streams])


def volume_of(nest: SizedNest, parts: Sequence[Size]) -> Size:
    """Bytes that all streams touch, each of them so many, of no array more than it has."""
    touched: dict[str, Size] = {}
    for stream, part in zip(nest.streams, parts, strict=True):
        touched[stream.array] = touched.get(stream.array, NOTHING) + part
    return total(capped(size, nest.whole_bytes(array)) for array, size in touched.items())


def capped(touched: Size, whole: Size | None) -> Size:
    """Bytes touched of an array, at most the whole of it (None where its extent is not known)."""
    return touched if whole is None else smaller(touched, whole)


def stream_volume(stream: Stream, trips: Sequence[Size], window: Window, line_bytes: int) -> Size:
    """Bytes that the references of one stream touch during the window."""
    return region_volume(stream, touched_region(stream, trips, window, line_bytes), line_bytes)


def touched_region(stream: Stream, trips: Sequence[Size], window: Window, line_bytes: int) -> Size | Box:
    """What each reference of a stream touches during a window: so many contiguous bytes, or a box of stretches.

    The window is an iteration longer where it begins and ends within one.
    """
    if _straddles(stream, trips, window.carrier):
        longer = (part + ONE if loop == window.carrier else part for loop, part in enumerate(window.vector))
        window = Window(window.carrier, tuple(longer))
    travel = _contiguous_travel(stream, trips, window, line_bytes)
    return _box_of(stream, trips, window, line_bytes) if travel is None else travel


def region_volume(stream: Stream, region: Size | Box, line_bytes: int) -> Size:
    """Bytes that all references of a stream touch, each such a region: a box is one per reference."""
    if isinstance(region, Size):
        return _union([_position(stream, r, range(len(stream.strides))) for r in stream.references], region)
    stretch = region.stretch
    if any(extent is not None for extent in region.apart.values()) and edges_count(stream, stretch, line_bytes):
        stretch += fixed(line_bytes - stream.element_bytes)  # lines under a stretch exceed it by this on average
    positions = {reference.order: _position(stream, reference, region.within) for reference in stream.references}
    return _Boxes(region.apart, positions, stretch).volume(stream.references, tuple(region.apart)[::-1])


def _straddles(stream: Stream, trips: Sequence[Size], carrier: int) -> bool:
    """Whether an iteration of the carrying loop touches all that it touches again and again.

    Then a window that starts within it touches all of it and of the next one: `C[j][i]` over `j` with `k` between.
    """
    if carrier < 0 or not stream.strides[carrier].value:
        return False
    repeated = False
    for loop in range(carrier + 1, len(trips)):
        if stream.strides[loop].value:
            return repeated
        repeated = repeated or trips[loop].value > 1
    return False


def is_dense(stride: Number, inner_extent: Number, line_bytes: int) -> bool:
    """Whether the next stretch follows the one before with no hole, or one that boundaries leave."""
    return stride - inner_extent <= max(Fraction(line_bytes), stride * HOLE_SHARE)


def overlaps(stride: Number, inner_extent: Number) -> bool:
    """Whether the next stretch covers part of the one before (a[i+j]), more than boundaries do."""
    return stride < inner_extent * (1 - HOLE_SHARE)


def _contiguous_travel(stream: Stream, trips: Sequence[Size], window: Window, line_bytes: int) -> Size | None:
    """The way a stream travels in the window if it runs through memory row by row without holes, else None."""
    moving = [loop for loop, stride in enumerate(stream.strides) if stride.value]
    inside = [loop for loop in moving if loop >= window.carrier]
    strides = [stream.strides[loop].magnitude for loop in moving]
    if not inside or strides != sorted(strides, reverse=True) or strides[-1] >= line_bytes:
        return None
    for outer, inner in pairwise(inside):
        extent = stream.strides[inner].magnitude * trips[inner].value
        stride = stream.strides[outer].magnitude
        if not is_dense(stride, extent, line_bytes) or overlaps(stride, extent):
            return None
    top = abs(stream.strides[inside[0]])
    if inside[0] != window.carrier:
        return top * trips[inside[0]]
    travel = total(abs(stream.strides[loop]) * window.vector[loop] for loop in inside)
    return travel if travel.value > 0 else top * window.vector[window.carrier]


def _position(stream: Stream, reference: Reference, loops: Sequence[int]) -> Size:
    """Where a reference is ahead of the stream's origin, in bytes in the direction of travel."""
    ahead = total(abs(stream.strides[loop]) * reference.shift[loop] for loop in loops if stream.strides[loop].value)
    return ahead + abs(reference.offset) if reference.offset.value else ahead


def _union(positions: Sequence[Size], travel: Size) -> Size:
    """Union of equal stretches that start at the positions: Σ min(gap to the next, travel) + travel."""
    ordered = sorted(positions, key=lambda position: position.value)
    gaps = (after - before for before, after in pairwise(ordered))
    return total(smaller(gap, travel) for gap in gaps if gap.value) + travel


@dataclass(frozen=True, slots=True)
class Box:
    """What one reference touches during a window where it is no single run through memory.

    Attributes:
        stretch: bytes of a stretch of memory.
        within: the loops that run through a stretch.
        apart: the loops that repeat it at a distance, the smallest first, each with its iterations during the window
            (None where it stands still).
    """

    stretch: Size
    within: tuple[int, ...]
    apart: Mapping[int, Size | None]


def _box_of(stream: Stream, trips: Sequence[Size], window: Window, line_bytes: int) -> Box:
    """Loops whose stride continues the stretch so far lengthen it; the others repeat it at a distance."""
    ascending = sorted(
        (loop for loop, stride in enumerate(stream.strides) if stride.value),
        key=lambda loop: (stream.strides[loop].magnitude, -loop),
    )
    stretch, within, apart = fixed(stream.element_bytes), list[int](), dict[int, Size | None]()
    for loop in ascending:
        stride = abs(stream.strides[loop])
        extent = None if loop < window.carrier else window.vector[loop] if loop == window.carrier else trips[loop]
        if not apart and extent is None and stride.value < line_bytes:
            within.append(loop)
        elif not apart and extent is not None and _continues(stride, stretch, line_bytes, first=not within):
            # end to end, or overlapping
            stretch = stretch + stride * (extent - ONE) if overlaps(stride.value, stretch.value) else stride * extent
            within.append(loop)
        else:
            apart[loop] = extent
    return Box(stretch, tuple(within), apart)


def edges_count(stream: Stream, stretch: Size, line_bytes: int) -> bool:
    """Whether the lines at the ends of a stretch add enough to be counted."""
    return line_bytes - stream.element_bytes > stretch.value * EDGE_SHARE


def _continues(stride: Size, stretch: Size, line_bytes: int, *, first: bool) -> bool:
    if first:
        return stride.value < line_bytes
    return is_dense(stride.value, stretch.value, line_bytes)


class _Boxes:
    """The union of a box per reference, by slices along the loops that set stretches apart.

    `positions` of the references (by `order`) are those of their stretches within a slice. The same references meet in
    many slices: their union is remembered.
    """

    def __init__(self, extents: Mapping[int, Size | None], positions: Mapping[int, Size], stretch: Size) -> None:
        self._extents, self._positions, self._stretch = extents, positions, stretch
        self._known: dict[tuple[tuple[int, ...], int], Size] = {}

    def volume(self, references: Sequence[Reference], apart: tuple[int, ...]) -> Size:
        """Bytes under the boxes of these references, sliced along the loops `apart`."""
        key = tuple(reference.order for reference in references), len(apart)
        if key not in self._known:
            self._known[key] = self._sliced(references, apart)
        return self._known[key]

    def _sliced(self, references: Sequence[Reference], apart: tuple[int, ...]) -> Size:
        if not apart:
            return _union([self._positions[reference.order] for reference in references], self._stretch)
        loop, rest = apart[0], apart[1:]
        shifts = {reference.shift[loop].value: reference.shift[loop] for reference in references}
        extent = self._extents[loop]
        if extent is None or len(shifts) == 1:
            slices = ([r for r in references if r.shift[loop].value == value] for value in shifts)
            return total(self.volume(part, rest) for part in slices) * (extent or ONE)
        edges = sorted([*shifts.values(), *(shift + extent for shift in shifts.values())], key=lambda edge: edge.value)
        volumes = []
        for low, high in pairwise(edges):
            covering = [r for r in references if low.value - extent.value < r.shift[loop].value <= low.value]
            if covering and high.value > low.value:
                volumes.append((high - low) * self.volume(covering, rest))
        return total(volumes)


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of memory that a stream runs through and that the next one does not continue (a row with holes around).

    Attributes:
        loops: the loops that run through it.
        extent: bytes of its elements with the steps between them.
        length: bytes from its first to its last.
        places: where in a line the other loops let it begin, each with how often.
        forward: whether it is run through toward higher addresses.
    """

    loops: tuple[int, ...]
    extent: Size
    length: int
    places: Mapping[int, int]
    forward: bool

    def lines(self, line_bytes: int) -> Fraction:
        """Lines under it, the mean over the places where it begins."""
        return lines_under(self.length, self.places, line_bytes)


def lines_under(length: int, places: Mapping[int, int], line_bytes: int) -> Fraction:
    """Lines under a stretch, the mean over the places in a line where it begins, each with how often."""
    counted = sum(((place + length - 1) // line_bytes + 1) * often for place, often in places.items())
    return Fraction(counted, sum(places.values()))


def places_in_line(
    first: int, stream: Stream, trips: Sequence[Size], loops: Iterable[int], line_bytes: int
) -> dict[int, int]:
    """Where in a line a stretch begins while these loops move it on from `first`, each place with how often.

    A loop that runs long enough to come back to a place counts as if it ended there; one that does not, as it is.
    """
    places = {first % line_bytes: 1}
    for loop in loops:
        stride = int(stream.strides[loop].value)
        steps = range(min(line_bytes // gcd(line_bytes, stride), ceil(trips[loop].value)))
        moved: dict[int, int] = {}
        for place, often in places.items():
            for step in steps if len(steps) > 1 else ():
                there = (place + step * stride) % line_bytes
                moved[there] = moved.get(there, 0) + often
        places = moved or places
    return places


@dataclass(frozen=True, slots=True)
class _Merged:
    """Loops whose stretches overlap or follow one another: the extent of all, and `step` bytes of it per iteration.

    `divisors` are the trip counts over which lines are shared, `last` that of the loop merged last.
    """

    loops: tuple[int, ...]
    extent: Size
    step: Size
    divisors: tuple[Size, ...]
    last: tuple[Size, ...]


def lines_per_iteration(stream: Stream, trips: Sequence[Size], outermost: int, line_bytes: int) -> tuple[Size, Size]:
    """Distinct lines that one reference touches per iteration, over all iterations of the loops from `outermost` in.

    Returns numerator and denominator. Loops that do not move the reference divide; so do small strides, which touch a
    line several times.
    """
    merged = _merge(stream, trips, outermost, line_bytes)
    divisors = product(merged.divisors)
    if not merged.loops:
        return ONE, divisors
    stretch = _stretch(stream, trips, merged, outermost, line_bytes)
    if stretch:
        edges = fixed(stretch.lines(line_bytes) * line_bytes - stretch.extent.value)
        return stretch.extent + edges, product(merged.last).scaled(line_bytes) * divisors
    if merged.extent.value < line_bytes:
        return ONE, divisors * product(merged.last)
    return merged.step, divisors.scaled(line_bytes)


def stretch_of(stream: Stream, trips: Sequence[Size], outermost: int, line_bytes: int) -> Stretch | None:
    """The stretches whose ends `lines_per_iteration` counts; None where it counts none."""
    merged = _merge(stream, trips, outermost, line_bytes)
    return _stretch(stream, trips, merged, outermost, line_bytes) if merged.loops else None


def _merge(stream: Stream, trips: Sequence[Size], outermost: int, line_bytes: int) -> _Merged:
    loops = range(outermost, len(trips))
    divisors = [trips[loop] for loop in loops if not stream.strides[loop].value]
    moving = (loop for loop in loops if stream.strides[loop].value)
    ascending = sorted(moving, key=lambda loop: stream.strides[loop].magnitude)
    step, extent = ONE, NOTHING  # the stretch grows by `step` bytes in each iteration of the loop merged last
    merged, last = list[int](), list[Size]()
    for loop in ascending:
        stride = abs(stream.strides[loop])
        if merged and overlaps(stride.value, extent.value):
            extent += stride * (trips[loop] - ONE)
            divisors += [*last, trips[loop]]
            step, last = extent, [ONE]
        elif stride.value < line_bytes:
            extent = stride * trips[loop]
            divisors += last
            step, last = stride, [trips[loop]]
        else:
            break
        merged.append(loop)
    return _Merged(tuple(merged), extent, step, tuple(divisors), tuple(last))


def _stretch(stream: Stream, trips: Sequence[Size], merged: _Merged, outermost: int, line_bytes: int) -> Stretch | None:
    if not _is_apart(stream, merged.loops, merged.extent, outermost, line_bytes):
        return None
    strides = stream.strides
    inner = min(merged.loops, key=lambda loop: strides[loop].magnitude)
    outer = max(merged.loops, key=lambda loop: strides[loop].magnitude)
    length = int(merged.extent.value - strides[inner].magnitude) + stream.element_bytes
    backward = sum(
        strides[loop].magnitude * (trips[loop].value - 1) for loop in merged.loops if strides[loop].value < 0
    )
    others = (loop for loop in range(len(strides)) if loop not in merged.loops)
    places = places_in_line(int(stream.start - backward), stream, trips, others, line_bytes)
    return Stretch(merged.loops, merged.extent, length, places, strides[outer].value > 0)


def _is_apart(stream: Stream, merged: Sequence[int], extent: Size, outermost: int, line_bytes: int) -> bool:
    """Whether a stretch of memory is not continued by the next one, so that lines at its ends are fetched for it.

    The next one in time continues it if both follow one another in the direction in which they are run through: then
    the line between is touched by one at its end and by the other at its beginning.
    """
    if not edges_count(stream, extent, line_bytes):
        return False
    moving = [loop for loop, stride in enumerate(stream.strides) if stride.value and loop not in merged]
    around = [loop for loop in moving if loop >= outermost]
    following = [loop for loop in moving if loop < min(merged)][-1:]
    distances = [stream.strides[loop].magnitude for loop in around + following]
    joined = around + [loop for loop in following if not runs_against(stream, merged, loop)]
    return bool(distances) and not any(
        is_dense(stream.strides[loop].magnitude, extent.value, line_bytes) for loop in joined
    )


def runs_against(stream: Stream, merged: Sequence[int], loop: int) -> bool:
    """Whether stretches that the loops `merged` run through follow one another over `loop` in the other direction."""
    largest = max(merged, key=lambda one: stream.strides[one].magnitude)
    return (stream.strides[largest].value > 0) != (stream.strides[loop].value > 0)
