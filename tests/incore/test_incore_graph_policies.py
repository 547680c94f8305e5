"""Which stores and loads meet under the policies of the peers."""

from __future__ import annotations

import pytest

from kernmodel.code.listing import read_listing
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.dependences.addresses import BodyAccesses, MemoryPolicy, address_step, forwardings
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction


def body(text: str) -> tuple[Instruction, ...]:
    return read_listing(text.replace(";", "\n") + "\n", "body.s", syntax="att").instructions


def links(text: str, policy: MemoryPolicy) -> list[tuple[int, int, int]]:
    """(store, load, passes) of every forwarding."""
    return [(link.store[0], link.load[0], link.passes) for link in forwardings(body(text), policy)[0]]


@pytest.mark.parametrize(
    ("text", "different", "stack"),
    [
        ("movq (%rbx), %rax; movq %rax, (%rbx)", [(1, 0, 1)], [(1, 0, 1)]),
        # one value in all registers but rsp and rbp
        ("movq (%rsi), %rax; movq %rax, (%rdi)", [], [(1, 0, 1)]),
        ("movq (%rsp), %rax; movq %rax, (%rdi)", [], []),
        ("movq (%rsp), %rax; movq %rax, (%rbp)", [], []),
        ("movq 8(%rsi), %rax; movq %rax, (%rdi)", [], []),
        ("movq a(%rip), %rax; movq %rax, (%rdi)", [], []),
        # copies hold the same value, displaced by lea, push and pop
        ("movq %rbx, %rcx; movq (%rcx), %rax; movq %rax, (%rbx)", [(2, 1, 1)], [(2, 1, 1)]),
        ("leaq 8(%rbx), %rcx; movq (%rcx), %rax; movq %rax, 8(%rbx)", [(2, 1, 1)], [(2, 1, 1)]),
        ("pushq %rax; movq %rsp, %rbp; popq %rbx", [(0, 2, 0)], [(0, 2, 0)]),
        ("movslq %ecx, %rdx; incq (%rbx,%rdx,4)", [(1, 1, 1)], [(1, 1, 1)]),
        # what is computed alike of equal values is equal
        ("leaq (%rsi,%rdi), %rcx; andq $-8, %rcx; incq (%rcx)", [(2, 2, 1)], [(2, 2, 1)]),
        (
            "movq (%rsi), %rax; addq $8, %rsi; addq $8, %rdi; movq %rax, (%rdi)",
            [],
            [(3, 0, 1)],
        ),
        # addresses that move are not followed, nor parts of what was stored
        ("movq -8(%rax), %rbx; movq %rbx, (%rax); addq $8, %rax", [], []),
        ("movsd 8(%rsp), %xmm0; movaps %xmm0, (%rsp)", [], []),
        # loaded pointers differ every time
        ("movq (%rbx), %rcx; incq (%rcx)", [], []),
    ],
)
def test_which_store_feeds_which_load(
    text: str, different: list[tuple[int, int, int]], stack: list[tuple[int, int, int]]
) -> None:
    assert links(text, "different") == different
    assert links(text, "stack") == stack


def test_moving_addresses_are_followed_by_default_only() -> None:
    text = "movq -8(%rax), %rbx; movq %rbx, (%rax); addq $8, %rax"
    assert links(text, "moving") == [(1, 0, 1)]
    assert links(text, "different") == []


def test_a_wider_load_is_not_whole() -> None:
    found, _ = forwardings(body("movsd %xmm0, (%rsp); movapd (%rsp), %xmm1"), "different")
    assert [link.whole for link in found] == [False]


def test_steps_made_before_serve_as_well() -> None:
    instructions = body("movq -8(%rax), %rbx; movq %rbx, (%rax); addq $8, %rax; leaq (%rax,%rax,2), %rcx")
    steps = [address_step(instruction) for instruction in instructions]
    assert forwardings(instructions, "moving", BodyAccesses(steps)) == forwardings(instructions)


def test_the_analysis_hands_the_policy_on() -> None:
    """In-place sum to the left: a chain through memory only for those who follow the address."""
    instructions = body("movsd -8(%rax), %xmm0; addsd (%rax), %xmm0; movsd %xmm0, (%rax); addq $8, %rax")
    loop = AssemblyLoop(instructions, "x86-64", "att", "", "", None, (), "", "marked", ())
    core = load_parameters("SKL")
    table = InstructionTable.open(core)
    chains = [analyse(loop, core, table, memory=policy).lcd for policy in ("moving", "different")]
    assert [chain is not None and "memory" in " ".join(chain.carriers) for chain in chains] == [True, False]
