"""Copies of x86-64 functions that count their blocks, by re-encoding every instruction at its new place.

A counter changes neither registers nor flags that the code still needs: where the flags are dead it is one addition to
memory, else a load, lea and store through a register that is dead, or that is saved below the red zone (psABI, 3.2.2).
A block that follows itself counts in a register where one is free: an addition to memory each pass would make a chain
through the store buffer, several cycles a pass.

A register is free if the function itself overwrites it somewhere, so that no caller can rely on it (also where callers
know which registers a function leaves alone), and if its value is not needed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from iced_x86 import Code, Instruction, MemoryOperand, Register

from kernmodel.isa.counting import CountedBlock, CountedCopy, Counter
from kernmodel.isa.model import Instruction as Decoded
from kernmodel.isa.x86.decode import decode_raw
from kernmodel.isa.x86.effects import REGISTERS
from kernmodel.isa.x86.emit import RED_ZONE, Emitter, Key, memory_at
from kernmodel.value_types import dataclass

_ALL_FLAGS = frozenset("CPAZSO")
_WORD = 8
_RETURNED = frozenset({"rax", "rdx"})
_SCRATCH = tuple(name for name in REGISTERS.clobbered if name not in _RETURNED)
"""Registers that a function may overwrite and that return nothing (psABI, 3.2.1)."""
_NUMBERS = {name: getattr(Register, name.upper()) for name in REGISTERS.general}


@dataclass(slots=True)
class _Emitter(Emitter):
    """The copy as it grows, and its counters."""

    counters_at: int = 0
    shared: bool = False
    counters: list[Counter] = field(default_factory=list)

    def new_counter(self, counter: Counter) -> int:
        """The address of one more counter."""
        self.counters.append(counter)
        return self.counters_at + _WORD * (len(self.counters) - 1)

    def count(self, counter: Counter, state: _State) -> None:
        """Add one to a new counter."""
        self.add(self.new_counter(counter), None, state)

    def add(self, address: int, register: str | None, state: _State) -> None:
        """Add one, or a register, to a counter."""
        memory = memory_at(address)
        if register is not None:
            plain = Instruction.create_mem_reg(Code.ADD_RM64_R64, memory, _NUMBERS[register])
        else:
            plain = Instruction.create_mem_i32(Code.ADD_RM64_IMM8, memory, 1)
        plain.has_lock_prefix = self.shared
        if state.flags_dead:
            self.put(plain)
        elif state.free and not self.shared and register is None:
            self._through(state.free[0], memory)
        else:
            self._saving(plain)

    def _through(self, register: str, memory: MemoryOperand) -> None:
        number = _NUMBERS[register]
        self.put(Instruction.create_reg_mem(Code.MOV_R64_RM64, number, memory))
        self.put(Instruction.create_reg_mem(Code.LEA_R64_M, number, MemoryOperand(number, displ=1, displ_size=1)))
        self.put(Instruction.create_mem_reg(Code.MOV_RM64_R64, memory, number))

    def _saving(self, plain: Instruction) -> None:
        """Flags go through ah and al while the counter is added to."""
        self.move_stack(-RED_ZONE)
        self.put(Instruction.create_reg(Code.PUSH_R64, Register.RAX))
        self.put(Instruction.create_reg(Code.SETO_RM8, Register.AL))
        self.put(Instruction.create(Code.LAHF))
        self.put(plain)
        # 0x7f + 1 overflows, 0x7f + 0 does not
        self.put(Instruction.create_reg_i32(Code.ADD_AL_IMM8, Register.AL, 0x7F))
        self.put(Instruction.create(Code.SAHF))
        self.put(Instruction.create_reg(Code.POP_R64, Register.RAX))
        self.move_stack(RED_ZONE)


@dataclass(frozen=True, slots=True)
class _State:
    """What may be changed at a place: whether the flags, and which registers."""

    flags_dead: bool
    free: tuple[str, ...]


_NOTHING_FREE = _State(False, ())


@dataclass(slots=True)
class _Liveness:
    """Flags and registers whose values are needed at the beginning of each block."""

    blocks: Mapping[int, CountedBlock]
    scratch: frozenset[str]
    flags: dict[int, frozenset[str]] = field(default_factory=dict)
    registers: dict[int, frozenset[str]] = field(default_factory=dict)

    def find(self) -> None:
        """Go backward through the blocks until nothing changes."""
        self.flags = dict.fromkeys(self.blocks, frozenset())
        self.registers = dict.fromkeys(self.blocks, frozenset())
        changed = True
        while changed:
            changed = False
            for address in sorted(self.blocks, reverse=True):
                block = self.blocks[address]
                flags, registers = self._before(block, *self._behind(block))
                if flags != self.flags[address] or registers != self.registers[address]:
                    self.flags[address], self.registers[address] = flags, registers
                    changed = True

    def _behind(self, block: CountedBlock) -> tuple[frozenset[str], frozenset[str]]:
        """What is needed behind a block."""
        last = block.instructions[-1]
        flags = frozenset[str]().union(*(self.flags[one] for one in block.successors))
        registers = frozenset[str]().union(*(self.registers[one] for one in block.successors))
        if last.branch == "return":
            return frozenset(), frozenset()  # of the scratch registers none is returned
        leaves = last.branch in ("jump", "indirect", "conditional") and last.target not in self.blocks
        if leaves or not block.successors:
            return _ALL_FLAGS, self.scratch
        return flags, registers

    def _before(
        self, block: CountedBlock, flags: frozenset[str], registers: frozenset[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        for item in reversed(block.instructions):
            if item.branch == "call":
                # neither passes flags (psABI, 3.2.1); a callee whose registers are known may leave some alone
                flags, registers = frozenset(), self.scratch
                continue
            flags = (flags - frozenset(item.flags_written)) | frozenset(item.flags_read)
            registers = (registers - _written(item)) | (_read(item) & self.scratch)
        return flags, registers

    def state(self, address: int) -> _State:
        """What may be changed at the beginning of a block."""
        free = tuple(sorted(self.scratch - self.registers[address]))
        return _State(not self.flags[address], free)


def _read(item: Decoded) -> frozenset[str]:
    explicit = {one.register for one in item.operands if one.read and one.register}
    addresses = {name for one in item.memory for name in (one.base, one.index) if name}
    named = {name for one in item.operands if one.memory for name in (one.memory.base, one.memory.index) if name}
    return frozenset({*explicit, *addresses, *named, *item.implicit_reads})


def _written(item: Decoded) -> frozenset[str]:
    """Registers whose old value is gone."""
    explicit = {one.register for one in item.operands if one.written and not one.read and one.register}
    return frozenset({*explicit, *item.implicit_writes}) - frozenset(item.implicit_reads)


def _overwritten(blocks: Iterable[CountedBlock]) -> frozenset[str]:
    """The scratch registers that the function writes: what it leaves alone its callers may rely on."""
    items = [item for block in blocks for item in block.instructions]
    written = {one.register for item in items for one in item.operands if one.written}
    return frozenset(name for name in _SCRATCH if name in written)


def counted_copy(
    blocks: Sequence[CountedBlock], entry: int, place: int, counters: int, *, shift: int = 0, shared: bool = False
) -> CountedCopy:
    """A copy of a function that counts, as `Isa.counted_copy` says."""
    by_address = {block.address: block for block in blocks}
    live = _Liveness(by_address, _overwritten(blocks))
    live.find()
    emitter = _Emitter(shift, entry, counters_at=counters, shared=shared)
    goals: dict[int, Key] = {block.address: ("block", block.address) for block in blocks}
    sources = _sources(blocks)
    jumped_to = [one for block in blocks if block.indirect for one in block.successors]
    outside = dict.fromkeys([entry, *jumped_to])
    for number, block in enumerate(blocks):
        following = blocks[number + 1].address if number + 1 < len(blocks) else None
        _copy_block(emitter, live, block, following, goals, sources, outside)
    _stubs(emitter, live, entry, by_address)
    code, labels = emitter.assemble(place)
    return CountedCopy(
        code,
        tuple(emitter.counters),
        labels["calls", entry],
        {address: labels["arrivals", address] for address in by_address},
    )


def _sources(blocks: Sequence[CountedBlock]) -> dict[int, list[int]]:
    """The blocks that may come before each one."""
    found: dict[int, list[int]] = {block.address: [] for block in blocks}
    for block in blocks:
        for successor in block.successors:
            found[successor].append(block.address)
    return found


def _copy_block(
    emitter: _Emitter,
    live: _Liveness,
    block: CountedBlock,
    following: int | None,
    goals: Mapping[int, Key],
    sources: Mapping[int, Sequence[int]],
    outside: Mapping[int, None],
) -> None:
    """A block with its counter, and one on the way to the block behind it where no other counter tells that."""
    register = _loop_register(live, block)
    emitter.label("block", block.address)
    own = goals
    if register is not None:
        emitter.put(Instruction.create_reg_i32(Code.MOV_R32_IMM32, _NUMBERS[register] - Register.RAX + Register.EAX, 0))
        emitter.label("loop", block.address)
        number = _NUMBERS[register]
        emitter.put(Instruction.create_reg_mem(Code.LEA_R64_M, number, MemoryOperand(number, displ=1, displ_size=1)))
        own = {**goals, block.address: ("loop", block.address)}
    else:
        emitter.count(Counter("block", block.address), live.state(block.address))
    for item, _ in decode_raw(block.code, block.address + emitter.shift):
        start = item.ip - emitter.shift - block.address
        emitter.instruction(item, block.code[start : start + item.len], own)
    behind = block.address + len(block.code)
    branch = block.instructions[-1].branch
    if behind not in block.successors:
        if branch == "conditional":
            emitter.count(Counter("edge", block.address, behind), _NOTHING_FREE)
        if branch in (None, "conditional", "call"):
            emitter.put(Instruction.create_branch(Code.JMP_REL32_64, behind + emitter.shift))
        return
    state = live.state(behind)
    if register is not None:
        emitter.add(emitter.new_counter(Counter("block", block.address)), register, state)
    alone = sources[behind] == [block.address] and behind not in outside
    if branch in ("conditional", "call") and not alone:
        emitter.count(Counter("edge", block.address, behind), state)
    if following != behind:
        emitter.jump(("block", behind))


def _loop_register(live: _Liveness, block: CountedBlock) -> str | None:
    """A register to count in for a block that follows itself; None where there is none, and for other blocks."""
    last = block.instructions[-1]
    behind = block.address + len(block.code)
    if last.branch != "conditional" or last.target != block.address or set(block.successors) != {behind, block.address}:
        return None
    if not live.state(behind).flags_dead:
        return None
    used = frozenset[str]().union(*(_read(item) | _written(item) for item in block.instructions))
    needed = live.registers[block.address] | live.registers[behind] | used
    partly = {one.register for item in block.instructions for one in item.operands if one.register}
    return next((name for name in sorted(live.scratch) if name not in needed and name not in partly), None)


def _stubs(emitter: _Emitter, live: _Liveness, entry: int, blocks: Mapping[int, CountedBlock]) -> None:
    """Where the code outside of the copy goes: to the entry, and by indirect jumps to other blocks."""
    emitter.label("calls", entry)
    emitter.count(Counter("calls"), live.state(entry))
    emitter.jump(("block", entry))
    for address in blocks:
        emitter.label("arrivals", address)
        emitter.count(Counter("arrivals", address), live.state(address))
        emitter.jump(("block", address))
