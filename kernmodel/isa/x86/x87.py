"""The x87 register stack: instructions name registers by their distance from its top, which most of them move.

`with_fixed_registers` gives every register one name for a whole block, so that values can be followed through pushes
and pops. fxch stays an instruction that exchanges two registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernmodel.isa.model import Instruction
from kernmodel.patterns import pattern

_DEPTH = 8
_STACK = pattern(r"st([0-7])")
_LOADS = pattern(r"f(?:ld(?!cw|env)|ild|bld|decstp)")
_RESULT_PUSHED = frozenset({"fptan", "fsincos", "fxtract"})
"""Instructions that replace the top and push a second result."""
_POPS = pattern(r"f(?:i?(?:add|subr?|mul|divr?|com|st|stt)p|ucomp|u?comip|bstp|freep|incstp|patan|yl2x(?:p1)?)")
_POPS_TWICE = frozenset({"fcompp", "fucompp"})
_NO_RESULT = frozenset({"fdecstp"})


def uses_stack(instruction: Instruction) -> bool:
    """Whether the instruction is of the x87 unit: it names its registers, or may move the top of the stack."""
    return instruction.mnemonic[:1] == "f" and (pushed(instruction) != 0 or _names_stack(instruction))


def pushed(instruction: Instruction) -> int:
    """Registers that the instruction pushes on the stack, less those that it pops."""
    name = instruction.mnemonic
    if name in _POPS_TWICE:
        return -2
    if _POPS.fullmatch(name):
        return -1
    return int(bool(_LOADS.match(name)) or name in _RESULT_PUSHED)


def with_fixed_registers(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """The instructions with x87 registers that keep their names while the top of the stack moves.

    st0 is the top at the start of the block. What an instruction pushes is added to its implicit writes. A loop whose
    passes do not leave the top where it was is taken as if they did.
    """
    top = 0
    fixed = []
    for instruction in instructions:
        if not uses_stack(instruction):
            fixed.append(instruction)
            continue
        moved = pushed(instruction)
        renamed = _renamed(instruction, top)
        if moved > 0 and instruction.mnemonic not in _NO_RESULT:
            renamed = replace(renamed, implicit_writes=(*renamed.implicit_writes, _name(top - 1)))
        fixed.append(renamed)
        top = (top - moved) % _DEPTH
    return tuple(fixed)


def _names_stack(instruction: Instruction) -> bool:
    named = (*instruction.implicit_reads, *instruction.implicit_writes, *(o.register for o in instruction.operands))
    return any(name is not None and _STACK.fullmatch(name) for name in named)


def _renamed(instruction: Instruction, top: int) -> Instruction:
    operands = tuple(
        replace(operand, register=_fixed(operand.register, top)) if operand.register else operand
        for operand in instruction.operands
    )
    reads = tuple(_fixed(name, top) for name in instruction.implicit_reads)
    writes = tuple(_fixed(name, top) for name in instruction.implicit_writes)
    return replace(instruction, operands=operands, implicit_reads=reads, implicit_writes=writes)


def _fixed(name: str, top: int) -> str:
    match = _STACK.fullmatch(name)
    return _name(top + int(match[1])) if match else name


def _name(place: int) -> str:
    return f"st{place % _DEPTH}"
