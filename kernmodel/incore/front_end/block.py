"""From lowered instructions to what the front end sees of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from kernmodel.incore.engine.program import Lowered
from kernmodel.incore.front_end.model import FrontEndBlock, Unit


def front_end_block(
    instructions: Sequence[Lowered],
    places: Sequence[int] = (),
    *,
    offset: int = 0,
    fusion_line_bytes: int = 0,
    branch_ends_group: bool = True,
    fuses_nops: bool = False,
) -> FrontEndBlock:
    """What the front end of a core sees of a block.

    Args:
        instructions: the block in execution order, not empty.
        places: where each instruction starts; empty where each follows the one before.
        offset: address of the first byte.
        fusion_line_bytes: no pair macro-fuses whose jump starts at a multiple of this address: its instructions then
            come in different fetches (uiCA, ICS 2022; the pairs themselves are uops.info's). 0 for no such limit.
        branch_ends_group: whether nothing is decoded behind a branch in the same cycle.
        fuses_nops: whether nops that the core fuses are, as the op cache delivers them.
    """
    starts = places or [0, *accumulate(i.length for i in instructions[:-1])]
    length = starts[-1] + instructions[-1].length
    last = [0] * (length + 1)
    cut = [0] * (length + 1)
    for start, instruction in zip(starts, instructions, strict=True):
        end = start + instruction.length
        last[end] = 1
        opcode = start + instruction.opcode
        if end - opcode > 1:
            cut[opcode + 1 : end] = (1,) * (end - opcode - 1)
    units: list[Unit] = []
    for number, instruction in enumerate(instructions):
        unit = _unit(number, starts[number], instruction, branch_ends_group)
        together = not fusion_line_bytes or (offset + unit.start) % fusion_line_bytes
        if together and number and _fuses(instructions[number - 1], instruction):
            units[-1] = _fused(units[-1], unit, instruction, branch_ends_group)
        elif fuses_nops and instruction.template.traits.nop and units and _takes_nop(units[-1]):
            units[-1] = units[-1]._replace(end=unit.end, padded=True)
        elif instruction.template.traits.unit:
            units.append(unit)
    return FrontEndBlock(
        length=length,
        ends=tuple(accumulate(last)),
        cut=tuple(cut),
        prefixed=tuple([s + i.opcode for s, i in zip(starts, instructions, strict=True) if i.prefixed]),
        units=tuple(units),
        synchronisations=_synchronisations(instructions),
    )


def _unit(number: int, start: int, instruction: Lowered, branch_ends_group: bool) -> Unit:
    traits = instruction.template.traits
    return Unit(
        number,
        start,
        start + instruction.length,
        traits.decoded,
        traits.microcoded,
        traits.slots,
        bool(traits.complex),
        traits.simple,
        bool(traits.fusible),
        bool(traits.branch),
        bool(traits.ends_group or (traits.branch and branch_ends_group)),
        constants=instruction.constants,
        long_constants=instruction.long_constants,
    )


def _takes_nop(unit: Unit) -> bool:
    """Whether a nop behind a unit takes nothing: the unit is not fused otherwise."""
    return not (unit.fused or unit.branch or unit.padded)


def _fuses(first: Lowered, jump: Lowered) -> bool:
    """Whether an instruction macro-fuses with the jump behind it, as far as their kinds go."""
    own, other = first.template.traits, jump.template.traits
    if not own.unit or not other.unit or other.jump < 0:
        return False
    jumps = own.jumps_low & 0xFFFFFFFF | own.jumps_high << 32
    return bool(jumps >> other.jump & 1 or own.fusing_flags & other.flags)


def _fused(first: Unit, jump: Unit, instruction: Lowered, branch_ends_group: bool) -> Unit:
    """The unit of a macro-fused pair: it is decoded and issued as its first instruction, and branches."""
    slots = first.slots + instruction.template.traits.joined_slots
    ends_group = first.ends_group or branch_ends_group
    return first._replace(
        end=jump.end,
        slots=slots,
        branch=True,
        ends_group=ends_group,
        fused=True,
        constants=first.constants + jump.constants,
        long_constants=first.long_constants + jump.long_constants,
    )


def _synchronisations(instructions: Sequence[Lowered]) -> int:
    """How often per execution, over and over, rsp is read although the stack engine is ahead of it.

    The engine then inserts a µop that brings rsp up to date (Optimization Reference Manual, stack pointer tracker;
    A. Fog, microarchitecture.pdf). A write of rsp without a read makes the engine's offset void.
    """
    inserted = 0
    ahead = False
    for again in (False, True):  # what the execution before leaves behind counts
        for traits in [instruction.template.traits for instruction in instructions]:
            inserted += again and ahead and bool(traits.reads_stack)
            ahead = bool(traits.moves_stack) or (ahead and not traits.reads_stack and not traits.writes_stack)
    return inserted
