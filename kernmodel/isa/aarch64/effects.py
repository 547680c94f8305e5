"""What AArch64 instructions do to addresses and counters: linear expressions of what registers held before.

Index arithmetic of 32 bits is taken not to wrap around, as in C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Literal

from kernmodel.isa.aarch64.instructions import ALL_ELEMENTS
from kernmodel.isa.linear import ZERO, Comparison, Linear, MemoryValues, RegisterValues, address_of
from kernmodel.isa.model import Instruction
from kernmodel.isa.protocol import Effect, Registers
from kernmodel.value_types import dataclass

GENERAL = (*(f"x{number}" for number in range(31)), "sp")
REGISTERS = Registers(
    stack_pointer="sp",
    frame=frozenset({"sp", "x29"}),
    general=frozenset(GENERAL),
    # Procedure Call Standard for the Arm 64-bit Architecture (AAPCS64), 6.1.1
    arguments=tuple(f"x{number}" for number in range(8)),
    vectors=tuple(f"v{number}" for number in range(8)),
    kept_vectors=frozenset(f"v{number}" for number in range(8, 16)),
    clobbered=tuple(f"x{number}" for number in (*range(19), 30)),
    # a written-back base waits for itself, not for the data that is loaded or stored (DDI 0487, C1.3.3)
    advanced=frozenset(GENERAL),
)
_WORDS = frozenset({4, 8})
_SIGN = 1 << 63
_COUNTS = {"b": 1, "h": 2, "w": 4, "d": 8}


@dataclass(slots=True)
class _Step:
    """An instruction, what is known before it, and what its rule has found out."""

    instruction: Instruction
    registers: RegisterValues
    memory: MemoryValues
    sve_bytes: int
    written: dict[str, Linear] = field(default_factory=dict)
    stores: list[tuple[int, Linear]] = field(default_factory=list)

    def read(self, number: int) -> Linear | None:
        """The value of a general register, a zero register or an immediate."""
        operand = self.instruction.operands[number]
        if operand.immediate is not None:
            return Linear(operand.immediate)
        return self.registers(operand.register) if operand.register in REGISTERS.general else None

    def shifted(self, number: int) -> Linear | None:
        """The value of an operand, shifted or extended as the next one says."""
        value = self.read(number)
        if value is None or number + 1 >= len(self.instruction.operands):
            return value
        shift = self.instruction.operands[number + 1]
        if shift.kind[:3] in ("lsr", "asr", "ror"):
            return None
        return value * (1 << min(shift.immediate or 0, 63))

    def write(self, number: int, value: Linear | None) -> None:
        """Give a general register its value."""
        operand = self.instruction.operands[number]
        if value is not None and operand.register in REGISTERS.general:
            self.written[operand.register] = value


def effect(instruction: Instruction, registers: RegisterValues, memory: MemoryValues, sve_bytes: int) -> Effect:
    """What an instruction does, as `Isa.effect` says; `sve_bytes` are those of a vector of SVE."""
    references = instruction.memory
    addresses = tuple([address_of(one, registers) for one in references]) if references else ()
    step = _Step(instruction, registers, memory, sve_bytes)
    if instruction.implicit_writes and references:
        _advance(step)
    rule = _RULES.get(instruction.mnemonic)
    compared = rule(step) if rule is not None else None
    transfer: Literal["copy"] | None = None
    bits = 64
    if instruction.mnemonic == "mov" and instruction.form in ("mov x,x", "mov w,w"):
        transfer, bits = "copy", 64 if instruction.form == "mov x,x" else 32
    return Effect(addresses, tuple(step.written.items()), tuple(step.stores), compared, transfer, bits)


def _advance(step: _Step) -> None:
    """The base that is written back: by a constant or a register."""
    reference = step.instruction.memory[0]
    old = step.registers(reference.base or "")
    operand, *behind = [one for one in step.instruction.operands if one.memory is not None or one.kind == ",x"]
    by = step.registers(behind[0].register or "") if behind else Linear(operand.immediate or 0)
    if old is None:
        return
    if by is not None:
        step.written[reference.base or ""] = old + by


def _move(step: _Step) -> None:
    step.write(0, step.read(1))


def _keep(step: _Step) -> None:
    """movk replaces 16 bits: known where all is constant."""
    old, new = step.read(0), step.read(1)
    shift = step.instruction.operands[2].immediate or 0 if len(step.instruction.operands) > 2 else 0
    if old is not None and new is not None and not old.terms:
        value = old.constant & ~(0xFFFF << shift) | new.constant << shift
        step.write(0, Linear((value + _SIGN) % (1 << 64) - _SIGN))


def _sum(sign: int, sets_flags: bool) -> Callable[[_Step], Comparison | None]:
    def rule(step: _Step) -> Comparison | None:
        left, right = step.read(1), step.shifted(2)
        if left is None or right is None:
            return None
        value = left + right * sign
        step.write(0, value)
        return Comparison.of_sum(value, sign, right) if sets_flags else None

    return rule


def _compare(sign: int) -> Callable[[_Step], Comparison | None]:
    def rule(step: _Step) -> Comparison | None:
        left, right = step.read(0), step.shifted(1)
        if left is None or right is None:
            return None
        return Comparison.of_sum(left + right * sign, sign, right)

    return rule


def _test(step: _Step) -> Comparison | None:
    first, second = step.instruction.operands[:2]
    value = step.read(0) if first.register is not None and first.register == second.register else None
    return None if value is None else Comparison(value)


def _compare_zero(step: _Step) -> Comparison | None:
    value = step.read(0)
    return None if value is None else Comparison(value)


def _shift_left(step: _Step) -> None:
    value, amount = step.read(1), step.instruction.operands[2].immediate
    step.write(0, None if value is None or amount is None else value * (1 << (amount & 63)))


def _shift_right(step: _Step) -> None:
    value, amount = step.read(1), step.instruction.operands[2].immediate
    if value is not None and amount is not None:
        step.write(0, value.shifted_right(amount & 63))


def _multiply(step: _Step) -> None:
    step.write(0, _product(step))


def _product(step: _Step) -> Linear | None:
    left, right = step.read(1), step.read(2)
    return None if left is None or right is None else left.times(right)


def _multiply_add(step: _Step) -> None:
    product, addend = _product(step), step.read(3)
    step.write(0, None if product is None or addend is None else addend + product)


def _negate(step: _Step) -> None:
    value = step.shifted(1)
    step.write(0, None if value is None else value * -1)


def _address(step: _Step) -> None:
    """adr and adrp: the symbol; its low part, added later, is 0 beside it."""
    reference = step.instruction.memory[0] if step.instruction.memory else None
    step.write(0, address_of(reference, step.registers) if reference is not None else None)


def _load(step: _Step) -> None:
    known = len(step.instruction.memory) == 1 and step.instruction.memory[0].size_bytes in _WORDS
    if known and step.instruction.operands[0].kind in ("x", "w"):
        step.write(0, step.memory(0))


def _store(step: _Step) -> None:
    value = step.read(0) if step.instruction.operands[0].kind in ("x", "w") else None
    if value is not None:
        step.stores.append((0, value))


def _count(sign: int | None) -> Callable[[_Step], None]:
    """cntd, incd, decd: elements of a vector, times a factor; of all patterns but `all` nothing is known."""

    def rule(step: _Step) -> None:
        operands = step.instruction.operands
        patterns = [operand.immediate for operand in operands if operand.kind == "pattern"]
        if patterns not in ([], [ALL_ELEMENTS]) or operands[0].kind != "x":
            return
        factor = next((o.immediate or 1 for o in operands if o.kind == "mul#n"), 1)
        elements = Linear(step.sve_bytes // _COUNTS[step.instruction.mnemonic[-1]] * factor)
        old = step.read(0) if sign is not None else ZERO
        step.write(0, None if old is None else old + elements * (sign or 1))

    return rule


def _add_lengths(step: _Step) -> None:
    """addvl and addpl add vector lengths and predicate lengths."""
    unit = step.sve_bytes // (8 if step.instruction.mnemonic == "addpl" else 1)
    old, times = step.read(1), step.instruction.operands[2].immediate
    step.write(0, None if old is None or times is None else old + Linear(unit * times))


def _read_length(step: _Step) -> None:
    times = step.instruction.operands[1].immediate
    step.write(0, None if times is None else Linear(step.sve_bytes * times))


def _while(step: _Step) -> Comparison | None:
    """whilelo, whilelt: the loop goes on (first, mi) while the first number is below the second."""
    left, right = step.read(1), step.read(2)
    return None if left is None or right is None else Comparison(left - right, left - right)


_RULES: dict[str, Callable[[_Step], Comparison | None]] = {
    **dict.fromkeys(("mov", "sxtw", "uxtw"), _move),
    "movk": _keep,
    "add": _sum(1, sets_flags=False),
    "adds": _sum(1, sets_flags=True),
    "sub": _sum(-1, sets_flags=False),
    "subs": _sum(-1, sets_flags=True),
    "cmp": _compare(-1),
    "cmn": _compare(1),
    "tst": _test,
    **dict.fromkeys(("lsl", "ubfiz", "sbfiz"), _shift_left),  # the last two as far as the value fits
    **dict.fromkeys(("lsr", "asr"), _shift_right),
    **dict.fromkeys(("mul", "smull", "umull"), _multiply),
    **dict.fromkeys(("madd", "smaddl", "umaddl"), _multiply_add),
    **dict.fromkeys(("neg", "negs"), _negate),
    **dict.fromkeys(("adr", "adrp"), _address),
    **dict.fromkeys(("ldr", "ldur"), _load),
    **dict.fromkeys(("str", "stur"), _store),
    **dict.fromkeys(("cbz", "cbnz"), _compare_zero),
    **{f"cnt{size}": _count(None) for size in _COUNTS},
    **{f"inc{size}": _count(1) for size in _COUNTS},
    **{f"dec{size}": _count(-1) for size in _COUNTS},
    **dict.fromkeys(("addvl", "addpl"), _add_lengths),
    "rdvl": _read_length,
    **dict.fromkeys(("whilelo", "whilelt"), _while),
}
