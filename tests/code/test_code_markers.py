"""Marked regions: IACA's bytes in every spelling, comments of OSACA and llvm-mca, line numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes, read_listing
from kernmodel.code.markers import instructions_on, marked_region
from kernmodel.errors import AssemblyError

pytestmark = pytest.mark.needs("as")

BODY = "\taddq $8, %rax\n\tcmpq %rax, %rcx\n\tjne .L3\n"


def marked(text: str, name: str | None = None) -> list[str]:
    """The texts of the instructions in the marked region."""
    listing = read_listing(text, "test.s")
    region = marked_region(listing, text, name)
    assert region is not None
    return [item.text for item in listing.instructions[slice(*region)]]


LOOP = ["addq $8, %rax", "cmpq %rax, %rcx", "jne .L3"]


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("# OSACA-BEGIN", "# OSACA-END"),
        ("// OSACA-BEGIN", "// OSACA-END"),
        ("#OSACA-BEGIN of the loop", "#OSACA-END of the loop"),
        ("# LLVM-MCA-BEGIN", "# LLVM-MCA-END"),
        ("\t# LLVM-MCA-BEGIN triad", "\t# LLVM-MCA-END triad"),
        ("/* LLVM-MCA-BEGIN */", "/* LLVM-MCA-END */"),
        ("\tmovl $111, %ebx\n\t.byte 100,103,144", "\tmovl $222, %ebx\n\t.byte 100,103,144"),
        ("\tmovl $111,%ebx\n\t.byte 0x64,0x67,0x90", "\tmovl $222,%ebx\n\t.byte 0x64\n\t.byte 0x67\n\t.byte 0x90"),
        ("movl $111, %ebx # START\n.byte 100\n.byte 103\n.byte 144", "movl $222, %ebx\n.byte 100\n.byte 103, 144"),
        ("\tmovl $111, %ebx\n\tfs addr32 nop", "\tmovl $222, %ebx\n\tfs addr32 nop"),
        ("\tmovb $111, %gs:111", "\tmovb $222, %gs:222"),
    ],
)
def test_every_kind_of_marker(begin: str, end: str) -> None:
    text = f"f:\n\tmovq %rdi, %rdx\n{begin}\n.L3:\n{BODY}{end}\n\tret\n"
    assert marked(text) == LOOP


def test_iaca_markers_need_no_text() -> None:
    code = "bb6f000000 646790 4883c008 bbde000000 646790 c3"
    listing = decode_bytes(bytes.fromhex(code))
    assert marked_region(listing, "") == (2, 3)


def test_markers_of_microsofts_compiler_are_split() -> None:  # OSACA 26
    def marker(number: str) -> str:
        return f"\tmov ebx, {number} ; marker\n\tDB 064H\n\tDB 067H\n\tDB 090H\n"

    text = (
        f"f\tPROC\n{marker('0000006fH')}$LL1@f:\n\tinc rax\n\tjne SHORT $LL1@f\n{marker('000000deH')}\tret 0\nf\tENDP\n"
    )
    assert marked(text) == ["inc rax", "jne SHORT $LL1@f"]


def test_padding_after_the_marker_is_left_out() -> None:
    text = f"\tmovq %rdi, %rdx\n# OSACA-BEGIN\n\t.p2align 4\n.L3:\n{BODY}# OSACA-END\n"
    assert marked(text) == LOOP


def test_a_marker_after_an_instruction() -> None:
    text = f"\tmovq %rdi, %rdx # OSACA-BEGIN\n.L3:\n{BODY.rstrip()} # OSACA-END\n\tret\n"
    assert marked(text) == LOOP


def test_without_markers_there_is_no_region() -> None:
    text = f'.L3:\n{BODY}\tmovl $111, %ebx\n\t.string "OSACA-BEGIN"\n'
    assert marked_region(read_listing(text, "test.s"), text) is None


TWO = (
    f"# LLVM-MCA-BEGIN first\n.L3:\n{BODY}# LLVM-MCA-END first\n# LLVM-MCA-BEGIN second\n\tret\n# LLVM-MCA-END second\n"
)


def test_named_regions() -> None:
    assert marked(TWO, "first") == LOOP
    assert marked(TWO, "second") == ["ret"]
    with pytest.raises(AssemblyError, match=r"test.s: has 2 marked regions; choose one, .*: first, second"):
        marked(TWO)
    with pytest.raises(AssemblyError, match=r"test.s: has no marked region 'third'; choose one of: first, second"):
        marked(TWO, "third")


def test_regions_without_names_are_told_apart() -> None:
    text = f"# OSACA-BEGIN\n.L3:\n{BODY}# OSACA-END\n# OSACA-BEGIN\n\tret\n# OSACA-END\n"
    with pytest.raises(AssemblyError, match="has 2 marked regions"):
        marked(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"# OSACA-BEGIN\n.L3:\n{BODY}", "test.s:1: OSACA-BEGIN has no OSACA-END; add OSACA-END"),
        (f".L3:\n{BODY}# LLVM-MCA-END\n", "test.s:5: LLVM-MCA-END has no LLVM-MCA-BEGIN"),
        (f"# LLVM-MCA-BEGIN a\n.L3:\n{BODY}# LLVM-MCA-END b\n", "test.s:6: LLVM-MCA-END has no .*BEGIN b"),
        (f".L3:\n{BODY}# OSACA-BEGIN\n# OSACA-END\n", "test.s:5: the marked region is empty"),
        (f"\tmovl $111, %ebx\n\t.byte 100,103,144\n.L3:\n{BODY}", "test.s:2: IACA's start marker has no end marker"),
        (f".L3:\n{BODY}\tmovl $222, %ebx\n\t.byte 100,103,144\n", "test.s:5: IACA's end marker has no start"),
        (
            "\tmovl $111, %ebx\n\t.byte 100,103,144\n\tmovl $222, %ebx\n\t.byte 100,103,144\n",
            "test.s:3: the marked region is empty",
        ),
    ],
)
def test_broken_markers(text: str, message: str) -> None:
    with pytest.raises(AssemblyError, match=f"^{message}"):
        marked_region(read_listing(text, "test.s"), text)


def test_lines() -> None:
    listing = read_listing(f".L3:\n{BODY}\tret\n", "test.s")
    assert instructions_on(listing, 1, 4) == (0, 3)
    assert instructions_on(listing, 3, 3) == (1, 2)
    assert instructions_on(listing, 7, 9) is None


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 5), st.integers(1, 5), st.integers(0, 5))
def test_the_region_is_what_stands_between(before: int, inside: int, after: int) -> None:
    add = "\taddq $1, %rax\n"
    text = f"{add * before}# OSACA-BEGIN\n{add * inside}# OSACA-END\n{add * after}"
    assert marked_region(read_listing(text, "test.s"), text) == (before, before + inside)
