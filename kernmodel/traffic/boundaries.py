"""How many lines lie at the ends of loops, beyond what layer conditions count."""

from __future__ import annotations

from kernmodel.traffic.footprint import Footprint


def boundary_share(footprint: Footprint, line_bytes: int) -> float:
    """By how much lines at the ends of loops can increase traffic: what references reach beyond the loops' ranges.

    Per loop, the reach of the references of one array over the trip count; at the ends of rows that stand alone a line
    more, and of rows that follow one another at once what boundaries leave of a row.
    """
    arrays: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for walk in footprint.walks:
        arrays.setdefault((walk.array, walk.strides), []).extend(walk.places)
    shares = (_share(places, strides, footprint.trips, line_bytes) for (_, strides), places in arrays.items())
    return max(shares, default=0.0)


def _share(places: list[int], strides: tuple[int, ...], trips: tuple[int, ...], line_bytes: int) -> float:
    loops = sorted(((abs(s), t) for s, t in zip(strides, trips, strict=True) if s), reverse=True)
    reaches = _reaches(places, [stride for stride, _ in loops])
    factor, around = 1.0, None
    for (stride, trip), steps in zip(loops, reaches, strict=True):
        extent = (trip + steps) * stride
        if around is not None and stride < line_bytes and extent <= around < extent + line_bytes:
            factor *= around / (trip * stride)
        else:
            ends = line_bytes / stride if stride < line_bytes else 0.0
            factor *= (trip + steps + ends) / trip
        around = stride
    return factor - 1


def _reaches(places: list[int], strides: list[int]) -> list[int]:
    """How many steps of each stride, the largest first, lie between the outermost of these places."""
    middle = sorted(places)[len(places) // 2]
    steps: list[list[int]] = [[0] for _ in strides]
    for place in places:
        rest = place - middle
        for number, stride in enumerate(strides):
            count = round(rest / stride)
            steps[number].append(count)
            rest -= count * stride
    return [max(found) - min(found) for found in steps]
