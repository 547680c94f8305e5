"""AArch64 listings: told from those of other instruction sets."""

from __future__ import annotations

import re
from functools import lru_cache

from kernmodel.isa.assembler import code_lines
from kernmodel.patterns import pattern

_REGISTER = pattern(
    r"(?<![\w%.$@])(?:[xw](?:[12]?\d|30|zr)|[vz]\d+\.\d*[bhsdq]|p\d+/[mz]|[qdsh](?:[12]?\d|3[01]))(?!\w)", re.IGNORECASE
)
_MNEMONIC = pattern(r"^\s*(?:ld[rpu]\w*|st[rpu]\w*|adrp|fml[as]|fmadd|cbn?z|tbn?z|b\.\w\w|bl|madd)\s", re.IGNORECASE)
_DIRECTIVE = pattern(r"^\s*\.(?:arch|cpu)\s+(?:armv|cortex|neoverse)|^\s*\.arch_extension\b", re.MULTILINE)

MNEMONICS = (
    *("add", "adds", "adr", "adrp", "and", "asr", "b", "bl", "cbnz", "cbz", "cmp"),
    *("csel", "cset", "dup", "eor", "fabs", "fadd", "fcmp", "fcvt", "fdiv", "fmadd", "fmax"),
    *("fmin", "fmla", "fmls", "fmov", "fmsub", "fmul", "fneg", "fsqrt", "fsub", "ld1", "ld1d"),
    *("ld1r", "ld1w", "ldp", "ldr", "ldrb", "ldrh", "ldrsw", "ldur", "lsl", "lsr", "madd"),
    *("mov", "movi", "mul", "nop", "orr", "ptrue", "ret", "scvtf", "sdiv", "smull", "st1"),
    *("st1d", "st1w", "stp", "str", "strb", "strh", "stur", "sub", "subs", "sxtw", "tbnz"),
    *("tbz", "tst", "ubfx", "udiv", "umull", "whilelo"),
)
"""Usual ones, to name the one that a misspelt word is nearest to."""


@lru_cache(maxsize=1)
def evidence(text: str) -> int:
    """How many lines of a listing use registers or mnemonics of AArch64; all of them if a directive says so."""
    lines = code_lines(text)
    if _DIRECTIVE.search(text):
        return len(lines) + 1
    return sum(bool(_REGISTER.search(line) or _MNEMONIC.match(line)) for line in lines)
