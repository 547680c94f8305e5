"""Constant-stride analysis: what compilers do with addresses, and random loop bodies against an interpreter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes, read_listing
from kernmodel.code.loops import control_flow
from kernmodel.code.model import StreamStart
from kernmodel.code.strides import LoopStrides, analyse, loop_strides
from kernmodel.isa.model import Instruction, Listing, MemoryReference, Operand


def strides_of(listing: Listing) -> list[LoopStrides]:
    analysis = analyse(listing, control_flow(listing))
    return [loop_strides(analysis, loop) for loop in analysis.flow.loops if loop.innermost]


def innermost(text: str) -> LoopStrides:
    (found,) = strides_of(read_listing(text, "test.s", syntax="att"))
    return found


def numbers(strides: LoopStrides) -> list[int | None]:
    return [stream.stride_bytes for stream in strides.streams]


def test_scaled_index() -> None:
    found = innermost(".L2:\nmovsd (%rdi,%rax,8),%xmm0\nmovsd %xmm0,(%rsi)\nincq %rax\ncmpq $100,%rax\njne .L2\n")
    assert numbers(found) == [8, 0]


def test_pointer_and_invariant_register_from_before_the_loop() -> None:
    text = "f:\nmovl $40000,%ecx\n.L2:\naddsd (%rdi),%xmm0\naddq %rcx,%rdi\ncmpq %rsi,%rdi\njne .L2\nret\n"
    assert numbers(innermost(text)) == [40000]


def test_step_that_is_invariant_but_no_number_is_not_known() -> None:
    text = "f:\nleaq (,%rdx,8),%rcx\n.L2:\naddsd (%rdi),%xmm0\naddq %rcx,%rdi\ncmpq %rsi,%rdi\njne .L2\nret\n"
    found = innermost(text)
    assert numbers(found) == [None]


def test_counter_in_a_stack_slot_with_sign_extension() -> None:
    text = """f:
    movl $0, -4(%rbp)
.L3:
    movl -4(%rbp), %eax
    cltq
    leaq (,%rax,8), %rdx
    movq -16(%rbp), %rax
    addq %rdx, %rax
    movsd (%rax), %xmm0
    addl $1, -4(%rbp)
    cmpl $99, -4(%rbp)
    jle .L3
    ret
"""
    found = innermost(text)
    array = [s.stride_bytes for s in found.streams if s.reference.base == "rax" and s.reference.size_bytes == 8]
    assert array == [8]
    assert found.passes == 100


def test_copy_of_the_past_advances_like_its_origin() -> None:
    text = "f:\n.L2:\nmovsd (%rax),%xmm0\nmovq %rdx,%rax\naddq $16,%rdx\ncmpq %rsi,%rdx\njne .L2\nret\n"
    assert numbers(innermost(text)) == [16]


def test_pointer_loaded_from_memory_is_invariant_and_an_index_from_an_array_is_not() -> None:
    text = """f:
.L2:
    movq (%rdi), %rax
    movslq (%rsi,%rcx,4), %rdx
    movsd (%rax,%rcx,8), %xmm0
    movsd (%rax,%rdx,8), %xmm1
    incq %rcx
    cmpq $64, %rcx
    jne .L2
    ret
"""
    assert numbers(innermost(text)) == [0, 4, 8, None]


def test_gather_with_invariant_and_with_moving_index() -> None:
    text = """f:
.L2:
    vgatherdpd %ymm2, (%rdi,%xmm1,8), %ymm0
    vpaddd %xmm3, %xmm4, %xmm4
    vgatherdpd %ymm2, (%rdi,%xmm4,8), %ymm5
    addq $64, %rdi
    cmpq %rsi, %rdi
    jne .L2
    ret
"""
    assert numbers(innermost(text)) == [64, None]


def test_a_value_that_differs_between_two_ways_is_unknown() -> None:
    text = """f:
.L2:
    testq %rdx, %rdx
    je .L3
    addq $8, %rax
.L3:
    movsd (%rax), %xmm0
    movsd (%rdi), %xmm1
    addq $8, %rdi
    cmpq %rsi, %rdi
    jne .L2
    ret
