"""The simulator in plain Python: the yardstick of the compiled engine, written to be read, one function per rule.

What the semantics in docs/cache-simulation.md leave open:

- A *request* is a range of bytes that lies in one line of the level it arrives at. An access, or a line that a level
  asks of the next one or hands to it, is cut at the lines of the level where it arrives, in ascending order; lines may
  be shorter or longer there. Memory counts each range that arrives as one, however long.
- A request is a hit if its line is there, with all the sub-blocks that the request touches.
- A store that covers a whole line and misses in a level below the first stays there without a fetch, whether that level
  allocates on other stores or not. Any other store that misses in a level without write-allocate is passed on to
  `store_to`; the copy further in, if there is one, has its own rules.
- A write-through level passes a store on after it has dealt with it (after the fetch and the eviction, if it
  allocates), cut to its line. A modified line that arrives there is kept unmodified and passed on; one
  that it gets back from its victim level stays modified.
- First comes the fetch from below, then the eviction, then what is evicted goes to the next level, then the new line
  takes its place as the most recent one.
- A victim level has lines and sub-blocks of the same size as the level that it serves. Where it is asked, it counts one
  load, and the line leaves it with its modified parts; it keeps nothing of it. It takes victims whatever its own
  write-allocate says, and does not fetch for them. A modified victim counts as `dirty_evictions` above, and as a store
  in the victim level.
- Inclusive: what the evicted line covers is removed from all caches whose `load_from` links lead to the level that
  evicts, even where their lines only overlap it; each copy removed counts in `invalidations` of its level and not as an
  eviction there. The modified parts of the copies are modified parts of the evicted line.
- Sub-blocks: a line that is there without a sub-block that is needed is a miss, which loads each absent sub-block by a
  request of its own, evicts nothing, and makes the line as recent as a hit would. A store below the first level needs
  no load for those sub-blocks that it covers. Modified sub-blocks are written back by a request each; to a victim level
  the line goes in one request, with what it has. A victim level that has only some of the sub-blocks that are needed
  hands them over and counts a miss.
- Replacement: FIFO counts from the insertion. RANDOM draws only where a set is full: way = (SplitMix64 × ways) / 2⁶⁴,
  one generator per level. MRU gives up the line that was touched last. PLRU keeps a binary tree over the ways, rounded
  up to a power of two; a touch turns every node on its way to the other side; the victim is found along the nodes, and
  where a node leads to ways that are not there, the other side is taken. A new line takes the free way with the lowest
  number (this matters for RANDOM and PLRU).
- Hashed: set = mix(line number) % sets, with the finalizer of SplitMix64; of 2^b lines that stay together what the hash
  takes is the number without its b lowest bits, which are put back behind it.
- Streaming stores: copies of the line (a line of the first level) in all caches are removed and counted in
  `invalidations`; if any was modified, memory takes one store. The bytes gather in a buffer by line. A complete line
  leaves at once (`streamed_lines`). Where all buffers are taken, the one written to longest ago leaves
  (`streamed_parts`). A load or ordinary store that misses in the first level sends off the buffer that gathers its
  line before anything else.
- `served`: which level had what a touch of a line needed; where several were asked, the one furthest out. A store
  counts for the level that keeps it without a fetch, or that it is passed on to; a streaming store counts for memory.
- An address that is not below 2⁶⁴ is refused; below 2⁶² where a level has lines of less than 4 bytes, or of a number of
  bytes that is no power of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from kernmodel.cachesim.model import MEMORY, CacheSpec, Counters, Hierarchy, LevelCounters, Position, Program
from kernmodel.cachesim.programs import (
    KINDS,
    MASK64,
    Walk,
    address_limit,
    mix,
    seeded,
)
from kernmodel.value_types import dataclass

__all__ = ["ReferenceEngine"]

_GOLDEN = 0x9E3779B97F4A7C15


@dataclass(slots=True)
class Line:
    """A line in a cache: its number, and its sub-blocks that are there and that are modified, as bits."""

    number: int
    valid: int
    dirty: int


class Replacement(Protocol):
    """Which of its ways a set gives up."""

    def touch(self, way: int) -> None:
        """A hit."""

    def place(self, way: int) -> None:
        """A new line."""

    def remove(self, way: int) -> None:
        """The line of this way has gone."""

    def victim(self) -> int:
        """The way that a full set gives up."""


@dataclass(slots=True)
class Order:
    """LRU, FIFO and MRU: the ways in the order of their last touch (FIFO: of their insertion), latest first."""

    policy: str
    ways: list[int] = field(default_factory=list)

    def touch(self, way: int) -> None:
        """To the front, except under FIFO."""
        if self.policy != "FIFO":
            self.ways.remove(way)
            self.ways.insert(0, way)

    def place(self, way: int) -> None:
        """To the front."""
        self.ways.insert(0, way)

    def remove(self, way: int) -> None:
        """Out of the order."""
        self.ways.remove(way)

    def victim(self) -> int:
        """The first under MRU, else the last."""
        return self.ways[0] if self.policy == "MRU" else self.ways[-1]


@dataclass(slots=True)
class Generator:
    """SplitMix64."""

    state: int

    def below(self, count: int) -> int:
        """A number from 0 to count − 1."""
        self.state = (self.state + _GOLDEN) & MASK64
        return mix(self.state) * count >> 64


@dataclass(slots=True)
class Chance:
    """RANDOM: any way."""

    generator: Generator
    count: int

    def touch(self, way: int) -> None:
        """Nothing."""

    def place(self, way: int) -> None:
        """Nothing."""

    def remove(self, way: int) -> None:
        """Nothing."""

    def victim(self) -> int:
        """The next number of the level's generator."""
        return self.generator.below(self.count)


