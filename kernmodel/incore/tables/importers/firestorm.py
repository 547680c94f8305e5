"""Rows of Apple's Firestorm core (M1): Dougall Johnson's readings, which name instructions otherwise than forms do.

A reading is named as in `ADD (register, lsl, 64-bit)` or `FMLA (by element, 2D)`. The forms are those of another table
of AArch64; each looks for its reading by the words that its operands stand for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.isa.aarch64.grammar import Part, Statement
from kernmodel.isa.aarch64.roles import role
from kernmodel.words import count

_NAME = re.compile(r"(\S+)(?: \((.*)\))?")
_UNITS = re.compile(r"(?:(\d+)\*)?u(\d+)(?:([-/])(\d+))?\??")
_PORTS = {
    **{number: f"INT{number}" for number in range(1, 7)},
    7: "MEM7",
    8: "MEM8",
    9: "MEM9",
    10: "MEM0",
    **{number: f"FP{number - 10}" for number in range(11, 15)},
}
"""Units 1 to 14 by the names of the table: integers, memory (7 stores, 8 loads and stores, 9 and 10 load), vectors."""
_INTEGER, _LOADS, _STORES, _VECTOR = range(1, 7), range(8, 11), (7, 8), range(11, 15)
_SAME = {
    "cset": "csinc", "csetm": "csinv", "cinc": "csinc", "cinv": "csinv", "cneg": "csneg", "mneg": "msub",
    "smull": "smaddl", "umull": "umaddl", "smnegl": "smsubl", "umnegl": "umsubl", "ror": "extr", "sxtb": "sbfx",
    "sxth": "sbfx", "sxtw": "sbfx", "uxtb": "ubfx", "uxth": "ubfx", "bfc": "bfi", "negs": "subs", "neg": "sub",
    "tst": "ands", "cmn": "adds", "cmp": "subs", "ngc": "sbc", "sbfiz": "sbfx", "ubfiz": "ubfx", "ubfx": "ubfm",
    "sbfx": "sbfm", "ldur": "ldr", "stur": "str", "sxtl": "sshll", "uxtl": "ushll", "sxtl2": "sshll2",
    "uxtl2": "ushll2", "fcvtl2": "fcvtl", "fcvtn2": "fcvtn", "mvn": "orn",
}  # fmt: skip
"""Instructions that are the same one under another name, or one that is read alike."""
_TAKEN = frozenset({"cbz", "cbnz", "tbz", "tbnz"})
_READ = 1.3
"""Readings up to this factor above the bound of the units need no cell of their own."""

Readings = Mapping[tuple[str, frozenset[str]], Mapping[str, str]]


def readings(records: Iterable[Mapping[str, str]]) -> Readings:
    """The readings by mnemonic and the words behind it."""
    found: dict[tuple[str, frozenset[str]], Mapping[str, str]] = {}
    for record in records:
        match = _NAME.fullmatch(record["name"])
        if match is not None:
            words = frozenset((match[2] or "").split(", ")) - {""}
            found.setdefault((match[1].lower(), words), record)
    return found


def firestorm_row(
    row: InstructionData,
    statement: Statement,
    known: Readings,
    source: str,
    memory_pairs: Mapping[tuple[str, str], float],
) -> InstructionData | None:
    """The row of a form by its reading; None where there is none.

    Args:
        row: of the form in another core's table.
        memory_pairs: latencies of a load or store by operand, those of the data 1.
    """
    from dataclasses import replace

    record = next((known[key] for key in _keys(statement) if key in known), None)
    if record is None:
        return None
    low, high = _latency(record["latency"])
    uses = _uses(record, statement)
    does = role(statement.mnemonic)
    pairs: dict[tuple[str, str], float] = {}
    if does.loads or does.stores:
        pairs = {pair: (high or _LOAD) * cycles for pair, cycles in memory_pairs.items()}
        high = 1.0
    elif low is not None and does.writes:
        pairs["3" if statement.mnemonic in _ADDED_LAST else "0", "0"] = low
    bound = max((use.cycles / len(use.ports) for use in uses), default=0.0)
    measured = float(record["rthroughput"] or 0)
    return replace(
        row,
        ports=tuple(uses),
        latencies=pairs,
        default_latency=high or 0.0,
        uops=int(record["uops"] or 1),
        throughput=measured if measured > _READ * max(bound, 1 / 8) else None,
        source=source,
    )


_LOAD = 4.0
"""Cycles from a load to an ALU, where its own row leaves it out."""
_ADDED_LAST = frozenset({"madd", "msub", "smaddl", "umaddl", "smsubl", "umsubl"})


def _latency(text: str) -> tuple[float | None, float | None]:
    """The least and the most of a reading: `3`, `≤4`, `[1;3]`; the least is None where they are one."""
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    if not numbers:
        return None, None
    return (numbers[0] if len(numbers) > 1 else None), numbers[-1]


def _uses(record: Mapping[str, str], statement: Statement) -> list[PortUse]:
    """The units of a reading; where it has none, those of as many issues as were counted."""
    named = [_UNITS.fullmatch(part.strip()) for part in record["units"].split(",")]
    if record["units"] and all(named):
        return [_use(match) for match in named if match]
    does = role(statement.mnemonic)
    memory = _STORES if does.stores and not does.loads else _LOADS
    groups = (("issues_int", _INTEGER), ("issues_mem", memory), ("issues_fp", _VECTOR))
    return [
        PortUse(tuple(sorted(_PORTS[unit] for unit in units)), float(record[issues]))
        for issues, units in groups
        if record[issues] not in ("", "-")
    ]


def _use(match: re.Match[str]) -> PortUse:
    first, last = int(match[2]), int(match[4] or match[2])
    return PortUse(tuple(sorted(_PORTS[unit] for unit in range(first, last + 1))), float(match[1] or 1))


def _keys(statement: Statement) -> Iterator[tuple[str, frozenset[str]]]:
    """The names that the reading of an instruction can have, the most exact first."""
    mnemonic, parts = statement.mnemonic, statement.parts
    if mnemonic[:2] == "b.":
        yield "b.cc", frozenset({"taken"})
    if mnemonic in _TAKEN:
        yield mnemonic, frozenset({"taken"})
    if mnemonic in ("sdiv", "udiv"):
        yield mnemonic, frozenset({"slow", _SIZES[parts[0].kind]})
    if mnemonic == "movi":
        yield mnemonic, frozenset({"vector", "4S", "zero"} if parts[-1].kind == "#0" else {"vector", "4S", "lsl"})
    if statement.form == "mov x,x":
        # renamed away, as a read of sp is
        yield mnemonic, frozenset({"from sp", "64-bit"})
    for name in _names(mnemonic, parts):
        for words in _words(parts):
            yield name, frozenset(words)


def _names(mnemonic: str, parts: tuple[Part, ...]) -> Iterator[str]:
    kinds = [part.kind for part in parts]
    if mnemonic == "mov" and len(kinds) == 2:
        if kinds[1][:1] == "#":
            yield "movz"
        elif "[i]" in kinds[0]:
            yield "ins"
        elif "[i]" in kinds[1]:
            yield "umov" if kinds[0] in ("x", "w") else "dup"
        elif kinds[0] == "w":
            yield "orr"
    while mnemonic:
        yield mnemonic
        mnemonic = _SAME.get(mnemonic, "")


_LETTERS = {"64-bit": "X", "32-bit": "W"}
_SIZES = {"x": "64-bit", "w": "32-bit"} | {letter: letter.upper() for letter in "bhsdq"}


def _words(parts: tuple[Part, ...]) -> Iterator[set[str]]:
    """What can stand behind the mnemonic: sizes, and how the operands are given."""
    memory = next((part for part in parts if part.address is not None), None)
    kinds = [part.kind for part in parts if part.kind]
    sizes = list(dict.fromkeys(size for size in map(_size, kinds) if size)) or [""]
    if memory is not None:
        manners = list(_places(memory.kind, sum(part.kind[:1] == "{" or not part.kind for part in parts)))
    else:
        manners = list(_manners(kinds))
    if len(sizes) > 1 and memory is None:
        to, of = (_LETTERS.get(size, size) for size in sizes[:2])
        sizes = [f"{to} from {of}", f"{of} to {to}", *sizes]
    elif memory is None and len(kinds) == 2 and kinds[1] == kinds[0]:
        sizes += [f"{sizes[0]} {way} {sizes[0]}" for way in ("from", "to")]
    if memory is not None and sizes[0] in ("B", "H"):
        sizes.append("S")  # narrower accesses were not read
    for size, manner in product([*sizes, ""], manners):
        yield {*manner, size} - {""}


def _size(kind: str) -> str:
    bare = kind.strip("{}").partition("*")[0].rstrip("}")
    if bare[:2] == "v.":
        return bare[2:].removesuffix("[i]").rstrip("}").upper()
    return _SIZES.get(bare, "")


def _places(kind: str, listed: int) -> Iterator[set[str]]:
    """Words of an address."""
    advanced = "post-index" if "]," in kind else "pre-index" if kind.endswith("!") else ""
    if listed:
        registers = count(listed, "reg")
        yield from ({"multiple", registers, advanced}, {"multiple", advanced}, {"single", advanced}, {advanced})
        return
    index = re.search(r"\[x,([xw])(?:,(\w\w\w\w?))?", kind)
    if advanced:
        yield {advanced}
    elif index is not None:
        yield from ({"register", index[2] or ""}, {"register"})
    yield from ({"unsigned offset"}, {"signed offset"}, {""})


def _manners(kinds: list[str]) -> Iterator[set[str]]:
    """Words of operands that are no memory."""
    last = kinds[-1] if kinds else ""
    shift = re.match(r"(lsl|lsr|asr|ror|[us]xt[bhwx])", last)
    if last == "label":
        yield {"literal"}
    if shift is not None:
        if len(kinds) > 1 and kinds[-2][:1] == "#":
            yield {"shifted immediate"}
        yield from ({"register", shift[1]}, {shift[1]}, {"vector", shift[1]})
    if last == "#0":
        yield from ({"vector", "zero"}, {"scalar", "zero"}, {"zero"})
    if last[:1] == "#" or shift is not None:
        yield from ({"immediate"}, {"vector", "immediate"}, {"scalar", "immediate"})
    if "[i]" in last and "[i]" not in kinds[0]:
        yield from ({"by element"}, {"vector", "by element"}, {"element", "vector"}, {"element", "scalar"})
    if "[i]" in kinds[0] if kinds else False:
        yield from ({"element"} if "[i]" in last else {"general"}, {"element"})
    if last in ("x", "w") and kinds[0][:1] == "v":
        yield {"general"}
    lists = {"{v.16b}": "single", "*2}": "two", "*3}": "three", "*4}": "four"}
    for mark, word in lists.items():
        if any(kind.endswith(mark) for kind in kinds):
            yield {f"{word} register table"}
    integer, fixed = {"integer"}, {"fixed-point"}
    for words in ({"register"}, set[str](), integer, fixed):
        yield from ({"vector", *words}, {"scalar", *words}, words)
