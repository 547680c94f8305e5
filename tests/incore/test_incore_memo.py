"""What predictors of several cores share changes nothing: each predicts as it does alone."""

from __future__ import annotations

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.answer.batch import BlockQuery, answer_all
from kernmodel.incore.answer.predictor import Code, Predictor
from kernmodel.incore.core import Core, Settings
from kernmodel.incore.dependences.addresses import address_step

CORES = ("SNB", "IVB", "HSW", "SKL", "ICL", "RKL")
OPENED = {name: Core.open(name, Settings()) for name in CORES}
INSTRUCTIONS = (
    "f3480fb8c3",  # popcnt rax,rbx: waits for what it overwrites on most cores only
    "f3480fbcc1",  # tzcnt rax,rcx
    "c5fc100400",  # vmovups ymm0,[rax+rax]: in two halves on the older cores
    "c5fc110400",  # vmovups [rax+rax],ymm0
    "c5fd6f0b",  # vmovdqa ymm1,[rbx]
    "480f44c3",  # cmove rax,rbx: two µops before Broadwell
    "4811d8",  # adc rax,rbx: likewise
    "c5fb58c1",  # vaddsd xmm0,xmm0,xmm1
    "f20f5ec1",  # divsd xmm0,xmm1
    "488b03",  # mov rax,[rbx]
    "48890b",  # mov [rbx],rcx
    "4889c3",  # mov rbx,rax: eliminated, on some
    "c1e003",  # shl eax,3
    "d1f8",  # sar eax,1
    "0fafc3",  # imul eax,ebx
    "48f7e3",  # mul rbx
    "4899",  # cqo
    "488d440b08",  # lea rax,[rbx+rcx+8]
    "4829c0",  # sub rax,rax
    "4831d2",  # xor rdx,rdx
    "4d31c8",  # xor r8,r9
    "50",  # push rax
    "5e",  # pop rsi
    "88e0",  # mov al,ah
    "0fc8",  # bswap eax
    "4887d9",  # xchg rcx,rbx
)
BLOCKS = st.lists(st.sampled_from(INSTRUCTIONS), min_size=1, max_size=8).map("".join).map(bytes.fromhex)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(BLOCKS, st.permutations(CORES), st.sampled_from(("loop", "unrolled")))
def test_a_core_among_others_predicts_as_alone(code: bytes, cores: list[str], notion: str) -> None:
    shared = Code()
    for name in cores:
        alone = Predictor(OPENED[name], Settings()).predict(code, notion)  # type: ignore[arg-type]
        among = Predictor(OPENED[name], Settings(), shared).predict(code, notion)  # type: ignore[arg-type]
        assert among == alone


@pytest.mark.parametrize("code", INSTRUCTIONS)
def test_steps_are_those_of_the_instruction_itself(code: str) -> None:
    """Even where they are told by another one that is alike."""
    own = Code()
    for registers in range(8):  # the last byte names the registers of most of them
        data = bytearray.fromhex(code)
        data[-1] ^= registers
        block = own.decoder.decode(bytes(data))
        for one in block or ():
            (expected,) = decode_bytes(bytes(data)).instructions
            assert own.steps.of(one) == address_step(expected)


def test_garbage_is_collected_as_before_after_a_batch() -> None:
    before = gc.get_threshold()
    results = answer_all([BlockQuery(1, "90", "SKL"), BlockQuery(2, "90", "HSW")], Settings(), jobs=1)
    next(results)
    assert gc.get_threshold()[0] >= before[0]
    results.close()  # type: ignore[attr-defined]
    assert gc.get_threshold() == before


def test_what_a_batch_remembers_is_free_behind_it() -> None:
    def kept() -> int:
        return sum(isinstance(one, Code) for one in gc.get_objects())

    before = kept()
    gc.disable()  # nothing may wait for a search for garbage
    try:
        assert [one.error for one in answer_all([BlockQuery(1, "480307480307", "SKL")], Settings(), 1)] == [None]
        assert kept() == before
    finally:
        gc.enable()
