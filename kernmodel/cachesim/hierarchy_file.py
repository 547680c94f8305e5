"""Hierarchies as files: YAML or JSON in, a checked `Hierarchy` out. The format: docs/cache-simulation.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from kernmodel.cachesim.engine import check_hierarchy
from kernmodel.cachesim.model import MEMORY, POLICIES, CacheSpec, Hierarchy, Policy
from kernmodel.errors import NoNameError
from kernmodel.schema.document import FileKind
from kernmodel.schema.entry import Entry, by_name, optional, read_entry
from kernmodel.schema.fields import suggest

HIERARCHY_FILE = FileKind("hierarchy of caches in YAML or JSON", "docs/cache-simulation.md")
DEFAULT_LINE_BYTES = 64
"""The line where a file gives none, as the format says."""

MEMORY_NAMES = ("mem", "memory", "main memory")
_LINE = dict.fromkeys(("line", "line_size", "line_bytes", "cache_line", "cl_size"), "line")
_TEXT = {key: key for key in ("title", "source", "description", "comment", "note", "notes")}
HIERARCHY_KEYS: Mapping[str, str] = {
    **_LINE,
    **_TEXT,
    "levels": "levels",
    "caches": "levels",
    "seed": "seed",
    "combining_buffers": "combining_buffers",
}
"""Every spelling of a key beside the levels, and the name it has here."""

_LEVEL_KEYS: Mapping[str, str] = {
    **_LINE,
    **_TEXT,
    **{
        key: key
        for key in ("name", "sets", "ways", "size", "policy", "write_back", "write_allocate", "load_from", "store_to")
    },
    **{key: key for key in ("victim_level", "clean_victims", "inclusive", "sub_blocks", "hashed", "hashed_lines")},
    "size_bytes": "size",
    "associativity": "ways",
    "replacement": "policy",
    "replacement_policy": "policy",
    "victims_to": "victim_level",
}
_LEVEL_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*")


def read_hierarchy(path: Path) -> Hierarchy:
    """The hierarchy that a file describes.

    Raises:
        InputError: a file that cannot be read, an unknown key, a value that cannot be, caches that do not fit together.
    """
    root = read_entry(path, HIERARCHY_FILE)
    entries = root.mapping()
    if "topology" in entries:
        raise root.error("is a machine file, not a hierarchy", f"write --machine {path}")
    levels = {key: entry for key, entry in entries.items() if entry.is_mapping and key not in HIERARCHY_KEYS}
    keys = by_name({key: entry for key, entry in entries.items() if key not in levels}, HIERARCHY_KEYS)
    if levels and "levels" in keys:
        raise keys["levels"].error(f"stands beside the level {next(iter(levels))!r}", "move all levels to one place")
    return hierarchy_of(root, keys, levels)


def hierarchy_of(around: Entry, keys: Mapping[str, Entry], levels: Mapping[str, Entry] | None = None) -> Hierarchy:
    """The hierarchy of these keys (named as `HIERARCHY_KEYS` names them).

    Args:
        around: what holds them, for messages.
        levels: the levels by name where they do not stand under `levels`.

    Raises:
        InputError: a key that is missing, a value that cannot be, caches that do not fit together.
    """
    line_bytes = optional(keys, "line", Entry.size_bytes, DEFAULT_LINE_BYTES)
    named = dict(levels) if levels else _named_levels(keys, around)
    if not named:
        raise around.error("holds no level", "give at least one cache, such as L1: {sets: 64, ways: 8}")
    buffers = Hierarchy(()).combining_buffers
    hierarchy = Hierarchy(
        tuple(_level(name, entry, tuple(named), line_bytes) for name, entry in named.items()),
        seed=optional(keys, "seed", lambda entry: entry.integer(0), 0),
        combining_buffers=optional(keys, "combining_buffers", lambda entry: entry.integer(1), buffers),
    )
    check_hierarchy(hierarchy, str(around.where))
    return hierarchy


def _named_levels(keys: Mapping[str, Entry], around: Entry) -> dict[str, Entry]:
    """The levels under `levels`: by name, or as a list whose elements have names."""
    if "levels" not in keys:
        raise around.error("has no levels", "give the caches under `levels`")
    entry = keys["levels"]
    if not entry.is_list:
        return entry.mapping()
    found: dict[str, Entry] = {}
    for item in entry.items():
        entries = item.mapping()
        if "name" not in entries:
            raise item.error("has no name", "give each level a name, such as L1")
        name = entries["name"].text()
        if name in found:
            raise item.error(f"is the second level called {name!r}", "give each level a name of its own")
        found[name] = item.at(f"{around.key}.{name}" if around.key else name, item.node)
    return found


def _level(name: str, entry: Entry, names: tuple[str, ...], line_bytes: int) -> CacheSpec:
    if name.lower() in MEMORY_NAMES:
        raise entry.error("is the name of memory", "give the cache another name")
    if not _LEVEL_NAME.fullmatch(name):
        todo = "begin it with a letter, such as L1; letters, digits and _ . + - follow"
        wrong = entry.error(f"{name[:40]!r} is no name of a cache", todo)
        raise NoNameError(wrong.what, where=wrong.where, todo=todo)
    keys = by_name(entry.mapping(), _LEVEL_KEYS)
    sets, ways, line_bytes = _shape(entry, keys, line_bytes)
    victims = _link(keys, "victim_level", names, name, MEMORY)
    after = names[names.index(name) + 1 :]
    below = next(iter(after), MEMORY)
    # a victim cache is asked before `load_from`, so the level that follows it is the natural place to load from
    beyond = next((other for other in after if other != victims), MEMORY)
    return CacheSpec(
        name=name,
        sets=sets,
        ways=ways,
        line_bytes=line_bytes,
        policy=optional(keys, "policy", _policy, "LRU"),
        write_back=optional(keys, "write_back", Entry.flag, True),
        write_allocate=optional(keys, "write_allocate", Entry.flag, True),
        load_from=_link(keys, "load_from", names, name, beyond if victims != MEMORY else below),
        store_to=_link(keys, "store_to", names, name, victims if victims != MEMORY else below),
        victim_level=None if victims == MEMORY else victims,
        clean_victims=optional(keys, "clean_victims", Entry.flag, True),
        inclusive=optional(keys, "inclusive", Entry.flag, False),
        sub_blocks=optional(keys, "sub_blocks", lambda value: value.integer(1), 1),
        hashed=optional(keys, "hashed", Entry.flag, False),
        hashed_lines=optional(keys, "hashed_lines", lambda value: value.integer(1), 1),
    )


def _shape(entry: Entry, keys: Mapping[str, Entry], line_bytes: int) -> tuple[int, int, int]:
    """Sets, ways and bytes of a line: as given, or sets or ways from the size."""
    line = optional(keys, "line", Entry.size_bytes, line_bytes)
    sets = optional(keys, "sets", lambda value: value.integer(1), 0)
    ways = optional(keys, "ways", lambda value: value.integer(1), 0)
    size = optional(keys, "size", Entry.size_bytes, 0)
    if not size:
        if not (sets and ways):
            missing = "ways" if sets else "sets" if ways else "sets and ways"
            raise entry.error(f"has no {missing}", "give sets and ways, or size and ways")
        return sets, ways, line
    if not (sets or ways):
        raise entry.error("has a size but neither ways nor sets", "give the number of ways")
    lines = _divided(keys["size"], size, line, f"lines of {line} B")
    if sets > lines or ways > lines:
        found = f"{ways} ways" if ways > lines else f"{sets} sets"
        raise entry.error(f"has {found}, but only {lines} lines", "correct the size or the number")
    found_sets = sets or _divided(keys["size"], lines, ways, f"sets of {ways} lines")
    found_ways = ways or _divided(keys["size"], lines, sets, f"{sets} sets")
    if found_sets * found_ways != lines:
        made = f"{found_sets} sets × {found_ways} ways × {line} B are {found_sets * found_ways * line} B"
        raise keys["size"].error(f"is {size} B, but {made}", "leave out one of size, sets and ways, or correct it")
    return found_sets, found_ways, line


def _divided(entry: Entry, whole: int, part: int, parts: str) -> int:
    if whole % part:
        raise entry.error(f"does not divide into {parts}", "correct the size, the ways or the line")
    return whole // part


def _policy(entry: Entry) -> Policy:
    policy = entry.text().upper()
    if policy not in POLICIES:
        raise entry.error(f"the policy {entry.text()!r} is unknown", f"use one of {', '.join(POLICIES)}")
    return policy


def _link(keys: Mapping[str, Entry], key: str, names: tuple[str, ...], level: str, default: str) -> str:
    """The level that a link names, which must be further on; null is memory."""
    entry = keys.get(key)
    if entry is None:
        return default
    if entry.is_null or entry.text().lower() in MEMORY_NAMES:
        return MEMORY
    after = names[names.index(level) + 1 :]
    if entry.text() in after:
        return entry.text()
    if entry.text() in names:
        what = f"{entry.text()!r} is not further out than {level}"
        raise entry.error(what, f"name one of {', '.join((*after, MEMORY))}")
    raise entry.error(f"there is no level {entry.text()!r}", suggest(entry.text(), (*after, MEMORY)))
