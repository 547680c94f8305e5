"""Build instruction tables: one from a pack (`import_uops`), or all that the package carries (`build_all`).

    python -m kernmodel.incore.tables.importers.build --data DIR [--out DIR]

DIR holds `uops/*.jsonl.gz` (uops.info) and `latency-throughput/*.csv` (InstLatx64); llvm-mca 19 must be installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernmodel.errors import InstructionTableError, KernmodelError
from kernmodel.incore.tables.importers.recipes import RECIPES, intel_table
from kernmodel.incore.tables.importers.uops import ImportReport
from kernmodel.incore.tables.importers.uopsxml import is_xml, read_xml
from kernmodel.incore.tables.importers.zen import ZEN_CORES, zen_table
from kernmodel.incore.tables.parameters import known_microarchitectures, load_parameters, parameter_text
from kernmodel.incore.tables.table import DATA, parse_ports
from kernmodel.output_files import write_file

PACKS = {name: recipe.packs[0] for name, recipe in RECIPES.items()} | {core.name: core.pack for core in ZEN_CORES}
"""Pack of uops.info that each carried table is built from."""

_TABLES = {"CLX": "SKX"}
"""Cores that share the table of another."""


def import_uops(path: Path, name: str) -> tuple[str, ImportReport]:
    """The text of the instruction table of microarchitecture `name` from a pack of uops.info records.

    The other inputs of carried cores are looked for beside the pack: ports by scheme, packs of neighbours, and readings
    of InstLatx64 in `../latency-throughput` beside its folder; llvm-mca is run for AVX-512, the Zens and Broadwell.
    Store latencies are measured against the store-forward latency of the parameter file, if there is one.

    Args:
        path: `.jsonl.gz` or `.jsonl`, one record per instruction variant; or `.xml`, uops.info's instructions.xml, the
            only input then.
        name: "SKL"; a new name is taken as an Intel core.

    Raises:
        InstructionTableError: the pack or the readings cannot be read, or the pack gives no ports.
        ToolError: llvm-mca is needed and missing.
    """
    name = name.upper()
    if is_xml(path):
        if name.startswith("ZEN"):
            todo = "give the pack of JSON lines: integer ports, dividers and memory units come from other inputs"
            raise InstructionTableError(f"{name} is not imported from XML", where=str(path), todo=todo)
        return intel_table(path, name, read_xml(path, name))
    core = next((core for core in ZEN_CORES if core.name == name), None)
    if core is not None:
        forward = load_parameters(name).store_forward_latency if name in known_microarchitectures() else None
        readings = path.parent.parent / "latency-throughput"
        return zen_table(core, path, readings / f"{core.readings}.csv", forward)
    if name.startswith("ZEN"):
        todo = "describe its units in kernmodel/incore/tables/importers/zen.py"
        raise InstructionTableError(f"{name} is no Zen core that the importer knows", where=str(path), todo=todo)
    return intel_table(path, _TABLES.get(name, name))


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


def build_all(data: Path, out: Path) -> Mapping[str, ImportReport]:
    """Build every carried table from the packs below `data` into `out`; the reports by table.

    Raises:
        InstructionTableError, ToolError: a pack is missing or malformed, llvm-mca is missing.
    """
    reports = {}
    for name, pack in PACKS.items():
        text, reports[name] = import_uops(data / "uops" / f"{pack}.jsonl.gz", name)
        (out / f"{name}.txt").write_text(text, encoding="utf-8")
    return reports


def main(arguments: Sequence[str] | None = None) -> int:
    """Build all tables from the command line; the exit status."""
    parser = argparse.ArgumentParser(description="Build the instruction tables that the package carries.")
    parser.add_argument("--data", type=Path, required=True, help="folder with uops/ and latency-throughput/")
    parser.add_argument("--out", type=Path, default=DATA, help="folder for the tables (default: the package's)")
    options = parser.parse_args(arguments)
    try:
        reports = build_all(options.data, options.out)
    except KernmodelError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    for name, report in reports.items():
        left = ", ".join(f"{len(strings)} for {reason}" for reason, strings in report.left_out.items())
        counts = f"{report.records} records, {report.rows} rows, {report.merged} merged"
        sys.stdout.write(f"{name}: {counts}, {report.coverage:.2%} covered; left out: {left or 'none'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
