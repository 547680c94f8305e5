"""What distinguishes a loop: where it stands, its floating-point work, vector width and streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kernmodel.code.loops import LoopBody
from kernmodel.code.strides import LoopStrides
from kernmodel.isa import isa_of
from kernmodel.isa.model import FpKind, FpOperation, Instruction, Listing
from kernmodel.words import count, plural


def floating_work(body: Iterable[Instruction], *, half: bool = False) -> Counter[str]:
    """Floating-point operations of one pass by kind ("add", "mul", "div", "sqrt", "compare"), lanes counted.

    A fused multiply-add is one "add" and one "mul"; an approximate reciprocal stands for the division it replaces, and
    is also counted as "approximate". `half`: take it that vectors of four floats hold two: compilers use them so.
    """
    work: Counter[str] = Counter()
    for instruction in body:
        found = isa_of(instruction.isa).fp_work(instruction)
        if found is None:
            continue
        kind, lanes = found
        lanes = 2 if half and kind.lane_bytes == 4 and lanes == 4 else lanes
        for operation, times in kind.work:
            for part in _parts(operation, kind):
                work[part] += lanes * times
    return work


def _parts(operation: FpOperation, kind: FpKind) -> tuple[str, ...]:
    """The kinds of work that an operation counts as."""
    if operation == "fma":
        return ("add", "mul")
    if operation == "other":
        return (kind.replaces, "approximate") if kind.replaces else ()
    if operation == "compare":
        return ("compare",) if kind.selects else ()
    return (operation,) if operation in ("add", "mul", "div", "sqrt") else ()


def has_floating_work(body: Iterable[Instruction]) -> bool | None:
    """Whether a body computes with floating-point numbers, None if a function that it calls may do that."""
    body = tuple(body)
    if floating_work(body):
        return True
    return None if any(instruction.branch == "call" for instruction in body) else False


def body_of(listing: Listing, loop: LoopBody) -> tuple[Instruction, ...]:
    """The instructions of `loop` in execution order."""
    return tuple(listing.instructions[index] for index in loop.instructions)


def place(listing: Listing, loop: LoopBody) -> str:
    """ "loop 2 (.L4, lines 20-31)" for messages."""
    lines = [line for line in (instruction.line for instruction in body_of(listing, loop)) if line]
    parts = [loop.label] if loop.label else []
    parts += [f"lines {min(lines)}-{max(lines)}"] if lines else []
    return f"loop {loop.number} ({', '.join(parts)})" if parts else f"loop {loop.number}"


def begin(listing: Listing, loop: LoopBody) -> str:
    """`place` as the beginning of a sentence."""
    name = place(listing, loop)
    return name[0].upper() + name[1:]


def describe(listing: Listing, strides: LoopStrides, iterations: float | None = None) -> str:
    """One line that tells a loop from others: place, size, vector width, work, strides, passes."""
    body = body_of(listing, strides.loop)
    parts = [count(len(body), "instruction")]
    if iterations is not None:
        parts.append(f"{iterations:g} {plural(iterations, 'iteration')} per pass")
    width = vector_bytes(body)
    parts.append(f"{width}-byte vectors" if width else "scalar")
    work = floating_work(body)
    counts = (f"{number} {kind}" for kind, number in sorted(work.items()) if kind != "approximate")
    parts.append(" ".join(counts) or "no floating-point work")
    parts.append(describe_streams(strides))
    if strides.passes is not None:
        parts.append(f"{strides.passes} passes")
    return f"--loop {strides.loop.number}: {place(listing, strides.loop)}: {'; '.join(parts)}"


def describe_streams(strides: LoopStrides) -> str:
    """ "2 loads +64 B, 1 store +64 B" per pass."""
    streams: Counter[tuple[str, str]] = Counter()
    for stream in strides.streams:
        if not stream.reference.size_bytes or stream.stride_bytes == 0:
            continue
        by = "unknown stride" if stream.stride_bytes is None else f"{stream.stride_bytes:+d} B"
        for kind, present in (("load", stream.reference.read), ("store", stream.reference.written)):
            streams[kind, by] += present
    parts = [f"{count(number, kind)} {by}" for (kind, by), number in streams.items() if number]
    return ", ".join(parts) or "no moving streams"


def vector_bytes(body: Iterable[Instruction]) -> int:
    """Width in bytes of the widest packed operation or vector load or store of a body, 0 where it is scalar."""
    return max(map(_packed_bytes, body), default=0)


def _packed_bytes(instruction: Instruction) -> int:
    """Width of a packed floating-point operation or of a moved vector; constants of the data section do not count."""
    isa = isa_of(instruction.isa)
    if isa.packed_element(instruction) and floating_work((instruction,)):
        return instruction.vector_bytes
    constants = isa.registers.program_counter
    moved = max((m.size_bytes for m in instruction.memory if m.size_bytes >= 16 and m.base != constants), default=0)
    # a pair or a structure is several vectors
    return min(moved, instruction.vector_bytes or moved)
