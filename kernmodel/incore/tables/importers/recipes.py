"""What the table of each Intel core is made of, and the making of it.

In the order of trust: the core's own pack or its port usage by scheme (uops.info), the pack of the nearest core,
readings of InstLatx64, LLVM's model. Every row names what it comes from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.extensions import core_extensions
from kernmodel.incore.tables.importers.avx512 import WideCore, avx512_rows, whole_cycles, with_times
from kernmodel.incore.tables.importers.contradictions import Reference, mended
from kernmodel.incore.tables.importers.dividers import DIVIDES, llvm_readings, register_form
from kernmodel.incore.tables.importers.facts import facts, facts_of
from kernmodel.incore.tables.importers.forms import form_name
from kernmodel.incore.tables.importers.instlatx64 import Reading, read_instlatx64
from kernmodel.incore.tables.importers.intel import DIVIDER, DIVIDER_PORT, ONES, DividerSource, refined_rows
from kernmodel.incore.tables.importers.llvm import llvm_version, models
from kernmodel.incore.tables.importers.schemes import scheme_ports, scheme_records
from kernmodel.incore.tables.importers.uops import SOURCE, UNMEASURED, ImportReport, Record, read_records, table_header
from kernmodel.incore.tables.importers.x87 import X87Model, intel_ports, x87_rows
from kernmodel.incore.tables.parameters import known_microarchitectures, load_parameters
from kernmodel.incore.tables.table import table_text, with_variants
from kernmodel.value_types import dataclass

SCHEMES = "ports_by_scheme.json.gz"
_SHORTEST_LATENCY = 0.75  # cycles; shorter readings are of eliminated instructions
_UNCLEAR = re.compile(r"^(?:lock|rep|x|cmpxchg|bswap|push|pop|v?pcmp[ei]str|shld|shrd)|\bi16\b|\bm\d+\b")
"""Forms whose reading is of something else: several µops in turn, a length-changing prefix, a load."""
_LEAST_DIFFERENCE, _DIFFERENCE = 0.5, 0.05
"""A reading contradicts a neighbour's latency if it differs by more than both, in cycles and as a share. The clock that
readings are scaled by is up to 2 % off, so that a cycle tells at latencies up to 20."""
_TAGS = {"u": SOURCE, "u?": UNMEASURED, "o": ONES, "d": DIVIDER}


@dataclass(frozen=True, slots=True)
class Recipe:
    """The inputs of one table; what its fields mean stands in cores.yml, from which `recipes` reads them."""

    name: str
    packs: tuple[str, ...]
    schemes: str = ""
    readings: str = ""
    dividers: str = ""
    wide: str = ""
    features: str = ""
    server: bool = False
    client: bool = False
    x87: str = ""
    base: str = ""
    base_words: str = ""
    neighbour: bool = False
    siblings: tuple[str, ...] = ()

    @property
    def cpu(self) -> str:
        """The CPU that was read, "" if there are no readings."""
        return cpu_read(self.readings) if self.readings else ""


@cache
def recipes() -> Mapping[str, Recipe]:
    """The recipes of Intel's cores by name."""
    return facts_of(Recipe, "cores.yml", "intel")


