from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.listing import read_listing
from kernmodel.incore.dependences import addresses
from kernmodel.incore.dependences.addresses import Forwarding, forwardings
from kernmodel.isa.model import Instruction


def body(text: str) -> tuple[Instruction, ...]:
    return read_listing(text.replace(";", "\n") + "\n", "body.s", syntax="att").instructions


def links(text: str) -> list[tuple[int, int, int]]:
    """(store, load, passes) of every forwarding."""
    return [(link.store[0], link.load[0], link.passes) for link in forwardings(body(text))[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("movsd (%rsp), %xmm0; movsd %xmm0, (%rsp)", [(1, 0, 1)]),
        ("movsd %xmm0, (%rsp); movsd (%rsp), %xmm1", [(0, 1, 0)]),
        # Gauss-Seidel in place: what this pass stores, the next one loads 8 bytes to the left
        ("movsd -8(%rdi,%rax,8), %xmm0; movsd %xmm0, (%rdi,%rax,8); incq %rax", [(1, 0, 1)]),
        ("movsd -16(%rax), %xmm0; movsd %xmm0, (%rax); addq $8, %rax", [(1, 0, 2)]),
        ("movsd (%rax), %xmm0; movsd %xmm0, -8(%rax); subq $8, %rax", [(1, 0, 1)]),
        # the next element is not there yet
        ("movsd 8(%rax), %xmm0; movsd %xmm0, (%rax); addq $8, %rax", []),
        ("movsd -4(%rax), %xmm0; movsd %xmm0, (%rax); addq $16, %rax", []),
        # the pointer moves between store and load
        ("movsd %xmm0, (%rax); addq $8, %rax; movsd -8(%rax), %xmm1", [(0, 2, 0)]),
        ("movsd %xmm0, (%rax); leaq 8(%rax), %rcx; movsd -8(%rcx), %xmm1; movq %rcx, %rax", [(0, 2, 0)]),
        # a copy made at the end of the pass before
        ("movsd -8(%rdx), %xmm0; movsd %xmm0, (%rcx); addq $8, %rcx; movq %rcx, %rdx", [(1, 0, 1)]),
        # the last store wins
        ("movsd %xmm0, (%rsp); movsd %xmm1, (%rsp); movsd (%rsp), %xmm2", [(1, 2, 0)]),
        # two stores of 8 bytes under a load of 16
        ("movsd %xmm0, (%rsp); movsd %xmm1, 8(%rsp); movapd (%rsp), %xmm2", [(1, 2, 0), (0, 2, 0)]),
        # symbols and stack
        ("movsd %xmm0, a(%rip); movsd b(%rip), %xmm1", []),
        ("movsd %xmm0, a(%rip); movsd a(%rip), %xmm1", [(0, 1, 0)]),
        ("movq %rbx, -8(%rsp); pushq %rax; popq %rcx; movq -8(%rsp), %rdx", [(1, 2, 0), (1, 3, 0)]),
        # read, modify, write
        ("addq %rcx, (%rdi)", [(0, 0, 1)]),
        ("addq %rcx, (%rdi); addq $8, %rdi", []),
        # a stride in a register, and a row of such strides
        ("movsd (%rax), %xmm0; addq %rcx, %rax; movsd %xmm0, (%rax)", [(2, 0, 1)]),
        ("movsd (%rax), %xmm0; movsd %xmm0, (%rax,%rcx,2); addq %rcx, %rax", [(1, 0, 2)]),
        # an address that the body computes anew is comparable within the pass only
        ("movq (%rbx), %rax; movsd %xmm0, (%rax); movsd (%rax), %xmm1", [(1, 2, 0)]),
        # no memory is moved
        ("leaq (%rsp), %rax; movsd %xmm0, (%rsp); prefetcht0 (%rsp)", []),
    ],
)
def test_which_store_feeds_which_load(text: str, expected: list[tuple[int, int, int]]) -> None:
    assert links(text) == expected


