"""Loads that wait for stores to other addresses with the same last 12 bits (4-KiB aliasing)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.dependences.line_splits import Places
from kernmodel.incore.model import InCore
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.page_places import page_starts
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from tests.studies.test_studies_arrays import SIZES, stencil

LARGE = {"N": 2000, "M": 1000}
ROWS = """.intel_syntax noprefix
.L1:
vmovupd ymm0, ymmword ptr [r10+r8*8]
vaddpd ymm0, ymm0, ymmword ptr [r10+r8*8+16]
vaddpd ymm0, ymm0, ymmword ptr [rsi+r8*8+8]
vaddpd ymm0, ymm0, ymmword ptr [rdx+r8*8+8]
vmulpd ymm0, ymm7, ymm0
vmovupd ymmword ptr [r14+r8*8+8], ymm0
add r8, 4
cmp r8, r11
jb .L1
"""
"""The same, each row by a register, as listings of loops alone show it."""


def analysed(loop: AssemblyLoop, core: str, in_page: dict[int, int]) -> InCore:
    settings = Settings(places=Places(in_page=in_page))
    return analyse_block(loop, Core.open(core, settings), settings)


def cycles(loop: AssemblyLoop, core: str, in_page: dict[int, int]) -> float:
    return analysed(loop, core, in_page).prediction


@pytest.mark.parametrize("core", ["SNB", "IVB"])
def test_the_load_to_the_left_waits_for_the_store_before(core: str) -> None:
    loop, nest = stencil()
    starts = page_starts(loop, nest, LARGE)
    loads = [stream.instruction for stream in loop.streams if stream.reference.read]
    store = next(stream.instruction for stream in loop.streams if stream.reference.written)
    assert [(starts[load] - starts[store]) % 4096 for load in loads] == [8, 4088, 4096 - 1680, 1680]
    assert cycles(loop, core, {}) < 8
    assert cycles(loop, core, starts) == pytest.approx(8 + 3 * 3 + 5, abs=1)  # load, three additions, product


@pytest.mark.parametrize("core", ["SNB", "IVB"])
def test_the_chain_through_the_store_is_no_longer_than_the_simulation(core: str) -> None:
    """It counted the cycle from the data to memory twice, was overtaken, and the scheduler got the blame."""
    loop, nest = stencil()
    found = analysed(loop, core, page_starts(loop, nest, LARGE))
    assert found.lcd is not None
    assert found.lcd.cycles == found.prediction == 8 + 3 * 3 + 5
    assert found.bound_by == "dependency"
    assert "memory (%rcx,%rax)" in found.lcd.carriers


def test_rows_that_are_longer_by_a_vector_meet_too_but_no_others() -> None:
    loop, nest = stencil()
    left = next(stream.instruction for stream in loop.streams[1:] if stream.reference.read)
    starts = page_starts(loop, nest, LARGE)
    apart = {**starts, left: 2048}
    assert cycles(loop, "IVB", apart) < 8
    upper = [stream.instruction for stream in loop.streams if stream.reference.read][2]
    meets = {**apart, upper: (starts[loop.streams[-1].instruction] - 32) % 4096}
    assert cycles(loop, "IVB", meets) == pytest.approx(8 + 2 * 3 + 5, abs=1)


def test_later_cores_and_arrays_from_the_heap_wait_for_nothing() -> None:
    loop, nest = stencil()
    starts = page_starts(loop, nest, LARGE)
    assert cycles(loop, "HSW", starts) == cycles(loop, "HSW", {})
    assert page_starts(loop, nest, SIZES) == {}  # two arrays of 10 KiB


def test_code_that_does_not_say_where_it_begins_is_placed_by_its_rows(tmp_path: Path) -> None:
    (tmp_path / "rows.s").write_text(ROWS)
    asm, kernel = str(tmp_path / "rows.s"), KernelRequest("stencil", "ivb", LARGE)
    found = predict_ecm(kernel, CodeRequest(asm=asm)).prediction
    assert found.t_ol == pytest.approx(2 * (8 + 3 * 3 + 5), abs=2)  # two passes a line
    assert found.cycles_interval is not None
    assert found.cycles_interval.low < found.cycles
    assert "same place of a page" in found.cycles_interval.assumed
    assert predict_ecm(kernel, CodeRequest(asm=asm, classic=True)).prediction.t_ol < 16
    loop, nest = stencil()
    hidden = replace(loop, streams=tuple(replace(stream, start=None) for stream in loop.streams))
    assert page_starts(hidden, nest, LARGE).keys() == {loop.streams[-1].instruction}  # its loads share a register


def test_the_note_says_what_waiting_costs_and_no_alignment_of_code_is_praised() -> None:
    answer = predict_ecm(KernelRequest("stencil", "snb", {}), CodeRequest())
    note = next(note.text for note in answer.notes if note.code == "store-aliasing")
    assert f"{answer.incore.prediction:.2f} cycles per pass in the core" in note
    assert not [note for note in answer.notes if note.code == "code-address"]
