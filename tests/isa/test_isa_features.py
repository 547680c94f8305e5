"""Extensions and privilege of instructions, against what iced says of their bytes."""

from __future__ import annotations

import iced_x86 as iced
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes
from kernmodel.isa.x86.features import is_privileged, required_extensions


def only(code: str):
    (instruction,) = decode_bytes(bytes.fromhex(code)).instructions
    return instruction


@pytest.mark.parametrize(
    ("code", "needs"),
    [
        ("62f1fd4858c0", {"AVX512F"}),  # vaddpd zmm
        ("62f1fd2858c0", {"AVX512F", "AVX512VL"}),  # vaddpd ymm, EVEX by its bytes only
        ("c5fd58c0", {"AVX"}),
        ("c5fdfec0", {"AVX2"}),  # vpaddd ymm
        ("c5f9fec0", {"AVX"}),  # vpaddd xmm
        ("c4e27d19c0", {"AVX2"}),  # vbroadcastsd from a register
        ("c4e27d1900", {"AVX"}),  # and from memory
        ("c4e2fdb8c1", {"FMA"}),
        ("c4e2fb f6c1".replace(" ", ""), {"BMI2"}),  # mulx
        ("66480f38f6c1", {"ADX"}),
        ("0fc7f0", {"RDRAND"}),
        ("4801d8", {"X64"}),
    ],
)
def test_what_an_instruction_needs(code, needs):
    found = required_extensions(only(code))
    assert needs - {"X64"} == {name for name in found if name != "X64"}


@pytest.mark.parametrize(
    ("code", "expected"),
    [("f4", True), ("0f30", True), ("0f22c0", True), ("0f20c0", True), ("4889c0", False), ("0f31", False)],
)
def test_privilege(code, expected):
    assert is_privileged(only(code)) == expected


VECTOR_STARTS = st.sampled_from(["c5", "c4e1", "c4e2", "c4e3", "62f1", "62f2", "62f3", "0f", "660f", "f20f38", "f30f"])


@given(VECTOR_STARTS, st.binary(min_size=10, max_size=10))
def test_never_more_is_needed_than_iced_says_of_the_bytes(start, rest):
    """Where the form does not tell encodings apart, less may be found, but nothing that is not needed."""
    code = bytes.fromhex(start) + rest
    said = iced.Decoder(64, code).decode()
    if said.is_invalid or "maskmov" in str(said):
        return
    names = {value: name for name, value in vars(iced.CpuidFeature).items() if isinstance(value, int)}
    instruction = decode_bytes(code[: said.len]).instructions[0]
    assert required_extensions(instruction) <= {names[feature] for feature in said.cpuid_features()}
    assert is_privileged(instruction) == said.is_privileged
