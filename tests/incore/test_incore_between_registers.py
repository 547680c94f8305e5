"""Moves between vector and general-purpose registers, by code timed on a Zen 4 (docs/front-end.md)."""

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
from kernmodel.incore.tables.table import InstructionTable

_CODE = {
    "S": "c5f950c1",  # vmovmskpd eax, xmm1
    "Q": "c4e1f97ecb",  # vmovq rbx, xmm1
    "X": "c4c1f96eda",  # vmovq xmm3, r10
    "C": "c5f92eca",  # vucomisd xmm1, xmm2
    "W": "c5fc110e",  # a store of a vector
    "F": "4f8d1423",  # lea, any ALU
    "J": "c44299f7d3",  # shlx, ALU1 or ALU2
    "P": "c442a2f5d4",  # pext, ALU1
    "H": "c4e27500ea",  # vpshufb
    "A": "c5f158ea",  # vaddpd, FP2 or FP3
    "M": "c5f159f2",  # vmulpd, FP0 or FP1
    "D": "c5f1feea",  # vpaddd, any pipe
    "B": "c4c37920c201",  # vpinsrb xmm0, xmm0, r10d
    "I": "c4c37922c201",  # vpinsrd xmm0, xmm0, r10d
    ".": "4d89f7",  # an eliminated move
}
_END = "48ffc975"


def code(letters: str) -> bytes:
    return bytes.fromhex("".join(_CODE[letter] for letter in letters))


def loop(letters: str) -> bytes:
    body = code(letters) + bytes.fromhex(_END)
    return body + (-len(body) - 1 & 0xFF).to_bytes(1, "little")


def cycles(block: bytes, notion: str) -> float:
    settings = Settings(notion=notion, offset=0)
    return analyse_block(block_of_bytes(block, file="x"), Core.open("ZEN4", settings), settings).prediction


@pytest.mark.parametrize(
    ("letters", "measured"),
    [
        *(("S", 1.0), ("Q", 1.0), ("X", 1.0), ("SQ", 0.99), ("SQQ", 1.99), ("SQW", 1.5), ("QW", 0.99), ("SW", 1.0)),
        *(("SC", 1.99), ("QC", 0.99), ("QX", 1.0), ("SFF", 1.51), ("SFFF", 1.75), ("SP", 1.0), ("SJ", 1.0)),
    ],
)
def test_signs_and_flags_take_another_path_than_numbers(letters: str, measured: float) -> None:
    """Either pipe of stored data, and ALU2 for numbers, ALU3 for signs and flags."""
    assert cycles(code(letters), "unrolled") == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    ("letters", "measured"),
    [
        *(("XH", 1.0), ("XHH", 1.07), ("XHHH", 1.5), ("XM", 1.0), ("XMM", 1.0), ("XMMM", 1.5)),
        *(("XA", 1.25), ("XAA", 1.57), ("XAAA", 2.01), ("XDD", 1.27), ("XDDD", 1.44), ("XDDDD", 1.54)),
        *(("BBBB", 7.98), ("IIII", 3.99)),
    ],
)
def test_what_comes_from_general_purpose_registers_takes_the_path_of_fp3(letters: str, measured: float) -> None:
    """Shuffles (FP1, FP2) and multiplications (FP0, FP1) do not meet it, additions (FP2, FP3) do. Inserted bytes
    take two cycles of a chain, larger elements one."""
    assert cycles(loop(4 * letters), "loop") / 4 == pytest.approx(measured, rel=0.075)


@pytest.mark.parametrize(("letters", "measured"), [("S", 1.97), ("SFFFF", 2.24), ("SFFFFFFF", 2.99)])
def test_an_alu_starts_nothing_while_it_brings_a_result(letters: str, measured: float) -> None:
    assert cycles(loop(letters), "loop") == pytest.approx(measured, rel=0.02)


_ROUND_TRIPS = {
    **dict.fromkeys(("SNB", "HSW"), 2),
    **dict.fromkeys(("SKL", "SKX", "ICX", "GLC", "RWC"), 4),
    **dict.fromkeys(("ZEN", "ZEN2", "ZEN3", "ZEN4"), 6),
}
"""Of vmovd: InstLatx64's readings; of Zen 2 a cycle more than uops.info's bound for each, of Zen 3 measured."""


