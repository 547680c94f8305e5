"""Cores with decoders that are all alike: how far they run ahead of what waits, and that both engines agree."""

from __future__ import annotations

from dataclasses import replace

import pytest

import kernmodel as km
from kernmodel.code.listing import read_listing
from kernmodel.incore.answer.components import bounds_of, row_of
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.engine.modelled_core import ModelledCore, modelled_core
from kernmodel.incore.engine.twin import PythonEngine
from kernmodel.incore.tables.core_parameters import WindowParameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

CORES = ("TX2", "A64FX", "N1", "V2", "M1")
LOOPS = {
    "stream": "ldr q1, [x1, x3]\nfmla v1.2d, v2.2d, v0.2d\nstr q1, [x0, x3]\nadd x3, x3, 16\ncmp x3, x4",
    "pairs": "ldp q1, q2, [x1], 32\nfadd v1.2d, v1.2d, v2.2d\nstp q1, q2, [x0], 32\nsubs x4, x4, 1",
    "memory": "ldr d1, [x0]\nfadd d1, d1, d2\nstr d1, [x0]\nsubs x4, x4, 1",
    "divide": "ldr d1, [x1], 8\nfdiv d1, d2, d1\nfmul d3, d1, d1\nstr d3, [x0], 8\nsubs x4, x4, 1",
    "integers": "ldr w1, [x1, x3, lsl 2]\nmadd w2, w1, w1, w2\nadd x3, x3, 1\ncmp x3, x4",
}


def components(text: str, core: ModelledCore, engine: PythonEngine | None = None) -> dict[str, float]:
    """Cycles per pass by component of a loop over these lines."""
    listing = read_listing(f".L:\n{text}\nb.ne .L\n", "k.s", isa_name=core.parameters.isa)
    table = InstructionTable.open(core.parameters)
    rows = [row_of(instruction, table) for instruction in listing.instructions]
    assert None not in rows
    analyser = Analyser(core, engine=engine)
    return dict(bounds_of(listing.instructions, rows, analyser, "loop", 0).components)


def core_with(name: str, **figures: object) -> ModelledCore:
    """A core with other figures of its window."""
    parameters = load_parameters(name)
    assert isinstance(parameters.pipeline, WindowParameters)
    return modelled_core(replace(parameters, pipeline=replace(parameters.pipeline, **figures)))  # type: ignore[arg-type]


@pytest.mark.skipif(library() is None, reason="the engine was not built")
@pytest.mark.parametrize(
    ("name", "loop"), [("TX2", "stream"), ("A64FX", "pairs"), ("TX2", "memory"), ("A64FX", "divide")]
)
def test_both_engines_agree(name: str, loop: str) -> None:
    core = modelled_core(load_parameters(name))
    assert components(LOOPS[loop], core) == components(LOOPS[loop], core, PythonEngine(core))


@pytest.mark.parametrize("name", CORES)
@pytest.mark.parametrize("loop", LOOPS)
def test_short_loops_take_what_their_slowest_part_takes(name: str, loop: str) -> None:
    """To a cycle, which an instruction of several µops can cost that does not fit into what is left of one."""
    found = components(LOOPS[loop], modelled_core(load_parameters(name)))
    largest = max(cycles for part, cycles in found.items() if part != "pipeline")
    assert largest * 0.99 <= found["pipeline"] <= largest + 1.0


def chains(name: str, additions: int) -> tuple[str, int, float]:
    """A pass with one chain of additions from a load to a store; its µops, and cycles of the chain alone."""
    text = "ldr d1, [x1], 8\n" + "fadd d1, d1, d2\n" * additions + "str d1, [x0], 8\nsubs x4, x4, 1"
    latency = {"A64FX": 9, "N1": 2, "TX2": 6}[name]
    return text, additions + 6, additions * latency


@pytest.mark.parametrize("name", ["A64FX", "N1", "TX2"])
@pytest.mark.parametrize("additions", [20, 40])
def test_a_reorder_buffer_holds_so_many_passes(name: str, additions: int) -> None:
    """Little's law: of passes that take as long as their chain no more are under way than the buffer has room for."""
    text, uops, latency = chains(name, additions)
    for entries in (64, 128, 512):
        core = core_with(name, reorder_buffer=entries, schedulers=(), scheduler_entries=())
        found = components(text, core)
        under_way = entries / uops
        assert found["pipeline"] >= latency / (under_way + 1) * 0.9
        largest = max(cycles for part, cycles in found.items() if part != "pipeline")
        assert found["pipeline"] <= max(largest * 1.05, 1.1 * latency / under_way)


def test_schedulers_are_full_before_the_reorder_buffer_is() -> None:
    """Additions of a chain wait in schedulers of 20 entries (A64FX) for most of the pass."""
    text, _, _ = chains("A64FX", 40)
    whole, unlimited = core_with("A64FX"), core_with("A64FX", schedulers=(), scheduler_entries=())
    assert components(text, whole)["pipeline"] > components(text, unlimited)["pipeline"] * 1.2


def test_bank_conflicts_of_thunderx2_make_an_interval() -> None:
    """How many banks the first cache has is not known: from no load tried again to each of them."""
    found = km.analyse_loop(".L:\n" + LOOPS["pairs"] + "\nb.ne .L\n", uarch="TX2")
    interval = found.answer.incore.prediction_interval
    assert interval is not None
    # two accesses of the pair that is stored and twice two of the one that is loaded, on two ports
    assert (interval.low, interval.high) == (found.answer.incore.prediction, (2 * 2 + 2) / 2)
    assert "bank conflicts of loads" in found.text()
    assert found.json()["incore"]["prediction_interval"]["high"] == interval.high
    assert "bank-conflicts" in {note.code for note in found.answer.notes}
    for alone, core in (("ldr d1, [x1], 8\nfadd d2, d2, d1", "TX2"), (LOOPS["pairs"], "V2")):
        answer = km.analyse_loop(f".L:\n{alone}\nb.ne .L\n", uarch=core)
        assert answer.answer.incore.prediction_interval is None
        assert "prediction_interval" not in answer.json()["incore"]
