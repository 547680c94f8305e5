"""Rows as micro-experiments on the core found them, by the rules of measured.yml.

A rule changes what its experiments tell and leaves the rest of a row: units say nothing of latencies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.facts import facts, facts_of
from kernmodel.incore.tables.table import parse_latencies, parse_ports, with_variants
from kernmodel.value_types import dataclass

FILE = "measured.yml"
MEASURED = "measured: "
"""Begins what the sources of rows say of experiments."""
NO_UNITS = "none"
_KINDS = {"V": "[xy]mm", "W": "[xyz]mm", "R": "r(?:32|64)"}
_MASK = re.compile(r"\{kz?\}")
_MEMORY = re.compile(r"\bm\d+b?\b")
_VECTORS = {"m128": "xmm", "m256": "ymm", "m512": "zmm"}
_REGISTERS = ("xmm", "ymm", "zmm", "r32", "r64")
_ADDRESSES, _PATHS = ("AGU",), ("LD", "ST")
_TO_MEMORY = re.compile(r"\S+ m\d")
_VECTOR_LOAD = re.compile(r"\S+ (?:[xyz]mm|k)\b.*\bm\d+b?\b")


@dataclass(frozen=True, slots=True)
class Rule:
    """What experiments found of some forms; what its fields mean stands in measured.yml."""

    name: str
    forms: str
    found: str
    units: str = ""
    wide: str = ""
    uops: str = ""
    latency: str = ""
    throughput: str = ""
    loads: str = ""
    zero: bool = False
    registers_only: bool = False
    masked: bool = False
    indexed: bool = False


def as_measured(rows: Iterable[InstructionData], core: str) -> tuple[InstructionData, ...]:
    """The rows with what the experiments on the core found; those of a core without experiments as they are.

    Args:
        rows: of the core's table.
        core: "ZEN4".

    Raises:
        InstructionTableError: the file of rules is malformed.
    """
    plain, indexed = ([own for own in _rules(core) if own[1].indexed == kind] for kind in (False, True))
    changed = (with_variants(row, lambda one: _changed(one, plain, core)) for row in rows)
    return tuple(_with_indexed(row, indexed, core) for row in changed)


def _with_indexed(row: InstructionData, rules: Iterable[tuple[re.Pattern[str], Rule]], core: str) -> InstructionData:
    """The row with the variant for addresses with an index that the rules of such addresses tell."""
    before = row.indexed or replace(row, full=None)
    found = _changed(before, rules, core)
    return row if found == before else replace(row, indexed=found)


@cache
def _rules(core: str) -> tuple[tuple[re.Pattern[str], Rule], ...]:
    if core not in facts(FILE, "cores"):
        return ()
    return tuple((_pattern(rule.forms), rule) for rule in facts_of(Rule, FILE, core).values())


def _pattern(text: str) -> re.Pattern[str]:
    """The expression with the letters for kinds of registers spelt out."""
    return re.compile(re.sub(r"\b[VWR]\b", lambda found: _KINDS[found[0]], text))


def _changed(row: InstructionData, rules: Iterable[tuple[re.Pattern[str], Rule]], core: str) -> InstructionData:
    found, source = [], row.source
    has_mask = bool(_MASK.search(row.form))
    for pattern, rule in rules:
        if (has_mask or not rule.masked) and any(
            pattern.fullmatch(form) for form in _names(row.form, rule.registers_only)
        ):
            try:
                changed = _by_rule(row, rule)
            except ValueError as error:
                raise InstructionTableError(f"rule {rule.name!r}: {error}", where=f"{FILE}, {core}") from None
            found += [rule] if changed != row else []
            row = changed
    if not found:
        return row
    words: Mapping[str, str] = facts(FILE, "cores")
    texts = (f"{rule.name}: {rule.found}" for rule in found)
    before = () if any(rule.units for rule in found) else (source,)
    return replace(row, source="; ".join((*before, words[core], *texts)))


def _names(form: str, registers_only: bool) -> Iterator[str]:
    """The form without masks, and with each kind of register that may hold as much in place of a memory source."""
    plain = _MASK.sub("", form.removesuffix(" [indexed]"))
    yield plain
    if registers_only or _TO_MEMORY.match(plain) or not (memory := _MEMORY.search(plain)):
        return
    vector = _VECTORS.get(memory[0])
    yield from (_MEMORY.sub(kind, plain) for kind in ((vector,) if vector else _REGISTERS))


def _by_rule(row: InstructionData, rule: Rule) -> InstructionData:
    if rule.units:
        row = replace(row, ports=(*_units(row, rule), *transfers(row)))
    if rule.latency:
        row = _with_latency(row, rule.latency)
    if rule.loads and _VECTOR_LOAD.fullmatch(row.form):
        row = _with_load(row, float(rule.loads))
    return replace(
        row,
        uops=int(rule.uops) if rule.uops else row.uops,
        throughput=float(rule.throughput) or None if rule.throughput else row.throughput,
        breaks_dependency="zero" if rule.zero else row.breaks_dependency,
    )


def _units(row: InstructionData, rule: Rule) -> tuple[PortUse, ...]:
    """The pipelines by the rule; 512 bits take them twice unless it says otherwise."""
    if rule.units == NO_UNITS:
        return ()
    if "zmm" not in row.form:
        return parse_ports(rule.units)
    if rule.wide:
        return parse_ports(rule.wide)
    return tuple(PortUse(use.ports, 2 * use.cycles) for use in parse_ports(rule.units))


def transfers(row: InstructionData) -> tuple[PortUse, ...]:
    """Uses of address units, load paths and store paths of an AMD core; none of a lea, which only computes."""
    paths = any(use.ports[0].startswith(_PATHS) for use in row.ports)
    return tuple(use for use in row.ports if paths and use.ports[0].startswith(_ADDRESSES + _PATHS))


def _with_latency(row: InstructionData, text: str) -> InstructionData:
    """The row with other latencies between registers; those that begin at an address change by as much."""
    default, pairs = parse_latencies(text)
    kept = {}
    for (source, target), cycles in row.latencies.items():
        if source[0] in "AX" and target[0] != "M":
            data = row.latencies.get(("M" + source[1:], target), row.default_latency)
            kept[source, target] = cycles + default - data
    return replace(row, default_latency=default, latencies={**kept, **pairs})


def _with_load(row: InstructionData, load: float) -> InstructionData:
    """The row of a vector load or an instruction that loads with another time from address to data."""
    executes = len(row.ports) > len(transfers(row))
    pairs = dict(row.latencies)
    for source, target in row.latencies:
        if source[0] in "AX":
            data = row.latencies.get(("M" + source[1:], target), row.default_latency)
            pairs[source, target] = load + (data if executes else 0.0)
    return replace(row, latencies=pairs)
