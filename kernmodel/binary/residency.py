"""Where a function's data lie: the addresses that it touched, sent through the caches of a machine."""

from __future__ import annotations

from collections.abc import Mapping

from kernmodel.cachesim.model import Counters
from kernmodel.errors import Note
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Residency:
    """The memory accesses of a function in one run, and what the caches of a machine make of them.

    The trace goes through the simulated caches twice; what is counted is the second time, when the caches are warm.

    Attributes:
        accesses: loads and stores of the function's own instructions.
        calls: of the function in the trace.
        footprint_bytes: of all cache lines that were touched.
        line_bytes: of a cache line.
        counters: what each simulated cache counted.
        lines: cache lines transferred into and out of each level, both directions, by the name of the level on the
            inner side; of one call.
        complete: False where the trace was cut off at its limit.
    """

    accesses: int
    calls: int
    footprint_bytes: int
    line_bytes: int
    counters: Counters
    lines: Mapping[str, float]
    complete: bool = True
    notes: tuple[Note, ...] = ()

    @property
    def misses_per_access(self) -> float:
        """Misses of the first cache, loads and stores, over the accesses."""
        first = next(iter(self.counters.levels.values()), None)
        missed = first.load_misses + first.store_misses if first is not None else 0
        return missed / self.accesses if self.accesses else 0.0