@pytest.mark.parametrize(("core", "measured"), _ROUND_TRIPS.items())
def test_moves_between_register_files_take_their_round_trip(core: str, measured: float) -> None:
    """Regression: each of both had the whole but a cycle."""
    block, settings = bytes.fromhex("c5f97ec0c5f96ec048ffc975f3"), Settings(notion="loop", offset=0)
    found = analyse_block(block_of_bytes(block, file="x"), Core.open(core, settings), settings).prediction
    assert found == measured


def test_what_is_loaded_crosses_no_register_file() -> None:
    row = InstructionTable.open(load_parameters("SKL")).row("cvtsi2sd xmm,m64")
    assert row is not None
    assert (row.default_latency, row.latencies["A1", "0"], row.latencies.get(("M1", "0"))) == (4, 10, None)


@pytest.mark.parametrize("core", ["ZEN", "ZEN2", "ZEN3", "ZEN4"])
def test_what_goes_through_the_pipe_of_stored_data_is_no_store(core: str) -> None:
    """Regression: `vmovq r,x` gave its result after a cycle in the simulation of Zen and Zen 2."""
    settings = Settings(notion="loop", offset=0)
    block = bytes.fromhex("c4e1f97ec8c4e1f96ec8" + _END + "f1")  # vmovq rax, xmm1; vmovq xmm1, rax
    found = analyse_block(block_of_bytes(block, file="x"), Core.open(core, settings), settings)
    cycles = {component.name: component.cycles for component in found.components}
    assert cycles["pipeline"] == pytest.approx(cycles["precedence"])


@pytest.mark.skipif(library() is None, reason="the compiled in-core engine was not built")
def test_both_engines_say_the_same() -> None:
    draw = Random(11)
    compiled, python = (predictor("ZEN4", Settings(), engine) for engine in get_args(Engine))
    for _ in range(20):
        letters = "".join(draw.choices("".join(_CODE), k=draw.randint(2, 16)))
        own = compiled.predict(loop(letters), "loop", 0)
        assert not isinstance(own, KernmodelError), letters
        assert own == python.predict(loop(letters), "loop", 0), letters


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("paths of results", [["FP5"]], "FP5 are not two ports or more"),
        (
            "paths of results",
            [["FP5", "FP5", "ALU2"]],
            "FP5, FP5, ALU2 are not two ports or more; write the ports, and",
        ),
        ("paths of third vectors", [["FP0", "FP1", "FP4"]], "FP0, FP1, FP4 are not two ports; write pairs"),
    ],
)
def test_paths_name_different_ports(key: str, value: object, said: str) -> None:
    with pytest.raises(InstructionTableError, match=re.escape(said)):
        with_figures(load_parameters("ZEN4"), {key: value})


@pytest.mark.parametrize(
    ("block", "measured"),
    [
        ("c5f96ec6c4c17a7f0048ffc875f2", 1.0),  # vmovd x,r and a store
        ("c5ea2ac2c5fa59c1c5fa1140fc48ffce75ee", 1.01),  # vcvtsi2ss, vmulss and a store
        ("c4e279784740c5fa7f0748ffc875f1", 1.03),  # vpbroadcastb from memory and a store
        ("4889f848f7e64901c04911d148ffc975ef", 1.99),  # mul, add, adc
        ("498b50034801ca48339780000000498b400b4829c84833878800000048f7e24831c24901d14883c1014839f175d2", 3.63),
    ],
)
def test_zen_3_between_registers_and_second_results(block: str, measured: float) -> None:
    """What goes to vectors meets no store; second results of multiplications keep ALU0 and ALU3 for a cycle."""
    settings = Settings(notion="loop", offset=0)
    code = block_of_bytes(bytes.fromhex(block), file="x")
    assert analyse_block(code, Core.open("ZEN3", settings), settings).prediction == pytest.approx(measured, rel=0.06)
