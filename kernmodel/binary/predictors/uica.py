"""uiCA as a predictor, where its script is installed: one call for a piece, several side by side."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from kernmodel.binary.predictors.protocol import Piece, PieceCycles
from kernmodel.binary.predictors.tools import core_name, each_once, found_tool, said
from kernmodel.incore.core import CODE_ALIGNMENT

_SECONDS = 30.0
_PACKAGE = "get uiCA (github.com/andreas-abel/uiCA), run its setup.sh and put uiCA.py on the path"


class Uica:
    """uiCA for one core.

    Args:
        microarchitecture: our name of it.
        jobs: processes at a time, None: one for each processor.
    """

    name = "uica"
    version = ""

    def __init__(self, microarchitecture: str, jobs: int | None = None) -> None:
        """Look for the tool.

        Raises:
            ToolError: it is not installed.
        """
        self._tool = found_tool(self.name, "KERNMODEL_UICA", ("uiCA.py", "uiCA", "uica"), _PACKAGE)
        self._core = core_name(self.name, microarchitecture)
        self._known = microarchitecture
        self._jobs = jobs

    def predict(self, pieces: Sequence[Piece]) -> list[PieceCycles]:
        """As `Predictor.predict`."""
        if not self._core:
            return [PieceCycles(None, error=f"uiCA has no model of {self._known}") for _ in pieces]
        return each_once(pieces, lambda part: [self._answer(part[0])], 1, self._jobs)

    def _answer(self, piece: Piece) -> PieceCycles:
        offset = piece.instructions[0].address % CODE_ALIGNMENT if piece.instructions else 0
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "piece"
            file.write_bytes(piece.code)
            command = (self._tool, str(file), "-raw", "-arch", self._core, "-alignmentOffset", str(offset), "-TPonly")
            status, output, told = said(command, b"", _SECONDS)
        try:
            return PieceCycles(float(output.decode().split()[-1]))
        except (ValueError, IndexError):
            return PieceCycles(None, error=told or f"uiCA ended with exit status {status}")
