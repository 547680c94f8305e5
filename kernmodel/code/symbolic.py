"""What registers and stack slots hold, as linear expressions: one symbolic execution of a whole listing.

Every block is executed once, in an order in which a loop's head comes before its body. At the head of a loop each
register and stack slot that the loop writes becomes a symbol of that loop; its value before the loop and after one pass
are kept, and `kernmodel.code.strides` derives from them how it advances. What is not linear becomes a symbol of its
own, so that ignorance stays local. Assumed, as in C: index arithmetic does not overflow, and stores to arrays change no
stack slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from kernmodel.code.loops import ControlFlow, LoopBody
from kernmodel.isa import isa_of
from kernmodel.isa.linear import ZERO, Comparison, Linear, address_of, symbol
from kernmodel.isa.model import Instruction, Listing, MemoryReference
from kernmodel.isa.protocol import Effect, Isa, Registers
from kernmodel.value_types import dataclass

_LONG = 200
"""Characters of an address from which on what is read there is named by a number."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The values that matter for loops.

    Attributes:
        addresses: per instruction, the address of each of its memory references when it executes.
        branches: per conditional branch, what its flags compare, None where that is not linear.
        initial: per loop, the value of each of the loop's symbols before the first pass.
        final: per loop, the value of each of the loop's symbols after one pass, in symbols at the start of the pass.
        cells: for symbols that stand for the content of memory, its address.
        origin: for symbols that stand for something unknown, the block where it comes into being.
    """

    addresses: Mapping[int, tuple[Linear, ...]]
    branches: Mapping[int, Comparison | None]
    initial: Mapping[int, Mapping[str, Linear]]
    final: Mapping[int, Mapping[str, Linear]]
    cells: Mapping[str, Linear]
    origin: Mapping[str, int]


@dataclass(slots=True)
class _State:
    """Registers and memory cells at one point; what is absent still has its value from the function's entry."""

    registers: dict[str, Linear] = field(default_factory=dict)
    memory: dict[Linear, tuple[Linear, int]] = field(default_factory=dict)
    flags: Comparison | None = None

    def register(self, name: str) -> Linear:
        return self.registers.get(name) or symbol(name)

    def copy(self) -> _State:
        return _State(dict(self.registers), dict(self.memory), self.flags)


@dataclass(slots=True)
class _Execution:
    """The one mutable thing here: the state while executing, and the trace as it grows."""

    isa: Isa
    state: _State
    block: int
    written: frozenset[str]
    cells: dict[str, Linear] = field(default_factory=dict)
    origin: dict[str, int] = field(default_factory=dict)
    slots: dict[str, Linear] = field(default_factory=dict)
    numbers: dict[Linear, int] = field(default_factory=dict)

    def unknown(self, name: str) -> Linear:
        self.origin[name] = self.block
        return symbol(name)

    def address(self, reference: MemoryReference) -> Linear:
        return address_of(reference, self.state.register, self.isa.registers.program_counter) or ZERO

    def text(self, address: Linear) -> str:
        """A name of an address: a number at the end of a chain of pointers, whose name would hold the whole chain."""
        text = str(address)
        if len(text) <= _LONG:
            return text
        return f"#{self.numbers.setdefault(address, len(self.numbers))}"

    def load(self, address: Linear, size: int, name: str) -> Linear:
        stored = self.state.memory.get(address)
        if stored is not None:
            return stored[0] if stored[1] == size else self.unknown(name)
        cell = f"[{self.text(address)}].{size}"
        self.cells[cell] = address
        return symbol(cell)

    def effect(self, instruction: Instruction, index: int) -> Effect:
        """What the instruction does in this state."""
        references = instruction.memory

        def loaded(number: int) -> Linear:
            reference = references[number]
            return self.load(self.address(reference), reference.size_bytes, f"?{index}.[{number}]")

        return self.isa.effect(instruction, self.state.register, loaded)

    def execute(self, instruction: Instruction, index: int, effect: Effect) -> None:
        """Apply one instruction to the state; what is not known becomes a symbol of its own."""
        if instruction.branch == "call":
            for register in self.isa.registers.clobbered:
                self.state.registers[register] = self.unknown(f"?{index}.{register}")
            self.state.flags = None
        if instruction.branch is not None:
            return
        known = dict(effect.registers)
        for register in instruction.registers_written:
            value = known.get(register)
            self.state.registers[register] = value.wrapped() if value else self.unknown(f"?{index}.{register}")
        stores = dict(effect.stores)
        for number, (reference, address) in enumerate(zip(instruction.memory, effect.addresses, strict=True)):
            if reference.written and address is not None:
                value = stores.get(number) or self.unknown(f"?{index}.{number}")
                self.state.memory[address] = (value, reference.size_bytes)
        if instruction.flags_written:
            self.state.flags = effect.compared


