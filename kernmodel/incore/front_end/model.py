"""What the front end sees of a block of code, what a core's front end can do, and the bounds that follow.

Positions are bytes from the first byte of the block; times are cycles per execution of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

Notion = Literal["unrolled", "loop"]
"""How the block is executed over and over: copies one behind the other (TP_U), or one copy that jumps back to its start
(TP_L)."""

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


class Pair(NamedTuple):
    """A macro-fused pair: its place in `FrontEndBlock.units`, where its jump starts, and the two units it is without
    fusion."""

    place: int
    jump: int
    apart: tuple[Unit, Unit]


@dataclass(frozen=True, slots=True)
class FrontEndBlock:
    """What the front end sees of a block of code.

    Attributes:
        length: bytes.
        ends: by position x from 0 to `length`, how many instructions have their last byte before x.
        cut: by position, whether a fetch that ends there parts the opcode of an instruction from its last byte; both
            empty for cores of which no predecoder is known.
        prefixed: positions of the nominal opcodes of instructions with a length-changing prefix.
        units: instructions in order, pairs that can macro-fuse as one, those without figures left out.
        pairs: the macro-fused pairs among them.
        synchronisations: µops that the stack engine inserts per execution, where rsp is used after it moved on its own.
        unknown: instructions without figures; they count as bytes only.
        estimated: instructions whose decoding and issue costs are estimated from their µops.
    """

    length: int
    ends: tuple[int, ...]
    cut: tuple[int, ...]
    prefixed: tuple[int, ...]
    units: tuple[Unit, ...]
    pairs: tuple[Pair, ...]
    synchronisations: int
    unknown: tuple[int, ...]
    estimated: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FrontEndBounds:
    """Lower bounds of the time per execution, cycles, by component of the front end.

    Attributes:
        notion: unrolled or loop; offset: address of the first byte that was assumed.
        path: where the µops come from.
        predecode, decode, dsb, lsd: the components; None where `path` does not use them.
        mixed: for a loop that the erratum concerns, what takes the place of max{Predec, Dec} if the lines without such
            branches come from the DSB, else None; not in Facile.
        issue: µops over issue width.
        issue_synchronised: the same with the µops of the stack engine's synchronisation; not in Facile.
        erratum: indices of the branches (first instruction of a pair) that keep the loop out of the DSB and LSD.
        fused: indices of the first instructions of macro-fused pairs.
    """

    notion: Notion
    offset: int
    path: Path
    predecode: float | None
    decode: float | None
    dsb: float | None
    lsd: float | None
    mixed: float | None
    issue: float
    issue_synchronised: float
    erratum: tuple[int, ...]
    fused: tuple[int, ...]

    @property
    def delivery(self) -> float:
        """FE of Facile's equation 3 for loops, max{Predec, Dec} of equation 1 for unrolled code: all but issue."""
        return max(bound for bound in (self.predecode, self.decode, self.dsb, self.lsd, 0.0) if bound is not None)

    @property
    def bound(self) -> float:
        """The front end as a whole, after Facile (equations 1 and 2)."""
        return max(self.delivery, self.issue)
