"""Instruction tables of AArch64 cores: readings before published data before LLVM's model, one source for each row;
where a reading is of a part of the row alone, the source names what the other parts are of.

The inputs are comma-separated files: `tables/<model>.csv.gz` of LLVM's scheduling models as llvm-mca shows them,
and in `sources/` OSACA's data, WINIC's readings on Neoverse V2 and the tables of the A64FX manual. `aarch64.yml` says
what is taken of them for each core.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import Any

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.aarch64_llvm import more_records
from kernmodel.incore.tables.table import table_text
from kernmodel.isa.aarch64.grammar import NotReadError, Statement, parse
from kernmodel.isa.aarch64.roles import role
from kernmodel.schema.yaml_nodes import load
from kernmodel.value_types import dataclass

_RECIPES = Path(__file__).with_name("aarch64.yml")
_SOURCES = {
    "l": "LLVM 19.1.7, scheduling model of {model}, as llvm-mca shows it",
    "b": "LLVM 19.1.7, scheduling model of {model}: as by a whole vector; by an element it has an addition's",
    "e": "LLVM 19.1.7, scheduling model of {model}; the register that an element is put into: as of mov v.d[i],v.d[i]",
    "f": "LLVM 19.1.7, scheduling model of {model}; the accumulator: {forwarding}",
    "o": "OSACA's data, commit e00d5f6 ({osaca})",
    "p": "{model}: OSACA's data, commit e00d5f6; loads: Laukemann et al., PMBS 2019, Table II; latencies: LLVM 19.1.7",
    "r": "{model}: as source p; one uop more for a register offset: LLVM 19.1.7, GCC 14 (thunderx2t99_addrcost_table)",
    "i": "LLVM 19.1.7, scheduling model of {model}, with one ALU µop less, since it counts that of a write-back twice",
    "w": "WINIC, readings on Grace at 3.2 GHz, 2025-08; ports: LLVM 19.1.7",
    "wl": "WINIC, readings on Grace at 3.2 GHz, 2025-08; ports, latencies that were not read: LLVM 19.1.7; of those "
    "that were read between bounds what is nearest to LLVM's",
    "d": "D. Johnson, readings on Apple M1 (Firestorm), github.com/dougallj/applecpu; upper bounds among them",
    "x": "Arm Architecture Reference Manual, DDI 0487, movprfx; that it is packed with the next: A64FX manual 1.8.1",
    "y": "as mov z,p/m,z, which a movprfx that is not fused computes (DDI 0487)",
    "m": "Fujitsu, A64FX Microarchitecture Manual 1.8.1, Tables 16-1 to 16-3",
}
_CHAIN = re.compile(r"(\d+)([bi]?)>(\d+):([\d.]+)(?:-([\d.]+))?")
"""Source, `b` or `i` of an address, destination, cycles, and the most of them where these are the least, `1-3`."""
_USE = re.compile(r"([\d.]+)\*(.+)")
_TOLD_BY_PORTS = 1.3
"""Readings up to this factor above the bound of the ports need no cell of their own."""
_ISSUE = 0.25
"""Cycles: readings down to here can be the limit of the loop that was read, not of the instruction."""
_FASTEST = 0.16
"""Cycles: readings below here, `fmin s,s,s` 0.08, are less than what an instruction takes of six issued a cycle."""
_ONE_CHAIN = 0.05
"""A reading of throughput this near to the latency of the accumulator, as a share of it, is that latency."""
_LIST = re.compile(r"\*(\d)\}")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a table is made of; see `aarch64.yml`."""

    model: str
    units: Mapping[str, str]
    osaca: str = ""
    osaca_units: Mapping[str, str] = field(default_factory=dict)
    winic: str = ""
    manual: bool = False
    readings: str = ""
    store_data: str = ""
    offset_uop: bool = False
    index_twice: bool = False
    forwards: Mapping[str, float] = field(default_factory=dict)
    forwarding: str = ""
    features: str = "+aes,+sha2"


