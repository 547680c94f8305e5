"""Loads that cross cache lines: how often they do in a loop over arrays that begin at cache lines.

Addresses that differ by a constant cannot all be aligned. Where an index moves along a base that the loop leaves alone,
the base is taken for the start of an array at a cache line, and the index for whole vectors. Of other sets of such
loads the alignment is taken that costs least. What a split load costs is a figure of the core, by size.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from functools import lru_cache
from math import gcd

from kernmodel.incore.dependences.addresses import BodyAccesses, MovingAccess
from kernmodel.incore.engine.layout import PHASES, Access
from kernmodel.incore.model import PortUse
from kernmodel.incore.tables.core_parameters import LoadParameters, Parameters, ZenPipelineParameters
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple

_DATA_PATH = "D"
_MEETING = 2
"""Loads of a pass from which on three may start in a cycle."""


NO_PAGES: Mapping[int, int] = {}
_NOWHERE: Mapping[int, Sequence[int]] = {}  # settings go to other processes, which read-only views cannot


class Places(NamedTuple):
    """Where the arrays of a loop lie, modulo a cache line.

    Attributes:
        base: of arrays that an index moves along, from a base that the loop leaves alone.
        starts: by instruction, the address that its access has in the first pass, each of the times (up to 64) that the
            loop is entered; of instructions that are not here, `base` or the alignment with the fewest crossings holds.
        strides: by instruction, bytes that its access moves per pass; of instructions that are not here, what the body
            by itself says.
        in_page: by instruction, where its access begins in the first pass, modulo a page of 4096 bytes and counted from
            one place for all of them; loads that are not here wait for no store to another address.
        written_back: modified lines that leave the first cache per pass.
    """

    base: int = 0
    starts: Mapping[int, Sequence[int]] = _NOWHERE
    strides: Mapping[int, int] = NO_PAGES
    in_page: Mapping[int, int] = NO_PAGES
    written_back: float = 0.0


AT_LINES = Places()
"""Arrays that begin at cache lines."""


def costs_of_lines(parameters: Parameters) -> bool:
    """Whether it is known what accesses across lines cost on a core."""
    pipeline = parameters.pipeline
    by_line = isinstance(pipeline, ZenPipelineParameters) and pipeline.lines.line_bytes is not None
    return bool(parameters.loads.splits) or by_line


def split_loads(accesses: BodyAccesses, parameters: LoadParameters, places: Places = AT_LINES) -> dict[int, float]:
    """By instruction, the share of the passes in which its load crosses lines; 0 is left out.

    Args:
        accesses: of the block, a loop body; parameters: of the core, with its cache line.
        places: where the arrays lie.
    """
    costs, line = parameters.splits, parameters.line_bytes
    if line is None:
        return {}
    alike: dict[object, list[MovingAccess]] = {}
    shares: dict[int, float] = {}
    for load in accesses.moving(places.strides)[0]:
        if load.size in costs and load.instruction in places.starts:
            shares[load.instruction] = _crossing(load, places.starts[load.instruction], line).bit_count() / PHASES
        elif load.size in costs:
            alike.setdefault(load.address.terms, []).append(load)
    for loads in alike.values():
        found = _shares(loads, _start(loads, costs, line, places), line)
        shares |= {load.instruction: share for load, share in zip(loads, found, strict=True) if share}
    return {instruction: share for instruction, share in shares.items() if share}


def _start(loads: Sequence[MovingAccess], costs: Mapping[int, float], line: int, places: Places) -> int:
    """What the addresses of some loads share, modulo a line, where that is not known."""
    if loads[0].anchored:
        return places.base
    # of thousands of loads there are few sizes and steps: what they cost is found once for each place
    by_place: dict[tuple[int, int], list[float]] = {}
    found = []
    for load in loads:
        key = step, size = gcd(load.stride, line), load.size
        if key not in by_place:
            by_place[key] = [_share(place, step, size, line) * costs[size] for place in range(step)]
        found.append((load.address.constant % step, step, by_place[key]))
    return min(range(line), key=lambda start: sum([cost[(start + place) % step] for place, step, cost in found]))


def placed_accesses(
    accesses: BodyAccesses, parameters: LoadParameters, places: Places = AT_LINES, *, crossing: bool = True
) -> list[Access]:
    """Where the loads of a loop body begin modulo a line, and how they move, where three may meet in a cycle or one
    crosses lines, and the stores that mostly enter the cache alone.

    Args:
        accesses: of the body; parameters: of the core, with its cache line; places: where the arrays lie.
        crossing: whether loads across lines keep their port longer.
    """
    (loads, stores), line = accesses.moving(places.strides), parameters.line_bytes
    if line is None:
        return []
    begins = {load.instruction: places.starts[load.instruction] for load in loads if load.instruction in places.starts}
    alike: dict[object, list[MovingAccess]] = {}
    for load in loads:
        if load.instruction not in begins:
            alike.setdefault(load.address.terms, []).append(load)
    for own in alike.values():
        wide = [load for load in own if load.size in parameters.splits]
        start = _start(wide, parameters.splits, line, places) if wide else places.base if own[0].anchored else 0
        begins |= {load.instruction: (start + load.address.constant,) for load in own}
    made = []
    for number, load in {load.instruction: load for load in loads}.items():
        low, high = halves(_crossing(load, begins[number], line if crossing else None))
        place, stride = begins[number][0] % line, load.stride % line
        made.append(Access(number, low, high, place=place, stride=stride, size=load.size))
    meet = len(loads) >= _MEETING or any(own.load_low or own.load_high for own in made)
    placed = {own.instruction: own for own in made} if meet else {}
    for number in _stored_alone(stores, line, places) if parameters.paired_stores else ():
        placed[number] = placed.get(number, Access(number))._replace(single=1)
    return [placed[number] for number in sorted(placed)]


def _stored_alone(stores: Sequence[MovingAccess], line: int, places: Places) -> list[int]:
    """The stores that in most passes enter the cache in a cycle of their own: two that follow one another in the code
    share a cycle if they go to one line. Those of a whole line have no part in it."""
    narrow = [store for store in stores if store.size < line]
    if len(narrow) < _MEETING:
        return []
    lines = []
    for passed in range(PHASES):
        for store in narrow:
            given = places.starts.get(store.instruction)
            begin = given[0] - store.address.constant if given else places.base if store.anchored else 0
            place = (begin % line + store.address.constant + store.stride * passed) // line
            lines.append((store.instruction, store.address.terms, place))
    alone = dict.fromkeys((store.instruction for store in narrow), 0)
    place = 0
    while place < len(lines):
        together = place + 1 < len(lines) and lines[place][1:] == lines[place + 1][1:]
        alone[lines[place][0]] += not together
        place += 1 + together
    return [number for number, passes in alone.items() if 2 * passes > PHASES]


def _shares(loads: Sequence[MovingAccess], start: int, line: int) -> list[float]:
    """The share of passes in which each load is split if what their addresses share is `start` modulo a line."""
    steps = [gcd(load.stride, line) for load in loads]
    return [
        _share((start + load.address.constant) % step, step, load.size, line)
        for load, step in zip(loads, steps, strict=True)
    ]


def _share(first: int, step: int, size: int, line: int) -> float:
    """The share of places of a line, `step` apart from the first on, at which so many bytes cross its end."""
    places = range(first, line, step)
    return sum(place + size > line for place in places) / len(places)


def split_cycles(uses: Sequence[PortUse], instruction: Instruction, costs: Mapping[int, float]) -> tuple[float, ...]:
    """Per port use of an instruction, the cycles that it grows by where the load crosses lines.

    Uses of load ports, with which load data paths go, and of these paths take all their ports for as long as the
    figures say.
    """
    size = next((r.size_bytes for r in instruction.memory if r.read), 0) if costs else 0
    if size not in costs:
        return (0.0,) * len(uses)
    paths = {frozenset(use.ports) for use in uses}
    loading = {own for own in paths if frozenset(port + _DATA_PATH for port in own) in paths}
    split = loading | {frozenset(port + _DATA_PATH for port in own) for own in loading}
    longer = [costs[size] * len(use.ports) - use.cycles if frozenset(use.ports) in split else 0.0 for use in uses]
    return tuple([max(0.0, cycles) for cycles in longer])


def may_split(instruction: Instruction, costs: Mapping[int, float]) -> bool:
    """Whether the instruction loads so many bytes that it takes longer across lines."""
    return any(reference.read and reference.size_bytes in costs for reference in instruction.memory)


class Lines(NamedTuple):
    """What accesses cross that take longer then.

    Attributes:
        line_bytes: of a cache line. block_bytes: of the blocks that stores of `block_bytes` must not cross.
        whole_lines: one in so many loads of a whole line keeps its pipe a cycle longer, 0 for none. half_lines: one in
            so many loads of half a line goes to all its pipes, with `in_turn` keeps its own, 0 for none;
            halves_together: but where a pass has no more of them than this, which start in one cycle.
        whole_across, half_across: of loads of a whole line, and of half a line, that cross lines, so many of so many
            keep their pipe one cycle more; empty for none.
        in_turn: whether a load across lines keeps its own pipe a cycle longer, in place of all its pipes for one.
        halved: whether accesses of `line_bytes` are two, each of which must not cross its multiples; these are then of
            halves of cache lines.
        evictions: how many loads a line that leaves the first cache modified keeps for a cycle, as if they crossed
            lines.
        crossing: whether accesses across lines take longer; apart: whether stores of general-purpose registers to
            several lines enter the cache one a cycle. Both can be idealised.
    """

    line_bytes: int
    block_bytes: int | None
    whole_lines: int = 0
    half_lines: int = 0
    halves_together: int = 0
    whole_across: tuple[int, ...] = ()
    half_across: tuple[int, ...] = ()
    in_turn: bool = False
    halved: bool = False
    evictions: int = 0
    crossing: bool = True
    apart: bool = True

    def of_load(self, size: int) -> int | None:
        """The size of what a load must not cross, or one of its halves where it takes a whole line; None where it takes
        as long across lines."""
        if not self.crossing:
            return None
        return self.line_bytes // 2 if size == self.line_bytes else self.line_bytes

    def of_store(self, size: int) -> int | None:
        """The same for a store."""
        if size >= self.line_bytes or not self.crossing:
            return self.line_bytes // 2 if self.halved and self.crossing and size == self.line_bytes else None
        return self.block_bytes if self.block_bytes == size else self.line_bytes


def slow_accesses(
    accesses: BodyAccesses, general: Collection[int], lines: Lines, places: Places = AT_LINES
) -> list[Access]:
    """What becomes of the accesses of a loop body by their addresses.

    Where an index moves along a base that the loop leaves alone, the base is taken for the start of an array at a
    cache line; of other sets of accesses that share a base the alignment is taken with the fewest crossings.

    Args:
        accesses: of the body; general: instructions that store from general-purpose registers, two of which go to one
            line in a cycle; lines: of the core; places: where the arrays lie.
    """
    loads, stores = accesses.moving(places.strides)
    alike: dict[object, list[tuple[MovingAccess, int | None, bool]]] = {}
    slow: dict[int, list[int]] = {}
    both = [(load, lines.of_load(load.size), False) for load in loads]
    for access, block, writes in [*both, *((store, lines.of_store(store.size), True) for store in stores)]:
        if access.instruction not in places.starts:
            alike.setdefault(access.address.terms, []).append((access, block, writes))
        elif passes := _crossing(access, places.starts[access.instruction], block):
            slow.setdefault(access.instruction, [0, 0])[writes] |= passes
    for own in alike.values():
        if own[0][0].anchored:
            starts = {places.base}
        else:
            starts = {0, *(-access.address.constant % lines.line_bytes for access, *_ in own)}
        found = _fewest_crossings([(access, block) for access, block, _ in own], sorted(starts))
        for (access, _, writes), passes in zip(own, found, strict=True):
            if passes:
                slow.setdefault(access.instruction, [0, 0])[writes] |= passes
    more = _longer_across(loads, lines, slow)
    for instruction, passes in _long_loads(loads, lines, slow).items():
        more[instruction] = more.get(instruction, 0) | passes & ~slow.get(instruction, _NEVER)[0]
    for instruction, passes in _held_loads(loads, slow, places.written_back * lines.evictions).items():
        slow.setdefault(instruction, [0, 0])[0] |= passes
    alone = {number for number in general if lines.apart and not _paired(number, stores, general, lines)}
    made = []
    for number in sorted({*slow, *more, *alone}):
        loading, storing = slow.get(number, (0, 0))
        made.append(
            Access(number, *halves(loading), *halves(storing), *halves(more.get(number, 0)), int(number in alone))
        )
    return made


def _fewest_crossings(accesses: Sequence[tuple[MovingAccess, int | None]], starts: Sequence[int]) -> Sequence[int]:
    """The passes in which each access crosses multiples of its block, from the start with the fewest of them."""
    fewest: Sequence[int] = ()
    for start in starts:
        found = [_crossing(access, (start + access.address.constant,), block) for access, block in accesses]
        if not any(found):
            return found
        fewest = min(fewest or found, found, key=_count)
    return fewest


def _long_loads(loads: Sequence[MovingAccess], lines: Lines, crossing: Container[int]) -> dict[int, int]:
    """By instruction, the passes in which a load of a line, or of half a line, is the one of so many that takes longer;
    none of half lines where some that cross lines take all pipes, which costs them more, nor where so few are all that
    they start together. Loads that stay where they are take no longer."""
    moving = [load for load in loads if load.stride]
    halves = [load.instruction for load in moving if 2 * load.size == lines.line_bytes]
    few = len(halves) <= lines.halves_together
    half = 0 if few or (not lines.in_turn and any(number in crossing for number in halves)) else lines.half_lines
    wholes = [load.instruction for load in moving if load.size == lines.line_bytes]
    return dict([*_one_in(lines.whole_lines, wholes), *_one_in(half, halves)])


def _longer_across(
    loads: Sequence[MovingAccess], lines: Lines, crossing: Mapping[int, Sequence[int]]
) -> dict[int, int]:
    """By instruction, the passes in which a load across lines keeps its pipe one cycle more, evenly spread over those
    in which it crosses them. Loads that stay where they are do not."""
    shares = {lines.line_bytes: lines.whole_across, lines.line_bytes // 2: lines.half_across}
    found = {}
    for load in loads:
        passes = crossing.get(load.instruction, _NEVER)[0] if load.stride else 0
        if passes and shares.get(load.size):
            many, of = shares[load.size]
            own = [number for number in range(PHASES) if passes >> number & 1]
            longer = [number for place, number in enumerate(own, load.instruction) if place * many % of < many]
            found[load.instruction] = sum(1 << number for number in longer)
    return found


def _held_loads(loads: Sequence[MovingAccess], slow: Mapping[int, Sequence[int]], kept: float) -> dict[int, int]:
    """By instruction, the passes in which a load is kept by a line that the first cache writes back (`kept` of them a
    pass), evenly spread over all but those that take longer anyway, and over pipes: loads one behind the other go to
    different ones."""
    long = {load.instruction: slow.get(load.instruction, _NEVER)[0] for load in loads}
    free = [(number, passed) for passed in range(PHASES) for number, passes in long.items() if not passes >> passed & 1]
    held = min(len(free), round(PHASES * kept))
    found: dict[int, int] = {}
    taken = {(n * len(free) // held + n % 2) % len(free) for n in range(held)} if held < len(free) else range(held)
    for number, passed in [free[n] for n in taken]:
        found[number] = found.get(number, 0) | 1 << passed
    return found


_NEVER = (0, 0)


def _one_in(every: int, loads: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Loads with the passes in which each is the one of so many of them: two in a row, since loads one behind the other
    go to different pipes, and whatever holds one of these up does so to both; each load has its turn."""
    found = dict.fromkeys(loads, 0)
    for pair in range(PHASES * len(loads) // (2 * every) if every else 0):
        for number in (2 * pair * every + pair % len(loads), 2 * pair * every + pair % len(loads) + 1):
            found[loads[number % len(loads)]] |= 1 << number // len(loads) % PHASES
    yield from found.items()


def _crossing(access: MovingAccess, starts: Sequence[int], block: int | None) -> int:
    """Of 64 passes, as bits, those in which an access, or a part of it of so many bytes, crosses multiples of `block`.

    Args:
        starts: where it begins, each of the times that the loop is entered; each has its share of the passes.
    """
    return 0 if block is None else crossing_passes(starts, access.stride, min(access.size, block), block)


def crossing_passes(starts: Sequence[int], stride: int, size: int, block: int) -> int:
    """Of 64 passes, as bits, those in which accesses of `size` bytes, `stride` apart, cross multiples of `block`."""
    rows = len(starts)
    if rows == 1:
        return _crossings_of_one(starts[0] % block, stride % block, size, block)
    places = [(starts[number * rows // PHASES] + stride * number) % block for number in range(PHASES)]
    return sum(1 << number for number, place in enumerate(places) if place + size > block)


@lru_cache(maxsize=4096)  # of most loops accesses begin at lines and advance by a vector: the same few again and again
def _crossings_of_one(start: int, stride: int, size: int, block: int) -> int:
    found, place = 0, start
    for number in range(PHASES):
        found |= (place + size > block) << number
        place = (place + stride) % block
    return found


def _count(passes: Sequence[int]) -> int:
    return sum(own.bit_count() for own in passes)


def _paired(number: int, stores: Sequence[MovingAccess], general: Collection[int], lines: Lines) -> bool:
    """Whether the store before or behind, around the loop, is such a store, too, to the same line in most passes."""
    places = [place for place, store in enumerate(stores) if store.instruction == number]
    if not places:
        return False
    own = stores[places[0]]
    for step in (1, -1):
        place = (places[0] + step) % len(stores)
        other = stores[place]
        around = own.stride * step if (place - places[0]) * step <= 0 else 0
        apart = other.address.constant + around - own.address.constant
        if other.instruction in general and other.address.terms == own.address.terms and abs(apart) < lines.line_bytes:
            return True
    return False


def halves(passes: int) -> tuple[int, int]:
    """The lower and the higher 32 bits, as signed numbers."""
    low, high = passes & 0xFFFFFFFF, passes >> 32
    return low - (low >> 31 << 32), high - (high >> 31 << 32)


def mean_longer(access: Access) -> float:
    """Cycles that a load, or a store that loads nothing, takes longer, of each pass in the mean."""
    load, store = (access.load_low, access.load_high), (access.store_low, access.store_high)
    longer = (*(load if any(load) else store), access.more_low, access.more_high)
    return sum((half & 0xFFFFFFFF).bit_count() for half in longer) / PHASES
