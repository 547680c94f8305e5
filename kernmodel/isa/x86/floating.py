"""Which floating-point work an instruction does: its operations, precision and lanes, by its mnemonic.

iced-x86 knows of each instruction whether it treats its operands as floating-point numbers, but not what it computes:
that stands here, by the stem of the mnemonic (Intel SDM volume 2; AMD APM volume 4 for FMA4 and XOP; Intel Architecture
Instruction Set Extensions for FP16 and BF16). An instruction that iced says is floating-point and that is neither here
nor a move is `UNCLASSIFIED`, so that nothing is left out in silence.
"""

from __future__ import annotations

from functools import cache

import iced_x86 as iced
from iced_x86 import MemorySize, MemorySizeExt, Mnemonic, OpCodeInfo

from kernmodel.isa.model import FpKind, FpOperation, Instruction, Precision, VectorDomain
from kernmodel.isa.x86.decode import VECTORS
from kernmodel.patterns import pattern

Work = tuple[tuple[FpOperation, int], ...]

_ADD: Work = (("add", 1),)
_MUL: Work = (("mul", 1),)
_FMA: Work = (("fma", 1),)
_COMPARE: Work = (("compare", 1),)
_CONVERT: Work = (("convert", 1),)
_OTHER: Work = (("other", 1),)
_FUSED = ("fmadd", "fmsub", "fnmadd", "fnmsub", "fmaddsub", "fmsubadd")
_WORK: dict[str, Work] = {
    **dict.fromkeys(("add", "sub", "addsub", "hadd", "hsub"), _ADD),
    "mul": _MUL,
    **{f"{name}{order}": _FMA for name in _FUSED for order in ("", "132", "213", "231")},
    "div": (("div", 1),),
    "sqrt": (("sqrt", 1),),
    **dict.fromkeys(("min", "max", "cmp", "comi", "ucomi", "range", "fpclass"), _COMPARE),
    **dict.fromkeys(("round", "rndscale"), _CONVERT),
    **dict.fromkeys(("rcp", "rcp14", "rcp28", "rsqrt", "rsqrt14", "rsqrt28", "exp2"), _OTHER),
    **dict.fromkeys(("getexp", "getmant", "scalef", "fixupimm", "reduce", "frcz"), _OTHER),
    "dp": (("mul", 1), ("add", 1)),
    "dpbf16": (("fma", 2),),
    **dict.fromkeys(("4fmadd", "4fnmadd"), (("fma", 4),)),
    **dict.fromkeys(("fmaddc", "fcmaddc"), (("fma", 2),)),
    **dict.fromkeys(("fmulc", "fcmulc"), (("mul", 1), ("fma", 1))),
}
"""By the mnemonic without the leading v and the ending for type and lanes. A complex product of a real and an imaginary
lane is two products and one sum per lane, its sum with a third number one more."""
_APPROXIMATE: dict[str, FpOperation] = {"rcp": "div", "rsqrt": "sqrt"}
"""Approximations, by how they begin, and the exact operation that they stand for."""
_COMPLEX = ("fmaddc", "fcmaddc", "fmulc", "fcmulc")

_X87_WORK: dict[str, Work] = {
    **dict.fromkeys(("fadd", "faddp", "fiadd", "fsub", "fsubp", "fsubr", "fsubrp", "fisub", "fisubr"), _ADD),
    **dict.fromkeys(("fmul", "fmulp", "fimul"), _MUL),
    **dict.fromkeys(("fdiv", "fdivp", "fdivr", "fdivrp", "fidiv", "fidivr"), (("div", 1),)),
    "fsqrt": (("sqrt", 1),),
    **dict.fromkeys(("fcom", "fcomp", "fcompp", "fcomi", "fcomip", "ficom", "ficomp", "ftst", "fxam"), _COMPARE),
    **dict.fromkeys(("fucom", "fucomp", "fucompp", "fucomi", "fucomip"), _COMPARE),
    **dict.fromkeys(("fild", "fist", "fistp", "fisttp", "fbld", "fbstp", "frndint"), _CONVERT),
    **dict.fromkeys(("f2xm1", "fyl2x", "fyl2xp1", "fcos", "fsin", "fsincos", "fptan", "fpatan"), _OTHER),
    **dict.fromkeys(("fprem", "fprem1", "fscale", "fxtract"), _OTHER),
}
"""The x87 instructions that compute; the others move, load constants, change a sign or control the unit."""

