"""Loops of a listing: basic blocks, the edges between them, and the nest of loops they form.

A loop is a strongly connected part of the control-flow graph: that covers loops that test at the bottom, at the top or
in the middle (entered by a jump to the test), bodies of several blocks (`?:` compiled to branches), several closing
branches, and code that was cut out of a function so that nothing enters the loop. Inside a loop, the branches back to
its head are taken away and what is still strongly connected is an inner loop. Blocks with a call that the hot path of a
loop avoids are taken away first.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernmodel.code.calls import called_name, is_complex_product, is_square_root
from kernmodel.code.strong_components import cyclic_components
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction, Listing, Operand
from kernmodel.isa.protocol import Registers
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """A basic block: instructions `first` up to, not including, `end`, and the blocks that may follow it.

    `avoided` are blocks that may follow, but are left out of the flow because the hot path avoids them.
    """

    first: int
    end: int
    successors: tuple[int, ...]
    avoided: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopBody:
    """A loop of a listing.

    Attributes:
        number: 1-based, by ascending address of the first instruction, outer before inner: what `--loop N` takes.
        header: the block that is entered from outside.
        blocks: blocks in execution order of one pass; the last one branches back to the first where possible.
        instructions: indices into the listing's instructions, in the order of `blocks`.
        parent: number of the enclosing loop, None for outermost loops.
        depth: 1 for outermost loops.
        innermost: no other loop inside.
        label: label of the first instruction of the pass, "" if it has none.
        left_out: indices of instructions of blocks with a call that the hot path avoids.
        other_ways: indices of instructions of other versions of the body, one of which is chosen before it is entered.
    """

    number: int
    header: int
    blocks: tuple[int, ...]
    instructions: tuple[int, ...]
    parent: int | None
    depth: int
    innermost: bool
    label: str
    left_out: tuple[int, ...] = ()
    other_ways: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlFlow:
    """Basic blocks of a listing in address order, the blocks that may precede each one, and the loops they form."""

    blocks: tuple[Block, ...]
    predecessors: tuple[tuple[int, ...], ...]
    loops: tuple[LoopBody, ...]


def control_flow(listing: Listing) -> ControlFlow:
    """Basic blocks and loops of `listing`."""
    blocks = _without_padding(listing.instructions, _blocks(listing.instructions))
    flow = _flow_of(listing, blocks, ())
    if not any(instruction.branch == "call" for instruction in listing.instructions):
        return flow
    detours = _detours(listing, flow)
    return _flow_of(listing, _without_detours(blocks, detours), detours) if detours else flow


def region_flow(listing: Listing, first: int, end: int) -> ControlFlow:
    """Instructions `first` up to `end` taken as the body of one loop, whatever branches they hold (a marked region)."""
    inside = tuple(range(first, end))
    body = LoopBody(1, 0, (0,), inside, None, 1, True, _labels(listing).get(listing.instructions[first].address, ""))
    return ControlFlow((Block(first, end, (0,)),), ((0,),), (body,))


def _blocks(instructions: tuple[Instruction, ...]) -> tuple[Block, ...]:
    """Basic blocks; a call does not end a block, a branch to an unknown place leaves the listing."""
    if not instructions:
        return ()
    at = {instruction.address: index for index, instruction in enumerate(instructions)}
    leaders = {0}
    for index, instruction in enumerate(instructions):
        if instruction.branch in ("conditional", "jump", "indirect", "return"):
            leaders.add(index + 1)
            if instruction.target in at and instruction.target is not None:
                leaders.add(at[instruction.target])
    leaders.discard(len(instructions))
    starts = sorted(leaders)
    number = {start: k for k, start in enumerate(starts)}
    blocks = []
    for start, end in zip(starts, [*starts[1:], len(instructions)], strict=True):
        last = instructions[end - 1]
        follow: list[int] = []
        if last.branch in ("conditional", "jump") and last.target in at and last.target is not None:
            follow.append(number[at[last.target]])
        if last.branch not in ("jump", "indirect", "return") and end < len(instructions):
            follow.append(number[end])
        blocks.append(Block(start, end, tuple(dict.fromkeys(follow))))
    return tuple(blocks)


def _without_padding(instructions: tuple[Instruction, ...], blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """`blocks`, where alignment padding that nothing reaches is no way into the code behind it."""
    reached = {successor for block in blocks for successor in block.successors}

    def is_padding(number: int, block: Block) -> bool:
        inside = instructions[block.first : block.end]
        return number not in reached and all(isa_of(i.isa).is_padding(i) for i in inside)

    return tuple(
        Block(block.first, block.end, ()) if is_padding(number, block) else block for number, block in enumerate(blocks)
    )


@dataclass(frozen=True, slots=True)
class _Detour:
    """Blocks around a call (`cold`) that a loop avoids while it stays on the blocks `hot`."""

    hot: frozenset[int]
    cold: frozenset[int]


def _detours(listing: Listing, flow: ControlFlow) -> tuple[_Detour, ...]:
    """What the hot paths of the loops avoid because of the calls in it."""
    graph = _Graph(isa_of(listing.isa).registers, listing.instructions, flow.blocks, flow.predecessors)
    labels = _labels(listing)
    found = []
    for loop in flow.loops:
        whole = hot = frozenset(loop.blocks)
        others = [other for other in flow.loops if other.number != loop.number]
        inner = frozenset[int]().union(*(other.blocks for other in others if whole > set(other.blocks)))
        # what looks like a detour may be the end of an outer loop that begins with its inner one
        shares_head = any(other.header == loop.header for other in others)
        ordered = _around(graph, whole, loop.header, _unordered(graph, whole))
        if ordered is not None:
            names = [called_name(i, labels) for i in _inside(graph, whole - ordered) if i.branch == "call"]
            hot = ordered if names and all(is_complex_product(name) for name in names) else whole
        for block in sorted(whole - inner):
            calls = [i for i in _inside(graph, (block,)) if i.branch == "call"]
            without = _around(graph, hot - {block}, loop.header) if calls and block in hot else None
            if without is None:
                continue
            names = [called_name(call, labels) for call in calls]
            spare = _out_of_line(graph, without, hot - without) and not shares_head
            if spare or _sets_errno(graph, without, hot - without, names):
                hot = without
        if hot != whole:
            found.append(_Detour(hot, whole - hot))
    return tuple(found)


def _around(
    graph: _Graph, within: frozenset[int], header: int, without: frozenset[tuple[int, int]] = frozenset()
) -> frozenset[int] | None:
    """The blocks of `within` that still form a loop through its header, `without` some edges; None if there is none."""
    parts = cyclic_components(
        within, lambda block: [s for s in graph.successors(block, within, frozenset()) if (block, s) not in without]
    )
    return next((part for part in parts if header in part), None)


def _unordered(graph: _Graph, blocks: frozenset[int]) -> frozenset[tuple[int, int]]:
    """The edges that are taken where one of two compared floating-point numbers is NaN."""
    found = set[tuple[int, int]]()
    for block in blocks:
        last = graph.instructions[graph.blocks[block].end - 1]
        condition = isa_of(last.isa).condition(last)
        if condition in ("u", "o"):
            found.update((block, s) for s in graph.blocks[block].successors if (s == block + 1) == (condition == "o"))
    return frozenset(found)


def _sets_errno(graph: _Graph, hot: frozenset[int], cold: frozenset[int], names: list[str]) -> bool:
    """Whether the cold blocks call a square root that the hot ones compute.

    In objects the call may have no name; then the test of its argument has to stand before it.
    """
    if not any(_computes_root(instruction) for instruction in _inside(graph, hot)):
        return False
    guards = [block for block in hot if cold.intersection(graph.blocks[block].successors)]
    tested = all(any(_compares_numbers(instruction) for instruction in _inside(graph, (b,))) for b in guards)
    return all(is_square_root(name) or (not name and tested) for name in names)


def _computes_root(instruction: Instruction) -> bool:
    work = isa_of(instruction.isa).fp_work(instruction)
    kind = None if work is None else work[0]
    return kind is not None and (kind.replaces == "sqrt" or any(operation == "sqrt" for operation, _ in kind.work))


def _compares_numbers(instruction: Instruction) -> bool:
    """Whether flags tell the order of two floating-point numbers after the instruction."""
    work = isa_of(instruction.isa).fp_work(instruction) if instruction.flags_written else None
    return work is not None and any(operation == "compare" for operation, _ in work[0].work)


def _out_of_line(graph: _Graph, hot: frozenset[int], cold: frozenset[int]) -> bool:
    """Whether the cold blocks stand before or behind all hot ones, and only taken branches lead from these to them.

    Blocks that set a register anew which the hot ones count are the end of an outer loop.
    """
    counted = {register for register, *_, read in _writes(graph, hot) if read}
    anew = {
        register
        for register, _, operands, _ in _writes(graph, cold) - _writes(graph, hot)
        if not any(operand.memory and operand.memory.base in graph.registers.frame for operand in operands)
    }
    return not counted & anew and all(
        (block < min(hot) or block > max(hot))
        and not (block - 1 in hot and graph.instructions[graph.blocks[block - 1].end - 1].branch != "jump")
        for block in cold
    )


def _without_detours(blocks: tuple[Block, ...], detours: tuple[_Detour, ...]) -> tuple[Block, ...]:
    """`blocks` without the edges into and out of the cold ones."""
    cold = frozenset[int]().union(*(detour.cold for detour in detours))
    return tuple(
        Block(
            block.first,
            block.end,
            () if number in cold else tuple(s for s in block.successors if s not in cold),
            tuple(s for s in block.successors if s in cold),
        )
        for number, block in enumerate(blocks)
    )


def _flow_of(listing: Listing, blocks: tuple[Block, ...], detours: tuple[_Detour, ...]) -> ControlFlow:
    """Loops over given blocks, from which those of `detours` are left out."""
    predecessors: list[list[int]] = [[] for _ in blocks]
    for number, block in enumerate(blocks):
        for successor in block.successors:
            predecessors[successor].append(number)
    graph = _Graph(isa_of(listing.isa).registers, listing.instructions, blocks, tuple(map(tuple, predecessors)))
    found: list[tuple[int, frozenset[int], int | None]] = []  # header, blocks, index of the enclosing loop in `found`
    _collect(graph, frozenset(range(len(blocks))), None, frozenset(), found)
    return ControlFlow(blocks, graph.predecessors, _number(listing, graph, found, detours))


@dataclass(frozen=True, slots=True)
class _Graph:
    registers: Registers
    instructions: tuple[Instruction, ...]
    blocks: tuple[Block, ...]
    predecessors: tuple[tuple[int, ...], ...]

    def successors(self, block: int, within: frozenset[int], cut: frozenset[int]) -> tuple[int, ...]:
        """Blocks after `block` inside `within`, without the edges into the heads in `cut`."""
        return tuple(s for s in self.blocks[block].successors if s in within and s not in cut)


def _collect(
    graph: _Graph,
    within: frozenset[int],
    parent: int | None,
    cut: frozenset[int],
    found: list[tuple[int, frozenset[int], int | None]],
) -> None:
    """Append the loops inside `within` to `found`, outer before inner."""
    for component in _cyclic(graph, within, cut):
        header = _header(graph, component, cut)
        chain = (component, *_nested_at(graph, component, header))
        enclosing = parent
        for body, inner in zip(chain, (*chain[1:], frozenset[int]()), strict=True):
            found.append((header, body, enclosing))
            enclosing = len(found) - 1
            _collect(graph, body - inner, enclosing, cut | {header}, found)


def _cyclic(graph: _Graph, within: frozenset[int], cut: frozenset[int]) -> list[frozenset[int]]:
    return cyclic_components(within, lambda block: graph.successors(block, within, cut))


def _header(graph: _Graph, part: frozenset[int], cut: frozenset[int]) -> int:
    """The block through which a strongly connected part is entered; of several, one that is branched back to."""
    entries = [b for b in sorted(part) if b == 0 or any(p not in part for p in graph.predecessors[b])]
    latched = [b for b in entries if b not in cut and any(p in part and p >= b for p in graph.predecessors[b])]
    return (latched or entries or [min(part)])[0]


def _nested_at(graph: _Graph, part: frozenset[int], header: int) -> list[frozenset[int]]:
    """Loops inside `part` that share its header, outer before inner.

    A nest whose outer loop starts with its inner loop has one header and two closing branches; so has one loop whose
    body ends on two ways. They differ in what happens on the longer way: an outer loop changes a register that the
    inner loop counts, and not by the inner loop's own step.
    """
    latches = [p for p in graph.predecessors[header] if p in part]
    bodies = sorted({_natural(graph, part, header, latch) for latch in latches}, key=len)
    chain: list[frozenset[int]] = []
    for smaller, larger in zip(bodies, [*bodies[1:], part], strict=True):
        counting = _writes(graph, smaller)
        counted = {register for register, *_, read in counting if read}
        resets = {write for write in _writes(graph, larger - smaller) - counting if write[0] in counted}
        if smaller < larger and resets:
            chain.append(smaller)
    return chain[::-1]


def _natural(graph: _Graph, part: frozenset[int], header: int, latch: int) -> frozenset[int]:
    """Blocks that reach `latch` without passing `header`."""
    body = {header, latch}
    work = [latch] if latch != header else []
    while work:
        for predecessor in graph.predecessors[work.pop()]:
            if predecessor in part and predecessor not in body:
                body.add(predecessor)
                work.append(predecessor)
    return frozenset(body)


def _inside(graph: _Graph, blocks: Iterable[int]) -> Iterable[Instruction]:
    for number in blocks:
        block = graph.blocks[number]
        yield from graph.instructions[block.first : block.end]


def _writes(graph: _Graph, blocks: frozenset[int]) -> set[tuple[str, str, tuple[Operand, ...], bool]]:
    """Writes of general registers in `blocks`: register, mnemonic, operands, and whether the old value enters."""
    writes = set()
    for instruction in _inside(graph, blocks):
        bases = {reference.base for reference in instruction.memory}
        read = bases | {operand.register for operand in instruction.operands if operand.read}
        for operand in instruction.operands:
            if operand.written and operand.register and isa_of(instruction.isa).holds_address(operand):
                counts = operand.register in read
                writes.add((operand.register, instruction.mnemonic, instruction.operands, counts))
    return writes


def _number(
    listing: Listing,
    graph: _Graph,
    found: list[tuple[int, frozenset[int], int | None]],
    detours: tuple[_Detour, ...],
) -> tuple[LoopBody, ...]:
    """Give the loops their numbers, nesting and execution order."""
    labels = _labels(listing)
    first = [min(graph.blocks[b].first for b in blocks) for _, blocks, _ in found]
    by_address = sorted(range(len(found)), key=lambda k: (first[k], -len(found[k][1])))
    number = {k: place + 1 for place, k in enumerate(by_address)}
    loops = []
    for k in by_address:
        header, blocks, parent = found[k]
        order = _execution_order(graph, blocks, header)
        inside = tuple(i for b in order for i in range(graph.blocks[b].first, graph.blocks[b].end))
        depth, enclosing = 1, parent
        while enclosing is not None:
            depth, enclosing = depth + 1, found[enclosing][2]
        innermost = all(other[2] != k for other in found)
        label = labels.get(listing.instructions[inside[0]].address, "")
        up = None if parent is None else number[parent]
        cold = sorted(b for detour in detours if detour.hot <= blocks for b in detour.cold)
        left_out = tuple(i for b in cold for i in range(graph.blocks[b].first, graph.blocks[b].end))
        loops.append(LoopBody(number[k], header, order, inside, up, depth, innermost, label, left_out))
    return tuple(loops)


def _execution_order(graph: _Graph, blocks: frozenset[int], header: int) -> tuple[int, ...]:
    """Blocks so that each follows those it is reached from in the same pass, ending in the closing branch.

    A loop that is entered at its test in the middle is turned, so that the pass ends with the test's backward branch.
    """
    for start in (min(blocks), header):
        order = _topological(graph, blocks, start)
        if order is not None:
            return order
    return tuple(sorted(blocks))


def _topological(graph: _Graph, blocks: frozenset[int], start: int) -> tuple[int, ...] | None:
    """Topological order of `blocks` from `start` without the edges into it, lowest address first; None if cyclic."""
    waiting = {b: sum(1 for p in graph.predecessors[b] if p in blocks) for b in blocks if b != start}
    ready, order = [start], []
    while ready:
        block = min(ready)
        ready.remove(block)
        order.append(block)
        for successor in graph.blocks[block].successors:
            if successor in waiting:
                waiting[successor] -= 1
                if waiting[successor] == 0:
                    ready.append(successor)
    return tuple(order) if len(order) == len(blocks) else None


def _labels(listing: Listing) -> dict[int, str]:
    """Label by address; of several at one place a local one, to which branches go, before a function's name."""
    local_last = sorted(listing.labels, key=lambda label: label[0].startswith("."))
    return {address: name for name, address in local_last}
