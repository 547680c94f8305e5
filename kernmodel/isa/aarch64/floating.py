"""Which floating-point work an AArch64 instruction does, by its mnemonic and kinds of operands (DDI 0487, C7)."""

from __future__ import annotations

import re
from functools import lru_cache

from kernmodel.isa.model import FpKind, FpOperation, Precision

_WORK: dict[str, tuple[tuple[FpOperation, int], ...]] = {
    **dict.fromkeys(("fadd", "fsub", "fsubr", "fabd", "faddp", "faddv", "fadda", "fcadd"), (("add", 1),)),
    **dict.fromkeys(("fmul", "fnmul", "fmulx"), (("mul", 1),)),
    **dict.fromkeys(("fmla", "fmls", "fnmla", "fnmls", "fmad", "fmsb", "fnmad", "fnmsb"), (("fma", 1),)),
    **dict.fromkeys(("fmadd", "fmsub", "fnmadd", "fnmsub", "fcmla", "fmmla"), (("fma", 1),)),
    **dict.fromkeys(("fdiv", "fdivr"), (("div", 1),)),
    "fsqrt": (("sqrt", 1),),
    **dict.fromkeys(("frecps", "frsqrts"), (("fma", 1),)),
}
_COMPARES = re.compile(r"fcc?mpe?|fac?g[et]|facl[et]|fcm(?:eq|ge|gt|le|lt|ne|uo)|f(?:max|min)(?:nm)?[pv]?")
_SELECTS = re.compile(r"f(?:max|min)(?:nm)?[pv]?")
_CONVERTS = re.compile(r"fcvt\w*|[su]cvtf|frint\w|bfcvt\w*")
_APPROXIMATE: dict[str, FpOperation] = {"frecpe": "div", "frsqrte": "sqrt", "frecpx": "div"}
_OTHER = frozenset({"fexpa", "fscale", "ftmad", "ftsmul", "ftssel", "flogb", "fmlalb", "fmlalt", "fmlslb", "fmlslt"})
_PRECISIONS: dict[str, Precision] = {"d": "DP", "s": "SP", "h": "HP"}
_BYTES = {"d": 8, "s": 4, "h": 2}
_LANES = re.compile(r"([vz])\.(\d*)([hsd])")


@lru_cache(maxsize=4096)
def fp_kind(form: str) -> FpKind | None:
    """What an instruction of this form computes with floating-point numbers; None for any other."""
    mnemonic, _, kinds = form.partition(" ")
    work, replaces = _work(mnemonic)
    if work is None:
        return None
    packed = [match for kind in kinds.split(",") if (match := _LANES.match(kind))]
    if packed:
        widest = max(packed, key=lambda match: _BYTES[match[3]])
        size = _BYTES[widest[3]]
        lanes = 0 if widest[1] == "z" else int(widest[2] or 1)
        return FpKind(work, _PRECISIONS[widest[3]], 0 if lanes else size, lanes or 1, replaces, _selects(mnemonic))
    scalar = next((kind for kind in kinds.split(",") if kind in _PRECISIONS), None)
    return FpKind(work, _PRECISIONS[scalar], 0, 1, replaces, _selects(mnemonic)) if scalar else None


def _selects(mnemonic: str) -> bool:
    return _SELECTS.fullmatch(mnemonic) is not None


def _work(mnemonic: str) -> tuple[tuple[tuple[FpOperation, int], ...] | None, FpOperation | None]:
    if mnemonic in _WORK:
        return _WORK[mnemonic], None
    if _COMPARES.fullmatch(mnemonic):
        return (("compare", 1),), None
    if _CONVERTS.fullmatch(mnemonic):
        return (("convert", 1),), None
    if mnemonic in _APPROXIMATE:
        return (("other", 1),), _APPROXIMATE[mnemonic]
    return ((("other", 1),), None) if mnemonic in _OTHER else (None, None)