def trace(listing: Listing, flow: ControlFlow) -> Trace:
    """Execute every block of `flow` once and keep the values that the analysis of its loops needs."""
    isa = isa_of(listing.isa)
    run = _Execution(isa, _State(), 0, frozenset(_written_registers(isa, listing.instructions)))
    after: dict[int, _State] = {}
    headed: dict[int, list[LoopBody]] = {}
    for loop in flow.loops:
        headed.setdefault(loop.header, []).append(loop)
    addresses: dict[int, tuple[Linear, ...]] = {}
    branches: dict[int, Comparison | None] = {}
    initial: dict[int, dict[str, Linear]] = {}
    for block in _order(flow):
        run.block = block
        run.state = _enter(run, listing.instructions, flow, block, headed.get(block, []), after)
        for loop in headed.get(block, ()):
            initial[loop.number] = _open_loop(run, listing.instructions, loop)
        for index in range(flow.blocks[block].first, flow.blocks[block].end):
            instruction = listing.instructions[index]
            effect = run.effect(instruction, index)
            if instruction.memory:
                addresses[index] = tuple(address or ZERO for address in effect.addresses)
            if instruction.branch == "conditional":
                branches[index] = effect.compared or run.state.flags
            run.execute(instruction, index, effect)
        after[block] = run.state
    final = {loop.number: _close_loop(run, flow, loop, after, initial[loop.number]) for loop in flow.loops}
    return Trace(addresses, branches, initial, final, run.cells, run.origin)


def _order(flow: ControlFlow) -> list[int]:
    """Reverse postorder: a block comes after those it is reached from, except along branches back to a loop's head."""
    seen: set[int] = set()
    post: list[int] = []
    roots = [b for b in range(len(flow.blocks)) if b == 0 or not flow.predecessors[b]]
    for root in [*reversed(roots), *(loop.header for loop in flow.loops), *range(len(flow.blocks))]:
        if root in seen:
            continue
        seen.add(root)
        work = [(root, iter(flow.blocks[root].successors))]
        tree: list[int] = []
        while work:
            node, following = work[-1]
            successor = next((s for s in following if s not in seen), None)
            if successor is None:
                tree.append(node)
                work.pop()
            else:
                seen.add(successor)
                work.append((successor, iter(flow.blocks[successor].successors)))
        post += tree
    return post[::-1]


def _enter(
    run: _Execution,
    instructions: tuple[Instruction, ...],
    flow: ControlFlow,
    block: int,
    loops: list[LoopBody],
    after: Mapping[int, _State],
) -> _State:
    """The state in which `block` starts, before the symbols of the loops that it heads."""
    state = _join(run, [after[p] for p in flow.predecessors[block] if p in after])
    later = [p for p in flow.predecessors[block] if p not in after]
    if all(any(p in loop.blocks for loop in loops) for p in later):
        return state
    # a jump back into the middle of a loop: known is what all ways into it agree on and nothing within it writes
    around = _on_cycles(flow, block)
    entries = {p for b in around for p in flow.predecessors[b]} - around
    written = run.written
    if 0 not in around and entries <= after.keys():
        state = _join(run, [after[p] for p in sorted(entries)])
        inside = [instructions[i] for b in around for i in range(flow.blocks[b].first, flow.blocks[b].end)]
        written = frozenset(_written_registers(run.isa, inside))
    state.registers |= {name: run.unknown(f"{name}@{block}") for name in written}
    state.memory = {a: (run.unknown(f"[{a}]@{block}"), size) for a, (_, size) in state.memory.items()}
    state.flags = None
    return state


