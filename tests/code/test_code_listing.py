"""Listings and objects: all dialects give the same instructions, each with its line; bad input is refused."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import iced_x86
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel import isa
from kernmodel.code.listing import decode_elf, read_file, read_listing
from kernmodel.errors import AssemblyError, ToolError
from kernmodel.isa.assembler import assemble, statements
from kernmodel.isa.model import Instruction, Listing
from kernmodel.isa.x86.listing import target
from kernmodel.isa.x86.syntax import detect_syntax, for_assembler
from kernmodel.limits import Limit

pytestmark = pytest.mark.needs("as")


def read(text: str) -> Listing:
    return read_listing(text, "test.s")


def meaning(instruction: Instruction) -> Instruction:
    """The instruction without what depends on where and how it is written."""
    return replace(instruction, text="", line=0, address=0, length=0, target=None)


def meanings(listing: Listing) -> list[Instruction]:
    return [meaning(item) for item in listing.instructions]


# --- decode(assemble(x)) = x ---------------------------------------------------------------------------------

GENERAL = {
    64: ("rax", "rcx", "rdx", "rbx", "rsi", "rdi", "rbp", "r8", "r9", "r15"),
    32: ("eax", "ecx", "edx", "ebx", "esi", "edi", "ebp", "r8d", "r9d", "r15d"),
    16: ("ax", "cx", "dx", "bx", "si", "di", "bp", "r8w", "r9w", "r15w"),
    8: ("al", "cl", "dl", "bl", "sil", "dil", "bpl", "r8b", "r9b", "r15b"),
}
FULL = {name: GENERAL[64][i] for names in GENERAL.values() for i, name in enumerate(names)}
POINTERS = {8: "byte", 16: "word", 32: "dword", 64: "qword", 128: "xmmword", 256: "ymmword", 512: "zmmword"}
TEMPLATES = """
add r64 r64|m64|i8|i32; add r32 r32|m32|i8; add r16 m16; add r8 r8|m8; add m64 r64|i8|i32
sub r64 r64|i8; imul r64 r64|m64; imul r32 m32 i32; mov r64 r64|m64|i32; mov m32 r32|i32
movzx r32 r8|m16; movsxd r64 r32|m32; lea r64 m64; cmp r64 r64|m64|i8; test r32 r32; shl r64 i8
sar r32 i8; shlx r64 m64 r64; cmovne r64 r64|m64; sete r8; inc r64; neg m64; bsf r32 r32
popcnt r64 m64; movsd xmm m64; movsd m64 xmm; movsd xmm xmm; addsd xmm xmm|m64; mulpd xmm xmm|m128
movapd m128 xmm; cvtsi2sd xmm r64|m32; sqrtsd xmm m64; ucomisd xmm xmm|m64; unpckhpd xmm xmm
shufpd xmm xmm i8; pxor xmm xmm; movq r64 xmm; vmovupd ymm m256; vmovupd m256 ymm; vmovntpd m256 ymm
vaddpd ymm ymm ymm|m256; vaddpd xmm xmm m128; vmulsd xmm xmm xmm|m64; vdivpd ymm ymm m256
vfmadd231pd ymm ymm ymm|m256; vfnmadd213sd xmm xmm m64; vbroadcastsd ymm m64
vextractf128 xmm ymm i8; vinsertf128 ymm ymm m128 i8; vblendvpd ymm ymm ymm ymm
vcvtsi2sd xmm xmm r32; vpaddq ymm ymm m256; vperm2f128 ymm ymm ymm i8; vaddpd zmm zmm zmm|m512
vfmadd213pd zmm zmm m512; vmovupd zmm m512; vmovupd m512 zmm; vpternlogq zmm zmm zmm i8
vextractf64x4 ymm zmm i8; vcmppd k zmm zmm i8; kmovw r32 k; kandw k k k; prefetcht0 m8
"""


@st.composite
def operand(draw: st.DrawFn, kinds: str, vector_limit: int) -> tuple[str, object]:
    """Intel text of an operand of one of the kinds, and what decoding must say of it."""
    kind = draw(st.sampled_from(kinds.split("|")))
    if kind[0] == "r":
        name = draw(st.sampled_from(GENERAL[int(kind[1:])]))
        return name, ("register", FULL[name])
    if kind[1:] == "mm":
        number = draw(st.integers(0, vector_limit))
        return f"{kind}{number}", ("register", f"zmm{number}")
    if kind == "k":
        number = draw(st.integers(1, 7))
        return f"k{number}", ("register", f"k{number}")
    if kind[0] == "i":
        low, high = {"i8": (2, 127), "i32": (1000, 2**31 - 1)}[kind]
        value = draw(st.integers(low, high))
        return str(value), ("immediate", value)
    return draw(memory(int(kind[1:])))


@st.composite
def memory(draw: st.DrawFn, bits: int) -> tuple[str, object]:
    base = draw(st.sampled_from([*GENERAL[64], None]))
    index = draw(st.sampled_from([*GENERAL[64], None])) if base else None
    scale = draw(st.sampled_from([1, 2, 4, 8])) if index else 1
    displacement = draw(st.one_of(st.integers(-128, 127), st.integers(-(2**31), 2**31 - 1))) if base else 4096
    scaled = draw(st.sampled_from([f"{index}*{scale}", f"{scale}*{index}"])) if index else None
    terms = " + ".join(filter(None, [base, scaled])) + f" + {displacement}".replace("+ -", "- ")
    return f"{POINTERS[bits]} ptr [{terms.removeprefix(' + ')}]", ("memory", (base, index, scale, displacement))


@st.composite
def instruction(draw: st.DrawFn) -> tuple[str, str, list[object]]:
    """Intel text, mnemonic, and the expected operands."""
    template = draw(
        st.sampled_from([t.split() for line in TEMPLATES.split("\n") for t in line.split(";") if t.strip()])
    )
    limit = 31 if any("zmm" in kinds for kinds in template[1:]) else 15
    operands = [draw(operand(kinds, limit)) for kinds in template[1:]]
    text = f"{template[0]} {', '.join(text for text, _ in operands)}"
    return text, template[0], [expected for _, expected in operands]


def described(item: Instruction) -> list[object]:
    found: list[object] = []
    for part in item.operands:
        if part.memory is not None:
            m = part.memory
            found.append(("memory", (m.base, m.index, m.scale, m.displacement)))
        elif part.register is not None:
            found.append(("register", part.register))
        else:
            found.append(("immediate", part.immediate))
    return found


@given(st.lists(instruction(), min_size=1, max_size=12))
def test_decoding_what_was_assembled_gives_it_back(code: list[tuple[str, str, list[object]]]) -> None:
    text = "".join(f"\t{line}\n" for line, _, _ in code)
    items = read_listing(text, "test.s", syntax="intel").instructions
    assert [item.line for item in items] == list(range(1, len(code) + 1))
    for item, (line, mnemonic, expected) in zip(items, code, strict=True):
        assert item.text == line
        assert item.mnemonic == mnemonic
        if mnemonic != "test":  # as is free to swap its operands
            assert described(item) == expected


@pytest.mark.thorough
@settings(max_examples=40, deadline=None)
@given(st.lists(instruction(), min_size=1, max_size=12))
def test_both_syntaxes_mean_the_same(code: list[tuple[str, str, list[object]]]) -> None:
    text = "".join(f"\t{line}\n" for line, _, _ in code)
    formatter = iced_x86.Formatter(iced_x86.FormatterSyntax.GAS)
    code_bytes = isa.isa_of("x86-64").assemble(text, "x", "intel")
    att = "".join(f"\t{formatter.format(item)}\n" for item in iced_x86.Decoder(64, code_bytes))
    assert meanings(read_listing(att, "x", syntax="att")) == meanings(read_listing(text, "x", syntax="intel"))


# --- regressions: what other tools' users ran into (OSACA's issue numbers) -----------------------------------


def test_intel_syntax_is_read_without_being_told() -> None:  # 106
    listing = read("\t.intel_syntax noprefix\n.L3:\n\tvmovupd ymm0, YMMWORD PTR [rdi+rax*8]\n\tjne .L3\n")
    assert listing.syntax == "intel"
    assert [item.form for item in listing.instructions] == ["vmovupd ymm,m256", "jne rel"]


@pytest.mark.parametrize("address", ["[rcx + 4*rax]", "[rcx + rax*4]", "[4*rax + rcx]", "[rax*4+rcx+0]"])
def test_scale_stands_on_either_side(address: str) -> None:  # 127
    (item,) = read(f"mov edx, dword ptr {address}\n").instructions
    (reference,) = item.memory
    assert (reference.base, reference.index, reference.scale, reference.displacement) == ("rcx", "rax", 4, 0)


@pytest.mark.parametrize(
    "text",
    [
        "vmovupd zmmword ptr [rdi + 8*rax] {k1}, zmm0",
        "VMOVUPD ZMMWORD PTR [RDI + RAX*8]{K1}, ZMM0",
        "vmovupd %zmm0, (%rdi,%rax,8) {%k1}",
        "vmovupd %zmm0, (%rdi,%rax,8){%k1}",
    ],
)
def test_masked_memory_operands(text: str) -> None:  # 127
    (item,) = read(text + "\n").instructions
    assert item.form == "vmovupd m512{k},zmm"
    assert item.implicit_reads == ("k1",)


def test_zeroing_masks_in_both_syntaxes() -> None:
    att, intel = read("vmovupd (%rdi), %zmm0{%k1}{z}\n"), read("vmovupd zmm0 {k1} {z}, zmmword ptr [rdi]\n")
    assert meanings(att) == meanings(intel)
    assert att.instructions[0].form == "vmovupd zmm{kz},m512"


@pytest.mark.parametrize("text", ["movq %fs:sum@TPOFF, %rax\n", "mov rax, QWORD PTR fs:sum@tpoff\n"])
def test_thread_local_variables(text: str) -> None:  # 107
    (reference,) = read(text).instructions[0].memory
    assert (reference.segment, reference.base, reference.symbol) == ("fs", None, "sum@TPOFF")


@pytest.mark.parametrize(
    "text", ["VADDPD YMM0, YMM1, YMMWORD PTR [RAX + RCX*8]\n", "VADDPD (%RAX,%RCX,8), %YMM1, %YMM0\n"]
)
def test_upper_case(text: str) -> None:  # 109
    (item,) = read(text).instructions
    assert item.form == "vaddpd ymm,ymm,m256"
    assert [part.register for part in item.operands] == ["zmm0", "zmm1", None]


def test_quoted_identifiers() -> None:  # PR 124
    listing = read(
        '"operator new[](int)":\n\tcall "f<a, b>::g"\n\tmovq "x y"(%rip), %rax\n\tjmp "operator new[](int)"\n'
    )
    call, load, jump = listing.instructions
    assert (call.branch, load.memory[0].symbol, jump.target) == ("call", "x y", 0)
    assert listing.labels == (("operator new[](int)", 0),)


@pytest.mark.parametrize(
    "text", ["movq -8(%rsp,%rax,4), %rcx", "mov rcx, qword ptr [rsp + 4*rax - 8]", "mov rcx, -8[rsp+rax*4]"]
)
def test_negative_offsets(text: str) -> None:  # PR 120
    (reference,) = read(text + "\n").instructions[0].memory
    assert (reference.base, reference.index, reference.scale, reference.displacement) == ("rsp", "rax", 4, -8)


@pytest.mark.parametrize("name", ["ret", "nop", "vzeroupper", "leave", "cltq", "rep movsq", "mfence", "syscall"])
def test_instructions_without_operands(name: str) -> None:  # 32
    (item,) = read(f".L1:\n\t{name}\n").instructions
    assert item.operands == ()


def test_the_listing_of_the_2019_paper_has_dollar_signs_in_names() -> None:
    (item,) = read("\tvmovsd 80+heat_$PHI.0.1(%rip), %xmm1\n").instructions
    (reference,) = item.memory
    assert (reference.base, reference.symbol, reference.displacement) == ("rip", "heat_$PHI.0.1", 80)


def test_debugging_directives_do_not_shift_lines() -> None:
    text = '\t.file 1 "a.c"\n\t.loc 1 7 3 view .LVU1\n\taddq $1, %rax\n'
    text += '# 99 "other.c"\n\t.loc 1 8 3\n\tsubq $1, %rcx # -8\n'
    text += '\t.section .debug_info,"",@progbits\n\t.uleb128 .LVU1-.LVU2\n\t.text\n\tret\n'
    assert [(item.line, item.text) for item in read(text).instructions] == [
        (3, "addq $1, %rax"),
        (6, "subq $1, %rcx"),
        (10, "ret"),
    ]


def test_unwinding_directives_may_be_cut_out_of_their_function() -> None:
    text = "\t.cfi_endproc\n\t.cfi_def_cfa_offset 8\n\t.size f, .-f\n\tret\n\t.addrsig\n\t.addrsig_sym f\n"
    assert len(read(text).instructions) == 1


# --- symbols, labels, sections -------------------------------------------------------------------------------

STATIC_ARRAYS = """\
	movsd phi-8(%rip), %xmm0
	movsd table+16(%rip), %xmm1
	movsd other(%rip), %xmm2
	movsd big(,%rax,8), %xmm3
	movq far@GOTPCREL(%rip), %rax
	.local phi
	.comm phi,800,16
	.data
