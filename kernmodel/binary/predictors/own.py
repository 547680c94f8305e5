"""The in-core analysis of this house as a predictor, and what else lifting asks of it."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel import __version__
from kernmodel.binary.predictors.protocol import Piece, PieceCycles
from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import InstructionTableError
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.answer.components import row_of, straight_bound, uses_of
from kernmodel.incore.core import CODE_ALIGNMENT, Core, Settings
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.ports import group_bound
from kernmodel.incore.model import Notion
from kernmodel.incore.tables.extensions import refuse_missing
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction

OWN = "kernmodel"
OWN_ECM = "kernmodel-ecm"
"""The same with the time of transfers between caches, for functions whose addresses were traced (`binary.ecm`)."""


class OwnPredictor:
    """The in-core analysis on one core; what it was asked before it knows."""

    __slots__ = ("_known", "_straight", "analyser", "core")

    name = OWN
    version = __version__

    def __init__(self, microarchitecture: str) -> None:
        """For the core of this name.

        Raises:
            InstructionTableError: it is not known.
        """
        self.core = Core.open(microarchitecture, Settings())
        self.analyser = Analyser(self.core.model).keep()
        self._known: dict[tuple[object, ...], PieceCycles] = {}
        self._straight: dict[tuple[Instruction, ...], float] = {}

    def predict(self, pieces: Sequence[Piece]) -> list[PieceCycles]:
        """As `Predictor.predict`."""
        return [self.repeated(piece.instructions, piece.notion) for piece in pieces]

    def repeated(self, instructions: tuple[Instruction, ...], notion: Notion) -> PieceCycles:
        """Cycles per execution of code that is repeated for ever."""
        key = (
            notion,
            instructions[0].address % CODE_ALIGNMENT,
            *((i.address - instructions[0].address, i.text) for i in instructions),
        )
        if key not in self._known:
            try:
                self._known[key] = self._analysed(instructions, notion)
            except InstructionTableError as error:
                self._known[key] = PieceCycles(None, error=error.what)
        return self._known[key]

    def _analysed(self, instructions: tuple[Instruction, ...], notion: Notion) -> PieceCycles:
        loop = as_loop(instructions)
        refuse_missing(instructions, self.core.lacked, self.core.parameters, "")
        offset = instructions[0].address % CODE_ALIGNMENT
        model = self.analyser
        found = analyse(loop, self.core.parameters, self.core.table, notion=notion, offset=offset, model=model)
        if found.uncertain:
            return PieceCycles(
                None, error=f"{found.uncertain[0]} has no row in the table of {self.core.parameters.name}"
            )
        return PieceCycles(found.prediction, found.bound_by, found.reason)

    def straight(self, instructions: tuple[Instruction, ...]) -> float:
        """Cycles of code that no earlier execution of itself keeps waiting: of issue, ports and dividers."""
        if not instructions:
            return 0.0
        if instructions not in self._straight:
            named = isa_of(instructions[0].isa).with_named_registers(instructions)
            rows = [row_of(instruction, self.core.table) for instruction in named]
            self._straight[instructions] = straight_bound(named, rows, self.analyser)
        return self._straight[instructions]

    def on_ports(self, instructions: tuple[Instruction, ...], ports: Sequence[str]) -> float:
        """Cycles in which an execution of code occupies these ports, of µops that can go nowhere else."""
        if not instructions or not ports:
            return 0.0
        named = isa_of(instructions[0].isa).with_named_registers(instructions)
        rows = [row_of(instruction, self.core.table) for instruction in named]
        return group_bound(uses_of(named, rows, self.analyser), ports)


def as_loop(instructions: tuple[Instruction, ...]) -> AssemblyLoop:
    """Instructions of a binary as the body of a loop."""
    return AssemblyLoop(
        instructions=instructions,
        isa=instructions[0].isa,
        syntax="binary",
        file="",
        label="",
        iterations_per_pass=None,
        streams=(),
        evidence="",
        role="chosen",
        notes=(),
    )
