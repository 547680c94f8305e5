"""Loops from the control-flow graph: every shape that compilers give them, and random nests."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import read_listing
from kernmodel.code.loops import LoopBody, control_flow
from kernmodel.isa.model import Instruction, Listing


def loops_of(text: str) -> tuple[LoopBody, ...]:
    return control_flow(read_listing(text, "test.s", syntax="att")).loops


def body_text(text: str, loop: LoopBody) -> list[str]:
    listing = read_listing(text, "test.s", syntax="att")
    return [listing.instructions[index].text.strip() for index in loop.instructions]


def test_bottom_tested_loop() -> None:
    (loop,) = loops_of("f:\nxorl %eax,%eax\n.L2:\naddq $8,%rax\ncmpq $80,%rax\njne .L2\nret\n")
    assert (loop.label, loop.depth, loop.innermost, loop.parent) == (".L2", 1, True, None)
    assert loop.instructions == (1, 2, 3)


def test_loop_entered_at_its_test_ends_in_the_closing_branch() -> None:
    text = "f:\njmp .Ltest\n.Lbody:\naddsd (%rdi,%rax,8),%xmm0\nincq %rax\n.Ltest:\ncmpq %rsi,%rax\njl .Lbody\nret\n"
    (loop,) = loops_of(text)
    assert body_text(text, loop) == ["addsd (%rdi,%rax,8),%xmm0", "incq %rax", "cmpq %rsi,%rax", "jl .Lbody"]
    assert loop.label == ".Lbody"


def test_top_tested_loop_with_a_jump_back() -> None:
    text = "f:\n.Ltop:\ncmpq %rsi,%rax\njge .Lend\naddsd (%rdi,%rax,8),%xmm0\nincq %rax\njmp .Ltop\n.Lend:\nret\n"
    (loop,) = loops_of(text)
    assert body_text(text, loop)[0] == "cmpq %rsi,%rax"
    assert body_text(text, loop)[-1] == "jmp .Ltop"


def test_branch_inside_the_body() -> None:
    text = """f:
.L3:
    addsd (%rdi), %xmm0
    ucomisd %xmm1, %xmm0
    jbe .L4
    movapd %xmm0, %xmm1
.L4:
    addq $8, %rdi
    cmpq %rsi, %rdi
    jne .L3
    ret
"""
    (loop,) = loops_of(text)
    assert len(loop.blocks) == 3
    assert loop.instructions == tuple(range(7))


def test_two_closing_branches_with_the_same_step_are_one_loop() -> None:
    text = """f:
.L3:
    ucomisd (%rdi), %xmm0
    jbe .L4
    addq $8, %rdi
    cmpq %rsi, %rdi
    jne .L3
    ret
.L4:
    movsd (%rdi), %xmm0
    addq $8, %rdi
    cmpq %rsi, %rdi
    jne .L3
    ret
"""
    (loop,) = loops_of(text)
    assert len(loop.instructions) == 9


def test_a_nest_with_one_head_is_two_loops() -> None:
    text = """f:
.L3:
    addsd (%rdi,%rax), %xmm0
    addq $8, %rax
    cmpq $800, %rax
    jne .L3
    xorl %eax, %eax
    addq $800, %rdi
    cmpq %rsi, %rdi
    jne .L3
    ret
"""
    outer, inner = loops_of(text)
    assert (outer.innermost, inner.innermost, inner.parent) == (False, True, outer.number)
    assert len(inner.instructions) == 4
    assert len(outer.instructions) == 8


def test_padding_before_a_loop_that_is_entered_in_its_middle_is_no_entry() -> None:
    text = """f:
    movapd (%rdi), %xmm0
    jmp .L3
    .p2align 4
.L5:
    movapd %xmm1, %xmm0
.L3:
    movapd (%rsi,%rax), %xmm1
    addq $16, %rax
    cmpq $1600, %rax
    jne .L5
    ret
"""
    (loop,) = loops_of(text)
    assert loop.label == ".L5"
    listing = read_listing(text, "test.s", syntax="att")
    assert listing.instructions[loop.instructions[0]].mnemonic == "movapd"
    assert listing.instructions[loop.instructions[-1]].branch == "conditional"


def test_a_loop_that_nothing_enters_is_found() -> None:
    (loop,) = loops_of(".L2:\naddq $8,%rax\ncmpq $80,%rax\njne .L2\n")
    assert loop.instructions == (0, 1, 2)


def test_straight_code_and_calls_have_no_loop() -> None:
    assert loops_of("f:\ncall g\naddq $8,%rax\njmp memcpy\n") == ()


def test_loops_of_several_functions_are_numbered_by_address() -> None:
    text = "f:\n.L1:\ndecq %rax\njne .L1\nret\ng:\n.L2:\ndecq %rbx\njne .L2\nret\n"
    first, second = loops_of(text)
    assert [(loop.number, loop.label) for loop in (first, second)] == [(1, ".L1"), (2, ".L2")]


@dataclass(frozen=True)
class Nest:
    """A random program: plain instructions (int) and loops, in order."""

    parts: tuple[int | Nest, ...]


NESTS = st.recursive(
    st.integers(1, 3),
    lambda parts: st.lists(parts, min_size=1, max_size=3).map(lambda items: Nest(tuple(items))),
    max_leaves=12,
)


def plain(address: int, branch: str | None = None, target: int | None = None) -> Instruction:
    mnemonic = "jne" if branch else "vaddpd"
    return Instruction(
        mnemonic,
        0,
        address,
        1,
        mnemonic,
        mnemonic,
        (),
        (),
        (),
        "",
        "",
        (),
        branch,
        target,
        False,
        0,
        False,  # type: ignore[arg-type]
    )


def emit(program: int | Nest, code: list[Instruction], spans: list[tuple[int, int]]) -> None:
    """Each nest becomes a loop: an instruction of its own, its parts, a branch back."""
    if isinstance(program, int):
        code.extend(plain(len(code) + k) for k in range(program))
        return
    start = len(code)
    code.append(plain(start))
    for part in program.parts:
        emit(part, code, spans)
    code.append(plain(len(code), "conditional", start))
    spans.append((start, len(code)))


@given(st.lists(NESTS, min_size=1, max_size=3))
def test_every_loop_of_a_random_nest_is_found_with_its_nesting(programs: list[int | Nest]) -> None:
    code: list[Instruction] = []
    spans: list[tuple[int, int]] = []
    for program in programs:
        emit(program, code, spans)
    loops = control_flow(Listing("random", "x86-64", "binary", tuple(code), ())).loops
    assert [tuple(sorted(loop.instructions)) for loop in loops] == [
        tuple(range(start, end)) for start, end in sorted(spans, key=lambda s: (s[0], -s[1]))
    ]
    for loop in loops:
        around = [o for o in loops if o is not loop and set(o.instructions) > set(loop.instructions)]
        assert loop.depth == len(around) + 1
        assert loop.innermost == all(
            set(o.instructions) >= set(loop.instructions) or not set(o.instructions) & set(loop.instructions)
            for o in loops
        )
        if loop.innermost:
            assert loop.instructions == tuple(sorted(loop.instructions))
