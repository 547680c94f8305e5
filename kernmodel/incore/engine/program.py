"""A block as the twin of the engine has it: its instructions, by template, registers and layout."""

from __future__ import annotations

from collections.abc import Mapping

from kernmodel.incore.engine.lowering import Template
from kernmodel.value_types import NamedTuple


class Lowered(NamedTuple):
    """An instruction of a block.

    Attributes:
        template: what it does.
        resources: the number of each resource that the template names, 0 for the stack pointer; -1 for none.
        length, opcode: bytes, and the place of its nominal opcode in them; prefixed: whether it has a length-changing
            prefix; wide: an immediate of 8 bytes; constants, long_constants: as in `front_end.model.Unit`.
    """

    template: Template
    resources: Mapping[str, int]
    length: int
    opcode: int
    prefixed: bool
    wide: bool
    constants: int = 0
    long_constants: int = 0
