"""What lifting asks of a predictor: cycles for pieces of code, each repeated for ever."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kernmodel.binary.program import BasicBlock
from kernmodel.incore.model import Notion, Reason
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple


class Piece(NamedTuple):
    """A piece of code without calls.

    Attributes:
        code: its bytes; instructions: these, decoded, each at its own address.
        notion: as the body of a loop, or copied one behind the other.
    """

    code: bytes
    instructions: tuple[Instruction, ...]
    notion: Notion


class PieceCycles(NamedTuple):
    """The answer for a piece.

    Attributes:
        cycles: per execution, None where `error` says why not.
        bound_by: what bounds it, "" where the predictor does not say.
        reason: what fills that, None where the predictor does not say.
    """

    cycles: float | None
    bound_by: str = ""
    reason: Reason | None = None
    error: str = ""


class Predictor(Protocol):
    """Predicts cycles of pieces of code."""

    @property
    def name(self) -> str:
        """As options and reports call it."""

    @property
    def version(self) -> str:
        """Of the tool, "" where it has none."""

    def predict(self, pieces: Sequence[Piece]) -> Sequence[PieceCycles]:
        """An answer for each piece, in their order; what is wrong with one of them stands in its answer.

        Raises:
            ToolError: the predictor is not installed or does not start.
        """


def piece_of(block: BasicBlock, notion: Notion) -> Piece | None:
    """The piece that a block is without its call, which other tools count as so and so many cycles; None where nothing
    is left."""
    instructions = without_calls(block.instructions)
    if not instructions:
        return None
    first, end = instructions[0].address, instructions[-1].address + instructions[-1].length
    return Piece(block.code[first - block.address : end - block.address], instructions, notion)


def without_calls(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The instructions but for calls, which end their blocks."""
    return tuple(instruction for instruction in instructions if instruction.branch != "call")
