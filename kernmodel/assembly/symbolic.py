"""What registers and stack slots hold, as linear expressions: one symbolic execution of a whole listing.

Every block is executed once, in an order in which a loop's head comes before its body. At the head of a loop each
register and stack slot that the loop writes becomes a symbol of that loop; its value before the loop and after one pass
are kept, and `kernmodel.assembly.strides` derives from them how it advances. What is not linear becomes a symbol of its
own, so that ignorance stays local. Assumed, as in C: index arithmetic does not overflow, and stores to arrays change no
stack slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kernmodel.assembly.loops import ControlFlow, LoopBody
from kernmodel.assembly.model import Instruction, Listing, MemoryReference, Operand


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + Σ coefficient × symbol; `terms` sorted by symbol, without zeros."""

    constant: int
    terms: tuple[tuple[str, int], ...] = ()

    def coefficient(self, symbol: str) -> int:
        """The coefficient of `symbol`, 0 if absent."""
        return next((factor for name, factor in self.terms if name == symbol), 0)

    def __add__(self, other: Linear) -> Linear:
        if not other.terms:
            return Linear(self.constant + other.constant, self.terms) if other.constant else self
        if not self.terms:
            return Linear(self.constant + other.constant, other.terms)
        total = dict(self.terms)
        for symbol, factor in other.terms:
            total[symbol] = total.get(symbol, 0) + factor
        return Linear(self.constant + other.constant, tuple(sorted((s, f) for s, f in total.items() if f)))

    def __mul__(self, factor: int) -> Linear:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Linear(self.constant * factor, tuple((symbol, f * factor) for symbol, f in self.terms))

    def __sub__(self, other: Linear) -> Linear:
        return self + other * -1

    def __str__(self) -> str:
        parts = [symbol if factor == 1 else f"{factor}*{symbol}" for symbol, factor in self.terms]
        return " + ".join(parts + ([str(self.constant)] if self.constant or not parts else []))


ZERO = Linear(0)


