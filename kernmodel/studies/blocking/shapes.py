"""Which block sizes are tried: the largest that a layer condition allows, in whole cache lines and passes of the loop.

A single loop has one largest block size; of several, shapes are tried: as long in the inner loop as in the others, two,
four and eight times as long, and as long as another cache allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, lcm
from typing import TYPE_CHECKING

from kernmodel.source.nest.jammed import Jam
from kernmodel.studies.blocking.answer import BlockLimit
from kernmodel.studies.blocking.limits import Blocks, BlockVolumes, Failing, blocked_sets
from kernmodel.studies.predict.outside import inner_iterations
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer

ASPECTS = (1, 2, 4, 8)
"""Length of a block in the inner loop over its length in the others."""

MOST = 60
"""Block sizes that are modelled."""

FILL = 0.5
"""Share of a cache that smaller blocks fill, the safety factor of Stengel et al., ICS'15."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Block sizes to try, and the limit that they come from."""

    blocks: Mapping[str, int]
    limit: BlockLimit


@dataclass(frozen=True, slots=True)
class Grain:
    """To what block sizes are rounded: that of the inner loop to the coarsest of `steps` that leaves anything, that of
    the loop of which the code executes several iterations at once to as many (`jam`)."""

    inner: str
    steps: tuple[int, ...]
    jam: Jam | None = None

    def least(self, variable: str) -> int:
        """The smallest block size: a whole line, or what the code executes at once."""
        return self._of(variable)[-1]

    def down(self, variable: str, size: int) -> int:
        """The size rounded down."""
        return next((size // step * step for step in self._of(variable) if size >= step), size)

    def up(self, variable: str, size: int, at_most: int) -> int:
        """The size rounded up, but not beyond a size that is itself rounded."""
        fitting = (ceil(size / step) * step for step in self._of(variable))
        return next((rounded for rounded in fitting if rounded <= at_most), at_most)

    def _of(self, variable: str) -> tuple[int, ...]:
        if variable == self.inner:
            return self.steps
        return (self.jam.copies if self.jam and variable == self.jam.along else 1,)


def grain_of(answer: EcmAnswer, jam: Jam | None) -> Grain:
    """Whole cache lines of the leading stream and whole passes of the compiled loop; else whole cache lines. `jam`: how
    many iterations of an outer loop these execute at once."""
    line, along = max(1, round(answer.traffic.iterations_per_unit)), inner_iterations(answer)
    both = lcm(line, int(along)) if along == int(along) else line
    return Grain(answer.nest.inner.variable, (both, line) if both != line else (line,), jam)


class Shapes:
    """The limits of a nest and the block sizes that follow from them.

    Args:
        volumes: inside blocks of these loops; band: the loops that may be blocked; extents: of each loop.
        used_sets: the share of the sets of a cache that the data of a block map to.
    """

    def __init__(
        self,
        volumes: Callable[[tuple[str, ...]], BlockVolumes],
        band: Sequence[str],
        extents: Blocks,
        grain: Grain,
        used_sets: Callable[[str, Blocks], float] = lambda cache, blocks: 1.0,
    ) -> None:
        self._volumes, self._band, self._extents, self._grain = volumes, tuple(band), extents, grain
        self._used_sets = used_sets
        self.limits: list[BlockLimit] = []
        self._lengths = dict[str, set[int]]()

    def of(self, failing: Sequence[Failing], allowed: Sequence[str]) -> list[Shape]:
        """What to try for these conditions, at most `MOST`, those that save most lines first; fills `limits`."""
        shapes: dict[tuple[tuple[str, int], ...], Shape] = {}
        several = list[tuple[Failing, BlockVolumes]]()
        for one in failing:
            for loops in blocked_sets(self._band, one.carrier):
                if not set(loops) <= set(allowed):
                    continue
                volumes = self._volumes(loops)
                if not volumes.depends(one, self._extents):
                    continue
                if len(loops) > 1:
                    several.append((one, volumes))
                else:
                    self._add(shapes, self._single(one, volumes))
        for one, volumes in several:
            self._add(shapes, self._several(one, volumes))
        ordered = sorted(shapes.values(), key=lambda shape: (-shape.limit.lines_saved, len(shape.blocks)))
        return ordered[:MOST]

    def _add(self, shapes: dict[tuple[tuple[str, int], ...], Shape], found: Iterator[Shape]) -> None:
        for shape in found:
            shapes.setdefault(tuple(shape.blocks.items()), shape)

    def _single(self, one: Failing, volumes: BlockVolumes) -> Iterator[Shape]:
        (loop,) = volumes.loops
        largest = self._largest(one, volumes, {}, one.capacity)
        limit = volumes.limit(one, {loop: largest}, self._extents)
        self.limits.append(limit)
        for size in self._fills(one, volumes, {}, largest):
            if self._useful(loop, size):
                shape = self._rounded({loop: size}, limit)
                self._lengths.setdefault(loop, set()).add(shape.blocks[loop])
                yield shape

    def _useful(self, loop: str, largest: int) -> bool:
        """Whether blocks of this size are blocks, and hold a whole cache line."""
        return max(2, self._grain.least(loop)) <= largest < self._extents[loop]

    def _largest(self, one: Failing, volumes: BlockVolumes, given: Blocks, capacity: float) -> int:
        """The largest size of the loops that are not given, all of one size, that fits."""
        free = [loop for loop in volumes.loops if loop not in given]
        top = min(self._extents[loop] for loop in free)
        return volumes.largest(lambda s: {**dict.fromkeys(free, s), **given}, top, one.keys, capacity)

    def _fills(self, one: Failing, volumes: BlockVolumes, given: Blocks, largest: int) -> Iterator[int]:
        """The largest size, that which fills half of the cache, and that which fits the sets that the blocks map to."""
        yield largest
        yield self._largest(one, volumes, given, FILL * one.capacity)
        free = {loop: largest for loop in volumes.loops if loop not in given}
        share = self._used_sets(one.cache, {**free, **given}) if largest else 1.0
        if share < FILL:
            yield self._largest(one, volumes, given, share * one.capacity)

    def _several(self, one: Failing, volumes: BlockVolumes) -> Iterator[Shape]:
        *outer, last = volumes.loops
        top = min(self._extents[loop] for loop in outer)
        for aspect in ASPECTS:
            square = volumes.largest(self._path(outer, last, aspect), top, one.keys, one.capacity)
            if aspect == 1:
                self.limits.append(volumes.limit(one, self._path(outer, last, aspect)(square), self._extents))
            yield from self._with_length(one, volumes, min(aspect * square, self._extents[last]))
        for length in sorted(self._lengths.get(last, ())):
            yield from self._with_length(one, volumes, length)

    def _path(self, outer: Sequence[str], last: str, aspect: int) -> Callable[[int], Blocks]:
        return lambda s: {**dict.fromkeys(outer, s), last: min(aspect * s, self._extents[last])}

    def _with_length(self, one: Failing, volumes: BlockVolumes, length: int) -> Iterator[Shape]:
        """Blocks of this length in the last loop, as large as they may be in the others, and smaller ones."""
        *outer, last = volumes.loops
        if not self._useful(last, length):
            return
        given = {last: self._grain.down(last, length)}
        top = min(self._extents[loop] for loop in outer)
        largest = self._largest(one, volumes, given, one.capacity)
        for size in self._fills(one, volumes, given, largest):
            if max(2, *map(self._grain.least, outer)) <= size < top:
                blocks = {**dict.fromkeys(outer, size), **given}
                yield self._rounded(blocks, volumes.limit(one, blocks, self._extents))

    def _rounded(self, blocks: Blocks, limit: BlockLimit) -> Shape:
        """The sizes rounded down, and made even: as many blocks that are about equally long have as many borders."""
        rounded: dict[str, int] = {}
        for loop, size in blocks.items():
            extent, down = self._extents[loop], self._grain.down(loop, size)
            rounded[loop] = self._grain.up(loop, ceil(extent / ceil(extent / down)), down)
        return Shape(rounded, limit)
