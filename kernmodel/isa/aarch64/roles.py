"""What AArch64 instructions do to their operands, flags and memory: one table by mnemonic (DDI 0487, C6 to C8).

Most write their first operand and read the others; what stands here are the exceptions.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kernmodel.isa.model import Branch
from kernmodel.value_types import NamedTuple

ALL_FLAGS = "SZCO"
"""N, Z, C and V, by the letters that `Instruction.flags_read` has for them."""

_UPDATES = re.compile(
    # products added to it, of the same width and of narrower elements, of pairs, fours and rows
    r"(?:f|bf)?ml[as]|fnml[as]|f?n?m(?:ad|sb)|m(?:ad|la)pt|(?:[suf]|bf|sqd)ml[as]l(?:[tb]|bt)?2?|fmlall[bt][bt]"
    r"|sqrdml[as]h|f?cmla|sqrdcmlah|(?:[sufc]|bf|su|us)dot|(?:[suf]|bf|us)mmla"
    # differences, pairs, shifted elements and carries added to it
    r"|[su]aba(?:l[bt]?2?)?|[su]adalp|[su]r?sra|(?:ad|sb)cl[bt]|suqadd|usqadd|(?:[su]q)?(?:inc|dec)[bhwdp]"
    # bits, elements or a half put into it
    r"|movk|bfi|bfxil|bfc|bfm|sli|sri|bsl|bi[ft]|insr|eorbt|eortb|tbxq?|ldg"
    r"|(?:[su]q)?xtu?n[t2]|b?fcvtx?n[t2]|(?:[su]q)?r?shru?n[t2]|r?(?:add|sub)hn[t2]"
    r"|aes[ed]|sha1(?:[cmp]|su\d)|sha(?:256|512)\w+|sm3(?:partw|tt)\w+|sm4e|(?:pac|aut)[id]z?[ab]|xpac[id]"
    # bounds for it
    r"|(?:[suf]|bf)clamp"
)
"""These read their first operand too."""
_TESTS = re.compile(r"cmp|cmn|tst|f?ccmp|fccmpe|ccmn|fcmpe?|ptest|cterm(?:eq|ne)|setf(?:8|16)|rmif|wrffr|setffr|cfinv")
_SETS_FLAGS = re.compile(
    r"(?:add|sub|and|bic|adc|sbc|neg|ngc)s|cmp|cmn|tst|f?ccmp|fccmpe|ccmn|fcmpe?|ptest|ptrues|while\w+|cterm(?:eq|ne)|rdffrs"
    r"|pfirst|pnext|brk(?:[ab]|n|p[ab])s|(?:orr|eor|orn|nor|nand|mov|not)s|setf(?:8|16)|cmp(?:eq|ne|ge|gt|hi|hs|le|lt|lo|ls)"
    r"|n?match|rmif|cfinv|axflag|xaflag|subps|fjcvtzs|rcw\w+"
)
_READS_FLAGS = re.compile(
    r"b\.\w+|f?ccmpe?|ccmn|f?csel|csinc|csinv|csneg|csetm?|cinc|cinv|cneg|adcs?|sbcs?|ngcs?|rmif|cfinv|axflag|xaflag"
)
CALLS = ("bl", "blr", "blraa", "blrab", "blraaz", "blrabz")
"""These keep the address behind them in the link register."""
_BRANCHES: dict[str, Branch] = {
    **dict.fromkeys(("cbz", "cbnz", "tbz", "tbnz"), "conditional"),
    **dict.fromkeys((*CALLS, "svc"), "call"),
    **dict.fromkeys(("ret", "retaa", "retab", "eret"), "return"),
    **dict.fromkeys(("br", "braa", "brab", "braaz", "brabz"), "indirect"),
    "b": "jump",
}
_PREFETCH = re.compile(r"prf(?:m|um|[bhwd])|rprfm")
_STORE = re.compile(
    r"st(?:r|ur|p|np|l?lr|lur|xr|lxr|xp|lxp|tr|tp|tnp|1|2|3|4|nt1)[bhwdq]?|st(?:add|clr|eor|set|smax|smin|umax|umin)\w*"
    r"|stz?2?gm?|stgp|stilp|stl1|st64b(?:v0?)?"
)
_WITH_STATUS = re.compile(r"stl?x[rp][bh]?|st64bv0?")
"""Stores whose first operand is whether they stored."""
_ATOMIC = re.compile(
    r"(?:ld(?:add|clr|eor|set|smax|smin|umax|umin)|swp|cas|rcws?(?:clr|set|swp|cas))p?(?:a|l|al)?[bh]?"
)
_ATOMIC_PAIR = re.compile(r"(?:ldclr|ldset|swp|cas|rcws?(?:clr|set|swp|cas))p(?:a|l|al)?")
_PAIR_LOAD = re.compile(r"ld(?:n?p(?:sw)?|a?xp|iapp|tn?p)|mrrs")
_SYSTEM = frozenset({"msr", "dc", "ic", "at", "wfet", "wfit", "gcsstr", "gcssttr", "gcspushm", "gcsss1", "trcit"})
_NARROW = re.compile(r"(?:ld|st)\w*?rs?([bhw])|(?:ld|st|swp|cas)\w*?([bh])")
_ELEMENT = re.compile(r"(?:ld|st)(?:ff|nf|nt)?(\d)(r)?(o|q)?(s?)([bhwdq])")
ELEMENT_BYTES = {"b": 1, "h": 2, "s": 4, "w": 4, "d": 8, "x": 8, "q": 16}


class Role(NamedTuple):
    """What a mnemonic does.

    Attributes:
        writes: how many operands it writes, from number `first` on; reads_first: whether it reads them too.
        flags_read, flags_written: whether.
        loads, stores: whether its memory operand is read and written.
    """

    writes: int
    first: int
    reads_first: bool
    flags_read: bool
    flags_written: bool
    loads: bool
    stores: bool
    branch: Branch | None


@lru_cache(maxsize=4096)
def role(mnemonic: str) -> Role:
    """The role of a mnemonic."""
    branch = _BRANCHES.get(mnemonic) or ("conditional" if mnemonic[:2] == "b." else None)
    atomic = _ATOMIC.fullmatch(mnemonic) is not None
    stores = atomic or _STORE.fullmatch(mnemonic) is not None
    paired = _ATOMIC_PAIR.fullmatch(mnemonic) is not None
    compares = atomic and "cas" in mnemonic
    prefetch = _PREFETCH.fullmatch(mnemonic) is not None
    writes = 1
    if branch or prefetch or (stores and not atomic) or _TESTS.fullmatch(mnemonic) or mnemonic in _SYSTEM:
        writes = 1 if _WITH_STATUS.fullmatch(mnemonic) else 0
    elif paired or _PAIR_LOAD.fullmatch(mnemonic):
        writes = 2
    return Role(
        writes=writes,
        first=int(atomic and not compares and not paired),
        reads_first=_UPDATES.fullmatch(mnemonic) is not None or compares or paired,
        flags_read=_READS_FLAGS.fullmatch(mnemonic) is not None,
        flags_written=_SETS_FLAGS.fullmatch(mnemonic) is not None,
        loads=atomic or (mnemonic.startswith("ld") and not stores),
        stores=stores,
        branch=branch,
    )


@lru_cache(maxsize=4096)
def access_bytes(mnemonic: str, kinds: tuple[str, ...], registers: int, vector_bytes: int) -> int:
    """Bytes that a load or store moves.

    Args:
        mnemonic: of the load or store.
        kinds: of its operands; registers: how many it loads or stores.
        vector_bytes: of a vector of SVE.
    """
    first = kinds[0] if kinds else ""
    if _WITH_STATUS.fullmatch(mnemonic) and len(kinds) > 1:
        first = kinds[1]
    if first[:1] == "{" or _ELEMENT.fullmatch(mnemonic):
        return _structure_bytes(mnemonic, first.strip("{}"), registers, vector_bytes)
    if first in ("z", "p"):
        return vector_bytes if first == "z" else vector_bytes // 8
    if mnemonic in ("ldpsw",):
        return 2 * ELEMENT_BYTES["w"]
    narrow = _NARROW.fullmatch(mnemonic) if first in ("w", "x") else None
    size = ELEMENT_BYTES.get(first if narrow is None else narrow[1] or narrow[2], 0)
    return size * registers


def _structure_bytes(mnemonic: str, kind: str, registers: int, vector_bytes: int) -> int:
    element = _ELEMENT.fullmatch(mnemonic)
    lanes = re.fullmatch(r"([vz])\.(\d*)([bhsdq])(?:\*\d)?\}?(\[i\])?", kind)
    if lanes is None:
        return 0
    held = ELEMENT_BYTES[lanes[3]]
    if lanes[1] == "v":
        alone = lanes[4] or mnemonic.endswith("r")
        return registers * held * (1 if alone else int(lanes[2] or 1))
    moved = ELEMENT_BYTES[element[5]] if element else held
    if element and element[2]:
        return moved if not element[3] else 16
    return registers * vector_bytes // held * moved
