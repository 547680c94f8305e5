"""The grammar: one form for all spellings; machine code and text give the same instruction; traps of operand roles."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes, read_file, read_listing
from kernmodel.code.loops import control_flow
from kernmodel.code.strides import analyse
from kernmodel.errors import AssemblyError
from kernmodel.isa.aarch64.grammar import parse, unread
from kernmodel.isa.model import Instruction

CROSS = shutil.which("aarch64-linux-gnu-as")
SVE = "aarch64-sve512"


def one(text: str, isa_name: str = "aarch64") -> Instruction:
    (found,) = read_listing(f"{text}\n", "k.s", isa_name=isa_name).instructions
    return found


def roles(text: str, isa_name: str = "aarch64") -> tuple[set[str], set[str]]:
    """The registers that an instruction reads and writes, its flags as "nzcv"."""
    found = one(text, isa_name)
    read = {o.register for o in found.operands if o.register and o.read} | set(found.implicit_reads)
    read |= {name for m in found.memory for name in (m.base, m.index) if name}
    written = {o.register for o in found.operands if o.register and o.written} | set(found.implicit_writes)
    return read | ({"nzcv"} if found.flags_read else set()), written | ({"nzcv"} if found.flags_written else set())


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("ldr d0, [x1, 8]", "ldr d,[x,#imm]"),
        ("ldr d0, [x1, #8]", "ldr d,[x,#imm]"),
        ("LDR D0, [X1, #0]", "ldr d,[x]"),
        ("ldr x0, [x1, #-8]", "ldur x,[x,#imm]"),
        ("ldur x0, [x1, #8]", "ldur x,[x,#imm]"),
        ("ldr q0, [x1], 16", "ldr q,[x],#imm"),
        ("ld1 {v0.2d}, [x1], x2", "ld1 {v.2d},[x],x"),
        ("ld1 { v0.16b, v1.16b, v2.16b, v3.16b }, [x1]", "ld1 {v.16b*4},[x]"),
        ("ld1 {v0.16b-v3.16b}, [x1]", "ld1 {v.16b*4},[x]"),
        ("ld1 {v30.16b-v1.16b}, [x1]", "ld1 {v.16b*4},[x]"),
        ("fmla.2d v0, v1, v2", "fmla v.2d,v.2d,v.2d"),
        ("fmla v0.2d, v1.2d, v2.d[1]", "fmla v.2d,v.2d,v.d[i]"),
        ("subs xzr, x1, x2", "cmp x,x"),
        ("orr x0, xzr, x1", "mov x,x"),
        ("orr v0.16b, v1.16b, v1.16b", "mov v.16b,v.16b"),
        ("mov v0.2d, v1.2d", "mov v.16b,v.16b"),
        ("madd x0, x1, x2, xzr", "mul x,x,x"),
        ("ushll v0.2d, v1.2s, 0", "uxtl v.2d,v.2s"),
        ("movz x0, 0xd00, lsl 16", "mov x,#imm"),
        ("add x0, x1, x2, lsl 3", "add x,x,x,lsl#1-4"),
        ("add x0, x1, x2, lsl 12", "add x,x,x,lsl#5+"),
        ("add x0, x1, w2, sxtw 2", "add x,x,w,sxtw#n"),
        ("add x0, x1, :lo12:table", "add x,x,#imm"),
        ("ldr d0, [x0, #:lo12:.LC0]", "ldr d,[x,#imm]"),
        ("bne .L3", "b.ne label"),
        ("b.cs .L3", "b.hs label"),
        ("b.any .L3", "b.ne label"),
        ("b.first .L3", "b.mi label"),
        ("fcmp d0, #0.0", "fcmp d,#0"),
        ("ld1d z0.d, p0/z, [x1, x2, lsl 3]", "ld1d {z.d},p/z,[x,x,lsl#n]"),
        ("ld1d { z0.d }, p0/z, [x1, #1, mul vl]", "ld1d {z.d},p/z,[x,#imm,mul vl]"),
        ("fcmle p1.d, p0/z, z1.d, z2.d", "fcmge p.d,p/z,z.d,z.d"),
        ("incd x0, all, mul #2", "incd x,pattern,mul#n"),
        ("prfm pldl1keep, [x0, 64]", "prfm prfop,[x,#imm]"),
    ],
)
def test_spellings_of_gcc_clang_and_apple_come_to_one_form(text: str, form: str) -> None:
    assert parse(text).form == form


def test_comparisons_with_exchanged_operands() -> None:
    assert [p.register for p in parse("fcmle p1.d, p0/z, z1.d, z2.d").parts] == ["p1", "p0", "v2", "v1"]


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("str d0, [x1], 8", "v0 x1", "x1"),  # write-back
        ("ldp q0, q2, [x1, 32]!", "x1", "v0 v2 x1"),
        ("ldr x0, [x1], 8", "x1", "x0 x1"),
        ("stp xzr, xzr, [x1]", "x1", ""),  # the zero registers are no dependency
        ("sub x0, xzr, x1", "x1", "x0"),
        ("fmla v0.2d, v1.2d, v2.2d", "v0 v1 v2", "v0"),  # accumulators
        ("fmadd d0, d1, d2, d3", "v1 v2 v3", "v0"),
        ("subs x0, x1, 1", "x1", "x0 nzcv"),  # flags
        ("csel x0, x1, x2, lt", "x1 x2 nzcv", "x0"),
        ("cbnz x3, .L0", "x3", ""),
        ("ccmp x1, x2, 0, eq", "x1 x2 nzcv", "nzcv"),
        ("movk x0, 3, lsl 16", "x0", "x0"),  # partial writes
        ("ld1 {v0.d}[1], [x1]", "v0 x1", "v0"),
        ("mov v0.d[1], x1", "v0 x1", "v0"),
        ("xtn2 v0.8h, v1.4s", "v0 v1", "v0"),
        ("fadd d0, d1, d2", "v1 v2", "v0"),
        ("bsl v0.16b, v1.16b, v2.16b", "v0 v1 v2", "v0"),
        ("orr v0.4s, 5", "v0", "v0"),
        ("movi v0.2d, 0", "", "v0"),
        ("ldadd x0, x2, [x1]", "x0 x1", "x2"),
        ("stxr w5, x0, [x1]", "x0 x1", "x5"),
        ("ldpsw x0, x2, [x1]", "x1", "x0 x2"),
        ("ld2 {v0.b, v1.b}[8], [x1]", "v0 v1 x1", "v0 v1"),  # lanes of a list
        ("ld4 {v0.s - v3.s}[1], [x1], x2", "v0 v1 v2 v3 x1 x2", "v0 v1 v2 v3 x1"),
        ("st2 {v0.b, v1.b}[8], [x1]", "v0 v1 x1", ""),
        ("suqadd v0.8h, v1.8h", "v0 v1", "v0"),
        ("usqadd s0, s1", "v0 v1", "v0"),
        ("sha1h s0, s1", "v1", "v0"),  # crypto: not all of it adds to its result
        ("sha256su0 v0.4s, v1.4s", "v0 v1", "v0"),
        ("sm4e v0.4s, v1.4s", "v0 v1", "v0"),
        ("sm3tt1a v0.4s, v1.4s, v2.s[0]", "v0 v1 v2", "v0"),
        ("sm3ss1 v0.4s, v1.4s, v2.4s, v3.4s", "v1 v2 v3", "v0"),
        ("pacia x0, x1", "x0 x1", "x0"),
        ("xpaci x0", "x0", "x0"),
        ("casp x0, x1, x2, x3, [x4]", "x0 x1 x2 x3 x4", "x0 x1"),
        ("swpp x0, x1, [x4]", "x0 x1 x4", "x0 x1"),
        ("stg x0, [x1, #16]", "x0 x1", ""),
        ("st2g x0, [x1], #32", "x0 x1", "x1"),
        ("stgp x0, x2, [x1]", "x0 x2 x1", ""),
        ("ldg x0, [x1]", "x0 x1", "x0"),
        ("blraa x0, x1", "x0 x1", "x30"),
        ("cfinv", "nzcv", "nzcv"),
        ("rmif x0, #1, #2", "x0 nzcv", "nzcv"),
        ("fjcvtzs w0, d1", "v1", "x0 nzcv"),
        ("mrs x0, nzcv", "nzcv", "x0"),
        ("bc.ne .L0", "nzcv", ""),
    ],
)
def test_operand_roles(text: str, read: str, written: str) -> None:
    assert roles(text) == (set(read.split()), set(written.split()))


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("fmla z0.d, p0/m, z1.d, z2.d", "v0 p0 v1 v2", "v0"),
        ("mov z0.d, p0/m, z1.d", "v0 p0 v1", "v0"),
        ("mov z0.d, p0/z, #5", "p0", "v0"),
        ("sel z0.d, p0, z1.d, z2.d", "p0 v1 v2", "v0"),
        ("whilelo p0.d, x1, x2", "x1 x2", "p0 nzcv"),
        ("fcmgt p1.d, p0/z, z1.d, z2.d", "p0 v1 v2", "p1"),
        ("cmpeq p1.d, p0/z, z1.d, z2.d", "p0 v1 v2", "p1 nzcv"),
        ("fadda d0, p0, d0, z1.d", "v0 p0 v1", "v0"),
        ("incd x0", "x0", "x0"),
        ("st1d {z0.d}, p0, [x1, x2, lsl #3]", "v0 p0 x1 x2", ""),
        ("sqrdcmlah z0.s, z1.s, z2.s, #90", "v0 v1 v2", "v0"),
        ("cdot z0.d, z1.h, z2.h[1], #90", "v0 v1 v2", "v0"),
        ("addhnt z0.b, z1.h, z2.h", "v0 v1 v2", "v0"),  # a half of each element
        ("addhnb z0.b, z1.h, z2.h", "v1 v2", "v0"),
        ("sqrshrunt z0.b, z1.h, #1", "v0 v1", "v0"),
        ("uqxtnt z0.b, z1.h", "v0 v1", "v0"),
        ("sqdmlalbt z0.s, z1.h, z2.h", "v0 v1 v2", "v0"),
        ("bfmlslt z0.s, z1.h, z2.h", "v0 v1 v2", "v0"),
        ("uabalb z0.s, z1.h, z2.h", "v0 v1 v2", "v0"),
        ("adclt z0.d, z1.d, z2.d", "v0 v1 v2", "v0"),
        ("eorbt z0.d, z1.d, z2.d", "v0 v1 v2", "v0"),
        ("sclamp z0.d, z1.d, z2.d", "v0 v1 v2", "v0"),
        ("match p1.b, p0/z, z0.b, z1.b", "p0 v0 v1", "p1 nzcv"),
        ("nots p1.b, p0/z, p2.b", "p0 p2", "p1 nzcv"),
        ("sel {z0.d, z1.d}, pn8, {z2.d, z3.d}, {z4.d, z5.d}", "p8 v2 v3 v4 v5", "v0 v1"),
    ],
)
def test_operand_roles_of_sve(text: str, read: str, written: str) -> None:
    assert roles(text, SVE) == (set(read.split()), set(written.split()))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("ldr q0, [x1]", 16),
        ("ldp q0, q1, [x1]", 32),
        ("ldrsw x0, [x1]", 4),
        ("strb w0, [x1]", 1),
        ("ldrh w0, [x1]", 2),
        ("ld1r {v0.4s}, [x1]", 4),
        ("ld1 {v0.d}[1], [x1]", 8),
        ("st2 {v0.4s, v1.4s}, [x1]", 32),
        ("prfm pldl1keep, [x1]", 0),
        ("ld1d {z0.d}, p0/z, [x1]", 64),
        ("ld1w {z0.d}, p0/z, [x1]", 32),
        ("ld1rd {z0.d}, p0/z, [x1]", 8),
        ("ld2d {z0.d, z1.d}, p0/z, [x1]", 128),
        ("ldr p0, [x1]", 8),
        ("ld1d {z0.d}, p0/z, [x1, z2.d, lsl #3]", 64),
    ],
)
def test_sizes_of_accesses(text: str, size: int) -> None:
    assert one(text, SVE).memory[0].size_bytes == size


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fadd v0, v1, v2", "has no arrangement"),
        ("ldr x0, [q1]", "is no base of an address"),
        ("ldr x0, [x1", "brackets do not match"),
        ("ldr x0, [x1, x2, foo]", "does not shift or extend"),
        ("add x0,, x1", "an operand is empty"),
        ("ld1 {v0.2d, v1.4s}, [x0]", "is no list of up to 4 registers of one kind"),
        ("ld1 {}, [x0]", "is no vector register"),
        ("4dd x0, x1", "is no mnemonic"),
    ],
)
def test_what_is_no_instruction_is_named_with_its_line(text: str, said: str) -> None:
    with pytest.raises(AssemblyError, match=rf"^k\.s:2: .*{said}"):
        read_listing(f"nop\n{text}\n", "k.s", isa_name="aarch64")


def test_aarch32_is_named() -> None:
    with pytest.raises(AssemblyError, match="is AArch32 code") as raised:
        read_listing("loop:\n add r2, r2, r0\n bne loop\n", "k.s", isa_name="aarch64")
    assert str(raised.value).startswith("k.s:2: ")


def test_a_vector_length_is_needed_for_sve() -> None:
    with pytest.raises(AssemblyError, match="belongs to SVE, whose vector length is not known; say it"):
        one("ld1d {z0.d}, p0/z, [x1]")


WORDS = (
    "ldr",
    "add",
    "fmla",
    "ld1",
    "cbz",
    "x0",
    "q1",
    "v2.2d",
    "z3.d",
    "p0/m",
    "[",
    "]",
    "{",
    "}",
    ",",
    "!",
    "#",
    "8",
)
WORDS += ("8", "lsl", "mul vl", "-", ".L0", ":lo12:", '"', "\\", "é", "[x1]", ", x2", ", ", "\n")


@given(st.lists(st.sampled_from(WORDS), max_size=9))
def test_no_text_ends_in_a_traceback(words: list[str]) -> None:
    for text in ("".join(words), " ".join(words)):
        try:
            listing = read_listing(f"nop\n{text}\n", "k.s", isa_name=SVE)
        except AssemblyError as error:
            assert "k.s" in str(error)
            continue
        analyse(listing, control_flow(listing))


LOOP = """
f:      adrp x4, table
        add x4, x4, :lo12:table
