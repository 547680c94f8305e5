"""Every floating-point instruction that iced-x86 knows has a class, and its facts agree with iced's."""

from __future__ import annotations

from collections.abc import Iterator

import iced_x86 as iced
import pytest
from iced_x86 import Code, EncodingKind, MemorySize, MemorySizeExt, Mnemonic, OpCodeInfo, OpKind, Register

from kernmodel.code.mix import FpClass, fp_classes
from kernmodel.isa.model import Encoding, FpKind, Instruction
from kernmodel.isa.x86.decode import translate
from kernmodel.isa.x86.floating import fp_kind, is_unclassified

MNEMONICS = {value: name.lower() for name, value in vars(Mnemonic).items() if isinstance(value, int)}
FLOATS = {
    MemorySize.FLOAT16: ("HP", 2),
    MemorySize.FLOAT32: ("SP", 4),
    MemorySize.FLOAT64: ("DP", 8),
    MemorySize.FLOAT80: ("X87", 10),
    MemorySize.FLOAT128: ("", 16),
    MemorySize.BFLOAT16: ("SP", 2),
}
MOV = "apd aps ddup hpd hps lpd lps ntpd ntps ntsd ntss sd sh shdup sldup ss upd ups"
MOVES = {
    *(f"mov{kind}" for kind in MOV.split()),
    *(name + ending for name in ("and", "andn", "or", "xor", "test", "maskmov") for ending in ("pd", "ps")),
    *(name + ending for name in ("blend", "blendm", "blendv", "compress", "expand", "shuf") for ending in ("pd", "ps")),
    *(name + ending for name in ("unpckh", "unpckl", "permil", "permil2") for ending in ("pd", "ps")),
    *(name + ending for name in ("perm", "permi2", "permt2") for ending in ("pd", "ps")),
    *(name + "f128" for name in ("broadcast", "extract", "insert", "perm2")),
    *(f"{n}f{kind}" for n in ("broadcast", "extract", "insert") for kind in ("32x4", "32x8", "64x2", "64x4")),
    *("broadcastf32x2", "broadcastsd", "broadcastss", "extractps", "insertps", "shuff32x4", "shuff64x2"),
    *(n + kind for n in ("gather", "scatter") for kind in ("dpd", "dps", "qpd", "qps")),
    *(f"{n}pf{k}{kind}" for n in ("gather", "scatter") for k in "01" for kind in ("dpd", "dps", "qpd", "qps")),
    *("fld", "fst", "fstp"),
}
"""Instructions on floating-point numbers that move, select or mask them and compute nothing."""
OTHER_LANES = {
    *("4fmaddps", "4fnmaddps", "4fmaddss", "4fnmaddss"),  # four elements in memory serve all lanes
    *("cvtneebf162ps", "cvtneobf162ps", "cvtneeph2ps", "cvtneoph2ps"),  # every second element
    *("bcstnebf162ps", "bcstnesh2ps"),  # one element for all lanes
    *("dpbf16ps",),  # two products for each lane
    *("fmaddcsh", "fcmaddcsh", "fmulcsh", "fcmulcsh", "fmaddcph", "fcmaddcph", "fmulcph", "fcmulcph"),  # pairs
}
REGISTERS = {
    "XMM": Register.XMM1,
    "YMM": Register.YMM1,
    "ZMM": Register.ZMM1,
    "XMMP3": Register.XMM4,
    "ZMMP3": Register.ZMM4,
    "MM": Register.MM1,
    "K": Register.K2,
    "R32": Register.EAX,
    "R64": Register.RAX,
}
"""An example for each kind of register operand."""


def codes() -> Iterator[tuple[int, OpCodeInfo]]:
    """All instructions of 64-bit mode but those of Knights Corner and 3DNow!."""
    for code in (value for value in vars(Code).values() if isinstance(value, int)):
        facts = OpCodeInfo(code)
        old = facts.encoding in (EncodingKind.MVEX, EncodingKind.D3NOW)
        if facts.is_instruction and facts.mode64 and not old:
            yield code, facts


KINDS = {value: name for name, value in vars(iced.OpCodeOperandKind).items() if isinstance(value, int)}


def example(code: int, facts: OpCodeInfo, *, from_memory: bool) -> Instruction | None:
    """An instruction of this code with registers, or with memory where there may be both; None if it has neither."""
    made = iced.Instruction.create(code)
    for index in range(facts.op_count):
        name = KINDS[facts.op_kind(index)]
        if name.startswith("IMM"):
            made.set_op_kind(index, OpKind.IMMEDIATE8)
        elif name.startswith("MEM_VSIB"):
            return None
        elif name == "MEM" or (name.endswith("_MEM") and from_memory):
            made.set_op_kind(index, OpKind.MEMORY)
            made.memory_base = Register.RSI
        elif name.partition("_")[0] in REGISTERS:
            made.set_op_register(index, REGISTERS[name.partition("_")[0]])
        else:
            return None
    return translate(made, Encoding(0, False, 0, 0, 0, 0), "", 1, None)


def test_every_floating_point_instruction_computes_or_is_a_known_move():
    moves = set()
    for _, facts in codes():
        if MemorySizeExt.element_type(facts.memory_size) not in FLOATS:
            continue
        name = MNEMONICS[facts.mnemonic]
        kind = fp_kind(name)
        assert not is_unclassified(name), name
        if kind is None:
            moves.add(name.removeprefix("v"))
    assert moves == MOVES


