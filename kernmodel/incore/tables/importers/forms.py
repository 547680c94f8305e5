"""Names of instruction forms: from the strings of uops.info to the keys of the tables."""

from __future__ import annotations

import re
from functools import partial

from kernmodel.incore.tables.importers.facts import facts
from kernmodel.value_types import dataclass

_names = partial(facts, "forms.yml")
_STRING = re.compile(r"(\S+)(?: \((.*)\))?")

_CONDITIONAL = re.compile(r"(J|CMOV|SET)(NBE|NLE|NB|NZ|NL|Z)")
_LEA = re.compile(r"LEA_(\w+)")
_ENCODING = re.compile(r"_(?:(?:0F)?[0-9A-F]{2}|R0|R4|SSE4|EXCLUSIVE|NEAR|XMM(?:_0F1[01])?|CR|DR|Z|ER|SAE|EVEX|VEX)$")
_BROADCAST = re.compile(r"M(\d+)_1to\d+")
_VECTORS = ("xmm", "ymm", "zmm", "vsib", "m")


@dataclass(frozen=True, slots=True)
class FormName:
    """The key of a form and what its string says beside it.

    Attributes:
        form: the key ("lea r64,m [b+i+d]").
        mnemonic, kinds: its parts.
        accumulator: it is the short encoding for al, ax, eax or rax; encoding: an encoding among several of the same
            form.
        masked: its second operand is a mask, which the form shows at the first.
    """

    form: str
    mnemonic: str
    kinds: tuple[str, ...]
    accumulator: bool
    encoding: str
    masked: bool = False


def form_name(string: str) -> FormName | None:
    """The key for a string of uops.info ("ADD_01 (R64, R64)"), None for one that no compiler can name in a listing."""
    match = _STRING.fullmatch(string)
    if match is None:
        return None
    raw = match[2].split(", ") if match[2] else []
    if any(kind.startswith("Moffs") for kind in raw):
        return None
    mnemonic, variant, encoding = _mnemonic(match[1])
    kinds = tuple(_names("operands").get(kind, _BROADCAST.sub(r"m\1b", kind).lower()) for kind in raw)
    if _LEA.match(match[1]):
        kinds += ("m",)
    if "0" in kinds:
        kinds = tuple("i8" if kind == "0" else kind for kind in kinds)
        variant = "[0]"
    masked = _is_masked(mnemonic, kinds)
    if masked:
        kinds = (kinds[0] + ("{kz}" if encoding.endswith("_Z") else "{k}"), *kinds[2:])
    form = " ".join(part for part in (mnemonic, ",".join(kinds), variant) if part)
    return FormName(form, mnemonic, kinds, any(kind in _names("accumulators") for kind in raw), encoding, masked)


def _is_masked(mnemonic: str, kinds: tuple[str, ...]) -> bool:
    """Whether the second operand is a mask of the first ("VADDPD (ZMM, K, ZMM, ZMM)", not "KADDB (K, K, K)")."""
    return len(kinds) > 2 and kinds[1] == "k" and mnemonic[0] != "k" and any(k.startswith(_VECTORS) for k in kinds)


def _mnemonic(name: str) -> tuple[str, str, str]:
    """Intel mnemonic, variant in brackets, and encoding of a name ("ADD_01", "LEA_B_I_D8", "MOVSQ_REPE_REX64")."""
    lea = _LEA.fullmatch(name)
    if lea and lea[1] != "W":
        return "lea", "[" + "+".join(_names("addresses")[part] for part in lea[1].split("_")) + "]", ""
    name = name.removesuffix("_REX64")
    prefix = ""
    for ending, word in _names("prefixes").items():
        if name.endswith(ending):
            name, prefix = name.removesuffix(ending), word
    encoding = ""
    while match := _ENCODING.search(name):
        name, encoding = name[: match.start()], match[0] + encoding
    if condition := _CONDITIONAL.fullmatch(name):
        name = condition[1] + _names("conditions")[condition[2]]
    return prefix + name.lower(), "", encoding