"""
    assert numbers(innermost(text)) == [None, 8]


def test_passes_need_only_the_difference_of_pointers() -> None:
    text = "f:\nleaq 800(%rdi),%rdx\n.L2:\naddsd (%rdi),%xmm0\naddq $16,%rdi\ncmpq %rdx,%rdi\njne .L2\nret\n"
    assert innermost(text).passes == 50


def test_passes_by_the_carry_of_adding_minus_one() -> None:
    text = "f:\nmovl $4999,%eax\n.L2:\nmovsd (%rdi,%rax,8),%xmm0\naddq $-1,%rax\njb .L2\nret\n"
    assert innermost(text).passes == 5000


def test_a_loop_entered_at_its_test_executes_its_body_once_less_than_the_test() -> None:
    text = (
        "f:\nxorl %eax,%eax\njmp .L3\n.L2:\nmovsd (%rdi,%rax,8),%xmm0\nincq %rax\n.L3:\ncmpq $100,%rax\njl .L2\nret\n"
    )
    assert innermost(text).passes == 100


ROWS = """f:
    movq %rdi, %rax
.L2:
    leaq 800(%rax), %rdx
.L3:
    addsd (%rax), %xmm0
    addq $8, %rax
    cmpq %rdx, %rax
    jne .L3
    addq $STEP, %rax
    cmpq %rsi, %rax
    jne .L2
    ret
"""


@pytest.mark.parametrize("step", [0, 32, -800])
def test_an_outer_loop_that_counts_on_from_where_the_inner_one_stopped(step: int) -> None:
    """gcc's row pointers are what the loop inside left, plus what lies between rows."""
    (stream,) = innermost(ROWS.replace("STEP", str(step))).streams
    assert stream.start == StreamStart("rdi", 0, ((800 + step, None),))


def test_a_copy_of_the_past_has_no_known_value_when_its_loop_ends() -> None:
    """What it was before the loop has nothing to do with what it copies."""
    text = ROWS.replace("addsd (%rax)", "movq %r8, %rcx\nmovq %rax, %r8\naddsd (%rax)")
    text = text.replace("addq $STEP, %rax", "leaq 8(%rcx), %rax")
    (stream,) = innermost(text).streams
    assert stream.start is not None
    assert stream.start.rows == ((0, None),)


def test_pointers_kept_in_vector_registers_and_spilled_from_there() -> None:
    text = """f:
    leaq 64(%rdi), %rax
    vmovq %rax, %xmm0
    vmovdqa64 %xmm0, %xmm20
    vmovq %xmm20, -8(%rsp)
    xorl %eax, %eax
.L2:
    vmovq %xmm20, %rdx
    vmovups (%rdx,%rax), %zmm5
    movq -8(%rsp), %rcx
    vaddps (%rcx,%rax), %zmm5, %zmm5
    addq $64, %rax
    cmpq $768, %rax
    jne .L2
    ret
"""
    vectors = [stream.start for stream in innermost(text).streams if stream.reference.size_bytes == 64]
    assert vectors == [StreamStart("rdi", 64)] * 2


def test_pointers_kept_in_mask_registers() -> None:
    text = """f:
    leaq 64(%rdi), %rax
    kmovq %rax, %k7
    xorl %eax, %eax
.L2:
    kmovq %k7, %rdx
    vaddps (%rdx,%rax), %zmm5, %zmm5
    addq $64, %rax
    cmpq $768, %rax
    jne .L2
    ret
"""
    (stream,) = innermost(text).streams
    assert (stream.start, stream.stride_bytes) == (StreamStart("rdi", 64), 64)


def test_inner_bound_that_advances_with_the_outer_loop() -> None:
    text = """f:
    leaq 800(%rdi), %rdx
.L2:
    movq %rdi, %rax
.L3:
    addsd (%rax), %xmm0
    addq $8, %rax
    cmpq %rdx, %rax
    jne .L3
    addq $800, %rdi
    addq $800, %rdx
    cmpq %rsi, %rdi
    jne .L2
    ret
"""
    assert innermost(text).passes == 100


REGISTERS = ("rax", "rbx", "rcx", "rdx", "rsi")


def register(name: str, *, read: bool, written: bool) -> Operand:
    return Operand("r64", name, None, None, read, written)


def instruction(mnemonic: str, address: int, operands: tuple[Operand, ...]) -> Instruction:
    memory = tuple(o.memory for o in operands if o.memory is not None)
    flags = "" if mnemonic in ("mov", "lea", "movsd") else "CPAZSO"
    return Instruction(
        mnemonic, 0, address, 1, mnemonic, mnemonic, operands, (), (), "", flags, memory, None, None, False, 0, False
    )


