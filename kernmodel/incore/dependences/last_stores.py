"""Which of many stores wrote the bytes of a load last: stores are kept by byte, so that a load looks its bytes up.

`addresses` compares a load with every store, which is fastest for the few stores of usual loops.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from kernmodel.value_types import NamedTuple

Place = tuple[int, int]
"""Number of an instruction and of its memory reference."""


class LastStore(NamedTuple):
    """A store that wrote some bytes of a load last.

    Attributes:
        place: of the store; passes: from the store to the load.
        whole: whether it wrote all bytes of the load.
    """

    place: Place
    passes: int
    whole: bool


class _Lane:
    """The stores to one byte by their position, those of one position in the order of the program."""

    __slots__ = ("places", "positions")

    def __init__(self) -> None:
        self.places: dict[int, list[Place]] = {}
        self.positions: list[int] = []

    def add(self, position: int, place: Place) -> None:
        if position not in self.places:
            insort(self.positions, position)
            self.places[position] = []
        self.places[position].append(place)

    def before(self, position: int, number: int) -> Place | None:
        """The last store at this position before an instruction."""
        places = self.places.get(position, ())
        count = bisect_left(places, (number, -1))
        return places[count - 1] if count else None

    def behind(self, position: int) -> tuple[int, Place] | None:
        """The passes to the next position at which a store is, and the last one there."""
        k = bisect_right(self.positions, position)
        if k == len(self.positions):
            return None
        return self.positions[k] - position, self.places[self.positions[k]][-1]


class LatestStores:
    """Stores whose addresses differ by constants, and by whole strides where the stride is no plain number.

    All of them move by the same stride from pass to pass.
    """

    __slots__ = ("_extents", "_highest", "_lanes", "_last", "_lowest_end", "_positions", "_stride")

    def __init__(self, stride: int | None = None) -> None:
        """For stores that move by so many bytes per pass; None: that meet where they have the same position only."""
        self._lanes: dict[int, _Lane] = {}
        self._extents: dict[Place, tuple[int, int]] = {}
        self._positions: list[int] = []
        self._last = self._highest = self._lowest_end = 0
        self._stride = stride

    def add(self, place: Place, start: int, size: int, position: int = 0) -> None:
        """Add a store, in the order of the program.

        Args:
            place: of the store.
            start: constant part of its address; size: in bytes.
            position: in strides, where the stride is no plain number.
        """
        end = start + size
        self._highest = max(self._highest, start) if self._extents else start
        self._lowest_end = min(self._lowest_end, end) if self._extents else end
        self._last = place[0]
        self._extents[place] = start, size
        insort(self._positions, position)
        for byte in range(start, end):
            lane, at = self._cell(byte, position)
            self._lanes.setdefault(lane, _Lane()).add(at, place)

    def of(self, number: int, start: int, size: int, position: int = 0) -> tuple[LastStore, ...]:
        """The stores that wrote the bytes of a load last, the latest first.

        Args:
            number: of the instruction that loads; the others as in `add`.
        """
        writers = {writer for byte in range(start, start + size) for writer in self._writer(byte, number, position)}
        moves = self._stride or 0
        found = []
        for passes, place in sorted(writers, key=lambda one: (one[0], -one[1][0], -one[1][1])):
            begin, length = self._extents[place]
            begin -= passes * moves
            found.append(LastStore(place, passes, begin <= start and start + size <= begin + length))
        return tuple(found)

    def all_overlap(self, number: int, start: int, size: int) -> bool:
        """Whether all stores are before an instruction and overlap these bytes, wherever they stand."""
        return self._last < number and self._highest - size < start < self._lowest_end

    def count_from(self, position: int) -> int:
        """The stores at this position and behind it."""
        return len(self._positions) - bisect_left(self._positions, position)

    def _writer(self, byte: int, number: int, position: int) -> Iterator[tuple[int, Place]]:
        """The last store to a byte and the passes since then, if there is any."""
        key, at = self._cell(byte, position)
        lane = self._lanes.get(key)
        if lane is None:
            return
        if (place := lane.before(at, number)) is not None:
            yield 0, place
        elif self._stride == 0:
            yield 1, lane.places[at][-1]
        elif (behind := lane.behind(at)) is not None:
            yield behind

    def _cell(self, byte: int, position: int) -> tuple[int, int]:
        """Lane of a byte and position in it, which grows with the passes back to the store."""
        if not self._stride:
            return byte, position
        length = abs(self._stride)
        return byte % length, byte // length if self._stride > 0 else -(byte // length)
