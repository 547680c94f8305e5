"""Machine code as text for other tools, by LLVM's llvm-mc: many pieces in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernmodel.binary.predictors.protocol import Piece
from kernmodel.binary.predictors.tools import found_tool, llvm_names, said

TRIPLES: Mapping[str, str] = {"x86-64": "x86_64-linux-gnu", "aarch64": "aarch64-linux-gnu"}
_FEATURES: Mapping[str, tuple[str, ...]] = {"aarch64": ("-mattr=+all",)}
_BETWEEN: Mapping[str, tuple[bytes, str]] = {
    "x86-64": (bytes.fromhex("0f0b"), "ud2"),
    "aarch64": (bytes.fromhex("00000000"), "udf"),
}
"""An instruction that no piece has, which stands between two of them, and its mnemonic."""
_SECONDS = 60.0
LLVM = "install LLVM's tools (Debian: llvm-19)"


class Disassembler:
    """llvm-mc for one instruction set."""

    def __init__(self, isa: str, wanted_by: str) -> None:
        """Look for the tool.

        Raises:
            ToolError: it is not installed, which keeps `wanted_by` from working.
        """
        tool = found_tool(wanted_by, "KERNMODEL_LLVM_MC", llvm_names("llvm-mc"), LLVM)
        self._command = (tool, "--disassemble", f"-triple={TRIPLES.get(isa, isa)}", *_FEATURES.get(isa, ()))
        self._between, self._mnemonic = _BETWEEN.get(isa, (b"", ""))

    def texts(self, pieces: Sequence[Piece]) -> list[str | None]:
        """The assembly of each piece, in the syntax of GNU as; None where llvm-mc does not know all of it."""
        code = self._between.join(piece.code for piece in pieces)
        status, output, told = said(self._command, " ".join(f"0x{byte:02x}" for byte in code).encode(), _SECONDS)
        parts: list[list[str]] = [[]]
        for line in output.decode(errors="replace").splitlines():
            words = line.split()
            if self._mnemonic and words[:1] == [self._mnemonic]:
                parts.append([])
            elif words and not words[0].startswith("."):
                parts[-1].append(line.strip())
        if not status and not told and len(parts) == len(pieces):
            return ["\n".join(part) for part in parts]
        if len(pieces) == 1:
            return [None]
        return [text for piece in pieces for text in self.texts([piece])]
