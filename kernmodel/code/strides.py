"""How the addresses of a loop advance: constant-stride analysis of each memory reference.

A value that a loop changes is a symbol of the loop (see `kernmodel.code.symbolic`). It advances by a constant where
its value after one pass is itself plus something that the loop does not change; by the step of another value where it
is a copy of that value's past (`mov rax,rdx; add rdx,8`). The stride of an address is the sum over its symbols. A
stride that is invariant but no number (an index advanced by a register) is looked up before the loop; if it is no
number there either, it stays symbolic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import product

from kernmodel.code.loops import ControlFlow, LoopBody
from kernmodel.code.model import AddressStream, StreamStart
from kernmodel.code.symbolic import Trace, trace
from kernmodel.isa import isa_of
from kernmodel.isa.linear import ZERO, Comparison, Linear, symbol
from kernmodel.isa.model import Condition, Instruction, Listing
from kernmodel.value_types import dataclass

_PASSES = "passes#"
"""With the number of a loop, the symbol of the passes of it that were done."""


@dataclass(frozen=True, slots=True)
class LoopStrides:
    """What the constant-stride analysis finds out about one loop.

    Attributes:
        loop: the loop.
        streams: one per memory reference, in execution order; their `instruction` counts within the loop's body.
        addresses: per stream, its address in the first instruction's values (symbols of this loop at the pass's start).
        passes: how often the body executes each time the loop is entered, where the closing comparison is against a
            value that is known before the loop; None otherwise.
    """

    loop: LoopBody
    streams: tuple[AddressStream, ...]
    addresses: tuple[Linear, ...]
    passes: int | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A listing, its control flow and its symbolic execution: everything the strides are computed from."""

    listing: Listing
    flow: ControlFlow
    trace: Trace


@dataclass(slots=True)
class _Steps:
    """How values advance in one loop; `known` grows on demand, None marks what is not invariant (or being computed,
    with what decides it `pending`).

    `others` has this for every loop of the listing.
    """

    analysis: Analysis
    loop: LoopBody
    others: dict[int, _Steps]
    known: dict[str, Linear | None] = field(default_factory=dict)
    pending: dict[str, Linear | None] = field(default_factory=dict)

    def of(self, value: Linear) -> Linear | None:
        """What `value` advances by per pass."""
        total = ZERO
        for name, factor in value.terms:
            step = self.of_symbol(name)
            if step is None:
                return None
            total += step * factor
        return total

    def of_symbol(self, name: str) -> Linear | None:
        """What a symbol advances by per pass. What it depends on is found first, innermost first: a pointer may be
        followed more often than calls can be nested."""
        waiting = [] if name in self.known else [name]
        while waiting:
            one = waiting[-1]
            if one in self.known:
                waiting.pop()
                if one in self.pending:
                    self.known[one] = self._compute(one, self.pending.pop(one))
                continue
            self.known[one] = None
            after = self._after(one)
            self.pending[one] = after
            waiting += [other for other, _ in after.terms if other not in self.known] if after is not None else []
        return self.known[name]

    def _after(self, name: str) -> Linear | None:
        """What decides how a symbol advances: its value after one pass, of the content of memory its address; None of
        what the loop has no value for."""
        found = self.analysis.trace
        after = found.final[self.loop.number].get(name)
        return found.cells.get(name) if after is None else self.after_inner_loops(after)

    def _compute(self, name: str, after: Linear | None) -> Linear | None:
        found = self.analysis.trace
        if after is None:
            return None if found.origin.get(name) in self.loop.blocks else ZERO
        if name not in found.final[self.loop.number]:
            return ZERO if self.of(after) == ZERO else None
        own = after.coefficient(name)
        if own == 0:
            return self.of(after)
        rest = after - symbol(name)
        invariant = own == 1 and all(self.of_symbol(other) == ZERO for other, _ in rest.terms)
        return rest if invariant else None

    def after_inner_loops(self, value: Linear) -> Linear:
        """`value` with the symbols of loops within this one replaced by what they were in the last pass of theirs,
        where that is known: compilers go on counting from where a loop within left a pointer."""
        blocks, total = set(self.loop.blocks), Linear(value.constant)
        within = [other for other in self.analysis.flow.loops if set(other.blocks) < blocks]
        for name, factor in value.terms:
            inner = next((one for one in within if name in self.analysis.trace.initial[one.number]), None)
            last = self.others[inner.number].in_last_pass(name) if inner else None
            total += (last or symbol(name)) * factor
        return total

    def in_last_pass(self, name: str) -> Linear | None:
        """What a symbol of the loop is in its last pass, None where that is not known: of loops that are left at their
        end, what they add a number to in each pass."""
        closing, step = _closing_branch(self.analysis, self.loop), self.of_symbol(name)
        if closing is None or step is None or step.terms or _is_ahead(self.analysis, self.loop, closing):
            return None
        found, passes = self.analysis.trace, _passes(self.analysis, self.others, self.loop)
        if passes is None or not found.final[self.loop.number][name].coefficient(name):
            return None
        return found.initial[self.loop.number][name] + Linear(step.constant * (passes - 1))


