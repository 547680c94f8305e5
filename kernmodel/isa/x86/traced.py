"""Copies of x86-64 functions that record the address of every access to memory, and where that is asked for the path
through their blocks, by re-encoding each instruction.

Before an instruction with a memory operand its address is computed by lea and put into a buffer, with the number of
the access; registers and flags stay. The buffer ends at a page that cannot be written: the fault there says that it is
full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import iced_x86 as iced
from iced_x86 import Code, Instruction, MemoryOperand, Register

from kernmodel.isa.counting import CountedBlock, TracedAccess, TracedCopy
from kernmodel.isa.model import Instruction as Decoded
from kernmodel.isa.x86.decode import decode_raw, signed
from kernmodel.isa.x86.emit import RED_ZONE, Emitter, Key, memory_at
from kernmodel.value_types import dataclass

_SAVED = 16
"""Bytes that are pushed while an address is computed."""
_RECORD = 16
_LEFT_OUT = ("rep ", "repne ")


@dataclass(slots=True)
class _Tracer(Emitter):
    """The copy as it grows, and the accesses that it records."""

    pointer: int = 0
    accesses: list[TracedAccess] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)

    def record(self, operand: MemoryOperand, accesses: Sequence[TracedAccess]) -> None:
        """Put the address of an operand into the buffer, once for each access."""
        self.move_stack(-RED_ZONE)
        self.put(Instruction.create_reg(Code.PUSH_R64, Register.RAX))
        self.put(Instruction.create_reg(Code.PUSH_R64, Register.RCX))
        self.put(Instruction.create_reg_mem(Code.LEA_R64_M, Register.RAX, operand))
        self.put(Instruction.create_reg_mem(Code.MOV_R64_RM64, Register.RCX, memory_at(self.pointer)))
        for access in accesses:
            self.accesses.append(access)
            number = len(self.accesses) - 1
            self.put(Instruction.create_mem_reg(Code.MOV_RM64_R64, MemoryOperand(Register.RCX), Register.RAX))
            behind = MemoryOperand(Register.RCX, displ=8, displ_size=1)
            self.put(Instruction.create_mem_i32(Code.MOV_RM64_IMM32, behind, number))
            forward = MemoryOperand(Register.RCX, displ=_RECORD, displ_size=1)
            self.put(Instruction.create_reg_mem(Code.LEA_R64_M, Register.RCX, forward))
        self.put(Instruction.create_mem_reg(Code.MOV_RM64_R64, memory_at(self.pointer), Register.RCX))
        self.put(Instruction.create_reg(Code.POP_R64, Register.RCX))
        self.put(Instruction.create_reg(Code.POP_R64, Register.RAX))
        self.move_stack(RED_ZONE)

    def mark(self, place: TracedAccess) -> None:
        """Record that this place is reached; the address is that of the stack."""
        self.record(MemoryOperand(Register.RSP, displ=RED_ZONE + _SAVED, displ_size=8), (place,))


def traced_copy(
    blocks: Sequence[CountedBlock], entry: int, place: int, pointer: int, *, shift: int, path: bool
) -> TracedCopy:
    """A copy of a function that records its accesses, as `Isa.traced_copy` says."""
    tracer = _Tracer(shift, entry, pointer=pointer)
    goals: dict[int, Key] = {block.address: ("block", block.address) for block in blocks}
    for number, block in enumerate(blocks):
        following = blocks[number + 1].address if number + 1 < len(blocks) else None
        tracer.label("block", block.address)
        if path:
            tracer.mark(TracedAccess("block", 0, block.address))
        known = {item.address: item for item in block.instructions}
        for item, _ in decode_raw(block.code, block.address + shift):
            start = item.ip - shift - block.address
            _record(tracer, item, known[block.address + start])
            tracer.instruction(item, block.code[start : start + item.len], goals)
        behind = block.address + len(block.code)
        if block.instructions[-1].branch in (None, "conditional", "call") and following != behind:
            if behind in goals:
                tracer.jump(goals[behind])
            else:
                tracer.put(Instruction.create_branch(Code.JMP_REL32_64, behind + shift))
    tracer.label("calls", entry)
    tracer.mark(TracedAccess("call", 0))
    tracer.jump(("block", entry))
    code, labels = tracer.assemble(place)
    arrivals = {block.address: labels["block", block.address] for block in blocks}
    return TracedCopy(code, tuple(tracer.accesses), labels["calls", entry], arrivals, tuple(tracer.left_out))


def _record(tracer: _Tracer, item: iced.Instruction, decoded: Decoded) -> None:
    """Record what an instruction accesses by an operand that it names."""
    named = [one.memory for one in decoded.operands if one.memory is not None]
    accessed = [one for one in decoded.memory if one.size_bytes and (one.read or one.written)]
    if not accessed:
        return
    stack = decoded.branch in ("call", "return") or decoded.mnemonic in ("push", "pop", "leave", "enter")
    if item.is_vsib or item.has_segment_prefix or decoded.form.startswith(_LEFT_OUT) or not named:
        if not stack:
            tracer.left_out.append(decoded.address)
        return
    kinds = [kind for one in named if one.size_bytes for kind in _kinds(one.read, one.written)]
    if kinds:
        size = max(one.size_bytes for one in named)
        tracer.record(_operand(item), [TracedAccess(kind, size, decoded.address) for kind in kinds])


def _kinds(read: bool, written: bool) -> Iterator[str]:
    if read:
        yield "load"
    if written:
        yield "store"


def _operand(item: iced.Instruction) -> MemoryOperand:
    """The memory operand, where the stack pointer is lower by what was pushed."""
    if item.is_ip_rel_memory_operand:
        return memory_at(item.ip_rel_memory_address)
    pushed = sum(
        times * (RED_ZONE + _SAVED)
        for register, times in ((item.memory_base, 1), (item.memory_index, item.memory_index_scale))
        if register == Register.RSP
    )
    displacement = signed(item.memory_displacement) + pushed
    return MemoryOperand(
        item.memory_base, item.memory_index, item.memory_index_scale, displacement, 8, False, Register.NONE
    )
