"""What random loops of instructions of all kinds take on this host, beside the model of a core.

    python benchmarks/mixed_loops.py [--loops N] [--seed N] [--only NAME,NAME,...] [--core NAME] [--worst N]

A loop draws three to ten of the kinds below, or of those that are named, and 4 to 24 instructions of these with random
registers, loads and stores of a few lines in L1, `dec` and `jnz` behind them. Printed are how many of the loops the
model predicts within 5 %, the mean error, the same of the loops without moves between the register files, of each kind
the share of its loops that are further off than of the others, and the worst loops.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from vector_places import compare, error_of, share_of

from kernmodel.incore.core import Core, Settings
from kernmodel.measure.host import Harness

_VECTORS = {
    **{name: f"{name} ymm{{d}}, ymm{{s}}, ymm{{t}}" for name in ("vaddpd", "vmulpd", "vfmadd231pd", "vunpcklpd")},
    **{name: f"{name} ymm{{d}}, ymm{{s}}, ymm{{t}}" for name in ("vpaddd", "vpmulld", "vpshufb", "vpand", "vmaxpd")},
    **{name: f"{name} ymm{{d}}, ymm{{s}}, ymm{{t}}" for name in ("vpcmpeqd", "vpackssdw", "vcmpltpd")},
    "vaddsd": "vaddsd xmm{d}, xmm{s}, xmm{t}",
    "vmulss": "vmulss xmm{d}, xmm{s}, xmm{t}",
    "vperm2f128": "vperm2f128 ymm{d}, ymm{s}, ymm{t}, 1",
    "vpermpd": "vpermpd ymm{d}, ymm{s}, 0x1b",
    "vshufpd": "vshufpd ymm{d}, ymm{s}, ymm{t}, 5",
    "vextractf128": "vextractf128 xmm{d}, ymm{s}, 1",
    "vinsertf128": "vinsertf128 ymm{d}, ymm{s}, xmm{t}, 1",
    "vpsrlq": "vpsrlq ymm{d}, ymm{s}, 7",
    "vpmovzxbd": "vpmovzxbd ymm{d}, xmm{s}",
    "vcvtdq2pd": "vcvtdq2pd ymm{d}, xmm{s}",
    "vcvtpd2ps": "vcvtpd2ps xmm{d}, ymm{s}",
    "vblendvpd": "vblendvpd ymm{d}, ymm{s}, ymm{t}, ymm{d}",
    "vroundpd": "vroundpd ymm{d}, ymm{s}, 1",
    "vxorps zero": "vxorps xmm{d}, xmm{d}, xmm{d}",
    "vmovapd": "vmovapd ymm{d}, ymm{s}",
    "vmovupd load": "vmovupd ymm{d}, [rsi+{m}]",
    "vmovsd load": "vmovsd xmm{d}, [rsi+{m}]",
    "vaddpd load": "vaddpd ymm{d}, ymm{s}, [rsi+{m}]",
    "vbroadcastsd": "vbroadcastsd ymm{d}, [rsi+{m}]",
    "vmovupd store": "vmovupd [rsi+{n}], ymm{s}",
    "vmovsd store": "vmovsd [rsi+{n}], xmm{s}",
}
_BETWEEN = {
    "vcvttsd2si": "vcvttsd2si {g}, xmm{s}",
    "vcvtsi2sd": "vcvtsi2sd xmm{d}, xmm{s}, {h}",
    "vmovq out": "vmovq {g}, xmm{s}",
    "vmovq in": "vmovq xmm{d}, {h}",
    "vpmovmskb": "vpmovmskb {g32}, ymm{s}",
    "vmovmskpd": "vmovmskpd {g32}, ymm{s}",
    "vucomisd": "vucomisd xmm{s}, xmm{t}",
}
_GENERAL = {
    **{name: f"{name} {{g}}, {{h}}" for name in ("add", "imul", "cmovc", "popcnt", "tzcnt", "mov", "adc")},
    **{name: f"{name} {{g}}, {{h}}, {{i}}" for name in ("shlx", "andn", "pext")},
    **{name: f"{name} {{g}}" for name in ("neg", "bswap")},
    "lea": "lea {g}, [{h}+{i}*2]",
    "lea of three": "lea {g}, [{h}+{i}+8]",
    "shl": "shl {g}, 3",
    "setnz": "setnz {g8}",
    "cmp": "cmp {h}, {i}",
    "test": "test {h}, {h}",
    "movzx": "movzx {g32}, {h8}",
    "mov constant": "mov {g32}, 77",
    "xor zero": "xor {g32}, {g32}",
    "mov load": "mov {g}, [rsi+{m}]",
    "add load": "add {g}, [rsi+{m}]",
    "movzx load": "movzx {g32}, byte ptr [rsi+{m}]",
    "mov store": "mov [rsi+{n}], {h}",
    "bt": "bt {h}, 5",
    "rorx": "rorx {g}, {h}, 9",
}
_KINDS = {**_VECTORS, **_BETWEEN, **_GENERAL}
_REGISTERS = ("rax", "rbx", "rdx", "rdi", "r8", "r9", "r10", "r11", "r12", "r13")
_WRITTEN = 6
"""Of the general-purpose registers those that are written, too."""
_SHORT = {"rax": ("eax", "al"), "rbx": ("ebx", "bl"), "rdx": ("edx", "dl"), "rdi": ("edi", "dil")}


class _Loop(NamedTuple):
    """Kinds of a loop, cycles per pass here and by the model, and how much too long these are."""

    kinds: tuple[str, ...]
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        return error_of(self.measured, self.predicted)


def lines_of(draw: Random, kinds: Sequence[str]) -> list[str]:
    """Instructions of these kinds with random registers and places."""
    return [_line(draw, kind) for kind in kinds]


def _line(draw: Random, kind: str) -> str:
    given, other, third = draw.choice(_REGISTERS[:_WRITTEN]), draw.choice(_REGISTERS), draw.choice(_REGISTERS)
    word, byte = _SHORT.get(given, (f"{given}d", f"{given}b"))
    return _KINDS[kind].format(
        d=draw.randrange(3, 14),
        s=draw.randrange(16),
        t=draw.randrange(16),
        g=given,
        g32=word,
        g8=byte,
        h=other,
        h8=_SHORT.get(other, ("", f"{other}b"))[1],
        i=third,
        m=32 * draw.randrange(12),
        n=1024 + 64 * draw.randrange(4),
    )


def _share(loops: Sequence[_Loop]) -> str:
    return share_of([loop.error for loop in loops])


def report(loops: Sequence[_Loop], worst: int) -> None:
    """Print what the loops say together, by kind, and the worst of them."""
    print(_share(loops))
    print("without moves between the register files:", _share([x for x in loops if not _BETWEEN.keys() & set(x.kinds)]))
    shares = []
    for kind in sorted({kind for loop in loops for kind in loop.kinds}):
        far = [[abs(x.error) > 0.05 for x in loops if (kind in x.kinds) == has] for has in (True, False)]
        own, others = (sum(part) / max(1, len(part)) for part in far)
        shares.append((own - others, kind, own))
    for more, kind, own in sorted(shares, reverse=True)[:12]:
        print(f"  {kind:16} {100 * own:4.0f} % of its loops off, {100 * more:+4.0f} %")
    for loop in sorted(loops, key=lambda x: -abs(x.error))[:worst]:
        print(f"{loop.measured:6.2f} {loop.predicted:6.2f}  {', '.join(loop.kinds)}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="kinds, with commas between them")
    parser.add_argument("--core", default="ZEN4")
    parser.add_argument("--worst", type=int, default=0)
    options = parser.parse_args()
    draw, core, loops = Random(options.seed), Core.open(options.core, Settings()), list[_Loop]()
    names = [kind for kind in _KINDS if not options.only or kind in options.only.split(",")]
    with Harness() as harness:
        for _ in range(options.loops):
            few = draw.sample(names, min(len(names), draw.randint(3, 10)))
            kinds = draw.choices(few, k=draw.randint(4, 24))
            loops.append(_Loop(tuple(kinds), *compare(harness, lines_of(draw, kinds), core)))
    report(loops, options.worst)


if __name__ == "__main__":
    main()
