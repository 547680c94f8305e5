"""Code that times the calls of a function: what an instruction set makes, as plain values, and where it keeps what."""

from __future__ import annotations

from kernmodel.value_types import NamedTuple

CHAIN_CYCLES = 9600
"""Cycles of the chain of additions by which the clock is told."""
ISSUE_PASSES = 1200
"""Passes of a loop with two loads and a taken branch in each cycle, by which a sibling thread that is awake is told: a
core predicts and fetches for one thread after the other, and the chain does not show that."""
LOGGED_CALLS = 4096
"""Calls of which each is kept; later ones are added up."""
EMPTY_CALLS = 400
"""Calls of an empty function by which the overhead is told."""
ENTRY_BYTES = 32
"""Of a call in the log: its ticks, those of the chain before and after, and in half of 8 bytes each those of the loop
of branches before and after."""
_HEAD = 4096


class TimedData(NamedTuple):
    """Where the stub keeps its words, from an address on: 8 bytes each, then the log."""

    address: int

    @property
    def active(self) -> int:
        """Whether a call is being timed."""
        return self.address

    @property
    def back(self) -> int:
        """The return address."""
        return self.address + 8

    @property
    def start(self) -> int:
        """The clock at the beginning of the call."""
        return self.address + 16

    @property
    def calls(self) -> int:
        """How many calls were timed."""
        return self.address + 24

    @property
    def total(self) -> int:
        """The ticks of all calls."""
        return self.address + 32

    @property
    def ticks(self) -> int:
        """Those of the last call."""
        return self.address + 40

    @property
    def before(self) -> int:
        """The ticks of the chain before the call."""
        return self.address + 48

    @property
    def chain(self) -> int:
        """The clock at the beginning of the chain."""
        return self.address + 56

    @property
    def issue(self) -> int:
        """The ticks of the loop of branches, those before in the lower half, those after in the upper one."""
        return self.address + 72

    @property
    def spare(self) -> int:
        """A word for the calls of the empty function."""
        return self.address + 64

    @property
    def kept(self) -> int:
        """Registers."""
        return self.address + 128

    @property
    def log(self) -> int:
        """The first entry of the log."""
        return self.address + _HEAD

    @property
    def end(self) -> int:
        """The address behind the log."""
        return self.log + ENTRY_BYTES * LOGGED_CALLS


class TimedCode(NamedTuple):
    """Code that times a function.

    Attributes:
        code: to put at the address that was asked for.
        stub: where calls have to go in place of the function's entry.
        calibration: code that times calls of an empty function and ends in a trap.
        empty: where the words of the calibration are; those of the function begin at the address that was asked for.
    """

    code: bytes
    stub: int
    calibration: int
    empty: TimedData