def analyse(listing: Listing, flow: ControlFlow) -> Analysis:
    """Execute `listing` symbolically for the loops of `flow`."""
    return Analysis(listing, flow, trace(listing, flow))


def loop_strides(analysis: Analysis, loop: LoopBody) -> LoopStrides:
    """The strides of all memory references of `loop`, and how often it executes."""
    steps: dict[int, _Steps] = {}
    steps |= {other.number: _Steps(analysis, other, steps) for other in analysis.flow.loops}
    streams, addresses = [], []
    for place, index in enumerate(loop.instructions):
        instruction = analysis.listing.instructions[index]
        for reference, found in zip(instruction.memory, analysis.trace.addresses.get(index, ()), strict=True):
            address = steps[loop.number].after_inner_loops(found)
            step = steps[loop.number].of(address)
            step = step if step is None else _resolve(analysis, steps, step)
            stride = step.constant if step is not None and not step.terms else None
            streams.append(AddressStream(place, reference, stride, _start(analysis, steps, loop, address)))
            addresses.append(address)
    return LoopStrides(loop, tuple(streams), tuple(addresses), _passes(analysis, steps, loop))


_MOST_CHOICES = 3
"""Branches within a loop that choose among versions, at most: of more, no versions are made."""


def versions(analysis: Analysis, whole: LoopStrides) -> tuple[LoopStrides, ...]:
    """The versions of a loop's body among which branches choose that go the same way in every pass, each as a loop of
    its own; the loop as it is where it has none.

    Compilers test within a nest whether the arrays of a loop overlap, and the test stays in the loop around where
    they unroll the inner one entirely.
    """
    choosing = [block for block in whole.loop.blocks if _chooses_once(analysis, whole.loop, block)]
    if not choosing or len(choosing) > _MOST_CHOICES:
        return (whole,)
    found: dict[tuple[int, ...], LoopStrides] = {}
    for ways in product(*(analysis.flow.blocks[block].successors for block in choosing)):
        kept = _on_the_way(analysis, whole.loop, dict(zip(choosing, ways, strict=True)))
        if whole.loop.header in kept:
            one = _version(analysis, whole, kept)
            found[one.loop.blocks] = one
    return tuple(found.values())


def _chooses_once(analysis: Analysis, loop: LoopBody, number: int) -> bool:
    """Whether a block ends in a branch within the loop on something that the loop does not change."""
    block = analysis.flow.blocks[number]
    compared = analysis.trace.branches.get(block.end - 1)
    if compared is None or len(block.successors) < 2 or _leaves(analysis, loop, number):
        return False
    branch = analysis.listing.instructions[block.end - 1]
    tested = _tested(compared, isa_of(branch.isa).condition(branch))
    if tested is None or loop.header in block.successors:
        return False
    steps: dict[int, _Steps] = {}
    steps |= {other.number: _Steps(analysis, other, steps) for other in analysis.flow.loops}
    return steps[loop.number].of(tested) == ZERO


