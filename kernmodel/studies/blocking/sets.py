"""Which share of a cache's sets the data of a block map to.

Rows whose distance shares a large power of two with the size of a way fall on the same sets; a block of them meets
conflicts before it fills the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING

from kernmodel.studies.blocking.limits import Blocks
from kernmodel.traffic.runs import strides_of

if TYPE_CHECKING:
    from kernmodel.machine.model import CacheLevel, Machine
    from kernmodel.source.model import LoopNest

ROWS = 4096
"""Rows of a block that are looked at; more of them repeat what these do."""


def used_sets(
    nest: LoopNest, machine: Machine, cache: str, sizes: Mapping[str, int], extents: Blocks, blocks: Blocks
) -> float:
    """The least share over all references that blocked loops move.

    Args:
        extents: iterations of each loop; blocks: of the blocked ones, within a block.
    """
    level = machine.level(cache)
    shares = []
    for access in nest.accesses:
        strides = strides_of(nest, access, sizes)
        if strides is None:
            continue
        lengths = [
            min(blocks.get(loop.variable, extents[loop.variable]), extents[loop.variable]) for loop in nest.loops
        ]
        moving = [
            (abs(stride), length)
            for stride, length, loop in zip(strides, lengths, nest.loops, strict=True)
            if stride and length > 1 and loop.variable in blocks
        ]
        if moving:
            shares.append(_share(sorted(moving), level))
    return min(shares, default=1.0)


def _share(moving: list[tuple[int, int]], level: CacheLevel) -> float:
    """The share of the sets that rows of the shortest stride, at the places that the other strides give, touch; at most
    as many as there are lines count as needed."""
    (stride, length), *outer = moving
    line, sets = level.line_bytes, level.sets
    row = range(0, stride * length, max(stride, line))
    places = [0]
    for step, count in outer:
        places = [place + step * k for place, k in product(places, range(count))][:ROWS]
    touched = {(place + offset) // line % sets for place in places for offset in row}
    return len(touched) / min(sets, len(row) * len(places))
