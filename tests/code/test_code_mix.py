"""What counts as a load, a store and a floating-point operation, and how loops weigh in."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.listing import read_listing
from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass, combined_mix, instruction_mix
from kernmodel.code.model import AssemblyLoop
from kernmodel.code.select import select_without_source
from kernmodel.errors import InputError

pytestmark = pytest.mark.needs("as")


def loop_of(text: str, iterations: float | None = None) -> AssemblyLoop:
    """These lines of Intel syntax as a loop body."""
    loop = select_without_source(read_listing(text, "test.s", syntax="intel"))
    return replace(loop, iterations_per_pass=iterations, notes=())


def mix_of(text: str, iterations: float | None = None) -> InstructionMix:
    return instruction_mix(loop_of(text, iterations))


def accesses(text: str) -> list[str]:
    """Memory classes as text: "load 64 vector masked ×1"."""
    found = []
    for kind, count in mix_of(text).memory:
        marks = " streaming" * kind.streaming + " masked" * kind.masked
        found.append(f"{'store' if kind.store else 'load'} {kind.size_bytes} {kind.kind}{marks} ×{count:g}")
    return sorted(found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # sizes
        ("mov al, [rsi]", ["load 1 scalar ×1"]),
        ("movzx eax, word ptr [rsi]", ["load 2 scalar ×1"]),
        ("vmovss xmm0, [rsi]", ["load 4 scalar ×1"]),
        ("addsd xmm0, [rsi]", ["load 8 scalar ×1"]),
        ("movups xmm0, [rsi]", ["load 16 vector ×1"]),
        ("vmovupd [rdi], ymm0", ["store 32 vector ×1"]),
        ("vaddps zmm0, zmm1, [rsi]", ["load 64 vector ×1"]),
        ("fld tbyte ptr [rsi]", ["load 10 scalar ×1"]),
        ("fadd qword ptr [rsi]", ["load 8 scalar ×1"]),
        ("fstp dword ptr [rsi]", ["store 4 scalar ×1"]),
        ("vfpclasspd k2, zmmword ptr [rsi], 1", ["load 64 vector ×1"]),
        ("kmovq k1, [rsi]", ["load 8 scalar ×1"]),
        ("lock cmpxchg16b [rsi]", ["load 16 scalar ×1", "store 16 scalar ×1"]),
        # one element for all lanes
        ("vaddpd zmm0, zmm1, qword ptr [rsi]{1to8}", ["load 8 scalar ×1"]),
        ("vbroadcastss ymm0, dword ptr [rsi]", ["load 4 scalar ×1"]),
        ("vbroadcastf128 ymm0, [rsi]", ["load 16 vector ×1"]),
        # both directions
        ("add qword ptr [rsi], 1", ["load 8 scalar ×1", "store 8 scalar ×1"]),
        ("inc dword ptr [rsi]", ["load 4 scalar ×1", "store 4 scalar ×1"]),
        ("lock xadd [rsi], eax", ["load 4 scalar ×1", "store 4 scalar ×1"]),
        ("cmp qword ptr [rsi], 1", ["load 8 scalar ×1"]),
        ("movsd", ["load 4 scalar ×1", "store 4 scalar ×1"]),
        # the stack
        ("push rax", ["store 8 scalar ×1"]),
        ("pop rax", ["load 8 scalar ×1"]),
        ("push qword ptr [rsi]", ["load 8 scalar ×1", "store 8 scalar ×1"]),
        ("call rax", ["store 8 scalar ×1"]),
        ("ret", ["load 8 scalar ×1"]),
        ("vmovupd [rsp+64], ymm0", ["store 32 vector ×1"]),
        # gathers move element by element
        ("vgatherdpd ymm0, [rsi+xmm1*8], ymm2", ["load 8 gather ×4"]),
        ("vgatherqps xmm0, [rsi+ymm1*4], xmm2", ["load 4 gather ×4"]),
        ("vgatherqps xmm0, [rsi+xmm1*4], xmm2", ["load 4 gather ×2"]),
        ("vgatherdps zmm0{k1}, [rsi+zmm1*4]", ["load 4 gather ×16"]),
        ("vpgatherdq zmm0{k1}, [rsi+ymm1*8]", ["load 8 gather ×8"]),
        ("vscatterdpd [rdi+ymm1*8]{k1}, zmm0", ["store 8 scatter ×8"]),
        # masks and streaming stores
        ("vmovupd zmm0{k1}{z}, [rsi]", ["load 64 vector masked ×1"]),
        ("vmovupd [rsi]{k1}, zmm0", ["store 64 vector masked ×1"]),
        ("vmaskmovpd ymm0, ymm1, [rsi]", ["load 32 vector masked ×1"]),
        ("vpmaskmovd [rsi], ymm1, ymm0", ["store 32 vector masked ×1"]),
        ("vmovntpd [rsi], zmm0", ["store 64 vector streaming ×1"]),
        ("movnti [rsi], rax", ["store 8 scalar streaming ×1"]),
        ("vmovntdqa zmm0, [rsi]", ["load 64 vector ×1"]),
        # no access
        ("prefetcht0 [rsi]", []),
        ("prefetchw [rsi]", []),
        ("vgatherpf0dps [rsi+zmm1*4]{k1}", []),
        ("lea rax, [rsi+8]", []),
        ("nop dword ptr [rax]", []),
        ("vaddpd ymm0, ymm1, ymm2", []),
    ],
)
def test_accesses(text, expected):
    assert accesses(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("addsd xmm0, xmm1", [FpClass("add", "DP", 1)]),
        ("vsubps ymm0, ymm1, [rsi]", [FpClass("add", "SP", 8)]),
        ("vmulpd xmm0, xmm1, xmm2", [FpClass("mul", "DP", 2)]),
        ("vfnmadd213sd xmm0, xmm1, xmm2", [FpClass("fma", "DP", 1)]),
        ("vfmsub231pd ymm0, ymm1, ymm2", [FpClass("fma", "DP", 4)]),
        ("vfmaddsubps xmm0, xmm1, xmm2, xmm3", [FpClass("fma", "SP", 4)]),
        ("vaddpd zmm0{k1}, zmm1, zmm2", [FpClass("add", "DP", 8, masked=True)]),
        ("vaddpd zmm0, zmm1, qword ptr [rsi]{1to8}", [FpClass("add", "DP", 8)]),
        ("vcmppd k1{k2}, zmm1, zmm2, 1", [FpClass("compare", "DP", 8, masked=True)]),
        ("vfpclassps k1, zmmword ptr [rsi], 1", [FpClass("compare", "SP", 16)]),
        ("vmaxsd xmm0, xmm1, xmm2", [FpClass("compare", "DP", 1)]),
        ("cmpsd xmm0, xmm1, 1", [FpClass("compare", "DP", 1)]),
        ("cmpsd", []),
        ("vcvtpd2ps xmm0, qword ptr [rsi]{1to2}", [FpClass("convert", "DP", 2)]),
        ("vcvtpd2ps xmm0, qword ptr [rsi]{1to4}", [FpClass("convert", "DP", 4)]),
        ("vcvtps2pd zmm0, ymm1", [FpClass("convert", "SP", 8)]),
        ("vcvtdq2pd ymm0, xmm1", [FpClass("convert", "DP", 4)]),
        ("cvtsi2sd xmm0, rax", [FpClass("convert", "DP", 1)]),
        ("vsqrtss xmm0, xmm1, xmm2", [FpClass("sqrt", "SP", 1)]),
        ("vrcp14pd zmm0, zmm1", [FpClass("other", "DP", 8)]),
        ("fsqrt", [FpClass("sqrt", "X87", 1)]),
        ("faddp", [FpClass("add", "X87", 1)]),
        ("vdpps ymm0, ymm1, ymm2, 1", [FpClass("add", "SP", 8), FpClass("mul", "SP", 8)]),
        ("vxorpd ymm0, ymm1, ymm2", []),
        ("vblendvpd ymm0, ymm1, ymm2, ymm3", []),
        ("vmovupd ymm0, [rsi]", []),
        ("vpaddq zmm0, zmm1, zmm2", []),
        ("fld qword ptr [rsi]", []),
    ],
)
def test_floating_point_classes(text, expected):
    assert sorted((kind for kind, _ in mix_of(text).fp), key=repr) == sorted(expected, key=repr)


def test_sums_per_source_iteration():
    text = """
    .L3: vmovupd ymm0, [rsi+rax]
         vfmadd231pd ymm0, ymm1, [rdx+rax]
         vmovupd [rdi+rax], ymm0
         add rax, 32
         cmp rax, rcx
         jne .L3
    """
    mix = mix_of(text, 4)
    assert (mix.loads, mix.stores, mix.bytes, mix.flops, mix.other) == (0.5, 0.25, 24, 2, 0.75)
    assert (mix.load_store_ratio, mix.load_share, mix.intensity) == (2, pytest.approx(2 / 3), 2 / 24)
    assert (mix.per, mix.source) == ("source iteration", "loop .L3 of test.s")
    assert mix.notes == ()
    assert mix_of(text).per == "pass of the loop"
    assert mix_of(text).flops == 8


def test_ratio_without_stores_and_without_accesses():
    assert mix_of("vmovupd ymm0, [rsi]").load_store_ratio == math.inf
    nothing = mix_of("vaddpd ymm0, ymm1, ymm2")
    assert (nothing.load_store_ratio, nothing.load_share, nothing.intensity) == (None, None, None)
    assert mix_of("mov rax, [rsi]").intensity == 0


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("rep movsq", "repeated-instruction", "warning"),
        ("fxsave [rsi]", "unknown-access-size", "warning"),
        ("tdpbf16ps tmm0, tmm1, tmm2", "unclassified-instruction", "warning"),
        ("vaddpd zmm0{k1}, zmm1, zmm2", "full-masks", "assumption"),
        ("vmaskmovpd ymm0, ymm1, [rsi]", "full-masks", "assumption"),
    ],
)
def test_what_is_not_known_is_said(text, code, kind):
    (note,) = mix_of(text).notes
    assert (note.code, note.kind, str(note.where)) == (code, kind, "test.s:1")


BODIES = st.lists(
    st.sampled_from(
        ["vmovupd ymm0, [rsi]", "vmovupd [rdi], ymm0", "vfmadd231pd ymm0, ymm1, [rdx]", "mulss xmm0, xmm1", "inc rax"]
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=25)
@given(BODIES, BODIES)
def test_the_mix_of_a_body_is_the_sum_of_its_parts(first, second):
    one, two, both = (mix_of("\n".join(body)) for body in (first, second, first + second))
    assert both.flops == one.flops + two.flops
    assert both.bytes == one.bytes + two.bytes
    assert both.other == one.other + two.other
    # two passes of equal weight are half of the sum each
    mean = combined_mix([(one, 1), (two, 1)])
    assert 2 * mean.flops == pytest.approx(both.flops)
    assert 2 * mean.bytes == pytest.approx(both.bytes)
    assert dict(mean.memory).keys() == dict(both.memory).keys()
    assert dict(mean.fp).keys() == dict(both.fp).keys()


MEMORY = st.builds(MemoryClass, st.sampled_from([4, 8, 16, 32, 64]), st.just("vector"), st.booleans())
FP = st.builds(FpClass, st.sampled_from(["add", "mul", "fma"]), st.just("DP"), st.sampled_from([1, 2, 4, 8]))
NUMBERS = st.floats(0.01, 100)
MIXES = st.builds(
    lambda memory, fp, other: InstructionMix(tuple(memory.items()), tuple(fp.items()), other, "drawn"),
    st.dictionaries(MEMORY, NUMBERS),
    st.dictionaries(FP, NUMBERS),
    NUMBERS,
)


@given(st.lists(st.tuples(MIXES, st.floats(0.1, 1000)), min_size=1, max_size=4), st.floats(0.1, 10))
def test_combined_mixes_are_weighted_means(mixes, factor):
    total = sum(weight for _, weight in mixes)
    combined = combined_mix(mixes)
    for name in ("loads", "stores", "bytes", "flops", "other"):
        mean = sum(getattr(mix, name) * weight for mix, weight in mixes) / total
        assert getattr(combined, name) == pytest.approx(mean), name
    scaled = combined_mix([(mix, weight * factor) for mix, weight in mixes])
    assert dict(scaled.memory) == pytest.approx(dict(combined.memory))
    backwards = combined_mix(mixes[::-1])
    assert dict(backwards.fp) == pytest.approx(dict(combined.fp))
    counts = [count for _, count in combined.memory]
    assert counts == sorted(counts, reverse=True)


@given(MIXES, st.floats(0.1, 1000))
def test_one_mix_combined_is_itself(mix, weight):
    combined = combined_mix([(mix, weight)])
    assert dict(combined.memory) == pytest.approx(dict(mix.memory))
    assert dict(combined.fp) == pytest.approx(dict(mix.fp))


def test_mixes_of_different_units():
    iteration = InstructionMix((), (), 1, "a")
    passed = replace(iteration, per="pass of the loop", source="b")
    shares = replace(iteration, shares_only=True)
    assert combined_mix([(iteration, 1), (passed, 1)]).per == "unit of work"
    assert combined_mix([(iteration, 1), (passed, 1)]).source == "a, b"
    assert combined_mix([(iteration, 1), (shares, 1)]).shares_only


@pytest.mark.parametrize("weights", [[], [0.0], [1.0, -1.0], [math.nan], [math.inf]])
def test_weights_that_weigh_nothing(weights):
    mix = InstructionMix((), (), 1, "a")
    with pytest.raises(InputError, match="trip counts"):
        combined_mix([(mix, weight) for weight in weights])
