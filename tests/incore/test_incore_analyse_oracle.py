"""Against Facile's port and dependency components and uiCA's simulation, on compiled loops of numerical kernels.

The data stand beside the checkout (shared/data/oracle); without them the tests are skipped.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from kernmodel.code.listing import decode_bytes
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.model import InCore
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "oracle" / "hpc-loops-dev.csv.gz"


@cache
def answers() -> tuple[tuple[dict[str, str], InCore], ...]:
    if not ORACLE.exists():
        pytest.skip(f"no {ORACLE.name}")
    with gzip.open(ORACLE, "rt") as file:
        rows = list(csv.DictReader(file))
    cores = {name: load_parameters(name) for name in sorted({row["arch"] for row in rows})}
    tables = {name: InstructionTable.open(parameters) for name, parameters in cores.items()}
    result = []
    for row in rows:
        listing = decode_bytes(bytes.fromhex(row["hex"]))
        loop = AssemblyLoop(listing.instructions, listing.isa, "binary", "", "", None, (), "", "marked", ())
        known = replace(modelled_core(cores[row["arch"]]), splits={})  # neither peer knows loads across lines
        result.append((row, analyse(loop, cores[row["arch"]], tables[row["arch"]], model=known)))
    return tuple(result)


def describe(row: dict[str, str]) -> str:
    return " ".join(row[key] for key in ("arch", "kernel", "compiler", "opt", "hex"))


def through_memory(answer: InCore) -> bool:
    return answer.lcd is not None and any(name.startswith("memory") for name in answer.lcd.carriers)


def divides(answer: InCore) -> bool:
    return any("0DV" in use.ports for uses in answer.uses for use in uses)


@pytest.mark.thorough
def test_every_instruction_is_known() -> None:
    assert {form for _, answer in answers() for form in answer.uncertain} == set()


def test_ports_agree_where_no_divider_binds() -> None:
    """Facile has no divider component (README of the data); no port binds where its measured throughput does."""
    for row, answer in answers():
        if "0DV" in answer.binding_ports or not answer.binding_ports:
            assert answer.throughput >= float(row["ports"]), describe(row)
        else:
            assert answer.throughput == pytest.approx(float(row["ports"]), abs=0.01), describe(row)


def test_dependencies_agree() -> None:
    """Facile follows memory by equal address texts: not along moving addresses, and with unrelated pointers equal."""
    differing = 0
    for row, answer in answers():
        ours = answer.lcd.cycles if answer.lcd else 0.0
        if ours == pytest.approx(float(row["precedence"]), abs=0.01):
            continue
        differing += 1
        aliasing = float(row["uica_l_stack"]) > 1.05 * float(row["uica_l"])
        assert through_memory(answer) or aliasing, describe(row)
    assert differing <= len(answers()) // 20


def test_the_bounds_do_not_exceed_the_simulation() -> None:
    """uiCA simulates ports, dependencies and front end; its memory follows equal address texts only.

    Its finite window says 12.59 cycles for 13 µops on one port, hence the tolerance. Its divisions and square roots are
    those of easy operands.
    """
    for row, answer in answers():
        if not through_memory(answer) and not divides(answer):
            bound = max(answer.throughput, answer.lcd.cycles if answer.lcd else 0.0)
            assert bound <= 1.04 * float(row["uica_l"]) + 0.02, describe(row)
