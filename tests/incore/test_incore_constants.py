"""Displacements and immediates at delivery and dispatch, by loops timed on a Zen 4 (benchmarks/code_constants.py)."""

from __future__ import annotations

import re
from random import Random
from typing import get_args

import pytest
from parameter_files import with_figures
from simulations import Engine, predictor

from kernmodel.code.blocks import block_of_bytes
from kernmodel.errors import InstructionTableError, KernmodelError
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.report.text.reasons import reason_text

_CODE = {
    ".": "4d89f7",  # an eliminated move
    "d": "4d8d4a05",  # lea with a displacement of a byte, D of four
    "D": "4d8d8a45230100",
    "v": "c5e973f304",  # a shift by a constant
    "q": "49b9ab89674523010000",  # mov of a constant of eight bytes
    "K": "4c8b8e00020000",  # a load with a displacement of four bytes
    "h": "44395608",  # cmp with memory and a displacement, H an immediate, c and C both
    "H": "833e05",
    "c": "837e0805",
    "C": "81be1002000045230100",
    "p": "c5f970761005",  # a shuffle of what is loaded
    "n": "0f1f840000020000",  # a nop with a displacement
    "R": "4c8d0d00010000",  # lea from rip
}


def loop(letters: str) -> bytes:
    body = bytes.fromhex("".join(_CODE[letter] for letter in letters) + "48ffc9")
    back = -len(body) - 2
    if back >= -128:
        return body + b"\x75" + (back & 0xFF).to_bytes(1, "little")
    return body + b"\x0f\x85" + ((back - 4) & 0xFFFFFFFF).to_bytes(4, "little")


def cycles(letters: str, offset: int = 0) -> float:
    settings = Settings(notion="loop", offset=offset)
    return analyse_block(block_of_bytes(loop(letters), file="x"), Core.open("ZEN4", settings), settings).prediction


@pytest.mark.parametrize(
    ("letters", "measured"),
    [
        *(("cc", 1.0), ("ccc", 1.33), ("CCC", 1.33), ("hhh", 1.0), ("HHH", 1.0), ("ccc..", 1.33), ("cpp", 1.33)),
        *(("cppcpp", 2.32), ("cppddv", 1.99), ("qqq..", 1.33), ("cqpqpq", 2.33), ("cqpqpqcqpqpqcqpqpq", 6.41)),
        *(("cppddv" * 2, 3.32), ("cppddv" * 4, 6.67)),
    ],
)
def test_a_cycle_dispatches_six_constants(letters: str, measured: float) -> None:
    """Of any size up to four bytes; one of eight counts twice."""
    assert cycles(letters) == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    ("letters", "measured"),
    [
        *(("dddd....", 1.5), ("dddddv..", 1.99), ("ddddv...", 1.5), ("DDD.....", 1.5), ("DDDD....", 1.99)),
        *(("DDDddv..", 1.99), ("DDDdd...", 1.5), ("q.......", 1.5), ("qq......", 1.99), ("qD......", 1.5)),
        *(("qDD.....", 1.99), ("qDddd...", 1.99), ("qDdd....", 1.5), ("DDDD...", 1.33), ("DDDDK..", 1.99)),
        *(("qq.....", 1.33), ("qqD....", 1.99), ("qqdddv.", 1.99), ("DDDDKK", 1.25), ("qqq...", 1.33)),
        *(("DDDKKKDDDKKKDDD", 2.99), ("DDDKKKDDDKKK", 2.17)),
    ],
)
def test_few_constants_come_with_eight_or_nine_macro_ops(letters: str, measured: float) -> None:
    """The jump has one of a byte. With nine macro-ops six come, three of them longer than a byte, with eight eight and
    four."""
    assert cycles(letters) == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(("letters", "measured"), [("cc.n.n", 1.0), ("ccR", 1.0), ("cRRR", 1.25)])
def test_nops_have_none_and_what_is_near_rip_one(letters: str, measured: float) -> None:
    assert cycles(letters) == pytest.approx(measured, rel=0.01)


@pytest.mark.skipif(library() is None, reason="the compiled in-core engine was not built")
def test_both_engines_say_the_same() -> None:
    draw = Random(7)
    compiled, python = (predictor("ZEN4", Settings(), engine) for engine in get_args(Engine))
    for number in range(30):
        code = loop("".join(draw.choices("".join(_CODE), k=draw.randint(2, 24))))
        offset = 40 * (number % 2)
        own = compiled.predict(code, "loop", offset)
        assert not isinstance(own, KernmodelError), code.hex()
        assert own == python.predict(code, "loop", offset), code.hex()


def test_without_the_figures_constants_cost_nothing() -> None:
    assert cycles("CCC") > 1.3
    settings = Settings(notion="loop", offset=0)
    zen3 = analyse_block(block_of_bytes(loop("CCC"), file="x"), Core.open("ZEN3", settings), settings)
    assert zen3.prediction == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("letters", "said"),
    [
        ("DDDD....", "takes 2.00 cycles per pass to deliver 9 entries with 5 displacements and immediates"),
        ("cqpqpq", "as they have 13 displacements and immediates, of which it takes 6 a cycle"),
    ],
)
def test_what_they_cost_is_told(letters: str, said: str) -> None:
    settings = Settings(notion="loop", offset=0)
    found = analyse_block(block_of_bytes(loop(letters), file="x"), Core.open("ZEN4", settings), settings)
    assert any(said in reason_text(component.reason) for component in found.components if component.reason)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "constants delivered",
            [8, 8],
            "constants delivered: has 2 numbers for an op cache width of 9; write one for each",
        ),
        ("long constants delivered", None, "long constants delivered: is missing; give it with constants delivered"),
        (
            "constants delivered",
            [6, 8, 8, 8, 8, 8, 8, 8, 8],
            "constants delivered: grows; more macro-ops go with no more",
        ),
        ("constants dispatched per cycle", 0, "0 is smaller than 1"),
    ],
)
def test_figures_that_contradict_others_are_refused(key: str, value: object, said: str) -> None:
    with pytest.raises(InstructionTableError, match=re.escape(said)):
        with_figures(load_parameters("ZEN4"), {key: value})
