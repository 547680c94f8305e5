"""How many sets of a cache data fall into: the part of the cache that a large stride can use.

A cache of S sets puts a line into set (address / line) mod S: addresses that are S lines apart share a set. Stretches
of memory that loops repeat at strides of s₁, s₂, … bytes begin at multiples of gcd(s₁, s₂, …, S × line) only. A walk
down a column of a matrix whose rows are a power of two of bytes long falls into few sets, and holds ways × sets lines
of the cache and no more, however large that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil, gcd

from kernmodel.machine.model import Machine
from kernmodel.traffic.conditions.quantities import Size
from kernmodel.traffic.conditions.streams import Stream
from kernmodel.traffic.conditions.windows import Box
from kernmodel.units import format_bytes
from kernmodel.value_types import dataclass

CROWDED = 2
"""Lines in a set, on the average of the sets that a footprint touches, from which these are looked at: where
it is fewer, a loop comes to no set a second time, or hardly."""

_MOST_STARTS = 4096
"""Stretches up to which the sets are told one by one where loops do not come back to them; more fall everywhere."""


@dataclass(frozen=True, slots=True)
class Bank:
    """A cache as its sets: `sets` that a core has, lines of a set (× safety factor), bytes of a line."""

    sets: int
    ways: float
    line_bytes: int


@dataclass(frozen=True, slots=True)
class Room:
    """What a core has of a cache.

    Attributes:
        capacity: bytes, × safety factor.
        banks: the caches that hold data together, the cache itself last: a victim cache has those that fill it before.
        sharers: cores that have as much of it, and the parts of the nest around this one's.
    """

    capacity: float
    banks: tuple[Bank, ...] = ()
    sharers: int = 1


def rooms(machine: Machine, cores: int, safety: float, *, neighbours: bool = False) -> tuple[Room, ...]:
    """What a core has of each cache: its share of a shared one, a victim cache with the level that fills it.

    Args:
        neighbours: whether those that share it have the parts of the nest around this one's.
    """
    found: list[Room] = []
    for level in machine.levels:
        sharers = min(cores, level.cores_sharing)
        bank = Bank(max(1, round(level.sets / sharers)), level.ways * safety, level.line_bytes)
        inner = found[-1] if found and level.filled_by == "victims" else Room(0.0)
        capacity, together = level.size_bytes / sharers * safety + inner.capacity, sharers if neighbours else 1
        found.append(Room(capacity, (*inner.banks, bank), together))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class StridedFootprint:
    """What the references of a stream touch during a window: stretches of memory that loops repeat at a distance.

    Attributes:
        array: its name.
        volume: bytes of the lines.
        starts: where the stretches of the references begin, in bytes from the start of the array.
        stretch: bytes of a stretch.
        repeats: of each loop that repeats the stretches, its stride in bytes and its iterations.
    """

    array: str
    volume: Size
    starts: tuple[int, ...]
    stretch: int
    repeats: tuple[tuple[int, int], ...]

    def strides_text(self) -> str:
        """The strides of the loops ("strides of 1 KiB"), or how far apart the references are that come nearest."""
        if self.repeats:
            return "strides of " + " and ".join(format_bytes(stride) for stride, _ in self.repeats)
        ordered = sorted(self.starts)
        return f"{format_bytes(min(b - a for a, b in pairwise(ordered)))} apart"

    def sets_touched(self, bank: Bank) -> int:
        """Sets of a cache that the lines fall into."""
        return _sets_under(self.starts, self.stretch, self.repeats, bank)


@lru_cache(maxsize=1024)
def _sets_under(places: tuple[int, ...], stretch: int, repeats: tuple[tuple[int, int], ...], bank: Bank) -> int:
    """Sets under stretches from these places and their repetitions; asked again for every reuse in a window."""
    line, turn, starts = bank.line_bytes, bank.sets * bank.line_bytes, set(places)
    ring = turn  # stretches begin at the same places again after so many bytes
    for stride, count in sorted(repeats, key=lambda repeat: -gcd(repeat[0], turn)):
        nearer = gcd(ring, stride)
        nearer = nearer if nearer % line == 0 else gcd(nearer, line)
        if count * nearer >= ring:
            ring = nearer
        elif len(starts) * count <= _MOST_STARTS:
            starts = {start + number * stride for start in starts for number in range(count)}
        else:
            return bank.sets
        if ring <= max(line, stretch):
            return bank.sets
    return turn // ring * _covered(starts, stretch, ring, line)


def _covered(starts: Iterable[int], stretch: int, ring: int, line_bytes: int) -> int:
    """Lines of a ring of so many bytes that stretches from these places cover."""
    around = ring // line_bytes
    taken = list[tuple[int, int]]()
    for start in {start % ring for start in starts}:
        first, last = start // line_bytes, (start + stretch - 1) // line_bytes + 1
        taken += [(first, min(last, around)), (0, min(first, last - around))]
    covered = end = 0
    for first, last in sorted(taken):
        covered += max(0, last - max(first, end))
        end = max(end, last)
    return covered


@dataclass(frozen=True, slots=True)
class FewSets:
    """A footprint in a cache of which it can use a part: `touched` of `sets` sets, `usable` bytes."""

    footprint: StridedFootprint
    touched: int
    sets: int
    usable: float

    def share(self) -> float:
        """What the footprint needs of what it can use."""
        return float(self.footprint.volume.value / self.usable)


def strided_footprint(stream: Stream, region: Size | Box, touched: Size) -> StridedFootprint | None:
    """What a stream touches of such regions, so many bytes; None where it is one contiguous run of memory."""
    if isinstance(region, Size):
        if len(stream.references) == 1 or region.value >= touched.value:
            return None
        stretch = int(region.value)
        repeats: tuple[tuple[int, int], ...] = ()
    else:
        stretch = int(region.stretch.value)
        repeats = tuple(
            (int(stream.strides[loop].magnitude), ceil(extent.value))
            for loop, extent in region.apart.items()
            if extent is not None and extent.value > 1
        )
    return StridedFootprint(stream.array, touched, starts_of(stream), max(1, stretch), repeats)


def starts_of(stream: Stream) -> tuple[int, ...]:
    """Where the references of a stream stand in the first iteration, in bytes from the start of the array."""
    return tuple(dict.fromkeys(int(stream.start_of(reference)) for reference in stream.references))


def few_sets(strided: Sequence[StridedFootprint], room: Room) -> FewSets | None:
    """The footprint that has the least room for what it touches, of those that fall into few sets; None without any."""
    found = [_use(footprint, room) for footprint in strided]
    crowded = [use for use in found if use is not None]
    return max(crowded, key=FewSets.share, default=None)


def _use(footprint: StridedFootprint, room: Room) -> FewSets | None:
    if not room.banks:
        return None
    last = room.banks[-1]
    if footprint.stretch >= last.sets * last.line_bytes or footprint.volume.value <= last.ways * last.line_bytes:
        return None
    lines, touched = footprint.volume.value / last.line_bytes, footprint.sets_touched(last)
    if touched >= last.sets or lines < CROWDED * touched:
        return None
    usable = sum(footprint.sets_touched(bank) * bank.ways * bank.line_bytes for bank in room.banks)
    return FewSets(footprint, touched, last.sets, usable)
