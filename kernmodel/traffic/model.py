"""How the data moves: the result every predictor of traffic gives (layer conditions now, exact simulation beside it).

Counts are per *unit of work*: the number of inner iterations that advance the fastest written stream (else the fastest
read one) by one cache line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from kernmodel.errors import Note
from kernmodel.traffic.options import StoreMode
from kernmodel.uncertainty import Interval, union
from kernmodel.value_types import NamedTuple, dataclass

if TYPE_CHECKING:
    from kernmodel.formulas.formula import Formula
    from kernmodel.machine.model import Machine, TransferPath

SYMBOLIC = "layer conditions"
"""The method of traffic that was not simulated."""
Quantity = Literal["loads", "stores", "clean_victims"]
QUANTITIES: tuple[Quantity, ...] = ("loads", "stores", "clean_victims")
"""The numbers of a path."""
End = Literal["low", "high"]
ENDS: tuple[End, End] = ("low", "high")
"""The ends of an interval."""


class PathLines(NamedTuple):
    """Lines that cross a path: toward the core, modified ones away from it, and unmodified ones."""

    loads: float
    stores: float
    clean_victims: float

    def occupying(self, path: TransferPath) -> float:
        """Lines that take time one after the other: all of them, or those of the busier direction."""
        away = self.stores + self.clean_victims
        return self.loads + away if path.duplex == "half" else max(self.loads, away)


@dataclass(frozen=True, slots=True)
class PathTraffic:
    """Cache lines that cross one path of the hierarchy per unit of work.

    Attributes:
        path: name of the machine's `TransferPath` ("L1L2", …, "L3Mem").
        loads: lines toward the core, write-allocates included.
        stores: modified lines away from the core.
        clean_victims: unmodified lines away from the core (into a victim cache).
        loads_formula, stores_formula, clean_victims_formula: the same as expressions in the sizes, in the regime that
            holds (plain numbers where they were simulated).
        write_allocates: lines that are loaded over this path only because stores miss, before any evasion; `loads` has
            those that are evaded taken off.
        intervals: between which values each number lies where something that it depends on is not known (where the
            arrays lie in memory); else None.
    """

    path: str
    loads: float
    stores: float
    clean_victims: float
    loads_formula: Formula
    stores_formula: Formula
    clean_victims_formula: Formula
    write_allocates: float = 0.0
    intervals: Mapping[Quantity, Interval | None] = field(default_factory=lambda: dict.fromkeys(QUANTITIES))

    @property
    def evictions(self) -> float:
        """Lines away from the core, modified or not."""
        return self.stores + self.clean_victims

    @property
    def lines(self) -> float:
        """Lines in both directions."""
        return self.loads + self.stores + self.clean_victims

    def at(self, end: End) -> PathTraffic:
        """The path with the least or the greatest of all its numbers."""
        ends = {name: getattr(interval, end) for name, interval in self.intervals.items() if interval is not None}
        return replace(self, **ends)


@dataclass(frozen=True, slots=True)
class LevelTraffic:
    """What one cache sees per unit of work; at L1 requests are the accesses of the code, further out cache lines.

    Attributes:
        level: name of the cache.
        loads, load_hits, load_misses: requests for data from inside (write-allocates of the level inside included).
        stores, store_hits, store_misses: stores of the code at L1; elsewhere lines that the level inside gives up:
            modified ones, at a victim cache also unmodified ones if it takes them.
        dirty_evictions, clean_evictions: modified and unmodified lines that it gives up.
    """

    level: str
    loads: float
    load_hits: float
    load_misses: float
    stores: float
    store_hits: float
    store_misses: float
    dirty_evictions: float
    clean_evictions: float


@dataclass(frozen=True, slots=True)
class Evasion:
    """Which share of the write-allocates from memory is evaded: `share` is what the traffic counts, between `low` and
    `high` where it is not known; `reason` says why."""

    share: float
    low: float
    high: float
    reason: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How much of the nest was simulated.

    Attributes:
        warm_up, measured: inner iterations before and while counting.
        whole_sweep: whether whole sweeps over the nest were simulated rather than windows of it.
        windows: places in the nest at which was counted.
        settled: whether the counts of successive windows agree within `tolerance` (relative).
        spread: their largest relative difference; where more lines still enter a cache than leave it, at least by how
            much of them.
        reason: why this much; or why it did not settle.
    """

    warm_up: int
    measured: int
    whole_sweep: bool
    windows: int
    settled: bool
    spread: float
    tolerance: float
    reason: str


