"""OSACA as a predictor: its library analyses the pieces in a process of the Python that has it.

OSACA's answer for a loop is the larger of its throughput and its loop-carried dependency. It refuses blocks with
instructions that it does not know; branches, returns and nops among these count nothing here, as its own tables leave
most of them out. A start of it takes a second, so that one process answers for many pieces.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernmodel.binary.predictors.disassembly import AssemblyPredictor
from kernmodel.binary.predictors.protocol import PieceCycles
from kernmodel.binary.predictors.tools import found_tool, said
from kernmodel.errors import ToolError

_SECONDS = 600.0
_PACKAGE = "pip install osaca"
_MARK = "answer "
_LONGEST = 1000
"""Bytes of the first line of a script."""

_SCRIPT = """
import json, sys
from osaca.osaca import get_asm_parser
from osaca.semantics import ArchSemantics, INSTR_FLAGS, KernelDG, MachineModel

def cycles(text):
    kernel = parser.parse_file(text)
    semantics.normalize_instruction_forms(kernel)
    semantics.add_semantics(kernel)
    semantics.assign_optimal_throughput(kernel)
    semantics.assign_optimal_throughput(kernel)
    unknown = [line.mnemonic for line in kernel if line.mnemonic and INSTR_FLAGS.TP_UNKWN in line.flags]
    unknown = [name for name in unknown if not name.startswith(("j", "nop", "ret"))]  # it has no times of branches
    if unknown:
        return "knows no " + unknown[0]
    graph = KernelDG(kernel, parser, machine, semantics, 10, False)
    chains = graph.get_loopcarried_dependencies()
    chain = max((one["latency"] for one in chains.values()), default=0.0)
    return max([float(one) for one in semantics.get_throughput_sum(kernel)] + [float(chain)])

asked = json.load(sys.stdin)
parser = get_asm_parser(asked["core"])
machine = MachineModel(arch=asked["core"])
semantics = ArchSemantics(parser, machine)
for text in asked["pieces"]:
    try:
        found = cycles(text)
    except Exception as error:
        found = "fails with " + type(error).__name__ + ": " + str(error)
    print("answer " + json.dumps(found), flush=True)
"""
"""What the other Python executes."""


class Osaca(AssemblyPredictor):
    """OSACA for one core."""

    name, title = "osaca", "OSACA"
    at_once = 200

    def __init__(self, microarchitecture: str, isa: str, jobs: int | None = None) -> None:
        """Look for the tool; arguments as of `AssemblyPredictor`.

        Raises:
            ToolError: OSACA, or llvm-mc, is not installed.
        """
        script = found_tool(self.name, "KERNMODEL_OSACA", ("osaca",), _PACKAGE)
        super().__init__(script, microarchitecture, isa, jobs)
        self._python = _python_of(script)

    def _predicted(self, texts: Sequence[str]) -> Iterator[PieceCycles]:
        """What OSACA says of pieces of assembly.

        Raises:
            ToolError: it does not start.
        """
        asked = json.dumps({"core": self._core, "pieces": [text + "\n" for text in texts]})
        status, output, told = said((self._python, "-c", _SCRIPT), asked.encode(), _SECONDS)
        lines = output.decode(errors="replace").splitlines()
        found = [json.loads(line[len(_MARK) :]) for line in lines if line.startswith(_MARK)]
        if status > 0 and texts and not found:
            raise ToolError(f"does not start: {told}", where="osaca", todo=_PACKAGE)
        for number in range(len(texts)):
            answer = found[number] if number < len(found) else told or f"ended with exit status {status}"
            yield PieceCycles(answer) if isinstance(answer, float) else PieceCycles(None, error=str(answer))


def _python_of(script: str) -> str:
    """The Python that a script of pip's starts with."""
    with Path(script).open("rb") as file:
        first = file.readline(_LONGEST).decode(errors="replace").strip()
    python = first.removeprefix("#!").split(" ")[0]
    if not first.startswith("#!") or "python" not in python:
        raise ToolError("is no script of a Python", where=script, todo=f"{_PACKAGE}, and name its command osaca")
    return python if Path(python).exists() else sys.executable