@dataclass(slots=True)
class Tree:
    """PLRU: node n has the children 2n and 2n + 1; a node is in `right` if the victim is looked for on its right."""

    count: int
    leaves: int
    right: set[int] = field(default_factory=set)

    def touch(self, way: int) -> None:
        """All nodes above the way point to their other side."""
        node = self.leaves + way
        while node > 1:
            (self.right.discard if node & 1 else self.right.add)(node >> 1)
            node >>= 1

    def place(self, way: int) -> None:
        """As a hit."""
        self.touch(way)

    def remove(self, way: int) -> None:
        """Nothing."""

    def victim(self) -> int:
        """Down the tree, but never to ways that are not there."""
        node, first, span = 1, 0, self.leaves
        while span > 1:
            span //= 2
            right = node in self.right and first + span < self.count
            node, first = 2 * node + right, first + span * right
        return first


class Set:
    """A set: its ways, and what its replacement remembers."""

    def __init__(self, ways: int, replacement: Replacement) -> None:
        self.ways: list[Line | None] = [None] * ways
        self.replacement = replacement

    def find(self, number: int) -> int | None:
        """The way of a line."""
        return next((way for way, line in enumerate(self.ways) if line and line.number == number), None)

    def take(self, way: int) -> Line:
        """Remove the line of a way that has one."""
        line = self.ways[way]
        assert line is not None
        self.ways[way] = None
        self.replacement.remove(way)
        return line

    def put(self, line: Line) -> None:
        """Insert a line where there is a free way."""
        way = self.ways.index(None)
        self.ways[way] = line
        self.replacement.place(way)


