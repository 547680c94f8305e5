"""docs/ecm-by-hand.md: the tool gives what the page derives, for the listings that the page prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest

PAGE = Path(__file__).parents[2] / "docs" / "ecm-by-hand.md"


@pytest.fixture
def answer_of(tmp_path: Path):
    listings = dict(re.findall(r"^```asm\n# (\S+\.s)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))

    def answer(kernel: str, machine: str, listing: str, *, classic: bool = True, **sizes: int) -> EcmAnswer:
        file = tmp_path / listing
        file.write_text(listings[listing])
        return predict_ecm(KernelRequest(kernel, machine, sizes), CodeRequest(asm=str(file), classic=classic))

    return answer


def test_schoenauer_on_snb(answer_of) -> None:
    answer = answer_of("schoenauer", "snb", "schoenauer-snb.s")
    prediction = answer.prediction
    t_mem = 320 / (30.73e9 * 5 / 4) * 2.7e9
    assert answer.loop.iterations_per_pass == 4
    assert (prediction.t_ol, prediction.t_nol, prediction.ol_bound_by) == (10, 6, "front end")
    assert [t.cycles for t in prediction.transfers] == pytest.approx([10, 10, t_mem])
    assert prediction.cycles == pytest.approx(6 + 10 + 10 + t_mem)
    assert prediction.cycles == pytest.approx(48.5, abs=0.05)
    assert prediction.saturation_simple == 3


def test_stencil_on_clx(answer_of) -> None:
    answer = answer_of("stencil", "clx", "stencil-clx.s")
    prediction = answer.prediction
    t_mem = 192 / (36.54e9 * 3 / 2) * 2.5e9
    assert answer.loop.iterations_per_pass == 4
    assert (prediction.t_ol, prediction.t_nol, prediction.ol_bound_by) == (6, 4, "front end")
    assert [t.cycles for t in prediction.transfers] == pytest.approx([5, 8, t_mem])
    assert prediction.cycles == pytest.approx(25.8, abs=0.05)
    assert prediction.saturation_simple == 3
    rows = [c for c in answer.traffic.conditions if str(c.required_bytes) == "32*N - 16"]
    assert {c.cache: (c.holds, c.breaks_at["N"]) for c in rows if c.cache != "L3"} == {
        "L1": (False, 1024),
        "L2": (True, 32768),
    }


def test_moving_average_on_clx(answer_of, tmp_path: Path) -> None:
    source = re.search(r"^```c\n(// average\.c\n.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert source is not None
    kernel = tmp_path / "average.c"
    kernel.write_text(source[1])
    prediction = answer_of(str(kernel), "clx", "average-clx.s", classic=False, n=10_000).prediction
    outside = prediction.outside
    assert outside is not None and outside.known
    assert (prediction.t_ol, prediction.t_nol) == (32, 4)
    assert (outside.entries, outside.remainder_cycles, outside.outer_cycles, outside.entry_cycles) == (0.5, 0, 2, 7)
    # of a row no more than 16 passes of 1 remain
    assert outside.overlap_cycles == pytest.approx(32 - 8)
    assert prediction.cycles == pytest.approx(17)
    assert prediction.cycles_interval is not None and prediction.cycles_interval.low == pytest.approx(10)
