"""What x86-64 instructions do to registers, addresses and flags (Intel SDM vol. 2), as linear expressions.

One rule a mnemonic. Index arithmetic is taken not to overflow, 32-bit operations included, as in C; constants wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Literal

from kernmodel.isa.linear import ZERO, Comparison, Linear, MemoryValues, RegisterValues, address_of
from kernmodel.isa.model import Instruction, Operand
from kernmodel.isa.protocol import Effect, Registers
from kernmodel.value_types import dataclass

GENERAL = ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{number}" for number in range(8, 16)))
REGISTERS = Registers(
    stack_pointer="rsp",
    frame=frozenset({"rsp", "rbp"}),
    general=frozenset(GENERAL),
    program_counter="rip",
    # System V psABI, 3.2.1
    arguments=("rdi", "rsi", "rdx", "rcx", "r8", "r9"),
    vectors=tuple(f"zmm{number}" for number in range(8)),
    clobbered=("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11"),
    halved=frozenset({"rax", "rbx", "rcx", "rdx"}),
    advanced=frozenset({"rsp", "rsi", "rdi"}),
)
WIDE = frozenset({"r32", "r64"})
_TRACKED = WIDE | {"xmm", "k"}  # a general register is sometimes kept in a vector or mask register
_WORDS = frozenset({4, 8})


@dataclass(slots=True)
class _Step:
    """An instruction, what is known before it, and what its rule has found out."""

    instruction: Instruction
    registers: RegisterValues
    memory: MemoryValues
    written: dict[str, Linear] = field(default_factory=dict)
    stores: list[tuple[int, Linear]] = field(default_factory=list)

    @property
    def operands(self) -> tuple[Operand, ...]:
        return self.instruction.operands

    def read(self, number: int) -> Linear | None:
        """The value of an operand of 32 or 64 bits, or of a vector or mask register that holds such a value."""
        operand = self.instruction.operands[number]
        if operand.immediate is not None:
            # the decoder gives 32-bit immediates without sign; only i64 holds numbers of that size
            narrow = operand.kind != "i64" and operand.immediate >= 0
            return Linear(_signed(operand.immediate) if narrow else operand.immediate)
        if operand.register is not None:
            return self.registers(operand.register) if operand.kind in _TRACKED else None
        known = operand.memory is not None and operand.memory.size_bytes in _WORDS
        return self.memory(0) if known else None

    def write(self, number: int, value: Linear | None) -> None:
        """Give an operand its value; only registers of 32 or 64 bits, vector and mask registers keep it."""
        operand = self.instruction.operands[number]
        if value is None:
            return
        if operand.memory is not None:
            self.stores.append((0, value))
        elif operand.register is not None and operand.kind in _TRACKED:
            narrow = operand.kind == "r32" and not value.terms
            self.written[operand.register] = Linear(_signed(value.constant)) if narrow else value

    def move_stack(self, number_of_bytes: int) -> None:
        top = self.registers("rsp")
        if top is not None:
            self.written["rsp"] = top + Linear(number_of_bytes)


def _signed(value: int) -> int:
    """`value` modulo 2^32 as a signed number."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def effect(instruction: Instruction, registers: RegisterValues, memory: MemoryValues) -> Effect:
    """What an instruction does, as `Isa.effect` says."""
    references = instruction.memory
    addresses = tuple([address_of(one, registers, "rip") for one in references]) if references else ()
    rule = _RULES.get(instruction.mnemonic)
    if rule is None:
        if not instruction.mnemonic.startswith("cmov"):
            return Effect(addresses) if addresses else _NOTHING
        rule = _move_if
    step = _Step(instruction, registers, memory)
    compared = rule(step)
    known = addresses, tuple(step.written.items()), tuple(step.stores), compared
    bits = _bits(instruction) if instruction.mnemonic in _TRANSFERS else 0
    return Effect(*known, _TRANSFERS[instruction.mnemonic], bits) if bits else Effect(*known)


_NOTHING = Effect()
_TRANSFERS: dict[str, Literal["copy", "address"]] = {
    **dict.fromkeys(("mov", "movsxd", "movsx", "movzx"), "copy"),
    "lea": "address",
}


def _bits(instruction: Instruction) -> int:
    """Bits that a copy of a register hands on or an address is cut to; 0 for other moves."""
    target, source = instruction.operands
    if instruction.mnemonic == "lea":
        return int(target.kind[1:])
    if target.kind not in WIDE or source.register not in REGISTERS.general:
        return 0
    return int(source.kind[1:].rstrip("h"))


def _move(step: _Step) -> None:
    step.write(0, step.read(1))


def _move_vector(step: _Step) -> None:
    """Move between a vector or mask register and a general one, or memory: compilers keep pointers in such registers,
    and spill them from there."""
    step.write(0, step.read(-1))


def _copy_vector(step: _Step) -> None:
    """Copy a vector register of 128 bits, with the pointer that may be kept in it."""
    if all(operand.kind == "xmm" for operand in step.operands):
        step.write(0, step.read(-1))


def _move_if(step: _Step) -> None:
    kept, moved = step.read(0), step.read(1)
    if kept == moved:
        step.write(0, kept)