other:	.zero 64
table:	.zero 64
"""


def test_arrays_are_told_apart() -> None:
    references = [item.memory[0] for item in read(STATIC_ARRAYS).instructions]
    found = [(reference.symbol, reference.displacement) for reference in references]
    assert found == [("phi", -8), ("table", 16), ("other", 0), ("big", 0), ("far@GOTPCREL", 0)]


def test_labels_and_targets() -> None:
    listing = read(
        "f:\n\tjmp .Ltest\n.Lbody:\taddq $8, %rax\n.Ltest: cmpq %rcx, %rax\n1:\tjne .Lbody\n\tjmp 1b\n\tjmp elsewhere\n"
    )
    labels = dict(listing.labels)
    jump, body, test, branch, local, outside = listing.instructions
    assert labels == {"f": 0, ".Lbody": body.address, ".Ltest": test.address}
    assert (jump.target, branch.target, local.target, outside.target) == (
        test.address,
        body.address,
        branch.address,
        None,
    )
    assert body.text == "addq $8, %rax"


def test_sections_are_laid_out_one_after_the_other() -> None:
    text = '\t.text\nf:\tjne cold\nback:\tret\n\t.section .text.unlikely,"ax"\ncold:\taddq $1, %rax\n\tjmp back\n'
    listing = read(text)
    branch, ret, add, jump = listing.instructions
    assert [item.line for item in listing.instructions] == [2, 3, 5, 6]
    assert (branch.target, jump.target) == (add.address, ret.address)
    assert dict(listing.labels)["cold"] == add.address >= ret.address + ret.length


def test_statements_data_and_padding_have_their_lines() -> None:
    text = "\taddq $1, %rax; subq $2, %rcx\n\t.byte 0x48, 0xff, 0xc0\n\trep\n\tmovsb\n"
    text += "\trep; stosq\n\tcld\n\t.p2align 4\n.L1:\tret\n"
    items = [(item.line, item.form) for item in read(text).instructions]
    assert items[:7] == [
        (1, "add r64,i8"),
        (1, "sub r64,i8"),
        (2, "inc r64"),
        (3, "rep movsb"),
        (5, "rep stosq"),
        (6, "cld"),
        (7, "nop m"),
    ]
    assert items[-1] == (8, "ret")


def test_macros_and_repetitions_are_expanded() -> None:
    text = (
        "\t.macro twice x\n\taddq \\x, %rax\n\taddq \\x, %rax\n\t.endm\n\ttwice %rcx\n\t.rept 3\n\tincq %rdx\n\t.endr\n"
    )
    assert [item.mnemonic for item in read(text).instructions] == ["add", "add", "inc", "inc", "inc"]


@pytest.mark.parametrize("comment", ["# to do", "// to do", "/* to do */", "#to, do; it"])
def test_comments_are_stripped(comment: str) -> None:
    (item,) = read(f"\taddq\t$1,  %rax {comment}\n{comment}\n").instructions
    assert item.text == "addq $1, %rax"


def test_semicolons_may_begin_comments() -> None:
    listing = read("; the loop\nmov eax, 1 ; load it\nadd eax, 2 ; and add two\n")
    assert [(item.line, item.text) for item in listing.instructions] == [(2, "mov eax, 1"), (3, "add eax, 2")]


def test_statements_of_a_line() -> None:
    assert statements('a: "b;c": addq $1, %rax; ret # done') == ("addq $1, %rax", "ret")


# --- dialects ------------------------------------------------------------------------------------------------

MASM = """\
; Listing generated by Microsoft (R) Optimizing Compiler
include listing.inc
INCLUDELIB LIBCMT
PUBLIC	triad
CONST	SEGMENT
__real@4008000000000000 DQ 04008000000000000r	; 3
CONST	ENDS
_TEXT	SEGMENT
n$ = 32
triad	PROC
; Line 2
	mov	DWORD PTR n$[rsp], r9d
	jle	SHORT $LN3@triad
	npad	7
