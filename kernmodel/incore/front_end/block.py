"""From instructions and their rows to what the front end sees of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from kernmodel.incore.front_end.costs import Cost, instruction_cost
from kernmodel.incore.front_end.fusion import fuse
from kernmodel.incore.front_end.model import FrontEndBlock, Pair, Unit
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import FrontEndParameters
from kernmodel.isa.model import Instruction

_STACK_ENGINE = frozenset({"push", "pop", "call", "ret"})
"""Instructions whose change of rsp the stack engine keeps to itself (Optimization Reference Manual, stack pointer
tracker)."""
_STACK_POINTER = "rsp"


def front_end_block(
    instructions: Sequence[Instruction], rows: Sequence[InstructionData | None], core: FrontEndParameters
) -> FrontEndBlock:
    """What the front end of a core sees of a block.

    Args:
        instructions: the block in execution order, not empty.
        rows: their table rows (the indexed variant where it applies), None for unknown instructions.
        core: the front end.
    """
    starts = starts_of(instructions)
    length = starts[-1] + instructions[-1].length
    last = [0] * (length + 1)
    cut = [0] * (length + 1)
    for start, instruction in zip(starts, instructions, strict=True):
        end = start + instruction.length
        last[end] = 1
        opcode = start + instruction.encoding.opcode_offset
        if end - opcode > 1:
            cut[opcode + 1 : end] = (1,) * (end - opcode - 1)
    units, pairs = _units(instructions, rows, starts, core)
    return FrontEndBlock(
        length=length,
        ends=tuple(accumulate(last)),
        cut=tuple(cut),
        prefixed=tuple(
            s + i.encoding.opcode_offset
            for s, i in zip(starts, instructions, strict=True)
            if i.encoding.length_changing_prefix
        ),
        units=units,
        pairs=pairs,
        synchronisations=_synchronisations(instructions),
        unknown=tuple(number for number, row in enumerate(rows) if row is None),
        estimated=tuple(n for n, row in enumerate(rows) if row is not None and row.front_end is None),
    )


def starts_of(instructions: Sequence[Instruction]) -> list[int]:
    """Where each instruction starts: by their addresses, or one behind the other where these do not ascend."""
    base = instructions[0].address
    starts = []
    end = base
    for instruction in instructions:
        if instruction.address < end:
            return [0, *accumulate(i.length for i in instructions[:-1])]
        starts.append(instruction.address - base)
        end = instruction.address + instruction.length
    return starts


def _units(
    instructions: Sequence[Instruction],
    rows: Sequence[InstructionData | None],
    starts: Sequence[int],
    core: FrontEndParameters,
) -> tuple[tuple[Unit, ...], tuple[Pair, ...]]:
    """The units with all pairs fused, and the pairs."""
    units: list[Unit] = []
    pairs: list[Pair] = []
    jumps: tuple[str, ...] = ()  # that the instruction before fuses with
    for number, (instruction, row) in enumerate(zip(instructions, rows, strict=True)):
        if row is None:
            jumps = ()
            continue
        cost = instruction_cost(instruction, row, core)
        unit = _unit(number, starts[number], instruction, cost)
        if instruction.branch == "conditional" and instruction.mnemonic in jumps:
            pairs.append(Pair(len(units) - 1, unit.start, (units[-1], unit)))
            units[-1] = fuse(units[-1], unit)
        else:
            units.append(unit)
        jumps = cost.fusible_with
    return tuple(units), tuple(pairs)


def _unit(number: int, start: int, instruction: Instruction, cost: Cost) -> Unit:
    branch = instruction.branch is not None
    return Unit(
        number,
        start,
        start + instruction.length,
        cost.decoded,
        cost.microcoded,
        cost.slots,
        cost.complex,
        cost.simple,
        bool(cost.fusible_with),
        branch,
        branch or cost.ends_group,
    )


def _synchronisations(instructions: Sequence[Instruction]) -> int:
    """How often per execution, over and over, rsp is read although the stack engine is ahead of it.

    The engine then inserts a µop that brings rsp up to date (Optimization Reference Manual, stack pointer tracker;
    A. Fog, microarchitecture.pdf). A write of rsp without a read makes the engine's offset void.
    """
    moving = [moves_stack(instruction) for instruction in instructions]
    if not any(moving):
        return 0
    inserted = 0
    ahead = False
    for again in (False, True):  # what the execution before leaves behind counts
        for instruction, moves in zip(instructions, moving, strict=True):
            read, written = uses_of_rsp(instruction, moves)
            inserted += again and ahead and read
            ahead = moves or (ahead and not read and not written)
    return inserted


def moves_stack(instruction: Instruction) -> bool:
    """Whether the stack engine moves rsp for it: push, pop, call, return."""
    return instruction.mnemonic in _STACK_ENGINE


def uses_of_rsp(instruction: Instruction, moves: bool) -> tuple[bool, bool]:
    """Whether the instruction reads and writes rsp beyond what the stack engine does for it."""
    operands = instruction.operands
    read = any(operand.read and operand.register == _STACK_POINTER for operand in operands)
    written = any(operand.written and operand.register == _STACK_POINTER for operand in operands)
    memory = [operand.memory for operand in operands if operand.memory is not None] if moves else instruction.memory
    read = read or any(_STACK_POINTER in (reference.base, reference.index) for reference in memory)
    if not moves:
        read = read or _STACK_POINTER in instruction.implicit_reads
        written = written or _STACK_POINTER in instruction.implicit_writes
    return read, written
