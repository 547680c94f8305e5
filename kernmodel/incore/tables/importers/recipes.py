"""What the table of each Intel core is made of, and the making of it.

In the order of trust: the core's own pack or its port usage by scheme (uops.info), the pack of the nearest core,
readings of InstLatx64, LLVM's model. Every row names what it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.importers.avx512 import (
    ICE_LAKE_MODEL,
    SAPPHIRE_RAPIDS_MODEL,
    SKYLAKE_MODEL,
    WideModel,
    avx512_rows,
    whole_cycles,
)
from kernmodel.incore.tables.importers.contradictions import Reference, mended
from kernmodel.incore.tables.importers.dividers import DIVIDES, llvm_readings, register_form
from kernmodel.incore.tables.importers.forms import form_name
from kernmodel.incore.tables.importers.instlatx64 import Reading, read_instlatx64
from kernmodel.incore.tables.importers.intel import DIVIDER, DIVIDER_PORT, ONES, DividerSource, refined_rows
from kernmodel.incore.tables.importers.llvm import llvm_version
from kernmodel.incore.tables.importers.schemes import scheme_ports, scheme_records
from kernmodel.incore.tables.importers.uops import SOURCE, UNMEASURED, ImportReport, Record, read_records, table_header
from kernmodel.incore.tables.importers.x87 import X87Model, intel_ports, x87_rows
from kernmodel.incore.tables.parameters import known_microarchitectures, load_parameters
from kernmodel.incore.tables.table import table_text

SCHEMES = "ports_by_scheme.json.gz"
_TITLES = {"SKL": "Skylake", "MTL-P": "Redwood Cove (Meteor Lake)"}
_MODELS = {"sandybridge": "Sandy Bridge", "ivybridge": "Sandy Bridge", "haswell": "Haswell"}
_MODELS |= {"broadwell": "Broadwell", "skylake": "Skylake"}
"""LLVM's models by `-mcpu`."""
_SHORTEST_LATENCY = 0.75  # cycles; shorter readings are of eliminated instructions
_UNCLEAR = re.compile(r"^(?:lock|rep|x|cmpxchg|bswap|push|pop|v?pcmp[ei]str|shld|shrd)|\bi16\b|\bm\d+\b")
"""Forms whose reading is of something else: several µops in turn, a length-changing prefix, a load."""
_LEAST_DIFFERENCE, _DIFFERENCE = 0.5, 0.15
"""A reading contradicts a neighbour's latency if it differs by more than both, in cycles and as a share."""
_TAGS = {"u": SOURCE, "u?": UNMEASURED, "o": ONES, "d": DIVIDER}


@dataclass(frozen=True, slots=True)
class Recipe:
    """The inputs of one table.

    Attributes:
        packs: packs of uops.info, the nearest core's first.
        schemes: name of the core in the file of ports by scheme, "" if its pack has them.
        readings: InstLatx64's file for dividers, AVX-512 and the check, "" if there is none; cpu: what was read.
        dividers: LLVM's `-mcpu` for division with usual operands where there are no readings.
        wide: LLVM's model for AVX-512.
        base: the core whose table this one holds the differences to, "" if it is a table of all rows.
        base_words: what heads the sources of that table's rows.
        siblings: files of cores that execute the same way; a row that agrees with them is not contradicted.
        x87: LLVM's `-mcpu` for x87; "": that of `wide`, without it no such rows.
        client: the table is a server's, the readings are of its client sibling, which has one 512-bit unit less.
        neighbour: whether latencies are a neighbour's, so that readings which contradict them replace them.
    """

    packs: tuple[str, ...]
    schemes: str = ""
    readings: str = ""
    cpu: str = ""
    dividers: str = ""
    wide: WideModel | None = None
    base: str = ""
    base_words: str = ""
    neighbour: bool = False
    siblings: tuple[str, ...] = ()
    client: bool = False
    x87: str = ""