$LL4@triad:
	mulsd	xmm1, QWORD PTR __real@4008000000000000	; 3 * b[i]
	and	rax, 0fH
	jl	SHORT $LL4@triad
$LN3@triad:
	ret	0
triad	ENDP
_TEXT	ENDS
END
"""


def test_listings_of_microsofts_compiler() -> None:
    listing = read(MASM)
    store, _, padding, multiply, mask, branch, _ = listing.instructions
    labels = dict(listing.labels)
    assert listing.syntax == "intel"
    assert (store.memory[0].displacement, padding.line, mask.operands[1].immediate) == (32, 14, 15)
    assert (multiply.text, multiply.line) == ("mulsd xmm1, QWORD PTR __real@4008000000000000", 16)
    assert multiply.memory[0].symbol == "__real@4008000000000000"
    assert branch.target == labels["$LL4@triad"] == multiply.address


def test_a_symbol_named_like_a_masm_keyword() -> None:
    assert read("f:\n\tcall PROC\n\tmovq SEGMENT(%rip), %rax\n").syntax == "att"


def test_mach_o_and_coff_listings() -> None:
    macho = "\t.section __TEXT,__text,regular,pure_instructions\n\t.build_version macos, 11, 0\n_f:\n"
    macho += "\tret\n.subsections_via_symbols\n"
    assert [item.line for item in read(macho).instructions] == [4]
    coff = "\t.def f;\n\t.scl 2;\n\t.type 32;\n\t.endef\n\t.globl @feat.00\n"
    coff += '\t.section .rdata,"dr"\n__real@40:\n\t.quad 4\n\t.text\n'
    coff += "f:\n\t.seh_proc f\n\tmulsd __real@40(%rip), %xmm0\n\tret\n\t.seh_endproc\n"
    assert read(coff).instructions[0].memory[0].symbol == "__real@40"


def test_llvm_writes_gathers_with_the_width_of_all_lanes() -> None:
    (item,) = read("\tvgatherdpd zmm1 {k1}, zmmword ptr [rax + 8*ymm2]\n").instructions
    assert item.form == "vgatherdpd zmm{k},vsib_ymm"


def test_lines_stay_where_they_are_for_the_assembler() -> None:
    assert len(for_assembler(MASM, semicolon_comments=True).splitlines()) == len(MASM.splitlines())


# --- which syntax --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("movq %rax, %rcx", "att"),
        ("mov rcx, rax", "intel"),
        ("MOV RCX, RAX", "intel"),
        ("lea rcx, [rax + 8*rcx]", "intel"),
        ("cmp ecx, 5\njl .L4", "intel"),
        ("jmp .L4\nret", "att"),
        ("call f # [rax] is the result", "att"),
        ("decl i(%rip)", "att"),
        ("\t.intel_syntax noprefix\n\tret", "intel"),
        ("pushq $5", "att"),
        ("vpxor xmm0, xmm0, xmm0", "intel"),
    ],
)
def test_syntax_is_found_by_evidence(text: str, syntax: str) -> None:
    assert detect_syntax(text) == syntax


AARCH64 = """\
.L3:
	ldr	q0, [x1, x3]
	ldr	d1, [x2], 8
	fmla	v0.2d, v1.2d, v2.2d
	str	q0, [x0, x3]
	add	x3, x3, 16
	cmp	x3, x4
	b.ne	.L3