@st.composite
def bodies(draw: st.DrawFn) -> list[Instruction]:
    """Random address arithmetic and loads; the closing branch is added by the test."""
    code: list[Instruction] = []
    reg = st.sampled_from(REGISTERS)
    for address in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("add", "addr", "sub", "mov", "lea", "shl", "imul", "inc", "load")))
        target, source = draw(reg), draw(reg)
        number = Operand("i8", None, None, draw(st.integers(-4, 4)), False, False)
        updated = register(target, read=True, written=True)
        other = register(source, read=True, written=False)
        if kind in ("add", "sub"):
            code.append(instruction(kind, address, (updated, number)))
        elif kind == "addr":
            code.append(instruction("add", address, (updated, other)))
        elif kind == "mov":
            code.append(instruction("mov", address, (register(target, read=False, written=True), other)))
        elif kind == "shl":
            code.append(instruction("shl", address, (updated, Operand("i8", None, None, 1, False, False))))
        elif kind == "imul":
            code.append(instruction("imul", address, (register(target, read=False, written=True), other, number)))
        elif kind == "inc":
            code.append(instruction("inc", address, (updated,)))
        else:
            size = 8 if kind == "load" else 0
            place = MemoryReference(
                source, draw(reg), draw(st.sampled_from((1, 2, 8))), 16, None, None, size, size > 0, False
            )
            operand = Operand("m64" if size else "m", None, place, None, size > 0, False)
            into = (
                Operand("xmm", "zmm0", None, None, False, True) if size else register(target, read=False, written=True)
            )
            code.append(instruction("movsd" if size else "lea", address, (into, operand)))
    return code


def execute(code: list[Instruction], values: dict[str, int]) -> list[int]:
    """One pass over `code`: changes `values`, returns the addresses loaded from."""
    loaded = []
    for item in code:
        target = item.operands[0].register or ""
        last = item.operands[-1]
        amount = last.immediate if last.immediate is not None else values.get(last.register or "", 0)
        if item.memory:
            m = item.memory[0]
            amount = values[m.base or ""] + values[m.index or ""] * m.scale + m.displacement
        if item.mnemonic == "movsd":
            loaded.append(amount)
        elif item.mnemonic in ("mov", "lea"):
            values[target] = amount
        elif item.mnemonic == "imul":
            values[target] = values[item.operands[1].register or ""] * amount
        elif item.mnemonic == "shl":
            values[target] *= 2
        else:
            step = 1 if item.mnemonic == "inc" else amount
            values[target] += -step if item.mnemonic == "sub" else step
    return loaded


@given(bodies(), st.lists(st.integers(-1000, 1000), min_size=5, max_size=5))
def test_a_stride_that_is_claimed_is_what_execution_shows(code: list[Instruction], start: list[int]) -> None:
    branch = Instruction(
        "jne", 0, len(code), 1, "jne", "jne rel", (), (), (), "Z", "", (), "conditional", 0, False, 0, False
    )
    (found,) = strides_of(Listing("random", "x86-64", "binary", (*code, branch), ()))
    claimed = [s.stride_bytes for s in found.streams if s.reference.size_bytes]
    values = dict(zip(REGISTERS, start, strict=True))
    for _ in range(len(REGISTERS) + 1):  # copies of copies of the past need as many passes to settle
        before = execute(code, values)
    for _ in range(3):
        after = execute(code, values)
        for stride, old, new in zip(claimed, before, after, strict=True):
            assert stride is None or new - old == stride
        before = after


CONDITIONS = {
    "jne": lambda d: d != 0,
    "jl": lambda d: d < 0,
    "jle": lambda d: d <= 0,
    "jg": lambda d: d > 0,
    "jge": lambda d: d >= 0,
    "jb": lambda d: d < 0,
    "ja": lambda d: d > 0,
}


@given(
    st.sampled_from(sorted(CONDITIONS)),
    st.integers(0, 200),
    st.sampled_from([-4, -3, -1, 1, 2, 5]),
    st.integers(0, 200),
)
def test_passes_are_those_of_a_counted_execution(branch: str, first: int, step: int, bound: int) -> None:
    def number(value: int) -> Operand:
        return Operand("i32", None, None, value, False, False)

    target = register("rax", read=True, written=True)
    code = (
        instruction("mov", 0, (register("rax", read=False, written=True), number(first))),
        instruction("add", 1, (target, number(step))),
        instruction("cmp", 2, (register("rax", read=True, written=False), number(bound))),
        Instruction(branch, 0, 3, 1, branch, branch, (), (), (), "", "", (), "conditional", 1, False, 0, False),
    )
    (found,) = strides_of(Listing("counted", "x86-64", "binary", code, ()))
    value, passes = first + step, 1
    while CONDITIONS[branch](value - bound) and passes < 500:
        value, passes = value + step, passes + 1
    assert found.passes == (passes if passes < 500 else None)


