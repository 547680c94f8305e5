"""The reports and documents of `kernmodel what-if`, of answers made by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from key_paths import key_paths
from text_reports import text_of

from kernmodel.errors import Note, UsageError
from kernmodel.machine.changes.figures import Applied, Figure, MachineFigures
from kernmodel.models.ecm import ScalingPoint
from kernmodel.report.json.document import dumps
from kernmodel.report.json.what_if import code_document, figures_document, sensitivity_document, what_if_document
from kernmodel.report.text.what_if import code_report, figures_report, sensitivity_report, what_if_report
from kernmodel.studies.predict.request import Change, CodeRequest, EcmAnswer
from kernmodel.studies.what_if.code import CodeAnswer, CodeVariant
from kernmodel.studies.what_if.machine import Effect, WhatIfAnswer
from kernmodel.studies.what_if.sensitivity import Sensitivity, SensitivityAnswer

GOLDEN = Path(__file__).parent / "schemas" / "studies"
CLOCK, WIDTH = Change("clock", "4GHz"), Change("L2L3.width", "x0.5")
DONE = Applied("clock", "2 GHz", "4 GHz", 2.0, (Note("measured-unchanged", "stay in B/s", "assumption"),))
HALVED = Applied("paths.L2L3.width", "32 B/cy", "16 B/cy", 0.5, ())
FIGURE = Figure("paths.L2L3.width", "L2L3.width", "32 B/cy", 32.0, "bytes per cycle", "a manual")


def timed(answer: EcmAnswer, cycles: float, clock: float = 2e9, cores: int = 1) -> EcmAnswer:
    """The answer with another time of all cores, at another clock."""
    work = dataclasses.replace(answer.prediction.work, clock_hz=clock)
    return dataclasses.replace(
        answer,
        machine=dataclasses.replace(answer.machine, clock_hz=clock),
        prediction=dataclasses.replace(answer.prediction, work=work),
        scaling=(ScalingPoint(cores, 1, 1 / cycles, cycles, 0.3, False, cycles),),
    )


@pytest.fixture
def answer(ecm_answer) -> WhatIfAnswer:
    faster = Effect((CLOCK,), (DONE,), timed(ecm_answer, 27.8, 4e9), 0.65, -0.6215)
    slower = Effect((WIDTH,), (HALVED,), timed(ecm_answer, 27.4), 1.28, -0.356)
    both = Effect((CLOCK, WIDTH), (DONE, HALVED), timed(ecm_answer, 33.8, 4e9), 0.79, None)
    return WhatIfAnswer(timed(ecm_answer, 21.4), (faster, slower), both, ecm_answer.notes)


@pytest.fixture
def table(ecm_answer) -> SensitivityAnswer:
    whole = dataclasses.replace(FIGURE, path="topology.sockets", short="sockets", text="2", value=2.0)
    figures = (
        Sensitivity(FIGURE, -0.28, 1.28, 1.031, 0.975, 0.86),
        Sensitivity(whole, None, None, None, None, 1.02),
    )
    idle = ("cache_line", "caches.L1.size", "caches.L1.ways")
    return SensitivityAnswer(timed(ecm_answer, 21.4), 0.1, figures, idle, ecm_answer.notes)


@pytest.fixture
def code(ecm_answer) -> CodeAnswer:
    other = CodeRequest(compiler="clang", flags=("-O2",))
    variants = (
        CodeVariant("gcc -O3", CodeRequest(), timed(ecm_answer, 21.4), 1.0, None),
        CodeVariant("clang -O2", other, timed(ecm_answer, 16.05), 0.75, None),
        CodeVariant("icc -O3", CodeRequest(compiler="icc"), None, None, "icc was not found; install it"),
    )
    return CodeAnswer(variants, (CLOCK,), ecm_answer.notes)


def cells(text: str, start: str) -> list[str]:
    """The first line that begins so, split at blanks."""
    return next(line for line in text.splitlines() if line.strip().startswith(start)).split()


def test_the_headline_is_the_most_valuable_change(answer) -> None:
    text = text_of(what_if_report(answer, "cy/CL"))
    assert "T_ECM = 21.40 cy/CL as the machine is" in text
    assert "Most valuable: clock=4GHz: the runtime falls by 35 % (× 0.650)" in text
    alone = dataclasses.replace(answer, effects=answer.effects[:1], together=None)
    assert "  clock=4GHz: the runtime falls by 35 %" in text_of(what_if_report(alone, "cy/CL"))
    worse = dataclasses.replace(answer, effects=answer.effects[1:])
    assert "None of the changes shortens the runtime." in text_of(what_if_report(worse, "cy/CL"))


def test_rows_show_before_and_after(answer) -> None:
    text = text_of(what_if_report(answer, "cy/CL"))
    row = ["2", "GHz", "4", "GHz", "21.40", "cy/CL", "27.80", "cy/CL", "0.650", "-0.622"]
    assert cells(text.partition("Effects")[2], "clock=4GHz")[1:] == row
    assert cells(text, "all together") == ["all", "together", "21.40", "cy/CL", "33.80", "cy/CL", "0.790", "-"]


def test_times_are_in_the_unit_at_the_clock_of_each_case(answer) -> None:
    text = text_of(what_if_report(answer, "It/s"))
    row = cells(text.partition("Effects")[2], "clock=4GHz")
    assert row[5:9] == ["747.7", "MIt/s", "1.151", "GIt/s"]


def test_reasons_stand_below(answer) -> None:
    text = text_of(what_if_report(answer, "cy/CL"))
    reasons = text.partition("Why\n")[2]
    assert cells(reasons, "clock=4GHz")[1:4] == ["cycles", "are", "shorter"]
    assert cells(reasons, "all together")[2:5] == ["cycles", "are", "shorter"]


def test_verbose_has_the_times_of_each_case_and_sources(answer) -> None:
    text = text_of(what_if_report(answer, "cy/CL", verbose=True))
    assert cells(text, "as it is")[3:10] == ["8.00", "4.00", "0.00", "5.00", "6.00", "6.40", "21.40"]
    assert "Sources of toy.yml" in text


def test_several_cores_are_named(answer) -> None:
    text = text_of(what_if_report(dataclasses.replace(answer, before=timed(answer.before, 21.4, cores=4)), "cy/CL"))
    assert "time of 4 cores = 21.40 cy/CL" in text


def test_a_unit_without_a_meaning(answer) -> None:
    prediction = answer.before.prediction
    still = dataclasses.replace(prediction, work=dataclasses.replace(prediction.work, flops_per_iteration=0))
    before = dataclasses.replace(answer.before, prediction=still)
    with pytest.raises(UsageError, match="no floating-point operations"):
        what_if_report(dataclasses.replace(answer, before=before), "FLOP/s")


def test_the_sensitivity_of_each_figure(table) -> None:
    text = text_of(sensitivity_report(table, "cy/CL"))
    assert "L2L3.width (32 B/cy) matters most: 1 % more of it changes the runtime by -0.28 %" in text
    rows = text.partition("changed (×")[2]
    assert cells(rows, "L2L3.width")[1:] == ["32", "B/cy", "-0.280", "1.280", "1.031", "0.975", "0.860"]
    assert cells(rows, "sockets")[1:] == ["2", "-", "-", "-", "-", "1.020"]
    assert cells(text, "caches.L1") == ["caches.L1", "size,", "ways"]
    assert "a manual" in text_of(sensitivity_report(table, "cy/CL", verbose=True))


def test_no_figure_matters(table) -> None:
    text = text_of(sensitivity_report(dataclasses.replace(table, figures=(), without_effect=()), "cy/CL"))
    assert "No figure of the machine changes the runtime." in text
    assert "Without effect" not in text


def test_code_side_by_side(code) -> None:
    text = text_of(code_report(code, "cy/CL"))
    assert "Fastest: clang -O2: the runtime falls by 25 % (× 0.750)" in text
    row = ["8.00", "4.00", "21.40", "16.05", "cy/CL", "0.750", "4", "DP", "0.75"]
    assert cells(text.partition("Code\n")[2], "2  clang")[3:] == row
    assert "3  fails: icc was not found; install it" in text
    assert cells(text, "changed") == ["changed", "clock=4GHz"]
    slower = dataclasses.replace(code, variants=(code.variants[0], code.variants[2]))
    assert "None of them is faster than the first." in text_of(code_report(slower, "cy/CL"))
    assert "gcc -O3 -march=skylake -S stencil.c" in text_of(code_report(code, "cy/CL", verbose=True))


def test_every_figure_is_listed() -> None:
    figures = MachineFigures.open("clx")
    text = text_of(figures_report(figures))
    for figure in figures.figures():
        row = cells(text.partition("source\n")[2], f"{figure.path} ")
        assert figure.text.split()[0] in row


def test_reports_in_ascii(answer, table, code) -> None:
    for blocks in (
        what_if_report(answer, "cy/CL", verbose=True),
        sensitivity_report(table, "cy/CL"),
        code_report(code, "cy/CL"),
    ):
        assert text_of(blocks, ascii_only=True).isascii()


@pytest.fixture
def documents(answer, table, code) -> dict[str, dict[str, object]]:
    made = (
        what_if_document(answer, "cy/CL"),
        sensitivity_document(table, "cy/CL"),
        code_document(code, "cy/CL"),
        figures_document(MachineFigures.open("clx")),
    )
    return {document["schema"]: document for document in made}


SCHEMAS = ("what-if", "sensitivity", "code-variants", "machine-figures")


@pytest.mark.parametrize("name", SCHEMAS)
def test_keys_are_those_of_the_schema(documents, name) -> None:
    expected = (GOLDEN / f"{name}-1.txt").read_text().split()
    assert sorted(key_paths(documents[f"kernmodel.{name}/1"])) == expected


@pytest.mark.parametrize("name", SCHEMAS)
def test_documents_are_standard_json_in_ascii(documents, name) -> None:
    text = dumps(documents[f"kernmodel.{name}/1"])
    assert text.isascii()
    assert json.loads(text, parse_constant=pytest.fail) == documents[f"kernmodel.{name}/1"]


def test_documents_have_the_numbers(documents) -> None:
    document = documents["kernmodel.what-if/1"]
    assert document["before"]["seconds"] == 21.4 / 2e9
    assert document["before"]["headline"] == {"unit": "cy/CL", "value": 21.4}
    (first, second), together = document["effects"], document["together"]
    assert (first["ratio"], first["elasticity"], first["changes"]) == (
        0.65,
        -0.6215,
        [{"path": "clock", "value": "4GHz"}],
    )
    assert second["applied"][0]["path"] == "paths.L2L3.width"
    assert together["elasticity"] is None
    figure = documents["kernmodel.sensitivity/1"]["figures"][1]
    assert (figure["figure"]["path"], figure["less"], figure["more"]) == ("topology.sockets", None, 1.02)
    variants = documents["kernmodel.code-variants/1"]["variants"]
    assert variants[0]["loop"] == {"instructions": 3, "iterations_per_pass": 4.0, "widest_lanes": 4}
    assert (variants[2]["after"], variants[2]["error"]) == (None, "icc was not found; install it")


def test_one_change_has_no_together(answer) -> None:
    alone = dataclasses.replace(answer, together=None)
    assert what_if_document(alone, "cy/CL")["together"] is None
