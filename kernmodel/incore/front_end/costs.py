"""What decoding and issuing one instruction costs: its row, read with what the row leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import FrontEndParameters, OpCacheParameters
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple

_WIDE_BYTES = 512 // 8
"""What "wide-store" means among the extra slots of parameter files, on whichever core: a store of so many bytes."""


class Cost(NamedTuple):
    """Front-end costs of one instruction, as in `Unit`.

    `joined_slots` are added to the slots of an instruction that fuses with it; `fusible_with` are the jumps that it
    macro-fuses with itself.
    """

    decoded: int
    microcoded: int
    slots: int
    complex: bool
    simple: int
    ends_group: bool
    joined_slots: int
    fusible_with: tuple[str, ...]


def instruction_cost(instruction: Instruction, row: InstructionData, core: FrontEndParameters) -> Cost:
    """The costs of an instruction by its row (the indexed variant where that applies).

    Whatever makes several µops needs the complex decoder, and no decoder works beside microcode, even where the data
    do not say so (uops.info has "4 simple decoders" for some divisions and gathers); no more decoders work beside the
    complex one than there are.
    """
    front = row.front_end
    if front is None:
        return estimated_cost(instruction, row, core)
    several = front.uops_mite + front.uops_ms > 1
    complex_one, ends_group = front.complex_decoder or several, False
    if isa_of(instruction.isa).pops_stack_pointer(instruction):
        complex_one, ends_group = complex_one or core.pop_rsp_complex, core.pop_rsp_ends_group
    simple = 0 if front.uops_ms else min(front.simple_decoders, core.decoders - 1)
    return Cost(
        front.uops_mite, front.uops_ms, front.retire_slots, complex_one, simple, ends_group, 0, front.fusible_with
    )


def estimated_cost(instruction: Instruction, row: InstructionData, core: FrontEndParameters) -> Cost:
    """The costs of an instruction whose source gives none, from its µops and operands.

    A load and the operation on it, and the address and data of a store, are one µop each when decoded (micro-fusion);
    with an index register the load is issued apart (unlamination of three-operand forms, as the measured rows of
    their VEX twins). What the complex decoder cannot make is microcode.
    """
    reads = any(reference.read for reference in instruction.memory)
    writes = any(reference.written for reference in instruction.memory)
    indexed = any(reference.index is not None for reference in instruction.memory)
    joined = (reads and row.uops > 1) + (writes and row.uops > 1)
    fused = max(1, row.uops - joined)
    decoded = min(fused, core.complex_uops)
    microcoded = fused - decoded
    beside = 0 if microcoded else max(0, min(core.decoders - 1, core.decoded_uops - decoded))
    slots = fused + (reads and indexed and row.uops > 1)
    return Cost(decoded, microcoded, slots, fused > 1, beside, False, 0, ())


def dispatch_slots(instruction: Instruction, row: InstructionData | None, extra: Sequence[str]) -> int:
    """Slots that an instruction takes at dispatch: those of its row, and one for what `OpCacheParameters` names."""
    slots = max(row.uops, 1) if row else 1
    accesses = [r for r in instruction.memory if r.read or r.written]
    if not accesses or not extra:
        return slots
    reference = accesses[0]
    general, indexed = not instruction.vector_bytes, reference.index is not None
    alone = not any(operand.read and operand.register for operand in instruction.operands)
    found = (
        ("read-modify-write" in extra and reference.read and reference.written)
        or ("wide-store" in extra and reference.written and reference.size_bytes == _WIDE_BYTES)
        or ("indexed-store" in extra and reference.written and indexed and general)
        or ("indexed-operation" in extra and reference.read and indexed and general and not alone)
    )
    return slots + found


def op_cache_cost(instruction: Instruction, row: InstructionData | None, core: OpCacheParameters | None) -> Cost:
    """The costs of an instruction on a Zen core, or on one of whose front end no more than the width is known.

    Every instruction takes a place of a decoder and a slot at dispatch, also one that needs no port, or that the table
    does not know; a fused pair takes those of its first instruction.
    """
    macro_ops = max(row.uops, 1) if row else 1
    slots = dispatch_slots(instruction, row, core.extra_slots) if core else macro_ops
    fusible_with = row.front_end.fusible_with if row and row.front_end else ()
    decoded = macro_ops if core and core.op_cache_of_macro_ops else 1
    return Cost(decoded, 0, slots, False, core.decoders - 1 if core else 0, False, slots - 1, fusible_with)


def bars_lsd(instruction: Instruction, front: FrontEndParameters) -> bool:
    """Whether the LSD does not replay a loop with this instruction."""
    isa = isa_of(instruction.isa)
    if "stack" in front.lsd_bars and isa.moves_stack(instruction):
        return True
    return "high-bytes" in front.lsd_bars and any(
        operand.written and isa.part_of_register(operand) == "high byte" for operand in instruction.operands
    )