@dataclass(frozen=True, slots=True)
class Reuse:
    """One way the data of a reference can be reused, with the cache volume that this needs: one layer condition.

    Attributes:
        array: name of the array.
        access: the reference (as written) whose misses the reuse saves.
        carried_by: loop variable that carries the reuse ("sweep" for the repetition of the whole nest).
        source: the reference that touched the line before (as written; the same for self reuse).
        required_bytes: cache volume needed, as an expression in the sizes (the layer condition is
            required_bytes ≤ safety × cache size).
        required: the same as a number in bytes.
        lines_saved: cache lines per unit of work that miss if the condition fails and hit if it holds.
    """

    array: str
    access: str
    carried_by: str
    source: str
    required_bytes: Formula
    required: float
    lines_saved: float


@dataclass(frozen=True, slots=True)
class SharedSets:
    """Data that fall into `touched` of the `sets` sets of a cache that a core has: what is touched of `array`."""

    array: str
    touched: int
    sets: int

    def __str__(self) -> str:
        return f"{self.touched} of {self.sets} sets"


@dataclass(frozen=True, slots=True)
class LayerCondition:
    """All reuses that need the same cache volume, judged against one cache.

    Where part of the data falls into few sets of the cache and so has least room, the condition is that of this part.

    Attributes:
        cache: name of the cache.
        capacity_bytes: what a core has of it (share of a shared cache, inner victim-cache levels added), × safety
            factor; of few sets, ways × the sets that the data touch.
        required_bytes, required: the volume needed, as formula and number; where trip counts follow outer loops, in the
            iteration of those that needs most.
        holds: whether required ≤ capacity.
        reuses: what is gained if it holds.
        breaks_at: per size symbol, the largest value (others as given) for which the condition still holds; None
            where the condition does not depend on it or holds for every value.
        solved: the condition solved for each symbol as text, e.g. {"N": "N ≤ 4096"}.
        misses, hits: read/write references that miss or hit if this is the strongest condition that holds.
        share: of the iterations, those for which it holds: 1 if it holds; less where trip counts follow outer loops and
            it holds in a part of the sweep; else 0.
        few_sets: where part of the data falls into few sets, which; None where the whole cache counts.
    """

    cache: str
    capacity_bytes: float
    required_bytes: Formula
    required: float
    holds: bool
    reuses: tuple[Reuse, ...]
    breaks_at: Mapping[str, int | None]
    solved: Mapping[str, str]
    hits: int
    misses: int
    share: float = 0.0
    few_sets: SharedSets | None = None