"""


def test_aarch64_is_not_guessed_to_be_x86_nor_the_other_way_round() -> None:  # compiler-explorer PR 3505
    found = isa.evidence(AARCH64)
    assert found["aarch64"] > found["x86-64"]
    found = isa.evidence("\taddq %rax, x1(%rip)\n\tret\n")
    assert not found["aarch64"] > found["x86-64"]
    found = isa.evidence("vaddpd ymm0, ymm1, [rax + x2]\n")
    assert not found["aarch64"] > found["x86-64"]
    with pytest.raises(AssemblyError, match=r"^test.s: looks like AArch64 assembly, not x86-64; use a machine of"):
        read_listing(AARCH64, "test.s", isa_name="x86-64")
    assert read(AARCH64).isa == "aarch64"


# --- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "test.s: holds no instructions"),
        ("# nothing\n\n\t.text\nf:\n", "test.s: holds no instructions"),
        (
            "addq %rax, %rcx\nfrobnicate %rax\n",
            r"test.s:2: GNU as: no such instruction: `frobnicate %rax'.*AT&T syntax",
        ),
        ("add rax, 1\nvaddpd ymm0, ymm1\n", r"test.s:2: GNU as: .*mismatch for `vaddpd'.*Intel syntax"),
        ("addq %rax, %rcx ; frobnicate it\n", r"test.s:1: GNU as: no such instruction"),
        ("\t.data\n\taddq %rax, %rcx\n", "test.s: holds no code in its text sections"),
    ],
)
def test_listings_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(AssemblyError, match=f"^{message}") as raised:
        read_listing(text, "test.s")
    assert raised.value.exit_status == 1


def test_the_wrong_syntax_cannot_be_missed() -> None:
    with pytest.raises(AssemblyError, match="Intel syntax"):
        read_listing("movq %rax, 8(%rcx)\n", "test.s", syntax="intel")


def test_files_that_are_no_listing(tmp_path: Path) -> None:
    with pytest.raises(AssemblyError, match=r"missing.s: cannot be read: No such file"):
        read_file(tmp_path / "missing.s")
    with pytest.raises(AssemblyError, match="is a directory, not an assembly listing"):
        read_file(tmp_path)
    (tmp_path / "photo.s").write_bytes(b"\x89PNG\r\n\0\0")
    with pytest.raises(AssemblyError, match=r"photo.s: is a binary file, not assembly text"):
        read_file(tmp_path / "photo.s")
    with pytest.raises(AssemblyError, match=r"photo.s: is not an ELF file"):
        decode_elf((tmp_path / "photo.s").read_bytes(), "photo.s")


def test_other_encodings_in_comments_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "latin.s").write_bytes(b"\tret # gr\xfc\xdfe\n")
    listing, text = read_file(str(tmp_path / "latin.s"))
    assert listing.instructions[0].text == "ret"
    assert text.startswith("\tret")


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "a.s").write_text("\tret\n")
    with (tmp_path / "a.s").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert read_file("-")[0].file == "<standard input>"


def test_a_missing_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ToolError, match="install GNU binutils") as raised:
        read("\tret\n")
    assert raised.value.exit_status == 3


# --- objects -------------------------------------------------------------------------------------------------

FUNCTIONS = """\
	.globl f, g, a
	.type f, @function
	.type g, @function
