"""Data traffic by layer conditions: which reuse fits into which cache, as formulas in the sizes and as numbers.

The model, its formulas and assumptions: docs/layer-conditions.md. After Stengel et al., ICS'15, and Hammer et al.,
IPTW'16 §2.4.2; extended to any strides, directions, ranks and element sizes, to outer loops, to victim caches, and to
stores that do not load their lines (docs/stores.md).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from itertools import accumulate

from kernmodel.errors import Note, UsageError
from kernmodel.formulas.formula import LateFormula
from kernmodel.machine.cores import check_caches, check_cores
from kernmodel.machine.model import CacheLevel, Machine
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import iterations_per_sweep
from kernmodel.source.nest.strides import updates_per_iteration
from kernmodel.traffic.conditions.access_table import access_table
from kernmodel.traffic.conditions.analysis import analyse_reuse
from kernmodel.traffic.conditions.cache_sets import Room, rooms
from kernmodel.traffic.conditions.paths import (
    LevelCounts,
    Lines,
    Registers,
    UnitOfWork,
    capacity_notes,
    level_traffic,
    path_traffic,
    register_notes,
    register_traffic,
    unit_of_work,
)
from kernmodel.traffic.conditions.quantities import Rate, formula_of_sum
from kernmodel.traffic.conditions.requirements import Requirement, layer_conditions_of, requirements_of, volumes_of
from kernmodel.traffic.conditions.reuse import Analysis, ReferenceMisses
from kernmodel.traffic.conditions.streaming import StreamingNest, analyse_streaming, writes_whole_lines
from kernmodel.traffic.conditions.streams import SizedNest, at_sizes
from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest
from kernmodel.traffic.model import (
    SYMBOLIC,
    AccessTraffic,
    Evasion,
    LevelTraffic,
    PathTraffic,
    Traffic,
    arithmetic_intensity,
)
from kernmodel.traffic.options import StoreMode
from kernmodel.traffic.stores import (
    apply_evasion,
    check_stores,
    evasion_notes,
    evasion_of,
    limited_evasion,
    with_streamed,
)
from kernmodel.value_types import NamedTuple, dataclass

StreamMisses = tuple[tuple[ReferenceMisses, ...], ...]

_SHARES = 1_000_000
"""Shares of evaded write-allocates stand in formulas as fractions with denominators up to this."""


class SizedReuse:
    """The reuse of a nest at given sizes with these stores, and what follows from it: each found once for all caches.

    Attributes:
        nest: the nest; line_bytes: of all caches.
        found: the reuse; with streaming stores, that of its reads and what goes past the caches.
    """

    def __init__(self, nest: SizedNest, line_bytes: int, stores: StoreMode) -> None:
        self.nest, self.line_bytes = nest, line_bytes
        self.found = analyse_streaming(nest, line_bytes) if stores == "nt" else _regular(nest, line_bytes)
        self._missed: dict[Room, StreamMisses] = {}
        self._counts: dict[Hashable, LevelCounts] = {}

    @property
    def streaming(self) -> StreamingNest | None:
        """What streaming stores send past the caches; None without any."""
        return self.found if isinstance(self.found, StreamingNest) else None

    @property
    def read(self) -> Analysis:
        """The reuse of what occupies the caches."""
        return self.found.reads if isinstance(self.found, StreamingNest) else self.found

    @cached_property
    def unit(self) -> UnitOfWork:
        """The unit of work."""
        return unit_of_work(self.nest, self.line_bytes)

    @cached_property
    def registers(self) -> Registers:
        """What load and store instructions move."""
        return register_traffic(self.nest)

    @cached_property
    def requirements(self) -> Sequence[Requirement]:
        """The distinct volumes that reuses need."""
        return requirements_of(self.read, self.unit.iterations)

    @cached_property
    def iterations(self) -> float | None:
        """Inner iterations of a sweep."""
        return iterations_per_sweep(self.nest.prepared.nest, self.nest.values)

    def missed(self, room: Room) -> StreamMisses:
        """Per stream, what its references miss in a cache."""
        if room not in self._missed:
            self._missed[room] = self.read.misses_in(room)
        return self._missed[room]

    def counts(self, key: Hashable, make: Callable[[], LevelCounts]) -> LevelCounts:
        """What was counted of a cache under this key, or is now."""
        if key not in self._counts:
            self._counts[key] = make()
        return self._counts[key]


def _regular(nest: SizedNest, line_bytes: int) -> Analysis:
    analysis = analyse_reuse(nest, line_bytes)
    if not nest.neighbours:
        return analysis
    from kernmodel.traffic.conditions.siblings import with_neighbours

    return with_neighbours(analysis)


def layer_conditions(
    nest: LoopNest | SizedNest | SizedReuse,
    machine: Machine,
    sizes: Mapping[str, int],
    *,
    cores: int = 1,
    safety: float = 1.0,
    stores: StoreMode = "regular",
) -> Traffic:
    """Data traffic of a nest on a machine, by layer conditions.

    Args:
        nest: the loop nest; or what `symbolic_nest` has prepared of it once, with these sizes put in by `at_sizes`; or
            its reuse with these sizes and stores, where it is asked about several caches.
        machine: the machine.
        sizes: a value for every size symbol of the nest.
        cores: cores that run the nest and share the shared caches.
        safety: factor on the cache sizes (0.5 is the rule of thumb of Stengel et al. 2015).
        stores: "regular": every store that misses loads its line; "evading": as far as the machine does not evade that;
            "nt": all stores stream past the caches.

    Raises:
        InputError: a size is missing, or a loop makes no iteration.
        UnsupportedKernelError: an index that is not affine in the loop variables.
        UsageError: a core count or safety factor without a meaning, streaming stores where the machine has none.
    """
    if isinstance(nest, LoopNest):
        nest = at_sizes(symbolic_nest(nest), sizes, machine.line_bytes)
    _check_question(machine, cores, safety, stores)
    known = nest if isinstance(nest, SizedReuse) else SizedReuse(nest, machine.line_bytes, stores)
    sized, unit = known.nest, known.unit
    prepared = sized.prepared
    given = rooms(machine, cores, safety)
    arriving = _moved(machine, given, known, _cached(known, machine, given))
    moved, evasion = _evaded(arriving, machine, cores, stores, unit.iterations)
    loads, stored = _register_bytes(known.registers, unit.iterations)
    flops = prepared.nest.operations.flops_per_iteration
    conditions = layer_conditions_of(known.read, known.requirements, machine, given)
    return Traffic(
        method=SYMBOLIC,
        iterations_per_unit=float(unit.iterations),
        unit_stream=unit.reference,
        iterations_per_sweep=known.iterations,
        updates_per_iteration=updates_per_iteration(prepared.nest),
        flops_per_iteration=flops,
        register_loads_bytes=loads,
        register_stores_bytes=stored,
        paths=moved.paths,
        accesses=moved.accesses,
        conditions=conditions,
        arithmetic_intensity=arithmetic_intensity(flops * float(unit.iterations), loads + stored, moved.paths, machine),
        cores=cores,
        safety=safety,
        sizes=dict(sizes),
        notes=(*_nest_notes(sized, unit, machine, cores), *moved.notes, *evasion_notes(machine, evasion)),
        levels=moved.levels,
        stores=stores,
        evasion=evasion,
    )


def _nest_notes(sized: SizedNest, unit: UnitOfWork, machine: Machine, cores: int) -> tuple[Note, ...]:
    """What is to be said before it is known which lines move."""
    return (*sized.notes, *unit.notes, *capacity_notes(machine, cores), *register_notes(sized))


def _register_bytes(registers: Registers, unit: Fraction) -> tuple[float, float]:
    """What a unit of work loads and stores from the core's side."""
    return float(registers.load_bytes.value * unit), float(registers.store_bytes.value * unit)


