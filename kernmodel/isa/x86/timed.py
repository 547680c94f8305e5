"""Code that times the calls of an x86-64 function, which itself stays as it is but for the jump over its first bytes.

The stub takes the return address off the stack, reads the clock, calls the function's first instructions, which go on
in the function, reads the clock again and returns by the old return address: every call has its return, so that no
return is mispredicted, and arguments on the stack are where they were. Calls within a call (recursion) go through.

Before and after each call a chain of dependent additions is timed, one cycle each on every core, which tells the core's
clock in ticks of the time stamp counter; and a loop with two loads and a taken branch in each cycle, which takes longer
where a sibling thread is awake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iced_x86 import Code, Instruction, MemoryOperand, Register

from kernmodel.isa.timing import CHAIN_CYCLES, EMPTY_CALLS, ISSUE_PASSES, LOGGED_CALLS, TimedCode, TimedData
from kernmodel.isa.x86.decode import decode_raw
from kernmodel.isa.x86.emit import Emitter, memory_at

if TYPE_CHECKING:
    from iced_x86 import Register_

_AT_ONCE = 64
_JUMP_BYTES = 5
_ENTRY_SHIFT = 5
"""log2 of the bytes of an entry of the log."""
_KEPT = (Register.RAX, Register.RDX, Register.RCX)


def timed_code(code: bytes, address: int, place: int, data: int, *, shift: int) -> TimedCode | None:
    """The stub, as `Isa.timed_code` says."""
    first = _first(code, address, shift)
    if first is None:
        return None
    emitter = Emitter(shift)
    layout = TimedData(data)
    _branches(emitter)
    emitter.label("stub")
    _stub(emitter, layout, "body")
    emitter.label("body")
    for item, raw in first[1]:
        emitter.instruction(item, raw, {})
    emitter.put(Instruction.create_branch(Code.JMP_REL32_64, address + first[0] + shift))
    empty = TimedData(layout.end)
    emitter.label("empty stub")
    _stub(emitter, empty, "nothing")
    emitter.label("nothing")
    emitter.raw(b"\xc3")
    emitter.label("calibrate")
    emitter.put(Instruction.create_mem_i32(Code.MOV_RM64_IMM32, memory_at(empty.spare), EMPTY_CALLS))
    emitter.label("again")
    emitter.put(Instruction.create_branch(Code.CALL_REL32_64, 0), ("empty stub", 0))
    emitter.put(Instruction.create_mem_i32(Code.SUB_RM64_IMM8, memory_at(empty.spare), 1))
    emitter.put(Instruction.create_branch(Code.JNE_REL32_64, 0), ("again", 0))
    emitter.raw(b"\xcc")
    made, labels = emitter.assemble(place)
    return TimedCode(made, labels["stub", 0], labels["calibrate", 0], empty)


def _first(code: bytes, address: int, shift: int) -> tuple[int, Sequence[tuple[Instruction, bytes]]] | None:
    """The instructions that the jump to the stub overwrites, and how many bytes they have; None where the code ends
    before."""
    items = []
    length = 0
    for item, _ in decode_raw(code, address + shift):
        if item.ip != address + shift + length:
            return None
        items.append((item, code[length : length + item.len]))
        length += item.len
        if length >= _JUMP_BYTES:
            return length, items
    return None


def _stub(emitter: Emitter, data: TimedData, body: str) -> None:
    """Time one call of `body`."""
    nested, full = f"{body} nested", f"{body} full"
    _store(emitter, Register.RAX, data.kept)
    emitter.put(Instruction.create_mem_i32(Code.CMP_RM64_IMM8, memory_at(data.active), 0))
    emitter.put(Instruction.create_branch(Code.JNE_REL32_64, 0), (nested, 0))
    emitter.put(Instruction.create_mem_i32(Code.MOV_RM64_IMM32, memory_at(data.active), 1))
    emitter.put(Instruction.create_mem(Code.POP_RM64, memory_at(data.back)))
    _store(emitter, Register.RDX, data.kept + 8)
    _store(emitter, Register.RCX, data.kept + 16)
    _chain(emitter, data, f"{body} before")
    _store(emitter, Register.RAX, data.before)
    _issue(emitter, data)
    _store(emitter, Register.RAX, data.issue)
    _clock(emitter)
    _store(emitter, Register.RAX, data.start)
    _restore(emitter, data)
    emitter.put(Instruction.create_branch(Code.CALL_REL32_64, 0), (body, 0))
    for number, register in enumerate(_KEPT):
        _store(emitter, register, data.kept + 8 * number)
    _clock(emitter)
    emitter.put(Instruction.create_reg_mem(Code.SUB_R64_RM64, Register.RAX, memory_at(data.start)))
    _store(emitter, Register.RAX, data.ticks)
    emitter.put(Instruction.create_mem_reg(Code.ADD_RM64_R64, memory_at(data.total), Register.RAX))
    _issue(emitter, data)
    emitter.put(Instruction.create_reg_i32(Code.SHL_RM64_IMM8, Register.RAX, 32))
    emitter.put(Instruction.create_mem_reg(Code.ADD_RM64_R64, memory_at(data.issue), Register.RAX))
    _chain(emitter, data, f"{body} after")
    _load(emitter, Register.RCX, data.calls)
    emitter.put(Instruction.create_mem_i32(Code.ADD_RM64_IMM8, memory_at(data.calls), 1))
    emitter.put(Instruction.create_reg_i32(Code.CMP_RM64_IMM32, Register.RCX, LOGGED_CALLS))
    emitter.put(Instruction.create_branch(Code.JAE_REL32_64, 0), (full, 0))
    emitter.put(Instruction.create_reg_i32(Code.SHL_RM64_IMM8, Register.RCX, _ENTRY_SHIFT))
    emitter.put(Instruction.create_reg_mem(Code.LEA_R64_M, Register.RDX, memory_at(data.log)))
    emitter.put(Instruction.create_reg_reg(Code.ADD_R64_RM64, Register.RCX, Register.RDX))
    for number, source in ((2, None), (1, data.before), (0, data.ticks), (3, data.issue)):
        register = Register.RAX
        if source is not None:
            _load(emitter, register, source)
        memory = MemoryOperand(Register.RCX, displ=8 * number, displ_size=1)
        emitter.put(Instruction.create_mem_reg(Code.MOV_RM64_R64, memory, register))
    emitter.label(full)
    emitter.put(Instruction.create_mem_i32(Code.MOV_RM64_IMM32, memory_at(data.active), 0))
    _restore(emitter, data)
    emitter.put(Instruction.create_mem(Code.PUSH_RM64, memory_at(data.back)))
    emitter.raw(b"\xc3")
    emitter.label(nested)
    _load(emitter, Register.RAX, data.kept)
    emitter.jump((body, 0))


def _store(emitter: Emitter, register: Register_, address: int) -> None:
    emitter.put(Instruction.create_mem_reg(Code.MOV_RM64_R64, memory_at(address), register))


def _load(emitter: Emitter, register: Register_, address: int) -> None:
    emitter.put(Instruction.create_reg_mem(Code.MOV_R64_RM64, register, memory_at(address)))


def _restore(emitter: Emitter, data: TimedData) -> None:
    for number, register in enumerate(_KEPT):
        _load(emitter, register, data.kept + 8 * number)


def _clock(emitter: Emitter) -> None:
    """The time stamp counter in rax, when everything before is done; rcx and rdx are lost."""
    # rdtscp; lfence; shl rdx,32; or rax,rdx
    emitter.raw(bytes.fromhex("0f01f9 0faee8 48c1e220 4809d0"))


def _chain(emitter: Emitter, data: TimedData, name: str) -> None:
    """The ticks of a chain of additions in rax; rcx and rdx are lost."""
    _start(emitter, data, CHAIN_CYCLES // _AT_ONCE)
    emitter.raw(bytes.fromhex("b801000000 ba01000000"))  # mov eax,1; mov edx,1
    emitter.label(name)
    emitter.raw(bytes.fromhex("4801d0") * _AT_ONCE)  # add rax,rdx
    emitter.raw(bytes.fromhex("ffc9"))  # dec ecx
    emitter.put(Instruction.create_branch(Code.JNE_REL32_64, 0), (name, 0))
    _stop(emitter, data)


def _branches(emitter: Emitter) -> None:
    """A function that makes `ecx` passes of two loads and a taken branch, at the beginning of the code, where it
    crosses no line. What it leaves in rax and rdx means nothing."""
    emitter.label("branches")
    # mov rax,[rsp]; mov rdx,[rsp]; dec ecx; jne; ret
    emitter.raw(bytes.fromhex("488b0424 488b1424 ffc9 75f4 c3"))


def _issue(emitter: Emitter, data: TimedData) -> None:
    """The ticks of the loop of branches in rax; rcx and rdx are lost."""
    _start(emitter, data, ISSUE_PASSES)
    emitter.put(Instruction.create_branch(Code.CALL_REL32_64, 0), ("branches", 0))
    _stop(emitter, data)


def _start(emitter: Emitter, data: TimedData, passes: int) -> None:
    _clock(emitter)
    _store(emitter, Register.RAX, data.chain)
    emitter.put(Instruction.create_reg_i32(Code.MOV_R32_IMM32, Register.ECX, passes))


def _stop(emitter: Emitter, data: TimedData) -> None:
    """The ticks since `_start` in rax."""
    _clock(emitter)
    emitter.put(Instruction.create_reg_mem(Code.SUB_R64_RM64, Register.RAX, memory_at(data.chain)))
