"""How long a function took in its unmodified program: from its entry to its return, in cycles of the core."""

from __future__ import annotations

from kernmodel.errors import Note
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class FunctionTime:
    """The time of a function with everything that it calls, the inputs as the program gives them.

    The program is run several times. Of each run the mean over its calls is taken, of the runs the smallest; what
    disturbs a run can only add to it.

    Attributes:
        cycles: of the core, of one call: the mean over the calls of the best run, overhead taken off; 0.0 where the
            figure is refused.
        smallest: of a single call in the accepted runs (of calls below 10 µs the smallest mean of a batch): what a call
            takes when everything is warm, if all calls do the same work.
        spread_percent: how far the accepted runs lie apart, in percent of `cycles`.
        calls: of one run.
        clock_hz: of the core, by calibration against a chain of dependent additions.
        overhead_cycles: that entering and leaving the clocks adds to a call; taken off.
        accepted, refused: runs that count, and runs in which the clock changed or something else ran in between.
        why_refused: why there is no figure, "" where there is one.
    """

    cycles: float
    smallest: float
    spread_percent: float
    calls: int
    clock_hz: float
    overhead_cycles: float
    accepted: int
    refused: int
    why_refused: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def seconds(self) -> float:
        """Of one call; 0.0 where the figure is refused."""
        return self.cycles / self.clock_hz if self.clock_hz else 0.0