_ENDINGS: dict[str, tuple[Precision, int, bool]] = {
    "pd": ("DP", 8, True),
    "sd": ("DP", 8, False),
    "ps": ("SP", 4, True),
    "ss": ("SP", 4, False),
    "ph": ("HP", 2, True),
    "sh": ("HP", 2, False),
}
"""Precision, bytes of an element, and whether there are several."""

_ADDENDS = {"132": 1, "213": 2, "231": 0}
"""By the order that a fused multiplication and addition names, the operand that it adds."""
_FUSED_ORDER = pattern(rf"v(?:{'|'.join(_FUSED)})(\d{{3}})[ps][dsh]")
_BLENDS = ("vblendvpd", "vblendvps", "vpblendvb")
_OF_TWO_VECTORS = pattern(r"vperm([it])2(?:[bwdq]|p[sd])")
_INDICES = {"i": 0, "t": 1}
"""Of a permutation of two vectors, the operand that says which elements are taken."""
_THREE = 3

_CONVERSION = pattern(
    r"(?:cvtt?(?:ne2?|nee|neo)?|bcstne)"
    r"(?P<source>p[dshi]|s[dshi]|u?(?:dq|qq|w|si)|bf16)2(?P<target>p[dsh]x?|pi|s[dsh]|u?(?:dq|qq|w|si)|bf16)"
)
_INTEGER_BYTES = {"dq": 4, "qq": 8, "w": 2, "pi": 4, "bf16": 2}

_MOVES = (
    *("mov", "and", "or", "xor", "blend", "broadcast", "compress", "expand", "extract", "insert", "gather"),
    *("scatter", "maskmov", "perm", "shuf", "test", "unpck"),
)
"""How the mnemonics begin that move, select or mask floating-point numbers without computing with them."""

_TILES = ("tdpbf", "tdpfp", "tcmm")
"""Products of AMX tiles: what they compute depends on the configuration of the tiles."""


@cache
def is_unclassified(mnemonic: str) -> bool:
    """Whether an instruction computes with floating-point numbers, but it is not known what."""
    if fp_kind(mnemonic) is not None:
        return False
    moves = mnemonic.removeprefix("v").startswith(_MOVES) or mnemonic.startswith("f")
    return mnemonic.startswith(_TILES) or (not moves and _is_floating(mnemonic))


@cache
def fp_kind(mnemonic: str) -> FpKind | None:
    """What an instruction computes with floating-point numbers; None for any other and where that is not known."""
    x87 = _X87_WORK.get(mnemonic)
    if x87 is not None:
        return FpKind(x87, "X87", 0)
    name = mnemonic.removeprefix("v")
    conversion = _CONVERSION.fullmatch(name)
    if conversion is not None:
        return _conversion(name, conversion["source"], conversion["target"])
    work, ending = _WORK.get(name[:-2]), _ENDINGS.get(name[-2:])
    return _arithmetic(name[:-2], work, *ending) if work is not None and ending is not None else None


def _arithmetic(stem: str, work: Work, precision: Precision, element: int, packed: bool) -> FpKind:
    lane_bytes, fixed = (element, 1) if packed else (0, 2 if stem in _COMPLEX else 1)
    replaces = next((operation for start, operation in _APPROXIMATE.items() if stem.startswith(start)), None)
    return FpKind(work, precision, lane_bytes, fixed, replaces, stem in ("min", "max"))


def _conversion(name: str, source: str, target: str) -> FpKind:
    """A conversion; where one register is half filled, the lanes are those of the wider element."""
    types = [kind.removesuffix("x").removeprefix("u") for kind in (source, target)]
    precision = next(_ENDINGS[kind][0] for kind in types if kind in _ENDINGS)
    if "pi" in types:
        return FpKind(_CONVERT, precision, 0, 2)
    if any(kind == "si" or (kind in _ENDINGS and not _ENDINGS[kind][2]) for kind in types) and "bcst" not in name:
        return FpKind(_CONVERT, precision, 0)
    widest = max(_ENDINGS[kind][1] if kind in _ENDINGS else _INTEGER_BYTES[kind] for kind in types)
    return FpKind(_CONVERT if "ne2" not in name else (("convert", 2),), precision, widest)


