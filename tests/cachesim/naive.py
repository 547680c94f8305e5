"""The simulation again, as short as it can be said: dictionaries and lists, nothing shared with the engines.

No sub-blocks, no inclusive levels, no streaming stores, no RANDOM.
"""

from __future__ import annotations

from collections import Counter

from kernmodel.cachesim.model import CacheSpec, Hierarchy


class Naive:
    """A set is a list of entries {line, dirty, way, used, came}; counts are by (level, what)."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.specs = {spec.name: spec for spec in hierarchy.levels}
        self.first = hierarchy.levels[0].name
        self.sets: dict[tuple[str, int], list[dict]] = {}
        self.trees: dict[tuple[str, int], dict[tuple[int, int], int]] = {}
        self.counts: Counter[tuple[str, str]] = Counter()
        self.time = 0

    def access(self, kind: int, address: int, size: int) -> None:
        self.request("stores" if kind else "loads", self.first, address, address + size)

    def request(self, what: str, name: str, begin: int, end: int) -> None:
        if name == "MEM":
            self.counts[name, what] += 1
            return
        size = self.specs[name].line_bytes
        for line in range(begin // size, (end - 1) // size + 1):
            part = max(begin, line * size), min(end, (line + 1) * size)
            (self.store if what == "stores" else self.load)(self.specs[name], line, *part)

    def entry(self, spec: CacheSpec, line: int) -> dict | None:
        return next((e for e in self.set_of(spec, line)[0] if e["line"] == line), None)

    def set_of(self, spec: CacheSpec, line: int) -> tuple[list[dict], dict[tuple[int, int], int]]:
        key = spec.name, line % spec.sets
        return self.sets.setdefault(key, []), self.trees.setdefault(key, {})

    def use(self, spec: CacheSpec, entry: dict) -> None:
        self.time += 1
        entry["used"] = self.time
        low, high = 0, 1
        while high < spec.ways:
            high *= 2
        while high - low > 1:  # remember for each half-open range of ways which half comes next
            middle = (low + high) // 2
            self.set_of(spec, entry["line"])[1][low, high] = int(entry["way"] < middle)
            low, high = (low, middle) if entry["way"] < middle else (middle, high)

    def load(self, spec: CacheSpec, line: int, begin: int, end: int) -> None:
        self.counts[spec.name, "loads"] += 1
        entry = self.entry(spec, line)
        self.counts[spec.name, "load_hits" if entry else "load_misses"] += 1
        self.use(spec, entry) if entry else self.insert(spec, line, self.fetch(spec, line))

    def fetch(self, spec: CacheSpec, line: int) -> bool:
        if spec.victim_level:
            victim = self.specs[spec.victim_level]
            entry = self.entry(victim, line)
            self.counts.update([(victim.name, "loads"), (victim.name, "load_hits" if entry else "load_misses")])
            if entry:
                self.set_of(victim, line)[0].remove(entry)
                return entry["dirty"]
        self.request("loads", spec.load_from, line * spec.line_bytes, (line + 1) * spec.line_bytes)
        return False

    def store(self, spec: CacheSpec, line: int, begin: int, end: int) -> None:
        self.counts[spec.name, "stores"] += 1
        entry, whole = self.entry(spec, line), end - begin == spec.line_bytes and spec.name != self.first
        self.counts[spec.name, "store_hits" if entry else "store_misses"] += 1
        if entry:
            self.use(spec, entry)
            entry["dirty"] |= spec.write_back
        elif whole or spec.write_allocate:
            self.insert(spec, line, (False if whole else self.fetch(spec, line)) or spec.write_back)
        if not spec.write_back or not (entry or whole or spec.write_allocate):
            self.request("stores", spec.store_to, begin, end)

    def insert(self, spec: CacheSpec, line: int, dirty: bool) -> None:
        entries, tree = self.set_of(spec, line)
        if len(entries) == spec.ways:
            old = self.choose(spec, entries, tree)
            entries.remove(old)
            self.evict(spec, old["line"], old["dirty"])
        way = min(set(range(spec.ways)) - {e["way"] for e in entries})
        entry = {"line": line, "dirty": dirty, "way": way, "came": self.time}
        entries.append(entry)
        self.use(spec, entry)
        entry["came"] = self.time

    def choose(self, spec: CacheSpec, entries: list[dict], tree: dict[tuple[int, int], int]) -> dict:
        if spec.policy == "PLRU":
            low, high = 0, 1 << (spec.ways - 1).bit_length()
            while high - low > 1:
                middle = (low + high) // 2
                right = tree.get((low, high), 0) and middle < spec.ways
                low, high = (middle, high) if right else (low, middle)
            return next(e for e in entries if e["way"] == low)
        key = "came" if spec.policy == "FIFO" else "used"
        return (max if spec.policy == "MRU" else min)(entries, key=lambda e: e[key])

    def evict(self, spec: CacheSpec, line: int, dirty: bool) -> None:
        self.counts[spec.name, "dirty_evictions" if dirty else "clean_evictions"] += 1
        span = line * spec.line_bytes, (line + 1) * spec.line_bytes
        if not spec.victim_level:
            if dirty:
                self.request("stores", spec.store_to, *span)
        elif dirty or spec.clean_victims:
            victim = self.specs[spec.victim_level]
            entry = self.entry(victim, line)
            self.counts.update([(victim.name, "stores"), (victim.name, "store_hits" if entry else "store_misses")])
            if entry:
                self.use(victim, entry)
                entry["dirty"] |= dirty and victim.write_back
            else:
                self.insert(victim, line, dirty and victim.write_back)
            if dirty and not victim.write_back:
                self.request("stores", victim.store_to, *span)
