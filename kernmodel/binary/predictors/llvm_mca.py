"""llvm-mca as a predictor: the pieces are disassembled by llvm-mc and simulated as regions of one file.

llvm-mca knows no difference between a loop and copies one behind the other, and no front end but the width of dispatch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kernmodel.binary.predictors.disassembly import LLVM, TRIPLES, AssemblyPredictor
from kernmodel.binary.predictors.protocol import PieceCycles
from kernmodel.binary.predictors.tools import found_tool, llvm_names, said

_ITERATIONS = 100
_SECONDS = 60.0


class LlvmMca(AssemblyPredictor):
    """llvm-mca for one core."""

    name = title = "llvm-mca"
    at_once = 40

    def __init__(self, microarchitecture: str, isa: str, jobs: int | None = None) -> None:
        """Look for the tool; arguments as of `AssemblyPredictor`.

        Raises:
            ToolError: llvm-mca, or llvm-mc beside it, is not installed.
        """
        self._tool = found_tool(self.name, "KERNMODEL_LLVM_MCA", llvm_names("llvm-mca"), LLVM)
        super().__init__(self._tool, microarchitecture, isa, jobs)
        self._triple = TRIPLES.get(isa, isa)

    def _predicted(self, texts: Sequence[str]) -> list[PieceCycles]:
        """Answers for pieces of assembly at once; one by one where one of them is refused."""
        if not texts:
            return []
        named = [(f"b{number}", text) for number, text in enumerate(texts)]
        regions = "".join(f"# LLVM-MCA-BEGIN {name}\n{text}\n# LLVM-MCA-END {name}\n" for name, text in named)
        command = (self._tool, f"-mtriple={self._triple}", f"-mcpu={self._core}", f"-iterations={_ITERATIONS}", "-json")
        status, output, told = said(command, regions.encode(), _SECONDS)
        if not status:
            with suppress(ValueError, KeyError, TypeError, ZeroDivisionError):
                summaries = {region["Name"]: region["SummaryView"] for region in json.loads(output)["CodeRegions"]}
                return [_cycles(summaries[name]) for name, _ in named]
            told = "the answer of llvm-mca is not understood"
        if len(texts) == 1:
            return [PieceCycles(None, error=told or f"exit status {status}")]
        half = len(texts) // 2
        return self._predicted(texts[:half]) + self._predicted(texts[half:])


def _cycles(summary: Mapping[str, float]) -> PieceCycles:
    return PieceCycles(summary["TotalCycles"] / summary["Iterations"])
