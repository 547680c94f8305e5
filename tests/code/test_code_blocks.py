"""Hex digits, raw bytes, address ranges and loops of a listing as blocks, and what is said of bytes that make none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.blocks import (
    LARGEST_BLOCK,
    block_in_range,
    block_of_bytes,
    decode_block,
    innermost_loops,
    parse_hex,
    privilege_notes,
    read_bytes,
    refuse_archive,
)
from kernmodel.code.listing import read_listing
from kernmodel.errors import AssemblyError

LOOP = bytes.fromhex("4801d84801c3ffc975f6")  # add, add, dec, jne to the first add
NOP = "90"


@pytest.mark.parametrize(
    "text", ["4801d8", "48 01 D8", "0x48 0x01 0xd8", "0x48,0x01,0xd8", r"\x48\x01\xd8", "48:01:d8\n", "0x4801d8"]
)
def test_hex_digits_in_the_ways_people_write_them(text):
    assert parse_hex(text, "--hex") == b"\x48\x01\xd8"


@given(st.binary(max_size=64))
def test_hex_digits_mean_their_bytes(code):
    assert parse_hex(code.hex(), "x") == parse_hex(code.hex(" ").upper(), "x") == code


@pytest.mark.parametrize(
    ("text", "part"), [("480", "3 hex digits"), ("4g", "'g'"), ("4801d8h", "'h'"), ("48.1", "'.'")]
)
def test_what_is_no_hex(text, part):
    with pytest.raises(AssemblyError, match=part) as error:
        parse_hex(text, "--hex")
    assert str(error.value).startswith("--hex: ")


def test_a_block_is_all_its_instructions():
    block = block_of_bytes(LOOP, file="x", address=0x1000)
    assert [item.mnemonic for item in block.instructions] == ["add", "add", "dec", "jne"]
    assert [item.address for item in block.instructions] == [0x1000, 0x1003, 0x1006, 0x1008]
    assert (block.notes, block.role, block.syntax) == ((), "chosen", "binary")


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("", "the block is empty"),
        ("06", "byte 0 begins no x86-64 instruction: 06"),
        ("4801d806", "byte 3 begins no x86-64 instruction"),
        ("4801", "the code ends inside the instruction at byte 0: 48 01"),
        ("4801d84801", "the code ends inside the instruction at byte 3"),
        ("62f1fd48", "the code ends inside the instruction at byte 0"),
        ("90" * (LARGEST_BLOCK + 1), f"the limit is {LARGEST_BLOCK}"),
    ],
)
def test_bytes_that_are_no_block(code, part):
    with pytest.raises(AssemblyError, match=part):
        block_of_bytes(bytes.fromhex(code), file="x")


def test_the_largest_block_is_read():
    assert len(block_of_bytes(b"\x90" * LARGEST_BLOCK, file="x").instructions) == LARGEST_BLOCK


@given(st.binary(min_size=1, max_size=24))
def test_random_bytes_are_decoded_to_the_last_or_refused(code):
    try:
        instructions = decode_block(code, file="x")
    except AssemblyError as error:
        assert "no x86-64 instruction" in error.what or "ends inside" in error.what
    else:
        assert sum(item.length for item in instructions) == len(code)


def test_of_two_blocks_the_loop_is_taken():
    code = bytes.fromhex("4801d8") + LOOP + bytes.fromhex("75004801c3")  # before it, and behind it a branch
    block = block_of_bytes(code, file="x")
    assert [item.address for item in block.instructions] == [3, 6, 9, 11]
    (note,) = block.notes
    assert note.kind == "warning"
    assert "2 branches" in note.text
    assert "bytes 3 to 12 (instructions 2 to 5 of 7)" in note.text


def test_without_a_loop_the_first_basic_block_is_taken():
    block = block_of_bytes(bytes.fromhex("4801d874034801c3c3"), file="x")
    assert [item.mnemonic for item in block.instructions] == ["add", "je"]
    assert "its first basic block was taken: bytes 0 to 4 (instructions 1 to 2 of 4)" in block.notes[0].text


def test_a_loop_with_a_branch_inside_says_that_it_falls_through():
    block = block_of_bytes(bytes.fromhex("4801d874034801c3ffc975f4"), file="x")
    assert len(block.instructions) == 5
    assert "inner branches fall through" in block.notes[0].text


def test_a_branch_into_the_middle_is_noted():
    block = block_of_bytes(bytes.fromhex("4801d84801c375fb"), file="x")
    assert len(block.instructions) == 3
    assert "goes to instruction 2" in block.notes[0].text
    assert not block_of_bytes(bytes.fromhex("4801d8e800000000"), file="x").notes  # a call ends no block


def test_privileged_instructions_are_noted_once_each():
    block = block_of_bytes(bytes.fromhex("f4f40f3090"), file="x")
    assert [note.text.partition(" ")[0] for note in block.notes] == ["hlt", "wrmsr"]
    assert not privilege_notes(block_of_bytes(LOOP, file="x").instructions, "x")


def test_an_archive_is_refused_by_name(tmp_path):
    path = tmp_path / "libx.a"
    path.write_bytes(b"!<arch>\nx.o/")
    with pytest.raises(AssemblyError, match="archive"):
        refuse_archive(str(path))
    path.write_bytes(b"!<arc")
    refuse_archive(str(path))
    refuse_archive(str(tmp_path))


def test_files_that_cannot_be_read(tmp_path):
    for path, what in ((tmp_path, "is a directory"), (tmp_path / "missing", "cannot be read")):
        with pytest.raises(AssemblyError, match=what):
            read_bytes(str(path))


SOURCE = """
        .globl  f
        .type   f, @function
f:      xorl    %eax, %eax
.L1:    addsd   table(%rip), %xmm0
        addq    $8, %rax
        cmpq    %rsi, %rax
        jne     .L1
.L2:    addq    $1, %rax
        jne     .L2
        ret
        .size   f, .-f
        .data
table:  .quad   1
"""


@pytest.fixture
def object_file(tmp_path) -> Path:
    path = tmp_path / "f.o"
    subprocess.run(["as", "-o", str(path), "-"], input=SOURCE, text=True, check=True)
    return path


def test_addresses_of_an_object(object_file):
    block = block_in_range(str(object_file), 2, 0x13)
    assert [item.mnemonic for item in block.instructions] == ["addsd", "add", "cmp", "jne"]
    assert block.instructions[0].address == 2
    assert block.instructions[0].memory[0].symbol == "table"  # the relocation is resolved


@pytest.mark.parametrize(
    ("first", "end", "part"),
    [
        (3, 0x13, "0x3 is inside the instruction at 0x2 of f"),
        (0x100, 0x110, "its code is .text"),
        (2, 0x12, "ends inside the instruction"),
    ],
)
def test_addresses_that_hold_no_block(object_file, first, end, part):
    with pytest.raises(AssemblyError, match=part):
        block_in_range(str(object_file), first, end)


def test_addresses_of_a_listing(tmp_path):
    path = tmp_path / "x.s"
    path.write_text(SOURCE)
    with pytest.raises(AssemblyError, match="not an ELF file"):
        block_in_range(str(path), 0, 4)


def test_all_innermost_loops():
    loops = innermost_loops(read_listing(SOURCE, "x.s"))
    assert [loop.label for loop in loops] == [".L1", ".L2"]
    assert [len(loop.instructions) for loop in loops] == [4, 2]
    with pytest.raises(AssemblyError, match="has no loop"):
        innermost_loops(read_listing(" addq %rax, %rbx\n", "x.s"))
