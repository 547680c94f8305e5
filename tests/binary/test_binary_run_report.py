"""The answer of `kernmodel binary run`, from values made by hand."""

from __future__ import annotations

import json

import pytest

from kernmodel.binary.answer import BinaryRun, Predicted, lifted
from kernmodel.binary.predictors.own import OwnPredictor
from kernmodel.binary.timing import FunctionTime
from kernmodel.binary.walks import CountedFlow
from kernmodel.report.json.binary_lifting import binary_run_document
from kernmodel.report.text.binary_run import binary_run_report
from kernmodel.report.text.render import Style, render
from tests.binary.nests import counted, two_loops


def answer(time: FunctionTime | None = None) -> BinaryRun:
    made = two_loops()
    occurrences = counted(made, rows=50, passes=40)
    own = OwnPredictor("ZEN3")
    said = Predicted(tuple(lifted(CountedFlow(made, occurrences), own)), {})
    return BinaryRun(("./made", "7"), made, occurrences, "ZEN3", "AMD Zen 3", 3e9, said, time)


def test_the_text_names_the_hot_block_its_bound_and_the_loops() -> None:
    text = render(binary_run_report(answer(FunctionTime(6000.0, 5900.0, 1.0, 1, 3e9, 50.0, 4, 0))), Style())
    assert "./made 7" in text
    assert "6,000 cy per call (2 µs; 4 runs, spread 1.0 %)" in text
    assert "dependency chain" in text
    hot = next(line for line in text.splitlines() if line.startswith("0x100c"))
    assert "2,000" in hot
    tree = [line for line in text.splitlines() if line.lstrip().startswith(("0x1003", "0x100c")) and "#" in line]
    assert [line.startswith("  ") for line in tree] == [False, True]
    assert tree[1].split()[-1] == "40" or " 40" in tree[1]


def test_the_best_prediction_is_the_simulated_walk() -> None:
    found = answer()
    assert found.best is not None
    assert (found.best.predictor, found.best.way) == ("kernmodel", "traces")
    assert found.error_percent(found.best) is None


def test_a_time_that_was_refused_is_no_time() -> None:
    found = answer(FunctionTime(0.0, 100.0, 0.0, 1, 3e9, 50.0, 0, 4, why_refused="too short"))
    assert "refused: too short (the smallest undisturbed call: 100 cy)" in render(binary_run_report(found), Style())
    assert found.best is not None
    assert found.error_percent(found.best) is None


def test_the_document_has_every_prediction_with_its_way() -> None:
    document = json.loads(json.dumps(binary_run_document(answer())))
    assert [one["way"] for one in document["predictions"]] == ["c", "b", "a"]
    best = document["predictions"][0]
    assert sum(block["share"] for block in best["blocks"]) == pytest.approx(1)
    assert {loop["header"] for loop in best["loops"]} == {0x1003, 0x100C}
    assert document["occurrences"]["calls"] == 1
