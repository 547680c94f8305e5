"""AArch64 listings → loops: strides through write-backs, trip counts, vector lengths, markers, sections."""

from __future__ import annotations

import pytest

from kernmodel.code.listing import read_listing
from kernmodel.code.loops import control_flow
from kernmodel.code.markers import marked_region
from kernmodel.code.strides import analyse, loop_strides


def strides_of(text: str, isa_name: str = "aarch64") -> tuple[list[int | None], int | None]:
    listing = read_listing(text, "k.s", isa_name=isa_name)
    flow = control_flow(listing)
    (loop,) = flow.loops
    found = loop_strides(analyse(listing, flow), loop)
    return [stream.stride_bytes for stream in found.streams], found.passes


@pytest.mark.parametrize(
    ("text", "strides", "passes"),
    [
        ("mov x2,0\n.L: ldr q0,[x0,x2]\nstr q0,[x1],16\nadd x2,x2,16\ncmp x2,256\nbne .L", [16, 16], 16),
        ("mov w5,10\n.L: str d0,[x7,8]!\nsub w5,w5,1\ncbnz w5,.L", [8], 10),
        ("mov x5,10\n.L: ldp d0,d1,[x7],x3\nsubs x5,x5,1\nb.gt .L", [None], 10),
        ("mov x3,48\n.L: ld1 {v0.2d},[x7],x3\ncmp x7,x8\nb.lo .L", [48], None),
        ("mov x1,xzr\n.L: ldr d0,[x0,x1,lsl 3]\nadd x1,x1,2\ncmp x1,31\nb.ls .L", [16], 16),
        ("mov w1,wzr\n.L: ldr s0,[x0,w1,sxtw 2]\nadd w1,w1,1\ncmp w1,9\nb.lt .L", [4], 9),
    ],
)
def test_strides_and_passes(text: str, strides: list[int | None], passes: int | None) -> None:
    assert strides_of(text) == (strides, passes)


SVE = """
        mov x3, 0
        mov x4, 100
        whilelo p0.d, xzr, x4
.L:     ld1d z0.d, p0/z, [x0, x3, lsl 3]
        st1d z0.d, p0, [x1, x3, lsl 3]
        incd x3
        whilelo p0.d, x3, x4
        b.any .L
"""


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_vector_lengths_decide_the_step(bits: int) -> None:
    assert strides_of(SVE, f"aarch64-sve{bits}")[0] == [bits // 8] * 2


def test_only_code_is_read() -> None:
    text = ".data\nx: .word 5\n.text\nf: nop /* a\n b */ ; ret // c\n# 1 'k.c'\n"
    text += ".section .rodata\n.LC0: .word 1\n.text\n nop\n"
    listing = read_listing(text, "k.s", isa_name="aarch64")
    assert [(one.mnemonic, one.line) for one in listing.instructions] == [("nop", 4), ("ret", 5), ("nop", 10)]
    assert listing.labels == (("f", 0),)


def test_markers() -> None:
    text = "mov x1, #111\n.byte 213,3,32,31\nfadd d0,d0,d1\nmov x1, #222\n.byte 213,3,32,31\n"
    listing = read_listing(text, "k.s", isa_name="aarch64")
    region = marked_region(listing, text)
    assert region is not None
    assert [one.mnemonic for one in listing.instructions[slice(*region)]] == ["fadd"]
    text = "// OSACA-BEGIN\nfadd d0,d0,d1\n// OSACA-END\nret\n"
    assert marked_region(read_listing(text, "k.s", isa_name="aarch64"), text) == (0, 1)
