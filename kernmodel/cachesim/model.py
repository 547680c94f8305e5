"""The values of the simulation: caches and their rules, programs that generate addresses, and what is counted.

The semantics, to the letter: docs/cache-simulation.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernmodel.value_types import dataclass

Policy = Literal["LRU", "FIFO", "RANDOM", "MRU", "PLRU"]
POLICIES: tuple[Policy, ...] = ("LRU", "FIFO", "RANDOM", "MRU", "PLRU")

MEMORY = "MEM"
"""The name of what lies below the last cache."""


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """One cache of a hierarchy.

    Attributes:
        name: how other caches and counters call it.
        sets, ways: any positive numbers; set index = (address // line_bytes) % sets.
        line_bytes: bytes of a line, any positive number.
        policy: which line a full set gives up: LRU the least recently used, FIFO the oldest, RANDOM any (by the
            hierarchy's seed), MRU the most recently used, PLRU by a binary tree over the ways.
        write_back: False: every store is passed on with its own size, and lines never become modified.
        write_allocate: whether a store that misses brings the line in.
        load_from: the cache (or MEMORY) that serves a miss.
        store_to: the cache (or MEMORY) that takes modified lines and stores passed on.
        victim_level: a cache that takes what this one evicts; it is asked before `load_from`, and a line found there
            moves (is removed there). None: there is none.
        clean_victims: whether unmodified lines that this cache evicts go to `victim_level` too.
        inclusive: a line that this cache evicts is also removed from all caches that load from it, directly or through
            others; if such a copy is modified, the evicted line counts as modified.
        sub_blocks: parts of a line that are loaded and written back on their own (sectors); 1: the whole line.
        hashed: set index from a hash of the line number instead of its remainder, as the slices of large caches do.
        hashed_lines: lines, a power of two, that follow one another in the sets all the same where it is hashed: those
            of a page, if pages lie anywhere.
    """

    name: str
    sets: int
    ways: int
    line_bytes: int = 64
    policy: Policy = "LRU"
    write_back: bool = True
    write_allocate: bool = True
    load_from: str = MEMORY
    store_to: str = MEMORY
    victim_level: str | None = None
    clean_victims: bool = True
    inclusive: bool = False
    sub_blocks: int = 1
    hashed: bool = False
    hashed_lines: int = 1

    @property
    def size_bytes(self) -> int:
        """sets × ways × line."""
        return self.sets * self.ways * self.line_bytes


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Caches in the order in which an access may reach them; accesses arrive at the first.

    Attributes:
        levels: the first takes the accesses; links name other levels, further along, or MEMORY.
        seed: of the random replacement.
        combining_buffers: lines that streaming (non-temporal) stores can be gathering at once.
    """

    levels: tuple[CacheSpec, ...]
    seed: int = 0
    combining_buffers: int = 8


@dataclass(frozen=True, slots=True)
class LevelCounters:
    """What one cache has counted; requests from the level inside count line by line.

    `load_misses` are loads that miss; a store that misses counts in `store_misses`, and its fetch as a load of the
    level below. `invalidations`: lines removed because an inclusive level evicted them or a streaming store wrote them.
    """

    loads: int
    load_hits: int
    load_misses: int
    stores: int
    store_hits: int
    store_misses: int
    dirty_evictions: int
    clean_evictions: int
    invalidations: int = 0


@dataclass(frozen=True, slots=True)
class Counters:
    """Everything counted since the start or the last reset.

    Attributes:
        levels: by name of the cache.
        memory_loads, memory_stores: requests that arrive at memory (lines, or single stores of write-through caches).
        streamed_lines, streamed_parts: whole lines and incomplete lines that the combining buffers of streaming stores
            have sent to memory (not in memory_stores).
        served: per reference (of a program; a trace has one), how many of its line touches each level served: the
            levels in order, then memory.
        accesses: accesses executed (skipped ones included).
    """

    levels: Mapping[str, LevelCounters]
    memory_loads: int
    memory_stores: int
    streamed_lines: int
    streamed_parts: int
    served: tuple[tuple[int, ...], ...]
    accesses: int


AccessKind = Literal["load", "store", "stream"]


@dataclass(frozen=True, slots=True)
class Form:
    """constant + Σ coefficient × value of a loop variable; one coefficient per loop of the program, outermost first."""

    constant: int
    coefficients: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProgramBound:
    """A loop bound over forms in the outer loops: max over the groups of the min over the forms of each group, or min
    over the groups of the max (`pick` is the outer one)."""

    pick: Literal["min", "max"]
    groups: tuple[tuple[Form, ...], ...]


@dataclass(frozen=True, slots=True)
class ProgramLoop:
    """A loop: its variable takes start, start + step, … while it is before `stop` in the direction of `step`."""

    start: ProgramBound
    stop: ProgramBound
    step: int


@dataclass(frozen=True, slots=True)
class Indirection:
    """An index that is read from a table in memory: adds `scale` × value(position) to the address of a reference.

    Attributes:
        position: which entry of the index array, as a form in the loop variables.
        scale: bytes per unit of the value.
        kind: "uniform": values spread evenly over 0 … extent − 1, the same at every execution of a position;
            "banded": position × extent / `positions`, plus or minus up to `width`, within the array;
            "table": `table[position % len]`; "digits": ⌊position / `positions`⌋ % extent, read from nothing.
        extent: number of elements that values may select.
        width: of "banded".
        table: values of "table".
        seed: of the values.
        positions: of "banded", the number of entries of the index array; 0: as many as `extent`; of "digits" the
            divisor.
    """

    position: Form
    scale: int
    kind: Literal["uniform", "banded", "table", "digits"]
    extent: int
    width: int = 0
    table: tuple[int, ...] = ()
    seed: int = 0
    positions: int = 0


@dataclass(frozen=True, slots=True)
class ProgramReference:
    """One array reference of a program.

    Attributes:
        kind: load, store, or streaming (non-temporal) store.
        size_bytes: bytes of each access.
        address: in bytes, as a form in the loop variables.
        depth: number of enclosing loops.
        place: where it stands relative to the next inner loop: "before" or "after" it (references in the innermost
            body are "before").
        indirections: what is added to the address from index arrays.
    """

    kind: AccessKind
    size_bytes: int
    address: Form
    depth: int
    place: Literal["before", "after"] = "before"
    indirections: tuple[Indirection, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """A loop nest in numbers: `references` in the order of execution within each body."""

    loops: tuple[ProgramLoop, ...]
    references: tuple[ProgramReference, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a program stands: the next inner iteration to execute, by the value of each loop variable.

    `fresh` is True where the loops are entered anew (the references before and between loops still come).
    """

    values: tuple[int, ...]
    fresh: bool = True


@dataclass(frozen=True, slots=True)
class Progress:
    """What a run executed: inner iterations, complete sweeps over the program, and where it stopped (None: at the end
    of a sweep)."""

    iterations: int
    sweeps: int
    position: Position | None