def _check_question(machine: Machine, cores: int, safety: float, stores: StoreMode) -> None:
    """Refuse core counts, safety factors and stores that have no meaning on the machine."""
    check_cores(machine, cores)
    if not safety > 0:
        todo = "give a number like 1 or 0.5"
        raise UsageError(f"safety factor {safety} is not positive", where="--safety", todo=todo)
    check_caches(machine)
    check_stores(machine, stores)


def on_machines(
    traffic: Traffic,
    reuse: SizedReuse,
    machines: Sequence[Machine],
    *,
    neighbours: bool = False,
    explained: bool = True,
) -> tuple[Traffic, ...]:
    """What moves on machines that differ from that of a traffic in the sizes of their caches.

    Machines whose caches hold the same share one answer, with the reasons of the first of them. Conditions, arithmetic
    intensity and notes stay those of the traffic.

    Args:
        traffic: by layer conditions; reuse: it was found with that.
        neighbours: whether cores that share a cache have the parts around this one and find one another's rows there.
        explained: whether the rows of the access table say why.
    """
    cores, unit = traffic.cores, reuse.unit.iterations
    known: list[tuple[_Cached, Traffic]] = []
    found = []
    for machine in machines:
        given = rooms(machine, cores, traffic.safety, neighbours=neighbours)
        cached = _cached(reuse, machine, given)
        same = next((one for other, one in known if other == cached), None)
        if same is None:
            moved = _moved(machine, given, reuse, cached, explained=explained)
            moved, _ = _evaded(moved, machine, cores, traffic.stores, unit)
            same = replace(traffic, paths=moved.paths, accesses=moved.accesses, levels=moved.levels)
            known.append((cached, same))
        found.append(same)
    return tuple(found)


