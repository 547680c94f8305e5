"""How often the blocks of a function ran in one run of its program, and which block followed which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from kernmodel.errors import Note
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.binary.program import Function, Loop

Method = Literal["re-encoded", "callgrind", "qemu"]
"""How occurrences were counted: counters in a copy of the function in the running program's memory, by valgrind's
callgrind, or by a plugin of qemu's user mode."""


@dataclass(frozen=True, slots=True)
class Occurrences:
    """How often each block ran, over all calls of the function in one run of the program.

    Attributes:
        blocks: by address of the block; blocks that never ran are there with 0.
        edges: how often a block was followed by another of the function (paths of two blocks), by their addresses;
            edges that were never taken are there with 0. What follows a call is the block behind it, when it comes
            back.
        calls: how often the function was entered.
        method: how they were counted.
        runs: of the program that agreed on every count.
        seconds: wall time of the counted run.
        exit_status: of the program; negative: the signal that ended it.
    """

    blocks: Mapping[int, int]
    edges: Mapping[tuple[int, int], int]
    calls: int
    method: Method
    runs: int = 1
    seconds: float = 0.0
    exit_status: int = 0
    notes: tuple[Note, ...] = ()

    def entries(self, function: Function, loop: Loop) -> int:
        """How often a loop of the function was entered from outside the loop."""
        found = sum(n for (a, b), n in self.edges.items() if b == loop.header and a not in loop.blocks)
        return found + (self.calls if loop.header == function.entry else 0)
