"""Streaming (non-temporal) stores in compiled code: instructions that write past the caches.

Intel 64 and IA-32 Architectures Software Developer's Manual, Volume 1, Section 10.4.6.2 "Caching of Temporal vs.
Non-Temporal Data"; MOVNTSS and MOVNTSD are AMD's (AMD64 Architecture Programmer's Manual, Volume 4). Of AArch64 there
are none yet: the pairs STNP are hints, and DC ZVA claims a line without storing.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernmodel.assembly.model import AssemblyLoop, Instruction

_MASKED = frozenset({"maskmovdqu", "vmaskmovdqu", "maskmovq"})


@dataclass(frozen=True, slots=True)
class StreamingStores:
    """Stores of a loop to moving addresses, by their kind.

    A store to a fixed address (a register spilled to the stack, a sum kept in memory) is in neither count.

    Attributes:
        streaming, regular: store instructions in the loop's body, non-temporal ones and others.
        instructions: which of the body's instructions are the non-temporal ones.
    """

    streaming: int
    regular: int
    instructions: tuple[int, ...]


def streaming_stores(loop: AssemblyLoop) -> StreamingStores:
    """The non-temporal and the other stores of a loop."""
    moving = {stream.instruction for stream in loop.streams if stream.reference.written and stream.stride_bytes != 0}
    streaming = tuple(index for index in sorted(moving) if is_streaming(loop.instructions[index]))
    return StreamingStores(len(streaming), len(moving) - len(streaming), streaming)


def is_streaming(instruction: Instruction) -> bool:
    """Whether an instruction stores past the caches; not so MOVNTDQA, which loads."""
    name = instruction.mnemonic
    hinted = name.startswith(("movnt", "vmovnt")) or name in _MASKED
    return hinted and any(reference.written for reference in instruction.memory)
