"""An instruction mix as a file: counts or shares in YAML, or what Intel SDE prints.

The formats: docs/instruction-mix.md.
A file is read as written and checked entry by entry: whatever is wrong is raised with file, line and key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Generic, Literal, NamedTuple, Self, TypeVar, cast

import yaml

from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass
from kernmodel.code.mix_sde import is_sde_mix, sde_mix
from kernmodel.errors import InputError, Note
from kernmodel.isa import DEFAULT, isa_of
from kernmodel.isa.model import PRECISION_BYTES, FpOperation, Precision
from kernmodel.schema.document import FileKind, read_text
from kernmodel.schema.entry import Entry, parse_entry
from kernmodel.schema.fields import suggest
from kernmodel.units import parse_quantity

TOLERANCE = 0.01
"""By how much shares may miss one: figures in papers are rounded to whole percents."""

MIX_FILE = FileKind("mix of instructions", "docs/instruction-mix.md")
_SEE = "docs/instruction-mix.md shows the format"

_KEYS = ("title", "source", "per", "memory", "load_store_ratio", "fp", "intensity", "served", "other")
_MEMORY_KEYS = ("size", "kind", "share", "loads", "stores", "streaming", "masked")
_FP_KEYS = ("operation", "precision", "lanes", "width", "count", "share", "masked")
_KINDS = ("scalar", "vector", "gather", "scatter")
_OPERATIONS: Mapping[str, FpOperation] = {
    **dict.fromkeys(("add", "sub"), "add"),
    **dict.fromkeys(("compare", "min", "max"), "compare"),
    **{name: name for name in ("mul", "fma", "div", "sqrt", "convert", "other")},
}
_PRECISIONS: Mapping[str, Precision] = {
    **dict.fromkeys(("dp", "double"), "DP"),
    **dict.fromkeys(("sp", "single", "float"), "SP"),
    **dict.fromkeys(("hp", "half"), "HP"),
    "x87": "X87",
}
_LARGEST_SCALAR = 8
_MOST_LANES = 64
_LOADS_ONLY, _STORES_ONLY = ("loads only", "inf", ".inf"), ("stores only",)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

Value = TypeVar("Value")
Class = TypeVar("Class", MemoryClass, FpClass)


def read_mix(path: Path) -> InstructionMix:
    """The mix that a file describes.

    Raises:
        InputError: the file cannot be read; an unknown key or type (with the nearest known one); a number that is
            negative or missing; shares that do not sum to one within `TOLERANCE`; nothing in it.
    """
    text, _ = read_text(path, MIX_FILE)
    if is_sde_mix(text):
        return sde_mix(text, str(path))
    return _mix(_Entry(str(path), "", parse_entry(text, str(path), MIX_FILE).node))


def _widths() -> dict[str, int]:
    """Bytes of a register by the name of the extension or by its bits; scalar: one lane."""
    isa, found = isa_of(DEFAULT), {"scalar": 0}
    for width in sorted(isa.vector_bytes):
        found |= dict.fromkeys((isa.vector_names[width].replace("-", "").lower(), str(8 * width)), width)
    return found


class _Entry(Entry):
    """A value of a mix."""

    __slots__ = ()

    def listed(self) -> tuple[Self, ...]:
        """The elements of a list that is not empty."""
        if not self.is_list or not self.items():
            raise self.error("is no list with entries", f"write one entry per line, with a dash; {_SEE}")
        return self.items()

    def text(self) -> str:
        if not isinstance(self.node, yaml.ScalarNode) or not str(self.node.value).strip():
            raise self.error("is no single value", "write a value behind the key")
        return str(self.node.value).strip()

    def number(self) -> float:
        """A finite number from zero."""
        text = self.text()
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value):
            raise self.error(f"{text[:40]!r} is no number", "write a number such as 0.25")
        if value < 0:
            raise self.error(f"{text} is negative", "write a number from 0")
        return value

    def share(self) -> float:
        """A share as a number up to one, or in percent."""
        text = self.text()
        if not text.endswith("%"):
            return self.number()
        node = yaml.ScalarNode("", text.removesuffix("%").strip(), self.node.start_mark, self.node.end_mark)
        return self.at(self.key, node).number() / 100

    def volume(self) -> float:
        """A number of bytes, with or without a unit."""
        text = self.text()
        if _NUMBER.fullmatch(text):
            return self.number()
        try:
            return parse_quantity(text, "data")
        except InputError as error:
            raise self.error(error.what, error.todo or "write 64 B") from error

    def flag(self) -> bool:
        return self.choice({"true": True, "false": False})

    def choice(self, known: Mapping[str, Value]) -> Value:
        """The value that a name stands for, in any case."""
        text = self.text()
        if text.lower() not in known:
            raise self.error(f"{text[:40]!r} is unknown", suggest(text.lower(), known))
        return known[text.lower()]

    def whole(self, most: int, what: str) -> int:
        value = self.number()
        if value != int(value) or not 1 <= value <= most:
            raise self.error(f"{self.text()} is no {what}", f"write a whole number from 1 to {most}")
        return int(value)


def _mix(root: _Entry) -> InstructionMix:
    keys = root.known_keys(_KEYS)
    for key in ("title", "source"):
        if key in keys:
            keys[key].text()
    memory, fp = _memory(keys), _fp(keys)
    if not memory.counts and not fp.counts:
        raise root.error("holds neither memory nor floating-point instructions", f"give memory or fp; {_SEE}")
    shares = memory.shares or fp.shares
    mix = InstructionMix(
        memory=_merged(memory.counts),
        fp=_merged(fp.counts),
        other=keys["other"].number() if "other" in keys else 0.0,
        source=f"file {root.file}",
        notes=_notes(keys, memory),
        per="instruction" if shares else _per(keys),
        shares_only=shares and bool(memory.counts) and bool(fp.counts),
        served=_served(keys["served"]) if "served" in keys else (),
    )
    return _with_intensity(mix, keys["intensity"]) if "intensity" in keys else mix


def _served(entry: _Entry) -> tuple[tuple[str, float], ...]:
    """The share of all bytes that each level served, by their volumes in bytes or by shares in percent."""
    given = entry.mapping()
    if not given:
        raise entry.error("names no level", "write served: {L1: 80 %, L2: 15 %, Mem: 5 %}, or bytes of each")
    percents = {one.text().endswith("%") for one in given.values()}
    if len(percents) > 1:
        raise entry.error("mixes shares and bytes", "write all with % or all without")
    is_share = percents.pop()
    values = {level: one.share() if is_share else one.volume() for level, one in given.items()}
    total = math.fsum(values.values())
    if not total:
        raise entry.error("all levels serve nothing", "give the bytes of at least one")
    if is_share and abs(total - 1) > TOLERANCE:
        raise entry.error(f"the shares sum to {total:.4g}, not to 1", "correct them, or give bytes")
    return tuple((level, value / total) for level, value in values.items())


def _per(keys: Mapping[str, _Entry]) -> str:
    per = keys["per"].text() if "per" in keys else "unit of work"
    return "source iteration" if per in ("iteration", "source iteration") else per


def _with_intensity(mix: InstructionMix, entry: _Entry) -> InstructionMix:
    """Shares of both kinds, brought to the arithmetic intensity that the file states."""
    if not mix.shares_only:
        raise entry.error("stands beside counts, which tell it", "leave it out, or give shares of both kinds")
    text = entry.text()
    node = yaml.ScalarNode("", text.removesuffix("FLOP/B").strip(), entry.node.start_mark, entry.node.end_mark)
    intensity = entry.at(entry.key, node).number()
    if not (intensity and mix.flops):
        raise entry.error(f"{text} does not fit the entries", "an intensity above zero needs entries that compute")
    factor = intensity * mix.bytes / mix.flops
    return replace(mix, fp=tuple((kind, count * factor) for kind, count in mix.fp), shares_only=False)


def _notes(keys: Mapping[str, _Entry], memory: _Section[MemoryClass]) -> tuple[Note, ...]:
    if not memory.shares or "load_store_ratio" not in keys:
        return ()
    text = "the load/store ratio of the file is taken for accesses of every size"
    return (Note("one-load-store-ratio", text, "assumption"),)


class _Found(NamedTuple, Generic[Class]):
    """One class of an entry with its number, and whether that is a share."""

    entry: _Entry
    kind: Class
    number: float
    is_share: bool


class _Section(NamedTuple, Generic[Class]):
    """All entries of one kind, and whether their numbers are shares (then their sum is one)."""

    counts: tuple[tuple[Class, float], ...]
    shares: bool


def _section(whole: _Entry, found: list[_Found[Class]]) -> _Section[Class]:
    """The entries together; refuses shares beside counts, and shares whose sum is not one."""
    shares = found[0].is_share
    odd = next((one for one in found if one.is_share != shares), None)
    if odd is not None:
        raise odd.entry.error("mixes shares and counts", f"give all entries of {whole.key} as one of the two")
    total = math.fsum(one.number for one in found)
    if not total:
        raise whole.error("all entries are zero", "give at least one instruction")
    if shares and abs(total - 1) > TOLERANCE:
        raise whole.error(f"the shares sum to {total:.4g}, not to 1", "correct them, or give counts")
    factor = 1 / total if shares else 1.0
    return _Section(tuple((one.kind, one.number * factor) for one in found), shares)


def _merged(counts: Iterable[tuple[Class, float]]) -> tuple[tuple[Class, float], ...]:
    """One entry for each class, largest first; without those that never occur."""
    merged: dict[Class, float] = {}
    for kind, count in counts:
        merged[kind] = merged.get(kind, 0.0) + count
    return tuple(sorted(((kind, n) for kind, n in merged.items() if n), key=lambda item: (-item[1], repr(item[0]))))


def _memory(keys: Mapping[str, _Entry]) -> _Section[MemoryClass]:
    ratio = keys.get("load_store_ratio")
    if "memory" not in keys:
        if ratio is not None:
            raise ratio.error("has no memory instructions to apply to", "give them under memory")
        return _Section((), False)
    load_share = _load_share(ratio) if ratio is not None else None
    found = [one for entry in keys["memory"].listed() for one in _memory_entry(entry, load_share)]
    if ratio is not None and not any("share" in one.entry.known_keys(_MEMORY_KEYS) for one in found):
        raise ratio.error("stands beside loads and stores, which tell it", "leave it out, or give shares")
    return _section(keys["memory"], found)


def _load_share(entry: _Entry) -> float:
    """Loads over loads and stores, from loads per store."""
    text = entry.text().lower()
    if text in _LOADS_ONLY + _STORES_ONLY:
        return float(text in _LOADS_ONLY)
    ratio = entry.number()
    return ratio / (1 + ratio)


def _memory_entry(entry: _Entry, load_share: float | None) -> tuple[_Found[MemoryClass], ...]:
    """Loads and stores of one size."""
    keys = entry.known_keys(_MEMORY_KEYS)
    loads, stores = _loads_and_stores(entry, keys, load_share)
    size = _size(entry, keys)
    kind = keys["kind"].choice({name: name for name in _KINDS}) if "kind" in keys else None
    kind = kind or ("scalar" if size <= _LARGEST_SCALAR else "vector")
    if (kind == "gather" and stores.number) or (kind == "scatter" and loads.number):
        wrong = "store" if kind == "gather" else "load"
        raise entry.error(f"a {kind} does not {wrong}", f"give its {'loads' if kind == 'gather' else 'stores'} only")
    streaming = "streaming" in keys and keys["streaming"].flag()
    if streaming and not stores.number:
        raise keys["streaming"].error("is for stores, but there are none", "give stores, or leave it out")
    masked = "masked" in keys and keys["masked"].flag()
    return tuple(
        _Found(
            entry,
            MemoryClass(size, cast("Literal['scalar', 'vector', 'gather', 'scatter']", kind), store, streaming, masked),
            one.number,
            one.is_share,
        )
        for store, streaming, one in ((False, False, loads), (True, streaming, stores))
    )


class _Number(NamedTuple):
    number: float
    is_share: bool


def _loads_and_stores(entry: _Entry, keys: Mapping[str, _Entry], load_share: float | None) -> tuple[_Number, _Number]:
    given = {key: keys[key] for key in ("loads", "stores") if key in keys}
    if "share" in keys:
        if given:
            raise entry.error("has a share and loads or stores", "give one of the two")
        if load_share is None:
            todo = "give load_store_ratio, or loads: 40 % and stores: 20 % in place of share"
            raise keys["share"].error("does not tell loads from stores", todo)
        share = keys["share"].share()
        return _Number(share * load_share, True), _Number(share * (1 - load_share), True)
    if not given:
        raise entry.error("has no number", "give share, or loads and stores")
    percents = {one.text().endswith("%") for one in given.values()}
    if len(percents) > 1:
        raise entry.error("mixes shares and counts", "write both with % or both without")
    is_share = percents.pop()
    values = {key: one.share() if is_share else one.number() for key, one in given.items()}
    return _Number(values.get("loads", 0.0), is_share), _Number(values.get("stores", 0.0), is_share)


def _size(entry: _Entry, keys: Mapping[str, _Entry]) -> int:
    """Bytes of one access."""
    if "size" not in keys:
        raise entry.error("has no size", "give the bytes of one access, such as size: 64 B")
    text = keys["size"].text()
    try:
        size = float(text) if _NUMBER.fullmatch(text) else parse_quantity(text, "data")
    except InputError as error:
        raise keys["size"].error(error.what, error.todo or "write 64 B") from error
    widest = isa_of(DEFAULT).widest_access
    if size != int(size) or not 1 <= size <= widest:
        todo = f"write a whole number of bytes from 1 to {widest}"
        raise keys["size"].error(f"{text} is no size of an access", todo)
    return int(size)


def _fp(keys: Mapping[str, _Entry]) -> _Section[FpClass]:
    if "fp" not in keys:
        return _Section((), False)
    return _section(keys["fp"], [_fp_entry(entry) for entry in keys["fp"].listed()])


def _fp_entry(entry: _Entry) -> _Found[FpClass]:
    """Instructions of one operation, precision and width."""
    keys = entry.known_keys(_FP_KEYS)
    for name, todo in (("operation", "such as add, mul or fma"), ("precision", "DP, SP, HP or X87")):
        if name not in keys:
            raise entry.error(f"has no {name}", f"give {name}: {todo}")
    precision = keys["precision"].choice(_PRECISIONS)
    kind = FpClass(
        operation=keys["operation"].choice(_OPERATIONS),
        precision=precision,
        lanes=_lanes(entry, keys, precision),
        masked="masked" in keys and keys["masked"].flag(),
    )
    number = _one_of(entry, keys, "count", "share", "a count or a share")
    is_share = number.key.endswith("share") or number.text().endswith("%")
    return _Found(entry, kind, number.share() if is_share else number.number(), is_share)


def _one_of(entry: _Entry, keys: Mapping[str, _Entry], first: str, second: str, what: str) -> _Entry:
    """The one of two keys that is given."""
    given = [keys[key] for key in (first, second) if key in keys]
    if len(given) != 1:
        has = "both" if given else "neither"
        raise entry.error(f"has {has} {first} {'and' if given else 'nor'} {second}", f"give {what}")
    return given[0]


def _lanes_wanted() -> str:
    *some, last = (name.upper() for name in _widths() if not name.isdigit() and name != "scalar")
    return f"lanes: 8, or width: {', '.join(['scalar', *some])} or {last}"


def _lanes(entry: _Entry, keys: Mapping[str, _Entry], precision: Precision) -> int:
    given = _one_of(entry, keys, "lanes", "width", _lanes_wanted())
    if given.key.endswith("lanes"):
        return given.whole(_MOST_LANES, "number of lanes")
    lanes = max(1, given.choice(_widths()) // PRECISION_BYTES[precision])
    if precision == "X87" and lanes > 1:
        raise given.error("is a width of vectors, but x87 has none", "write width: scalar")
    return lanes
