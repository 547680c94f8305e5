"""Predictors other than this house's own: files, and tools that are installed or stand in for those."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernmodel.binary.predictors.choose import names_of, predictor_named
from kernmodel.binary.predictors.protocol import Piece
from kernmodel.binary.predictors.table import PredictionTable
from kernmodel.binary.predictors.tools import each_once, found_tool, llvm_names, said
from kernmodel.binary.predictors.uica import Uica
from kernmodel.code.blocks import decode_block
from kernmodel.errors import InputError, ToolError, UsageError


def piece(digits: str, notion: str = "unrolled") -> Piece:
    code = bytes.fromhex(digits)
    return Piece(code, decode_block(code, file=digits), notion)  # type: ignore[arg-type]


ADD, CHAIN, DIVIDE = piece("4801d8"), piece("c5f558c8"), piece("48f7f1")


def tool(folder: Path, name: str, script: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_a_file_of_predictions_answers_by_bytes_and_notion(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("hex,notion,cycles\n4801d8,unrolled,1\n4801d8,loop,2.5\nc5f558c8,,3\n")
    table = PredictionTable(str(file))
    found = table.predict([ADD, piece("4801d8", "loop"), CHAIN, DIVIDE])
    assert [answer.cycles for answer in found] == [1, 2.5, 3, None]
    assert "48f7f1" in found[3].error
    assert table.name == "mine"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hex,cycles\n4801d8,1\n", "no column 'notion'"),
        ("hex,notion,cycles\n4801d8,often,1\n", ":2: 'often' is no notion"),
        ("hex,notion,cycles\n4801d8,loop,soon\n", ":2: 'soon' is no number of cycles"),
        ("hex,notion,cycles\n4801d8,loop,-1\n", "no number of cycles"),
        ("hex,notion,cycles\nxyz,loop,1\n", "no hex digit"),
    ],
)
def test_what_is_wrong_with_a_file_of_predictions_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        PredictionTable(str(file))
    assert said in str(caught.value)


def test_names_of_predictors_are_checked() -> None:
    assert names_of("kernmodel, llvm-mca,kernmodel,some.csv") == ("kernmodel", "llvm-mca", "some.csv")
    with pytest.raises(UsageError, match="did you mean llvm-mca"):
        names_of("llvm_mca")


def test_a_tool_that_is_not_installed_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNMODEL_UICA", "/nowhere/uiCA.py")
    with pytest.raises(ToolError, match=r"KERNMODEL_UICA.*uiCA"):
        predictor_named("uica", "SKL", "x86-64")
    assert ToolError.exit_status == 3


def test_the_newest_llvm_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("llvm-mca", "llvm-mca-17", "llvm-mca-19"):
        tool(tmp_path, name, "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found_tool("llvm-mca", "KERNMODEL_LLVM_MCA", llvm_names("llvm-mca"), "").endswith("llvm-mca-19")


def test_equal_pieces_are_asked_for_once() -> None:
    asked: list[Piece] = []

    def answer(part: list[Piece]) -> list[str]:
        asked.extend(part)
        return [one.code.hex() for one in part]

    found = each_once([ADD, CHAIN, ADD, ADD, DIVIDE], answer, 2, 2)  # type: ignore[arg-type]
    assert found == ["4801d8", "c5f558c8", "4801d8", "4801d8", "48f7f1"]
    assert sorted(one.code.hex() for one in asked) == ["4801d8", "48f7f1", "c5f558c8"]


def test_a_tool_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    status, output, told = said((tool(tmp_path, "slow", "exec sleep 60"),), b"", 0.2)
    assert (status, output) == (-1, b"")
    assert told == "took longer than 0.2 s"


def test_uica_is_given_raw_bytes_and_fails_block_by_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for uiCA: as many cycles as bytes; it refuses three of them."""
    script = 'n=$(wc -c < "$1"); [ $n = 3 ] && echo "no such instruction" >&2 && exit 1; echo "$n.00"'
    monkeypatch.setenv("KERNMODEL_UICA", tool(tmp_path, "uiCA.py", script))
    found = Uica("SKL", jobs=2).predict([ADD, CHAIN])
    assert [answer.cycles for answer in found] == [None, 4.0]
    assert found[0].error == "no such instruction"
    assert "no model of ZEN3" in Uica("ZEN3").predict([ADD])[0].error


@pytest.mark.skipif(
    not any(map(shutil.which, llvm_names("llvm-mca"))) or not any(map(shutil.which, llvm_names("llvm-mc"))),
    reason="llvm-mca is not installed",
)
def test_llvm_mca_answers_for_each_piece_that_it_knows() -> None:
    unknown = Piece(b"\xff\xff\xff", (), "unrolled")
    mca = predictor_named("llvm-mca", "SKL", "x86-64")
    chain, bad, add = mca.predict([CHAIN, unknown, ADD])
    assert mca.version
    assert chain.cycles == pytest.approx(4, rel=0.1)  # the latency of an addition on Skylake
    assert add.cycles == pytest.approx(1, rel=0.1)
    assert bad.cycles is None
    assert "llvm-mc" in bad.error
