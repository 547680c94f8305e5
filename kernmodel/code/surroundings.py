"""What the compiled code executes around the analysed loop, each time that the loop is entered.

The loop around it has straight-line code before and behind the inner loop (addresses, accumulators, reduction tails,
statements between the loops of the source), iterations that fill no pass of the inner loop, as straight-line code or
as loops of their own, and branches that choose among these. Every way from the head of the outer loop through the
analysed loop and back to the head is kept with what it executes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kernmodel.code.describe import floating_work
from kernmodel.code.loops import ControlFlow, LoopBody
from kernmodel.code.model import AddressStream, RemainderLoop, Surroundings, Way
from kernmodel.code.strides import Analysis, loop_strides
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction, Listing, MemoryReference
from kernmodel.isa.protocol import Registers
from kernmodel.value_types import dataclass

MOST_WAYS = 64
"""Ways that are looked at, the shortest first: remainders take few, and code with more decides by its data."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step of the analysed loop's variable does, to count the steps in straight-line code.

    Attributes:
        stored, loaded: bytes of moving references per step; work: floating-point operations by kind.
    """

    stored: int
    loaded: int
    work: Mapping[str, int]

    def count(self, instructions: Sequence[Instruction]) -> int:
        """Steps that these instructions execute: by the bytes stored, or where nothing is stored by bytes loaded and
        work, so that the tail of a reduction, which loads nothing, and the code between loops are none."""
        references = [
            m for i in instructions if not i.branch for m in i.memory if not _is_slot(m, isa_of(i.isa).registers)
        ]
        if self.stored:
            return sum(m.size_bytes for m in references if m.written) // self.stored
        if not self.loaded:
            return 0
        counts = [sum(m.size_bytes for m in references if m.read) // self.loaded]
        done = floating_work(instructions)
        counts += [done[kind] // number for kind, number in self.work.items() if number and kind in ("add", "mul")]
        return min(counts)


def _is_slot(reference: MemoryReference, registers: Registers) -> bool:
    """Whether the memory is a constant, or a place in the stack frame."""
    frame = reference.base in registers.frame and reference.index is None and reference.displacement < 0
    return frame or reference.base in (registers.stack_pointer, registers.program_counter, None)


def surroundings(analysis: Analysis, main: LoopBody, remainders: Mapping[int, int], step: Step) -> Surroundings:
    """The code around a loop.

    Args:
        analysis: of the listing.
        main: the analysed loop.
        remainders: steps per pass of the other loops that execute the kernel, by their number.
        step: what a step of the loop's variable does.
    """
    listing, flow = analysis.listing, analysis.flow
    loops = {loop.number: loop for loop in flow.loops}
    around = None if main.parent is None else loops[main.parent]
    if around is None:
        return Surroundings((), ())
    outside = list(_outwards(loops, around))
    code = tuple(_own_instructions(listing, flow, loop) for loop in outside[1:])
    return Surroundings(tuple(_ways(analysis, around, main, remainders, step)), code)


def _outwards(loops: Mapping[int, LoopBody], innermost: LoopBody) -> Iterator[LoopBody]:
    """A loop and those around it, from within."""
    loop: LoopBody | None = innermost
    while loop is not None:
        yield loop
        loop = None if loop.parent is None else loops[loop.parent]


def _own_instructions(listing: Listing, flow: ControlFlow, loop: LoopBody) -> tuple[Instruction, ...]:
    """The instructions of a loop that stand in no loop inside it."""
    inner = {b for other in flow.loops if other.parent == loop.number for b in other.blocks}
    return _instructions(listing, flow, (b for b in loop.blocks if b not in inner))


def _instructions(listing: Listing, flow: ControlFlow, blocks: Iterable[int]) -> tuple[Instruction, ...]:
    spans = (flow.blocks[block] for block in blocks)
    return tuple(listing.instructions[index] for span in spans for index in range(span.first, span.end))


def _ways(
    analysis: Analysis,
    around: LoopBody,
    main: LoopBody,
    remainders: Mapping[int, int],
    step: Step,
) -> Iterator[Way]:
    """What is executed on each way; ways of the same cost count once."""
    listing, flow, found = analysis.listing, analysis.flow, set[Way]()
    children = {loop.header: loop for loop in flow.loops if loop.parent == around.number}
    instructions = {block: _instructions(listing, flow, (block,)) for block in around.blocks}
    moving = _moving(analysis, around)
    for way in _paths(flow, around, main):
        place = way.index(main.header)
        before, behind = (
            [(block, step.count(instructions[block])) for block in blocks if block not in children]
            for blocks in (way[:place], way[place:])
        )
        counted = [*before, *behind]
        plain, working = ([block for block, steps in counted if bool(steps) is own] for own in (False, True))
        straight = tuple(i for block in plain for i in instructions[block])
        tail = tuple(i for block in working for i in instructions[block])
        others = [children[block] for block in way if block in children and block != main.header]
        loops = tuple(
            RemainderLoop(_instructions(listing, flow, other.blocks), remainders[other.number])
            for other in others
            if other.number in remainders
        )
        entering = sum(len(instructions[block]) for block, steps in before if not steps)
        streams = tuple(_renumbered(moving, flow, [*plain, *working]))
        made = Way(straight, entering, tail, sum(steps for _, steps in counted), loops, streams)
        if made not in found:
            found.add(made)
            yield made


def _moving(analysis: Analysis, around: LoopBody) -> dict[int, list[AddressStream]]:
    """By instruction of the listing, how its addresses advance with each pass of a loop."""
    found: dict[int, list[AddressStream]] = {}
    for stream in loop_strides(analysis, around).streams:
        found.setdefault(around.instructions[stream.instruction], []).append(stream)
    return found


def _renumbered(
    moving: Mapping[int, Sequence[AddressStream]], flow: ControlFlow, blocks: Iterable[int]
) -> Iterator[AddressStream]:
    """The streams of some blocks, with instructions counted through these."""
    indices = [index for block in blocks for index in range(flow.blocks[block].first, flow.blocks[block].end)]
    for number, index in enumerate(indices):
        yield from (replace(stream, instruction=number) for stream in moving.get(index, ()))


def _paths(flow: ControlFlow, around: LoopBody, main: LoopBody) -> list[tuple[int, ...]]:
    """The ways from the head of a loop through an inner one and back, as blocks; an inner loop is its header.

    The shortest first, `MOST_WAYS` at most.
    """
    inside = {b: loop.header for loop in flow.loops if loop.parent == around.number for b in loop.blocks}
    following: dict[int, set[int]] = {}
    for block in around.blocks:
        node = inside.get(block, block)
        following.setdefault(node, set())
        for successor in flow.blocks[block].successors:
            target = inside.get(successor, successor)
            if successor in around.blocks and target != node:
                following[node].add(target)
    # a head that is also the head of the inner loop is met again at once by the inner loop's own branch
    ends = {
        inside.get(b, b)
        for b in around.blocks
        if around.header in flow.blocks[b].successors and inside.get(b, b) != inside.get(around.header)
    }
    start = inside.get(around.header, around.header)
    found: list[tuple[int, ...]] = []
    waiting: list[tuple[int, ...]] = [(start,)]
    looked_at = 0
    while waiting and len(found) < MOST_WAYS and looked_at < MOST_WAYS * MOST_WAYS:
        path = waiting.pop(0)
        looked_at += 1
        if path[-1] in ends and main.header in path:
            found.append(path)
        waiting += [(*path, node) for node in sorted(following.get(path[-1], ())) if node not in path]
    return found
