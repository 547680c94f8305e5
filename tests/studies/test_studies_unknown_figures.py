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
