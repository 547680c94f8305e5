"""Import of InstLatx64 readings: latency and reciprocal throughput per form, for what no port model gives.

InstLatx64 (http://instlatx64.atw.hu) measures with a scaled clock, so readings carry a few percent of error; they are
senseless for instructions that are eliminated. Sums of several instructions are left out but for gathers and scatters
with the move that sets their mask, and a move into a mask with the one back.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path

from kernmodel.errors import InstructionTableError
from kernmodel.user_files import lines_of, opened
from kernmodel.value_types import dataclass

_FORM = re.compile(r"(?:\{(?:EVEX|VEX|REX)\} +)?([A-Z0-9]+) ([^+()]*)")
_WITH_MASK = re.compile(r"(V\w*GATHER\w+|V\w*SCATTER\w+) (.*?) ?\+ KMOV[BWDQ]")
_VECTOR_INDEX = re.compile(r"\[([xyz])m(?:32|64)\]")
_ROUND_TRIP = re.compile(r"(KMOV[BWDQ]) (k, r\d+) \+ \1 r\d+, k")
ROUND_TRIP = " and back"
"""Ends the form of a move into a mask whose reading is of it and the move back."""
_IMMEDIATE = re.compile(r"imm(\d+)")
_MEMORY = re.compile(r"\[(m\d+)\]")
_NUMBERED = re.compile(r"\b([xyz]mm|r64|r32|k)\d\b")


_X87 = re.compile(r"(F[A-Z]+)(80)?(?: (st(?:\(i\))?(?:, ?st(?:\(i\))?)?))?(?: \((?:x/)?(1\.0)l\))?")
"""x87: "FADD st(i), st", "FABS"; divisions and square roots to 80 bits, "FDIV80 st(i), st" and, with operands of few
bits, "FDIV80 (x/1.0l)"."""
_X87_FUNCTION = re.compile(r"(FSIN|FCOS)80 \(([^)]*)\)(?: ?\+ ?FADD)?")
"""x87 functions of an operand: "FSIN80 (0.0)", "FCOS80 (1.0) + FADD", a chain that an addition keeps at its operand."""
_X87_PAIRS = frozenset({"fxch", "fcom", "fdiv"})
"""x87 instructions of two operands that InstLatx64 writes with fewer."""
EASY = " [easy]"
"""Ends the form of a division whose operands have few bits, or of a function of 0."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Latency and reciprocal throughput in cycles, None where the file gives none."""

    latency: float | None
    throughput: float | None


def read_instlatx64(path: Path) -> Mapping[str, Reading]:
    """Readings by form key ("vdivpd ymm,ymm,ymm"); the first of several of a form holds, of a function the longest.

    Raises:
        InstructionTableError: the file cannot be read or lacks the columns.
    """
    readings: dict[str, Reading] = {}
    try:
        with opened(path, "readings of InstLatx64 in CSV", error=InstructionTableError) as file:
            lines = (
                line.decode()
                for line in lines_of(file, str(path), error=InstructionTableError)
                if not line.startswith(b"#")
            )
            for row in csv.DictReader(lines):
                form = _form(row["form"])
                if form is None:
                    continue
                reading = Reading(_number(row["latency_cycles"]), _number(row["reciprocal_throughput_cycles"]))
                known = readings.setdefault(form, reading)
                if _X87_FUNCTION.fullmatch(row["form"]) and not form.endswith(EASY):
                    readings[form] = max(known, reading, key=lambda one: one.latency or 0.0)
    except (OSError, KeyError, ValueError) as error:
        raise InstructionTableError(f"cannot be read as InstLatx64 readings ({error})", where=str(path)) from None
    return readings


def _number(text: str) -> float | None:
    return float(text) if text else None


def _form(text: str) -> str | None:
    """The form key of "VADDPD zmm, zmm, [m512]", None for sums, special operands and equal registers."""
    if x87 := _X87.fullmatch(text):
        return _x87_form(*x87.groups())
    if function := _X87_FUNCTION.fullmatch(text):
        return function[1].lower() + EASY * (function[2] == "0.0")
    if trip := _ROUND_TRIP.fullmatch(text):
        return f"{trip[1].lower()} {trip[2].replace(', ', ',')}{ROUND_TRIP}"
    if _VECTOR_INDEX.search(text):
        text = re.sub(r" \{k\}", "{k}", _WITH_MASK.sub(r"\1 \2", _VECTOR_INDEX.sub(r"vsib_\1mm", text)))
    match = _FORM.fullmatch(text)
    if match is None or _NUMBERED.search(match[2]):
        return None
    operands = _IMMEDIATE.sub(r"i\1", _MEMORY.sub(r"\1", match[2]))
    return f"{match[1].lower()} {operands.replace(', ', ',').strip()}"


def _x87_form(mnemonic: str, extended: str | None, operands: str | None, easy: str | None) -> str:
    name = mnemonic.lower()
    pair = name in _X87_PAIRS or (operands is not None and "," in operands)
    return name + " st,st" * pair + EASY * (extended is not None and easy is not None)
