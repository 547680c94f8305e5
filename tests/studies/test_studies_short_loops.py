"""What short inner loops cost, by hand."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from kernmodel.studies.predict import predict_ecm
from kernmodel.studies.request import CodeRequest, EcmAnswer, KernelRequest
from kernmodel.studies.short_loops import (
    entry_cycles,
    inner_iterations,
    penalty,
    remainder_cycles,
    short_loops,
)

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

EXTENTS = {"j": 998, "i": 1000}


@pytest.fixture(scope="module")
def stencil() -> EcmAnswer:
    """Four iterations of doubles in a pass: AVX without unrolling."""
    flags = ("-O3", "-march=sandybridge", "-fno-unroll-loops")
    return predict_ecm(
        KernelRequest("stencil", "snb", {"N": 1002, "M": 1000}), CodeRequest(compiler="gcc", flags=flags)
    )


def test_iterations_that_fill_no_pass_are_executed_one_by_one(stencil: EcmAnswer) -> None:
    incore, units = stencil.incore, stencil.traffic.iterations_per_unit
    assert incore.iterations_per_pass == 4
    assert inner_iterations(stencil) == 4
    one = incore.prediction - incore.prediction / 4
    assert remainder_cycles(incore, 1, 4) == one
    # blocks of 6 leave 2 iterations each, 1000 = 166 × 6 + 4 leaves none at the end
    short = short_loops(stencil, {"i": 6}, EXTENTS)
    assert short.length == pytest.approx(1000 / 167)
    assert short.remainder_cycles == pytest.approx(166 * 2 / 1000 * units * one)
    assert short_loops(stencil, {"i": 8}, EXTENTS).remainder_cycles == 0


def test_unrolled_loops_leave_vectors_for_the_remainder(stencil: EcmAnswer) -> None:
    """A pass of 16 iterations in vectors of 4: one of the remainder takes as long as a quarter of a pass."""
    incore = replace(stencil.incore, prediction=8.0)
    assert remainder_cycles(incore, 4, 16) == 8 / 4 - 8 / 16
    assert remainder_cycles(incore, 1, 1) == 0


def test_leaving_the_loop_drains_the_pipeline(stencil: EcmAnswer) -> None:
    incore, parameters = stencil.incore, stencil.parameters
    unknown = replace(parameters, misprediction=None)
    known = replace(parameters, misprediction=15.0)
    drain = incore.critical_path.cycles - incore.prediction
    assert drain > 0
    assert penalty(unknown) == 0
    assert entry_cycles(incore, unknown) == drain
    assert entry_cycles(incore, known) == drain + 15
    assert entry_cycles(replace(incore, prediction=1000.0), known) == 15


def test_costs_fall_with_the_length_of_the_loop(stencil: EcmAnswer) -> None:
    cycles = [short_loops(stencil, {"i": size}, EXTENTS).cycles for size in (8, 40, 200, 1000)]
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[-1] < 0.05 * cycles[0]
    assert short_loops(stencil, {}, EXTENTS).cycles == cycles[-1]
    assert short_loops(stencil, {"j": 10}, EXTENTS).cycles == cycles[-1]


def test_outer_iterations_that_are_executed_at_once_share_an_entry(stencil: EcmAnswer) -> None:
    """Unroll-and-jam: 8 iterations in a pass that goes 4 along the inner loop."""
    jammed = replace(stencil, incore=replace(stencil.incore, iterations_per_pass=8))
    assert inner_iterations(jammed) == 4
    once, twice = (short_loops(answer, {"i": 40}, EXTENTS).entry_cycles for answer in (stencil, jammed))
    assert twice == pytest.approx(once / 2)


def test_inner_loops_that_were_unrolled_as_a_whole_cost_nothing(stencil: EcmAnswer) -> None:
    incore, loop = replace(stencil.incore, iterations_per_pass=156), replace(stencil.loop, streams=())
    whole = replace(stencil, incore=incore, loop=loop)
    assert inner_iterations(whole) == 156
    assert short_loops(whole, {}, {"j": 998, "i": 78}).cycles == 0


def test_loops_of_changing_length_leave_half_a_pass() -> None:
    answer = predict_ecm(KernelRequest("trmv", "clx", {}), CodeRequest(compiler="gcc"))
    along = inner_iterations(answer)
    extents = {loop.variable: 100 for loop in answer.nest.loops}
    short = short_loops(answer, {}, extents)
    unrolled = remainder_cycles(answer.incore, 1, along)
    entered = answer.traffic.iterations_per_unit / 100
    assert 0 <= short.remainder_cycles <= entered * (along - 1) / 2 * unrolled + 1e-9
