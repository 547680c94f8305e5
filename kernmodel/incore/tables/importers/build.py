"""Build instruction tables: the text of one (`import_uops`), or a folder with a core that can be used
(`write_core`)."""

from __future__ import annotations

from pathlib import Path

from kernmodel.errors import InstructionTableError
from kernmodel.incore.tables.importers.aarch64 import aarch64_recipes, aarch64_table
from kernmodel.incore.tables.importers.microbenchmarks import TAKEN, is_microbenchmarks, read_microbenchmarks
from kernmodel.incore.tables.importers.recipes import intel_table, recipes
from kernmodel.incore.tables.importers.uops import ImportReport
from kernmodel.incore.tables.importers.uopsxml import is_xml, read_xml
from kernmodel.incore.tables.importers.zen import zen_cores, zen_table
from kernmodel.incore.tables.parameters import known_microarchitectures, load_parameters, parameter_text
from kernmodel.incore.tables.table import InstructionTable, parse_ports
from kernmodel.incore.tables.timed import rows_text
from kernmodel.output_files import write_file


def import_uops(path: Path, name: str) -> tuple[str, ImportReport]:
    """The text of the instruction table of microarchitecture `name` from a pack of uops.info records.

    The other inputs of carried cores are looked for beside the pack: ports by scheme, packs of neighbours, and readings
    of InstLatx64 in `../latency-throughput` beside its folder; llvm-mca is run for AVX-512, the Zens and Broadwell.
    Store latencies are measured against the store-forward latency of the parameter file, if there is one.

    Args:
        path: `.jsonl.gz` or `.jsonl`, one record per instruction variant; or `.xml`, uops.info's instructions.xml, the
            only input then; or a folder whose folder `uops` holds the packs of carried cores; or what ibench or
            asmbench printed, whose forms become rows that go before those of the core's table.
        name: "SKL"; a new name is taken as an Intel core.

    Raises:
        InstructionTableError: the pack or the readings cannot be read, or the pack gives no ports.
        ToolError: llvm-mca is needed and missing.
    """
    if is_microbenchmarks(path):
        return _timed_rows(path, name)
    name = name.upper()
    if name in aarch64_recipes():
        text = aarch64_table(path, name)
        rows = sum(not line.startswith("#") for line in text.splitlines())
        return text, ImportReport(rows, rows, 0, {})
    if is_xml(path):
        if name.startswith("ZEN"):
            todo = "give the pack of JSON lines: integer ports, dividers and memory units come from other inputs"
            raise InstructionTableError(f"{name} is not imported from XML", where=str(path), todo=todo)
        return intel_table(path, name, read_xml(path, name))
    if path.is_file() and ".jsonl" not in path.suffixes:
        what = "is neither a file of uops.info (.xml, .jsonl, .jsonl.gz) nor what ibench or asmbench printed"
        raise InstructionTableError(what, where=str(path), todo="give one of these")
    if name in known_microarchitectures() and not (table := Path(load_parameters(name).table)).is_absolute():
        name = table.stem  # Cascade Lake shares Skylake-X's
    core, recipe = zen_cores().get(name), recipes().get(name)
    if path.is_dir() and (inputs := core or recipe):
        path = path / "uops" / f"{inputs.packs[0]}.jsonl.gz"
    if core is not None:
        return zen_table(core, path)
    if name.startswith("ZEN"):
        todo = "describe its units in kernmodel/incore/tables/importers/cores.yml"
        raise InstructionTableError(f"{name} is no Zen core that the importer knows", where=str(path), todo=todo)
    return intel_table(path, name)


def _timed_rows(path: Path, name: str) -> tuple[str, ImportReport]:
    """A file of rows from results of ibench or asmbench."""
    table = InstructionTable.open(load_parameters(name))
    found = read_microbenchmarks(path, table)
    header = [
        f"Rows measured by {found.tool}, {path.name}.",
        *(note.text for note in found.notes if note.code == TAKEN),
    ]
    left_out: dict[str, tuple[str, ...]] = {}
    for note in found.notes:
        if note.code != TAKEN:
            left_out[str(note)] = (note.text,)
    return rows_text(found.forms, table, header), ImportReport(found.readings, len(found.forms), 0, left_out)


def write_core(path: Path, name: str, folder: Path, like: str | None = None) -> tuple[str, ...]:
    """Import a core into a folder: its table, and a parameter file where the folder has none; lines that say what.

    Args:
        path: as in `import_uops`.
        name: of the core.
        folder: made if it does not exist.
        like: the core whose figures a new parameter file takes over; else the carried core of the same name.

    Raises:
        InstructionTableError: as `import_uops`; the core is not carried and `like` is missing; the folder cannot be
            written.
    """
    if is_microbenchmarks(path):
        todo = "write them to a file, -o rows.txt, and give that as --instructions"
        raise InstructionTableError("holds times of single forms, which make no core", where=str(path), todo=todo)
    name = name.upper()
    figures = load_parameters(like or name) if like or name in known_microarchitectures() else None
    if figures is None:
        todo = "name the core whose figures (issue width, front end, ...) are nearest with --like"
        raise InstructionTableError(f"{name} has no parameter file", where=str(path), todo=todo)
    text, report = import_uops(path, name)
    parameters = folder / f"{name}.yml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / f"{name}.txt", text)
        if not parameters.exists():
            write_file(parameters, parameter_text(figures, name, f"{name}.txt", _ports_in(text)))
    except OSError as error:
        raise InstructionTableError(f"cannot be written ({error.strerror})", where=str(folder)) from None
    lines = [f"{report.rows} rows cover {report.coverage:.1%} of {report.records} records"]
    lines += [f"left out {len(strings)}: {reason}" for reason, strings in report.left_out.items()]
    return (*lines, f"use it as --uarch {parameters}, or set KERNMODEL_UARCH_PATH={folder} and write --uarch {name}")


def _ports_in(text: str) -> tuple[str, ...]:
    """All ports that the rows of a table's text name."""
    cells = {line.split("|")[1].strip() for line in text.splitlines() if not line.startswith("#")}
    return tuple(sorted({port for cell in cells for use in parse_ports(cell) for port in use.ports}))
