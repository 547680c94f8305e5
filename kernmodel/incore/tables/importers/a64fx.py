"""What Fujitsu's manual says of A64FX, in place of LLVM's model: latencies, pipelines and what blocks them.

A row of the manual is taken for a form where its instruction and the kinds of the operands leave one reading; sequences
that depend on the vector length stay as LLVM has them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.isa.aarch64.roles import role
from kernmodel.value_types import NamedTuple

_UNITS = {
    "EX*": ("EXA", "EXB"),
    "EAG*": ("EAGA", "EAGB"),
    "FL*": ("FLA", "FLB"),
    **{unit: (unit,) for unit in ("EXA", "EXB", "EAGA", "EAGB", "FLA", "FLB", "PR", "BR")},
}
_LATENCY = re.compile(r"(?:\[([\d,]+)\])?(\d+)")
_TYPES = re.compile(r"<([RTV])> = \{?([^}\s]+)\}?")
_LOADS = {"x": 5.0, "w": 5.0, "b": 8.0, "h": 8.0, "s": 8.0, "d": 8.0, "q": 8.0, "z": 11.0, "p": 9.0}
"""Load-to-use latencies of the first level by the kind of register (manual 1.8.1, section 11.1 and Table 16)."""
_PLAIN_ACCESS = re.compile(r"(ld|st)(n?p|u?r)(?:s?[bhw]|sw)?")
_PREDICATE = frozenset({"p/m", "p/z", "p"})


class _Entry(NamedTuple):
    """What the manual says: qualifier behind the name, option, pipelines and latency as printed, whether it blocks."""

    qualifier: str
    option: str
    pipeline: str
    latency: str
    blocks: bool


def corrected(
    rows: Mapping[str, InstructionData], records: Iterable[Mapping[str, str]], source: str
) -> dict[str, InstructionData]:
    """The rows, those of which the manual speaks as it has them."""
    entries = _entries(tuple(records))
    found = {form: _access(row, source) or _computing(row, entries, source) or row for form, row in rows.items()}
    return {form: _alone_in_cache(row) for form, row in found.items()}


def _alone_in_cache(row: InstructionData) -> InstructionData:
    """The first cache serves two loads or one store at a time (manual 1.8.1, on the L1D pipeline): a store takes what
    two loads would."""
    if not role(row.form.partition(" ")[0]).stores:
        return row
    addresses = frozenset(_UNITS["EAG*"])
    uses = [PortUse(use.ports, 2 * use.cycles) if addresses.issuperset(use.ports) else use for use in row.ports]
    return replace(row, ports=tuple(uses))


def _entries(records: Sequence[Mapping[str, str]]) -> dict[tuple[str, str], list[_Entry]]:
    """What the manual says by section and mnemonic; of entries by the length of vectors those of the longest."""
    found: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
    of_lengths = ""
    apart = {(r["section"], r["instruction"]) for r in records if not _MNEMONIC.fullmatch(r["alias"])}
    optional = {(r["section"], r["instruction"]) for r in records if r["option"] and not _MARKS.search(r["option"])}
    for record in records:
        names, _, qualifier = record["instruction"].partition(" (")
        if _MNEMONIC.fullmatch(record["alias"]):
            # of MADD two rows, its own and one without an addend, MUL; of FACGE one for FACLE, too
            own = (record["section"], record["instruction"]) not in apart
            names = f"{names}, {record['alias']}" if own else record["alias"]
        if _MARKS.fullmatch(record["option"]) and (record["section"], record["instruction"]) in optional:
            continue
        option, length = _of_length(_MARKS.sub("", record["option"]))
        of_lengths = option or (of_lengths if length else "")
        if length in ("", _LENGTH):
            blocks = "E" in record["marks"].split()
            entry = _Entry(qualifier.strip("()"), of_lengths, record["pipeline"], record["latency"], blocks)
            for name in names.split(", "):
                found[record["section"], name.lower()].append(entry)
    return found


_MNEMONIC = re.compile(r"[A-Z][A-Z0-9]+")
_MARKS = re.compile("(?:2 \\N{CHECK MARK} \\N{CHECK MARK} \\N{CHECK MARK} NA / NA ?)+")
"""What the extraction of the manual put in place of an option, or of none."""
_LENGTH = "512"
"""Bits of the vectors of which the table is."""


def _of_length(option: str) -> tuple[str, str]:
    """An option without the length of vectors that it ends with, and that."""
    match = re.fullmatch(r"(.*?)\s*\b(128|256|512)", option)
    return (match[1], match[2]) if match else (option, "")


def _access(row: InstructionData, source: str) -> InstructionData | None:
    """Loads and stores of one or two registers: each an address, a store's data, and the base that is written back."""
    mnemonic, _, text = row.form.partition(" ")
    match = _PLAIN_ACCESS.fullmatch(mnemonic)
    kind = text.partition(",")[0]
    if match is None or kind not in _LOADS or "[" not in text:
        return None
    times = 2.0 if match[2].endswith("p") else 1.0
    uses = [PortUse(_UNITS["EAG*"], times)]
    if match[1] == "st":
        uses.append(PortUse(("EXA",) if kind in ("x", "w") else ("FLA",), times))
    if text.endswith("!") or "]," in text:
        uses.append(PortUse((*_UNITS["EX*"], *_UNITS["EAG*"]), 1.0))
    pairs = {pair: _LOADS[kind] if pair[0][0] == "A" else cycles for pair, cycles in row.latencies.items()}
    uops = round(times) + (text.endswith("!") or "]," in text)
    return replace(row, ports=tuple(uses), latencies=pairs, uops=uops, source=source)