@cache
def aarch64_recipes() -> Mapping[str, Recipe]:
    """The recipes by the name of the core."""
    found: Mapping[str, Any] = load(_RECIPES.read_text(encoding="utf-8"), str(_RECIPES))
    return {name: Recipe(**values) for name, values in found.items()}


def aarch64_table(folder: Path, name: str) -> str:
    """The text of the table of a core; `folder` holds `tables/` and `sources/`.

    Raises:
        InstructionTableError: an input is missing, or says what is not understood.
    """
    recipe = aarch64_recipes()[name]
    if recipe.readings:
        rows = _of_readings(folder, recipe)
        return table_text((_header(name),), rows.values(), {"d": _source("d", recipe)})
    rows = {}
    for record in _records(folder / "tables" / f"{recipe.model}.csv.gz"):
        row = _forwarding(_of_llvm(record, recipe), recipe)
        rows[row.form] = row
    groups = {tuple(unit for unit in use.ports) for use in _all_uses(folder, recipe)}
    for record in more_records(recipe.model, recipe.features, sorted(groups)):
        row = _forwarding(_of_llvm(record, recipe), recipe)
        rows.setdefault(row.form, row)
    rows |= _by_element(rows, recipe)
    if recipe.manual:
        from kernmodel.incore.tables.importers.a64fx import corrected

        rows = corrected(rows, tuple(_records(folder / "sources" / "a64fx_manual.csv.gz")), _source("m", recipe))
    if recipe.osaca:
        rows |= _of_osaca(folder / "sources" / f"osaca_{recipe.osaca}.csv.gz", rows, recipe)
    if recipe.winic:
        rows |= _of_winic(folder / "sources" / f"winic_{recipe.winic}.csv.gz", rows, recipe)
    rows |= {row.form: row for row in _prefixes(rows) if _SVE_FORM in rows}
    rows |= _inserting(rows, recipe)
    return table_text((_header(name),), rows.values(), {tag: _source(tag, recipe) for tag in _SOURCES})


def _all_uses(folder: Path, recipe: Recipe) -> Iterator[PortUse]:
    """All uses of units that the facts have, by LLVM's names."""
    for record in _records(folder / "tables" / f"{recipe.model}.csv.gz"):
        yield from _uses(record["ports"], {})


_PRODUCT = re.compile(r"(\S*mul\S*|\S*ml[as]\S*) ((v\.\d+[hs]|[hs]),\3),v\.[hs]\[i\]")


def _by_element(rows: Mapping[str, InstructionData], recipe: Recipe) -> dict[str, InstructionData]:
    """Rows of products by an element that are faster than those of whole vectors: the models of N1 and V1 forget them
    (on V2, where they were read, and in the model of N2 both are alike)."""
    found = {}
    for row in rows.values():
        match = _PRODUCT.fullmatch(row.form)
        whole = rows.get(f"{match[1]} {match[2]},{match[3]}") if match else None
        if whole is not None and row.default_latency < whole.default_latency:
            found[row.form] = replace(whole, form=row.form, source=_source("b", recipe))
    return found


_ADDED = re.compile(r"(f?n?m|[su]mn?)(add|sub)l? .*")


def _forwarding(row: InstructionData, recipe: Recipe) -> InstructionData:
    """The row with the latency of its accumulator, where the core forwards it late and LLVM 19 does not know."""
    cycles = next((cycles for forms, cycles in recipe.forwards.items() if re.fullmatch(forms, row.form)), None)
    accumulator = "3" if _ADDED.fullmatch(row.form) else "1" if row.form.startswith("crc32") else "0"
    pair = (accumulator, "0")
    if cycles is None or cycles >= row.latencies.get(pair, row.default_latency):
        return row
    return replace(row, latencies={**row.latencies, pair: cycles}, source=_source("f", recipe))


def _header(name: str) -> str:
    return f"{name}: AArch64 forms, built by `kernmodel instructions import`; docs/aarch64.md explains the forms."


