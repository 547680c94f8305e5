"""Values of a function in a binary: its basic blocks, what follows what, and its loops.

Addresses are those of the file as it stands (`objdump` shows the same); where a position-independent program is loaded
is no matter of these values.
"""

from __future__ import annotations

from typing import Literal

from kernmodel.errors import Note
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple, dataclass

Ending = Literal["falls", "branches", "jumps", "indirect", "calls", "tail call", "returns", "traps"]
"""How a block ends: it runs into the next one; a conditional branch; a jump within the function; an indirect jump
(through a jump table, where the targets are known); a call, after which the next block runs; a jump to another
function; a return; an instruction that does not go on (ud2, hlt)."""


class SourceLine(NamedTuple):
    """A line of C source, as the debugging information names it: the file's name and the line, 1-based."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions that run one after the other, and nothing that jumps into their middle.

    A call ends its block: what it calls need not come back.

    Attributes:
        address: of the first byte.
        code: the bytes.
        instructions: these, decoded.
        successors: addresses of the blocks of the function that may run next: the one behind it first, then the taken
            target; of an indirect jump the entries of its table, each once, by ascending address.
        ending: how it ends.
        leads_to: the name of the function that its call or tail call goes to, "" where there is none or it is unknown.
        lines: the source lines that its instructions come from, in the order of the instructions, each once; () without
            debugging information.
    """

    address: int
    code: bytes
    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]
    ending: Ending
    leads_to: str = ""
    lines: tuple[SourceLine, ...] = ()

    @property
    def end(self) -> int:
        """The address behind its last byte."""
        return self.address + len(self.code)


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: the blocks from which a branch back to its header is reached without leaving through the header.

    Attributes:
        header: address of the block through which it is entered.
        blocks: addresses of all its blocks, those of inner loops too.
        parent: header of the innermost loop around it, None for outermost loops.
        depth: 1 for outermost loops.
        irreducible: it has other ways in than its header, so that "header" is the lowest of these entries.
    """

    header: int
    blocks: frozenset[int]
    parent: int | None
    depth: int
    irreducible: bool = False


class CodeRange(NamedTuple):
    """A stretch of the function's code: the name of its symbol ("" without), first address and the one behind it."""

    name: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function (or a stretch of code) of a binary.

    Attributes:
        file: path of the binary as the user gave it.
        name: of the function; of a stretch without a symbol "0x1139-0x1170".
        isa: name of its instruction set.
        entry: address of the block that is entered.
        blocks: by ascending address, blocks of cold parts (`kernel.cold`) among them.
        loops: outer before inner, by ascending address of the header.
        ranges: the stretches of code that the blocks are in: the function's own first, then cold parts.
        runnable: whether the file can be run or loaded (no relocatable object).
        position_independent: whether it is loaded anywhere (a PIE or shared library).
        clones: names of clones of the function that the compiler made (`.constprop`, `.part`, `.isra`), which may run
            in its place.
        notes: what is not known: indirect jumps without a table, data inside the code.
    """

    file: str
    name: str
    isa: str
    entry: int
    blocks: tuple[BasicBlock, ...]
    loops: tuple[Loop, ...]
    ranges: tuple[CodeRange, ...]
    runnable: bool = True
    position_independent: bool = False
    clones: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def block(self, address: int) -> BasicBlock:
        """The block at an address.

        Raises:
            KeyError: none begins there.
        """
        for block in self.blocks:
            if block.address == address:
                return block
        raise KeyError(address)

    def loop_of(self, address: int) -> Loop | None:
        """The innermost loop that a block is in, None outside of loops."""
        inside = [loop for loop in self.loops if address in loop.blocks]
        return max(inside, key=lambda loop: loop.depth, default=None)

    def inner_loops(self) -> tuple[Loop, ...]:
        """The loops that hold no other loop."""
        parents = {loop.parent for loop in self.loops}
        return tuple(loop for loop in self.loops if loop.header not in parents)