def _on_the_way(analysis: Analysis, loop: LoopBody, chosen: dict[int, int]) -> frozenset[int]:
    """The blocks of a loop that lie on a way from its head back to it, where some blocks have one successor only."""
    following = {
        block: [s for s in analysis.flow.blocks[block].successors if s in loop.blocks and chosen.get(block, s) == s]
        for block in loop.blocks
    }
    before = {block: [b for b in loop.blocks if block in following[b]] for block in loop.blocks}
    return _reached(following, loop.header) & _reached(before, loop.header)


def _reached(following: dict[int, list[int]], start: int) -> frozenset[int]:
    """What is reached from a block by a step or more."""
    seen: set[int] = set()
    work = [start]
    while work:
        new = set(following[work.pop()]) - seen
        seen |= new
        work += new
    return frozenset(seen)


def _version(analysis: Analysis, whole: LoopStrides, kept: frozenset[int]) -> LoopStrides:
    """A loop with some of its blocks only."""
    blocks = analysis.flow.blocks

    def inside(wanted: bool) -> Iterator[int]:
        for block in whole.loop.blocks:
            if (block in kept) == wanted:
                yield from range(blocks[block].first, blocks[block].end)

    own = tuple(inside(True))
    places = {index: place for place, index in enumerate(own)}
    streams = [
        (replace(stream, instruction=places[index]), address)
        for stream, address in zip(whole.streams, whole.addresses, strict=True)
        if (index := whole.loop.instructions[stream.instruction]) in places
    ]
    body = replace(
        whole.loop,
        blocks=tuple(block for block in whole.loop.blocks if block in kept),
        instructions=own,
        other_ways=tuple(inside(False)),
    )
    return replace(
        whole,
        loop=body,
        streams=tuple(stream for stream, _ in streams),
        addresses=tuple(address for _, address in streams),
    )


def _resolve(analysis: Analysis, steps: dict[int, _Steps], value: Linear) -> Linear:
    """`value` with the symbols of loops replaced by what they were before their loop, plus steps × passes done.

    The number of passes done is one symbol a loop, so that it cancels in differences of values that advance alike.
    """
    total = Linear(value.constant)
    for name, factor in value.terms:
        number = next((n for n, start in analysis.trace.initial.items() if name in start), None)
        step = None if number is None else steps[number].of_symbol(name)
        if number is None or step is None or step.terms:
            total += symbol(name) * factor
        else:
            total += _resolve(analysis, steps, analysis.trace.initial[number][name]) * factor
            total += Linear(0, ((f"{_PASSES}{number}", step.constant * factor),) if step.constant else ())
    return total


def _entry(analysis: Analysis, steps: dict[int, _Steps], loop: LoopBody, value: Linear) -> Linear:
    """`value` in the first pass of `loop`, in what is known before it."""
    start = analysis.trace.initial[loop.number]
    total = Linear(value.constant)
    for name, factor in value.terms:
        total += start.get(name, symbol(name)) * factor
    return _resolve(analysis, steps, total)


def _start(analysis: Analysis, steps: dict[int, _Steps], loop: LoopBody, address: Linear) -> StreamStart | None:
    """Where an address begins, if it is some bytes from what one register held at the entry, or from one name."""
    first = _entry(analysis, steps, loop, address)
    outer = [other for other in analysis.flow.loops if other != loop and set(other.blocks).issuperset(loop.blocks)]
    around = {f"{_PASSES}{other.number}": other for other in sorted(outer, key=lambda other: -other.depth)}
    bases = [(name, factor) for name, factor in first.terms if name not in around]
    if len(bases) != 1 or bases[0][1] != 1:
        return None
    rows = tuple((first.coefficient(name), _passes(analysis, steps, other)) for name, other in around.items())
    return StreamStart(bases[0][0], first.constant, rows)


