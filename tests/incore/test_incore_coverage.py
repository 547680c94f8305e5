"""Which forms of a listing have rows of their own."""

from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.tables.coverage import coverage
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

CODE = {
    "c5f558c2": ("vaddpd ymm,ymm,ymm", "exact"),
    "4801d8": ("add r64,r64", "exact"),
    "62f1f54858c2": ("vaddpd zmm,zmm,zmm", "none"),
    "6681c03412": ("add r16,i16", "exact"),
    "d9fb": ("fsincos", "none"),
}


def test_exact_and_missing_rows_are_told_apart() -> None:
    code = bytes.fromhex("".join(CODE))
    found = coverage(decode_bytes(code).instructions, InstructionTable.open(load_parameters("SKL")))
    assert {item.form: item.row for item in found} == dict(CODE.values())
    assert [item.row for item in found] == sorted((item.row for item in found), key=["none", "exact"].index)


def test_a_relative_is_named() -> None:
    block = decode_bytes(bytes.fromhex("62f1f5cb58c2")).instructions  # a zeroing mask on vaddpd zmm
    (item,) = coverage(block, InstructionTable.open(load_parameters("SKX")))
    assert (item.row, item.rule) == ("approximated", "unmasked form of vaddpd zmm,zmm,zmm")
    assert "LLVM" in item.source


@given(st.lists(st.sampled_from(sorted(CODE)), min_size=1, max_size=12))
def test_every_instruction_is_counted_once(chosen: list[str]) -> None:
    block = decode_bytes(bytes.fromhex("".join(chosen))).instructions
    found = coverage(block, InstructionTable.open(load_parameters("SKL")))
    assert sum(item.count for item in found) == len(chosen)
    assert len({item.form for item in found}) == len(found)