@cache
def element_bytes(mnemonic: str) -> int:
    """Bytes of one element of the memory operand of gathers and scatters, by iced-x86."""
    return max((MemorySizeExt.size(size) for size in _memory_sizes().get(mnemonic, ())), default=0)


def _is_floating(mnemonic: str) -> bool:
    """Whether iced-x86 says that the instruction treats its operand as floating-point numbers."""
    types = (MemorySizeExt.element_type(size) for size in _memory_sizes().get(mnemonic, ()))
    return any(kind in _FLOATS for kind in types)


_FLOATS = frozenset(
    {MemorySize.FLOAT16, MemorySize.FLOAT32, MemorySize.FLOAT64, MemorySize.FLOAT128, MemorySize.BFLOAT16}
)


@cache
def _memory_sizes() -> dict[str, frozenset[iced.MemorySize_]]:
    """What the memory operands of all instructions hold, by mnemonic."""
    names = {value: name.lower() for name, value in vars(Mnemonic).items() if isinstance(value, int)}
    sizes: dict[str, set[iced.MemorySize_]] = {}
    for code in (value for value in vars(iced.Code).values() if isinstance(value, int)):
        facts = OpCodeInfo(code)  # type: ignore[arg-type]
        sizes.setdefault(names[facts.mnemonic], set()).add(facts.memory_size)
    return {name: frozenset(found) for name, found in sizes.items()}


_FLOATING = pattern(
    r"(?:(?:add|sub|addsub|mul|div|sqrt|min|max|cmp|and|andn|or|xor|round|rcp|rsqrt|dp|blendv"
    r"|f(?:n?m(?:add|sub)|maddsub|msubadd)\d+)[ps][sd]|blendpd|cvt\w+|movs[sd])"
)
_INTEGER = pattern(
    r"(?:(?:unpck[lh]|shuf|permil)p[sd]|mov(?:d|s[hl])dup|insertps|mov(?:hl|lh)ps|blendps|broadcastss|movq|aes\w+"
    r"|mpsadbw|p(?!erm|hadd|hsub)\w+)"
)
_ACROSS = pattern(r"(?:p?broadcast\w+|pmov[sz]x\w+|cvt\w+)")


def vector_domain(instruction: Instruction) -> VectorDomain | None:
    """The units that execute an instruction which makes one vector of others; None for all else, and for what crosses
    128-bit halves.

    Names do not tell: shuffles of floats execute in the units for integers. Which do where is as chains of each with
    `vaddpd` and `vpaddd` show it on Zen 3 (docs/front-end.md, "Domains of vectors").
    """
    name, operands = instruction.mnemonic.removeprefix("v"), instruction.operands
    if not operands or operands[0].kind not in VECTORS or not any(one.read and one.kind in VECTORS for one in operands):
        return None
    if operands[0].kind != "xmm" and _ACROSS.fullmatch(name):
        return None
    if _FLOATING.fullmatch(name):
        return "floating-point"
    return "integer" if _INTEGER.fullmatch(name) else None


def third_vector(instruction: Instruction) -> int | None:
    """The number of the operand that is the third vector: what is added to a product, or tells what is blended or
    which elements of two vectors are taken; else the destination, where it is read beside two more."""
    if instruction.mnemonic in _BLENDS:
        return 3
    permutation = _OF_TWO_VECTORS.fullmatch(instruction.mnemonic)
    if permutation:
        return _INDICES[permutation[1]]
    fused = _FUSED_ORDER.fullmatch(instruction.mnemonic)
    if fused:
        return _ADDENDS[fused[1]]
    vectors = sum(one.read and (one.kind in VECTORS or one.memory is not None) for one in instruction.operands)
    destination = instruction.operands[0] if vectors == _THREE else None
    return 0 if destination and destination.read and destination.kind in VECTORS else None
