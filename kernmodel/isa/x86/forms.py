"""Forms of x86-64 instructions: what rows of a table are told apart by, which stand for others, which set ceilings.

The candidates for a form without a row come in the order of growing doubt: another spelling of the same form; the same
operation with another width of an immediate, a byte register or a memory operand; an unmasked, unbroadcast or VEX form
for an EVEX one; what older processors take the encoding for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from kernmodel.isa.model import FpOperation, Instruction, MemoryReference, Precision
from kernmodel.isa.protocol import RegisterForm
from kernmodel.patterns import pattern

_MASK = pattern(r"\{kz?\}")
_SIZES = ("m64", "m32", "m128", "m256", "m512", "m16", "m8", "m", "m80")
_IMMEDIATES = ("i8", "i32", "i16", "i64")
_HIGH_BYTE_ENCODINGS = frozenset({"rsp", "rbp", "rsi", "rdi", "r12", "r13", "r14", "r15"})
"""Registers whose low byte has the number that names ah, ch, dh or bh without REX (Intel SDM vol. 2, table 2-2)."""
_SYNONYMS = {"sal": "shl", "movabs": "mov", "endbr64": "nop", "fnop": "nop", "retn": "ret", "wait": "fwait"}
_OLDER_MEANINGS = {"tzcnt": "bsf", "lzcnt": "bsr"}
"""What processors without BMI1 or LZCNT, which ignore the prefix, take them for (Intel SDM vol. 2)."""
_EVEX_NAMES = pattern(r"(v\w+?)(8|16|32|64|32x4|64x2|32x8|64x4)$")
_EVEX_TO_VEX = {"vpandd": "vpand", "vpandq": "vpand", "vpandnd": "vpandn", "vpandnq": "vpandn", "vpord": "vpor"}
_EVEX_TO_VEX |= {"vporq": "vpor", "vpxord": "vpxor", "vpxorq": "vpxor", "vextractf64x2": "vextractf128"}
_EVEX_TO_VEX |= {"vinsertf64x2": "vinsertf128", "vinserti64x2": "vinserti128", "vextracti64x2": "vextracti128"}
_REGISTERS = {"m8": ("r8",), "m16": ("r16", "r32"), "m32": ("r32", "xmm"), "m64": ("r64", "xmm", "mm"), "m": ("r64",)}
_REGISTERS |= {"m128": ("xmm",), "m256": ("ymm",), "m512": ("zmm",)}
HIGH_BYTE_ALIAS = " [high8 alias]"
"""Row variant of a movzx whose source is encoded like a high byte."""
_BITS = {"zmm": 512, "ymm": 256, "xmm": 128}
_BROADCASTS = frozenset({"m16b", "m32b", "m64b"})


def row_variant(instruction: Instruction) -> str:
    """The shape of the address of a lea, an immediate that is 0, a source of movzx that is encoded like a high byte."""
    if instruction.mnemonic == "lea" and instruction.memory:
        return f" [{_address_shape(instruction.memory[0])}]"
    operands = instruction.operands
    if instruction.mnemonic == "movzx" and operands[1].kind == "r8" and operands[1].register in _HIGH_BYTE_ENCODINGS:
        return HIGH_BYTE_ALIAS
    return " [0]" if any(operand.kind in _IMMEDIATES and operand.immediate == 0 for operand in operands) else ""


def _address_shape(reference: MemoryReference) -> str:
    """The parts of an address as they are encoded: rbp and r13 as base of an index always take a displacement."""
    if reference.base in ("rip", "eip") or (reference.base is None and reference.index is None):
        return "rip+d" if reference.base else "d"
    parts = ["b"] if reference.base else []
    if reference.index:
        parts.append("i*s" if reference.scale > 1 else "i")
    padded = reference.index is not None and reference.base in ("rbp", "r13")
    if reference.displacement or reference.symbol or not reference.base or padded:
        parts.append("d")
    return "+".join(parts)


def row_candidates(form: str) -> Iterator[tuple[str, str]]:
    """Forms whose rows stand for `form`, in the order of growing doubt, with the reason (empty for mere spellings)."""
    mnemonic, _, text = form.partition(" ")
    if mnemonic in ("lock", "rep", "repne"):
        prefix, mnemonic, text = mnemonic + " ", *text.partition(" ")[::2]
        yield from (
            (f"{prefix}{other}", why) for other, why in _relatives(mnemonic, tuple(text.split(",")) if text else ())
        )
    kinds = tuple(text.split(",")) if text else ()
    yield from _relatives(mnemonic, kinds)


def _relatives(mnemonic: str, kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if mnemonic in _SYNONYMS:
        mnemonic = _SYNONYMS[mnemonic]
        yield _join(mnemonic, kinds), ""
        yield mnemonic, ""
    if mnemonic == "nop":  # all its operand sizes cost the same, but on some cores more than no operand
        yield from ((_join(mnemonic, other), "") for other in _replaced(kinds, _SIZES, _SIZES))
    if mnemonic == "nop" or (mnemonic == "xchg" and not kinds):  # the two-byte nop is an xchg of ax with itself
        yield "nop", ""
    yield from ((_join(mnemonic, other), "immediate width") for other in _replaced(kinds, _IMMEDIATES, _IMMEDIATES))
    yield from ((_join(mnemonic, other), "low-byte form") for other in _replaced(kinds, ("r8h",), ("r8",)))
    yield from ((_join(mnemonic, other), "other memory width") for other in _replaced(kinds, _SIZES, _SIZES))
    yield from _evex_relatives(mnemonic, kinds)
    if mnemonic in _OLDER_MEANINGS:
        yield _join(_OLDER_MEANINGS[mnemonic], kinds), "what it is without its extension: the row"


def _evex_relatives(mnemonic: str, kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Unmasked, unbroadcast and VEX forms for an EVEX one."""
    merged = tuple(kind.replace("{k}", "{kz}") for kind in kinds)
    if merged != kinds:
        yield _join(mnemonic, merged), "zeroing mask"
    unmasked = tuple(_MASK.sub("", kind) for kind in kinds)
    names = dict.fromkeys((mnemonic, *_vex_names(mnemonic)))
    whole = ((other, "full-width memory") for other in _unbroadcast(unmasked))
    for bare, why in ((unmasked, "unmasked form"), *whole):
        for name in names:
            if (name, bare) != (mnemonic, kinds):
                yield _join(name, bare), why if name == mnemonic else "VEX form"


