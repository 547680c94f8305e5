"""Reports of measurements: what is not confirmed has no number."""

from __future__ import annotations

from kernmodel.errors import Note
from kernmodel.measure.model import BlockMeasurement, InstructionMeasurement, Peak, Peaks
from kernmodel.measure.samples import Figure
from kernmodel.report.json.measure import block_document, instruction_document, peaks_document
from kernmodel.report.text.measure import block_report, instruction_report, peaks_report
from kernmodel.report.text.render import Style, render

GOOD, BAD = Figure(1.0, 1.0, 1.01, 40, 60, True), Figure(1.7, 1.7, 2.4, 9, 891, False)


def block(figure: Figure) -> BlockMeasurement:
    note = Note("not-confirmed", "it is not judged")
    return BlockMeasurement("4801d8", ("add rax,rbx",), "unrolled", False, 0, 320, figure, 2.4e9, (note,))


def test_a_confirmed_figure_has_value_spread_and_samples() -> None:
    text = render(block_report(block(GOOD)), Style())
    assert "1.00 cy (spread 1.0 %, 40 of 100 samples count)" in text
    assert block_document(block(GOOD))["cycles"]["value"] == 1.0


def test_what_is_not_confirmed_has_no_number() -> None:
    text = render(block_report(block(BAD)), Style())
    assert "not judged (9 of 900 samples count)" in text
    assert "1.70" not in text
    assert block_document(block(BAD))["cycles"]["value"] is None


def test_peaks_and_instructions() -> None:
    peaks = Peaks((Peak("FMA", "DP", 64, "vfmadd231pd zmm,zmm,zmm", GOOD), Peak("DIV", "SP", 4, "x", BAD)), 2e9, ())
    assert render(peaks_report(peaks), Style()).count("1.00") == 1
    assert [one["flop_per_cycle"]["value"] for one in peaks_document(peaks)["peaks"]] == [1.0, None]
    one = InstructionMeasurement("imul r64,r64", "imul rax, r14", GOOD, {"1 → 1": GOOD}, {"add r64,r64": BAD}, 2e9, ())
    assert "latency 1 → 1" in render(instruction_report(one), Style())
    assert instruction_document(one)["beside"][0]["value"] is None
