"""The report and the document of `kernmodel compare`, of answers made by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from key_paths import key_paths

from kernmodel.models.ecm import ScalingPoint
from kernmodel.report.json.document import dumps
from kernmodel.report.json.ecm import compare_document
from kernmodel.report.text.compare import compare_report
from kernmodel.report.text.render import Style, render
from kernmodel.studies.compare import CompareAnswer, MachineResult

GOLDEN = Path(__file__).parent / "schemas" / "studies"


@pytest.fixture
def answer(ecm_answer) -> CompareAnswer:
    domain = ScalingPoint(8, 1, 1 / 6.4, 6.4, 1.0, True, 21.4)
    first = MachineResult(
        "toy", "stencil.c", ecm_answer, domain, domain, 4, "T_nOL + transfers", "memory bandwidth",
        "A full domain: 4 of its 8 cores use all of it.", 1.0, 1.0,
    )  # fmt: skip
    slower = dataclasses.replace(first, machine="old", ratio=1.5, ratio_domain=2.0, saturation=None)
    failed = MachineResult("arm", "stencil.c", None, None, None, None, "", "", "", None, None, "no compiler for arm")
    return CompareAnswer((first, slower, failed), ecm_answer.notes)


def text_of(answer, unit=None, *, verbose=False, ascii_only=False) -> str:
    return render(compare_report(answer, unit, verbose=verbose), Style(ascii_only=ascii_only))


def test_a_row_for_each_machine(answer):
    text = text_of(answer)
    row = next(line for line in text.splitlines() if line.startswith("toy") and "GHz" in line)
    assert "2 GHz" in row
    assert "21.40  747.7 MLUP/s" in row
    assert "2.500 GLUP/s (8)" in row
    assert row.endswith("4 of 8")
    other = next(line for line in text.splitlines() if line.startswith("old") and "GHz" in line)
    assert "1.50×" in other
    assert "2.00×" in other
    assert other.endswith("none of 8")


def test_what_limits_and_why_stand_below(answer):
    text = text_of(answer)
    assert "toy      T_nOL + transfers  memory bandwidth" in text
    assert "  toy: Memory bandwidth: T_L3Mem takes 30 % of the 21.4 cy/CL at 60.0 GB/s. A full domain: 4 of" in text


def test_what_failed_is_named_with_its_error(answer):
    assert "No prediction of stencil.c\n  arm: no compiler for arm" in text_of(answer)
    alone = dataclasses.replace(answer, results=answer.results[2:])
    assert "No prediction of stencil.c" in text_of(alone)


def test_another_unit_and_ascii(answer):
    assert "21.40 cy/CL" not in text_of(answer)
    assert "21.40 cy/CL" in text_of(answer, "cy/CL")
    assert text_of(answer, ascii_only=True).isascii()


def test_verbose_tells_how_each_was_compiled(answer):
    text = text_of(answer, verbose=True)
    assert "stencil on old: Toy [processor]" in text
    assert text.count("composition") == 2


def test_each_kernel_has_a_table(answer):
    again = tuple(dataclasses.replace(result, kernel="other.c") for result in answer.results[:1])
    text = text_of(dataclasses.replace(answer, results=(*answer.results, *again)))
    assert "stencil on 3 machines" in text
    assert "stencil on 1 machine\n" in text


def test_keys_are_those_of_the_schema(answer):
    """Keys may be added to a version, with the list; one that goes makes a new version."""
    document = compare_document(answer)
    assert document["schema"] == "kernmodel.compare/1"
    assert sorted(key_paths(document)) == (GOLDEN / "compare-1.txt").read_text().split()


def test_the_document_has_predictions_and_errors(answer):
    document = json.loads(dumps(compare_document(answer)), parse_constant=pytest.fail)
    first, second, failed = document["results"]
    assert first["asked"] == {"machine": "toy", "kernel": "stencil.c"}
    assert first["prediction"]["domain"]["in_units"]["LUP/s"] == pytest.approx(2.5e9)
    assert second["prediction"]["ratio"] == 1.5
    assert (failed["prediction"], failed["error"]) == (None, "no compiler for arm")