def _computing(
    row: InstructionData, entries: Mapping[tuple[str, str], list[_Entry]], source: str
) -> InstructionData | None:
    """A form that computes, where the manual leaves one reading."""
    mnemonic, _, text = row.form.partition(" ")
    kinds = text.split(",")
    if "[x" in text or "[z" in text:
        return None
    section = "SVE" if any(kind[:2] in ("z.", "p.") or kind in _PREDICATE for kind in kinds) else ""
    section = section or (
        "SIMD&FP" if any(kind[:2] == "v." or kind in ("b", "h", "s", "d", "q") for kind in kinds) else "ARMv8"
    )
    suited = [entry for entry in entries.get((section, mnemonic), ()) if _suits(entry, kinds)]
    readings = {(entry.pipeline, entry.latency, entry.blocks) for entry in suited}
    if len(readings) != 1:
        return None
    return _with(row, *readings.pop(), source)


def _suits(entry: _Entry, kinds: list[str]) -> bool:
    """Whether a qualifier and an option of the manual speak of operands of these kinds."""
    qualifier = entry.qualifier
    vector = any(kind[:2] == "v." for kind in kinds)
    element = any(kind.endswith("[i]") for kind in kinds[1:])
    shifted = any(kind[:3] in ("lsl", "lsr", "asr", "ror") for kind in kinds)
    extended = any(kind[1:3] == "xt" for kind in kinds)
    constant = any(kind[:1] == "#" for kind in kinds)
    tests = {
        "scalar": not vector,
        "vector": vector and not element,
        "by element": element,
        "immediate": constant,
        "shifted register": not constant and not extended,
        "extended register": extended,
        "vectors, predicated": any(kind == "p/m" for kind in kinds) and not constant,
        "vectors, unpredicated": not _PREDICATE & set(kinds) and not constant and not element,
        "vectors": not constant,
        "indexed": element,
        "register": not constant,
    }
    if qualifier and not tests.get(qualifier, False):
        return False
    if not qualifier and (element or extended or shifted):
        return False
    return _option_suits(entry.option, kinds, shifted=shifted)


def _option_suits(option: str, kinds: list[str], *, shifted: bool) -> bool:
    """Whether an option on the types or on the amount of a shift holds."""
    if "<amount>" in option:
        plain = "= 0" in option and "&&" not in option
        return not shifted if plain else "lsl#1-4" in kinds if "[1-4]" in option else False
    types = _TYPES.search(option)
    if types is None:
        return not option and (not shifted or "lsl#5+" in kinds)
    named = types[2].split("|")
    return any(kinds[0].upper() in (name, f"V.{name}", f"Z.{name}") for name in named)


def _with(row: InstructionData, pipeline: str, latency: str, blocks: bool, source: str) -> InstructionData | None:
    """The row with a sequence of µops as the manual prints it; None for what is not printed plainly."""
    if "," in pipeline:
        return None
    steps, times = _unrolled(pipeline), _unrolled(latency)
    repeated = " x " in pipeline
    if len(steps) != len(times) or any("(" in step for step in steps):
        return None
    alone, done = 0.0, list[float]()
    uses: list[PortUse] = []
    for step, time in zip(steps, times, strict=True):
        units = tuple(port for part in step.split("|") for port in _UNITS.get(part.strip(), ()))
        match = _LATENCY.fullmatch(time.strip())
        if not units or match is None:
            return None
        sources = [int(number) - 1 for number in (match[1] or "").split(",") if number]
        after = [done[number] for number in sources if number < len(done)]
        alone = float(match[2])
        ready = max(after, default=0.0) + alone
        if repeated and len(done) == _SLOTS:
            # a round of a sum over the lanes: of the last sum and what was shuffled comes the next of each
            done[int(len(sources) < _SLOTS)] = ready
        else:
            done.append(ready)
        uses.append(PortUse(units, alone if blocks else 1.0))
    last = done[0] if repeated else done[-1]
    pairs = {} if repeated or len(uses) == 1 else _entering_last(row.form, alone, len(uses))
    return replace(row, ports=tuple(uses), default_latency=last, latencies=pairs, uops=len(uses), source=source)


_ADDS_LAST = re.compile(r"[su]?m(?:add|sub)l? .*")


def _entering_last(form: str, cycles: float, uops: int) -> dict[tuple[str, str], float]:
    """The latencies of operands that the last of several µops reads: what is accumulated in, or joined to, and what an
    element that the first µop copies to a vector is multiplied with."""
    mnemonic, _, text = form.partition(" ")
    kinds = text.split(",")
    if _ADDS_LAST.fullmatch(form) and len(kinds) > _ADDEND:
        return {(str(_ADDEND), "0"): cycles}
    if kinds[0] in ("x", "w"):
        return {}
    found = {("0", "0"): cycles} if role(mnemonic).reads_first else {}
    if kinds[-1].endswith("[i]") and uops == _COPIED:
        found |= {(str(number), "0"): cycles for number in range(1, len(kinds) - 1)}
    return found


_ADDEND, _COPIED = 3, 2


_SLOTS = 2


def _unrolled(text: str) -> list[str]:
    """The steps of a sequence, with rounds `(a / b) x 3` as often as they are executed."""
    return re.sub(r"\(([^()]*)\) x (\d+)", lambda match: " / ".join([match[1]] * int(match[2])), text).split(" / ")
