"""The ECM model of whole functions: lines that were counted, times that compose, and the answer of a real run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.binary.ecm import call_mix, call_paths, call_traffic, data_answer, ecm_prediction
from kernmodel.binary.lifting import BlockShare, LiftedPrediction
from kernmodel.binary.predictors.own import OwnPredictor
from kernmodel.binary.residency import Residency
from kernmodel.binary.walks import CountedFlow
from kernmodel.cachesim.model import Counters, LevelCounters
from kernmodel.errors import UsageError
from kernmodel.machine.load import load_machine
from kernmodel.uncertainty import Interval
from tests.binary.nests import COPY_STREAM, counted, two_loops

ROWS, PASSES, CALLS = 20, 40, 3
ACCESSES = 2 * ROWS * PASSES * CALLS
traced = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="addresses are traced on Linux on x86-64"
)


def level(**counts: int) -> LevelCounters:
    names = LevelCounters.__dataclass_fields__
    return LevelCounters(**{name: counts.get(name, 0) for name in names})


def found(missed: int) -> Residency:
    """A copy of whose lines so many are missed in a run, half of them stores, in a cascade of victim caches (Zen 3)."""
    half = missed // 2
    levels = {
        "L1": level(
            loads=ACCESSES // 2, load_misses=half, stores=ACCESSES // 2, store_misses=half, dirty_evictions=half
        ),
        "L2": level(loads=missed, load_hits=missed, stores=half, store_hits=half),
        "L3": level(),
    }
    counters = Counters(levels, 0, 0, 0, 0, (), ACCESSES)
    return Residency(ACCESSES, CALLS, 64 * missed // CALLS, 64, counters)


@pytest.fixture(scope="module")
def flow() -> CountedFlow:
    made = two_loops(COPY_STREAM)
    return CountedFlow(made, counted(made, ROWS, PASSES, CALLS))


@pytest.fixture(scope="module")
def own() -> OwnPredictor:
    return OwnPredictor("ZEN3")


def in_core(cycles: float, low: float | None = None) -> LiftedPrediction:
    interval = None if low is None else Interval(low, cycles, "a branch", "it does not")
    return LiftedPrediction("kernmodel", "traces", cycles, (BlockShare(0x100C, 60, cycles, 1.0),), {}, 0.0, interval)


def test_lines_are_those_of_a_call_and_intensity_follows_from_them(flow: CountedFlow) -> None:
    machine = load_machine("zen3")
    inner, middle, outer = call_paths(found(600), machine)
    assert (inner.loads, inner.stores) == (600 / CALLS, 300 / CALLS)
    assert middle.lines == outer.lines == 0
    mix = call_mix(flow)
    moved = ROWS * PASSES
    assert (mix.loads, mix.stores, mix.bytes) == (moved + 1, moved, 64 * moved + 8)  # and the return address
    traffic = call_traffic(flow, found(600), machine, mix)
    assert traffic.arithmetic_intensity == {"L1": 0.0, "L2": 0.0, "L3": None, "Mem": None}


@pytest.mark.parametrize("missed", [0, 6, 600, 2400])
def test_transfers_add_to_the_in_core_time_or_hide_behind_it(flow: CountedFlow, own: OwnPredictor, missed: int) -> None:
    machine = load_machine("zen3")
    data = data_answer(flow, found(missed), in_core(1000.0, 900.0), machine, own)
    assert data.ecm is not None
    first, *rest = [cycles for _, cycles in data.ecm.levels]
    assert first == max(1000.0, data.ecm.t_nol)
    assert rest == sorted(rest)
    assert data.ecm.cycles == max(first, max(one.cycles for one in data.ecm.transfers))
    assert data.ecm.t_nol > 0  # two accesses a pass
    prediction = ecm_prediction(data.ecm, in_core(1000.0, 900.0))
    assert prediction.cycles == data.ecm.cycles
    assert prediction.blocks[0].cycles == data.ecm.cycles
    assert (prediction.interval is None) == (data.ecm.cycles > 1000)


def test_more_misses_than_the_rule_allows_are_said(flow: CountedFlow, own: OwnPredictor) -> None:
    machine = load_machine("zen3")
    few, many = (data_answer(flow, found(n), in_core(500.0), machine, own) for n in (60, 2400))
    assert (few.residency.is_resident, many.residency.is_resident) == (True, False)
    assert [note.code for note in few.notes] == ["no-flops"]
    assert "50 % of the accesses miss L1" in many.notes[0].text
    assert many.residency.misses_per_line == 1.0


def test_a_trace_that_was_cut_off_gives_no_time(flow: CountedFlow, own: OwnPredictor) -> None:
    data = data_answer(flow, replace(found(60), complete=False), in_core(500.0), load_machine("zen3"), own)
    assert (data.ecm, data.roofline) == (None, None)
    assert "cut off" in data.why_not[0]


@traced
def test_a_run_on_a_machine_has_residency_ecm_roofline_and_a_table(build: Callable[..., Path]) -> None:
    program = str(build("flow.c", "-O2"))
    options = km.RunOptions(measure=False)
    result = km.binary_run([program, "24"], "gemm", machine="zen3", options=options)
    answer = result.answer
    assert [one.predictor for one in answer.predicted.predictions] == ["kernmodel"] * 3 + ["kernmodel-ecm"]
    data = answer.predicted.data
    assert data is not None
    assert data.ecm is not None
    assert data.residency.is_resident
    document = json.loads(json.dumps(result.json()))
    assert document["data"]["ecm"]["cycles"] == data.ecm.cycles
    assert {one["level"] for one in document["data"]["roofline"]["points"]} == {"L1", "L2", "L3", "Mem"}
    assert "misses per line" in str(result)
    assert "GFLOP/s (FMA = 2) over FLOP/B" in result.drawing()
    header, *rows = result.csv().splitlines()
    assert len({len(row.split(",")) for row in (header, *rows)}) == 1
    assert len(rows) == sum(len(one.blocks) for one in answer.predicted.predictions)


@traced
def test_ecm_asks_for_a_machine(build: Callable[..., Path]) -> None:
    program = str(build("flow.c", "-O2"))
    with pytest.raises(UsageError, match="asks for the caches of a machine"):
        km.binary_run([program], "gemm", uarch="ZEN3", predictors="kernmodel-ecm")
    result = km.binary_run([program], "gemm", uarch="ZEN3", options=km.RunOptions(measure=False))
    with pytest.raises(UsageError, match="no roofline to draw"):
        result.drawing()