@pytest.mark.parametrize("from_memory", [False, True])
def test_precision_and_lanes_agree_with_what_the_memory_operand_would_hold(from_memory):
    checked = 0
    for code, facts in codes():
        element = MemorySizeExt.element_type(facts.memory_size)
        kind = fp_kind(MNEMONICS[facts.mnemonic])
        if element not in FLOATS or not isinstance(kind, FpKind) or kind.precision == "X87":
            continue
        made = example(code, facts, from_memory=from_memory)
        name = MNEMONICS[facts.mnemonic].removeprefix("v")
        if made is None or name in OTHER_LANES:
            continue
        stored = name.startswith("cvtps2ph") and not name.endswith("x")  # its memory operand is the result
        classes = fp_classes(made)
        assert classes, made.form
        for found, _ in classes:
            assert found.lanes == MemorySizeExt.element_count(facts.memory_size), made.form
            assert stored or found.precision == FLOATS[element][0], made.form
        checked += 1
    assert checked > 900


def test_no_integer_instruction_is_floating_point():
    for _, facts in codes():
        element = MemorySizeExt.element_type(facts.memory_size)
        name = MNEMONICS[facts.mnemonic]
        if element in FLOATS or name.startswith(("f", "vcvt", "cvt", "movsd", "cmpsd", "tdp", "tcmm")):
            continue
        if not any(word in name for word in ("bf16", "cph")):
            assert fp_kind(name) is None, name


X87_SILENT = """
    fabs fchs fclex fcmovb fcmovbe fcmove fcmovnb fcmovnbe fcmovne fcmovnu fcmovu fdecstp fdisi femms feni ffree
    ffreep fincstp finit fld fld1 fldcw fldenv fldl2e fldl2t fldlg2 fldln2 fldpi fldz fnclex fndisi fneni fninit fnop
    fnsave fnsetpm fnstcw fnstdw fnstenv fnstsg fnstsw frichop frinear frint2 frstor frstpm fsave fsetpm fst fstcw
    fstdw fstenv fstp fstpnce fstsg fstsw ftstp fxch fxrstor fxrstor64 fxsave fxsave64
"""


def test_every_x87_instruction_computes_or_is_known_not_to():
    x87 = {name for name in MNEMONICS.values() if name.startswith("f")}
    assert {name for name in x87 if fp_kind(name) is None} == set(X87_SILENT.split())
    assert all(isinstance(fp_kind(name), FpKind) for name in x87 - set(X87_SILENT.split()))


@pytest.mark.parametrize("order", ["132", "213", "231"])
@pytest.mark.parametrize("sign", ["fmadd", "fmsub", "fnmadd", "fnmsub", "fmaddsub", "fmsubadd"])
@pytest.mark.parametrize("ending", ["pd", "ps", "sd", "ss", "ph", "sh"])
def test_all_fused_operations_are_one_family(order, sign, ending):
    name = f"v{sign}{order}{ending}"
    if name in MNEMONICS.values():
        kind = fp_kind(name)
        assert isinstance(kind, FpKind)
        assert kind.work == (("fma", 1),)


@pytest.mark.parametrize(
    ("name", "work"),
    [
        *((f"{v}{n}pd", (("add", 1),)) for n in ("add", "sub", "addsub", "hadd", "hsub") for v in ("", "v")),
        *((f"{v}{n}ss", (("compare", 1),)) for n in ("min", "max", "cmp", "comi", "ucomi") for v in ("", "v")),
        *((f"v{n}14ps", (("other", 1),)) for n in ("rcp", "rsqrt")),
        *((n, (("other", 1),)) for n in ("rcpss", "vrsqrtps", "vgetexppd", "vscalefsd", "vreducepd", "fsin")),
        *((n, (("sqrt", 1),)) for n in ("sqrtsd", "vsqrtpd", "vsqrtps", "fsqrt")),
        *((n, (("div", 1),)) for n in ("divsd", "vdivps", "fdivrp")),
        *((n, (("convert", 1),)) for n in ("roundsd", "vrndscalepd", "cvtsi2sd", "vcvttps2uqq", "vcvtusi2ss", "fild")),
        ("vdpps", (("mul", 1), ("add", 1))),
        ("vdpbf16ps", (("fma", 2),)),
        ("v4fmaddps", (("fma", 4),)),
        ("vfcmaddcph", (("fma", 2),)),
        ("vfmulcsh", (("mul", 1), ("fma", 1))),
        ("vcvtne2ps2bf16", (("convert", 2),)),
    ],
)
def test_operations(name, work):
    kind = fp_kind(name)
    assert isinstance(kind, FpKind)
    assert kind.work == work


@pytest.mark.parametrize(("name", "flops"), [("vfmulcph", 6), ("vfmaddcph", 8), ("vdpbf16ps", 4), ("dppd", 2)])
def test_flops_of_instructions_with_several_operations(name, flops):
    """Per complex number or per lane: a complex product is 6 FLOP, with a sum 8."""
    kind = fp_kind(name)
    lanes = 2 if "c" in name else 1
    assert sum(times * FpClass(work, kind.precision, lanes).flops for work, times in kind.work) == flops


@pytest.mark.parametrize("name", ["vpaddd", "vpmulld", "vpmaddwd", "pmulhw", "vpdpwssd", "vpcmpgtd", "movsd", "xor"])
def test_integers_and_moves_are_no_floating_point_work(name):
    assert fp_kind(name) is None


@pytest.mark.parametrize("name", ["pfadd", "tdpbf16ps"])
def test_work_that_is_not_known_is_said_to_be_so(name):
    assert is_unclassified(name)
