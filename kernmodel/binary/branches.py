"""Which branches of a walk the branch predictor is wrong about.

A predictor that looks at the history of branches knows the end of a loop whose passes that history holds, also where
the loop is longer by a pass each time (`benchmarks/loop_exits.py` on Zen 3: up to 80 passes of a constant length, some
44 of a growing one; from 128 on every end is mispredicted). It cannot know what depends on data: there the rarer way
surprises it each time, unless the data repeat.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from kernmodel.binary.program import BasicBlock, Loop
from kernmodel.binary.walks import CountedFlow
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.studies.predict.outside import SHORT

Surprise = Literal["certain", "doubtful"]
"""Whether a branch is mispredicted for certain, or may be."""

_GROWING = 2
"""A loop whose length changes takes this many times the history."""


class Branches:
    """The branches of a function as they were counted.

    Args:
        flow: of the function.
        foreseen: passes of a loop whose end the predictor is known to foresee, 0 where nothing is known.
        mispredicted: passes from which on it is known not to, None where that is not known.
    """

    def __init__(self, flow: CountedFlow, foreseen: int, mispredicted: int | None) -> None:
        self._flow = flow
        self._foreseen = foreseen
        self._mispredicted = mispredicted or max(SHORT, foreseen) + 1
        self._known: dict[int, bool] = {}

    @cached_property
    def _blocks(self) -> dict[int, BasicBlock]:
        return {block.address: block for block in self._flow.function.blocks}

    def surprise(self, address: int, following: int) -> Surprise | None:
        """Whether the predictor is wrong where a block is followed by another: never where that is the usual one."""
        choices = self._flow.successors.get(address, {})
        if len(choices) < 2 or following == max(choices, key=lambda target: choices[target]):
            return None
        loop = self._flow.inner.get(address)
        if self.depends_on_data(address):
            return "doubtful"
        if loop is None:
            return None
        runs = sum(choices.values()) / choices.get(following, 1)
        needed = runs if _whole(self._flow.trips(loop)) else _GROWING * runs
        if needed <= self._foreseen:
            return None
        return "doubtful" if needed < self._mispredicted else "certain"

    def depends_on_data(self, address: int) -> bool:
        """Whether what the branch at the end of a block asks comes from memory within the loops around it."""
        if address not in self._known:
            self._known[address] = self._asks_data(address)
        return self._known[address]

    def _asks_data(self, address: int) -> bool:
        block = self._blocks[address]
        asked = _setter(block.instructions)
        if asked is None:
            return True
        if asked.vector_bytes or _loads(asked):
            return True
        outermost = self._outermost(address)
        around = [i for a in sorted(self._flow.blocks_of(outermost)) for i in self._blocks[a].instructions]
        wanted, seen = _sources(asked), set[str]()
        while wanted - seen:
            register = (wanted - seen).pop()
            seen.add(register)
            for instruction in around:
                if register not in instruction.registers_written:
                    continue
                if _loads(instruction) or instruction.vector_bytes:
                    return True
                wanted |= _sources(instruction)
        return False

    def _outermost(self, address: int) -> Loop | None:
        loop = self._flow.inner.get(address)
        while loop is not None and loop.parent is not None:
            loop = self._flow.loops[loop.parent]
        return loop


def _whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-9


def _setter(instructions: tuple[Instruction, ...]) -> Instruction | None:
    """What sets the flags that the branch at the end asks; the branch itself where it compares a register."""
    if not instructions or instructions[-1].branch != "conditional":
        return None
    branch = instructions[-1]
    if not branch.flags_read:
        return branch
    wanted = set(branch.flags_read)
    return next((i for i in reversed(instructions[:-1]) if wanted & set(i.flags_written)), None)


def _loads(instruction: Instruction) -> bool:
    """Whether it reads memory other than the stack frame, where compilers keep counters and bounds."""
    frame = isa_of(instruction.isa).registers.frame
    return any(reference.read and reference.base not in frame for reference in instruction.memory)


def _sources(instruction: Instruction) -> set[str]:
    """The registers that can hold counters and that it reads."""
    general = set(isa_of(instruction.isa).registers.general)
    read = {operand.register for operand in instruction.operands if operand.read and operand.register}
    read |= {name for one in instruction.memory for name in (one.base, one.index) if name}
    return {name for name in (*read, *instruction.implicit_reads) if name in general}
