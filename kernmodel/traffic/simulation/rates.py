"""What the simulator counted, as numbers that can be added, averaged and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from kernmodel.cachesim.model import MEMORY, CacheSpec, Counters, Hierarchy, LevelCounters
from kernmodel.value_types import dataclass

STREAMED = "streamed"
"""Quantity of memory: lines and parts of lines from streaming stores."""

_QUANTITIES = tuple(field.name for field in fields(LevelCounters))

_SMALL = 0.02
"""A flow below this share of the largest one counts with that share when flows are compared: its own relative change
says little."""


BALANCE = 0.02
"""A cache is in balance if the lines that enter exceed those that leave by at most this share."""

_NOTHING = 1e-4
"""Or by this share of what enters the first cache: lines that trickle in do not matter."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Counts, or counts per iteration.

    Attributes:
        counts: by cache (or `MEMORY`) and quantity (the names of `LevelCounters`; "loads", "stores", "streamed").
        served: per reference, how many of its touches each level served, then memory.
    """

    counts: Mapping[tuple[str, str], float]
    served: tuple[tuple[float, ...], ...]

    def of(self, level: str, quantity: str) -> float:
        """One count."""
        return self.counts[level, quantity]


def rates_of(counters: Counters) -> Rates:
    """The counters as they are."""
    counts: dict[tuple[str, str], float] = {}
    for name, level in counters.levels.items():
        counts.update({(name, quantity): float(getattr(level, quantity)) for quantity in _QUANTITIES})
    counts[MEMORY, "loads"] = float(counters.memory_loads)
    counts[MEMORY, "stores"] = float(counters.memory_stores)
    counts[MEMORY, STREAMED] = float(counters.streamed_lines + counters.streamed_parts)
    return Rates(counts, tuple(tuple(map(float, row)) for row in counters.served))


def weighted_sum(parts: Sequence[tuple[float, Rates]]) -> Rates:
    """Σ weight × counts (at least one part)."""
    first = parts[0][1]
    counts = {key: sum(weight * rates.counts[key] for weight, rates in parts) for key in first.counts}
    served = tuple(
        tuple(sum(weight * rates.served[row][column] for weight, rates in parts) for column in range(len(levels)))
        for row, levels in enumerate(first.served)
    )
    return Rates(counts, served)


def entered(spec: CacheSpec, rates: Rates, hierarchy: Hierarchy) -> float:
    """Lines that came into a cache, less those that a victim cache gave back to the level inside."""
    stores = rates.of(spec.name, "store_misses")
    if any(level.victim_level == spec.name for level in hierarchy.levels):
        return stores - rates.of(spec.name, "load_hits")
    # whole lines from inside stay; single stores only where they allocate
    stays = spec.write_allocate or spec is not hierarchy.levels[0]
    return rates.of(spec.name, "load_misses") + (stores if stays else 0.0)


def left(spec: CacheSpec, rates: Rates) -> float:
    """Lines that a cache gave up."""
    return sum(rates.of(spec.name, name) for name in ("dirty_evictions", "clean_evictions", "invalidations"))


def flows(rates: Rates) -> dict[tuple[str, str], float]:
    """What moves between levels: the counts that traffic is made of."""
    names = ("load_misses", "store_misses", "dirty_evictions", "clean_evictions", "loads", "stores", STREAMED)
    first = next(iter(rates.counts))[0]
    return {
        key: count
        for key, count in rates.counts.items()
        if key[1] in names and not (key[0] == first and key[1] in ("loads", "stores"))
    }


def spread(one: Rates, other: Rates, scale: Rates | None = None) -> float:
    """The largest relative difference of a flow: relative to the larger one, or to that of `scale`."""
    a, b = flows(one), flows(other)
    c = {key: max(a[key], b[key]) for key in a} if scale is None else flows(scale)
    largest = max(c.values(), default=0.0)
    if not largest:
        return 0.0
    return max(abs(a[key] - b[key]) / max(c[key], _SMALL * largest) for key in a)


def imbalance(rates: Rates, hierarchy: Hierarchy) -> float:
    """The largest share of the lines that enter a cache by which these exceed the lines that leave it, of caches in
    which that matters."""
    least = _NOTHING * entered(hierarchy.levels[0], rates, hierarchy)
    gains = ((entered(spec, rates, hierarchy), left(spec, rates)) for spec in hierarchy.levels)
    return max(((coming - going) / coming for coming, going in gains if coming - going > least), default=0.0)


def in_balance(rates: Rates, hierarchy: Hierarchy) -> bool:
    """Whether as many lines leave every cache as enter."""
    return imbalance(rates, hierarchy) <= BALANCE
