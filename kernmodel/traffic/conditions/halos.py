"""What the borders of blocks cost: references that reach beyond a block touch rows that another block has loaded.

In a nest whose loop i runs within blocks of B iterations, references of one stream that are up to R iterations of i
apart touch B + R rows of each block; the R rows at the border are in the cache only if they survive a whole block.

The part of a nest that one core executes is such a block, too, whose R rows other cores have in their parts. In a cache
that cores share find one another's rows, if they begin each sweep together and each has the part next to the other's:

- R of its B + R rows a core reads first of all: those at the border, which itself and the core before it have used at
  the end of the sweep before. They are there if one iteration of all cores fits.
- R more it reads last of all: those around its other border. The core behind it has begun with them and is done with
  them B − R iterations before. They are there if so many iterations of all cores fit.

At the two ends of all parts in the cache nobody has used the rows. Sweeps are taken to be over the same arrays each
time; where two are swapped in between, both have to fit for the rows that are read first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction

from kernmodel.formulas.terms import Number
from kernmodel.traffic.conditions.quantities import NEVER, NOTHING, Rate, Size
from kernmodel.traffic.conditions.streams import Reference, SizedNest, Stream
from kernmodel.traffic.conditions.windows import Window, edges_count, lines_under, places_in_line, unit_window
from kernmodel.value_types import dataclass

_NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class Border:
    """A loop of the nest that runs within blocks.

    Attributes:
        loop: number of the loop within a block, or divided over cores.
        window: the time in which one block or part is done: what must fit for its border to be found again.
        meetings: of a part, the times between a use of the rows around a border by one core and the next by the core on
            the other side of it; each is that of as many rows as the references reach beyond the part.
    """

    loop: int
    window: Window
    meetings: tuple[Window, ...] = ()

    def found(self, sharers: int, holds: Callable[[Window], bool]) -> Fraction:
        """Rows that a core finds because of its neighbours in a cache that so many share, by those beyond its part."""
        return Fraction(sharers - 1, sharers) * sum(map(holds, self.meetings)) if sharers > 1 else _NONE


def borders_of(nest: SizedNest, stream: Stream) -> tuple[Border, ...]:
    """The loops along which references of the stream lie apart, and which are blocked or divided over cores."""
    found, divided = [], nest.prepared.nest.divided
    for inner, variable in enumerate(nest.variables):
        if len({reference.shift[inner].value for reference in stream.references}) > 1:
            around = [outer for outer in range(inner) if _is_block(nest, stream, outer, inner)]
            found += [Border(inner, unit_window(len(nest.trips), outer)) for outer in around]
            if variable in divided and not around:  # the border of a part is one of its blocks
                window = unit_window(len(nest.trips), inner - 1)
                found.append(Border(inner, window, _meetings(nest, stream, inner)))
    return tuple(found)


def _meetings(nest: SizedNest, stream: Stream, loop: int) -> tuple[Window, ...]:
    """The times between the uses of rows around a border by the cores on both sides of it (see above).

    Where loops around the divided one move the stream, each of its runs begins with other rows than the last has used.
    """
    step = unit_window(len(nest.trips), loop)
    shifts = sorted((reference.shift[loop] for reference in stream.references), key=lambda shift: shift.value)
    apart = nest.trips[loop] - (shifts[-1] - shifts[0])
    between = step
    if apart.value > 1:
        between = Window(loop, tuple(apart if part.value else part for part in step.vector))
    moved = any(stream.strides[outer].value and nest.trips[outer].value > 1 for outer in range(loop))
    return (between,) if moved else (step, between)


def counts_beyond(nest: SizedNest, divided: Collection[str]) -> bool:
    """Whether rows beyond a part of these loops are counted: where trip counts do not follow outer loops, those of
    streams whose references lie apart along one of them."""
    loops = [loop for loop, variable in enumerate(nest.variables) if variable in divided]
    apart = (
        len({reference.shift[loop].value for reference in s.references}) > 1 for s in nest.streams for loop in loops
    )
    return nest.space is None and any(apart)


def reach_beyond(nest: SizedNest) -> float:
    """How many iterations the references of a stream lie apart along a loop that is divided over cores, over those of
    the part; of the stream and loop where that is most, 0 if none is divided."""
    shares = [0.0]
    for loop, variable in enumerate(nest.variables):
        if variable in nest.prepared.nest.divided:
            for stream in nest.streams:
                shifts = [reference.shift[loop].value for reference in stream.references]
                shares.append(float((max(shifts) - min(shifts)) / nest.trips[loop].value))
    return max(shares)


def _is_block(nest: SizedNest, stream: Stream, outer: int, inner: int) -> bool:
    """Whether each iteration of `outer` is a block of `inner`, one after the other."""
    steps = stream.strides[inner].value * nest.trips[inner].value
    starts = nest.prepared.loops[inner].start.outer_loops()
    return steps != 0 and stream.strides[outer].value == steps and outer in starts


def with_border(
    rate: Rate,
    border: Border,
    nest: SizedNest,
    stream: Stream,
    chain: Sequence[Reference],
    line_bytes: int,
    found: Fraction = _NONE,
) -> Rate:
    """The lines that a reference brings in, with those that the references behind it (`chain`, itself first) touch
    beyond the block.

    Args:
        found: rows that neighbours' cores have left in the cache, by those beyond the block (`Border.found`).
    """
    if len(chain) < 2:
        return rate
    shifts = sorted((reference.shift[border.loop] for reference in chain), key=lambda shift: shift.value)
    reach, block = shifts[-1] - shifts[0], nest.trips[border.loop]
    if not reach.value:
        return rate
    stride, first = stream.strides[border.loop], chain[0].shift[border.loop]
    if stride.magnitude < line_bytes and edges_count(stream, block * abs(stride), line_bytes):
        # parts so short are of rows that stand alone: nobody has left anything
        own = _lines(stream, nest.trips, border.loop, first, NOTHING, line_bytes)
        factor = _lines(stream, nest.trips, border.loop, shifts[0], reach, line_bytes) / own
        return Rate(rate.numerator.scaled(factor), rate.denominator)
    rows = block + reach.scaled(1 - found)
    return Rate(rate.numerator * rows, rate.denominator * block) if rows.value > 0 else NEVER


def _lines(stream: Stream, trips: Sequence[Size], loop: int, first: Size, reach: Size, line_bytes: int) -> Fraction:
    """Lines under the stretch that starts at the shift `first` and runs over block + reach iterations of the loop, the
    mean over the places where the other loops put it."""
    stride = int(stream.strides[loop].value)
    others = (number for number in range(len(stream.strides)) if number != loop)
    steps = trips[loop].value + reach.value - 1
    length = int(abs(stride) * steps) + stream.element_bytes
    start = stream.start + stride * (first.value - stream.references[0].shift[loop].value)
    lowest: Number = start if stride > 0 else start - length + stream.element_bytes
    return lines_under(length, places_in_line(int(lowest), stream, trips, others, line_bytes), line_bytes)
