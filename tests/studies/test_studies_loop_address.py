"""The unknown address of a loop in `ecm`: T_ECM over all that it may get, alone and with those of arrays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernmodel.cli.main import main
from kernmodel.models.ecm import EcmPrediction
from kernmodel.studies.predict.placement import CAUSE
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.uncertainty import MATTERS
from kernmodel.user_files import GivenText

ARRAYS = "addresses of the arrays"
COPY = """\t.p2align {aligned}
copy:
\txorl %eax, %eax
\t.skip {skipped}, 0x90
.L3:
\tvmovupd (%rsi,%rax), %xmm0
\tvmovupd %xmm0, (%rdi,%rax)
\taddq $16, %rax
\tcmpq %rdx, %rax
\tjne .L3
\tret
"""
"""The loop is 19 bytes long, so that it fits into one line of code at 46 of 64 addresses."""


STAGES = Stages()


def answer(aligned: int = 4, first: int = 8, machine: str = "zen4", rows: int = 1000, **options) -> EcmAnswer:
    text = GivenText(COPY.format(aligned=aligned, skipped=first - 2))
    return STAGES.answer(Point(KernelRequest("copy", machine, {"N": rows}), CodeRequest(asm=text, **options)))


def prediction(*where: int, **options) -> EcmPrediction:
    return answer(*where, **options).prediction


@pytest.mark.parametrize(("aligned", "first"), [(0, 8), (4, 8), (4, 16), (5, 40)])
@pytest.mark.parametrize("machine", ["zen4", "clx"])
def test_the_interval_is_that_of_all_addresses_it_may_get(machine: str, aligned: int, first: int) -> None:
    found = prediction(aligned, first, machine=machine, data_align=64)
    possible = range(first % (1 << aligned), 64, 1 << aligned)
    each = [prediction(aligned, first, machine=machine, data_align=64, align=place).cycles for place in possible]
    assert found.cycles == each[0]
    if max(each) - min(each) > MATTERS * max(each):
        interval = found.cycles_interval
        assert interval is not None
        assert (interval.low, interval.high, interval.cause) == (min(each), max(each), CAUSE)
        assert interval.assumed == f"first byte at {possible[0]} modulo 64"
    else:
        assert found.cycles_interval is None


def test_a_known_address_leaves_none() -> None:
    for found in (answer(6, 8, data_align=64), answer(4, 8, data_align=64, align=48)):
        assert found.prediction.cycles_interval is None
        assert "code-address" not in [note.code for note in found.notes]
    assert prediction(4, 8, data_align=64, classic=True).cycles_interval is None  # textbooks know no lines of code


def test_addresses_of_arrays_and_code_count_together() -> None:
    both = prediction(4, 8).cycles_interval
    arrays, code = prediction(6, 8).cycles_interval, prediction(4, 8, data_align=64).cycles_interval
    assert both and arrays and code
    assert (arrays.cause, code.cause, both.cause) == (ARRAYS, CAUSE, f"{ARRAYS}; {CAUSE}")
    assert both.low == min(arrays.low, code.low)
    assert both.high == max(arrays.high, code.high)


def test_what_alignment_buys_is_said_of_t_ecm_where_that_changes() -> None:
    def note(rows: int) -> str:
        return next(note.text for note in answer(4, 8, rows=rows).notes if note.code == "code-address")

    near, far = note(1000), note(20_000_000)
    assert near.endswith("T_ECM is 4.00 to 8.00 cy/CL; `-falign-loops=64` makes it 1.00, T_ECM 4.00")
    assert far.endswith("1.00 to 2.00 cycles per pass; `-falign-loops=64` makes it 1.00")  # memory takes longer
    assert prediction(4, 8, rows=20_000_000).cycles_interval is None


@pytest.mark.parametrize(
    ("limit", "outcome"), [("ecm <= 3", "fails"), ("ecm <= 6", "open"), ("ecm <= 9", "holds"), ("ecm >= 6", "open")]
)
def test_checks_between_both_are_open(
    limit: str, outcome: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "copy.s").write_text(COPY.format(aligned=4, skipped=6))
    entry = f'{{kernel: copy.c, machine: zen4, asm: copy.s, sizes: {{N: 1000}}, assert: ["{limit} cy/CL"]}}'
    (tmp_path / "checks.yml").write_text(f"checks:\n  - {entry}\n")
    main(["check", str(tmp_path / "checks.yml"), "--format", "json"])
    (check,) = json.loads(capsys.readouterr().out)["checks"]
    assert [one["outcome"] for one in check["assertions"]] == [outcome]
