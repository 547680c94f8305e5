"""Jump tables: where an indirect jump goes to, from the instructions before it and the table in the file.

Compilers make two kinds: tables of addresses, and tables of distances from an address (of the table itself on x86-64,
of a place in the code on AArch64, there in units of an instruction). Both are a load at base + size × index, whose
value comes to the target by additions and shifts: linear expressions, as `Isa.effect` tracks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kernmodel.binary.image import Binary, Place
from kernmodel.isa.linear import Linear, symbol
from kernmodel.isa.model import Condition, Instruction
from kernmodel.value_types import dataclass

_MOST_ENTRIES = 4096
_SIZES = (1, 2, 4, 8)
_LOADED = "loaded "


@dataclass(frozen=True, slots=True)
class JumpTable:
    """The targets of an indirect jump.

    Attributes:
        targets: each once, by ascending address.
        bounded: whether the number of entries is known from a comparison; else the table was read up to the first
            entry that leads out of the function.
    """

    targets: tuple[int, ...]
    bounded: bool


@dataclass(frozen=True, slots=True)
class _Load:
    address: Linear
    size: int


@dataclass(slots=True)
class _Path:
    """Registers along one path of instructions; what is loaded is a symbol of its own."""

    binary: Binary
    registers: dict[str, Linear]
    loads: dict[str, _Load]

    def value(self, name: str) -> Linear:
        return self.registers.get(name) or symbol(name)

    def follow(self, number: int, item: Instruction) -> None:
        """Take the effect of an instruction; of what is read from memory its address is kept."""
        name = f"{_LOADED}{number}"
        effect = self.binary.isa.effect(item, self.value, lambda _: symbol(name))
        known = dict(effect.registers)
        read = [
            _Load(address, one.size_bytes)
            for one, address in zip(item.memory, effect.addresses, strict=False)
            if one.read and address is not None
        ]
        if len(read) == 1:
            self.loads[name] = read[0]
        if item.branch == "call":
            self.registers.update((one, symbol(f"{one} {number}")) for one in self.binary.isa.registers.clobbered)
            return
        written = [one.register for one in item.operands if one.written and one.register]
        for register in (*written, *item.implicit_writes):
            # a load that extends what it reads is known as that
            fallback = symbol(name) if len(read) == 1 and register in written else symbol(f"{register} {number}")
            self.registers[register] = known.get(register) or fallback

    def target(self, jump: Instruction) -> Linear | None:
        """What an indirect jump goes to."""
        if jump.operands and jump.operands[0].register:
            return self.value(jump.operands[0].register)
        self.follow(-1, jump)
        return symbol(f"{_LOADED}-1") if f"{_LOADED}-1" in self.loads else None


def constant_target(binary: Binary, before: Sequence[Instruction], jump: Instruction) -> int | None:
    """The word in memory whose content an indirect jump goes to where its address is constant (a tail call of an
    imported function), None else."""
    path = _Path(binary, {}, {})
    for number, item in enumerate(before):
        path.follow(number, item)
    target = path.target(jump)
    if target is None or len(target.terms) != 1 or target.terms[0][0] not in path.loads:
        return None
    place = path.loads[target.terms[0][0]].address
    return None if place.terms else place.constant


def read_jump_table(
    binary: Binary,
    before: Sequence[Instruction],
    jump: Instruction,
    constants: Mapping[str, Linear],
    inside: Callable[[int], bool],
) -> JumpTable | None:
    """The targets of an indirect jump, None where no table is found.

    Args:
        before: instructions of the path that leads to the jump: its block, and blocks before it that alone lead there.
        constants: what registers hold at the beginning of that path on every way, where it is constant.
        inside: whether an address can be a target.
    """
    path = _Path(binary, dict(constants), {})
    for number, item in enumerate(before):
        path.follow(number, item)
    target = path.target(jump)
    found = [(name, factor) for name, factor in target.terms if name in path.loads] if target is not None else []
    if target is None or len(found) != 1:
        return None
    (name, factor), load = found[0], path.loads[found[0][0]]
    base = Linear(target.constant, tuple(term for term in target.terms if term[0] != name))
    table = _table_address(load)
    if table is None or load.size not in _SIZES:
        return None
    count = _bound(binary, before)
    signed = load.size == 4 or any(one.kind.startswith("sxt") for item in before for one in item.operands)
    targets: list[int] = []
    for entry in _entries(binary, table, load.size, signed, count or _MOST_ENTRIES):
        goal = _goal(binary, entry, base, table, factor)
        if goal is None or not inside(goal):
            break
        targets.append(goal)
    if not targets or (count is not None and len(targets) < count):
        return None
    return JumpTable(tuple(sorted(set(targets))), count is not None)


def _table_address(load: _Load) -> Linear | None:
    """The address of the first entry: that of the load without its index."""
    indices = [term for term in load.address.terms if not term[0].startswith("&")]
    if len(indices) != 1 or indices[0][1] != load.size:
        return None
    return Linear(load.address.constant, tuple(term for term in load.address.terms if term not in indices))


@dataclass(frozen=True, slots=True)
class _Entry:
    """A word of the table: its number, and its value or the address that a relocation puts there."""

    offset: int
    value: int
    relocated: int | None


def _entries(binary: Binary, table: Linear, size: int, signed: bool, most: int) -> Iterator[_Entry]:
    place = binary.place_of(table)
    if place is None:
        return
    content = binary.bytes_at(place, size * most)
    relocatable = binary.kind == "object"
    for offset in range(0, len(content) - size + 1, size):
        value = int.from_bytes(content[offset : offset + size], "little", signed=signed)
        relocated = binary.relocated(Place(place.section, place.offset + offset)) if relocatable else None
        yield _Entry(offset, value, relocated)


def _goal(binary: Binary, entry: _Entry, base: Linear, table: Linear, factor: int) -> int | None:
    """The address of code that an entry stands for."""
    if entry.relocated is not None:
        # a distance from the table counts from the entry in the relocation (psABI: S + A - P)
        return entry.relocated - entry.offset if base.terms or base.constant else entry.relocated
    if binary.kind == "object" and base == table:
        return None
    if base.terms:
        return None
    return base.constant + factor * entry.value


def _bound(binary: Binary, before: Sequence[Instruction]) -> int | None:
    """How many entries the table has: from the last comparison with a constant whose branch guards the jump, or from a
    mask. None where nothing of the kind is there."""
    for number in range(len(before) - 1, -1, -1):
        item = before[number]
        if item.branch == "conditional":
            return _compared(before[:number], binary.isa.condition(item))
        if item.mnemonic == "and" and (mask := item.operands[-1].immediate) is not None and mask > 0:
            return mask + 1 if mask & (mask + 1) == 0 else None
    return None


def _compared(before: Sequence[Instruction], condition: Condition | None) -> int | None:
    """The number of values that a comparison lets through: up to its constant for the unsigned conditions above and not
    above, below it for below and not below."""
    setter = next((item for item in reversed(before) if item.flags_written), None)
    limit = next((one.immediate for one in setter.operands if one.immediate is not None), None) if setter else None
    if limit is None or limit < 0:
        return None
    if condition in ("a", "be"):
        return limit + 1
    return limit if condition in ("ae", "b") else None