def test_a_load_wider_than_the_store_is_not_whole() -> None:
    found, _ = forwardings(body("movsd %xmm0, (%rsp); movapd (%rsp), %xmm1"))
    assert found == (Forwarding((0, 0), (1, 0), 0, whole=False),)
    found, _ = forwardings(body("movapd %xmm0, (%rsp); movsd 8(%rsp), %xmm1"))
    assert found == (Forwarding((0, 0), (1, 0), 0, whole=True),)


def test_unrelated_bases_are_said_to_be_incomparable() -> None:
    assert forwardings(body("movsd %xmm0, (%rdi); movsd (%rsi), %xmm1")) == ((), True)
    assert forwardings(body("movsd %xmm0, (%rdi); movsd 64(%rdi), %xmm1")) == ((), False)
    assert forwardings(body("movsd (%rdi), %xmm1; addsd (%rsi), %xmm1")) == ((), False)


@settings(deadline=None, max_examples=40)
@given(
    store=st.integers(-24, 24),
    load=st.integers(-24, 24),
    stride=st.integers(-20, 20),
    sizes=st.sampled_from([("movsd", 8, "movsd", 8), ("movss", 4, "movsd", 8), ("movupd", 16, "movss", 4)]),
    store_first=st.booleans(),
)
def test_constant_strides_against_a_byte_by_byte_memory(
    store: int, load: int, stride: int, sizes: tuple[str, int, str, int], store_first: bool
) -> None:
    """Execute the passes and look which pass wrote each byte of a late load last."""
    store_name, store_size, load_name, load_size = sizes
    lines = [f"{store_name} %xmm0, {store}(%rax)", f"{load_name} {load}(%rax), %xmm1"]
    text = ";".join([*(lines if store_first else lines[::-1]), f"addq ${stride}, %rax"])
    written: dict[int, int] = {}
    last = 60
    for number in range(last + 1 if store_first else last):
        written |= dict.fromkeys(range(store + number * stride, store + number * stride + store_size), number)
    bytes_read = range(load + last * stride, load + last * stride + load_size)
    expected = {last - written[byte] for byte in bytes_read if byte in written}
    assert {passes for _, _, passes in links(text)} == expected


BASES = ("%rdi", "%rsi", "%rsp", "%rdi,%rcx", "%rdi,%rcx,4", "%rbx", "%rdi,%rdx,2")
MOVES = (
    "addq $4, %rdi",
    "subq $12, %rdi",
    "addq %rcx, %rdi",
    "subq %rcx, %rdi",
    "addq %rdx, %rdi",
    "incq %rcx",
    "movq %rdi, %rsi",
    "movq (%rdi), %rbx",
    "pushq %rax",
    "popq %rax",
)


def _access(base: str, displacement: int, store: bool, register: str) -> str:
    place = f"{displacement}({base})"
    return f"mov {register}, {place}" if store else f"mov {place}, {register}"


accesses = st.builds(
    _access,
    st.sampled_from(BASES),
    st.integers(-6, 6),
    st.booleans(),
    st.sampled_from(["%al", "%eax", "%rax", "%ax"]),
)
bodies = st.lists(st.one_of(accesses, st.sampled_from(MOVES)), min_size=1, max_size=12).map("; ".join)


@given(bodies)
def test_looking_up_the_latest_store_agrees_with_comparing_every_one(text: str) -> None:
    """Large bodies are analysed by another way, which here takes small ones."""
    instructions = body(text)
    compared = forwardings(instructions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(addresses, "_FEW", 0)
        looked_up = forwardings(instructions)
    assert looked_up == compared


def test_a_large_body_is_followed_from_end_to_end() -> None:
    text = "; ".join(f"movq %rax, {8 * k}(%rdi); movq {8 * k}(%rdi), %rbx" for k in range(2000)) + "; addq $16000, %rdi"
    found, unknown = forwardings(body(text))
    assert [(link.store[0], link.load[0], link.passes) for link in found] == [
        (2 * k, 2 * k + 1, 0) for k in range(2000)
    ]
    assert not unknown
