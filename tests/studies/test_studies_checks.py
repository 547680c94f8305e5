"""Checks for continuous integration: assertions judged by predictions, and what changed since an earlier run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernmodel.cli.main import main

TRIAD = "double a[N], b[N], c[N], s;\nfor (int i = 0; i < N; ++i)\n  a[i] = b[i] + s * c[i];\n"
LISTING = """.L3:
\tvmovupd (%rsi,%rax), %ymm0
\tvfmadd213pd (%rdx,%rax), %ymm1, %ymm0
\tvmovupd %ymm0, (%rdi,%rax)
\taddq $32, %rax
\tcmpq %rcx, %rax
\tjne .L3
"""


def _write(folder: Path, *assertions: str, machine: str = "clx", more: str = "") -> str:
    (folder / "triad.c").write_text(TRIAD)
    (folder / "triad.s").write_text(LISTING)
    listed = ", ".join(f'"{text}"' for text in assertions)
    entry = f"{{kernel: triad.c, machine: {machine}, asm: triad.s, sizes: {{N: 1000000}}, assert: [{listed}]{more}}}"
    (folder / "checks.yml").write_text(f"checks:\n  - {entry}\n")
    return str(folder / "checks.yml")


def _verdicts(folder: Path, capsys: pytest.CaptureFixture[str], *assertions: str, machine: str = "clx") -> list[str]:
    status = main(["check", _write(folder, *assertions, machine=machine), "--format", "json"])
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    outcomes = [one["outcome"] for one in check["assertions"]]
    assert status == (1 if "fails" in outcomes else 0)
    return outcomes


def test_figures_and_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # by the listing: 2 loads and a store of 32 bytes per pass, half a line: T_nOL 2 cy/CL; 4 lines over L3Mem by hand
    found = _verdicts(
        *(tmp_path, capsys),
        *("T_nOL <= 2", "T_nOL < 2 cy/CL", "traffic.L3Mem <= 32 B/It", "traffic.l3mem > 256 B/CL", "ecm.L1 < 5 cy/CL"),
        *("ecm.memory > 10 cy/CL", "vectorised", "not vectorised", "no unknown instructions", "ecm > 1 kIt/s"),
    )
    assert found == ["holds", "fails", "holds", "fails", "holds", "holds", "holds", "fails", "holds", "holds"]


def test_what_is_a_lower_bound_does_not_hold_an_upper_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # the machine file of Ice Lake lacks a bandwidth: T_ECM is at least its rest
    found = _verdicts(tmp_path, capsys, "ecm < 1000 cy/CL", "ecm > 1 cy/CL", "ecm < 1 cy/CL", machine="icx")
    assert found == ["open", "holds", "fails"]
    assert main(["check", _write(tmp_path, "ecm > 1 cy/CL", machine="icx"), "--format", "json"]) == 0
    figures = json.loads(capsys.readouterr().out)["checks"][0]["figures"]
    assert "ecm.L1" in figures and not {"ecm", "ecm.memory", "T_L2L3"} & figures.keys()


def test_kernels_that_cannot_be_predicted_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", _write(tmp_path, "ecm > 1", machine="none.yml")]) == 1
    assert "FAIL" in (text := capsys.readouterr().out) and "none.yml" in text


def test_annotations_stand_at_the_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", _write(tmp_path, "ecm < 1 cy/CL"), "--format", "github"]) == 1
    line = capsys.readouterr().out
    assert line.startswith(f"::error file={tmp_path / 'triad.c'},line=2,title=triad on clx N=1000000")
    assert "::ecm < 1 cy/CL: found" in line


def test_changes_name_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _write(tmp_path, "ecm > 1", more=", name: one")
    assert main(["check", file, "--format", "json"]) == 0
    (tmp_path / "old.json").write_text(capsys.readouterr().out)
    assert main(["check", file, "--against", str(tmp_path / "old.json")]) == 0
    assert "nothing" in capsys.readouterr().out
    (tmp_path / "triad.s").write_text(LISTING.replace("ymm", "xmm").replace("$32", "$16"))
    assert main(["check", file, "--against", str(tmp_path / "old.json"), "--format", "json"]) == 0
    changes = json.loads(capsys.readouterr().out)["changes"]
    assert {tuple(change["inputs"]) for change in changes} == {("code of the loop",)}
    assert {"figure": "T_nOL", "before": 2.0, "after": 4.0} in [
        {key: change[key] for key in ("figure", "before", "after")} for change in changes
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("checks: []\n", "holds no check"),
        ("checks: [{kernel: triad.c, machine: clx}]\n", "has no assert"),
        ("checks: [{kernel: a, machine: b, asert: vectorised}]\n", "did you mean 'assert'"),
        ("checks: [{kernel: a, machine: b, assert: vectorized}]\n", "did you mean 'vectorised'"),
        ("checks: [{kernel: a, machine: b, assert: ecm <= 3 furlongs}]\n", "unknown unit 'furlongs'"),
        ("checks: [{kernel: a, machine: b, assert: emc <= 3}]\n", "there is no figure 'emc'"),
        ("checks: [{kernel: a, machine: b, assert: ecm <= 3e}]\n", "is no assertion"),
        ('checks: [{kernel: a, machine: b, flags: "-O\'", assert: ecm <= 3}]\n', "cannot be split"),
        ("checks: [{kernel: a, machine: b, cache: maybe, assert: ecm <= 3}]\n", "'maybe' is unknown"),
        ("- 1\n", "is no mapping"),
        ("", "is empty"),
    ],
)
def test_bad_files(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "checks.yml").write_text(text)
    assert main(["check", str(tmp_path / "checks.yml")]) == 2
    told = capsys.readouterr().err
    assert message in told and "checks.yml" in told


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "kernmodel.ecm/1", "checks": []}', '{"checks": 3}'])
def test_bad_earlier_runs(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "old.json").write_text(text)
    assert main(["check", _write(tmp_path, "ecm > 1"), "--against", str(tmp_path / "old.json")]) == 2
    assert "is no document of `kernmodel check`" in capsys.readouterr().err
