"""Listings of Microsoft's compilers (MASM dialect), line for line in the form that GNU as reads.

Only what carries code is kept: instructions, labels, procedures, padding and assignments of stack offsets. Names such
as `$LL4@f` and `__real@3ff0000000000000` hold signs that mean something to GNU as; they are spelled with letters that
it takes as they are, and spelled back in the result.
"""

from __future__ import annotations

import re

from kernmodel.isa.x86.syntax import spelled

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
