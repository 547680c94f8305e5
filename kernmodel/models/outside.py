"""The time that the core spends outside the body of the innermost loop, as a term of the ECM model.

Each time that the innermost loop is entered, the core executes the iterations that fill no pass of the compiled loop,
the code of the loops around it, and leaves the loop by a branch that the predictor may not foresee. In-core analyses of
loop bodies leave that out (Stengel et al., ICS'15, and all that follow). It is work of the core during which no data
are requested: it adds to what all other times give.
"""

from __future__ import annotations

from typing import Literal

from kernmodel.value_types import dataclass

Exit = Literal["mispredicted", "foreseen", "unknown"]
"""What the branch predictor does at the end of the inner loop; "unknown" where it may have learned it."""


OUTSIDE = "T_out"
"""Name of the time."""

NEGLIGIBLE = 0.005
"""cy/CL: less is not shown."""


@dataclass(frozen=True, slots=True)
class OutsideWork:
    """What is executed outside the body of the innermost loop, in cycles per unit of work.

    Attributes:
        length: mean iterations each time that the loop is entered.
        entries: how often a unit of work enters it.
        remainder_cycles: iterations that fill no pass, beyond their share of a full pass.
        outer_cycles: the code of the loops around: setting up, tails of reductions, statements between the loops.
        entry_cycles: leaving the loop and entering it again where the exit is mispredicted (so taken where it is not
            known): the front end starts anew.
        overlap_cycles: by how much less of T_OL counts because chains that start anew at each entry do not wait for one
            another, and those of several entries are executed at once.
        straight_cycles: by how much less of T_OL counts because straight-line code executes so many iterations of each
            entry that the loop itself makes fewer passes (vectors of a short row, before a loop over what they leave).
        exit: what the branch predictor does.
        branch_cycles: what branches within the loop cost that the data decide, if nothing foresees them; not in T_out.
        row_factor: how many times as much T_OL may be where a pass executes whole rows of different lengths, if each
            took as long as the longest.
        single_cycles: `remainder_cycles` if all iterations that fill no pass were executed one by one, where the code
            does not show how they are; None where it does.
        known: whether the compiled code around the loop is known; if not, `outer_cycles` is 0, and remainders are
            estimated from the loop.
    """

    length: float
    entries: float
    remainder_cycles: float
    outer_cycles: float
    entry_cycles: float
    exit: Exit
    known: bool
    overlap_cycles: float = 0.0
    straight_cycles: float = 0.0
    branch_cycles: float = 0.0
    row_factor: float = 1.0
    single_cycles: float | None = None

    @property
    def cycles(self) -> float:
        """T_out: all of it, in cycles per unit of work."""
        return self.remainder_cycles + self.outer_cycles + self.entry_cycles

    @property
    def less_cycles(self) -> float:
        """By how much less than the passes of the loop take, one after the other, T_OL counts."""
        return self.overlap_cycles + self.straight_cycles

    @property
    def least_cycles(self) -> float:
        """T_out if the predictor foresees the exit where that is not known."""
        return self.cycles - (self.entry_cycles if self.exit == "unknown" else 0.0)