_SUNNY = ("SKL", "MTL-P")
_ICE = "a Core i7-1065G7"
_ICE_SERVER = "a Xeon Gold 6330"
RECIPES: Mapping[str, Recipe] = {
    "SNB": Recipe(("SNB",), readings="snb", cpu="a Core i7-3930K", x87="sandybridge"),
    # no readings of Ivy Bridge; its divider is Haswell's by uops.info's figures for easy operands, which are the same
    "IVB": Recipe(("IVB",), readings="hsw", cpu="a Xeon E5-2630 v3", x87="ivybridge"),
    "HSW": Recipe(("HSW",), readings="hsw", cpu="a Xeon E5-2630 v3", x87="haswell"),
    "BDW": Recipe(("BDW",), dividers="broadwell", x87="broadwell"),
    "SKL": Recipe(("SKL",), readings="skl", cpu="a Core i7-6700K", x87="skylake"),
    "KBL": Recipe(("KBL",), readings="skl", cpu="a Core i7-6700K", base="SKL", base_words="as Skylake", x87="skylake"),
    "CFL": Recipe(("CFL",), readings="skl", cpu="a Core i7-6700K", base="SKL", base_words="as Skylake", x87="skylake"),
    "SKX": Recipe(("SKL",), readings="clx", cpu="a Xeon Platinum 8280", wide=SKYLAKE_MODEL, siblings=("skx",)),
    "ICL": Recipe(_SUNNY, "ICL", "icl", _ICE, wide=ICE_LAKE_MODEL, neighbour=True, siblings=("icx", "tgl", "rkl")),
    "ICX": Recipe(
        _SUNNY, "ICL", "icx", _ICE_SERVER, wide=replace(ICE_LAKE_MODEL, server=True), neighbour=True,
        base="ICL", base_words="as Ice Lake (client)", siblings=("icl", "tgl", "rkl"),
    ),
    "TGL": Recipe(
        _SUNNY, "TGL", "tgl", "a Core i5-1135G7", neighbour=True, base="ICL", base_words="as Ice Lake",
        wide=replace(ICE_LAKE_MODEL, features=ICE_LAKE_MODEL.features | {"AVX512_VP2INTERSECT"}),
        siblings=("icl", "icx", "rkl"),
    ),
    "RKL": Recipe(
        _SUNNY, "RKL", "rkl", "a Core i9-11900K", wide=ICE_LAKE_MODEL, neighbour=True,
        base="ICL", base_words="as Ice Lake", siblings=("icl", "icx", "tgl"),
    ),
    "RWC": Recipe(("MTL-P",), readings="adl-p", cpu="a Core i9-12900K", wide=SAPPHIRE_RAPIDS_MODEL, client=True),
    "GLC": Recipe(
        ("MTL-P",), readings="adl-p", cpu="a Core i9-12900K", wide=SAPPHIRE_RAPIDS_MODEL, client=True, neighbour=True,
        base="RWC", base_words="as its successor Redwood Cove",
    ),
}  # fmt: skip
"""By name of the table; Cascade Lake shares that of Skylake-X."""

AMD_SIBLINGS = {"ZEN": ("zen4",)}
"""Readings that may confirm rows of AMD's cores."""


def intel_table(path: Path, name: str, records: Iterable[Record] | None = None) -> tuple[str, ImportReport]:
    """The text of an Intel core's table.

    Args:
        path: its pack of uops.info records, or the nearest core's; ports by scheme lie beside it, and readings of
            InstLatx64 in `../latency-throughput` beside its folder.
        name: of the microarchitecture; one without recipe is made of its pack alone.
        records: in place of those of the pack, then without any other input.

    Raises:
        InstructionTableError: an input cannot be read or is something else, or the pack gives no ports.
        ToolError: llvm-mca is needed and missing.
    """
    recipe = RECIPES.get(name, Recipe((name,))) if records is None else Recipe((name,))
    rows, report = _rows(path, name, recipe, records)
    if not any(row.ports for row in rows):
        todo = "choose a core whose ports are published"
        raise InstructionTableError("holds no port usage", where=str(path), todo=todo)
    base = None
    if recipe.base:
        other = RECIPES[recipe.base]
        others, _ = _rows(path.with_name(f"{other.packs[0]}.jsonl.gz"), recipe.base, other, None)
        rows = tuple(differences(rows, others))
        base = (f"{recipe.base}.txt", recipe.base_words)
    header = table_header(name, path.name, report, *_inputs(recipe))
    tags = {tag: text.replace(SOURCE, _source_words(name, recipe)) for tag, text in _TAGS.items()}
    if (model := _x87_model(name, recipe)) is not None:
        tags |= model.tags
    return table_text(header, rows, legend(rows, tags), base), report


