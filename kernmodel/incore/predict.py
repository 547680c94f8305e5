"""The prediction for machine code without what only a report shows, for batches of blocks.

The same bounds as in `analyse`, hence the same numbers and reasons. What depends on an instruction and the core only
is kept by the bytes of the instruction: its decoding, its row, its data flow and its µops.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from kernmodel.assembly.decode import Piece, PieceKey, pieces
from kernmodel.assembly.features import is_privileged
from kernmodel.assembly.model import Instruction
from kernmodel.incore.analyse import loop_carried, throughput_of
from kernmodel.incore.bounds import PORTS, PRECEDENCE, Bounds, Memo, Rows, bounds_of, row_of
from kernmodel.incore.core import CODE_ALIGNMENT, Core, Settings
from kernmodel.incore.estimate import ESTIMATED
from kernmodel.incore.extensions import is_missing
from kernmodel.incore.model import InstructionData, Notion
from kernmodel.incore.reasons import Filled, clause
from kernmodel.incore.verdict import BoundBy, binding_of, verdict_of

_MOST_KNOWN = 100_000
"""Instructions that are kept; then all are forgotten."""
_REPEATED = ("rep ", "repne ")


class Prediction(NamedTuple):
    """The answer for one block.

    Attributes:
        notion: how it was repeated.
        cycles: per pass.
        bound_by, reason: as in `InCore`.
        components: cycles of those that apply, by name.
        binding: those that explain the prediction.
        unknown, estimated: forms without a row, forms whose rows were estimated.
        warnings: codes of the warnings that the analysis gives.
    """

    notion: Notion
    cycles: float
    bound_by: BoundBy
    reason: str
    components: dict[str, float]
    binding: tuple[str, ...]
    unknown: tuple[str, ...]
    estimated: tuple[str, ...]
    warnings: tuple[str, ...]


class _Known(NamedTuple):
    """What was found out about an instruction.

    Attributes:
        instruction, row: the instruction, at address 0 where that does not matter, and its row.
        missing: whether the core lacks an extension for it.
        warnings: codes of warnings about it.
    """

    instruction: Instruction
    row: InstructionData | None
    missing: bool
    warnings: tuple[str, ...]


class Predictor:
    """Predicts blocks on one core with the same settings."""

    __slots__ = ("_decoded", "_known", "_memo", "core", "settings")

    def __init__(self, core: Core, settings: Settings) -> None:
        self.core = core
        self.settings = settings
        self._decoded: dict[PieceKey, Instruction] = {}
        self._known: dict[Hashable, _Known] = {}
        self._memo = Memo()

    def predict(self, code: bytes, notion: Notion | None = None, offset: int | None = None) -> Prediction | None:
        """The prediction for a block, None where `analyse_block` has to look at it.

        That is code with bytes that are no instruction, with branches before its end or into itself, or with
        instructions that the core lacks; and the port model of the OSACA papers.

        Args:
            code: the block; its first byte has the address 0, if nothing else is said.
            notion, offset: in place of those of the settings.

        Raises:
            InstructionTableError: a row of the table is malformed.
        """
        found = pieces(code, self._decoded) if self.settings.port_model == "optimal" else None
        if not found or _branches_inside(found, len(code)):
            return None
        known = [self._look_up(piece) for piece in found]
        if any(one.missing for one in known):
            return None
        chosen = notion or self.settings.notion
        if chosen == "auto":
            chosen = "loop" if known[-1].instruction.branch in ("conditional", "jump") else "unrolled"
        place = offset if offset is not None else self.settings.offset or 0
        instructions = tuple([one.instruction for one in known])
        rows = tuple([one.row for one in known])
        keys, memo = [piece.key for piece in found], self._memo
        place %= CODE_ALIGNMENT
        bounds = bounds_of(instructions, rows, self.core.model, chosen, place, syntax="intel", keys=keys, memo=memo)
        return self._prediction(known, instructions, rows, chosen, bounds)

    def _prediction(
        self, known: list[_Known], instructions: tuple[Instruction, ...], rows: Rows, notion: Notion, bounds: Bounds
    ) -> Prediction:
        verdict = verdict_of(bounds)
        estimated = (row.form for row in rows if row is not None and row.source.startswith(ESTIMATED))
        return Prediction(
            notion=notion,
            cycles=bounds.prediction,
            bound_by=verdict.bound_by,
            reason=self._reason(verdict.component, instructions, rows, notion, bounds),
            components=bounds.applied,
            binding=binding_of(bounds),
            unknown=tuple(dict.fromkeys(i.form for i, row in zip(instructions, rows, strict=True) if row is None)),
            estimated=tuple(dict.fromkeys(estimated)),
            warnings=_warnings(known, bounds),
        )

    def _reason(
        self, name: str, instructions: tuple[Instruction, ...], rows: Rows, notion: Notion, bounds: Bounds
    ) -> str:
        parameters = self.core.parameters
        lcd = loop_carried(bounds.graph, bounds.cycle)[0] if name == PRECEDENCE else None
        throughput, ports = throughput_of(bounds.uses, rows, parameters.ports) if name == PORTS else (0.0, ())
        filled = Filled(instructions, rows, parameters, bounds, notion, lcd, throughput, ports, "optimal")
        return clause(name, filled)

    def _look_up(self, piece: Piece) -> _Known:
        known = self._known.get(piece.key)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._decoded.clear()
                self._known.clear()
                self._memo = Memo()
            known = self._known[piece.key] = self._find_out(piece.instruction)
        return known

    def _find_out(self, instruction: Instruction) -> _Known:
        row = row_of(instruction, self.core.table)
        warnings = []
        if is_privileged(instruction):
            warnings.append("privileged-instruction")
        if row is None:
            warnings.append("unknown-instruction")
        elif row.source.startswith(ESTIMATED):
            warnings.append("estimated-instruction")
        if instruction.form.startswith(_REPEATED):
            warnings.append("repeat-count")
        return _Known(instruction, row, is_missing(instruction, self.core.lacked), tuple(warnings))


def _branches_inside(found: list[Piece], length: int) -> bool:
    """Whether the code is more than one basic block that is entered at its start."""
    if any(piece.instruction.branch not in (None, "call") for piece in found[:-1]):
        return True
    return found[-1].target is not None and 0 < found[-1].target < length


_ORDER = (
    "privileged-instruction",
    "estimated-instruction",
    "unknown-instruction",
    "repeat-count",
    "store-forward-blocked",
)
"""Warnings in the order in which an analysis gives them."""


def _warnings(known: list[_Known], bounds: Bounds) -> tuple[str, ...]:
    found = {code for one in known for code in one.warnings}
    if bounds.graph.blocked:
        found.add("store-forward-blocked")
    return tuple(code for code in _ORDER if code in found) if found else ()