def symbol(name: str) -> Linear:
    """The expression that is one symbol."""
    return Linear(0, ((name, 1),))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What flags stand for: zero, sign and signed order are those of `difference` against zero.

    The carry flag is set where `carry` is negative; None where that is not known. After a comparison or subtraction
    that is the difference itself; adding −c carries where the result is not negative.
    """

    difference: Linear
    carry: Linear | None = None


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

    state: _State
    block: int
    written: frozenset[str]
    cells: dict[str, Linear] = field(default_factory=dict)
    origin: dict[str, int] = field(default_factory=dict)
    slots: dict[str, Linear] = field(default_factory=dict)

    def unknown(self, name: str) -> Linear:
        self.origin[name] = self.block
        return symbol(name)

    def address(self, reference: MemoryReference) -> Linear:
        total = Linear(reference.displacement)
        if reference.symbol:
            total += symbol(f"&{reference.symbol}")
        if reference.segment:
            total += symbol(f"{reference.segment}:")
        if reference.base and reference.base != "rip":
            total += self.state.register(reference.base)
        if reference.index:
            total += self.state.register(reference.index) * reference.scale
        return total

    def load(self, address: Linear, size: int, name: str) -> Linear:
        stored = self.state.memory.get(address)
        if stored is not None:
            return stored[0] if stored[1] == size else self.unknown(name)
        cell = f"[{address}].{size}"
        self.cells[cell] = address
        return symbol(cell)

    def read(self, operand: Operand, name: str) -> Linear:
        """The value of an operand of 32 or 64 bits (or a general value in a vector register); else a new symbol."""
        if operand.immediate is not None:
            # the decoder gives 32-bit immediates without sign; only i64 holds numbers of that size
            narrow = operand.kind != "i64" and 0 <= operand.immediate < 1 << 32
            return Linear(_signed(operand.immediate, 32) if narrow else operand.immediate)
        if operand.register is not None:
            tracked = operand.kind in ("r32", "r64", "xmm")
            return self.state.register(operand.register) if tracked else self.unknown(name)
        if operand.memory is not None and operand.memory.size_bytes in (4, 8):
            return self.load(self.address(operand.memory), operand.memory.size_bytes, name)
        return self.unknown(name)

    def write(self, operand: Operand, value: Linear, name: str) -> None:
        if operand.register is not None:
            if operand.kind == "r32" and not value.terms:
                value = Linear(_signed(value.constant, 32))
            known = operand.kind in ("r32", "r64", "xmm")
            self.state.registers[operand.register] = value if known else self.unknown(name)
        elif operand.memory is not None:
            self.state.memory[self.address(operand.memory)] = (value, operand.memory.size_bytes)


def _signed(value: int, bits: int) -> int:
    """`value` modulo 2^bits as a signed number."""
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


Effect = Callable[[_Execution, Instruction, str], Comparison | None]
"""Applies an instruction to the state (the text names unknown results); returns what its flags stand for, if linear."""


def _move(run: _Execution, instruction: Instruction, name: str) -> None:
    target, source = instruction.operands
    run.write(target, run.read(source, name), name)


def _move_vector(run: _Execution, instruction: Instruction, name: str) -> None:
    """Move between a general and a vector register; other moves into vector registers are of no interest."""
    target, source = instruction.operands[0], instruction.operands[-1]
    general = {"r32", "r64"} & {target.kind, source.kind}
    run.write(target, run.read(source, name) if general else run.unknown(name), name)


def _add(run: _Execution, instruction: Instruction, name: str) -> Comparison:
    return _update(run, instruction, name, 1)


def _sub(run: _Execution, instruction: Instruction, name: str) -> Comparison:
    return _update(run, instruction, name, -1)


def _update(run: _Execution, instruction: Instruction, name: str, sign: int) -> Comparison:
    target = instruction.operands[0]
    step = Linear(1) if len(instruction.operands) == 1 else run.read(instruction.operands[1], f"{name}s")
    value = run.read(target, name) + step * sign
    run.write(target, value, name)
    if sign < 0:
        return Comparison(value, value)
    negative = not step.terms and step.constant < 0
    return Comparison(value, value * -1 - Linear(1) if negative else None)


def _negate(run: _Execution, instruction: Instruction, name: str) -> Comparison:
    value = run.read(instruction.operands[0], name) * -1
    run.write(instruction.operands[0], value, name)
    return Comparison(value)


def _invert(run: _Execution, instruction: Instruction, name: str) -> None:
    run.write(instruction.operands[0], run.read(instruction.operands[0], name) * -1 - Linear(1), name)


def _load_address(run: _Execution, instruction: Instruction, name: str) -> None:
    reference = instruction.operands[1].memory
    run.write(instruction.operands[0], run.address(reference) if reference else run.unknown(name), name)


def _shift_left(run: _Execution, instruction: Instruction, name: str) -> None:
    amount = _amount(run, instruction, name)
    value = run.read(instruction.operands[0], name)
    run.write(instruction.operands[0], run.unknown(name) if amount is None else value * (1 << amount), name)


def _shift_right(run: _Execution, instruction: Instruction, name: str) -> None:
    """Exact where every coefficient divides; the constant is rounded down, as the machine does."""
    amount = _amount(run, instruction, name)
    value = run.read(instruction.operands[0], name)
    if amount is None or any(factor % (1 << amount) for _, factor in value.terms):
        value = run.unknown(name)
    else:
        value = Linear(value.constant >> amount, tuple((s, factor >> amount) for s, factor in value.terms))
    run.write(instruction.operands[0], value, name)


def _amount(run: _Execution, instruction: Instruction, name: str) -> int | None:
    if len(instruction.operands) == 1:
        return 1
    amount = instruction.operands[-1].immediate
    return None if amount is None else amount & 63


def _multiply(run: _Execution, instruction: Instruction, name: str) -> None:
    if len(instruction.operands) == 1:
        return _forget(run, instruction, name)
    left, right = (run.read(operand, f"{name}{k}") for k, operand in enumerate(instruction.operands[-2:]))
    if left.terms and right.terms:
        product = run.unknown(name)
    else:
        product = left * right.constant if left.terms else right * left.constant
    return run.write(instruction.operands[0], product, name)


def _bitwise(run: _Execution, instruction: Instruction, name: str) -> Comparison | None:
    """xor of a register with itself; and, or, xor of constants."""
    target, source = instruction.operands
    if instruction.same_register and instruction.mnemonic == "xor":
        run.write(target, ZERO, name)
        return Comparison(ZERO)
    left, right = run.read(target, name), run.read(source, f"{name}s")
    value = run.unknown(name)
    if not left.terms and not right.terms:
        operation = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}[instruction.mnemonic]
        value = Linear(operation(left.constant, right.constant))
    elif right == ZERO and instruction.mnemonic == "and":
        value = ZERO
    elif instruction.same_register:
        value = left
    run.write(target, value, name)
    return Comparison(value)


def _exchange(run: _Execution, instruction: Instruction, name: str) -> None:
    if not instruction.operands:  # a two-byte nop is written as an exchange of ax with itself
        return
    first, second = instruction.operands
    old, new = run.read(first, name), run.read(second, f"{name}s")
    run.write(first, new, name)
    run.write(second, old, f"{name}s")


def _compare(run: _Execution, instruction: Instruction, name: str) -> Comparison:
    left, right = instruction.operands
    difference = run.read(left, name) - run.read(right, f"{name}s")
    return Comparison(difference, difference)


def _test(run: _Execution, instruction: Instruction, name: str) -> Comparison | None:
    return Comparison(run.read(instruction.operands[0], name)) if instruction.same_register else None


def _push(run: _Execution, instruction: Instruction, name: str) -> None:
    value = run.read(instruction.operands[0], name)
    top = run.state.register("rsp") - Linear(8)
    run.state.registers["rsp"] = top
    run.state.memory[top] = (value, 8)


def _pop(run: _Execution, instruction: Instruction, name: str) -> None:
    top = run.state.register("rsp")
    run.state.registers["rsp"] = top + Linear(8)
    run.write(instruction.operands[0], run.load(top, 8, name), name)


def _leave(run: _Execution, instruction: Instruction, name: str) -> None:
    frame = run.state.register("rbp")
    run.state.registers |= {"rsp": frame + Linear(8), "rbp": run.load(frame, 8, name)}


def _conditional_move(run: _Execution, instruction: Instruction, name: str) -> None:
    target, source = instruction.operands
    kept, moved = run.read(target, name), run.read(source, f"{name}s")
    run.write(target, kept if kept == moved else run.unknown(name), name)


def _keep(run: _Execution, instruction: Instruction, name: str) -> None:
    """No general register changes."""


_CLOBBERED = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")


def _call(run: _Execution, instruction: Instruction, name: str) -> None:
    """The registers that a called function may overwrite (System V ABI)."""
    for register in _CLOBBERED:
        run.state.registers[register] = run.unknown(f"{register}?{name}")


def _forget(run: _Execution, instruction: Instruction, name: str) -> None:
    """Any other instruction: what it writes is unknown."""
    for place, operand in enumerate(instruction.operands):
        if operand.written:
            run.write(operand, run.unknown(f"{name}{place}"), f"{name}{place}")
    for register in instruction.implicit_writes:
        run.state.registers[register] = run.unknown(f"{register}?{name}")


_X86: dict[str, Effect] = {
    **dict.fromkeys(("mov", "movabs", "movsxd"), _move),
    **dict.fromkeys(("movq", "vmovq", "movd", "vmovd"), _move_vector),
    **dict.fromkeys(("add", "inc"), _add),
    **dict.fromkeys(("sub", "dec"), _sub),
    **dict.fromkeys(("shl", "sal"), _shift_left),
    **dict.fromkeys(("shr", "sar"), _shift_right),
    **dict.fromkeys(("and", "or", "xor"), _bitwise),
    **dict.fromkeys(("cdqe", "nop", "endbr64", "prefetcht0", "prefetchw"), _keep),
    "neg": _negate,
    "not": _invert,
    "lea": _load_address,
    "imul": _multiply,
    "xchg": _exchange,
    "cmp": _compare,
    "test": _test,
    "push": _push,
    "pop": _pop,
    "leave": _leave,
}


def _execute(run: _Execution, instruction: Instruction, index: int) -> None:
    """Apply one instruction to the state."""
    if instruction.branch is not None and instruction.branch != "call":
        return
    effect = _call if instruction.branch == "call" else _X86.get(instruction.mnemonic, _forget)
    if effect is _forget and instruction.mnemonic.startswith("cmov"):
        effect = _conditional_move
    compared = effect(run, instruction, f"?{index}.")
    if instruction.flags_written or instruction.branch == "call":
        run.state.flags = compared


def trace(listing: Listing, flow: ControlFlow) -> Trace:
    """Execute every block of `flow` once and keep the values that the analysis of its loops needs."""
    run = _Execution(_State(), 0, frozenset(_written_registers(listing.instructions)))
    after: dict[int, _State] = {}
    headed: dict[int, list[LoopBody]] = {}
    for loop in flow.loops:
        headed.setdefault(loop.header, []).append(loop)
    addresses: dict[int, tuple[Linear, ...]] = {}
    branches: dict[int, Comparison | None] = {}
    initial: dict[int, dict[str, Linear]] = {}
    for block in _order(flow):
        run.block = block
        run.state = _enter(run, flow, block, headed.get(block, []), after)
        for loop in headed.get(block, ()):
            initial[loop.number] = _open_loop(run, listing.instructions, loop)
        for index in range(flow.blocks[block].first, flow.blocks[block].end):
            instruction = listing.instructions[index]
            if instruction.memory:
                addresses[index] = tuple(run.address(reference) for reference in instruction.memory)
            if instruction.branch == "conditional":
                branches[index] = run.state.flags
            _execute(run, instruction, index)
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
    run: _Execution, flow: ControlFlow, block: int, loops: list[LoopBody], after: Mapping[int, _State]
) -> _State:
    """The state in which `block` starts, before the symbols of the loops that it heads."""
    state = _join(run, [after[p] for p in flow.predecessors[block] if p in after])
    later = [p for p in flow.predecessors[block] if p not in after]
    if all(any(p in loop.blocks for loop in loops) for p in later):
        return state
    # a jump back into the middle of a loop: nothing is known that anything writes
    state.registers = {name: run.unknown(f"{name}@{block}") for name in run.written}
    state.memory = {a: (run.unknown(f"[{a}]@{block}"), size) for a, (_, size) in state.memory.items()}
    return state


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
    for register in sorted(_written_registers(body)):
        name = f"{register}#{loop.number}"
        initial[name] = run.state.register(register)
        run.state.registers[register] = symbol(name)
        run.origin[name] = run.block
    for reference in _written_slots(body):
        address = run.address(reference)
        name = f"[{address}]#{loop.number}"
        if name not in initial:
            run.slots[name] = address
            initial[name] = run.load(address, reference.size_bytes, f"{name}?")
            run.state.memory[address] = (symbol(name), reference.size_bytes)
            run.origin[name] = run.block
    return initial


def _written_registers(body: Iterable[Instruction]) -> set[str]:
    written: set[str] = set()
    for instruction in body:
        written |= {o.register for o in instruction.operands if o.register and o.written}
        written |= set(instruction.implicit_writes) - {"rsp"}
        if instruction.branch == "call":
            written |= set(_CLOBBERED)
    return written


def _written_slots(body: Iterable[Instruction]) -> list[MemoryReference]:
    """Written memory at a fixed place of the stack frame or of the data section."""
    fixed = ("rsp", "rbp", "rip", None)
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