@dataclass(frozen=True, slots=True)
class AccessTraffic:
    """Which level serves one array reference: `lines` per unit of work by level name ("L1", …, "Mem").

    Attributes:
        reason: why, in words.
        from_earlier_row: whether its lines are those that another reference touched in an earlier row, a pass of a loop
            around the innermost one.
    """

    array: str
    access: str
    kind: str
    served_by: Mapping[str, float]
    reason: str
    from_earlier_row: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """One number in which layer conditions and simulation differ.

    Attributes:
        path: name of the transfer path.
        quantity: which of its numbers, lines per unit of work.
        symbolic, simulated: its values.
        relative: (simulated − symbolic) / the larger.
        reason_code: why, for machines: docs/traffic-simulation.md lists the codes.
        reason: the same for people.
    """

    path: str
    quantity: Quantity
    symbolic: float
    simulated: float
    relative: float
    reason_code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """Data traffic of a loop nest on a machine.

    Attributes:
        method: "layer conditions" (or "simulation").
        iterations_per_unit: inner iterations in one unit of work.
        unit_stream: the array reference whose cache line defines the unit of work.
        iterations_per_sweep: inner iterations of the whole nest, None if not all sizes are known.
        updates_per_iteration: lattice updates per inner iteration (None where no lattice is updated).
        flops_per_iteration: FLOP per inner iteration.
        register_loads_bytes, register_stores_bytes: bytes per unit of work that load and store instructions move
            between registers and L1, by the source's references.
        paths: innermost first.
        accesses: per array reference, who serves it.
        conditions: all layer conditions, per cache, weakest first.
        arithmetic_intensity: FLOP per byte by level name: at "L1" bytes of load and store instructions, at each
            path's outer level ("L2", "L3", "Mem") bytes over that path; None where nothing moves.
        cores: cores that share shared caches in this answer.
        safety: factor on the cache sizes.
        sizes: values of the symbols.
        notes: assumptions and warnings.
        levels: what each cache sees, innermost first.
        stores: "regular" stores (write-allocate), "nt" streaming stores past the caches, "evading" write-allocates as
            the machine's cores can.
        evasion: of write-allocates from memory; None where none is evaded.
        sampling: how much was simulated; None for layer conditions.
        symbolic: what layer conditions say, where simulated numbers stand in their place; its `conditions` are repeated
            here.
        differences: where these differ from the simulated numbers, and why.
    """

    method: str
    iterations_per_unit: float
    unit_stream: str
    iterations_per_sweep: float | None
    updates_per_iteration: float | None
    flops_per_iteration: float
    register_loads_bytes: float
    register_stores_bytes: float
    paths: tuple[PathTraffic, ...]
    accesses: tuple[AccessTraffic, ...]
    conditions: tuple[LayerCondition, ...]
    arithmetic_intensity: Mapping[str, float | None]
    cores: int
    safety: float
    sizes: Mapping[str, int]
    notes: tuple[Note, ...]
    levels: tuple[LevelTraffic, ...] = ()
    stores: StoreMode = "regular"
    evasion: Evasion | None = None
    sampling: Sampling | None = None
    symbolic: Traffic | None = None
    differences: tuple[Difference, ...] = ()

    @property
    def transitions(self) -> tuple[tuple[str, int, str, str], ...]:
        """Sizes (of the symbol that most conditions depend on) at which a condition in any cache breaks, ascending:
        (symbol, largest value for which it holds, cache, text)."""
        from kernmodel.traffic.conditions.requirements import transitions_of

        return transitions_of(self.conditions)

    @property
    def memory_lines(self) -> float:
        """Cache lines per unit of work over the path to memory, in both directions."""
        return self.paths[-1].lines

    def path(self, name: str) -> PathTraffic:
        """The traffic of the path called `name` (KeyError if there is none)."""
        for path in self.paths:
            if path.path == name:
                return path
        raise KeyError(name)


def strongest(conditions: Iterable[LayerCondition]) -> LayerCondition | None:
    """The strongest condition that holds, None if none does (conditions come weakest first)."""
    return max((c for c in conditions if c.holds), key=lambda c: c.required, default=None)


def strongest_in(traffic: Traffic, cache: str) -> LayerCondition | None:
    """The strongest condition that holds in a cache; None if none does, and of simulated traffic."""
    return strongest(condition for condition in traffic.conditions if condition.cache == cache)


def carriers(condition: LayerCondition) -> str | None:
    """The loops that carry the reuses of a condition ("j", "sweep"), None if no loop does."""
    return ", ".join(dict.fromkeys(reuse.carried_by for reuse in condition.reuses)) or None


def reuse_in(traffic: Traffic, cache: str) -> str | None:
    """The loops that carry the strongest reuse that holds in a cache; of simulated traffic, the share of hits; None
    if there is none."""
    if traffic.method == SYMBOLIC:
        holding = strongest_in(traffic, cache)
        return carriers(holding) if holding else None
    level = next((level for level in traffic.levels if level.level == cache), None)
    if level is None or not level.loads + level.stores:
        return None
    return f"hits {(level.load_hits + level.store_hits) / (level.loads + level.stores):.0%}"


def arithmetic_intensity(
    flops: float, register_bytes: float, paths: Sequence[PathTraffic], machine: Machine
) -> Mapping[str, float | None]:
    """FLOP per byte by level: "L1" by load and store instructions, an outer level by all lines on the path to it."""
    intensity = {machine.levels[0].name: flops / register_bytes if register_bytes else None}
    for path, traffic in zip(machine.paths, paths, strict=True):
        moved = traffic.lines * machine.line_bytes
        intensity[path.outer] = flops / moved if moved else None
    return intensity


def intensity_intervals(traffic: Traffic, machine: Machine) -> dict[str, Interval]:
    """By level, the interval of the arithmetic intensity where the traffic on the path to it has one."""
    flops = traffic.flops_per_iteration * traffic.iterations_per_unit
    ends = [
        arithmetic_intensity(flops, 0.0, [path.at(end) for path in traffic.paths], machine) for end in reversed(ENDS)
    ]
    found = {}
    for path, moved in zip(machine.paths, traffic.paths, strict=True):
        known = union(moved.intervals.values())
        low, high = (end[path.outer] for end in ends)
        if known is not None and low is not None and high is not None and flops:
            found[path.outer] = Interval(low, high, known.cause, known.assumed)
    return found