def _passes(analysis: Analysis, steps: dict[int, _Steps], loop: LoopBody) -> int | None:
    """How often the body executes each time the loop is entered; None where the closing comparison does not tell."""
    closing = _closing_branch(analysis, loop)
    compared = None if closing is None else analysis.trace.branches.get(closing)
    if closing is None or compared is None:
        return None
    condition = _continues(analysis, loop, closing)
    tested = _tested(compared, condition)
    step = None if tested is None else steps[loop.number].of(tested)
    step = step if step is None else _resolve(analysis, steps, step)
    if tested is None or step is None or step.terms:
        return None
    first = _entry(analysis, steps, loop, tested)
    if first.terms:
        return None
    tests = _count(first.constant, step.constant, condition)
    # a loop entered at its test, ahead of the rest of its body, tests once more than it executes the body
    return tests - 1 if tests is not None and _is_ahead(analysis, loop, closing) else tests


def _is_ahead(analysis: Analysis, loop: LoopBody, closing: int) -> bool:
    """Whether the branch that leaves the loop comes ahead of the rest of its body."""
    return len(loop.blocks) > 1 and analysis.flow.blocks[loop.header].end - 1 == closing


def _tested(compared: Comparison, condition: Condition | None) -> Linear | None:
    """The value that `condition` compares with zero, None if unknown; unsigned order is that of the carry flag.

    Unsigned values are taken as signed ones, which is the same while addresses and sizes stay below 2^63.
    """
    if condition in ("be", "a") and compared.carry != compared.difference:
        return None
    return compared.carry if condition in ("b", "ae") else compared.difference


def _closing_branch(analysis: Analysis, loop: LoopBody) -> int | None:
    """The one conditional branch that leaves the loop, None if there are several."""
    leaving = [block for block in loop.blocks if _leaves(analysis, loop, block)]
    if len(leaving) != 1:
        return None
    last = analysis.flow.blocks[leaving[0]].end - 1
    return last if analysis.listing.instructions[last].branch == "conditional" else None


def _leaves(analysis: Analysis, loop: LoopBody, number: int) -> bool:
    """Whether a block has a way out of the loop, which may be out of the listing."""
    block = analysis.flow.blocks[number]
    conditional = analysis.listing.instructions[block.end - 1].branch == "conditional"
    ways = len(block.successors) + len(block.avoided)
    return not set(loop.blocks).issuperset(block.successors) or (conditional and ways < 2)


_OPPOSITE: dict[Condition, Condition] = {
    "e": "ne", "ne": "e", "l": "ge", "ge": "l", "le": "g", "g": "le",
    "b": "ae", "ae": "b", "be": "a", "a": "be", "s": "ns", "ns": "s", "u": "o", "o": "u",
}  # fmt: skip
_ORDER = {
    "l": (1, 0), "b": (1, 0), "s": (1, 0), "le": (1, 1), "be": (1, 1),
    "g": (-1, 0), "a": (-1, 0), "ge": (-1, 1), "ae": (-1, 1), "ns": (-1, 1),
}  # fmt: skip
"""Conditions that order, as sign × difference < limit."""


def _continues(analysis: Analysis, loop: LoopBody, branch: int) -> Condition | None:
    """The condition under which the loop goes on: the branch's, or its opposite if the branch leaves the loop."""
    instruction: Instruction = analysis.listing.instructions[branch]
    condition = isa_of(instruction.isa).condition(instruction)
    starts = {analysis.listing.instructions[analysis.flow.blocks[b].first].address for b in loop.blocks}
    return condition if condition is None or instruction.target in starts else _OPPOSITE[condition]


def _count(first: int, step: int, condition: Condition | None) -> int | None:
    """Passes of a loop that tests, at the end of each pass, first, first + step, …; None if it would not end."""
    if condition == "ne":
        if first == 0:
            return 1
        return -first // step + 1 if step and first % step == 0 and first // step < 0 else None
    if condition == "e":
        return 1 if first else None
    if condition is None or condition not in _ORDER:
        return None
    sign, limit = _ORDER[condition]
    value, towards = sign * first, sign * step
    if value >= limit:
        return 1
    return -((value - limit) // towards) + 1 if towards > 0 else None