f:	movsd a+8(%rip), %xmm0
	ret
	.size f, .-f
g:	incq %rax
	jne g
	ret
	.size g, .-g
	.data
a:	.zero 64
	.size a, 64
"""


@pytest.fixture
def object_file(tmp_path: Path) -> Path:
    subprocess.run(["as", "-o", tmp_path / "a.o", "-"], input=FUNCTIONS, text=True, check=True)
    return tmp_path / "a.o"


def test_objects(object_file: Path) -> None:
    listing, text = read_file(object_file)
    load = listing.instructions[0]
    assert (listing.syntax, text, load.text) == ("binary", "", "movsd xmm0,[rip+a+8]")
    assert (load.memory[0].symbol, load.memory[0].displacement) == ("a", 8)
    assert listing.labels == (("f", 0), ("g", 9))


def test_one_function_of_an_object(object_file: Path) -> None:
    listing = read_file(object_file, function="g")[0]
    assert [item.mnemonic for item in listing.instructions] == ["inc", "jne", "ret"]
    assert listing.instructions[1].target == listing.instructions[0].address == dict(listing.labels)["g"]
    with pytest.raises(AssemblyError, match="has no function 'h'; choose one of: f, g"):
        read_file(object_file, function="h")[0]


def test_linked_files_name_their_arrays(object_file: Path, tmp_path: Path) -> None:
    subprocess.run(["ld", "-o", tmp_path / "a.out", "-e", "f", object_file], check=True)
    load = read_file(tmp_path / "a.out", function="f")[0].instructions[0]
    assert (load.memory[0].symbol, load.memory[0].displacement) == ("a", 8)


def test_objects_that_cannot_be_read(object_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytearray(object_file.read_bytes())
    broken = tmp_path / "b.o"
    for change, message in (
        ({18: 183}, "holds AArch64 code, not x86-64"),
        ({4: 1}, "is not a 64-bit little-endian ELF file"),
        ({41: 0xFF}, "is a damaged ELF file"),
    ):
        broken.write_bytes(bytes(change.get(i, byte) for i, byte in enumerate(data)))
        with pytest.raises(AssemblyError, match=message):
            read_file(broken, isa_name="x86-64")
    monkeypatch.setattr("kernmodel.isa.protocol.DECODED_BYTES", Limit("bytes of code", 4, "B"))
    with pytest.raises(AssemblyError, match="choose one function of it"):
        read_file(object_file)


@given(st.data())
def test_damaged_objects_end_in_a_message(data: st.DataObject) -> None:
    whole = assemble(FUNCTIONS, target("att"), file="x")
    cut = data.draw(st.integers(4, len(whole)))
    changed = bytearray(whole[:cut])
    for position in data.draw(st.lists(st.integers(0, cut - 1), max_size=3)):
        changed[position] = data.draw(st.integers(0, 255))
    if changed[:4] == b"\x7fELF":
        try:
            decode_elf(bytes(changed), "x")
        except AssemblyError as error:
            assert str(error).startswith("x: ")


# --- nothing stays behind ------------------------------------------------------------------------------------


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_no_file_stays_behind_when_interrupted(signal: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "tmp").mkdir()
    assembler = tmp_path / "bin" / "as"
    assembler.write_text("#!/bin/sh\n/bin/echo ready > $TMPDIR/../ready\n/bin/sleep 20\n")
    assembler.chmod(0o755)
    program = "from kernmodel.code.listing import read_listing; read_listing('ret', 'a.s')"
    driver = (
        "import os, signal, subprocess, sys, time, pathlib\n"
        f"command = [sys.executable, '-c', {program!r}]\n"
        "child = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)\n"
        "while not pathlib.Path(os.environ['TMPDIR'], '..', 'ready').exists(): time.sleep(0.01)\n"
        f"os.killpg(child.pid, signal.{signal}); child.wait()\n"
    )
    environment = {"PATH": str(tmp_path / "bin"), "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", driver], env=environment, check=True, timeout=30)
    assert list((tmp_path / "tmp").iterdir()) == []