def _of_readings(folder: Path, recipe: Recipe) -> dict[str, InstructionData]:
    """The forms of LLVM's model that were read on the core itself; of the model nothing else is taken."""
    from kernmodel.incore.tables.importers.firestorm import firestorm_row, readings

    known = readings(_records(folder / "sources" / f"{recipe.readings}.csv.gz"))
    found = {}
    for record in _records(folder / "tables" / f"{recipe.model}.csv.gz"):
        row, statement = _of_llvm(record, recipe), parse(record["example"])
        pairs = _memory_pairs(statement, _places(statement), 1.0, loads=role(statement.mnemonic).loads)
        read = firestorm_row(row, statement, known, _source("d", recipe), pairs)
        if read is not None:
            found[row.form] = read
    return found | _inserting(found, recipe)


_INTO_LANE = re.compile(r"\S+ \{?v\.([bhsd])(?:\*(\d))?\}?\[i\],.*")


def _inserting(rows: Mapping[str, InstructionData], recipe: Recipe) -> dict[str, InstructionData]:
    """Rows of what puts an element into a register: that is waited for as by a move of an element, which is done once
    the new one is loaded or has come from a general register. LLVM lets it wait for all of that."""
    found = {}
    for row in rows.values():
        match = _INTO_LANE.fullmatch(row.form)
        move = rows.get(f"mov v.{match[1]}[i],v.{match[1]}[i]") if match else None
        if match is None or move is None or row is move or role(row.form.partition(" ")[0]).stores:
            continue
        listed = int(match[2] or 1)
        latency = row.latencies.get((f"A{listed}", "0"), row.default_latency)
        into = {(str(n), str(n)): min(move.default_latency, latency) for n in range(listed)}
        pairs = into | dict(row.latencies)
        source = _source("e", recipe) if row.source == _source("l", recipe) else row.source
        found[row.form] = replace(row, latencies=pairs, source=source if pairs != row.latencies else row.source)
    return found


_SVE_FORM = "fmla z.d,p/m,z.d,z.d"


def _prefixes(rows: Mapping[str, InstructionData]) -> Iterator[InstructionData]:
    """movprfx: one instruction with the next (DDI 0487; A64FX's decoders pack the two), or a move where it merges."""
    for size in "bhsd":
        move = rows.get(f"mov z.{size},p/m,z.{size}")
        if move is not None:
            yield replace(move, form=f"movprfx z.{size},p/m,z.{size}", source=_SOURCES["y"])
    for form in ("movprfx z,z", *(f"movprfx z.{size},p/z,z.{size}" for size in "bhsd")):
        yield InstructionData(
            form=form,
            ports=(),
            latencies={},
            default_latency=0.0,
            uops=0,
            throughput=None,
            breaks_dependency="no",
            eliminated=False,
            front_end=None,
            indexed=None,
            source=_SOURCES["x"],
        )


def _source(tag: str, recipe: Recipe) -> str:
    return _SOURCES[tag].format(model=recipe.model, osaca=recipe.osaca, forwarding=recipe.forwarding)


