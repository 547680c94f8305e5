"""What dispatch does where queues of schedulers are full, by loops timed on a Zen 4 (benchmarks/full_queues.py)."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import get_args

import pytest
from simulations import Engine, predictor

from kernmodel.code.blocks import block_of_bytes
from kernmodel.errors import KernmodelError
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.tables.table import DATA

_F, _M, _S, _C, _MOVE = "4f8d0c1a", "c442aaf5cb", "c442a1f7ca", "4d0f42ca", "4d89f7"
_LOAD, _STORE, _INDEXED, _CONSTANT, _FLAG = "4c8b0f", "4c895640", "4c891406", "48c7464005000000", "0f924640"
_ADD, _OF_SUM = "4d01d5", "4f8d4c1500"
_LETTERS = ("F", "M", "S", "C", ".", "L", "W", "X", "I", "Y", "A", "c", "n")
_CODE = dict(
    zip(_LETTERS, (_F, _M, _S, _C, _MOVE, _LOAD, _STORE, _INDEXED, _CONSTANT, _FLAG, _ADD, _OF_SUM, "90"), strict=True)
)
"""lea, pext, shlx, cmov, an eliminated move, a load, stores of a register, with an index, of a constant and of flags; a
chain of additions and a lea of its value."""


def loop(letters: str) -> bytes:
    body = bytes.fromhex("".join(_CODE[letter] for letter in letters) + "48ffc9")
    return body + b"\x75" + (-len(body) - 2 & 0xFF).to_bytes(1, "little")


def cycles(letters: str) -> float:
    settings = Settings(notion="loop", offset=0)
    return analyse_block(block_of_bytes(loop(letters), file="x"), Core.open("ZEN4", settings), settings).prediction


@pytest.mark.parametrize(
    ("letters", "measured"),
    [
        *(("MFFFF", 1.78), ("MMFFF", 1.99), ("MMFFFF", 2.72), ("MMFFFFF", 3.22), ("MMFFFFFF", 3.47)),
        *(("MMMFFFFFF", 2.99), ("MMMFFFFFFF", 4.94), ("LMLMFFW", 1.99), ("LMLMF.F", 1.99), ("MMFFFX", 1.99)),
    ],
)
def test_a_cycle_waits_for_room_as_a_whole(letters: str, measured: float) -> None:
    """Operations behind multiplications that fill their queue go to that queue where four are dispatched together, and
    each keeps the multiplier from starting anything for two cycles."""
    assert cycles(letters) == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    ("letters", "measured"),
    [
        *(("FFFW", 1.0), ("FFFX", 1.25), ("FFFI", 1.25), ("FFFY", 1.25), ("FFFFW", 1.25), ("FFFFX", 1.5)),
        *(("AFFF", 1.25), ("AXXF", 1.25), ("AcFF", 1.5), ("MFXX", 1.25)),
    ],
)
def test_stores_with_an_index_or_of_a_constant_take_an_alu(letters: str, measured: float) -> None:
    """What they take it for waits for nothing, so that chains do not wait behind it, and gives no result."""
    assert cycles(letters) == pytest.approx(measured, rel=0.03)


@pytest.mark.parametrize(
    ("letters", "measured"), [("X...X...X...", 2.99), ("Y...Y...Y...", 2.99), ("W...W...W...", 2.16)]
)
def test_the_slots_of_an_instruction_are_dispatched_in_one_cycle(letters: str, measured: float) -> None:
    assert cycles(letters) == pytest.approx(measured, rel=0.01)


@pytest.mark.parametrize(
    ("letters", "measured"),
    [
        (".n" * 8, 1.5),
        ("n" * 16, 1.5),
        ("n" * 12, 1.17),
        (".nn" * 6, 2.16),
        ("." * 8 + "nn", 2.0),
        ("Xn" * 3 + "." * 6, 2.33),
    ],
)
def test_a_nop_behind_another_instruction_takes_no_slot(letters: str, measured: float) -> None:
    assert cycles(letters) == pytest.approx(measured, rel=0.01)


_LOADS_AND_SUMS = (
    "62f17c48100662918d2058cf62918d2058d762f17c48101e62918d2058e762918d2058ef62f17c48103662918d2058ff"
    "62118d2058c762717c48100e62118d2058d762118d2058df48ffc975b3"
)
"""Four loads of 512 bits, each with two additions of 256 bits behind it."""
_PRODUCTS = (
    "66420f1024c266420f106cc210660f59e2660f59ea66420f1034c166420f107cc110660f59f3660f58f4660f59fb660f58fd"
    "66420f1024c6660f58e666420f106cc610660f58ef66420f1124c666420f116cc6104983c0044c39c075a3"
)
"""Six loads, two stores and eight operations of 128 bits."""


@pytest.mark.parametrize(("block", "offset", "measured"), [(_LOADS_AND_SUMS, 0, 3.99), (_PRODUCTS, 48, 3.50)])
def test_a_cycle_waits_as_a_whole_for_vector_registers(block: str, offset: int, measured: float) -> None:
    """Each slot for its own: 4.39 and 3.00 cycles."""
    settings = Settings(notion="loop", offset=offset)
    found = analyse_block(block_of_bytes(bytes.fromhex(block), file="x"), Core.open("ZEN4", settings), settings)
    assert found.prediction == pytest.approx(measured, rel=0.01)


@pytest.mark.skipif(library() is None, reason="the engine was not built")
def test_both_engines_fill_queues_alike() -> None:
    draw = Random(3)
    compiled, python = (predictor("ZEN4", Settings(), engine) for engine in get_args(Engine))
    for letters in ("MMFFFF", "MFFFF", *("".join(draw.choices("MMFFSCLXIY.n", k=8)) for _ in range(6))):
        own = compiled.predict(loop(letters), "loop", 0)
        assert own is not None
        assert own == python.predict(loop(letters), "loop", 0)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("ports of two operations per cycle", "[ALU1, FP0]", "FP0 is not among ports assigned together"),
        ("port that waits for its result", "ALU2", "ALU2 is not among ports of one result per cycle"),
    ],
)
def test_figures_of_queues_that_contradict_others_are_refused(tmp_path: Path, key: str, value: str, said: str) -> None:
    text = (DATA / "ZEN4.yml").read_text(encoding="utf-8")
    line = next(own for own in text.splitlines() if own.strip().startswith(f"{key}:"))
    (tmp_path / "own.yml").write_text(text.replace(line, f"  {key}: {{value: {value}, source: x}}"), encoding="utf-8")
    with pytest.raises(KernmodelError, match=said):
        Core.open(str(tmp_path / "own.yml"), Settings())
