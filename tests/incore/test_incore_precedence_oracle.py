"""Ports and precedence against Facile's on blocks of applications, and what is better here against uiCA.

The data stand beside the checkout (shared/data/oracle); without them the tests are skipped.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.answer.components import Bounds, bounds_of
from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.cycles import maximum_cycle_ratio
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.layout import DEPENDENCES, WHOLE
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import InstructionData, Parameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction

pytestmark = pytest.mark.thorough  # all compare the same cases, whose making takes nearly all of the time

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "oracle"
TOLERANCE = 0.0101
EXPECTED_SHARE = 0.99
EVERY = 3  # blocks that are tested, of those that there are
OTHERS = ("predec", "dec", "dsb", "lsd", "issue", "ports")


class Case(NamedTuple):
    """A block, Facile's components and uiCA's prediction, all addresses different."""

    core: str
    instructions: tuple[Instruction, ...]
    ports: float
    precedence: float
    others: float
    uica: float


@cache
def decoded(code: str) -> tuple[Instruction, ...]:
    """Of hex digits; the same blocks stand there for several cores."""
    return decode_bytes(bytes.fromhex(code)).instructions


@cache
def core_of(name: str) -> tuple[Parameters, InstructionTable]:
    parameters = load_parameters(name)
    if parameters.loads.forwarded is None:
        pytest.skip("the parameter files do not hold the figures of Facile's memory policy")
    return parameters, InstructionTable.open(parameters, "easy")


def cases() -> Iterator[Case]:
    path = ORACLE / "dev.csv.gz"
    if not path.exists():
        pytest.skip(f"no {path.name}")
    with gzip.open(path, "rt") as file:
        for row in list(csv.DictReader(file))[::EVERY]:
            for code, n in ((row["hex_unrolled"], "u"), (row["hex_loop"], "l")):
                if code and not int(row["n_unknown"] or 0):
                    others = max(float(row.get(f"{n}_{name}") or 0) for name in OTHERS)
                    ports, precedence = float(row[f"{n}_ports"]), float(row[f"{n}_precedence"])
                    instructions = decoded(code)
                    yield Case(row["arch"], instructions, ports, precedence, others, float(row[f"uica_{n}"]))


def rows_of(case: Case) -> list[InstructionData | None]:
    _, table = core_of(case.core)
    rows = []
    for instruction in case.instructions:
        row = table.lookup(instruction)
        indexed = any(reference.index for reference in instruction.memory)
        rows.append(row.indexed if row is not None and row.indexed is not None and indexed else row)
    return rows


@cache
def analyser_of(name: str, memory: MemoryPolicy) -> Analyser:
    """Of a core; it knows instructions that it has met."""
    return Analyser(modelled_core(core_of(name)[0], memory)).keep()


def bounds(case: Case, memory: MemoryPolicy, scope: int) -> Bounds:
    analyser = analyser_of(case.core, memory)
    return bounds_of(case.instructions, rows_of(case), analyser, "loop", 0, scope=scope)


def precedence(case: Case, memory: MemoryPolicy) -> float:
    graph = bounds(case, memory, DEPENDENCES).graph
    cycle = maximum_cycle_ratio(len(graph.owners), graph.edges)
    return cycle.ratio if cycle else 0.0


@cache
def compared() -> tuple[tuple[Case, float, float], ...]:
    """Cases with precedence by Facile's policy and by uiCA's."""
    return tuple((case, precedence(case, "stack"), precedence(case, "different")) for case in cases())


def crosses(case: Case) -> bool:
    """Whether a block moves data between general and vector registers: Facile adds the upper bounds of both ways, the
    tables share the round trip."""
    kinds = ("movd", "movq", "pextr", "pinsr", "cvt", "movmsk", "pmovmsk")
    return any(instruction.text.removeprefix("v").startswith(kinds) for instruction in case.instructions)


@pytest.mark.parametrize("core", ["SKL", "HSW", "SNB"])
def test_precedence_is_facile_s(core: str) -> None:
    alike = [(case, ours) for case, ours, _ in compared() if case.core == core and not crosses(case)]
    equal = [abs(ours - case.precedence) <= TOLERANCE for case, ours in alike]
    assert len(equal) > 800
    assert sum(equal) >= EXPECTED_SHARE * len(equal)


@pytest.mark.parametrize("core", ["SKL", "HSW", "SNB"])
def test_ports_are_facile_s_without_the_divider(core: str) -> None:
    equal = []
    for case, _, _ in compared():
        if case.core == core:
            uses = bounds(case, "moving", WHOLE).uses
            bound, _ = optimal_bound(use for row in uses for use in row if not use.ports[0].endswith("DV"))
            equal.append(abs(bound - case.ports) <= TOLERANCE)
    assert sum(equal) >= EXPECTED_SHARE * len(equal)


def test_the_project_s_own_times_are_nearer_to_the_simulation() -> None:
    """Where they differ from Facile's: store forwarding takes longer there, and no unrelated pointers are equal."""
    pairs = []
    for case, _, own in compared():
        if abs(own - case.precedence) > TOLERANCE:
            bounds = (max(case.others, case.precedence), max(case.others, own))
            pairs.append([abs(bound - case.uica) / case.uica for bound in bounds])
    facile, ours = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
    assert ours < facile / 2
