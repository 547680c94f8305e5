"""Reports of measurements: what is not confirmed has no number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernmodel.api.measuring import Measurements
from kernmodel.errors import Note, UsageError
from kernmodel.measure.instructions import timing_of
from kernmodel.measure.model import (
    BlockMeasurement,
    InstructionMeasurement,
    InstructionMeasurements,
    KernelMeasurement,
    Peak,
    Peaks,
    PlacedArray,
)
from kernmodel.measure.samples import Figure
from kernmodel.report.json.measure import (
    block_document,
    instruction_document,
    instructions_document,
    kernels_document,
    peaks_document,
)
from kernmodel.report.text.measure import (
    block_report,
    instruction_report,
    instructions_report,
    kernels_report,
    peaks_report,
)
from kernmodel.report.text.render import Style, render

GOOD, BAD = Figure(1.0, 1.0, 1.01, 40, 60, True), Figure(1.7, 1.7, 2.4, 9, 891, False)


def block(figure: Figure) -> BlockMeasurement:
    note = Note("not-confirmed", "it is not judged")
    return BlockMeasurement("4801d8", ("add rax,rbx",), "unrolled", False, 0, 320, figure, 2.4e9, (note,))


def test_a_confirmed_figure_has_value_spread_and_samples() -> None:
    text = render(block_report(block(GOOD)), Style())
    assert "1.00 cy (spread 1.0 %, 40 of 100 samples count)" in text
    assert block_document(block(GOOD))["cycles"]["value"] == 1.0


def test_a_kernel_says_what_compiled_it() -> None:
    array = PlacedArray("a", 8192, 0, True)
    made = ("gcc", "12.2.0", ("-O3",))
    one = KernelMeasurement("copy", {"N": 1000}, "L1", 16384, 1000, GOOD, 2.4e9, 0, (array,), *made, ())
    assert "gcc 12.2.0" in render(kernels_report([one]), Style())
    (point,) = kernels_document([one])["points"]
    assert (point["compiler"], point["version"], point["flags"]) == ("gcc", "12.2.0", ["-O3"])
    given = replace(one, compiler=None, version=None, flags=())
    assert "Compiled" not in render(kernels_report([given]), Style())
    assert kernels_document([given])["points"][0]["compiler"] is None


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


def measured(form: str, throughput: Figure, latencies: dict[str, Figure], *codes: str) -> InstructionMeasurement:
    notes = tuple(Note(code, "x") for code in codes)
    return InstructionMeasurement(form, "x", throughput, latencies, {}, 2e9, notes)


def test_only_what_is_confirmed_becomes_a_row() -> None:
    found = timing_of(measured("add r64,m64", GOOD, {"1 → 1": GOOD, "2 → 1": GOOD}), "here")
    assert found is not None
    assert (found.throughput, found.latencies) == (1.0, {("0", "0"): 1.0, ("A1", "0"): 1.0})
    half = timing_of(measured("add r64,r64", BAD, {"1 → 1": GOOD, "2 → 1": BAD}), "here")
    assert half is not None
    assert (half.throughput, half.latencies) == (None, {("0", "0"): 1.0})
    assert timing_of(measured("add r64,r64", BAD, {"1 → 1": BAD}), "here") is None
    assert timing_of(measured("mul r64", GOOD, {}, "implicit-chain"), "here") is None


def test_several_instructions_are_a_table() -> None:
    one = measured("add r64,r64", GOOD, {"1 → 1": BAD, "2 → 1": GOOD})
    several = InstructionMeasurements((one,), (Note("form-not-measured", "jmp is left out"),))
    text = render(instructions_report(several), Style())
    assert "2 → 1: 1.00" in text and "1 → 1" not in text and "jmp is left out" in text
    assert "2 GHz" in text and "1.0 %" in text and "beside" not in text
    ports = replace(one, beside={"add r64,r64": GOOD, "imul r64,r64": BAD})
    text = render(instructions_report(InstructionMeasurements((ports,), ())), Style())
    assert "add r64,r64: +1.00" in text and "imul" not in text
    assert "clock" not in render(instructions_report(InstructionMeasurements((), ())), Style())
    document = instructions_document(several)
    assert [one["value"] for one in document["instructions"][0]["latencies"]] == [None, 1.0]


def test_there_are_no_rows_of_what_is_not_confirmed(tmp_path: Path) -> None:
    """Nor of nothing: what `measure instruction -o` would write is no table of the core."""
    left_out = InstructionMeasurements((), (Note("left-out", "xsave m is left out"),))
    with pytest.raises(UsageError, match=r"no rows to write to .*rows\.txt"):
        Measurements([left_out], "ZEN4").rows(tmp_path / "rows.txt")