def cpu_read(readings: str) -> str:
    """The CPU of a file of readings."""
    return str(facts("cores.yml", "readings")[readings])


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
    alone = Recipe(name, (name,))
    recipe = recipes().get(name, alone) if records is None else alone
    rows, report = _rows(path, name, recipe, records)
    if not any(row.ports for row in rows):
        todo = "choose a core whose ports are published"
        raise InstructionTableError("holds no port usage", where=str(path), todo=todo)
    base = None
    if recipe.base:
        other = recipes()[recipe.base]
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
    taken = tuple(_records(path, name, recipe)) if records is None else tuple(records)
    readings = read_instlatx64(readings_file(path, recipe.readings)) if recipe.readings else {}
    rows, report = refined_rows(taken, parameters, _dividers(recipe, readings))
    if recipe.schemes:
        rows = tuple(_attributed(rows, taken, parameters.title if parameters else name))
    elif (words := _source_words(name, recipe)) != SOURCE:
        rows = tuple(renamed(row, SOURCE, words) for row in rows)
    if recipe.neighbour:
        rows = with_readings(rows, readings, recipe.cpu)
    if recipe.wide and parameters is not None:
        features = core_extensions(recipe.features or recipe.wide)
        wide = WideCore(models()[recipe.wide], features, recipe.server, readings, recipe.cpu)
        rows = (*rows, *avx512_rows({row.form: row for row in rows}, wide))
        rows = tuple(with_times(rows, readings, recipe.cpu))
        rows = mended(rows, reference(path, recipe, parameters.issue_width))
    if (model := _x87_model(name, recipe)) is not None:
        rows = (*rows, *x87_rows({row.form: row for row in rows}, readings, model))
    return rows, report


def _x87_model(name: str, recipe: Recipe) -> X87Model | None:
    """What the x87 rows of a core are made of, None if it has none."""
    model = models().get(recipe.x87 or recipe.wide)
    if model is None or name not in known_microarchitectures():
        return None
    issue_width = load_parameters(name).issue_width
    return X87Model(model.cpu, model.words, partial(intel_ports, model), DIVIDER_PORT, recipe.cpu, issue_width)


def _source_words(name: str, recipe: Recipe) -> str:
    """The source of the rows of a pack, with the core that was measured if the pack is of another name."""
    pack = recipe.packs[0]
    title = facts("cores.yml", "packs").get(pack, pack)
    return SOURCE if pack == name else SOURCE.replace("measurements", f"measurements of {title}")


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
    recipe = recipes().get(Path(parameters.table).stem)
    others = recipe.siblings if recipe else facts("cores.yml", "amd").get(parameters.name, {}).get("siblings", ())
    beside = (file.with_name(f"{other}.csv") for other in others)
    siblings = tuple(read_instlatx64(other) for other in beside if other.is_file() and other != file)
    client = recipe is not None and recipe.client and file.stem == recipe.readings
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
    titles: Mapping[str, str] = facts("cores.yml", "packs")
    origins: dict[str, tuple[str, bool]] = {}
    for record in records:
        name = form_name(record["string"])
        if name is not None:
            origins.setdefault(name.form, (titles[record["nearest"]], record["own_ports"]))
    for row in rows:
        neighbour, own = origins[row.form]
        rest = f"latencies and front end of {neighbour} (uops.info, as of 2026)"
        words = f"ports of {title} by scheme (uops.info, the iwho project's extract); {rest}" if own else (
            f"ports, latencies and front end of {neighbour} (uops.info, as of 2026), with the store ports of {title}"
        )  # fmt: skip
        yield renamed(row, SOURCE, words)


def renamed(row: InstructionData, old: str, new: str) -> InstructionData:
    """The row and its variants with other words in their sources."""
    return with_variants(row, lambda one: replace(one, source=one.source.replace(old, new)))


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
    return with_variants(row, lambda one: replace(one, source=""))


def _inputs(recipe: Recipe) -> Iterator[str]:
    """Header lines that name the inputs besides the pack."""
    if recipe.schemes:
        others = ", ".join(facts("cores.yml", "packs")[pack] for pack in recipe.packs)
        yield f"Ports by scheme: {SCHEMES}, {recipe.schemes}; all else from the nearest of {others}."
    if recipe.dividers:
        yield f"Dividers: {llvm_version()}, -mcpu={recipe.dividers}."
    elif recipe.readings:
        yield f"Dividers: InstLatx64 readings {recipe.readings}.csv."
    if recipe.wide:
        yield f"AVX-512, x87: {llvm_version()}, -mcpu={recipe.wide}; InstLatx64 readings {recipe.readings}.csv."
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
