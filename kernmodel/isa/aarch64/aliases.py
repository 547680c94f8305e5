"""Aliases: the preferred disassembly of an instruction that a listing spells otherwise (DDI 0487, C6.2 and C7.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernmodel.isa.aarch64.grammar import Part, Statement

_COMPARISONS = {"subs": "cmp", "adds": "cmn", "ands": "tst"}
_FROM_ZERO = {"sub": "neg", "subs": "negs", "orn": "mvn", "sbc": "ngc", "sbcs": "ngcs"}
_PRODUCTS = {"madd": "mul", "msub": "mneg", "smaddl": "smull", "umaddl": "umull", "smsubl": "smnegl"}
_PRODUCTS |= {"umsubl": "umnegl"}
_SHIFTS = {"lslv": "lsl", "lsrv": "lsr", "asrv": "asr", "rorv": "ror"}
_SIZES = {"b": 1, "h": 2, "s": 4, "d": 8, "q": 16, "w": 4, "x": 8}
_UNSCALED = {"ldr": "ldur", "str": "stur", "ldrb": "ldurb", "strb": "sturb", "ldrh": "ldurh", "strh": "sturh"}
_UNSCALED |= {"ldrsb": "ldursb", "ldrsh": "ldursh", "ldrsw": "ldursw", "prfm": "prfum"}
_SCALED = {short: long for long, short in _UNSCALED.items()}
_SWAPPED = {"fcmle": "fcmge", "fcmlt": "fcmgt", "cmple": "cmpge", "cmplt": "cmpgt", "cmplo": "cmphi", "cmpls": "cmphs"}
"""Comparisons of vectors that exist with their operands exchanged only."""
_LONG = ("sshll", "ushll", "sshll2", "ushll2")
_MOST_SCALED = 4095
_TWO, _THREE, _FOUR = 2, 3, 4


def preferred(one: Statement) -> Statement:
    """The instruction as disassemblers write it."""
    mnemonic, parts = one
    count = len(parts)
    if mnemonic in _COMPARISONS and count > _TWO and parts[0].register == "":
        return one._replace(mnemonic=_COMPARISONS[mnemonic], parts=parts[1:])
    if mnemonic in _FROM_ZERO and count > _TWO and parts[1].register == "":
        return one._replace(mnemonic=_FROM_ZERO[mnemonic], parts=(parts[0], *parts[2:]))
    if mnemonic in _PRODUCTS and count == _FOUR and parts[3].register == "":
        return one._replace(mnemonic=_PRODUCTS[mnemonic], parts=parts[:3])
    if mnemonic in _SELECTIONS and count == _FOUR and parts[1].register == parts[2].register is not None:
        return _selection(one)
    if mnemonic in _SHIFTS:
        return one._replace(mnemonic=_SHIFTS[mnemonic])
    if mnemonic in _UNSCALED or mnemonic in _SCALED:
        return _access(one)
    if mnemonic == "orr":
        return _move(one)
    if mnemonic in ("movz", "movn") and count >= _TWO:
        return one._replace(mnemonic="mov", parts=(parts[0], _constant(mnemonic, parts)))
    if mnemonic in ("uxtw", "sxtw") and count == _TWO and mnemonic[0] == "u":
        return one._replace(mnemonic="mov", parts=(parts[0]._replace(kind="w"), parts[1]._replace(kind="w")))
    if (
        mnemonic == "add"
        and count == _THREE
        and parts[2].number == 0
        and "sp" in (parts[0].register, parts[1].register)
    ):
        return one._replace(mnemonic="mov", parts=parts[:2])
    if mnemonic in _LONG and count == _THREE and parts[2].number == 0:
        return one._replace(mnemonic=mnemonic.replace("shll", "xtl"), parts=parts[:2])
    if mnemonic in _SWAPPED and count == _FOUR and parts[3].register:
        return one._replace(mnemonic=_SWAPPED[mnemonic], parts=(*parts[:2], parts[3], parts[2]))
    if mnemonic == "tbl" and count == _THREE and parts[1].kind[:2] == "z.":
        # GNU as takes a table of one register without braces
        return one._replace(parts=(parts[0], parts[1]._replace(kind=f"{{{parts[1].kind}}}"), parts[2]))
    if mnemonic[:2] in ("ld", "st") and parts and parts[0].kind[:2] == "z.":
        return one._replace(parts=(parts[0]._replace(kind=f"{{{parts[0].kind}}}"), *parts[1:]))
    return _vector(one)


_SELECTIONS = {"csinc": ("cset", "cinc"), "csinv": ("csetm", "cinv"), "csneg": ("", "cneg")}
"""Selections between a register and something made of the same: their names with the zero register, and with others."""
_OPPOSITE = {"eq": "ne", "hs": "lo", "mi": "pl", "vs": "vc", "hi": "ls", "ge": "lt", "gt": "le"}
_OPPOSITE |= {value: key for key, value in _OPPOSITE.items()}


def _selection(one: Statement) -> Statement:
    """csinc and its like of one register twice, which is written with the opposite condition."""
    condition = one.parts[3]
    name = _SELECTIONS[one.mnemonic][bool(one.parts[1].register)]
    if not name or condition.symbol not in _OPPOSITE:
        return one
    kept = one.parts[:1] if name[:4] == "cset" else one.parts[:2]
    return one._replace(mnemonic=name, parts=(*kept, condition._replace(symbol=_OPPOSITE[condition.symbol])))


def _constant(mnemonic: str, parts: tuple[Part, ...]) -> Part:
    """The constant that movz or movn makes."""
    number = (parts[1].number or 0) << ((parts[2].number or 0) if len(parts) == _THREE else 0)
    number = ~number if mnemonic == "movn" else number
    return parts[1]._replace(kind="#imm" if number else "#0", number=number)


def _access(one: Statement) -> Statement:
    """A load or store with a displacement: scaled if it can be, which is what the assembler chooses."""
    address = one.parts[-1].address if one.parts else None
    if address is None or address.indexed_by or address.written_back or address.symbol or address.lengths:
        return one
    scaled = _SCALED.get(one.mnemonic, one.mnemonic)
    letter = {"b": "b", "h": "h"}.get(scaled[-1], "s" if scaled.endswith("sw") else one.parts[0].kind)
    size = _SIZES.get("x" if scaled == "prfm" else letter)
    if size is None:
        return one
    fits = address.displacement % size == 0 and 0 <= address.displacement <= _MOST_SCALED * size
    if one.mnemonic in _UNSCALED and not fits:
        return one._replace(mnemonic=_UNSCALED[one.mnemonic])
    return one


def _move(one: Statement) -> Statement:
    parts = one.parts
    if len(parts) == _THREE and parts[1].register == "" and parts[2].number is None:
        return one._replace(mnemonic="mov", parts=(parts[0], parts[2]))
    if len(parts) == _THREE and parts[1].register == "":
        return one._replace(mnemonic="mov", parts=(parts[0], parts[2]))
    alike = len(parts) == _THREE and parts[1].register and parts[1].register == parts[2].register
    return one._replace(mnemonic="mov", parts=parts[:2]) if alike and parts[1].kind[0] in "vz" else one


def _vector(one: Statement) -> Statement:
    """Moves of lanes: `ins`, `umov` of a whole word, `dup` of a scalar, `not`, `mov` written otherwise."""
    mnemonic, parts = one
    kinds = tuple(part.kind for part in parts)
    if mnemonic == "ins":
        return one._replace(mnemonic="mov")
    if mnemonic == "umov" and kinds in (("w", "v.s[i]"), ("x", "v.d[i]")):
        return one._replace(mnemonic="mov")
    if mnemonic == "dup" and len(kinds) == _TWO and (kinds[0] in ("b", "h", "s", "d") or kinds[0][0] == "z"):
        return one._replace(mnemonic="mov")
    if mnemonic == "not" and kinds and kinds[0][0] == "v":
        return one._replace(mnemonic="mvn")
    if mnemonic in ("cpy", "fcpy") and kinds:
        return one._replace(mnemonic="mov" if mnemonic == "cpy" else "fmov")
    if mnemonic == "fdup":
        return one._replace(mnemonic="fmov")
    if (
        mnemonic == "mov"
        and len(parts) == _TWO
        and kinds[0][:2] == "v."
        and kinds[1][:2] == "v."
        and "[i]" not in kinds[0]
    ):
        return one._replace(parts=tuple(_bytes(part) for part in parts))
    return one


def _bytes(part: Part) -> Part:
    """A whole vector register as bytes, which is how moves of it are written."""
    if "[i]" in part.kind:
        return part
    half = part.kind in ("v.8b", "v.4h", "v.2s", "v.1d")
    return part._replace(kind="v.8b" if half else "v.16b")
