"""Copies of code that count how often each of its blocks runs: what an instruction set makes of blocks, as values.

`Isa.counted_copy` makes one. Who runs it puts the code and its counters into a process, and bends the old code to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple


class CountedBlock(NamedTuple):
    """A block to copy: its address, bytes and instructions, and the addresses of the blocks that may follow it, the one
    behind it first; `indirect` if it ends in an indirect jump, through which it may also go elsewhere."""

    address: int
    code: bytes
    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]
    indirect: bool


class Counter(NamedTuple):
    """What a counter counts: runs of the "block" at an address, passes of the "edge" from a block to another, "calls"
    of the function, or "arrivals" at a block by jumps that are not in the copy (through the old code)."""

    kind: Literal["block", "edge", "calls", "arrivals"]
    address: int = 0
    successor: int = 0


class CountedCopy(NamedTuple):
    """A copy of a function that counts.

    Attributes:
        code: to put at the address that was asked for.
        counters: what each counts, in their order in memory; 8 bytes each, all 0 at first.
        entry: where a call has to go in place of the function's entry.
        arrivals: by address of a block, where a jump from outside the copy has to go in its place.
    """

    code: bytes
    counters: tuple[Counter, ...]
    entry: int
    arrivals: Mapping[int, int]


class TracedAccess(NamedTuple):
    """What a record stands for: a "load" or "store" of so many bytes by the instruction at an address, a "call", or the
    beginning of the "block" at an address."""

    kind: str
    size: int
    address: int = 0


class TracedCopy(NamedTuple):
    """A copy of a function that records its accesses, and it may be its path: 16 bytes each, the address and the number
    in `accesses`.

    Attributes:
        code, entry, arrivals: as of `CountedCopy`.
        accesses: what each number stands for.
        left_out: addresses of instructions whose accesses are not recorded (gathers, repeated string instructions,
            thread-local data).
    """

    code: bytes
    accesses: tuple[TracedAccess, ...]
    entry: int
    arrivals: Mapping[int, int]
    left_out: tuple[int, ...]
