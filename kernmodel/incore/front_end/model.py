"""What the front end sees of a block of code, what a core's front end can do, and the bounds that follow.

Positions are bytes from the first byte of the block; times are cycles per execution of the block.
"""

from __future__ import annotations

from typing import Literal, Protocol

from kernmodel.value_types import NamedTuple, dataclass

Path = Literal["decoders", "DSB", "LSD"]
"""Where the µops come from."""


class Decoders(Protocol):
    """What decoding asks of a core."""

    @property
    def decoders(self) -> int:
        """Number of decoders."""

    @property
    def fusible_last(self) -> bool:
        """Whether the last decoder takes an instruction of a macro-fusible kind."""


class Issuing(Protocol):
    """What issue asks of a core."""

    @property
    def issue_width(self) -> int:
        """µops per cycle."""


class Unit(NamedTuple):
    """One instruction, or a macro-fused pair, as the decoders and everything behind them see it.

    Attributes:
        number: index of the instruction, of the first one of a pair.
        start, end: its bytes are those from `start` up to but not including `end`.
        decoded: fused-domain µops that the decoders make and the DSB keeps (MITE); microcoded: those that the microcode
            sequencer adds (MS).
        slots: fused-domain µops at issue, after unlamination.
        complex: needs the complex decoder; simple: decoders that may work beside it in that cycle.
        fusible: an instruction of a kind that macro-fuses, whether or not it does here.
        branch: a branch, or a pair with one.
        ends_group: nothing behind it is decoded in the same cycle.
        fused: whether it is a pair; padded: whether a nop behind it is a part of it.
        constants: displacements, immediates and distances of jumps, one of 8 bytes taken as two, those of a nop behind
            it not counted; long_constants: those of more than a byte.
    """

    number: int
    start: int
    end: int
    decoded: int
    microcoded: int
    slots: int
    complex: bool
    simple: int
    fusible: bool
    branch: bool
    ends_group: bool
    fused: bool = False
    padded: bool = False
    constants: int = 0
    long_constants: int = 0


@dataclass(frozen=True, slots=True)
class FrontEndBlock:
    """What the front end sees of a block of code.

    Attributes:
        length: bytes.
        ends: by position x from 0 to `length`, how many instructions have their last byte before x.
        cut: by position, whether a fetch that ends there parts the opcode of an instruction from its last byte.
        prefixed: positions of the nominal opcodes of instructions with a length-changing prefix.
        units: instructions in order, macro-fused pairs as one, those without figures left out.
        synchronisations: µops that the stack engine inserts per execution, where rsp is used after it moved on its own.
    """

    length: int
    ends: tuple[int, ...]
    cut: tuple[int, ...]
    prefixed: tuple[int, ...]
    units: tuple[Unit, ...]
    synchronisations: int