1:      ldr d0, [x0, x2, lsl 3]
        fmadd d1, d0, d2, d1
        ldp q3, q4, [x1], 32
        fmla v5.2d, v3.2d, v4.d[1]
        str d1, [x4, 8]!
        ld1 {v6.2s, v7.2s}, [x3]
        add x2, x2, 1
        cmp x2, 100
        b.ne 1b
        cbnz w5, f
        ret
"""


@pytest.mark.skipif(CROSS is None, reason="no aarch64-linux-gnu-as")
def test_objects_and_text_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(LOOP, encoding="utf-8")
    subprocess.run([str(CROSS), "-o", tmp_path / "k.o", tmp_path / "k.s"], check=True)
    told = read_listing(LOOP, "k.s")
    decoded = read_file(tmp_path / "k.o")[0]
    assert decoded.isa == told.isa == "aarch64"

    def plain(found: Instruction) -> Instruction:
        return replace(found, text="", line=0)

    assert [plain(i) for i in decoded.instructions] == [plain(i) for i in told.instructions]
    assert dict(decoded.labels)["f"] == 0
    code = bytes.fromhex("00682260")  # of what capstone does not know, nothing is made up
    assert all(found.mnemonic for found in decode_bytes(code, isa_name="aarch64").instructions)


def test_a_sum_in_parentheses_is_a_number() -> None:
    """gcc writes rotations so: `(x << 5 | x >> 27) ^ k`."""
    assert parse("eor w0, w2, w0, ror #(32 - 5)") == parse("eor w0, w2, w0, ror #27")
    assert parse("add x0, x1, #( 0x10 + 4 )") == parse("add x0, x1, #20")


def test_multipliers_are_read_as_the_disassembler_prints_them() -> None:
    """It prints them in base 16 from 10 on; such instructions were left out without a word."""
    code = bytes.fromhex("e0e33f04") + bytes.fromhex("e0e33904")  # incb x0, all, mul #16 and #10
    assert [item.text for item in decode_bytes(code, isa_name=SVE).instructions] == [
        "incb x0, all, mul #0x10",
        "incb x0, all, mul #0xa",
    ]
    # mul4 is a pattern: the largest multiple of 4
    assert [parse(text).form for text in ("incb x0, mul4, mul #3", "cntd x0, mul3")] == [
        "incb x,pattern,mul#n",
        "cntd x,pattern",
    ]


def test_what_the_disassembler_prints_and_nothing_reads_stays_an_instruction() -> None:
    statement = unread("frob x0, {@}")
    assert (statement.mnemonic, [part.kind for part in statement.parts]) == ("frob", ["x0, {@}"])