def finds_of_neighbours(traffic: Traffic, reuse: SizedReuse, machine: Machine) -> bool:
    """Whether a part misses anything else where cores that share its caches have the parts around it: all that moves
    follows from what every cache misses.

    Args:
        traffic: by layer conditions; reuse: it was found with that.
    """
    each = (rooms(machine, traffic.cores, traffic.safety, neighbours=one) for one in (False, True))
    alone, shared = (_cached(reuse, machine, given) for given in each)
    return alone != shared


Volumes = Mapping[tuple[str, ...], float]


def needs_of(reuse: SizedReuse) -> Volumes:
    """The bytes that each reuse needs of what occupies the caches, whatever caches there are (`volumes_of`)."""
    return volumes_of(reuse.read)


def stands_for(whole: Volumes, part: Volumes, machine: Machine, cores: int, safety: float) -> bool:
    """Whether a nest has the same misses as a part of it, in caches that so many cores share: what each reuse needs
    (`needs_of`) is the same, or several times what any cache has."""
    far = _FAR * max((room.capacity for room in rooms(machine, cores, safety)), default=0.0)
    mine, other = ({reuse: min(needed, far) for reuse, needed in each.items()} for each in (whole, part))
    return mine == other


_FAR = 2.0
"""Of what needs so many times what a cache has, no part stays in it."""


@dataclass(frozen=True, slots=True)
class _Moved:
    """What moves, before any evasion; `evadable` are misses of lines that stores alone write, and whole."""

    paths: tuple[PathTraffic, ...]
    levels: tuple[LevelTraffic, ...]
    accesses: tuple[AccessTraffic, ...]
    evadable: tuple[ReferenceMisses, ...]
    notes: tuple[Note, ...]


class _Cached(NamedTuple):
    """What every cache misses, and the lines that streaming stores take out of each; nothing else depends on sizes."""

    misses: tuple[StreamMisses, ...]
    dropped: tuple[tuple[Rate, ...], ...]


def _cached(reuse: SizedReuse, machine: Machine, given: Sequence[Room]) -> _Cached:
    """What the caches of a machine hold, of each of which `given` is what a core has."""
    streaming = reuse.streaming
    dropped = tuple(streaming.dropped_in(room) if streaming else () for room in given)
    return _Cached(_misses_per_level(reuse, machine.levels, given), dropped)


def _moved(
    machine: Machine, given: Sequence[Room], reuse: SizedReuse, cached: _Cached, *, explained: bool = True
) -> _Moved:
    """What follows from the misses of every cache; `given` is what a core has of each."""
    streaming, analysis, misses = reuse.streaming, reuse.read, cached.misses
    unit, registers = reuse.unit.iterations, reuse.registers
    # a store that misses a cache loads the line if that cache or one inside of it asks for it
    allocates = list(accumulate((level.write_allocate for level in machine.levels), max))

    def counted(number: int) -> LevelCounts:
        return _counts(misses[number], cached.dropped[number], unit, allocates=allocates[number])

    counts = [
        reuse.counts(
            (_decisive(machine.levels, given, number), allocates[number]),
            partial(counted, number),
        )
        for number, level in enumerate(machine.levels)
    ]
    paths, sent = path_traffic(machine, counts), streaming.streamed if streaming else ()
    if sent:
        streamed = _lines([one.lines for one in sent], unit)
        paths = with_streamed(paths, streamed.number, streamed.formula)
    at_first = [m.misses for stream in misses[0] for m in stream if m.reference.access.kind == "write"]
    loads, stored = float(registers.loads.value * unit), float(registers.stores.value * unit)
    return _Moved(
        paths=paths,
        levels=level_traffic(machine, counts, loads, 0.0 if streaming else stored, _per_unit(at_first, unit)),
        accesses=access_table(analysis, misses, machine, given, unit, sent, explained=explained),
        evadable=_evadable(analysis, misses[-1]),
        notes=(*analysis.notes, *(streaming.notes if streaming else ())),
    )


def _evadable(analysis: Analysis, misses: StreamMisses) -> tuple[ReferenceMisses, ...]:
    """Of the misses of the last cache, those of lines that stores write whole and nobody reads."""
    return tuple(
        m
        for reuse, stream in zip(analysis.reuses, misses, strict=True)
        for m in stream
        if m.reference.access.kind == "write"
        and m.misses.numerator.value
        and not m.read
        and writes_whole_lines(reuse.stream, analysis.nest, analysis.line_bytes)
    )