def _extend(step: _Step) -> None:
    """cdqe: rax becomes what eax is as a signed number."""
    value = step.registers("rax")
    if value is not None:
        step.written["rax"] = value


def _add(step: _Step) -> Comparison | None:
    return _update(step, 1)


def _subtract(step: _Step) -> Comparison | None:
    return _update(step, -1)


def _update(step: _Step, sign: int) -> Comparison | None:
    amount = Linear(1) if len(step.operands) == 1 else step.read(1)
    old = step.read(0)
    if old is None or amount is None:
        return None
    value = old + amount * sign
    step.write(0, value)
    return Comparison.of_sum(value, sign, amount)


def _negate(step: _Step) -> Comparison | None:
    old = step.read(0)
    if old is None:
        return None
    step.write(0, old * -1)
    return Comparison(old * -1)


def _invert(step: _Step) -> None:
    old = step.read(0)
    step.write(0, None if old is None else old * -1 - Linear(1))


def _load_address(step: _Step) -> None:
    reference = step.operands[1].memory
    if reference is not None:
        step.write(0, address_of(reference, step.registers, "rip"))


def _shift_left(step: _Step) -> None:
    amount, value = _amount(step), step.read(0)
    if amount is not None and value is not None:
        step.write(0, value * (1 << amount))


def _shift_right(step: _Step) -> None:
    amount, value = _amount(step), step.read(0)
    if amount is not None and value is not None:
        step.write(0, value.shifted_right(amount))


def _amount(step: _Step) -> int | None:
    if len(step.operands) == 1:
        return 1
    amount = step.operands[-1].immediate
    return None if amount is None else amount & 63


def _multiply(step: _Step) -> None:
    if len(step.operands) == 1:
        return
    left, right = step.read(-2), step.read(-1)
    if left is not None and right is not None:
        step.write(0, left.times(right))


_OPERATIONS: dict[str, Callable[[int, int], int]] = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}


def _bitwise(step: _Step) -> Comparison | None:
    """xor of a register with itself; and, or, xor of constants."""
    name, alike = step.instruction.mnemonic, step.instruction.same_register
    if alike and name == "xor":
        step.write(0, ZERO)
        return Comparison(ZERO)
    left, right = step.read(0), step.read(1)
    value = left if alike else None
    if left is not None and right is not None and not (left.terms or right.terms):
        value = Linear(_OPERATIONS[name](left.constant, right.constant))
    elif right == ZERO and name == "and":
        value = ZERO
    step.write(0, value)
    return None if value is None else Comparison(value)


def _exchange(step: _Step) -> None:
    if step.operands:  # a two-byte nop is written as an exchange of ax with itself
        first, second = step.read(0), step.read(1)
        step.write(0, second)
        step.write(1, first)


def _compare(step: _Step) -> Comparison | None:
    left, right = step.read(0), step.read(1)
    if left is None or right is None:
        return None
    return Comparison(left - right, left - right)


def _test(step: _Step) -> Comparison | None:
    value = step.read(0) if step.instruction.same_register else None
    return None if value is None else Comparison(value)


def _push(step: _Step) -> None:
    value, place = step.read(0), len(step.instruction.memory) - 1
    step.move_stack(-step.instruction.memory[place].size_bytes)
    if value is not None:
        step.stores.append((place, value))


def _pop(step: _Step) -> None:
    place = len(step.instruction.memory) - 1
    value = step.memory(place)
    step.move_stack(step.instruction.memory[place].size_bytes)
    if step.operands[0].register == "rsp":
        step.written.clear()
    step.write(0, value)


def _leave(step: _Step) -> None:
    frame, value = step.registers("rbp"), step.memory(0)
    if frame is not None:
        step.written["rsp"] = frame + Linear(8)
    if value is not None:
        step.written["rbp"] = value


def _call(step: _Step) -> None:
    step.move_stack(-8)


def _return(step: _Step) -> None:
    step.move_stack(8)


_VECTOR_COPIES = [
    f"{v}{name}" for v in ("", "v") for name in ("movaps", "movapd", "movdqa", "movups", "movupd", "movdqu")
] + ["vmovdqa32", "vmovdqa64", "vmovdqu32", "vmovdqu64"]
_RULES: dict[str, Callable[[_Step], Comparison | None]] = {
    **dict.fromkeys(("mov", "movabs", "movsxd"), _move),
    **dict.fromkeys(("movq", "vmovq", "movd", "vmovd", "kmovq", "kmovd"), _move_vector),
    **dict.fromkeys(_VECTOR_COPIES, _copy_vector),
    **dict.fromkeys(("add", "inc"), _add),
    **dict.fromkeys(("sub", "dec"), _subtract),
    **dict.fromkeys(("shl", "sal"), _shift_left),
    **dict.fromkeys(("shr", "sar"), _shift_right),
    **dict.fromkeys(("and", "or", "xor"), _bitwise),
    **dict.fromkeys(("movsx", "movzx"), lambda _: None),
    "cdqe": _extend,
    "neg": _negate,
    "not": _invert,
    "lea": _load_address,
    "imul": _multiply,
    "xchg": _exchange,
    "cmp": _compare,
    "test": _test,
    "push": _push,
    "pop": _pop,
    "leave": _leave,
    "call": _call,
    "ret": _return,
}
