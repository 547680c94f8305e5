"""The share of a shared cache that one core can use: where it begins to lose lines, and how fast.

Others use such a cache, too, its sets are hashed, and pages lie where they lie: it loses no lines up to some size and
all of them beyond another one, which may be far larger. A stream that goes through its data again and again is timed;
what it takes says which share of its lines came from memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import MIXES, level_sizes, measured_point, place_streams
from kernmodel.measure.blocks import doubts
from kernmodel.measure.host import Effort, Harness
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import BandwidthPoint, CacheShare

_SHARES = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.5, 2.0)
"""Sizes of the data over that of the cache."""
_PLATEAU = 1.15


def measure_share(
    harness: Harness,
    topology: HostTopology,
    *,
    effort: Effort,
    progress: Callable[[str], object] = lambda what: None,
) -> CacheShare:
    """How much of the outermost cache one core can use: a load stream over more and more data, up to twice its size.

    Usable is the largest size whose lines take at most `_PLATEAU` longer than those of the smallest; others who use the
    cache, its hashing and pages that lie badly take their part.

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    last, start = topology.last_level, level_sizes(topology).get(topology.last_level.name)
    if start is None or last.level <= 2:
        return CacheShare(last.name, (), None, ())
    found, notes = [], []
    for share in _SHARES:
        total = round(share * last.size_bytes)
        if total < start:
            continue
        progress(f"{total / 2**20:.3g} MiB in {last.name}")
        place_streams(harness, MIXES["load"], total, huge=True)
        point = measured_point(harness, MIXES["load"], last.name, total, x86.vector_bytes(), effort)
        notes += doubts(point.cycles_per_line, f"{total / 2**20:.3g} MiB in {last.name}")
        found.append(point)
    return CacheShare(last.name, tuple(found), usable_bytes(found), tuple(notes))


def usable_bytes(points: Sequence[BandwidthPoint]) -> int | None:
    """The size up to which no line takes longer than on the plateau, by ascending size, between two sizes linear in
    them; those that are not confirmed are passed over. None where the smallest is not, or where no line takes longer
    and the largest is not."""
    if not points or not points[0].cycles_per_line.confirmed:
        return None
    before: BandwidthPoint | None = None
    for point in points:
        cycles = point.cycles_per_line
        if not cycles.confirmed:
            continue
        most = _PLATEAU * points[0].cycles_per_line.value
        if before is not None and cycles.value > most:
            part = (most - before.cycles_per_line.value) / (cycles.value - before.cycles_per_line.value)
            return round(before.total_bytes + part * (point.total_bytes - before.total_bytes))
        before = point
    return points[-1].total_bytes if points[-1].cycles_per_line.confirmed else None


def kept_shares(share: CacheShare, beside: Sequence[float], memory: float) -> list[tuple[int, float]]:
    """The share of lines that the cache keeps of data of so many bytes, from what is usable upward.

    A stream that finds the share h of its lines in the cache has h/(1 − h) of them beside each line from memory; what
    these take together was measured for whole numbers, and is linear in the share between two of them.

    Args:
        beside: cycles of a line from memory beside 0, 1, 2, … lines of the cache, none less than the one before; may be
            empty: then a line from either takes what it takes alone.
        memory: cycles of a line of a load stream from memory.

    Returns:
        ascending in bytes, descending in share, between 1 and 0; empty where it is not known.
    """
    if share.usable_bytes is None or not share.points:
        return []
    plateau = share.points[0].cycles_per_line.value
    mixed = sorted((1 / (count + 1), cycles / (count + 1)) for count, cycles in enumerate(beside[1:], 1))
    missing = (0.0, *(part for part, _ in mixed), 1.0)
    # more lines from memory never take less
    times = tuple(accumulate((plateau, *(cycles for _, cycles in mixed), max(memory, plateau)), max))
    found = [(share.usable_bytes, 1.0)]
    for point in share.points:
        if point.total_bytes > share.usable_bytes and point.cycles_per_line.confirmed:
            lost = _where(times, missing, point.cycles_per_line.value)
            found.append((point.total_bytes, min(found[-1][1], 1 - lost)))
    return found if len(found) > 1 else []


def _where(times: Sequence[float], parts: Sequence[float], time: float) -> float:
    """The part at which a line takes such a time, linear between the given ones; the least where several are."""
    for (low, before), (high, after) in pairwise(zip(times, parts, strict=True)):
        if time <= high:
            return after if high == low else before + (after - before) * max(0.0, time - low) / (high - low)
    return parts[-1]
