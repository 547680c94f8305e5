"""Parameter files of microarchitectures: `data/<NAME>.yml` in, `Parameters` out.

What may stand in them is declared in `kernmodel.incore.tables.core_parameters`: an unknown key, a value of another
type or out of range and a figure of another kind of front end are errors with file and line.

Besides the carried files there are those of the folders that the environment variable KERNMODEL_UARCH_PATH lists,
which win over carried ones of the same name; a name may be the path of a file as well. The table of such a file lies
beside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from operator import attrgetter
from pathlib import Path
from typing import Any

import yaml

from kernmodel import isa
from kernmodel.errors import InstructionTableError
from kernmodel.incore.tables.core_parameters import (
    DELIVERED,
    FRONT_END_KIND,
    FRONT_ENDS,
    MECHANISMS,
    QUEUES,
    Course,
    Declared,
    Figure,
    Parameters,
    Port,
    PortGroups,
    Ports,
    Shares,
    Times,
    Words,
    declared,
    execution_ports,
    front_end_kind,
)
from kernmodel.isa import ROWS_ENDING, at_vectors, split_rows, split_vectors, with_rows
from kernmodel.limits import YAML_BYTES, remembered
from kernmodel.patterns import pattern
from kernmodel.schema.document import Document, FileKind, document_in, read_document, read_text
from kernmodel.schema.fields import Choice, Field, FieldReader, Problem, Quantity, Table, Values, names, suggest, text
from kernmodel.schema.fields import items as list_items
from kernmodel.user_files import read_file

_DATA = Path(__file__).parents[1] / "data"
_ALIASES = pattern(r"^aliases: *\[([^\]]*)\]", re.MULTILINE)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
PARAMETER_FILE = FileKind("parameter file", "docs/microarchitectures.md", InstructionTableError)


def _instruction_set(node: yaml.Node) -> str:
    """One of those that are known when the file is read."""
    return Choice(isa.names())(node)


_IDENTITY: Table = {
    "name": Field(text),
    "title": Field(text),
    "isa": Field(_instruction_set),
    "aliases": Field(names),
    "vector_bits": Field(names, required=False, default=()),
    "table": Field(text),
    "ports": Field(names),
    "front_end": Field(FRONT_END_KIND),
    "sources": Field(list_items, required=False),
    "figures": Field(lambda node: node),
}
"""The keys of a file; `sources` only gives texts their names (YAML's anchors), which figures repeat."""

UARCH_PATH = "KERNMODEL_UARCH_PATH"
"""Environment variable with further folders of parameter files, separated as in PATH."""


def known_microarchitectures() -> tuple[str, ...]:
    """Names of all microarchitectures that have a parameter file, sorted."""
    return tuple(sorted(_files()))


def _files() -> dict[str, Path]:
    """The parameter files by name in capitals; those of the user's folders, the first folder's first, win."""
    own = [Path(folder) for folder in os.environ.get(UARCH_PATH, "").split(os.pathsep) if folder]
    return {file.stem.upper(): file for folder in (_DATA, *reversed(own)) for file in folder.glob("*.yml")}


def load_parameters(name: str) -> Parameters:
    """The parameters of a microarchitecture by its name or an alias, in any case, or by the path of its file.

    With "@256" behind it they are those at vectors of so many bits, with "+FILE.txt" with a file's rows before the
    table's.

    Raises:
        InstructionTableError: the name is unknown (names the known ones), or the file is malformed.
    """
    core, bits = split_vectors(name)
    if bits is not None:
        return _with_vectors(load_parameters(core), bits)
    core, rows = split_rows(name)
    if rows is not None:
        return _with_rows(load_parameters(core), Path(rows))
    if name.lower().endswith(".yml"):
        return _without_length(read_parameters(Path(name)))
    files = _files()
    return _without_length(read_parameters(files.get(name.upper()) or _by_alias(name, files)))


def _with_rows(parameters: Parameters, file: Path) -> Parameters:
    """The core with the rows of a file before those of its table.

    Raises:
        InstructionTableError: the file cannot be read, or is no table of differences to that of this core.
    """
    from kernmodel.incore.tables.table import base_of

    wanted, found = parameters.table, base_of(file)
    if found != wanted:
        what = f"holds rows for {found}, not for {wanted} of {parameters.name}" if found else "is no file of rows"
        todo = f"give what `kernmodel measure instruction … --uarch {parameters.name} -o FILE{ROWS_ENDING}` writes"
        raise InstructionTableError(what, where=str(file), todo=todo)
    return replace(parameters, table=str(file.absolute()))


def canonical_name(name: str) -> str:
    """One name for all spellings and aliases of a microarchitecture; a path, whatever core its file names, stays.

    Raises:
        InstructionTableError: as `load_parameters`.
    """
    return canonical(name, load_parameters(name))


def canonical(name: str, parameters: Parameters) -> str:
    """The canonical name of a microarchitecture whose parameters are known."""
    bare, bits = split_vectors(name)
    core, rows = split_rows(bare)
    if core.lower().endswith(".yml"):
        return name
    found = parameters.name if rows is None else with_rows(parameters.name, rows)
    return found if bits is None else at_vectors(found, bits)


def _without_length(parameters: Parameters) -> Parameters:
    """The core as its file has it; one that has several lengths of vectors, of none of these."""
    found = isa.isa_of(parameters.isa).with_vectors(0) if len(parameters.vector_bits) > 1 else None
    return parameters if found is None else replace(parameters, isa=found[0], widest_isa=parameters.isa)


def _with_vectors(parameters: Parameters, bits: int) -> Parameters:
    """The core with vectors of another length than its file's.

    Raises:
        InstructionTableError: it has no such vectors.
    """
    found = isa.isa_of(parameters.widest_isa or parameters.isa).with_vectors(bits)
    if found is None or str(bits) not in parameters.vector_bits:
        known = f"{', '.join(parameters.vector_bits)} bits" if parameters.vector_bits else "one length alone"
        what = f"{parameters.name} has no vectors of {bits} bits to choose"
        raise InstructionTableError(what, where="--vl", todo=f"leave it out; the core has {known}")
    title = f"{parameters.title}, vectors of {bits} bits (rows of its table: those of the longest)"
    return replace(parameters, isa=found[0], title=title)


def _by_alias(name: str, files: Mapping[str, Path]) -> Path:
    """The file that lists the alias; read as text, for a search need not parse every file."""
    names = {}
    known = sorted(files)
    for path in files.values():
        text = read_file(path, "a parameter file", YAML_BYTES, error=InstructionTableError).decode("utf-8", "replace")
        match = _ALIASES.search(text)
        for alias in (match[1] if match else "").split(","):
            names[alias.strip().lower()] = path
    if name.lower() in names:
        return names[name.lower()]
    near = get_close_matches(name.upper(), known, n=1)
    hint = f"did you mean {near[0]}? known are {', '.join(known)}" if near else f"known are {', '.join(known)}"
    raise InstructionTableError(f"unknown microarchitecture {name!r}", todo=hint)


def read_parameters(path: Path) -> Parameters:
    """The parameters in this file.

    Raises:
        InstructionTableError: the first of its problems by line: no YAML, a key that is missing or unknown, a value of
            another type or out of range, a figure without source, figures that contradict one another.
    """
    return _described(path, path.parent.absolute(), *read_text(path, PARAMETER_FILE))


@remembered  # every question about a kernel asks for those of its machine
def _described(path: Path, folder: Path, text: str, digest: str) -> Parameters:
    """The parameters that the text of a file in this folder describes."""
    parameters, problems = _checked(document_in(path, PARAMETER_FILE, text, digest), folder)
    if parameters is None:
        raise problems[0].error()
    return parameters


def check_parameters(path: Path) -> tuple[Parameters | None, tuple[Problem, ...]]:
    """The parameters in this file, None if there is any problem, and all problems by line.

    Raises:
        InstructionTableError: no YAML.
    """
    return _checked(read_document(path, PARAMETER_FILE), path.parent.absolute())


def _checked(document: Document, folder: Path) -> tuple[Parameters | None, tuple[Problem, ...]]:
    """The same for the document of a file in this folder."""
    reading = FieldReader(document.file, PARAMETER_FILE)
    content = reading.fields(reading.entries(document.root, ""), "", _IDENTITY)
    if "figures" in content and "front_end" in content:
        _read_figures(reading, reading.entries(content["figures"], "figures"), content)
    if reading.problems:
        return None, tuple(sorted(reading.problems, key=lambda problem: problem.where.line or 0))
    groups = _groups(content["front_end"])
    values, sources = content["values"], content["figure sources"]
    table = content["table"] if folder == _DATA else str(folder / content["table"])
    return Parameters(
        **{key: content[key] for key in ("name", "title", "isa", "ports", "aliases", "vector_bits")},
        table=table,
        sources=sources,
        **_given(declared(Parameters), values),
        **_made(groups, values),
    ), ()


def _groups(kind: str) -> dict[str, type]:
    """The groups of figures that a core with this kind of front end may have, by attribute of `Parameters`."""
    return {**MECHANISMS, **FRONT_ENDS[kind]}  # type: ignore[index]


def _made(groups: Mapping[str, type], values: Values) -> Values:
    """The groups of figures, those that have a name behind a point in the ones before it."""
    made: dict[str, dict[str, Any]] = {"": {}}
    for name, group in reversed(list(groups.items())):
        owner, _, attribute = name.rpartition(".")
        made.setdefault(owner, {})[attribute] = group(**_given(declared(group), values), **made.pop(name, {}))
    return made[""]


def _given(figures: Iterable[Declared], values: Values) -> Values:
    return {each.attribute: values[each.figure.key] for each in figures if each.figure.key in values}


def _read_figures(reading: FieldReader, entries: Mapping[str, yaml.Node], content: Values) -> None:
    """Values and sources of the figures, each written as `key: {value: …, source: …}`."""
    kind = content["front_end"]
    fitting = [each for group in (Parameters, *_groups(kind).values()) for each in declared(group)]
    known = {each.figure.key: each.figure for each in fitting}
    values, sources = dict[str, Any](), dict[str, str]()
    elsewhere = {} if entries.keys() <= known.keys() else _of_other_kinds(kind, known)
    meant = reading.unknown((key for key in entries if key not in elsewhere), "figures", known)
    for key, node in entries.items():
        dotted = f"figures.{key}"
        if key in elsewhere:
            todo = f"leave it out, or write front_end: {elsewhere[key]}"
            reading.problem(dotted, f"has no meaning with front_end {kind}", todo)
        if key not in known:
            continue
        pair = reading.entries(node, dotted)
        for name in ("value", "source"):
            if name not in pair:
                reading.problem(f"{dotted}.{name}", "is missing", "write key: {value: …, source: …}")
        reading.unknown(pair, dotted, ("value", "source"))
        if "value" in pair and "source" in pair:
            values[key] = reading.value(pair["value"], dotted, known[key].kind)
            sources[key] = reading.value(pair["source"], f"{dotted}.source", text)
            _check_ports(reading, known[key], values[key], content.get("ports", ()))
    missing = dict.fromkeys(each.figure.key for each in fitting if each.required)
    for key in missing.keys() - entries.keys() - meant:
        reading.problem(f"figures.{key}", "is missing", f"{PARAMETER_FILE.guide} says what belongs there")
    content["values"], content["figure sources"] = values, sources
    _check_figures(reading, values)


def _of_other_kinds(kind: str, known: Container[str]) -> dict[str, str]:
    """By figure that belongs to another kind of front end than this one, that kind."""
    return {
        each.figure.key: other
        for other, groups in FRONT_ENDS.items()
        if other != kind
        for group in groups.values()
        for each in declared(group)
        if each.figure.key not in known
    }


def _check_ports(reading: FieldReader, figure: Figure, value: Any, ports: Sequence[str]) -> None:
    """Note ports that the core lacks."""
    if value is None or not ports:
        return
    named: Iterable[str] = ()
    if isinstance(figure.kind, Port):
        named = (value,)
    elif isinstance(figure.kind, Ports):
        named = value
    elif isinstance(figure.kind, PortGroups):
        named = (port for group in value for port in group)
    known = execution_ports(ports)
    for port in dict.fromkeys(named):
        if port not in known:
            reading.problem(f"figures.{figure.key}", f"names port {port!r}, which the core lacks", suggest(port, known))


_CHASING = ("fast pointer chasing latency", "fast pointer chasing displacement")
_SPLITS = ("split 256-bit load", "split 512-bit load")
_AMONG = (
    ("port of a fifth operation", "ports assigned together"),
    ("ports of two operations per cycle", "ports assigned together"),
    ("port that waits for its result", "ports of one result per cycle"),
)
"""Figures that name ports, and those that name all ports that they may name."""
_QUEUES = tuple(f"{queue} entries" for queue in ("ROB", "RS", "IDQ", "IQ", "load scheduler", "store scheduler"))
_OF_EACH = (("scheduler ports", "scheduler entries", 7),)
"""Figures that give groups, those that give a number for each, and how many the simulation has room for."""
_FILLED_AT_ONCE = (
    ("ROB entries", "issue width"),
    ("op queue entries", "op cache width"),
    ("op queue entries", "decoded instructions per cycle"),
    ("op queue entries", "issue width"),
)
"""Buffers, and what enters or leaves them in a cycle."""
_CONSTANTS = ("constants delivered", "long constants delivered")
_WIDTHS = ("issue width", "DSB width", "decoders", "predecode width")


def _check_figures(reading: FieldReader, values: Values) -> None:
    """Note figures that contradict one another."""
    _check_together(reading, values, "JCC erratum", ("JCC erratum block bytes",))
    _check_together(reading, values, "fast pointer chasing", _CHASING)
    _check_together(reading, values, "LSD", ("LSD bars",), ("LSD unroll",))
    if any(values.get(key) for key in _SPLITS) and "cache line bytes" not in values:
        reading.problem("figures.cache line bytes", "is missing", f"give it, or leave out {' and '.join(_SPLITS)}")
    latency, fast = values.get("load latency"), values.get(_CHASING[0])
    if latency is not None and fast is not None and fast > latency:
        reading.problem(f"figures.{_CHASING[0]}", f"{fast:g} cy is longer than the load latency", "check both")
    for groups, numbers, most in _OF_EACH:
        found, given = values.get(groups, ()), values.get(numbers, ())
        if found is None or given is None:
            continue
        if len(found) != len(given):
            what = f"has {len(given)} numbers for {len(found)} {groups}"
            reading.problem(f"figures.{numbers}", what, "write one for each")
        elif len(found) > most:
            reading.problem(f"figures.{groups}", f"are {len(found)}, more than {most}", f"write up to {most}")
    _check_interleaving(reading, values)
    _check_constants(reading, values)
    together = values.get("ports assigned together") or ()
    if len(together) > QUEUES:
        what = f"are {len(together)}, more than {QUEUES}"
        reading.problem("figures.ports assigned together", what, f"write up to {QUEUES}")
    for key, among in _AMONG:
        given = values.get(key) or ()
        for port in {given} if isinstance(given, str) else sorted(set(given)):
            if port not in (values.get(among) or ()):
                todo = "name one of them" if isinstance(given, str) else "name ports of these"
                reading.problem(f"figures.{key}", f"{port} is not among {among}", todo)
    for key, several in (("paths of third vectors", False), ("paths of results", True)):
        for pair in values.get(key) or ():
            if len(set(pair)) != len(pair) or len(pair) < 2 or (len(pair) > 2 and not several):
                what = f"{', '.join(pair) or 'nothing'} are not two ports{' or more' * several}"
                todo = f"write {'the ports' if several else 'pairs: the port'}, and the one whose path it takes"
                reading.problem(f"figures.{key}", what, todo)
    if values.get("queued ports") and "non-scheduling queue entries" not in values:
        reading.problem("figures.non-scheduling queue entries", "is missing", "give it, or leave out queued ports")
    if values.get("DSB width") is None:
        _check_dispatch(reading, values)
    else:
        widest = max(values.get(key) or 0 for key in _WIDTHS)
        for key in _QUEUES:
            if (values.get(key) or 2 * widest) < 2 * widest:
                what = f"{values[key]} hold less than two cycles of µops ({2 * widest})"
                reading.problem(f"figures.{key}", what, "check it, and the widths")


def _check_constants(reading: FieldReader, values: Values) -> None:
    """Note what is wrong with the constants that the op cache delivers."""
    width = values.get("op cache width") or 0
    for key, other in (_CONSTANTS, _CONSTANTS[::-1]):
        given = values.get(key) or ()
        if given and not values.get(other):
            reading.problem(f"figures.{other}", "is missing", f"give it with {key}")
        if given and len(given) != width:
            what = f"has {len(given)} numbers for an op cache width of {width}"
            reading.problem(f"figures.{key}", what, "write one for each number of macro-ops")
        elif len(given) > DELIVERED:
            what = f"has {len(given)} numbers, more than {DELIVERED}"
            reading.problem(f"figures.{key}", what, "leave it out")
        elif list(given) != sorted(given, reverse=True):
            reading.problem(f"figures.{key}", "grows", "more macro-ops go with no more constants")


def _check_dispatch(reading: FieldReader, values: Values) -> None:
    """Note buffers that hold less than what enters or leaves them in a cycle."""
    for buffer, width in _FILLED_AT_ONCE:
        entries, most = values.get(buffer), values.get(width)
        if entries is not None and most is not None and entries < most:
            what = f"{entries} hold less than the {width}, {most}"
            reading.problem(f"figures.{buffer}", what, "check both")


def _check_interleaving(reading: FieldReader, values: Values) -> None:
    """Note what is wrong with the ports of two schedulers between which µops are interleaved."""
    pairs = values.get("interleaved ports") or ()
    numbers = {f"interleaving {name}": number for name, number in (("gaps", 2), ("fills", 2), ("delays", 4))}
    for key, number in numbers.items():
        given = values.get(key) or ()
        if bool(pairs) != bool(given):
            reading.problem(
                f"figures.{key}", "stands alone" if given else "is missing", "give it with interleaved ports"
            )
        elif pairs and len(given) != number:
            what = f"has {len(given)} number{'s' * (len(given) != 1)}"
            reading.problem(f"figures.{key}", what, f"write {number}")
    delays: tuple[int, ...] = values.get("interleaving delays") or ()
    if len(delays) == 4 and not max(delays[:2]) <= delays[2] < 8:
        what = "counts what left sooner than what entered, or later than after 7 cycles"
        reading.problem("figures.interleaving delays", what, "give the third as the longest of the first three")
    if not pairs:
        return
    schedulers = [set(group) for group in values.get("scheduler ports") or ()]
    sides = [set(side) for side in zip(*pairs, strict=False)]
    apart = len(sides) == 2 and all(any(side <= own for own in schedulers) for side in sides)
    if len(pairs) > 4 or any(len(pair) != 2 for pair in pairs) or not apart:
        what = "are no pairs of ports of two schedulers"
        reading.problem("figures.interleaved ports", what, "write up to four, the first of each of one scheduler")
    if sorted(port for pair in pairs for port in pair) != sorted(values.get("queued ports") or ()):
        reading.problem("figures.interleaved ports", "are not the queued ports", "write all of these, and no others")


def _check_together(
    reading: FieldReader, values: Values, mechanism: str, needed: Sequence[str], allowed: Sequence[str] = ()
) -> None:
    """Note figures of a mechanism that are missing where the core has it, or that stand where it has it not."""
    for key in needed if values.get(mechanism) else ():
        if key not in values:
            reading.problem(f"figures.{key}", "is missing", f"give it, or write {mechanism}: false")
    for key in () if values.get(mechanism) is not False else (*needed, *allowed):
        if values.get(key):
            reading.problem(f"figures.{key}", f"has no meaning where {mechanism!r} is false", "leave it out")


def parameter_text(figures: Parameters, name: str, table: str, ports: Sequence[str]) -> str:
    """The text of a parameter file for a core that takes over another one's figures.

    Args:
        figures: of the other core.
        name: of the new core; table: file name of its table.
        ports: that its rows name; those of the other core stand first, in its order.
    """
    kinds = _groups(front_end_kind(figures))
    groups: list[tuple[object, type]] = [(figures, Parameters)]
    groups += [(attrgetter(attribute)(figures), kind) for attribute, kind in kinds.items()]
    values = {
        each.figure.key: _written(getattr(group, each.attribute), each.figure)
        for group, kind in groups
        for each in declared(kind)
        if each.figure.key in figures.sources
    }
    prefix = "" if figures.name == name else f"taken over from {figures.name}: "
    content = {
        "name": name,
        "title": figures.title if figures.name == name else f"{name} (figures of {figures.title})",
        "isa": figures.widest_isa or figures.isa,
        "aliases": [],
        "table": table,
        "ports": [*(port for port in figures.ports if port in ports), *(p for p in ports if p not in figures.ports)],
        "front_end": front_end_kind(figures),
        "figures": {key: {"value": value, "source": prefix + figures.sources[key]} for key, value in values.items()},
    }
    return yaml.dump(content, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=120)


def _written(value: Any, figure: Figure) -> Any:
    """A value as it stands in a file."""
    if isinstance(figure.kind, Shares):
        return {round(100 * part): share for part, share in value}
    if isinstance(figure.kind, Course):
        return {int(number): f"{time:g} cy" for number, time in value}
    if isinstance(figure.kind, Times):
        return [f"{time:g} cy" for time in value]
    if isinstance(figure.kind, Quantity):
        return f"{value:g} cy"
    if isinstance(figure.kind, Words):
        return " ".join(value)
    return [_written(item, figure) for item in value] if isinstance(value, tuple) else value
