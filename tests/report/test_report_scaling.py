"""The report and the document of `kernmodel scaling`, of answers made by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from key_paths import key_paths

from kernmodel.errors import UsageError
from kernmodel.models.ecm import ScalingPoint
from kernmodel.report.json.document import dumps
from kernmodel.report.json.ecm import scaling_document
from kernmodel.report.text.render import Style, render
from kernmodel.report.text.scaling import scaling_report
from kernmodel.studies.scaling import ScalingAnswer, ScalingRow

GOLDEN = Path(__file__).parent / "schemas" / "studies"


def row(cores: int, cycles: float, *, saturated: bool = False, fits: str = "") -> ScalingRow:
    point = ScalingPoint(cores, 1, 1 / cycles, cycles, 1.0 if saturated else 0.5, saturated, 21.4)
    limit = "memory bandwidth of 1 domain" if saturated else "T_nOL + transfers of one core"
    return ScalingRow(point, 0.95 * cycles, 21.4 / cycles, 21.4 / cycles / cores, limit, fits)


@pytest.fixture
def answer(ecm_answer) -> ScalingAnswer:
    gone = "L3: 1 MiB a core; reuse over j (1.2 MiB) no longer fits"
    rows = (row(1, 21.4), row(4, 6.4, saturated=True), row(6, 6.4, saturated=True), row(8, 9.0, fits=gone))
    return ScalingAnswer(ecm_answer, rows, 3, 4, 4, ecm_answer.notes)


def text_of(answers, unit="LUP/s", *, verbose=False, ascii_only=False) -> str:
    return render(scaling_report(answers, unit, verbose=verbose), Style(ascii_only=ascii_only))


def test_the_report_names_both_rules(answer):
    text = text_of([answer])
    assert "simple rule ⌈T_ECM/T_Mem⌉     n_S = 3 cores of 8" in text
    assert "recursive latency-aware rule  n_S = 4 cores of 8" in text
    assert "best of one domain            2.500 GLUP/s on 4 cores" in text
    assert "95 % of it                    2.500 GLUP/s on 4 cores" in text


def test_rows_have_performance_by_both_rules(answer):
    line = next(line for line in text_of([answer]).splitlines() if line.split()[:2] == ["4", "1"])
    assert line.split() == [
        "4", "1", "2.500", "GLUP/s", "2.632", "GLUP/s", "3.34", "84%", "100%", "yes",
        "memory", "bandwidth", "of", "1", "domain",
    ]  # fmt: skip


def test_what_changes_in_the_caches_is_told(answer):
    assert "from 8 cores: L3: 1 MiB a core; reuse over j (1.2 MiB) no longer fits" in text_of([answer])
    steady = dataclasses.replace(answer, rows=answer.rows[:3])
    assert "unchanged: the same reuse fits for every number of cores" in text_of([steady])


def test_verbose_has_all_rates(answer):
    header = next(line for line in text_of([answer], "s", verbose=True).splitlines() if "speed-up" in line)
    assert header.split()[2:6] == ["s", "It/s", "LUP/s", "FLOP/s"]
    assert "T_ECM of a core" in header


def test_several_points_stand_below_each_other(answer):
    other = dataclasses.replace(answer, single=dataclasses.replace(answer.single, sizes={"M": 9, "N": 9}))
    text = text_of([answer, other])
    assert text.count("Scaling of stencil on toy") == 2
    assert text.count("Notes") == 1


def test_a_domain_that_does_not_saturate(answer):
    text = text_of([dataclasses.replace(answer, saturation_simple=None, saturation_recursive=None)])
    assert text.count("does not saturate within its 8 cores") == 2


def test_nothing_moves_over_the_memory_path(answer):
    prediction = answer.single.prediction
    still = dataclasses.replace(prediction.transfers[-1], cycles=0.0, penalty_cycles=0.0)
    prediction = dataclasses.replace(prediction, transfers=(*prediction.transfers[:-1], still))
    single = dataclasses.replace(answer.single, prediction=prediction)
    text = text_of([dataclasses.replace(answer, single=single, saturation_simple=None, saturation_recursive=None)])
    assert text.count("none: nothing moves over the memory path") == 2


def test_the_report_in_ascii(answer):
    assert text_of([answer], ascii_only=True).isascii()


def test_a_unit_without_a_meaning(answer):
    work = dataclasses.replace(answer.single.prediction.work, updates_per_iteration=None)
    prediction = dataclasses.replace(answer.single.prediction, work=work)
    single = dataclasses.replace(answer.single, prediction=prediction)
    with pytest.raises(UsageError, match="LUP/s has no meaning"):
        text_of([dataclasses.replace(answer, single=single)])


def test_keys_are_those_of_the_schema(answer):
    """Keys may be added to a version, with the list; one that goes makes a new version."""
    document = scaling_document([answer], "LUP/s")
    assert document["schema"] == "kernmodel.scaling/1"
    assert sorted(key_paths(document)) == (GOLDEN / "scaling-1.txt").read_text().split()


def test_the_document_carries_both_rules(answer):
    document = json.loads(dumps(scaling_document([answer, answer], "LUP/s")), parse_constant=pytest.fail)
    assert len(document["points"]) == 2
    body = document["points"][0]
    assert (body["saturation_simple"], body["saturation_recursive"], body["best_cores"]) == (3, 4, 4)
    second = body["rows"][1]
    assert second["in_units"]["LUP/s"] == pytest.approx(2.5e9)
    assert second["simple"]["cycles"] == pytest.approx(0.95 * 6.4)
    assert second["speedup"] == pytest.approx(second["efficiency"] * 4)
    assert body["rows"][3]["fits"].startswith("L3: 1 MiB")
