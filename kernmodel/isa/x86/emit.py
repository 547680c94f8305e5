"""Writing x86-64 code of instructions and labels, and copying instructions to another place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import iced_x86 as iced
from iced_x86 import Code, Encoder, Instruction, MemoryOperand, Register

from kernmodel.errors import AssemblyError
from kernmodel.value_types import dataclass

RED_ZONE = 128
"""Bytes below the stack pointer that the function may use without moving it (psABI, 3.2.2)."""

Key = tuple[str, int]
"""A place in the code: what begins there, and of which block."""


@dataclass(slots=True)
class Item:
    """One instruction, or a label: bytes as they are, or an instruction that depends on its place."""

    raw: bytes = b""
    instruction: Instruction | None = None
    target: Key | None = None
    label: Key | None = None


@dataclass(slots=True)
class Emitter:
    """Code as it grows; what is copied is at addresses that are `shift` more than those of the file.

    A copied function that calls itself goes to the label "calls" of its `entry`; None: nothing is copied.
    """

    shift: int
    entry: int | None = None
    items: list[Item] = field(default_factory=list)

    def label(self, kind: str, address: int = 0) -> None:
        """A place to go to."""
        self.items.append(Item(label=(kind, address)))

    def put(self, instruction: Instruction, target: Key | None = None) -> None:
        """An instruction; a jump goes to `target` where that is given."""
        self.items.append(Item(instruction=instruction, target=target))

    def move_stack(self, by: int) -> None:
        """Add to the stack pointer; the flags stay."""
        memory = MemoryOperand(Register.RSP, displ=by, displ_size=8)
        self.put(Instruction.create_reg_mem(Code.LEA_R64_M, Register.RSP, memory))

    def raw(self, code: bytes) -> None:
        """Bytes as they are."""
        self.items.append(Item(raw=code))

    def jump(self, target: Key) -> None:
        """Go to a label."""
        self.put(Instruction.create_branch(Code.JMP_REL32_64, 0), target)

    def instruction(self, item: iced.Instruction, raw: bytes, goals: Mapping[int, Key]) -> None:
        """Copy an instruction; jumps into the function go to its copy."""
        if item.near_branch_target:
            goal = goals.get(item.near_branch_target - self.shift)
            if _short_only(item):
                self._by_way_of(raw, item.near_branch_target, goal)
            elif item.is_jcc_short_or_near or item.is_jmp_short_or_near or item.is_call_near:
                item.as_near_branch()
                if item.is_call_near and goal is not None and goal[1] == self.entry:
                    goal = ("calls", goal[1])
                self.put(item, goal)
            else:
                raise AssemblyError(f"{item} cannot stand elsewhere", todo="count with --method callgrind")
        elif item.is_ip_rel_memory_operand:
            self.put(item)
        else:
            self.items.append(Item(raw=raw))

    def _by_way_of(self, raw: bytes, near: int, goal: Key | None) -> None:
        """An instruction that reaches 127 bytes only jumps over a jump to the far place."""
        self.items.append(Item(raw=raw[:-1] + b"\x02"))
        self.items.append(Item(raw=b"\xeb\x05"))
        self.put(Instruction.create_branch(Code.JMP_REL32_64, near), goal)

    def assemble(self, place: int) -> tuple[bytes, dict[Key, int]]:
        """The bytes of the copy at an address, and where each label is.

        Raises:
            AssemblyError: a distance is longer than 2 GiB, or the encoder knows no such instruction.
        """
        encoder = Encoder(64)
        labels: dict[Key, int] = {}
        for final in (False, True):
            at, parts = place, []
            for item in self.items:
                if item.label is not None:
                    labels[item.label] = at
                    continue
                raw = item.raw
                if item.instruction is not None:
                    if item.target is not None:
                        item.instruction.near_branch64 = labels[item.target] if final else at
                    raw = self._encoded(encoder, item.instruction, at)
                parts.append(raw)
                at += len(raw)
        return b"".join(parts), labels

    @staticmethod
    def _encoded(encoder: Encoder, instruction: Instruction, at: int) -> bytes:
        try:
            encoder.encode(instruction, at)
        except ValueError as error:
            raise AssemblyError(
                f"{instruction} cannot stand elsewhere: {error}", todo="count with --method callgrind"
            ) from error
        return bytes(encoder.take_buffer())


def _short_only(item: iced.Instruction) -> bool:
    return item.is_jcx_short or item.is_loop or item.is_loopcc


def memory_at(address: int) -> MemoryOperand:
    """A word at an address within 2 GiB of the code."""
    return MemoryOperand(Register.RIP, displ=address, displ_size=8)
