"""Forms of AArch64 instructions: which rows stand for others, and which set the ceilings of rooflines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from kernmodel.isa.model import FpOperation, Instruction, Precision

_SPELLINGS = {
    "mvn": "not",
    "not": "mvn",
    "cinc": "csinc",
    "cinv": "csinv",
    "cneg": "csneg",
    "csetm": "cset",
    "ngc": "sbc",
}
_UNSCALED = re.compile(r"(ld|st)u(r\w*)")
_ADDRESSES = {"[x,#imm]": "[x]", "[x]": "[x,#imm]", "[x],x": "[x],#imm", "[x,x]": "[x,x,lsl#n]"}
_ADDRESSES |= {"[x,#imm,mul vl]": "[x]", "[x,w,uxtw]": "[x,w,sxtw]", "[x,w,uxtw#n]": "[x,w,sxtw#n]"}
_ADDRESSES |= {"[x,w,sxtw]": "[x,w,uxtw]", "[x,w,sxtw#n]": "[x,w,uxtw#n]", "[x,x,sxtx#n]": "[x,x,lsl#n]"}
_ZERO = re.compile(r"#0(?=,|$)")


def row_candidates(form: str) -> Iterator[tuple[str, str]]:
    """Forms whose rows stand for `form`, in the order of growing doubt, with the reason (empty for mere spellings)."""
    mnemonic, _, kinds = form.partition(" ")
    if _ZERO.search(kinds):
        yield f"{mnemonic} {_ZERO.sub('#imm', kinds)}", ""
    if mnemonic in _SPELLINGS:
        yield f"{_SPELLINGS[mnemonic]} {kinds}", ""
    scaled = _UNSCALED.sub(r"\1\2", mnemonic)
    for address, other in _ADDRESSES.items():
        if kinds.endswith("," + address):
            yield f"{mnemonic} {kinds.removesuffix(address)}{other}", "other address"
            if scaled != mnemonic:
                yield f"{scaled} {kinds.removesuffix(address)}{other}", "other address"
    if scaled != mnemonic:
        yield f"{scaled} {kinds}", "scaled displacement"
    if mnemonic[:2] == "b.":
        yield "b.eq label", "other condition"


def stand_ins(instruction: Instruction) -> Iterator[str]:
    """Additions and moves with operands like those of the instruction, the best first."""
    vector = next((o.kind for o in instruction.operands if o.kind[:2] in ("v.", "z.")), None)
    if any(reference.written for reference in instruction.memory):
        yield "str q,[x]" if vector or instruction.vector_bytes else "str x,[x]"
    elif any(reference.read for reference in instruction.memory):
        yield "ldr q,[x]" if vector or instruction.vector_bytes else "ldr x,[x]"
    elif vector is not None:
        yield f"add {vector},{vector},{vector}"
    yield "add x,x,x"


_ARITHMETIC: dict[FpOperation, tuple[str, int]] = {
    "add": ("fadd", 3),
    "mul": ("fmul", 3),
    "div": ("fdiv", 3),
    "sqrt": ("fsqrt", 2),
}
_LETTERS: dict[Precision, tuple[str, int]] = {"DP": ("d", 8), "SP": ("s", 4), "HP": ("h", 2)}
NEON_BYTES = 16


def fp_forms(operation: FpOperation, precision: Precision, lanes: int, sve_bytes: int) -> tuple[str, ...]:
    """The form between registers that does one operation on so many lanes: scalar, NEON, or SVE."""
    if precision not in _LETTERS or (operation != "fma" and operation not in _ARITHMETIC):
        return ()
    letter, size = _LETTERS[precision]
    if lanes == 1:
        return (
            (f"fmadd {letter},{letter},{letter},{letter}",) if operation == "fma" else (_repeated(operation, letter),)
        )
    if lanes * size in (NEON_BYTES, NEON_BYTES // 2):
        kind = f"v.{lanes}{letter}"
        neon = f"fmla {kind},{kind},{kind}" if operation == "fma" else _repeated(operation, kind)
        return (neon, *_scalable(operation, letter)) if sve_bytes == NEON_BYTES else (neon,)
    return _scalable(operation, letter) if sve_bytes and lanes * size == sve_bytes else ()


def _repeated(operation: FpOperation, kind: str) -> str:
    name, operands = _ARITHMETIC[operation]
    return f"{name} {','.join([kind] * operands)}"


def _scalable(operation: FpOperation, letter: str) -> tuple[str, ...]:
    kind = f"z.{letter}"
    if operation == "fma":
        return (f"fmla {kind},p/m,{kind},{kind}",)
    if operation in ("div", "sqrt"):
        return (f"fdiv {kind},p/m,{kind},{kind}",) if operation == "div" else (f"fsqrt {kind},p/m,{kind}",)
    return (_repeated(operation, kind), f"{_ARITHMETIC[operation][0]} {kind},p/m,{kind},{kind}")


def access_forms(kind: Literal["load", "store"], sve_bytes: int) -> dict[int, tuple[str, ...]]:
    """Forms that stand for all loads or stores of a size; behind those of one register, those of a pair of vectors."""
    name = "ldr" if kind == "load" else "str"
    pair = "ldp" if kind == "load" else "stp"
    found: dict[int, tuple[str, ...]] = {}
    if sve_bytes > NEON_BYTES:
        found[sve_bytes] = ("ld1d {z.d},p/z,[x,x,lsl#n]",) if kind == "load" else ("st1d {z.d},p,[x,x,lsl#n]",)
    found |= {
        16: (f"{name} q,[x]",),
        8: (f"{name} d,[x]", f"{name} x,[x]"),
        4: (f"{name} s,[x]", f"{name} w,[x]"),
        2: (f"{name}h w,[x]",),
        1: (f"{name}b w,[x]",),
    }
    found.setdefault(2 * NEON_BYTES, (f"{pair} q,q,[x]",))
    return found