def _vex_names(mnemonic: str) -> Iterator[str]:
    if mnemonic in _EVEX_TO_VEX:
        yield _EVEX_TO_VEX[mnemonic]
    if match := _EVEX_NAMES.fullmatch(mnemonic):
        yield match[1]
        yield match[1] + "128"


def _unbroadcast(kinds: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The kinds with a broadcast element replaced by a vector in memory, as wide as the registers
    first: the operand of a conversion may be half or twice as wide.
    """
    if _BROADCASTS.isdisjoint(kinds):
        return
    widest = next((bits for kind, bits in _BITS.items() if kind in kinds), 512)
    for bits in sorted((512, 256, 128, 64), key=lambda bits: (bits != widest, -bits)):
        yield tuple(f"m{bits}" if kind in _BROADCASTS else kind for kind in kinds)


def _replaced(kinds: tuple[str, ...], old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The kinds with the first one that is in `old` replaced by each of `new`."""
    position = next((number for number, kind in enumerate(kinds) if kind in old), None)
    if position is None:
        return
    for kind in new:
        if kind != kinds[position]:
            yield (*kinds[:position], kind, *kinds[position + 1 :])


def _join(mnemonic: str, kinds: tuple[str, ...]) -> str:
    return f"{mnemonic} {','.join(kinds)}" if kinds else mnemonic


def register_forms(instruction: Instruction, position: int) -> Iterator[RegisterForm]:
    """Forms of the instruction with a register in place of the memory operand at `position`.

    A broadcast element stands for a vector.
    """
    kinds = [_MASK.sub("", operand.kind) for operand in instruction.operands]
    memory = instruction.operands[position].kind
    if memory in _BROADCASTS:
        widest = max(_BITS.get(kind, 0) for kind in kinds)
        registers = tuple(kind for kind in _BITS if _BITS[kind] <= widest)
    else:
        registers = _REGISTERS.get(memory, ())
    for register in registers:
        kinds[position] = register
        size = _BITS.get(register, register[1:] if register[0] == "r" else "64")
        move = "vmovaps" if register in ("ymm", "zmm") else "movaps" if register == "xmm" else "mov"
        form = _join(instruction.mnemonic, tuple(kinds))
        yield RegisterForm(form, f"{move} {register},m{size}", f"{move} m{size},{register}")


def stand_ins(instruction: Instruction) -> Iterator[str]:
    """Additions and moves with operands like those of the instruction, the best first."""
    vector = next((o.kind for o in instruction.operands if o.kind in (*_BITS, "mm", "k")), None)
    memory = next((o for o in instruction.operands if o.memory is not None and o.memory.size_bytes), None)
    bits = _BITS.get(vector or "", 64)
    if memory is not None and memory.written:
        yield "mov m64,r64" if vector is None else f"vmovups m{bits},{vector}"
    if vector in _BITS:
        last = f"m{bits}" if memory is not None else vector
        yield f"vpaddd {vector},{vector},{last}"
        yield f"paddd {vector},{last}"
    yield "add r64,m64" if memory is not None else "add r64,r64"


_ARITHMETIC: dict[FpOperation, str] = {"add": "add", "mul": "mul", "fma": "fmadd231", "div": "div", "sqrt": "sqrt"}
_ELEMENTS: dict[Precision, tuple[str, int]] = {"DP": ("d", 8), "SP": ("s", 4), "HP": ("h", 2)}
_VECTORS = {64: "zmm", 32: "ymm", 16: "xmm"}


def fp_forms(operation: FpOperation, precision: Precision, lanes: int) -> tuple[str, ...]:
    """The VEX or EVEX form between registers, then the SSE one."""
    if operation not in _ARITHMETIC or precision not in _ELEMENTS:
        return ()
    letter, element = _ELEMENTS[precision]
    scalar = lanes == 1
    register = "xmm" if scalar else _VECTORS.get(lanes * element)
    if register is None:
        return ()
    name = f"{_ARITHMETIC[operation]}{'s' if scalar else 'p'}{letter}"
    operands = 2 if operation == "sqrt" and not scalar else 3
    vex = f"v{name} {','.join([register] * operands)}"
    return (vex, f"{name} {register},{register}") if register == "xmm" else (vex,)


ACCESSES: dict[Literal["load", "store"], dict[int, tuple[str, ...]]] = {
    "load": {
        64: ("vmovups zmm,m512",),
        32: ("vmovups ymm,m256",),
        16: ("vmovups xmm,m128", "movups xmm,m128"),
        8: ("mov r64,m64",),
        4: ("mov r32,m32",),
        2: ("movzx r32,m16",),
        1: ("movzx r32,m8",),
    },
    "store": {
        64: ("vmovups m512,zmm",),
        32: ("vmovups m256,ymm",),
        16: ("vmovups m128,xmm", "movups m128,xmm"),
        8: ("mov m64,r64",),
        4: ("mov m32,r32",),
        2: ("mov m16,r16",),
        1: ("mov m8,r8",),
    },
}
"""Forms that stand for all loads and stores of a size; scalar floating-point moves use the same ports."""
