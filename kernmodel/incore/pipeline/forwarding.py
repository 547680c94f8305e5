"""Store-to-load forwarding by the memory policies of the peers: equal register contents, not address arithmetic.

A register holds a known value plus a constant: what it held at the start, moved by copies, `lea` with a displacement,
and pushes and pops. Anything else that writes it gives it a value of its own, the same in every pass if it only
depends on registers that the block never writes. A load takes its data from the latest store that overlaps it; if
that does not hold all its bytes, the core cannot forward them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kernmodel.assembly.model import Instruction, MemoryReference
from kernmodel.incore.addresses import Forwarding, forwardings
from kernmodel.incore.pipeline.model import Memory

_EXTENSIONS = frozenset({"mov", "movsxd", "movsx", "movzx"})
_FULL = "r64"
_WIDE = frozenset({"r32", "r64"})
_STACK = {"push": -8, "call": -8, "pop": 8, "ret": 8}
_OWN_REGION = frozenset({"rsp", "rbp"})
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
    tracker = _Tracker(memory == "stack")
    found: list[Forwarding] = []
    for number in range(_PASSES):
        found = [link for k, instruction in enumerate(instructions) for link in tracker.step(number, k, instruction)]
    return tuple(found)


class _Tracker:
    """Registers, and the latest store of each stretch of bytes so far, by region and granule that it starts in."""

    __slots__ = ("fresh", "one_region", "registers", "stores")

    def __init__(self, one_region: bool) -> None:
        self.one_region = one_region
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
        if register == "rip":
            return _Value("rip", 0)
        if register not in self.registers:
            known = self.one_region and register not in _OWN_REGION
            self.registers[register] = _Value("*" if known else register, 0)
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
        value = self._result(instruction)
        stack = self._value("rsp") if instruction.mnemonic in _STACK else None
        written = [o.register for o in instruction.operands if o.written and o.register and o.kind[0] == "r"]
        for register in (*written, *instruction.implicit_writes):
            self.fresh += 1
            self.registers[register] = _Value(f"#{self.fresh}", 0)
        if value is not None:
            self.registers[written[0]] = value
        if stack is not None and "rsp" not in written:
            self.registers["rsp"] = _Value(stack.symbol, stack.constant + _STACK[instruction.mnemonic])

    def _result(self, instruction: Instruction) -> _Value | None:
        """What the instruction leaves in its first operand, None if that is new."""
        operands = instruction.operands
        if len(operands) < 2 or not operands[0].written or operands[0].kind not in _WIDE:
            return None
        source = operands[1]
        if instruction.mnemonic == "lea" and source.memory is not None and operands[0].kind == _FULL:
            moved = source.memory
            if moved.base is None or moved.index is not None or moved.base == "rip":
                return None
            base = self._value(moved.base)
            return _Value(base.symbol, base.constant + moved.displacement)
        if instruction.mnemonic not in _EXTENSIONS or source.register is None or source.kind[0] != "r":
            return None
        value = self._value(source.register)
        if instruction.mnemonic == "mov" and source.kind == _FULL:
            return value
        return _Value(f"{instruction.form}({value.symbol}{value.constant:+d})", 0)
