"""How long a listing is before it is assembled: its lines, those that directives repeat counted again.

Counts that are no plain number, and macros, show their size only when they are assembled; for them there are the
assembler's own limits.
"""

from __future__ import annotations

import re

from kernmodel.errors import AssemblyError, Location
from kernmodel.limits import LISTING_LINES

_REPEATING = re.compile(r"(?:^|[;:])[ \t]*\.(?:(rept|rep|endr)\b|(irpc?)\b)[ \t]*([^;\n#]*)", re.IGNORECASE)
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+")


def check_length(text: str, file: str) -> None:
    """Refuse a listing that is too long.

    Raises:
        AssemblyError: more lines than the limit; names the line at which it is met.
    """
    if not LISTING_LINES.exceeded(text.count("\n")) and ".rep" not in text.lower() and ".irp" not in text.lower():
        return
    length = 0
    repeated = [1]
    for number, line in enumerate(text.splitlines(), 1):
        length += repeated[-1]
        for directive in _REPEATING.finditer(line):
            if directive[1] is not None and directive[1].lower() == "endr":
                repeated = repeated[:-1] or [1]
            else:
                repeated.append(repeated[-1] * _times(directive))
                length += repeated[-1]
        if LISTING_LINES.exceeded(length):
            todo = LISTING_LINES.todo("give the listing of the loop alone")
            raise AssemblyError(f"is longer than {LISTING_LINES.text} lines", where=Location(file, number), todo=todo)


def _times(directive: re.Match[str]) -> int:
    """How often a directive repeats what follows; once where that is no plain number."""
    argument = directive[3].strip()
    if directive[1] is not None:
        return int(argument, 0 if not re.fullmatch("0[0-9]+", argument) else 8) if _plain(argument) else 1
    _, _, values = argument.partition(",")
    return max(1, len(values.strip()) if (directive[2] or "").lower() == "irpc" else values.count(",") + 1)


def _plain(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text)) and not re.fullmatch("0[0-9]*[89][0-9]*", text)
