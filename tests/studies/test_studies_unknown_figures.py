"""Machines of which a bandwidth is not known: its time is not known either, and what contains it is a bound."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.cli.main import main
from kernmodel.errors import MachineError
from kernmodel.machine.load import find_machine, load_machine
from kernmodel.studies.predict.machine_check import check_machine_file

CARRIED = ("graviton2", "graviton3", "grace", "m1", "zen3", "icx", "spr", "gnr")
SIZES = {"N": 4000, "M": 4000}


@pytest.fixture
def lacking(tmp_path: Path) -> Path:
    """The carried file of Zen 3 with a width where a test of the same code may know it."""
    file = tmp_path / "mine.yml"
    file.write_text(find_machine("zen3").read_text(encoding="utf-8"), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", CARRIED)
def test_gaps_are_listed_and_are_no_errors(name: str) -> None:
    problems = check_machine_file(find_machine(name))
    gaps = [problem.key for problem in problems if "is unknown" in problem.what]
    assert gaps == [f"paths.{path}.width" for path in load_machine(name).unknown_paths] != []
    assert all(problem.severity == "warning" for problem in problems)


def test_a_time_that_is_not_known_makes_what_contains_it_a_bound(lacking: Path) -> None:
    least = km.ecm("stencil.c", machine=str(lacking), **SIZES)
    text = lacking.read_text(encoding="utf-8")
    lacking.write_text(text.replace("width: unknown", "width: 8 B/cy"), encoding="utf-8")
    whole = km.ecm("stencil.c", machine=str(lacking), **SIZES).answer.prediction
    prediction = least.answer.prediction
    assert prediction.unknown == ("T_L3Mem",)
    assert prediction.levels[:-1] == whole.levels[:-1]
    assert prediction.levels[-1][1] <= whole.levels[-1][1]
    assert prediction.shorthand().endswith("| ?} cy/CL")
    assert "⌉ ≥ " in prediction.level_shorthand()
    assert "T_ECM ≥ " in least.text()
    found = least.json()["prediction"]
    assert found["cycles"] is None
    assert found["cycles_at_least"] == prediction.cycles
    assert found["transfers"][-1]["cycles"] is None
    assert [level["cycles"] is None for level in found["levels"]] == [False, False, False, True]
    assert "unknown-bandwidth" in {note.code for note in least.answer.notes}


def test_data_within_the_known_caches_are_predicted() -> None:
    prediction = km.ecm("triad.c", machine="zen3", N=10_000).answer.prediction
    assert not prediction.unknown
    assert "?" not in prediction.shorthand()


def test_questions_that_a_bound_does_not_answer_are_refused() -> None:
    with pytest.raises(MachineError, match="has no bandwidth of the path L3Mem"):
        _ = km.scale("stencil.c", machine="zen3", cores=[1, 8], **SIZES).answer


def test_machines_with_gaps_stand_beside_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "-m", "zen2", "-m", "zen3", "stencil.c", "-D", "N=4000", "-D", "M=4000"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("zen3 "))
    assert "≥ " in row
    assert "≤ " in row


def test_what_was_measured_is_not_unknown(tmp_path: Path) -> None:
    text = find_machine("clx").read_text(encoding="utf-8").replace("width: measured", "width: unknown")
    (tmp_path / "mine.yml").write_text(text, encoding="utf-8")
    (problem,) = [one for one in check_machine_file(tmp_path / "mine.yml") if one.severity == "error"]
    assert problem.key == "paths.L3Mem.width"
    assert problem.todo == "write measured"


@pytest.mark.parametrize("model", ["hierarchical", "irm", "carm", "adcarm"])
def test_a_level_without_bandwidth_has_no_roof_and_that_is_said(model: str) -> None:
    """M1: cores and memory channels are known, the width between L1 and L2 is not."""
    found = km.roofline_chart("stencil.c", machine="m1", model=model, **SIZES)  # type: ignore[arg-type]
    (chart,) = found.answer.kernels[0].rooflines
    assert chart.unknown == ("L2",)
    assert {roof.level for roof in chart.memory_roofs} == {"L1", "Mem"}
    assert "roof-unknown" in {note.code for note in found.notes}
    assert "roof of L2" in found.text()
    assert found.json()["kernels"][0]["charts"][0]["unknown"] == ["L2"]


def test_a_chart_without_any_memory_roof_is_refused_alone_and_left_out_beside_others(tmp_path: Path) -> None:
    text = find_machine("m1").read_text(encoding="utf-8")
    begin, end = text.index("\nmemory:"), text.index("\nstores:")
    file = tmp_path / "mine.yml"
    file.write_text(text[:begin] + text[end:], encoding="utf-8")
    with pytest.raises(MachineError, match="no memory roof"):
        _ = km.roofline_chart("stencil.c", machine=str(file), model="orm", **SIZES).answer
    found = km.roofline_chart("stencil.c", machine=str(file), model="all", **SIZES).answer
    assert [chart.model for chart in found.kernels[0].rooflines] == ["hierarchical", "carm", "irm", "adcarm"]
    assert all(share.impact is None for share in found.kernels[0].shares)
    assert sum(share.share for share in found.kernels[0].shares) == pytest.approx(1.0)


def test_carm_reads_what_is_known() -> None:
    text = km.carm_chart("stencil.c", machine="graviton2", **SIZES).text()
    assert "What L2, L3 allows is not known" in text
    assert "what blocking brings is not known" in text


def test_pictures_say_that_the_time_is_a_bound(tmp_path: Path) -> None:
    found = km.ecm("stencil.c", machine="m1", **SIZES)
    assert found.answer.prediction.is_lower_bound
    found.plot(tmp_path / "m1.svg")
    assert "T_ECM, at least" in (tmp_path / "m1.svg").read_text(encoding="utf-8")