def _records(path: Path) -> Iterator[dict[str, str]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    except OSError as error:
        raise InstructionTableError(f"cannot be read ({error.strerror or error})", where=str(path)) from None


def _of_llvm(record: Mapping[str, str], recipe: Recipe) -> InstructionData:
    """A row of LLVM's model; the form is that of the example, as the grammar spells it."""
    try:
        statement = parse(record["example"])
    except NotReadError as error:
        raise InstructionTableError(f"{record['example']!r}: {error}", where=recipe.model) from None
    uses = _uses(record["ports"], recipe.units)
    does = role(statement.mnemonic)
    tag = "l"
    if does.loads or does.stores:
        mended = _of_memory(statement, uses, recipe)
        tag = "l" if mended == uses else "p" if recipe.store_data else "i"
        uses = mended
    added = recipe.offset_uop and _has_register_offset(statement)
    tag = "r" if added else tag
    latency = float(record["latency"] or 0)
    return InstructionData(
        form=statement.form,
        ports=tuple(uses),
        latencies=_pairs(statement, record, latency),
        default_latency=1.0 if does.loads or does.stores else latency,
        uops=_uops(statement, uses) + added,
        throughput=None,
        breaks_dependency="no",
        eliminated=False,
        front_end=None,
        indexed=None,
        source=_source(tag, recipe),
    )


_FEW = 3.0
"""More cycles on a group of units are the occupancy of one µop, as of a divider, not µops."""


def _uops(statement: Statement, uses: list[PortUse]) -> int:
    """The µops that a row's ports make; the address and the data of a store are one up to the scheduler."""
    does, address = role(statement.mnemonic), statement.parts[-1].address if statement.parts else None
    if does.stores and not does.loads:
        pair = statement.mnemonic in _PAIRS
        return 1 + pair + (address is not None and address.written_back)
    return max(1, round(sum(use.cycles if use.cycles <= _FEW else 1 for use in uses)))


def _has_register_offset(statement: Statement) -> bool:
    """Whether the address is the sum of two registers."""
    address = statement.parts[-1].address if statement.parts else None
    return address is not None and address.indexed_by is not None and not address.written_back


_PAIRS = frozenset({"ldp", "ldnp", "stp", "stnp", "ldpsw"})


def _uses(text: str, units: Mapping[str, str]) -> list[PortUse]:
    """The port usage of a model: `1*P0 + 2*P4|P5`."""
    found = []
    for part in filter(None, text.split(" + ")):
        match = _USE.fullmatch(part)
        if match is None:
            raise InstructionTableError(f"{part!r} is no port usage", where="LLVM's model")
        ports = tuple(sorted(units.get(unit, unit) for unit in match[2].split("|")))
        found.append(PortUse(ports, float(match[1])))
    return found


def _of_memory(statement: Statement, uses: list[PortUse], recipe: Recipe) -> list[PortUse]:
    """What a model says of a load or store, with what it is known to leave out or count twice."""
    address = statement.parts[-1].address
    advanced = address is not None and address.written_back
    found = list(uses)
    if recipe.index_twice and advanced:
        found = [PortUse(use.ports, 1.0) if _is_integer(use) else use for use in found]
    if recipe.store_data and _ACCESS.fullmatch(statement.mnemonic):
        return _of_thunderx(statement, recipe, advanced=advanced)
    return [use for use in found if use.cycles]


def _is_integer(use: PortUse) -> bool:
    return use.cycles > 1 and use.ports[0].startswith("INT")


_ACCESS = re.compile(r"(?:ld|st)(?:n?p|u?r)(?:s?[bhw]|sw)?")
_ALUS = ("0", "1", "2")


def _of_thunderx(statement: Statement, recipe: Recipe, *, advanced: bool) -> list[PortUse]:
    """Loads and stores of ThunderX2 as OSACA's data have stores and pairs, and the 2019 paper (Table II) loads.

    Each access takes an address port, a store one for its data too (both of a pair, of vectors), a pair that is loaded
    and a base that is written back an ALU.
    """
    does, pair = role(statement.mnemonic), statement.mnemonic in _PAIRS
    found = [PortUse(("3", "4"), 1.0 + pair)]
    if does.stores:
        vectors = statement.parts[0].kind in ("s", "d", "q")
        found.append(PortUse((recipe.store_data,), 1.0 + (pair and vectors)))
    if advanced or (does.loads and pair):
        found.append(PortUse(_ALUS, 1.0))
    return found


def _pairs(statement: Statement, record: Mapping[str, str], latency: float) -> dict[tuple[str, str], float]:
    """The latencies that differ from the default one, by operand."""
    does = role(statement.mnemonic)
    places = _places(statement)
    if does.loads or does.stores:
        return _memory_pairs(statement, places, latency, loads=does.loads)
    found: dict[tuple[str, str], float] = {}
    for match in _CHAIN.finditer(record["chain_latencies"]):
        cycles = float(match[4])
        if cycles != latency and not match[2]:
            found[str(places[int(match[1])]), str(places[int(match[3])])] = cycles
    if does.writes and _reads_result(statement):
        # a chain that is not slower than the units was not told apart from them
        own = float(record["self_latency"] or max(1.0, float(record["rthroughput"] or latency)))
        if own < latency:
            found["0", "0"] = own
    return found


def _reads_result(statement: Statement) -> bool:
    return role(statement.mnemonic).reads_first or (len(statement.parts) > 1 and statement.parts[1].kind == "p/m")


def _places(statement: Statement) -> list[int]:
    """The number of the first operand of each kind in the form: lists are several operands."""
    return [number for number, part in enumerate(statement.parts) if part.kind]


def _memory_pairs(
    statement: Statement, places: list[int], latency: float, *, loads: bool
) -> dict[tuple[str, str], float]:
    """A load gives its data after its latency, a base that is written back after one cycle; a store takes none."""
    memory = next(
        (n for n, part in enumerate(statement.parts) if part.address is not None or part.kind == "label"), None
    )
    if memory is None:
        return {}
    if not loads:
        return {(str(n), f"M{memory}"): 0.0 for n, part in enumerate(statement.parts) if part.register}
    listed = sum(part.kind[:1] == "{" or not part.kind for part in statement.parts)
    targets = range(listed) if listed else range(role(statement.mnemonic).writes)
    found = {(f"A{memory}", str(n)): latency for n in targets} | {(f"M{memory}", str(n)): 0.0 for n in targets}
    behind = {(str(n), str(t)): latency for n in range(memory) for t in targets if n not in targets}
    if any(part.address is not None and part.address.post_register for part in statement.parts):
        # by what the base is advanced the data do not wait
        behind |= {(str(memory + 1), str(t)): 0.0 for t in targets}
    return found | behind


def _of_osaca(path: Path, rows: Mapping[str, InstructionData], recipe: Recipe) -> dict[str, InstructionData]:
    """Rows of computing forms that OSACA has: latency and ports; memory operands it does not tell apart."""
    found = {}
    for record in _records(path):
        for form in _forms_of_osaca(record["form_osaca"]):
            row = rows.get(form)
            if row is None or not record["latency"] or not record["ports"] or not float(record["throughput"]):
                continue
            uses = [use for use in _osaca_uses(record["ports"], recipe) if use.cycles]
            found[form] = replace(
                row,
                ports=tuple(uses),
                default_latency=float(record["latency"]),
                latencies={},
                uops=1,
                source=_source("o", recipe),
            )
    return found


_DIVIDES = re.compile(r"div|sqrt")
"""What takes longer with other operands than WINIC's; LLVM's model has the longest times of Arm's guide."""
_OSACA_VECTORS = {"v.s": ("v.4s", "v.2s"), "v.d": ("v.2d",), "v.b": ("v.16b", "v.8b")}


def _forms_of_osaca(text: str) -> Iterator[str]:
    """The forms that OSACA's entry stands for; () for memory operands and wildcards."""
    mnemonic, _, kinds = text.partition(" ")
    if mnemonic[:1] == "@" or mnemonic[:2] in ("ld", "st") or "*" in kinds or not kinds or "label" in kinds:
        return
    short = next((kind for kind in _OSACA_VECTORS if kind in kinds.split(",")), None)
    for vector in _OSACA_VECTORS[short] if short else ("",):
        yield f"{mnemonic} {','.join(vector if kind == short else kind for kind in kinds.split(','))}"


def _osaca_uses(text: str, recipe: Recipe) -> Iterator[PortUse]:
    for use in _uses(text, recipe.osaca_units):
        yield PortUse(tuple(unit for port in use.ports for unit in port.split("|")), use.cycles)


def _as_read(uses: tuple[PortUse, ...], ratio: float) -> list[PortUse]:
    """The ports with as much time on them as a reading leaves, where the model has more."""
    return list(uses) if ratio >= 1 / _TOLD_BY_PORTS else [PortUse(use.ports, use.cycles * ratio) for use in uses]


def _of_winic(path: Path, rows: Mapping[str, InstructionData], recipe: Recipe) -> dict[str, InstructionData]:
    """Rows with the latencies that WINIC read, and its throughput where the ports do not tell it."""
    found = {}
    for record in _records(path):
        row = rows.get(record["form"])
        if row is None or not record["latency"]:
            continue
        read = {(m[1], m[3]): float(m[4]) for m in _CHAIN.finditer(record["latencies"]) if not m[2]}
        if not read:
            continue
        modelled = _between(record["latencies"], row) | _factors(read, row)
        pairs, others = read | modelled, _of_other_files(read, row)
        mnemonic, _, kinds = row.form.partition(" ")
        if role(mnemonic).reads_first and ",p/m," in kinds and ("0", "0") not in pairs and ("1", "0") in pairs:
            # no chain leads from a vector to a predicate: what was read there is the accumulator's
            pairs["0", "0"] = pairs.pop(("1", "0"))
        measured = float(record["rthroughput"] or 0)
        measured = measured if measured > _FASTEST else 0.0
        one_chain = _is_one_chain(measured, pairs)
        through_factors = one_chain and len(pairs) > 1 and len(set(pairs.values())) == 1
        if through_factors:
            # of `sdot v.4s,v.16b,v.16b` a chain through the factors was read in all places: of SVE's, which were read
            # apart, the accumulator is as early as in the model
            pairs["0", "0"] = row.latencies.get(("0", "0"), row.default_latency)
        default = max(pairs.values())
        bound = max((use.cycles / len(use.ports) for use in row.ports), default=0.0)
        told = measured <= _TOLD_BY_PORTS * max(bound, _ISSUE) or one_chain
        divides = _DIVIDES.search(mnemonic) and row.default_latency > default
        found[row.form] = replace(
            row,
            full=row if divides else None,
            ports=tuple(_as_read(row.ports, measured / bound if bound and measured else 1.0)),  # 0: it was not read
            default_latency=default,
            latencies={pair: cycles for pair, cycles in (others | pairs).items() if cycles != default},
            throughput=None if told else measured,
            source=_source("wl" if modelled or others or through_factors else "w", recipe),
        )
    return found


def _between(text: str, row: InstructionData) -> dict[tuple[str, str], float]:
    """The latencies that WINIC read between bounds, `1>0:3-5`: the model's, where it is within them.

    An operand of another kind than the result, or of another width, makes no chain of the instruction alone; it was
    read together with one that leads back, whose share is not known.
    """
    found = {}
    for match in _CHAIN.finditer(text):
        low, high = float(match[4]), float(match[5] or 0)
        if high > low and not match[2]:
            pair = (match[1], match[3])
            found[pair] = min(max(row.latencies.get(pair, row.default_latency), low), high)
    return found


def _factors(read: Mapping[tuple[str, str], float], row: InstructionData) -> dict[tuple[str, str], float]:
    """The model's latency of the factors of `smull`, which is `smaddl` without an addend: only the addend was read."""
    addend = all(int(source) > row.form.count(",") for source, _ in read)
    return {("1", "0"): row.latencies.get(("1", "0"), row.default_latency)} if addend else {}


def _of_other_files(read: Mapping[tuple[str, str], float], row: InstructionData) -> dict[tuple[str, str], float]:
    """The model's latencies of general registers that go to vectors, where only what they meet there was read:
    `mov v.b[i],w`."""
    result, *sources = row.form.partition(" ")[2].split(",")
    if result in _GENERAL:
        return {}
    pairs = [(str(number), "0") for number, kind in enumerate(sources, 1) if kind in _GENERAL]
    return {pair: row.latencies.get(pair, row.default_latency) for pair in pairs if pair not in read}


_GENERAL = ("x", "w")


def _is_one_chain(throughput: float, pairs: Mapping[tuple[str, str], float]) -> bool:
    """Whether what was read as throughput is the latency of the result that each instruction took from the last."""
    latency = pairs.get(("0", "0"))
    return latency is not None and abs(throughput - latency) <= _ONE_CHAIN * latency
