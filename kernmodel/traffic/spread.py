"""Sets of caches beyond the first as they are filled by physical addresses: what meets in few sets by its addresses in
the program does not where pages lie anywhere.

A first cache as large as a page for each of its ways finds its sets by the place within a page, which the program
decides. The sets of further ones are found by physical addresses, and pages of 4 KiB lie wherever the system put them
(Kessler and Hill, ACM TOCS 10(4), 1992; `traffic.gradual` says what that does around thresholds). So the 28 arrays of a
stencil whose lengths are multiples of 32 KiB meet in one set of L1 and, but in huge pages, in none of L2
(docs/traffic-simulation.md has the measurements).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.machine.pages import Pages
from kernmodel.source.model import LoopNest
from kernmodel.traffic.comparison.agreement import disagreements, relative_difference
from kernmodel.traffic.conditional import executed_traffic
from kernmodel.traffic.model import QUANTITIES, Difference, PathTraffic, Quantity, Traffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.array_layout import PAGE_BYTES
from kernmodel.traffic.simulation.hierarchy import hierarchy_of
from kernmodel.traffic.simulation.sampling import checking
from kernmodel.traffic.simulation.simulate import placed_work, simulate_placed
from kernmodel.uncertainty import Interval, union

SPREAD = Note(
    "spread-pages",
    "what is used again meets in few sets of caches beyond the first if these are found by the addresses of the "
    "program; pages of 4 KiB at random places spread it over all, huge pages over those of a hashed cache alone",
    "assumption",
)
_OVER = "huge pages and pages of 4 KiB"
_TAKEN = "pages of 4 KiB"


_SLICE_SETS = 2048
"""Sets of a slice of the L3 of Intel's servers: 2.5 MiB in 20 ways, from Skylake SP on 1.375 MiB in 11. The hash tells
the slice alone, the address the set in it."""


def spread_caches(machine: Machine, *, huge: bool) -> tuple[str, ...]:
    """The caches in whose sets no addresses of a program meet: those that find them by a hash, and in pages of 4 KiB
    all in which a page may lie in several groups of sets."""
    return tuple(
        level.name
        for level in machine.levels[1:]
        if level.hashed or (not huge and level.sets * level.line_bytes > PAGE_BYTES)
    )


def spread_traffic(
    found: Traffic, nest: LoopNest, machine: Machine, *, lanes: int = 1, pages: Pages | None = None
) -> Traffic:
    """The simulated traffic where pages lie anywhere: sets beyond the first cache by a hash of the page.

    Args:
        found: the same by sets that the addresses of the program say.
        lanes: iterations of which each access touches the elements at once.
        pages: their size; None: not known, taken are small ones, and intervals reach to huge ones.
    """
    options = SimulationOptions(lanes=lanes)
    plain = hierarchy_of(machine, found.cores, options)
    work = placed_work(nest, machine, found.sizes, plain, found.stores, options)

    def simulated(*, huge: bool) -> Traffic:
        """The traffic in pages of this size; `found` where they spread nothing."""
        hashed = spread_caches(machine, huge=huge)
        if not hashed:
            return found
        together = _SLICE_SETS if huge else PAGE_BYTES // machine.line_bytes
        levels = tuple(
            replace(spec, hashed=True, hashed_lines=together) if spec.name in hashed else spec for spec in plain.levels
        )
        moved = simulate_placed(
            work, replace(plain, levels=levels), machine, cores=found.cores, stores=found.stores, options=options,
            spend=checking(), symbolic=found.symbolic,
        )  # fmt: skip
        return executed_traffic(moved, nest, found.sizes, machine)

    taken = simulated(huge=pages == "huge")
    others = [] if pages is not None else [simulated(huge=True)]
    # layouts let arrays meet in few sets of the other caches alone
    hashed = spread_caches(machine, huge=pages == "huge")
    paths = tuple(
        _reaching(moved, [other.path(moved.path) for other in others], {} if path.inner in hashed else before.intervals)
        for path, moved, before in zip(machine.paths, taken.paths, found.paths, strict=True)
    )
    return replace(
        found,
        paths=paths,
        accesses=taken.accesses,
        levels=taken.levels,
        arithmetic_intensity=taken.arithmetic_intensity,
        evasion=taken.evasion,
        sampling=taken.sampling,
        differences=tuple(_left(found, taken)),
        notes=(*found.notes, SPREAD),
    )


def _left(found: Traffic, taken: Traffic) -> Iterator[Difference]:
    """The differences from layer conditions that are left."""
    if found.symbolic is None:
        return
    numbers = {(path, name): (a, b) for path, name, a, b in disagreements(found.symbolic, taken)}
    for one in found.differences:
        if (one.path, one.quantity) in numbers:
            symbolic, simulated = numbers[one.path, one.quantity]
            relative = relative_difference(symbolic, simulated)
            yield replace(one, simulated=simulated, relative=relative)


def _reaching(
    path: PathTraffic, others: Sequence[PathTraffic], intervals: Mapping[Quantity, Interval | None]
) -> PathTraffic:
    """A path with intervals that reach to other ones and hold those that are given; None for a quantity without one."""
    found: dict[Quantity, Interval | None] = {}
    for name in QUANTITIES:
        taken, known = getattr(path, name), intervals.get(name)
        parts = [] if known is None else [known]
        for other in others:
            low, high = sorted((taken, getattr(other, name)))
            parts += [Interval(low, high, _OVER, _TAKEN)] if low < high else []
        joined = union(parts)
        if joined is not None:
            joined = replace(joined, low=min(joined.low, taken), high=max(joined.high, taken))
        # every path says so of each quantity, and tables have a column for each
        found[name] = joined
    return replace(path, intervals=found)
