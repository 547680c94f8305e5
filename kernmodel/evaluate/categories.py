"""Kinds of blocks: by their instructions, their memory accesses and their divisions."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.code.listing import decode_bytes
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction

_MOSTLY = 0.5


def categories(code: bytes) -> dict[str, str]:
    """The category of a block by each grouping that its instructions tell."""
    listing = decode_bytes(code)
    isa, instructions = isa_of(listing.isa), listing.instructions
    return {
        "instructions": isa.generation(instructions),
        "memory": memory_share(instructions),
        "divisions": "with" if any(map(isa.divides, instructions)) else "without",
    }


def memory_share(instructions: Sequence[Instruction]) -> str:
    """How much of the block accesses memory: memory-bound if at least half of the instructions do."""
    accesses = sum(any(reference.size_bytes for reference in item.memory) for item in instructions)
    if not accesses:
        return "none"
    return "memory-bound" if accesses >= _MOSTLY * len(instructions) else "some"
