"""llvm-mca as a predictor: the pieces are disassembled by llvm-mc and simulated as regions of one file.

llvm-mca knows no difference between a loop and copies one behind the other, and no front end but the width of dispatch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress

from kernmodel.binary.predictors.disassembly import LLVM, TRIPLES, Disassembler
from kernmodel.binary.predictors.protocol import Piece, PieceCycles
from kernmodel.binary.predictors.tools import each_once, found_tool, llvm_names, said, version_of

_CPUS: Mapping[str, str] = {
    "SNB": "sandybridge",
    "IVB": "ivybridge",
    "HSW": "haswell",
    "BDW": "broadwell",
    "SKL": "skylake",
    "KBL": "skylake",
    "CFL": "skylake",
    "SKX": "skylake-avx512",
    "CLX": "cascadelake",
    "ICL": "icelake-client",
    "ICX": "icelake-server",
    "TGL": "tigerlake",
    "RKL": "rocketlake",
    "GLC": "sapphirerapids",
    "RWC": "graniterapids",
    "ZEN": "znver1",
    "ZEN2": "znver2",
    "ZEN3": "znver3",
    "ZEN4": "znver4",
    "A72": "cortex-a72",
    "N1": "neoverse-n1",
    "N2": "neoverse-n2",
    "V1": "neoverse-v1",
    "V2": "neoverse-v2",
    "A64FX": "a64fx",
    "TX2": "thunderx2t99",
    "TSV110": "tsv110",
    "M1": "apple-m1",
}
"""LLVM's names of cores (`llc -mcpu=help`), by ours."""

_ITERATIONS = 100
_AT_ONCE = 40
_SECONDS = 60.0


class LlvmMca:
    """llvm-mca for one core.

    Args:
        microarchitecture: our name of it; isa: of its code.
        jobs: processes at a time, None: one for each processor.
    """

    name = "llvm-mca"

    def __init__(self, microarchitecture: str, isa: str, jobs: int | None = None) -> None:
        """Look for the tool.

        Raises:
            ToolError: llvm-mca, or llvm-mc beside it, is not installed.
        """
        self._tool = found_tool(self.name, "KERNMODEL_LLVM_MCA", llvm_names("llvm-mca"), LLVM)
        self.version = version_of(self._tool)
        self._disassembler = Disassembler(isa, self.name)
        self._core = microarchitecture
        self._cpu = _CPUS.get(microarchitecture, "")
        self._triple = TRIPLES.get(isa, isa)
        self._jobs = jobs

    def predict(self, pieces: Sequence[Piece]) -> list[PieceCycles]:
        """As `Predictor.predict`."""
        if not self._cpu:
            return [PieceCycles(None, error=f"llvm-mca has no model of {self._core}") for _ in pieces]
        return each_once(pieces, self._answer, _AT_ONCE, self._jobs)

    def _answer(self, pieces: Sequence[Piece]) -> list[PieceCycles]:
        """Many pieces at once."""
        found: dict[int, PieceCycles] = {}
        known = []
        for number, text in enumerate(self._disassembler.texts(pieces)):
            if text is None:
                found[number] = PieceCycles(None, error="llvm-mc does not know all of its instructions")
            else:
                known.append((number, text))
        found.update(self._simulated(known))
        return [found[number] for number in range(len(pieces))]

    def _simulated(self, pieces: Sequence[tuple[int, str]]) -> dict[int, PieceCycles]:
        """Answers by number for pieces of assembly; one by one where one of them is refused."""
        if not pieces:
            return {}
        regions = "".join(f"# LLVM-MCA-BEGIN b{number}\n{text}\n# LLVM-MCA-END b{number}\n" for number, text in pieces)
        command = (self._tool, f"-mtriple={self._triple}", f"-mcpu={self._cpu}", f"-iterations={_ITERATIONS}", "-json")
        status, output, told = said(command, regions.encode(), _SECONDS)
        if not status:
            with suppress(ValueError, KeyError, TypeError, ZeroDivisionError):
                summaries = {region["Name"]: region["SummaryView"] for region in json.loads(output)["CodeRegions"]}
                return {number: _cycles(summaries[f"b{number}"]) for number, _ in pieces}
            told = "the answer of llvm-mca is not understood"
        if len(pieces) == 1:
            return {pieces[0][0]: PieceCycles(None, error=told or f"exit status {status}")}
        half = len(pieces) // 2
        return self._simulated(pieces[:half]) | self._simulated(pieces[half:])


def _cycles(summary: Mapping[str, float]) -> PieceCycles:
    return PieceCycles(summary["TotalCycles"] / summary["Iterations"])