def _evaded(
    moved: _Moved, machine: Machine, cores: int, stores: StoreMode, unit: Fraction
) -> tuple[_Moved, Evasion | None]:
    """The traffic without the write-allocates that are evaded, and which share that is of all."""
    evasion, allocated = evasion_of(machine, cores, stores), moved.paths[-1].write_allocates
    if evasion is None or not allocated or not moved.evadable:
        return moved, None
    lines = _lines([m.misses for m in moved.evadable], unit)
    limited = limited_evasion(evasion, lines.number / allocated)
    evaded = lines.formula.scaled(Fraction(evasion.share).limit_denominator(_SHARES))
    paths = apply_evasion(moved.paths, limited, evaded)
    accesses = list(moved.accesses)
    for m in moved.evadable if evasion.share else ():
        row, outside = accesses[m.reference.order], machine.residence_levels[-1]
        loaded = row.served_by[outside] - evasion.share * float(m.misses.value * unit)
        reason = f"{row.reason}; its write-allocate from memory is evaded"
        accesses[m.reference.order] = replace(row, served_by={**row.served_by, outside: loaded}, reason=reason)
    return replace(moved, paths=paths, accesses=tuple(accesses)), limited


def _takes_modified_alone(level: CacheLevel) -> bool:
    """Whether lines that are never modified never enter a cache."""
    return level.filled_by == "victims" and not level.clean_victims


def _decisive(levels: Sequence[CacheLevel], given: Sequence[Room], number: int) -> Hashable:
    """What the misses of a level depend on: the room in it, of all levels up to the next where any takes victims."""
    victims = any(level.filled_by == "victims" for level in levels[number : number + 2])
    return (number, *given[: number + 2]) if victims else given[number]


def _misses_per_level(
    reuse: SizedReuse, levels: Sequence[CacheLevel], given: Sequence[Room]
) -> tuple[StreamMisses, ...]:
    """Per level and stream, what its references miss."""
    found: list[StreamMisses] = []
    for level, room in zip(levels, given, strict=True):
        streams = reuse.missed(room)
        if _takes_modified_alone(level):  # what the level inside misses of other lines, it misses too
            pairs = zip(reuse.read.reuses, streams, found[-1], strict=True)
            streams = tuple(here if one.stream.is_written else inside for one, here, inside in pairs)
        found.append(streams)
    for number, level in enumerate(levels[1:]):
        if level.filled_by == "victims":
            both = zip(found[number], found[number + 1], strict=True)
            found[number] = tuple(_modified_again(inside, victims) for inside, victims in both)
    return tuple(found)


def _modified_again(
    inside: tuple[ReferenceMisses, ...], victims: tuple[ReferenceMisses, ...]
) -> tuple[ReferenceMisses, ...]:
    """What a stream misses in a cache whose victims go to another: of the lines that come back from there, those that
    were written since they came from memory leave modified again, though they are only read this time.

    Args:
        inside, victims: what its references miss in either cache, in order of first touch.
    """
    writers = [m.reference.access.kind == "write" for m in inside]
    if not any(writers):
        return inside
    # those that miss both bring lines from memory, which the references behind them find until the next of them
    begins = [place for place, m in enumerate(victims) if m.misses.numerator.value]
    found = []
    for place, (own, beyond) in enumerate(zip(inside, victims, strict=True)):
        first = max((begin for begin in begins if begin <= place), default=0)
        end = min((begin for begin in begins if begin > place), default=len(writers))
        # what the reference itself finds again was touched by all of them
        written = any(writers[first : end if first == place or not begins else place])
        back = own.misses - beyond.misses
        more = written and back.value > own.modified.value
        found.append(replace(own, modified=back) if more else own)
    return tuple(found)


def _counts(streams: StreamMisses, dropped: Sequence[Rate], unit: Fraction, *, allocates: bool) -> LevelCounts:
    """Misses and modified evictions of a level per unit of work, and lines that streaming stores take out of it.

    Without write-allocate, a written line that nobody reads is not loaded; it leaves all the same.
    """
    missed = [m for stream in streams for m in stream if m.misses.numerator.value]
    loaded = [m.misses for m in missed if allocates or m.read]
    modified = [m.modified for stream in streams for m in stream if m.modified.numerator.value]
    stored = [m.misses for m in missed if allocates and m.reference.access.kind == "write"]
    asked, evicted, taken = (_lines(rates, unit) for rates in (loaded, modified, dropped))
    return LevelCounts(asked, evicted, taken, _per_unit(stored, unit))


def _lines(rates: Sequence[Rate], unit: Fraction) -> Lines:
    """The sum of rates per unit of work."""
    return Lines(_per_unit(rates, unit), LateFormula(lambda: formula_of_sum(rates).scaled(unit)))


def _per_unit(rates: Iterable[Rate], unit: Fraction) -> float:
    return float(sum((rate.value for rate in rates), start=Fraction(0)) * unit)
