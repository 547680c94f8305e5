"""What decoded instructions are said to read, write and be called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes, read_listing
from kernmodel.isa.model import Instruction

pytestmark = pytest.mark.needs("as")


def one(text: str) -> Instruction:
    """The only instruction of a line of Intel syntax."""
    (instruction,) = read_listing(text, "test.s", syntax="intel").instructions
    return instruction


def accesses(text: str) -> list[str]:
    """Registers of the explicit operands with how they are accessed: "rax:rw"."""
    operands = [operand for operand in one(text).operands if operand.register]
    return [f"{operand.register}:{'r' * operand.read}{'w' * operand.written}" for operand in operands]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # legacy SSE keeps what it does not write
        ("cvtsi2sd xmm0, eax", ["zmm0:rw", "rax:r"]),
        ("cvtss2sd xmm0, xmm1", ["zmm0:rw", "zmm1:r"]),
        ("sqrtsd xmm0, xmm1", ["zmm0:rw", "zmm1:r"]),
        ("movsd xmm0, xmm1", ["zmm0:rw", "zmm1:r"]),
        ("movsd xmm0, qword ptr [rax]", ["zmm0:w"]),
        ("movlpd xmm0, qword ptr [rax]", ["zmm0:rw"]),
        ("pinsrd xmm0, eax, 1", ["zmm0:rw", "rax:r"]),
        ("roundsd xmm0, xmm1, 1", ["zmm0:rw", "zmm1:r"]),
        ("movapd xmm0, xmm1", ["zmm0:w", "zmm1:r"]),
        # VEX takes the old value from a source
        ("vcvtsi2sd xmm1, xmm1, eax", ["zmm1:w", "zmm1:r", "rax:r"]),
        ("vsqrtsd xmm1, xmm2, xmm3", ["zmm1:w", "zmm2:r", "zmm3:r"]),
        ("vfmadd231pd ymm0, ymm1, ymm2", ["zmm0:rw", "zmm1:r", "zmm2:r"]),
        # 8 and 16 bits merge, 32 clear the upper half
        ("mov al, 1", ["rax:rw"]),
        ("mov ah, 1", ["rax:rw"]),
        ("mov ax, 1", ["rax:rw"]),
        ("fnstsw ax", ["rax:rw"]),
        ("mov eax, 1", ["rax:w"]),
        ("setne cl", ["rcx:rw"]),
        ("movzx eax, cl", ["rax:w", "rcx:r"]),
        # conditional writes
        ("cmovne rax, rcx", ["rax:rw", "rcx:r"]),
        ("cmovne eax, ecx", ["rax:rw", "rcx:r"]),
        ("bsf rax, rcx", ["rax:rw", "rcx:r"]),
        # masks
        ("vaddpd zmm1{k1}, zmm2, zmm3", ["zmm1:rw", "zmm2:r", "zmm3:r"]),
        ("vaddpd zmm1{k1}{z}, zmm2, zmm3", ["zmm1:w", "zmm2:r", "zmm3:r"]),
        ("vmovupd zmm1{k1}, [rax]", ["zmm1:rw"]),
        ("vcmppd k1{k2}, zmm1, zmm2, 1", ["k1:w", "zmm1:r", "zmm2:r"]),
        # the architecture's meaning, not the core's idiom
        ("xor eax, eax", ["rax:rw", "rax:r"]),
        ("vpxor xmm0, xmm1, xmm1", ["zmm0:w", "zmm1:r", "zmm1:r"]),
        ("cmp rax, rcx", ["rax:r", "rcx:r"]),
        ("xchg rcx, rdx", ["rcx:rw", "rdx:rw"]),
    ],
)
def test_accesses_of_registers(text: str, expected: list[str]) -> None:
    assert accesses(text) == expected


@pytest.mark.parametrize(
    ("text", "reads", "writes"),
    [
        ("mul rcx", {"rax"}, {"rax", "rdx"}),
        ("div rcx", {"rax", "rdx"}, {"rax", "rdx"}),
        ("mulx rdx, rax, rcx", {"rdx"}, set()),
        ("cdq", {"rax"}, {"rdx"}),
        ("push rax", {"rsp"}, {"rsp"}),
        ("ret", {"rsp"}, {"rsp"}),
        ("rep movsq", {"rcx", "rsi", "rdi"}, {"rcx", "rsi", "rdi"}),
        ("stosb", {"rax", "rdi"}, {"rdi"}),
        ("lodsb", {"rax", "rsi"}, {"rax", "rsi"}),
        ("blendvpd xmm1, xmm2", {"zmm0"}, set()),
        ("vaddpd zmm1{k3}, zmm2, zmm3", {"k3"}, set()),
        ("vcmppd k1{k1}, zmm1, zmm2, 1", {"k1"}, set()),
        ("vgatherdpd zmm1{k1}, [rax+ymm2*8]", {"k1"}, {"k1"}),
        ("mov rax, [rcx+rdx*8]", set(), set()),
        ("vzeroupper", set(), set()),
        ("cmpxchg [rcx], rdx", {"rax"}, {"rax"}),
    ],
)
def test_implicit_registers(text: str, reads: set[str], writes: set[str]) -> None:
    instruction = one(text)
    assert set(instruction.implicit_reads) == reads
    assert set(instruction.implicit_writes) == writes


@pytest.mark.parametrize(
    ("text", "read", "written"),
    [
        ("add rax, 1", "", "CPAZSO"),
        ("adc rax, rcx", "C", "CPAZSO"),
        ("inc rax", "", "PAZSO"),
        ("cmovne rax, rcx", "Z", ""),
        ("cmova rax, rcx", "CZ", ""),
        ("seta al", "CZ", ""),
        ("jl .L", "SO", ""),
        ("jne .L", "Z", ""),
        ("lea rax, [rcx]", "", ""),
        ("adcx rax, rcx", "C", "C"),
        ("bsf rax, rcx", "", "CPAZSO"),
        ("shl rax, 3", "", "CPAZSO"),
        ("shl rax, cl", "CPAZSO", "CPAZSO"),  # a count of zero leaves the flags
        ("vucomisd xmm0, xmm1", "", "CPAZSO"),
    ],
)
def test_flags(text: str, read: str, written: str) -> None:
    instruction = one(text)
    assert (instruction.flags_read, instruction.flags_written) == (read, written)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("vaddpd ymm0, ymm1, [rax]", "vaddpd ymm,ymm,m256"),
        ("vaddpd zmm0, zmm1, qword ptr [rax]{1to8}", "vaddpd zmm,zmm,m64b"),
        ("vaddps zmm0{k1}, zmm1, dword ptr [rax]{1to16}", "vaddps zmm{k},zmm,m32b"),
        ("vaddpd zmm0{k1}{z}, zmm1, zmm2", "vaddpd zmm{kz},zmm,zmm"),
        ("vaddpd zmm0, zmm1, zmm2, {rn-sae}", "vaddpd zmm,zmm,zmm"),
        ("vmovupd [rax]{k1}, zmm0", "vmovupd m512{k},zmm"),
        ("mov rax, qword ptr [rcx]", "mov r64,m64"),
        ("mov byte ptr [rcx], ah", "mov m8,r8h"),
        ("add eax, 1", "add r32,i8"),
        ("add eax, 1000000", "add r32,i32"),
        ("add rax, 1000000", "add r64,i32"),
        ("movabs rax, 0x123456789abc", "mov r64,i64"),
        ("shl rax, cl", "shl r64,cl"),
        ("shl rax, 1", "shl r64,1"),
        ("shl rax, 2", "shl r64,i8"),
        ("lea rax, [rcx+8]", "lea r64,m"),
        ("prefetcht0 [rcx]", "prefetcht0 m"),
        ("fld tbyte ptr [rax]", "fld m80"),
        ("vgatherdpd ymm0, [rax+xmm1*8], ymm2", "vgatherdpd ymm,vsib_xmm,ymm"),
        ("vgatherdpd zmm0{k1}, [rax+ymm1*8]", "vgatherdpd zmm{k},vsib_ymm"),
        ("jmp .L", "jmp rel"),
        ("jmp rax", "jmp r64"),
        ("jnz .L", "jne rel"),
        ("cmovae rax, rcx", "cmovae r64,r64"),
        ("vcmppd ymm0, ymm1, ymm2, 1", "vcmppd ymm,ymm,ymm,i8"),
        ("cmpltsd xmm0, xmm1", "cmpsd xmm,xmm,i8"),
        ("movsd", "movsd"),
        ("movsd xmm0, qword ptr [rax]", "movsd xmm,m64"),
        ("rep stosq", "rep stosq"),
        ("repne scasb", "repne scasb"),
        ("lock add dword ptr [rax], ecx", "lock add m32,r32"),
        ("kortestw k1, k2", "kortestw k,k"),
        ("vzeroupper", "vzeroupper"),
        ("xchg ax, ax", "nop"),  # 66 90, the two-byte padding
        ("xchg rcx, rcx", "xchg r64,r64"),
        ("blendvpd xmm0, xmm1, xmm0", "blendvpd xmm,xmm"),
    ],
)
def test_form_keys(text: str, form: str) -> None:
    assert one(text).form == form


@pytest.mark.parametrize(
    ("text", "size", "read", "written"),
    [
        ("vmovupd ymm0, [rax]", 32, True, False),
        ("vmovupd [rax], ymm0", 32, False, True),
        ("vmovntpd [rax], ymm0", 32, False, True),
        ("add qword ptr [rax], 1", 8, True, True),
        ("lea rcx, [rax]", 0, False, False),
        ("prefetchnta [rax]", 0, False, False),
        ("vbroadcastsd ymm0, qword ptr [rax]", 8, True, False),
        ("vaddpd zmm0, zmm1, qword ptr [rax]{1to8}", 8, True, False),
        ("vgatherdpd zmm0{k1}, [rax+ymm1*8]", 64, True, False),
        ("vgatherqps xmm0, [rax+xmm1*4], xmm2", 8, True, False),
        ("vpgatherdd ymm0, [rax+ymm1*4], ymm2", 32, True, False),
        ("vscatterdpd [rax+ymm1*8]{k1}, zmm0", 64, False, True),
        ("vmovupd [rax]{k1}, zmm0", 64, False, True),
        ("movhps [rax], xmm1", 8, False, True),
    ],
)
def test_memory_reference(text: str, size: int, read: bool, written: bool) -> None:
    (reference,) = one(text).memory
    assert (reference.base, reference.size_bytes, reference.read, reference.written) == ("rax", size, read, written)


def test_stack_and_string_references_are_implicit() -> None:
    (push,) = one("push rax").memory
    assert (push.base, push.displacement, push.size_bytes, push.written) == ("rsp", -8, 8, True)
    stored, loaded = one("movsd").memory
    assert (stored.base, stored.written, loaded.base, loaded.read) == ("rdi", True, "rsi", True)
    explicit, stack = one("pop qword ptr [rax]").memory
    assert (explicit.base, explicit.written, stack.base, stack.read) == ("rax", True, "rsp", True)
    assert len(one("push qword ptr [rsp-8]").memory) == 2


def test_padding_refers_to_no_memory() -> None:
    assert one("nop word ptr [rax+rax]").memory == ()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("xor eax, eax", True),
        ("sub rcx, rcx", True),
        ("sbb eax, eax", True),
        ("vpcmpeqd xmm0, xmm1, xmm1", True),
        ("vpternlogd zmm1, zmm1, zmm1, 255", True),
        ("kxorw k0, k1, k1", True),
        ("vpxor xmm0, xmm0, xmm1", False),
        ("sub al, ah", False),  # one full register, two values
        ("mov rax, rax", False),  # a single source
        ("xor eax, dword ptr [rax]", False),
    ],
)
def test_same_register(text: str, same: bool) -> None:
    assert one(text).same_register is same


@pytest.mark.parametrize(
    ("text", "width", "masked"),
    [
        ("add rax, rcx", 0, False),
        ("addsd xmm0, xmm1", 16, False),
        ("vextractf128 xmm0, ymm1, 1", 32, False),
        ("vcvttpd2dq ymm0, zmm1", 64, False),
        ("vmovupd zmm0{k1}, [rax]", 64, True),
        ("vgatherqps xmm0, [rax+ymm1*4], xmm2", 32, False),
    ],
)
def test_vector_width_and_mask(text: str, width: int, masked: bool) -> None:
    assert (one(text).vector_bytes, one(text).has_mask) == (width, masked)


@pytest.mark.parametrize(
    ("text", "branch"),
    [
        ("jne .L", "conditional"),
        ("loop .L", "conditional"),
        ("jmp .L", "jump"),
        ("jmp rax", "indirect"),
        ("call f", "call"),
        ("call rax", "call"),
        ("ret", "return"),
        ("add rax, 1", None),
    ],
)
def test_control_flow(text: str, branch: str | None) -> None:
    assert one(text).branch == branch


def test_decode_bytes_counts_from_the_address_given() -> None:
    # vaddpd ymm0,ymm1,ymm2; jne back to it
    listing = decode_bytes(bytes.fromhex("c5f558c2 75fa"), address=0x1000)
    add, jump = listing.instructions
    assert listing.syntax == "binary"
    assert (add.address, add.length, add.text, add.line) == (0x1000, 4, "vaddpd ymm0,ymm1,ymm2", 0)
    assert (jump.address, jump.target) == (0x1004, 0x1000)


def test_bytes_that_are_no_instruction_are_passed_over() -> None:
    # 06 (push es) does not exist in 64-bit mode
    assert [item.mnemonic for item in decode_bytes(bytes.fromhex("06 48ffc0 06 90")).instructions] == ["inc", "nop"]


@given(st.binary(max_size=64))
def test_any_bytes_decode_to_instructions_within_them(code: bytes) -> None:
    end = 0
    for item in decode_bytes(code).instructions:
        assert item.address >= end
        end = item.address + item.length
        assert item.form.startswith(item.mnemonic) or item.form.split()[1] == item.mnemonic
    assert end <= len(code)


@pytest.mark.parametrize("code", ["0ff7f4", "660ff7c1", "c5f9f7c1", "67660ff7c1"])
def test_a_masked_store_to_rdi_names_no_memory(code: str) -> None:
    """maskmovq crashed: its operand in memory stands in none of its bytes, and is none of its form."""
    (instruction,) = decode_bytes(bytes.fromhex(code)).instructions
    assert [operand.kind[-2:] for operand in instruction.operands] == ["mm", "mm"]
    (stored,) = instruction.memory
    assert (stored.base, stored.written, stored.read) == ("rdi", True, False)
    assert not instruction.same_register
