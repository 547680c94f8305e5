"""Store-to-load forwarding by the memory policies of the peers: equal register contents, not address arithmetic.

A register holds a known value plus a constant: what it held at the start, moved by copies, `lea` with a displacement,
and pushes and pops. Anything else that writes it gives it a value of its own, the same in every pass if it only
depends on registers that the block never writes. A load takes its data from the latest store that overlaps it; if
that does not hold all its bytes, the core cannot forward them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.incore.dependences.addresses import Forwarding, forwardings, own_effect, written_addresses
from kernmodel.incore.engine.model import Memory
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction, MemoryReference
from kernmodel.isa.protocol import Effect, Registers
from kernmodel.value_types import NamedTuple

_FULL = 64  # bits
_PASSES = 3  # the third one sees everything that earlier ones can have stored


class _Value(NamedTuple):
    """A register's content: a symbol plus a constant."""

    symbol: str
    constant: int


_Region = tuple[str | None, str | None, int, str | None]
"""What addresses that can be compared have in common: base, index, scale, symbol."""
_GRANULE = 64  # bytes; no access is longer


class _Stored(NamedTuple):
    """A store: in which pass, by which reference of which instruction, of which bytes of its region."""

    passes: int
    instruction: int
    place: int
    start: int
    end: int


def links(instructions: Sequence[Instruction], memory: Memory) -> tuple[Forwarding, ...]:
    """Which stores feed which loads, by the policy."""
    if memory == "none":
        return ()
    if memory == "moving":
        return forwardings(instructions)[0]
    references = [reference for instruction in instructions for reference in instruction.memory]
    if not any(r.written for r in references) or not any(r.read for r in references):
        return ()
    tracker = _Tracker(isa_of(instructions[0].isa).registers, memory == "stack")
    found: list[Forwarding] = []
    for number in range(_PASSES):
        found = [link for k, instruction in enumerate(instructions) for link in tracker.step(number, k, instruction)]
    return tuple(found)


class _Tracker:
    """Registers, and the latest store of each stretch of bytes so far, by region and granule that it starts in."""

    __slots__ = ("apart", "fresh", "known", "registers", "stores")

    def __init__(self, known: Registers, one_region: bool) -> None:
        self.known = known
        self.apart = {*known.frame, known.program_counter} if one_region else None
        self.fresh = 0
        self.registers: dict[str, _Value] = {}
        self.stores: dict[tuple[_Region, int], dict[tuple[int, int], _Stored]] = {}

    def step(self, number: int, k: int, instruction: Instruction) -> list[Forwarding]:
        """Execute instruction `k` in pass `number`; the forwardings to its loads."""
        found = []
        addresses = [self._address(reference) for reference in instruction.memory]
        for place, reference in enumerate(instruction.memory):
            region, start = addresses[place]
            end = start + reference.size_bytes
            store = self._latest(region, start, end) if reference.read else None
            if store is not None:
                whole = store.start <= start and end <= store.end
                found.append(Forwarding((store.instruction, store.place), (k, place), number - store.passes, whole))
        for place, reference in enumerate(instruction.memory):
            if reference.written:
                region, start = addresses[place]
                stored = _Stored(number, k, place, start, start + reference.size_bytes)
                self.stores.setdefault((region, start // _GRANULE), {})[stored[3:]] = stored
        self._execute(instruction)
        return found

    def _latest(self, region: _Region, start: int, end: int) -> _Stored | None:
        """The latest store of any of these bytes."""
        near = (self.stores.get((region, g), {}) for g in range(start // _GRANULE - 1, (end - 1) // _GRANULE + 1))
        overlapping = [store for stores in near for store in stores.values() if store.start < end and start < store.end]
        return max(overlapping, default=None)

    def _value(self, register: str) -> _Value:
        if register not in self.registers:
            self.registers[register] = _Value(register if self.apart is None or register in self.apart else "*", 0)
        return self.registers[register]

    def _address(self, reference: MemoryReference) -> tuple[_Region, int]:
        """The region and the first byte in it."""
        base = self._value(reference.base) if reference.base else None
        index = self._value(reference.index) if reference.index else None
        offset = reference.displacement + (base.constant if base else 0)
        offset += index.constant * reference.scale if index else 0
        scale = reference.scale if index else 0
        return (base and base.symbol, index and index.symbol, scale, reference.symbol), offset

    def _execute(self, instruction: Instruction) -> None:
        effect = own_effect(instruction)
        value = self._result(instruction, effect)
        top = self.known.stack_pointer
        moved = dict(effect.registers).get(top) if isa_of(instruction.isa).moves_stack(instruction) else None
        stack = self._value(top)
        written = written_addresses(instruction)
        for register in (*written, *instruction.implicit_writes):
            self.fresh += 1
            self.registers[register] = _Value(f"#{self.fresh}", 0)
        if value is not None:
            self.registers[written[0]] = value
        if moved is not None:
            self.registers[top] = _Value(stack.symbol, stack.constant + moved.constant)

    def _result(self, instruction: Instruction, effect: Effect) -> _Value | None:
        """What the instruction leaves in its first operand, None if that is new."""
        if effect.transfer == "address":
            moved = instruction.memory[0]
            if effect.bits < _FULL or not moved.base or moved.index or moved.base == self.known.program_counter:
                return None
            base = self._value(moved.base)
            return _Value(base.symbol, base.constant + moved.displacement)
        if effect.transfer is None:
            return None
        value = self._value(instruction.operands[1].register or "")
        if effect.bits == _FULL:
            return value
        return _Value(f"{instruction.form}({value.symbol}{value.constant:+d})", 0)
