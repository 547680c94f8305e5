"""Where a function's data lie: the addresses that it touched, sent through the caches of a machine."""

from __future__ import annotations

from kernmodel.cachesim.model import Counters
from kernmodel.errors import Note
from kernmodel.value_types import dataclass

MOST_MISSES = 0.15
"""Misses per access, with warm caches, beyond which a program does not count as resident in the first cache: the filter
of the harness that the suite follows (15 %, there by cachegrind and Gus)."""


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
        complete: False where the trace was cut off at its limit.
    """

    accesses: int
    calls: int
    footprint_bytes: int
    line_bytes: int
    counters: Counters
    complete: bool = True
    notes: tuple[Note, ...] = ()

    @property
    def misses(self) -> int:
        """Of the first cache, loads and stores."""
        first = next(iter(self.counters.levels.values()), None)
        return first.load_misses + first.store_misses if first is not None else 0

    @property
    def misses_per_access(self) -> float:
        """Misses of the first cache over the accesses."""
        return self.misses / self.accesses if self.accesses else 0.0

    @property
    def misses_per_line(self) -> float:
        """How often each line of the footprint is missed in a call: 0 where all of it stays in the first cache, 1 where
        each call fetches it anew."""
        lines = self.footprint_bytes // self.line_bytes
        return self.misses / self.calls / lines if self.calls and lines else 0.0

    @property
    def is_resident(self) -> bool:
        """Whether the first cache holds the data by the rule of the harness: at most 15 % of the accesses miss."""
        return self.misses_per_access <= MOST_MISSES
