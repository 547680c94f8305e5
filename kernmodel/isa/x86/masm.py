"""Listings of Microsoft's compilers (MASM dialect), line for line in the form that GNU as reads.

Only what carries code is kept: instructions, labels, procedures, padding and assignments of stack offsets. Names such
as `$LL4@f` and `__real@3ff0000000000000` hold signs that mean something to GNU as; they are spelled with letters that
it takes as they are, and spelled back in the result.
"""

from __future__ import annotations

import re

# names stand at the start of the line, instructions do not: `call PROC` is none of these
_DIALECT = re.compile(r"^(?:[\w?@$]+\s+(?:PROC|SEGMENT|ENDP)|INCLUDELIB)\b", re.MULTILINE)
_PROCEDURE = re.compile(r"\s*([\w?@$]+)\s+PROC\b", re.IGNORECASE)
_BOUNDARY = re.compile(r"\s*[\w?@$]+\s+(PROC|ENDP)\b", re.IGNORECASE)
_BYTES = re.compile(r"\s*DB\s+(.*)", re.IGNORECASE)
_PADDING = re.compile(r"\s*npad\s+([0-9]+)", re.IGNORECASE)
_NO_CODE = re.compile(
    r"\s*(?:[\w?@$]+\s+(?:SEGMENT|ENDS|ENDP|D[BWDQ]|REAL[48]|[XY]MMWORD|COMDAT)\b"
    r"|(?:PUBLIC|EXTRN|EXTERN|INCLUDE|INCLUDELIB|TITLE|COMM|ALIGN|ASSUME|OPTION|END|ORG|D[BWDQ]|\.\w+)\b)",
    re.IGNORECASE,
)
_HEXADECIMAL = re.compile(r"\b([0-9][0-9a-f]*)h\b", re.IGNORECASE)
_SPELLINGS = {"@": "ⓐ", "?": "ⓠ", "$": "ⓓ"}
_SPELL = str.maketrans(_SPELLINGS)
_SPELL_BACK = str.maketrans({spelling: sign for sign, spelling in _SPELLINGS.items()})


def is_masm(text: str) -> bool:
    """Whether a listing is in MASM's dialect: procedures or segments without a dot."""
    return _DIALECT.search(text) is not None


def from_masm(text: str) -> list[str]:
    """The lines of a MASM listing for GNU as."""
    lines = []
    in_procedure = False
    for line in text.splitlines():
        code = _HEXADECIMAL.sub(r"0x\1", line.split(";", 1)[0])
        boundary = _BOUNDARY.match(code)
        if boundary is not None:
            in_procedure = boundary[1].upper() == "PROC"
        data = _BYTES.match(code) if in_procedure else None
        lines.append(f".byte {data[1]}" if data else _for_assembler(code))
    return lines


def _for_assembler(code: str) -> str:
    """A line of code for GNU as."""
    procedure = _PROCEDURE.match(code)
    if procedure is not None:
        return f"{spelled(procedure[1])}:"
    padding = _PADDING.match(code)
    if padding is not None:
        return f".nops {padding[1]}"
    return "" if _NO_CODE.match(code) else spelled(code)


def spelled(name: str) -> str:
    """`name` in letters that GNU as takes as part of a name."""
    return name.translate(_SPELL)


def spelled_back(name: str) -> str:
    """The name that `spelled` spelled."""
    return name.translate(_SPELL_BACK)
