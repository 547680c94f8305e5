"""What every predictor of traffic shares: the unit of work, what a core has of a cache, and how misses become paths.

Layer conditions count misses and modified evictions per level from formulas, a simulation counts them one by one; both
hand them to `path_traffic` as `LevelCounts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from kernmodel.errors import Note
from kernmodel.formulas.formula import ZERO, Formula, LateFormula
from kernmodel.formulas.terms import Number
from kernmodel.machine.model import CacheLevel, Machine
from kernmodel.source.model import Access
from kernmodel.traffic.conditions.quantities import NEVER, Rate, fixed
from kernmodel.traffic.conditions.streams import SizedNest
from kernmodel.traffic.model import LevelTraffic, PathTraffic
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class UnitOfWork:
    """The iterations that advance the fastest written (else read) stream by a cache line, and that reference."""

    iterations: Fraction
    reference: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Lines:
    """Cache lines per unit of work, as number and formula."""

    number: float
    formula: Formula

    def __sub__(self, other: Lines) -> Lines:
        return Lines(self.number - other.number, LateFormula(lambda: self.formula - other.formula))


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """Lines per unit of work that miss one cache, and modified lines that it evicts.

    Attributes:
        misses: lines that it asks for further out, write-allocates among them.
        modified: modified lines that it evicts.
        dropped: lines that it neither keeps nor evicts, since a streaming store takes them out.
        allocated: of the misses, those that only stores cause.
    """

    misses: Lines
    modified: Lines
    dropped: Lines
    allocated: float


def unit_of_work(nest: SizedNest, line_bytes: int) -> UnitOfWork:
    """The unit of work of a nest; a stream that moves by more than a line counts one iteration."""
    moving = [
        (stream.strides[-1].magnitude, reference)
        for stream in nest.streams
        for reference in stream.references
        if stream.strides[-1].value
    ]
    moving.sort(key=lambda item: item[1].order)
    return fastest_line([(stride, reference.access) for stride, reference in moving], line_bytes)


def fastest_line(moving: Sequence[tuple[Number, Access]], line_bytes: int) -> UnitOfWork:
    """The unit of work of references in source order that the inner loop moves by so many bytes.

    Where no array moves with the inner loop, a unit is one iteration.
    """
    if not moving:
        note = Note("no-stream", "no array moves with the inner loop; a unit of work is one iteration", "assumption")
        return UnitOfWork(Fraction(1), "", (note,))
    written = [item for item in moving if item[1].kind == "write"]
    stride, access = max(written or moving, key=lambda item: item[0])
    return UnitOfWork(max(Fraction(line_bytes) / stride, Fraction(1)), access.text, ())


def capacity_notes(machine: Machine, cores: int) -> tuple[Note, ...]:
    """What the capacities assume."""
    notes = [Note("lru", "caches are taken as fully associative with LRU replacement", "assumption")]
    for inner, level in zip(machine.levels, machine.levels[1:], strict=False):
        if level.filled_by == "victims":
            text = (
                f"{level.name} is a victim cache: it holds what {inner.name} evicts, so its conditions are judged by "
                f"the sizes of {inner.name} and {level.name} together"
            )
            if level.loads_pass_by:
                text += f"; loads from memory reach {inner.name} past it"
            notes.append(Note("victim-cache", text, "assumption"))
    for level in machine.levels:
        if min(cores, level.cores_sharing) > 1:
            text = f"each of {min(cores, level.cores_sharing)} cores has an equal share of {level.name}"
            notes.append(Note("shared-cache", text, "assumption"))
        if not level.write_back:
            notes.append(Note("write-through", f"{level.name} writes through; it is modelled as write-back", "warning"))
    return tuple(notes)


def path_traffic(machine: Machine, counts: Sequence[LevelCounts]) -> tuple[PathTraffic, ...]:
    """Lines on each path, from what each cache misses and evicts; `counts` are in the order of `machine.levels`.

    A level misses over the path to the next one and evicts modified lines over it. If the next one is a victim cache,
    only the lines found there cross toward the core where the others, from further out, pass it by; and all evicted
    lines cross away from the core, unmodified ones if the victim cache takes them: in the steady state as many leave
    as enter.
    """
    paths = []
    for index, (path, inner) in enumerate(zip(machine.paths, counts, strict=True)):
        outer = machine.beyond(index)
        loads, clean, allocated = inner.misses, Lines(0.0, ZERO), inner.allocated
        if outer is not None and outer.filled_by == "victims":
            leaving = inner.misses - inner.modified - inner.dropped
            if outer.clean_victims and inner.misses.number > inner.modified.number + inner.dropped.number:
                clean = leaving
            if outer.loads_pass_by:
                loads, allocated = loads - counts[index + 1].misses, allocated - counts[index + 1].allocated
        away = inner.modified
        numbers, formulas = (loads.number, away.number, clean.number), (loads.formula, away.formula, clean.formula)
        paths.append(PathTraffic(path.name, *numbers, *formulas, allocated))
    return tuple(paths)


def level_traffic(
    machine: Machine, counts: Sequence[LevelCounts], loads: float, stores: float, store_misses: float
) -> tuple[LevelTraffic, ...]:
    """What each cache sees in the steady state, from what it misses and evicts.

    A line that a cache takes in leaves it again: evicted, modified or not, or dropped for a streaming store. Modified
    lines from inside are found in a cache that loads pass through. A victim cache takes all victims, and all are new.

    Args:
        loads, stores: accesses of the code per unit of work, as they arrive at the first cache.
        store_misses: stores of the code that miss it, per line.
    """
    first = counts[0]
    levels = [_level(machine.levels[0], (loads, first.misses.number - first.allocated), (stores, store_misses), first)]
    for level, inner, own in zip(machine.levels[1:], counts, counts[1:], strict=False):
        evicted = levels[-1].dirty_evictions + (levels[-1].clean_evictions if level.clean_victims else 0.0)
        missed = evicted if level.filled_by == "victims" else 0.0
        levels.append(_level(level, (inner.misses.number, own.misses.number), (evicted, missed), own))
    return tuple(levels)


def _level(
    level: CacheLevel, loads: tuple[float, float], stores: tuple[float, float], counts: LevelCounts
) -> LevelTraffic:
    """A cache's row; `loads` and `stores` are requests and misses."""
    takes_clean = level.filled_by == "miss" or level.clean_victims
    clean = (counts.misses - counts.modified - counts.dropped).number if takes_clean else 0.0
    return LevelTraffic(
        level=level.name,
        loads=loads[0],
        load_hits=loads[0] - loads[1],
        load_misses=loads[1],
        stores=stores[0],
        store_hits=stores[0] - stores[1],
        store_misses=stores[1],
        dirty_evictions=counts.modified.number,
        clean_evictions=max(clean, 0.0),
    )