class Level:
    """One cache: its sets (made when first needed) and its counters."""

    def __init__(self, spec: CacheSpec, index: int, links: Mapping[str, int], seed: int) -> None:
        self.spec = spec
        self.index = index
        self.load_from = links[spec.load_from]
        self.store_to = links[spec.store_to]
        self.victim_level = None if spec.victim_level is None else links[spec.victim_level]
        self.block_bytes = spec.line_bytes // spec.sub_blocks
        self.generator = Generator(seeded(seed + index))
        self.sets: dict[int, Set] = {}
        self.counts: dict[str, int] = {}

    def count(self, name: str) -> None:
        """One more in a counter."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def set_of(self, number: int) -> Set:
        """The set of a line."""
        index = (self._hashed(number) if self.spec.hashed else number) % self.spec.sets
        found = self.sets.get(index)
        if found is None:
            found = self.sets[index] = Set(self.spec.ways, self._replacement())
        return found

    def _hashed(self, number: int) -> int:
        """The hash of what of a line's number is none of its place among the lines that stay together."""
        together = self.spec.hashed_lines
        return (mix(number // together) * together & MASK64) + number % together

    def _replacement(self) -> Replacement:
        ways, policy = self.spec.ways, self.spec.policy
        if policy == "RANDOM":
            return Chance(self.generator, ways)
        return Tree(ways, 1 << (ways - 1).bit_length()) if policy == "PLRU" else Order(policy)

    def line_numbers(self, first: int, last: int) -> range:
        """The lines that cover the bytes from `first` to `last`."""
        return range(first // self.spec.line_bytes, last // self.spec.line_bytes + 1)

    def clip(self, number: int, first: int, last: int) -> tuple[int, int]:
        """The part of a range of bytes that lies in a line."""
        base = number * self.spec.line_bytes
        return max(first, base), min(last, base + self.spec.line_bytes - 1)

    def blocks(self, number: int, first: int, last: int) -> int:
        """The sub-blocks of a line that a range of bytes touches, as bits."""
        first, last = self.clip(number, first, last)
        base = number * self.spec.line_bytes
        low, high = (first - base) // self.block_bytes, (last - base) // self.block_bytes
        return (2 << high) - (1 << low)

    def whole_blocks(self, number: int, first: int, last: int) -> int:
        """The sub-blocks of a line that a range of bytes covers, as bits."""
        return sum(1 << block for block, (low, high) in self.block_ranges(number, -1) if first <= low and high <= last)

    def block_ranges(self, number: int, mask: int) -> list[tuple[int, tuple[int, int]]]:
        """The sub-blocks of a mask, each with its first and last byte."""
        base, size = number * self.spec.line_bytes, self.block_bytes
        return [
            (block, (base + block * size, base + (block + 1) * size - 1))
            for block in range(self.spec.sub_blocks)
            if mask >> block & 1
        ]


@dataclass(slots=True)
class Buffer:
    """A combining buffer: the bytes written of a line, as bits."""

    line: int
    written: int = 0


class ReferenceEngine:
    """All caches of a hierarchy, memory, and the combining buffers of streaming stores."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        links = {spec.name: index for index, spec in enumerate(hierarchy.levels)}
        self._memory = links[MEMORY] = len(hierarchy.levels)
        self._levels = [Level(spec, index, links, hierarchy.seed) for index, spec in enumerate(hierarchy.levels)]
        self._limit = address_limit(hierarchy)
        self._buffers: list[Buffer] = []  # the one written to last comes last
        self._buffer_count = hierarchy.combining_buffers
        self.reset_counters()

    # Accesses

    def _access(self, kind: int, address: int, size: int, reference: int) -> None:
        """An access is made of requests, one for each line of the first level that it covers."""
        self._accesses += 1
        first_level = self._levels[0]
        for number in first_level.line_numbers(address, address + size - 1):
            first, last = first_level.clip(number, address, address + size - 1)
            rule = (self._load_line, self._store_line, self._stream_line)[kind]
            served = rule(first_level, number, first, last)
            self._served[reference][served] += 1

    def first_refused(self, kinds: Sequence[int], addresses: Sequence[int], sizes: Sequence[int]) -> int | None:
        """The number of the first access of a trace that cannot be executed."""
        for number, (kind, address, size) in enumerate(zip(kinds, addresses, sizes, strict=True)):
            if not (0 <= kind < len(KINDS) and size > 0 and 0 <= address <= self._limit - size):
                return number
        return None

    def run_trace(self, kinds: Sequence[int], addresses: Sequence[int], sizes: Sequence[int]) -> None:
        """Accesses one after another."""
        self.reserve(1)
        for kind, address, size in zip(kinds, addresses, sizes, strict=True):
            self._access(kind, address, size, 0)

    def sweep(self, program: Program, start: Position | None, most: int | None) -> tuple[int, Position | None]:
        """Execute a sweep or a part of it."""
        kinds = [(KINDS[each.kind], each.size_bytes) for each in program.references]
        done = 0

        def execute(reference: int, address: int) -> None:
            self._access(kinds[reference][0], address, kinds[reference][1], reference)

        for values in Walk(program, start, execute, self._limit).iterations():
            if done == most:
                return done, Position(values, fresh=False)
            done += 1
        return done, None

    # Loads

    def _load(self, level: int, first: int, last: int) -> int:
        """A request for bytes arrives at a level or at memory; the level that served it."""
        if level == self._memory:
            self._memory_loads += 1
            return level
        here = self._levels[level]
        return max(self._load_line(here, n, *here.clip(n, first, last)) for n in here.line_numbers(first, last))

    def _load_line(self, level: Level, number: int, first: int, last: int) -> int:
        level.count("loads")
        needed = level.blocks(number, first, last)
        if self._hit(level, number, needed):
            level.count("load_hits")
            return level.index
        level.count("load_misses")
        self._send_gathered(level, number)
        return self._fill(level, number, needed, needed, 0)

    def _hit(self, level: Level, number: int, needed: int) -> Line | None:
        """The line, if it is there with all that is needed; it is touched."""
        here = level.set_of(number)
        way = here.find(number)
        line = None if way is None else here.ways[way]
        if way is None or line is None or needed & ~line.valid:
            return None
        here.replacement.touch(way)
        return line

    def _fill(self, level: Level, number: int, needed: int, fetched: int, dirty: int) -> int:
        """Get what is absent of `fetched`, insert it with the other sub-blocks `needed`; the level that served it."""
        absent = fetched & ~self._present(level, number)
        served, moved = level.index, Line(number, 0, 0)
        if absent and level.victim_level is not None:
            moved = self._ask_victim_level(self._levels[level.victim_level], number, absent)
            served = level.victim_level if moved.valid & absent else served
        for _, (first, last) in level.block_ranges(number, absent & ~moved.valid):
            served = max(served, self._load(level.load_from, first, last))
        self._insert(level, Line(number, needed | moved.valid, dirty | moved.dirty))
        return served

    def _present(self, level: Level, number: int) -> int:
        """The sub-blocks of a line that are there."""
        here = level.set_of(number)
        way = here.find(number)
        line = None if way is None else here.ways[way]
        return line.valid if line else 0

    def _ask_victim_level(self, victim: Level, number: int, absent: int) -> Line:
        """What the victim level has of a line, which leaves it."""
        victim.count("loads")
        here = victim.set_of(number)
        way = here.find(number)
        line = Line(number, 0, 0) if way is None else here.take(way)
        victim.count("load_misses" if absent & ~line.valid else "load_hits")
        return line

    # Stores

    def _store(self, level: int, first: int, last: int) -> int:
        """Bytes to be stored arrive at a level or at memory; the level that took them."""
        if level == self._memory:
            self._memory_stores += 1
            return level
        here = self._levels[level]
        return max(self._store_line(here, n, *here.clip(n, first, last)) for n in here.line_numbers(first, last))

    def _store_line(self, level: Level, number: int, first: int, last: int) -> int:
        level.count("stores")
        needed = level.blocks(number, first, last)
        line = self._hit(level, number, needed)
        if line:
            level.count("store_hits")
            line.dirty |= needed if level.spec.write_back else 0
            served = level.index
        else:
            level.count("store_misses")
            self._send_gathered(level, number)
            covered = level.whole_blocks(number, first, last) if level.index > 0 else 0
            fetched = needed & ~covered
            if fetched & ~self._present(level, number) and not level.spec.write_allocate:
                return self._store(level.store_to, first, last)
            served = self._fill(level, number, needed, fetched, needed if level.spec.write_back else 0)
        if not level.spec.write_back:
            self._store(level.store_to, first, last)
        return served

    # Insertion and eviction

    def _insert(self, level: Level, line: Line) -> None:
        """Put a line into its set, or add its sub-blocks to those that are there."""
        here = level.set_of(line.number)
        way = here.find(line.number)
        present = None if way is None else here.ways[way]
        if way is not None and present:
            present.valid |= line.valid
            present.dirty |= line.dirty
            here.replacement.touch(way)
            return
        if None not in here.ways:
            self._evict(level, here.take(here.replacement.victim()))
        here.put(line)

    def _evict(self, level: Level, line: Line) -> None:
        """Hand on a line that has left its set."""
        if level.spec.inclusive:
            self._remove_copies(level, line)
        level.count("dirty_evictions" if line.dirty else "clean_evictions")
        if level.victim_level is not None:
            if line.dirty or level.spec.clean_victims:
                self._accept_victim(self._levels[level.victim_level], line)
        else:
            self._write_back(level, line)

    def _write_back(self, level: Level, line: Line) -> None:
        """Store the modified sub-blocks of a line in the next level."""
        for _, (first, last) in level.block_ranges(line.number, line.dirty):
            self._store(level.store_to, first, last)

    def _accept_victim(self, level: Level, line: Line) -> None:
        """A victim level takes a line; under write-through it passes on what is modified."""
        level.count("stores")
        level.count("store_misses" if level.set_of(line.number).find(line.number) is None else "store_hits")
        kept = line.dirty if level.spec.write_back else 0
        self._insert(level, Line(line.number, line.valid, kept))
        if not level.spec.write_back:
            self._write_back(level, line)

    def _remove_copies(self, level: Level, line: Line) -> None:
        """Remove what a line of an inclusive level covers from all caches that load from there."""
        base = line.number * level.spec.line_bytes
        for inner in self._levels[: level.index]:
            if self._loads_through(inner, level):
                for copy in self._removed(inner, base, base + level.spec.line_bytes - 1):
                    for _, (first, last) in inner.block_ranges(copy.number, copy.dirty):
                        if level.line_numbers(first, last).count(line.number):
                            line.dirty |= level.blocks(line.number, first, last)
        line.valid |= line.dirty

    def _loads_through(self, inner: Level, level: Level) -> bool:
        """Whether the `load_from` links of an inner level lead to this one."""
        index = inner.load_from
        while index < level.index:
            index = self._levels[index].load_from
        return index == level.index

    def _removed(self, level: Level, first: int, last: int) -> list[Line]:
        """Remove all lines of a level that overlap a range of bytes."""
        lines = []
        for number in level.line_numbers(first, last):
            here = level.set_of(number)
            way = here.find(number)
            if way is not None:
                level.count("invalidations")
                lines.append(here.take(way))
        return lines

    # Streaming stores

    def _stream_line(self, level: Level, number: int, first: int, last: int) -> int:
        base = number * level.spec.line_bytes
        buffer = self._buffer(number)
        self._remove_all_copies(base, base + level.spec.line_bytes - 1)
        buffer.written |= (2 << (last - base)) - (1 << (first - base))
        if buffer.written == (1 << level.spec.line_bytes) - 1:
            self._streamed_lines += 1
            self._buffers.remove(buffer)
        return self._memory

    def _buffer(self, number: int) -> Buffer:
        """The buffer that gathers a line, as the one written to last."""
        buffer = next((each for each in self._buffers if each.line == number), None)
        if buffer:
            self._buffers.remove(buffer)
        elif len(self._buffers) == self._buffer_count:
            self._streamed_parts += 1
            self._buffers.pop(0)
        self._buffers.append(buffer or Buffer(number))
        return self._buffers[-1]

    def _remove_all_copies(self, first: int, last: int) -> None:
        """Remove a range from all caches, from the outermost in; memory takes one store if any copy was modified."""
        modified = False
        for level in reversed(self._levels):
            for line in self._removed(level, first, last):
                if level.spec.inclusive:
                    self._remove_copies(level, line)
                modified = modified or line.dirty != 0
        self._memory_stores += modified

    def _send_gathered(self, level: Level, number: int) -> None:
        """A miss in the first level sends off the buffer that gathers its line."""
        if level.index == 0:
            kept = [each for each in self._buffers if each.line != number]
            self._streamed_parts += len(self._buffers) - len(kept)
            self._buffers = kept

    def flush(self) -> None:
        """Send off all buffers."""
        self._streamed_parts += len(self._buffers)
        self._buffers = []

    # Counters

    def reserve(self, references: int) -> None:
        """Counters for so many references at least."""
        while len(self._served) < references:
            self._served.append([0] * (self._memory + 1))

    def reset_counters(self) -> None:
        """All counters to zero."""
        for level in self._levels:
            level.counts = {}
        self._memory_loads = self._memory_stores = self._streamed_lines = self._streamed_parts = self._accesses = 0
        self._served: list[list[int]] = []

    def counters(self) -> Counters:
        """What was counted."""
        names = list(LevelCounters.__dataclass_fields__)
        return Counters(
            {
                level.spec.name: LevelCounters(**{name: level.counts.get(name, 0) for name in names})
                for level in self._levels
            },
            self._memory_loads,
            self._memory_stores,
            self._streamed_lines,
            self._streamed_parts,
            tuple(map(tuple, self._served)),
            self._accesses,
        )
