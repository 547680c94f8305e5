"""What decoding and issuing one instruction costs: its row, read with what the row leaves open."""

from __future__ import annotations

from typing import NamedTuple

from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import FrontEndParameters
from kernmodel.isa.model import Instruction

_NUMBERED_AS_RSP = frozenset({"rsp", "r12"})
"""Registers that share the number 4 in the opcode of pop."""


class Cost(NamedTuple):
    """Front-end costs of one instruction, as in `Unit`; `fusible_with` are the jumps it macro-fuses with."""

    decoded: int
    microcoded: int
    slots: int
    complex: bool
    simple: int
    ends_group: bool
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
    if instruction.mnemonic == "pop" and _is_pop_rsp(instruction):
        complex_one, ends_group = complex_one or core.pop_rsp_complex, core.pop_rsp_ends_group
    simple = 0 if front.uops_ms else min(front.simple_decoders, core.decoders - 1)
    return Cost(front.uops_mite, front.uops_ms, front.retire_slots, complex_one, simple, ends_group, front.fusible_with)


def _is_pop_rsp(instruction: Instruction) -> bool:
    return instruction.operands[0].register in _NUMBERED_AS_RSP


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
    return Cost(decoded, microcoded, slots, fused > 1, beside, False, ())
