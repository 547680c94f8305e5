"""A memo of decoded instructions that the blocks of a batch share: each distinct one is decoded once.

Instructions are alike if they differ in nothing but the registers that they name, in constants, and in their place:
what one of them does, the other does with its own registers. So it is enough to look at one of them, their
representative.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from kernmodel.isa.model import Encoding, Instruction
from kernmodel.value_types import NamedTuple, dataclass

Key = bytes | tuple[bytes, int]
"""The bytes of an instruction, with its place where it names memory by its own address."""

MOST_KNOWN = 100_000
"""Instructions that are kept; then all are forgotten."""
NEAR = 2048
"""Bytes: addresses with a displacement from 0 to below it are told apart from others. It is where fast pointer chasing
ends (the figure in the parameter files of cores); one who needs another limit cannot go by shapes."""


@dataclass(slots=True, eq=False)
class Decoded:
    """A distinct instruction.

    Attributes:
        key: equal for instructions that are equal but for address and branch target.
        shape: equal for instructions that are alike; the key where none is like it.
        registers: full names of those that it names, in the order in which `DecodeMemo.representative` names others.
        encoding: the layout of its bytes.
        length: bytes; reach: bytes from its start to where a direct branch goes to, None for others.
        address_constants: scale and displacement of its memory operand.
        raw: what the decoder of the instruction set made of it.
    """

    key: Key
    shape: Hashable
    registers: tuple[str, ...]
    encoding: Encoding
    length: int
    reach: int | None
    address_constants: tuple[int, int]
    raw: Any

    @property
    def is_its_own(self) -> bool:
        """Whether no other instruction is taken to be like it."""
        return self.shape == self.key


class Representative(NamedTuple):
    """The instruction that stands for all that are alike, and what it names in place of `Decoded.registers`."""

    instruction: Instruction
    names: tuple[str, ...]


class DecodeMemo(ABC):
    """Decodes blocks, and remembers the instructions that it has met."""

    @abstractmethod
    def decode(self, code: bytes) -> Sequence[Decoded] | None:
        """The instructions of a block of which every byte belongs to one; None if not."""

    @abstractmethod
    def representative(self, one: Decoded) -> Representative:
        """The instruction that stands for all that are like this one."""

    @abstractmethod
    def instruction(self, one: Decoded) -> Instruction:
        """The instruction itself, without text, at address 0, with the target of a branch from there; at its place if
        it names memory by its own address."""

    @abstractmethod
    def text(self, one: Decoded) -> str:
        """The instruction as assembly text."""


class PlainMemo(DecodeMemo):
    """The memo of an instruction set that does not say which instructions are alike: each stands for itself.

    `reader` decodes machine code from an address on.
    """

    def __init__(self, reader: Callable[[bytes], Iterable[Instruction]]) -> None:
        self._reader = reader

    def decode(self, code: bytes) -> Sequence[Decoded] | None:
        """The instructions of a block."""
        found = list(self._reader(code))
        if sum(one.length for one in found) != len(code):
            return None
        return [self._decoded(code, one) for one in found]

    def _decoded(self, code: bytes, one: Instruction) -> Decoded:
        key = code[one.address : one.address + one.length], one.address
        reach = None if one.target is None else one.target - one.address
        return Decoded(key, key, (), one.encoding, one.length, reach, (0, 0), one)

    def representative(self, one: Decoded) -> Representative:
        """The instruction itself."""
        return Representative(one.raw, ())

    def instruction(self, one: Decoded) -> Instruction:
        """The instruction itself."""
        found: Instruction = one.raw
        return found

    def text(self, one: Decoded) -> str:
        """The instruction as assembly text."""
        return self.instruction(one).text