def test_a_loop_with_two_entries_claims_no_stride_it_cannot_know() -> None:
    text = """f:
    testq %rdx, %rdx
    je .Lmid
    xorl %ecx, %ecx
.Lhead:
    movsd (%rdi,%rcx,8), %xmm0
.Lmid:
    movsd (%rsi,%rax,8), %xmm1
    incq %rax
    incq %rcx
    cmpq $100, %rcx
    jne .Lhead
    ret
"""
    found = innermost(text)
    assert all(stride in (8, None) for stride in numbers(found))
    assert found.passes is None


def test_a_jump_into_an_outer_loop_forgets_only_what_that_loop_writes() -> None:
    text = """f:
    movq %rdi, %rax
    testq %rdx, %rdx
    je .Lmid
.Louter:
    movl $8, %ecx
.L3:
    movsd %xmm0, (%rax,%rcx)
    addq $8, %rcx
    cmpq %rsi, %rcx
    jne .L3
.Lmid:
    decq %rdx
    jne .Louter
    ret
"""
    (stream,) = innermost(text).streams
    assert stream.start is not None
    assert (stream.start.base, stream.start.offset) == ("rdi", 8)
    other = text.replace("decq %rdx", "decq %rdx\n    movq (%rax), %rax")
    (stream,) = innermost(other).streams
    assert stream.start is None or stream.start.base != "rdi"
    entered = text.replace("je .Lmid", "movq %rsi, %rax\n    je .Lmid\n    movq %rdi, %rax")
    (stream,) = innermost(entered).streams
    assert stream.start is None or stream.start.base != "rdi"


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_can_be_analysed(code: bytes) -> None:
    listing = decode_bytes(code)
    for found in strides_of(listing):
        assert len(found.streams) == len(found.addresses)
        assert set(found.loop.instructions) <= set(range(len(listing.instructions)))


def test_pointers_followed_from_one_to_the_next_can_be_followed_on() -> None:
    """Some 1,000 loads, each from where the one before it points to: none advances by a constant."""
    text = ".L2:\n" + "movq (%rax),%rax\n" * 1000 + "addq $8,%rcx\ncmpq %rdx,%rcx\njne .L2\n"
    found = innermost(text)
    assert set(numbers(found)) == {None}


def test_sums_of_loaded_indices_do_not_make_ever_longer_names() -> None:
    """Each load of two registers that hold loads: written out, the last address has more terms than there are atoms."""
    text = ".L2:\n" + "movq (%rax,%rbx),%rax\nmovq (%rbx,%rax),%rbx\n" * 100 + "addq $8,%rcx\ncmpq %rdx,%rcx\njne .L2\n"
    listing = read_listing(text, "test.s", syntax="att")
    trace = analyse(listing, control_flow(listing)).trace
    assert len(trace.cells) == 200
    assert max(map(len, trace.cells)) < 300


def test_products_are_those_of_registers_of_64_bits() -> None:
    text = (
        ".L2:\n" + "leaq (%rax,%rax,4),%rax\n" * 100 + "movq (%rdi,%rax),%rbx\naddq $8,%rcx\ncmpq %rdx,%rcx\njne .L2\n"
    )
    listing = read_listing(text, "test.s", syntax="att")
    (address,) = analyse(listing, control_flow(listing)).trace.addresses[100]
    factor = 5**100 % (1 << 64)
    assert address.coefficient("rdi") == 1
    assert [number for name, number in address.terms if name != "rdi"] == [factor - (factor >> 63 << 64)]


def test_what_a_register_holds_may_become_nothing_of_it() -> None:
    text = (
        ".L2:\n" + "shlq $32,%rax\nshlq $32,%rax\n" + "movq (%rdi,%rax),%rbx\naddq $8,%rdi\ncmpq %rdx,%rdi\njne .L2\n"
    )
    assert numbers(innermost(text)) == [8]
