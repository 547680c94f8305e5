"""Machine code as assembly for other tools, by LLVM's llvm-mc: many pieces in one call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from kernmodel.binary.predictors.protocol import Piece, PieceCycles
from kernmodel.binary.predictors.tools import core_name, each_once, found_tool, llvm_names, said, version_of

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


class AssemblyPredictor(ABC):
    """A tool that predicts pieces of assembly, to which llvm-mc disassembles them.

    Attributes:
        name: of the tool; title: as messages call it.
        at_once: pieces that one process answers for.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    at_once: ClassVar[int]

    def __init__(self, tool: str, microarchitecture: str, isa: str, jobs: int | None) -> None:
        """Look for llvm-mc.

        Args:
            tool: path of the tool; microarchitecture: our name of the core; isa: of the code.
            jobs: processes at a time, None: one for each processor.

        Raises:
            ToolError: llvm-mc is not installed, or the tool does not say its version.
        """
        self.version = version_of(tool)
        self._disassembler = Disassembler(isa, self.name)
        self._microarchitecture = microarchitecture
        self._core = core_name(self.name, microarchitecture)
        self._jobs = jobs

    def predict(self, pieces: Sequence[Piece]) -> list[PieceCycles]:
        """As `Predictor.predict`."""
        if not self._core:
            return [PieceCycles(None, error=f"{self.title} has no model of {self._microarchitecture}") for _ in pieces]
        return each_once(pieces, self._answer, self.at_once, self._jobs)

    def _answer(self, pieces: Sequence[Piece]) -> list[PieceCycles]:
        texts = self._disassembler.texts(pieces)
        answers = iter(self._predicted([text for text in texts if text is not None]))
        unknown = PieceCycles(None, error="llvm-mc does not know all of its instructions")
        return [unknown if text is None else next(answers) for text in texts]

    @abstractmethod
    def _predicted(self, texts: Sequence[str]) -> Iterable[PieceCycles]:
        """The answer of the tool for each piece of assembly."""
