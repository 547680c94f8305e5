"""Blocks cut into instructions, and instructions that are alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes
from kernmodel.isa.memo import Decoded
from kernmodel.isa.model import Instruction
from kernmodel.isa.x86.memo import X86Memo

ENCODINGS = (
    "rex 01 direct",  # add
    "rex 8b modrm sib 10 00 00 00",  # mov from memory
    "rex 8d modrm sib 00 08 00 00",  # lea
    "rex 31 direct",  # xor
    "rex 0f af modrm sib ff ff ff ff",  # imul from memory
    "rex d3 direct",  # shift by cl
    "rex f7 direct",  # test, not, neg, mul, imul, div, idiv
    "rex 0f b6 direct",  # movzx
    "rex 0f b1 modrm sib 00 00 00 00",  # cmpxchg
    "rex 69 direct 00 00 00 00",  # imul by a constant
    "f2 rex 0f 2a direct",  # cvtsi2sd
)
"""With `rex`, `modrm`, `sib`, and `direct` for a modrm of two registers, for fields to fill in."""


def placeless(instruction: Instruction) -> Instruction:
    return replace(instruction, address=0, target=None, text="")


@pytest.mark.parametrize(
    "code", ["4801d84801c3ffc975f6", "488b05100000004889050900000075f0", "e800000000ebf9", "6690f390c3"]
)
def test_pieces_are_the_instructions_of_the_block(code: str) -> None:
    """But for address and target; and the same when asked again."""
    data = bytes.fromhex(code)
    whole = decode_bytes(data).instructions
    memo = X86Memo()
    for _ in range(2):
        found = memo.decode(data)
        assert found is not None
        start = 0
        for one, instruction in zip(found, whole, strict=True):
            assert placeless(memo.instruction(one)) == placeless(instruction)
            assert one.reach is None or (one.reach + start) & (2**64 - 1) == instruction.target
            start += one.length


def test_what_is_no_code_is_not_decoded() -> None:
    assert X86Memo().decode(bytes.fromhex("9006")) is None


def decoded_alone(memo: X86Memo, code: str) -> Decoded:
    found = memo.decode(bytes.fromhex(code))
    assert found is not None
    (one,) = found
    return one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("4801d8", "4d01e7"),  # add rax,rbx; add r15,r12
        ("c5f458c2", "c4c14458d3"),  # vaddps ymm0,ymm1,ymm2; vaddps ymm2,ymm7,ymm11
        ("8b4c2408", "8b542410"),  # two loads from the stack
        ("480fafc3", "4c0fafe5"),  # imul
        ("d3e0", "41d3e4"),  # shl eax,cl; shl r12d,cl
    ],
)
def test_instructions_that_differ_in_registers_only_are_alike(one: str, other: str) -> None:
    memo = X86Memo()
    assert decoded_alone(memo, one).shape == decoded_alone(memo, other).shape


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("4801d8", "4801c0"),  # add rax,rbx; add rax,rax
        ("4801d8", "4801e0"),  # add rax,rsp: the stack engine heeds rsp
        ("4801d8", "01d8"),  # another width
        ("31c0", "31c8"),  # xor of a register with itself is a zero idiom
        ("48f7e3", "48f7e1"),  # mul uses rax and rdx besides: each is taken for itself
        ("d3e0", "d3e1"),  # shl eax,cl; shl ecx,cl
        ("c1e005", "c1e000"),  # a shift by zero leaves the flags alone
        ("660f3810c1", "660f3810c2"),  # pblendvb reads xmm0 besides
        ("668d0408", "668d440d00"),  # lea: rbp needs a displacement
        ("480fb6c3", "480fb6c6"),  # movzx of sil, whose number names dh without REX
        ("00e3", "00c3"),  # bl with ah, bl with al
    ],
)
def test_instructions_that_do_something_else_are_not_alike(one: str, other: str) -> None:
    memo = X86Memo()
    assert decoded_alone(memo, one).shape != decoded_alone(memo, other).shape


@settings(max_examples=400, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=7), min_size=1, max_size=6))
def test_instructions_made_from_representatives_are_those_decoded(codes: list[bytes]) -> None:
    """Also where one that is alike came first."""
    memo = X86Memo()
    for code in codes:
        for one in memo.decode(code) or ():
            data = one.key if isinstance(one.key, bytes) else one.key[0]
            address = 0 if isinstance(one.key, bytes) else one.key[1]
            (decoded,) = decode_bytes(data, address=address).instructions
            assert memo.instruction(one) == replace(decoded, text="")


REGISTERS = st.integers(0, 15)


@pytest.mark.thorough
@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(ENCODINGS), REGISTERS, REGISTERS, REGISTERS), min_size=2, max_size=8))
def test_what_is_alike_differs_in_registers_only(choices: list[tuple[str, int, int, int]]) -> None:
    """Of a few encodings with all registers, so that many are alike: each is what it is when decoded alone."""
    memo = X86Memo()
    for encoding, register, base, index in choices:
        rex = 0x48 | (register >> 3) << 2 | (index >> 3) << 1 | base >> 3
        modrm = 0x80 | (register & 7) << 3 | 4
        direct = 0xC0 | (register & 7) << 3 | base & 7
        fields = {"rex": rex, "modrm": modrm, "sib": 0x40 | (index & 7) << 3 | base & 7, "direct": direct}
        code = bytes(fields[part] if part in fields else int(part, 16) for part in encoding.split())
        for one in memo.decode(code) or ():
            (decoded,) = decode_bytes(code).instructions
            assert memo.instruction(one) == replace(decoded, text="")
