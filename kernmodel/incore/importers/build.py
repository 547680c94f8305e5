"""Build instruction tables: one from a pack (`import_uops`), or all that the package carries (`build_all`).

    python -m kernmodel.incore.importers.build --data DIR [--out DIR]

DIR holds `uops/*.jsonl.gz` (uops.info) and `latency-throughput/*.csv` (InstLatx64); llvm-mca 19 must be installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from kernmodel.errors import InstructionTableError, KernmodelError
from kernmodel.incore.importers.avx512 import server_table
from kernmodel.incore.importers.dividers import llvm_readings
from kernmodel.incore.importers.instlatx64 import read_instlatx64
from kernmodel.incore.importers.intel import intel_table
from kernmodel.incore.importers.llvm import llvm_version
from kernmodel.incore.importers.uops import ImportReport
from kernmodel.incore.importers.zen import ZEN_CORES, zen_table
from kernmodel.incore.parameters import known_microarchitectures, load_parameters
from kernmodel.incore.tables import DATA

PACKS = {"SNB": "SNB", "IVB": "IVB", "HSW": "HSW", "BDW": "BDW", "SKL": "SKL", "SKX": "SKL"}
PACKS |= {core.name: core.pack for core in ZEN_CORES}
"""Pack of uops.info that each carried table is built from; Cascade Lake shares the table of Skylake-X."""

READINGS = {"SNB": "snb", "IVB": "hsw", "HSW": "hsw", "SKL": "skl"}
"""Readings of InstLatx64 for the dividers. None are at hand of Ivy Bridge; its divider is Haswell's by uops.info's
figures for easy operands, which are the same."""

_LLVM_DIVIDERS = {"BDW": "broadwell"}
"""LLVM's model for the dividers of cores without readings."""

_SERVERS = ("SKX", "CLX")
_SERVER_READINGS = "clx"


def import_uops(path: Path, name: str) -> tuple[str, ImportReport]:
    """The text of the instruction table of microarchitecture `name` from a pack of uops.info records.

    Readings of InstLatx64 are looked for in `../latency-throughput` beside the pack's folder (for the dividers of the
    carried cores, and for AVX-512), and llvm-mca is run for the Zens, Skylake-X and Broadwell. Store latencies are
    measured against the store-forward latency of the parameter file, if there is one.

    Args:
        path: `.jsonl.gz` or `.jsonl`, one record per instruction variant.
        name: "SKL"; a new name is taken as an Intel core.

    Raises:
        InstructionTableError: the pack or the readings cannot be read, or the pack gives no ports.
        ToolError: llvm-mca is needed and missing.
    """
    name = name.upper()
    forward = load_parameters(name).store_forward_latency if name in known_microarchitectures() else None
    readings = path.parent.parent / "latency-throughput"
    core = next((core for core in ZEN_CORES if core.name == name), None)
    if core is not None:
        return zen_table(core, path, readings / f"{core.readings}.csv", forward)
    if name.startswith("ZEN"):
        todo = "describe its units in kernmodel/incore/importers/zen.py"
        raise InstructionTableError(f"{name} is no Zen core that the importer knows", where=str(path), todo=todo)
    if name in _SERVERS:
        return server_table(path, readings / f"{_SERVER_READINGS}.csv", forward)
    if name in READINGS:
        file = readings / f"{READINGS[name]}.csv"
        return intel_table(path, name, forward, lambda _: read_instlatx64(file), f"InstLatx64 readings {file.name}")
    if name in _LLVM_DIVIDERS:
        cpu = _LLVM_DIVIDERS[name]
        return intel_table(path, name, forward, partial(llvm_readings, cpu), f"{llvm_version()}, -mcpu={cpu}")
    return intel_table(path, name, forward)


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