def _on_cycles(flow: ControlFlow, block: int) -> frozenset[int]:
    """The blocks that lie on ways from a block back to itself."""

    def reached(neighbours: Callable[[int], Iterable[int]]) -> set[int]:
        seen: set[int] = set()
        work = [block]
        while work:
            new = set(neighbours(work.pop())) - seen
            seen |= new
            work += new
        return seen

    return frozenset(reached(lambda b: flow.blocks[b].successors) & reached(lambda b: flow.predecessors[b]))


def _join(run: _Execution, states: list[_State]) -> _State:
    """The state where several ways meet: what they agree on; the rest is unknown."""
    if len(states) <= 1:
        return states[0].copy() if states else _State()
    first, *others = states
    joined = _State(flags=first.flags if all(s.flags == first.flags for s in others) else None)
    for register in set().union(*(s.registers for s in states)):
        value = first.register(register)
        agreed = all(s.register(register) == value for s in others)
        joined.registers[register] = value if agreed else run.unknown(f"{register}@{run.block}")
    for address in set().union(*(s.memory for s in states)):
        stored = first.memory.get(address)
        agreed = stored is not None and all(s.memory.get(address) == stored for s in others)
        size = next(s.memory[address][1] for s in states if address in s.memory)
        joined.memory[address] = stored if agreed and stored else (run.unknown(f"[{address}]@{run.block}"), size)
    return joined


def _open_loop(run: _Execution, instructions: tuple[Instruction, ...], loop: LoopBody) -> dict[str, Linear]:
    """Replace what the loop writes by symbols of the loop; return their values before it."""
    initial: dict[str, Linear] = {}
    body = [instructions[index] for index in loop.instructions]
    for register in sorted(_written_registers(run.isa, body)):
        name = f"{register}#{loop.number}"
        initial[name] = run.state.register(register)
        run.state.registers[register] = symbol(name)
        run.origin[name] = run.block
    for reference in _written_slots(run.isa.registers, body):
        address = run.address(reference)
        name = f"[{address}]#{loop.number}"
        if name not in initial:
            run.slots[name] = address
            initial[name] = run.load(address, reference.size_bytes, f"{name}?")
            run.state.memory[address] = (symbol(name), reference.size_bytes)
            run.origin[name] = run.block
    return initial


def _written_registers(isa: Isa, body: Iterable[Instruction]) -> set[str]:
    """The registers that a body writes; pushes and pops are taken to leave the stack pointer where it was."""
    written: set[str] = set()
    for instruction in body:
        written |= {o.register for o in instruction.operands if o.register and o.written}
        written |= set(instruction.implicit_writes) - {isa.registers.stack_pointer}
        if instruction.branch == "call":
            written |= set(isa.registers.clobbered)
    return written


def _written_slots(registers: Registers, body: Iterable[Instruction]) -> list[MemoryReference]:
    """Written memory at a fixed place of the stack frame or of the data section."""
    fixed = (*registers.frame, registers.program_counter, None)
    return [m for i in body for m in i.memory if m.written and m.index is None and m.base in fixed]


def _close_loop(
    run: _Execution, flow: ControlFlow, loop: LoopBody, after: Mapping[int, _State], initial: Mapping[str, Linear]
) -> dict[str, Linear]:
    """The values of the loop's symbols at its branches back."""
    inside = [other for other in flow.loops if other.parent == loop.number and other.header == loop.header]
    inner = {block for other in inside for block in other.blocks}
    latches = [p for p in flow.predecessors[loop.header] if p in loop.blocks and p not in inner]
    run.block = loop.header
    state = _join(run, [after[p] for p in latches])
    final = {}
    for name in initial:
        if name not in run.slots:
            final[name] = state.register(name.rpartition("#")[0])
            continue
        stored = state.memory.get(run.slots[name])
        final[name] = stored[0] if stored else run.unknown(f"{name}?")
    return final
