"""Kinds of blocks: by their instructions, their memory accesses and their divisions."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.code.listing import decode_bytes
from kernmodel.isa.model import Instruction

_LEGACY_KINDS = frozenset({"st", "mm"})
_WIDEST = 64
_DIVIDING = ("div", "sqrt")
_MOSTLY = 0.5


def categories(code: bytes) -> dict[str, str]:
    """The category of a block by each grouping that its instructions tell."""
    instructions = decode_bytes(code).instructions
    return {
        "instructions": instruction_set(instructions),
        "memory": memory_share(instructions),
        "divisions": "with" if any(_divides(item) for item in instructions) else "without",
    }


def instruction_set(instructions: Sequence[Instruction]) -> str:
    """The newest instruction set that the block uses: x87 or MMX, AVX-512, AVX, SSE, or scalar (integers only)."""
    if any(_is_legacy(item) for item in instructions):
        return "x87 or MMX"
    if any(item.vector_bytes == _WIDEST or item.has_mask for item in instructions):
        return "AVX-512"
    vector = [item for item in instructions if item.vector_bytes]
    if any(item.mnemonic.startswith("v") for item in vector):
        return "AVX"
    return "SSE" if vector else "scalar"


def memory_share(instructions: Sequence[Instruction]) -> str:
    """How much of the block accesses memory: memory-bound if at least half of the instructions do."""
    accesses = sum(any(reference.size_bytes for reference in item.memory) for item in instructions)
    if not accesses:
        return "none"
    return "memory-bound" if accesses >= _MOSTLY * len(instructions) else "some"


def _is_legacy(instruction: Instruction) -> bool:
    kinds = {operand.kind for operand in instruction.operands}
    return bool(kinds & _LEGACY_KINDS) or instruction.mnemonic.startswith("f")


def _divides(instruction: Instruction) -> bool:
    return any(part in instruction.mnemonic for part in _DIVIDING)
