"""Where the parts of an encoded instruction stand (Intel SDM vol. 2, chapter 2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes, read_listing
from kernmodel.isa.model import Instruction


def one(code: str) -> Instruction:
    return decode_bytes(bytes.fromhex(code)).instructions[0]


@pytest.mark.parametrize(
    ("code", "offset"),
    [
        ("90", 0),
        ("4801d8", 1),  # REX add
        ("0fafc3", 1),  # 0F imul: the escape is no part of the nominal opcode
        ("f3480fb8c3", 3),  # F3 REX 0F popcnt
        ("660f3a0fc101", 3),  # 66 0F 3A palignr
        ("660f3817c1", 3),  # 66 0F 38 ptest
        ("c5f958c1", 2),  # two-byte VEX
        ("c4e2f5b8c2", 3),  # three-byte VEX
        ("62f1f54858c2", 4),  # EVEX
        ("65488b042528000000", 2),  # segment, REX
    ],
)
def test_opcode_stands_behind_prefixes_and_escapes(code: str, offset: int) -> None:
    assert one(code).encoding.opcode_offset == offset


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("6681c13412", True),  # add cx, imm16
        ("66b83412", True),  # mov ax, imm16
        ("66f7c10100", True),  # test cx, imm16
        ("6683c101", False),  # add cx, imm8
        ("6601d8", False),  # no immediate
        ("664881c1341200ff", False),  # REX.W overrides 66
        ("66c20800", False),  # ret imm16 has two bytes with any prefix
        ("67a011223344", True),  # mov al, [moffs32]
        ("678b00", False),
    ],
)
def test_length_changing_prefix(code: str, changes: bool) -> None:
    assert one(code).encoding.length_changing_prefix is changes


@pytest.mark.parametrize(
    ("code", "displacement", "immediate"),
    [
        ("48b80102030405060708", 0, 8),
        ("c7840a00000000ffffffff", 4, 4),
        ("488b4308", 1, 0),
        ("83c001", 0, 1),
        ("4801d8", 0, 0),
        ("75fe", 0, 1),
        ("8b0500000000", 4, 0),
    ],
)
def test_sizes_of_the_fields(code: str, displacement: int, immediate: int) -> None:
    instruction = one(code)
    assert (instruction.encoding.displacement_bytes, instruction.encoding.immediate_bytes) == (displacement, immediate)


@given(st.binary(min_size=1, max_size=40))
def test_parts_lie_within_any_instruction(code: bytes) -> None:
    for instruction in decode_bytes(code).instructions:
        fields = instruction.encoding.displacement_bytes + instruction.encoding.immediate_bytes
        assert 0 <= instruction.encoding.opcode_offset < instruction.length
        assert instruction.encoding.opcode_offset + fields <= instruction.length


def test_a_listing_has_them_as_well() -> None:
    text = "\taddw $4660, %cx\n\tmovq data(%rip), %rax\n\timulq %rbx, %rax\n"
    first, second, third = read_listing(text, "f.s").instructions
    assert (first.encoding.length_changing_prefix, first.encoding.immediate_bytes) == (True, 2)
    assert second.encoding.displacement_bytes == 4
    assert third.encoding.opcode_offset == 2