def _rows(
    path: Path, name: str, recipe: Recipe, records: Iterable[Record] | None
) -> tuple[tuple[InstructionData, ...], ImportReport]:
    """All rows of a core by its recipe."""
    parameters = load_parameters(name) if name in known_microarchitectures() else None
    forward = parameters.store_forward_latency if parameters else None
    taken = tuple(_records(path, name, recipe)) if records is None else tuple(records)
    readings = read_instlatx64(readings_file(path, recipe.readings)) if recipe.readings else {}
    rows, report = refined_rows(taken, name, forward, _dividers(recipe, readings))
    if recipe.schemes:
        rows = tuple(_attributed(rows, taken, parameters.title if parameters else name))
    elif (words := _source_words(name, recipe)) != SOURCE:
        rows = tuple(renamed(row, SOURCE, words) for row in rows)
    if recipe.neighbour:
        rows = with_readings(rows, readings, recipe.cpu)
    if recipe.wide is not None and parameters is not None:
        wide = avx512_rows({row.form: row for row in rows}, readings, recipe.wide, recipe.cpu)
        rows = mended((*rows, *wide), reference(path, recipe, parameters.issue_width))
    if (model := _x87_model(name, recipe)) is not None:
        rows = (*rows, *x87_rows({row.form: row for row in rows}, readings, model))
    return rows, report


def _x87_model(name: str, recipe: Recipe) -> X87Model | None:
    """What the x87 rows of a core are made of, None if it has none."""
    wide = recipe.wide
    cpu = recipe.x87 or (wide.cpu if wide else "")
    if not cpu or name not in known_microarchitectures():
        return None
    words = wide.words if wide else f"LLVM's {_MODELS[cpu]} scheduling model"
    ports = intel_ports(wide.names if wide else {})
    return X87Model(cpu, words, ports, DIVIDER_PORT, recipe.cpu, load_parameters(name).issue_width)


def _source_words(name: str, recipe: Recipe) -> str:
    """The source of the rows of a pack, with the core that was measured if the pack is of another name."""
    pack = recipe.packs[0]
    return SOURCE if pack == name else SOURCE.replace("measurements", f"measurements of {_TITLES.get(pack, pack)}")


def reference(pack: Path, recipe: Recipe, issue_width: int) -> Reference:
    """What the rows of a core are held against.

    Raises:
        InstructionTableError: a file cannot be read.
    """
    siblings = tuple(read_instlatx64(readings_file(pack, name)) for name in recipe.siblings)
    return Reference(read_instlatx64(readings_file(pack, recipe.readings)), issue_width, siblings, recipe.client)


def reference_of(file: Path, name: str) -> Reference:
    """What the rows of a core are held against: a file of readings, with those of CPUs of the same kind beside it.

    Raises:
        InstructionTableError: the core is unknown, or the file cannot be read.
    """
    parameters = load_parameters(name)
    name = parameters.name
    recipe = RECIPES.get({"CLX": "SKX"}.get(name, name), Recipe((), siblings=AMD_SIBLINGS.get(name, ())))
    beside = (file.with_name(f"{other}.csv") for other in recipe.siblings)
    siblings = tuple(read_instlatx64(other) for other in beside if other.is_file() and other != file)
    client = recipe.client and file.stem == recipe.readings
    return Reference(read_instlatx64(file), parameters.issue_width, siblings, client)


def readings_file(pack: Path, name: str) -> Path:
    """The file of InstLatx64's readings that goes with a pack."""
    return pack.parent.parent / "latency-throughput" / f"{name}.csv"


def _records(path: Path, name: str, recipe: Recipe) -> Iterable[Record]:
    if not recipe.schemes:
        return read_records(path)
    packs = [path, *(path.with_name(f"{pack}.jsonl.gz") for pack in recipe.packs[1:])]
    return scheme_records(packs, scheme_ports(path.with_name(SCHEMES), recipe.schemes), name)


def _dividers(recipe: Recipe, readings: Mapping[str, Reading]) -> DividerSource | None:
    if recipe.dividers:
        return partial(llvm_readings, recipe.dividers)
    return (lambda _: readings) if readings else None


def _attributed(rows: Iterable[InstructionData], records: Iterable[Record], title: str) -> Iterator[InstructionData]:
    """The rows with sources that say whose ports and whose other figures they have."""
    origins: dict[str, tuple[str, bool]] = {}
    for record in records:
        name = form_name(record["string"])
        if name is not None:
            origins.setdefault(name.form, (_TITLES[record["nearest"]], record["own_ports"]))
    for row in rows:
        neighbour, own = origins[row.form]
        rest = f"latencies and front end of {neighbour} (uops.info, as of 2026)"
        words = f"ports of {title} by scheme (uops.info, the iwho project's extract); {rest}" if own else (
            f"ports, latencies and front end of {neighbour} (uops.info, as of 2026), with the store ports of {title}"
        )  # fmt: skip
        yield renamed(row, SOURCE, words)


