"""Layer conditions solved for block sizes: for which blocks the reuse that fails in a cache fits.

The volumes come from the nest inside one block, in which the block sizes are symbols. A volume is a polynomial in them
as long as the same rows and lines count as contiguous; the equation is solved in that regime, and again in the regime
at its solution until both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil

from kernmodel.formulas.formula import ZERO, Formula
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.jammed import Jam, in_order
from kernmodel.source.nest.sizes import trip_counts
from kernmodel.source.nest.tiling import inside_block
from kernmodel.studies.blocking.answer import BlockLimit
from kernmodel.traffic.conditions.quantities import Size
from kernmodel.traffic.conditions.requirements import largest_size, savings, solution
from kernmodel.traffic.conditions.reuse import Analysis, reuses_of
from kernmodel.traffic.conditions.streaming import analyse_streaming
from kernmodel.traffic.conditions.streams import SizedNest, at_sizes
from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest
from kernmodel.traffic.conditions.windows import volume
from kernmodel.traffic.model import LayerCondition, Traffic
from kernmodel.traffic.options import StoreMode
from kernmodel.value_types import dataclass

Blocks = Mapping[str, int]
ReuseKey = tuple[str, str, str, str]
"""Loop that carries it, array, reference and the reference ahead: a reuse is the same in the blocked nest."""

_ROUNDS = 12
"""Regimes that are tried before the solution is searched by bisection."""

MOST_LOOPS = 3
"""Loops that are blocked at once."""


@dataclass(frozen=True, slots=True)
class Failing:
    """A layer condition that fails in a cache: the reuses that it stands for, and the lines per unit of work that they
    would save."""

    cache: str
    capacity: float
    carrier: str
    keys: tuple[ReuseKey, ...]
    accesses: tuple[str, ...]
    lines: float


def failing_conditions(traffic: Traffic, band: Sequence[str]) -> tuple[Failing, ...]:
    """The conditions that fail, of reuse along loops that may be blocked; the repetition of the nest is left out."""
    found = (_failing(condition, band) for condition in traffic.conditions if not condition.holds)
    return tuple(failing for failing in found if failing is not None and failing.lines > 0)


def _failing(condition: LayerCondition, band: Sequence[str]) -> Failing | None:
    reuses = [reuse for reuse in condition.reuses if reuse.carried_by in band]
    if not reuses:
        return None
    return Failing(
        cache=condition.cache,
        capacity=condition.capacity_bytes,
        carrier=reuses[0].carried_by,
        keys=tuple((r.carried_by, r.array, r.access, r.source) for r in reuses),
        accesses=tuple(dict.fromkeys(reuse.access for reuse in reuses)),
        lines=sum(reuse.lines_saved for reuse in reuses),
    )


class BlockVolumes:
    """The cache volumes of all reuse inside one block, at any block sizes.

    Attributes:
        loops: the blocked loops, outermost first; extents: iterations of each of them without blocking.
    """

    def __init__(
        self,
        nest: LoopNest,
        loops: Sequence[str],
        sizes: Mapping[str, int],
        line_bytes: int,
        stores: StoreMode,
        jam: Jam | None = None,
    ) -> None:
        """`jam`: how many iterations of an outer loop the code executes at once."""
        inside, symbols = inside_block(nest, loops)
        self.loops = tuple(loops)
        self._prepared, self._jam = symbolic_nest(in_order(inside, jam)), jam
        self._names = {variable: str(symbol) for variable, symbol in symbols.items()}
        self._sizes, self._line_bytes, self._stores = sizes, line_bytes, stores
        self._known: dict[tuple[int, ...], _Inside] = {}

    def values(self, blocks: Blocks) -> dict[str, int]:
        """The sizes, and the block sizes by the name of their symbol."""
        return {**self._sizes, **{name: blocks[variable] for variable, name in self._names.items()}}

    def needed(self, keys: Sequence[ReuseKey], blocks: Blocks) -> Size | None:
        """The volume that all these reuses need; None where blocks are so short that there is no such reuse."""
        place, jam = tuple(blocks[variable] for variable in self.loops), self._jam
        if jam and blocks.get(jam.along, jam.copies) < jam.copies:
            return None
        if place not in self._known:
            sized = at_sizes(self._prepared, self.values(blocks), self._line_bytes)
            self._known[place] = _Inside(reuse_analysis(sized, self._line_bytes, self._stores))
        volumes = [self._known[place].volume(key) for key in keys]
        found = [size for size in volumes if size is not None]
        return max(found, key=lambda size: size.value) if len(found) == len(volumes) else None

    def largest(self, path: Callable[[int], Blocks], top: int, keys: Sequence[ReuseKey], capacity: float) -> int:
        """The largest s ≤ top for which the volume at the block sizes path(s) fits; 0 if there is none."""
        at, seen = max(1, top // 2), set[int]()
        for _ in range(_ROUNDS):
            regime = self.needed(keys, path(at))
            if regime is None or at in seen:
                break
            seen.add(at)
            found = self._solved(regime.formula, path, top, capacity)
            there = self.needed(keys, path(found)) if found else None
            if there is not None and there.formula == regime.formula:
                return self._moved(path, top, keys, capacity, found)
            at = max(1, found)
        return _last(lambda s: self._fits(keys, path(s), capacity), top)

    def _solved(self, formula: Formula, path: Callable[[int], Blocks], top: int, capacity: float) -> int:
        """The largest s for which the formula of one regime fits."""
        return _last(lambda s: formula.value(self.values(path(s))) <= capacity, top)

    def _fits(self, keys: Sequence[ReuseKey], blocks: Blocks, capacity: float) -> bool:
        size = self.needed(keys, blocks)
        return size is not None and size.value <= capacity

    def _moved(
        self, path: Callable[[int], Blocks], top: int, keys: Sequence[ReuseKey], capacity: float, found: int
    ) -> int:
        """The solution, moved by the few iterations by which the regime ends beside it."""
        while found < top and self._fits(keys, path(found + 1), capacity):
            found += 1
        while found and not self._fits(keys, path(found), capacity):
            found -= 1
        return found

    def limit(self, failing: Failing, blocks: Blocks, extents: Blocks) -> BlockLimit:
        """The condition as a limit of each block size, the others as given."""
        size = self.needed(failing.keys, blocks) if all(blocks.values()) else None
        if size is None:  # no block size fits: the volume at half of each loop stands for it
            size = self.needed(failing.keys, self._halves(extents))
        formula = ZERO if size is None else size.formula
        largest: dict[str, int | None] = {}
        solved: dict[str, str] = {}
        for variable in self.loops:
            name, values = self._names[variable], self.values(blocks)
            found = blocks[variable]
            if len(self.loops) > 1 and found:
                bound = largest_size(formula, failing.capacity, name, values)
                found = extents[variable] if bound is None else min(bound, extents[variable])
            largest[variable] = found or None
            solved[variable] = solution(name, found, formula, values)
        return BlockLimit(
            cache=failing.cache,
            capacity_bytes=failing.capacity,
            carried_by=failing.carrier,
            accesses=failing.accesses,
            loops=self.loops,
            required_bytes=formula,
            solved=solved,
            largest=largest,
            lines_saved=failing.lines,
        )

    def _halves(self, extents: Blocks) -> Blocks:
        return {variable: max(1, extents[variable] // 2) for variable in self.loops}

    def depends(self, failing: Failing, extents: Blocks) -> bool:
        """Whether the volume of the condition depends on every block size."""
        size = self.needed(failing.keys, self._halves(extents))
        names = set() if size is None else size.formula.free_symbols
        return all(self._names[variable] in names for variable in self.loops)


class _Inside:
    """The reuse inside one block of given size; volumes are found when they are asked for."""

    def __init__(self, analysis: Analysis) -> None:
        self._nest, self._line_bytes = analysis.nest, analysis.line_bytes
        self._windows = {
            (saving.carrier, saving.array, saving.access, saving.source): saving.window
            for reuse in analysis.reuses
            for saving in savings(reuse, analysis, Fraction(1))
        }
        self._volumes: dict[object, Size] = {}

    def volume(self, key: ReuseKey) -> Size | None:
        """The volume that a reuse needs; None if there is no such reuse."""
        window = self._windows.get(key)
        if window is None:
            return None
        if window.key not in self._volumes:
            self._volumes[window.key] = volume(self._nest, window, self._line_bytes)
        return self._volumes[window.key]


def reuse_analysis(sized: SizedNest, line_bytes: int, stores: StoreMode) -> Analysis:
    """The reuse of a nest at given sizes, without volumes; of streaming stores, only what is read."""
    if stores == "nt":
        return analyse_streaming(sized, line_bytes).reads
    return Analysis(sized, line_bytes, reuses_of(sized, line_bytes), {}, {})


def _last(holds: Callable[[int], bool], top: int) -> int:
    """The last of 1 … top that holds, 0 if none does, for what holds up to a point."""
    low, high = 0, top + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def loop_extents(nest: LoopNest, sizes: Mapping[str, int]) -> dict[str, int]:
    """Iterations of each loop, the mean where it depends on outer loops."""
    counts = trip_counts(nest, sizes)
    return {loop.variable: max(1, ceil(count)) for loop, count in zip(nest.loops, counts, strict=True)}


def blocked_sets(band: Sequence[str], carrier: str) -> Iterator[tuple[str, ...]]:
    """The sets of loops inside the carrying one that are worth blocking together, smallest first."""
    inside = band[band.index(carrier) + 1 :]
    for count in range(1, min(MOST_LOOPS, len(inside)) + 1):
        yield from combinations(inside, count)
