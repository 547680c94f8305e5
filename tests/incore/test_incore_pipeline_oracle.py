"""Against uiCA's simulation on real code and on loops of numerical kernels.

The data stand beside the checkout (shared/data/oracle); without them the tests are skipped. uiCA divides easy operands,
assumes that all addresses differ and that every store can be forwarded.
"""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
from simulations import pipeline_input, simulate

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.engine.model import Switches
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "oracle"
UICA = Switches(memory="different", blocked_loads=False)
STEP = 8
"""Every so many blocks of the larger file; benchmarks/oracle_accuracy.py takes all."""


@cache
def rows(name: str) -> tuple[dict[str, str], ...]:
    if not (ORACLE / name).exists():
        pytest.skip(f"no {name}")
    if library() is None:
        pytest.skip("the compiled engine was not built")
    with gzip.open(ORACLE / name, "rt") as file:
        return tuple(csv.DictReader(file))


def errors(chosen: list[tuple[str, float]], arch: str, loop: bool) -> list[float]:
    """Absolute errors in percent; blocks that divide are left out, whose rows may hold for other operands."""
    parameters = load_parameters(arch)
    table = InstructionTable.open(parameters)
    core = modelled_core(parameters, switches=UICA)
    found = []
    for code, truth in chosen:
        instructions = decode_bytes(bytes.fromhex(code)).instructions
        data = []
        for instruction in instructions:
            row = table.lookup(instruction)
            indexed = row is not None and row.indexed is not None and any(m.index for m in instruction.memory)
            data.append(row.indexed if row is not None and indexed else row)
        if any("0DV" in use.ports for row in data if row is not None for use in row.ports):
            continue
        block = pipeline_input(instructions, data, core, "loop" if loop else "unrolled")
        cycles = float(simulate(block, engine="compiled").cycles_per_pass)
        found.append(100 * abs(cycles - truth) / truth)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["SNB", "HSW", "SKL"])
@pytest.mark.parametrize("notion", ["l", "u"])
def test_real_code(arch: str, notion: str) -> None:
    column, truth = ("hex_loop", "uica_l") if notion == "l" else ("hex_unrolled", "uica_u")
    known = [row for row in rows("dev.csv.gz") if row["arch"] == arch and not float(row["n_unknown"] or 0)]
    chosen = [(row[column], float(row[truth])) for row in known[::STEP] if row[truth]]
    found = errors(chosen, arch, notion == "l")
    assert fmean(found) < 2.0
    assert sum(error <= 5 for error in found) > 0.9 * len(found)


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ["SNB", "IVB", "HSW", "BDW", "SKL"])
def test_loops_of_numerical_kernels(arch: str) -> None:
    chosen = [(row["hex"], float(row["uica_l"])) for row in rows("hpc-loops-dev.csv.gz") if row["arch"] == arch]
    assert fmean(errors(chosen, arch, loop=True)) < 1.2
