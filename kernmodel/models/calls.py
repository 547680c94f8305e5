"""The time of the functions that a loop calls, as a term of the ECM model.

A called function is work of the core, whose instructions go through the same front end and ports as those of the loop:
its time adds to T_OL, and overlaps with data transfers as that does. Calls that do not wait for one another overlap as
far as the core looks ahead (a table measured so has it in its figures); one that waits for its own result of an earlier
pass takes its latency. In-core analyses leave calls out; without their time T_ECM is a lower bound.
"""

from __future__ import annotations

from kernmodel.value_types import dataclass

CALLS = "T_call"
"""Name of the time."""

IN_CORE = ("T_OL", CALLS)
"""Names of the times of the core that overlap with data transfers; they add up."""


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """A function that the loop calls.

    Attributes:
        name: as the code calls it, "" where that does not name it.
        per_unit: calls in a unit of work; chained: share of them that wait for their own result of an earlier pass.
        cycles: of a call, None where it is not known; low, high: between which values, where it depends on the
            arguments.
        arguments: those that `cycles` are for, "" where nothing is said of them; source: where they come from.
        around: whether the code around the loop calls it, each time that the loop is entered.
    """

    name: str
    per_unit: float
    chained: float
    cycles: float | None
    low: float = 0.0
    high: float = 0.0
    arguments: str = ""
    source: str = ""
    around: bool = False


@dataclass(frozen=True, slots=True)
class CallWork:
    """All functions that a loop and the code around it call."""

    functions: tuple[CalledFunction, ...]

    @property
    def cycles(self) -> float:
        """T_call: cycles per unit of work, as far as they are known."""
        return sum(one.per_unit * (one.cycles or 0.0) for one in self.functions)

    @property
    def low(self) -> float:
        """T_call at the least."""
        return sum(one.per_unit * one.low for one in self.functions)

    @property
    def high(self) -> float:
        """T_call at the most, as far as it is known."""
        return sum(one.per_unit * one.high for one in self.functions)

    @property
    def known(self) -> bool:
        """Whether the time of all of them is."""
        return all(one.cycles is not None for one in self.functions)
