"""A file of predictions as a predictor: what any other tool said of the same pieces.

    hex,notion,cycles
    c5fd1006c5f558c8,unrolled,4.0

One line a piece: its bytes without the call at its end, "loop" or "unrolled" (empty: both), cycles of one execution.
Further columns are passed over. A piece without a line has no prediction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path

from kernmodel.binary.predictors.protocol import Piece, PieceCycles
from kernmodel.code.block_files import csv_reader, csv_rows, read_lines
from kernmodel.code.blocks import parse_hex
from kernmodel.errors import InputError, Location

_COLUMNS = ("hex", "notion", "cycles")
_NOTIONS = ("", "loop", "unrolled")


class PredictionTable:
    """The predictions of a file, under the name of the file."""

    version = ""

    def __init__(self, path: str) -> None:
        """Read a file.

        Raises:
            InputError: it cannot be read, lacks a column, or has a line that is none.
        """
        self.name = Path(path).stem
        self._cycles = _read(path)

    def predict(self, pieces: Sequence[Piece]) -> list[PieceCycles]:
        """As `Predictor.predict`."""
        return [self._answer(piece) for piece in pieces]

    def _answer(self, piece: Piece) -> PieceCycles:
        for notion in (piece.notion, ""):
            if (piece.code, notion) in self._cycles:
                return PieceCycles(self._cycles[piece.code, notion])
        return PieceCycles(None, error=f"the file has no prediction for {piece.code.hex()} ({piece.notion})")


def _read(path: str) -> Mapping[tuple[bytes, str], float]:
    """Cycles by bytes and notion.

    Raises:
        InputError: as `PredictionTable`.
    """
    reader = csv_reader(read_lines(path), path)
    missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        todo = f"begin it with the line {','.join(_COLUMNS)}"
        raise InputError(f"has no column {', '.join(map(repr, missing))}", where=path, todo=todo)
    found: dict[tuple[bytes, str], float] = {}
    for number, row, error in csv_rows(reader):
        place = Location(path, number)
        if error is not None:
            raise InputError(f"is {error}", where=place, todo="mend the line")
        code, notion = parse_hex(row["hex"] or "", str(place)), (row["notion"] or "").strip()
        if notion not in _NOTIONS:
            raise InputError(f"{notion!r} is no notion", where=place, todo="write loop, unrolled or nothing")
        found[code, notion] = _number(row["cycles"], place)
    return found


def _number(text: str | None, place: Location) -> float:
    try:
        cycles = float(text or "")
    except ValueError:
        cycles = -1.0
    if not isfinite(cycles) or cycles < 0:
        raise InputError(f"{text!r} is no number of cycles", where=place, todo="write a number that is not negative")
    return cycles
