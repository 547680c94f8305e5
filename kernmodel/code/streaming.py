"""Streaming (non-temporal) stores in compiled code: instructions that write past the caches."""

from __future__ import annotations

from kernmodel.code.model import AssemblyLoop
from kernmodel.isa import isa_of
from kernmodel.value_types import dataclass


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
    isa = isa_of(loop.isa)
    moving = {stream.instruction for stream in loop.streams if stream.reference.written and stream.stride_bytes != 0}
    streaming = tuple(index for index in sorted(moving) if isa.is_streaming(loop.instructions[index]))
    return StreamingStores(len(streaming), len(moving) - len(streaming), streaming)