@dataclass(frozen=True, slots=True)
class Registers:
    """What load and store instructions move per iteration by the source's references: accesses and bytes."""

    loads: Rate
    stores: Rate
    load_bytes: Rate
    store_bytes: Rate


def register_traffic(nest: SizedNest) -> Registers:
    """Accesses and bytes per iteration that load and store instructions move by the source's references.

    A reference that the innermost loops do not move is held in a register while they run.
    """
    accesses: dict[bool, list[Rate]] = {False: [], True: []}
    moved: dict[bool, list[Rate]] = {False: [], True: []}
    for stream in nest.streams:
        runs = nest.runs(stream.held_from)
        counts = {False: Fraction(0), True: Fraction(0)}
        sizes = {False: Fraction(0), True: Fraction(0)}
        for access in (reference.access for reference in stream.references):
            executed = Fraction(access.executed)
            counts[access.kind == "write"] += executed
            sizes[access.kind == "write"] += executed * nest.prepared.nest.bytes_of(access)
        for written, count in counts.items():
            accesses[written].append(runs.times(fixed(count)))
            moved[written].append(runs.times(fixed(sizes[written])))
    return Registers(*(sum(rates, start=NEVER) for each in (accesses, moved) for rates in each.values()))


def register_notes(nest: SizedNest) -> tuple[Note, ...]:
    """Which references are taken to be held in registers."""
    held = [
        reference.access
        for stream in nest.streams
        if not stream.strides[-1].value
        for reference in stream.references
        if reference.access.depth == len(nest.trips)
    ]
    return held_notes(sorted(held, key=lambda access: (access.location.line or 0, access.location.column or 0)))


def held_notes(held: Iterable[Access]) -> tuple[Note, ...]:
    """Says which references are held in registers."""
    names = ", ".join(dict.fromkeys(access.text for access in held))
    if not names:
        return ()
    return (Note("held-in-register", f"{names}: held in a register while the inner loop runs", "assumption"),)