def renamed(row: InstructionData, old: str, new: str) -> InstructionData:
    """The row and its variants with other words in their sources."""
    indexed = renamed(row.indexed, old, new) if row.indexed else None
    full = renamed(row.full, old, new) if row.full else None
    return replace(row, source=row.source.replace(old, new), indexed=indexed, full=full)


def with_readings(
    rows: Iterable[InstructionData], readings: Mapping[str, Reading], cpu: str
) -> tuple[InstructionData, ...]:
    """The rows with the latencies that InstLatx64 read, where a neighbour's contradict them.

    Only register forms with one latency between all registers, as a reading does not say which pair it is of, and the
    memory forms of these.
    """
    rows = tuple(rows)
    more = {row.form: _longer(row, readings) for row in rows if register_form(row.form) == row.form}
    words = f"; latency measured by InstLatx64 on {cpu}"
    return tuple(_shifted(row, more.get(register_form(row.form), 0.0), words) for row in rows)


def _longer(row: InstructionData, readings: Mapping[str, Reading]) -> float:
    """By how many cycles the reading of a register form contradicts its row, 0 if it does not."""
    reading = readings.get(row.form)
    if reading is None or reading.latency is None or reading.latency < _SHORTEST_LATENCY or not _has_one_latency(row):
        return 0.0
    more = whole_cycles(reading.latency) - row.default_latency
    return more if abs(more) > max(_LEAST_DIFFERENCE, _DIFFERENCE * row.default_latency) else 0.0


def _has_one_latency(row: InstructionData) -> bool:
    """Whether it executes and passes its sources on after the same time; not divisions, prefixed and string forms."""
    executes = row.uops > 0 and not row.eliminated and row.breaks_dependency != "zero" and row.default_latency > 0
    special = DIVIDES.match(row.form) or _UNCLEAR.search(row.form)
    return executes and not row.latencies and not special


def _shifted(row: InstructionData, more: float, words: str) -> InstructionData:
    if not more:
        return row
    latencies = {pair: cycles + more for pair, cycles in row.latencies.items() if pair[1].isdigit()}
    kept = {pair: cycles for pair, cycles in row.latencies.items() if not pair[1].isdigit()}
    return replace(
        row,
        default_latency=row.default_latency + more,
        latencies={**kept, **latencies},
        indexed=_shifted(row.indexed, more, words) if row.indexed else None,
        source=row.source + words,
    )


def differences(rows: Iterable[InstructionData], others: Iterable[InstructionData]) -> Iterator[InstructionData]:
    """The rows that say something else than the others' of the same form."""
    known = {row.form: _facts(row) for row in others}
    return (row for row in rows if known.get(row.form) != _facts(row))


def _facts(row: InstructionData) -> InstructionData:
    indexed = _facts(row.indexed) if row.indexed else None
    full = _facts(row.full) if row.full else None
    return replace(row, source="", indexed=indexed, full=full)


def _inputs(recipe: Recipe) -> Iterator[str]:
    """Header lines that name the inputs besides the pack."""
    if recipe.schemes:
        others = ", ".join(_TITLES[pack] for pack in recipe.packs)
        yield f"Ports by scheme: {SCHEMES}, {recipe.schemes}; all else from the nearest of {others}."
    if recipe.dividers:
        yield f"Dividers: {llvm_version()}, -mcpu={recipe.dividers}."
    elif recipe.readings:
        yield f"Dividers: InstLatx64 readings {recipe.readings}.csv."
    if recipe.wide is not None:
        yield f"AVX-512, x87: {llvm_version()}, -mcpu={recipe.wide.cpu}; InstLatx64 readings {recipe.readings}.csv."
    elif recipe.x87:
        also = f"; InstLatx64 readings {recipe.readings}.csv" if recipe.readings else ""
        yield f"x87: {llvm_version()}, -mcpu={recipe.x87}{also}."


def legend(rows: Iterable[InstructionData], known: Mapping[str, str]) -> dict[str, str]:
    """Tags of all sources of the rows: the known ones and numbers for the others."""
    texts = sorted({text for row in rows for text in _sources(row)} - set(known.values()))
    return {**known, **{f"s{n}": text for n, text in enumerate(texts, 1)}}


def _sources(row: InstructionData) -> Iterator[str]:
    yield row.source
    for variant in (row.indexed, row.full):
        if variant is not None:
            yield from _sources(variant)
