"""Which store of a loop feeds which load: addresses as linear expressions of the registers at the start of a pass.

The body is executed once symbolically; what a register gains from one pass to the next says how each address moves. A
load depends on the latest earlier store, in this pass or a previous one, whose bytes provably overlap its own.

Assumed: index arithmetic does not wrap around (32-bit included), and addresses that cannot be compared (different
symbols, unrelated base registers) differ.

To compare with tools that follow addresses less far, two more policies are here: with them a store feeds a load only if
both name the same place by the same registers, which hold the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Literal

from kernmodel.incore.dependences.last_stores import LatestStores
from kernmodel.isa import isa_of
from kernmodel.isa.linear import ZERO, Linear, address_of, symbol
from kernmodel.isa.model import Instruction, MemoryReference, Operand
from kernmodel.isa.protocol import Effect
from kernmodel.value_types import NamedTuple

MemoryPolicy = Literal["moving", "different", "stack"]
"""Which stores and loads meet. "moving": addresses are followed symbolically, from pass to pass. "different": the same
address expression of the same values only, all registers different at the start (uiCA's default). "stack": likewise,
but at the start all registers except rsp and rbp hold one value (Facile's)."""

_FEW = 24
"""Stores up to which a load is compared with each."""
_FRESH = "@"  # marks symbols that stand for something that the body computes anew in every pass


class Forwarding(NamedTuple):
    """A load that reads what a store wrote.

    Attributes:
        store, load: (instruction, number of its memory reference).
        passes: passes of the loop from the store to the load.
        whole: whether the store wrote all the bytes that the load reads; else the core cannot forward them.
        cycles: from stored to loaded data beyond what the row of the store says, -1 where all loads of the core get
            them after the same time.
    """

    store: tuple[int, int]
    load: tuple[int, int]
    passes: int
    whole: bool
    cycles: int = -1


class _Access(NamedTuple):
    place: tuple[int, int]
    address: Linear
    size: int


_Terms = tuple[tuple[str, int], ...]
_Meeting = tuple[_Access, int, int]
"""A store, the passes from it to a load that overlaps it, and the offset of its first byte in the load."""


class AddressStep(NamedTuple):
    """What one instruction means for addresses, in terms of the registers before it.

    Attributes:
        places: (number of the memory reference, its address, bytes, whether it is read and written).
        writes: general-purpose registers with their new values, None for what is not linear.
    """

    places: tuple[tuple[int, Linear, int, bool, bool], ...]
    writes: tuple[tuple[str, Linear | None], ...]


@cache
def symbols_of(isa_name: str) -> Mapping[str, Linear]:
    """The symbol of each register that can hold addresses: what it holds before an instruction."""
    return {name: symbol(name) for name in isa_of(isa_name).registers.general}


def own_effect(instruction: Instruction) -> Effect:
    """What an instruction does, in terms of the registers before it; what memory holds is not known."""
    return isa_of(instruction.isa).effect(instruction, symbols_of(instruction.isa).get, _unknown)


def _unknown(_: int) -> None:
    """What memory holds."""


def address_step(instruction: Instruction) -> AddressStep:
    """What an instruction means for addresses."""
    written = dict.fromkeys((*written_addresses(instruction), *instruction.implicit_writes))
    if not instruction.memory and not written:
        return _NO_STEP
    effect = own_effect(instruction)
    places = tuple(
        (number, address, reference.size_bytes, reference.read, reference.written)
        for number, (reference, address) in enumerate(zip(instruction.memory, effect.addresses, strict=True))
        if (reference.read or reference.written) and address is not None
    )
    known = {} if instruction.branch else dict(effect.registers)
    return AddressStep(places, tuple([(name, known.get(name)) for name in written]))


def written_addresses(instruction: Instruction) -> list[str]:
    """The registers among the operands that the instruction writes and that can hold addresses."""
    general = symbols_of(instruction.isa)
    return [o.register for o in instruction.operands if o.written and o.register is not None and o.register in general]


_NO_STEP = AddressStep((), ())


def forwardings(
    instructions: Sequence[Instruction],
    policy: MemoryPolicy = "moving",
    accesses: BodyAccesses | None = None,
) -> tuple[tuple[Forwarding, ...], bool]:
    """All store-to-load dependencies of the loop body, and whether some addresses could not be compared.

    Args:
        instructions: the body.
        policy: which stores and loads meet.
        accesses: of the body where they are at hand.
    """
    references = [reference for instruction in instructions for reference in instruction.memory]
    if not any(r.written for r in references) or not any(r.read for r in references):
        return (), False
    if policy != "moving":
        return tuple(_named_alike(instructions, policy)), True
    loads, stores, strides = (accesses or BodyAccesses([address_step(i) for i in instructions])).steady()
    if len(stores) > _FEW:
        return _among_many(loads, stores, strides)
    alike: dict[_Terms, list[_Access]] = {}
    for store in stores:
        alike.setdefault(store.address.terms, []).append(store)
    found: list[Forwarding] = []
    compared = True
    for load in loads:
        stride = _stride(load, strides)
        if stride is not None and stride.terms:
            # addresses that look otherwise may be that many strides apart
            meetings, complete = _symbolic_meetings(load, stride, stores, strides)
        else:
            same = alike.get(load.address.terms, ())
            meetings, settled = _meetings(load, stride, same)
            complete = settled and len(same) == len(stores)
        compared &= complete
        if meetings:
            found += _latest(load, meetings)
    return tuple(found), not compared


def _among_many(
    loads: Sequence[_Access], stores: Sequence[_Access], strides: Mapping[str, Linear | None]
) -> tuple[tuple[Forwarding, ...], bool]:
    """As `forwardings` says, where comparing every load with every store would take too long."""
    families: dict[tuple[Linear, _Terms], LatestStores] = {}
    for store in stores:
        key, moves, constant, position = _family(store, strides)
        if key not in families:
            families[key] = LatestStores(moves)
        families[key].add(store.place, constant, store.size, position)
    found: list[Forwarding] = []
    compared = True
    for load in loads:
        key, moves, constant, position = _family(load, strides)
        family = families.get(key)
        if family is None:
            compared = False
            continue
        number = load.place[0]
        found += [
            Forwarding(place, load.place, passes, whole)
            for place, passes, whole in family.of(number, constant, load.size, position)
        ]
        settled = moves is not None or key[0].terms or family.all_overlap(number, constant, load.size)
        compared &= bool(settled) and family.count_from(position) == len(stores)
    return tuple(found), not compared


def _family(
    access: _Access, strides: Mapping[str, Linear | None]
) -> tuple[tuple[Linear, _Terms], int | None, int, int]:
    """What accesses have in common that can meet, and where in this family the access is.

    Returns:
        The symbolic stride (0 for others) and the terms of the address without whole strides; the bytes per pass, None
        if that is no plain number; the constant part of the address; its position in symbolic strides.
    """
    stride = _stride(access, strides)
    if stride is None or not stride.terms:
        moves = None if stride is None else stride.constant
        return (ZERO, access.address.terms), moves, access.address.constant, 0
    name, factor = stride.terms[0]
    position = access.address.coefficient(name) // factor
    rest = access.address - stride * position
    return (stride, rest.terms), None, rest.constant, position


def _latest(load: _Access, meetings: list[_Meeting]) -> Iterator[Forwarding]:
    """The stores that wrote the bytes of the load last, of those that overlap it."""
    everything = (1 << load.size) - 1
    missing = everything
    for store, passes, offset in sorted(meetings, key=lambda m: (m[1], -m[0].place[0], -m[0].place[1])):
        written = ((1 << store.size) - 1) << offset if offset >= 0 else ((1 << store.size) - 1) >> -offset
        if written & missing:
            yield Forwarding(store.place, load.place, passes, whole=written & everything == everything)
            missing &= ~written
        if not missing:
            return


def _meetings(load: _Access, stride: Linear | None, stores: Sequence[_Access]) -> tuple[list[_Meeting], bool]:
    """Where a load overlaps stores whose addresses differ from its own by constants; whether that is all of it.

    Equal terms have equal strides. Where nothing is known of a stride, they may meet in this pass only.
    """
    meetings: list[_Meeting] = []
    moves = stride.constant if stride is not None else 0
    for store in stores:
        apart = load.address.constant - store.address.constant
        first = 0 if store.place[0] < load.place[0] else 1
        if moves:
            meetings += [(store, *one) for one in _constant_distances(apart, moves, first, store, load)]
        elif _overlap(apart, store, load) and (stride is not None or first == 0):
            meetings.append((store, first, -apart))
    return meetings, stride is not None or len(meetings) == len(stores)


def _symbolic_meetings(
    load: _Access, stride: Linear, stores: Sequence[_Access], strides: Mapping[str, Linear | None]
) -> tuple[list[_Meeting], bool]:
    """Where a load whose stride is no plain number overlaps stores; whether all could be compared."""
    meetings: list[_Meeting] = []
    complete = True
    for store in stores:
        difference = load.address - store.address
        passes = _solve(difference, stride) if _stride(store, strides) == stride else None
        if passes is None:
            complete &= load.address.terms == store.address.terms
            continue
        apart = (difference + stride * passes).constant
        if passes >= (store.place[0] >= load.place[0]) and _overlap(apart, store, load):
            meetings.append((store, passes, -apart))
    return meetings, complete


def _overlap(apart: int, store: _Access, load: _Access) -> bool:
    return -load.size < apart < store.size


def _solve(apart: Linear, stride: Linear) -> int | None:
    """The number of passes after which apart + passes × stride is a plain number."""
    name, factor = stride.terms[0]
    passes, remainder = divmod(-apart.coefficient(name), factor)
    return None if remainder or passes < 0 or (apart + stride * passes).terms else passes


def _constant_distances(
    apart: int, stride: int, first: int, store: _Access, load: _Access
) -> Iterator[tuple[int, int]]:
    """The passes p ≥ first with overlap at distance apart + p × stride, and the offset of the store in the load."""
    low, high = sorted(((store.size - apart) / stride, (-load.size - apart) / stride))
    for passes in range(max(first, int(low)), int(high) + 1 if high >= 0 else 0):
        if _overlap(apart + passes * stride, store, load):
            yield passes, -(apart + passes * stride)


_Steady = tuple[list[_Access], list[_Access], dict[str, Linear | None]]


def _accesses(steps: Sequence[AddressStep]) -> _Steady:
    """Loads and stores with their addresses in the steady state, and what registers gain per pass."""
    registers: dict[str, Linear] = {}
    places: list[tuple[tuple[int, int], Linear, int, bool, bool]] = []
    needed = _needed(steps)
    for number, step in enumerate(steps):
        for k, address, size, read, written in step.places:
            places.append(((number, k), _evaluated(address, registers), size, read, written))
        if step.writes:
            registers |= {
                name: symbol(f"{name}{_FRESH}{number}") if value is None else _evaluated(value, registers)
                for name, value in step.writes
                if name in needed
            }
    strides, derived = _steady_state(registers)
    loads: list[_Access] = []
    stores: list[_Access] = []
    for place, address, size, read, written in places:
        access = _Access(place, _substitute(address, derived) if derived else address, size)
        if read:
            loads.append(access)
        if written:
            stores.append(access)
    return loads, stores, strides


class MovingAccess(NamedTuple):
    """A load or store whose address moves by the same number of bytes from pass to pass.

    Attributes:
        instruction: number of the instruction.
        address: in terms of the registers at the start of a pass.
        size: in bytes; stride: bytes that it moves per pass.
        anchored: whether it is indexed from a base that the loop leaves alone.
    """

    instruction: int
    address: Linear
    size: int
    stride: int
    anchored: bool


class BodyAccesses:
    """The loads and stores of a loop body, made of the `address_step` of each instruction when they are asked for."""

    __slots__ = ("_moving", "_steady", "steps")

    def __init__(self, steps: Sequence[AddressStep]) -> None:
        self.steps = steps
        self._steady: _Steady | None = None
        self._moving: tuple[list[MovingAccess], list[MovingAccess]] | None = None

    def steady(self) -> _Steady:
        """Loads and stores with their addresses in the steady state, and what registers gain per pass."""
        if self._steady is None:
            self._steady = _accesses(self.steps)
        return self._steady

    def moving(self, told: Mapping[int, int] | None = None) -> tuple[list[MovingAccess], list[MovingAccess]]:
        """The loads and the stores whose addresses move by the same number of bytes from pass to pass.

        Args:
            told: bytes per pass by instruction, for those of which the body does not tell it: a base for which no
                register is left is loaded in each pass, from the stack or a vector register, and stays the same.
        """
        loads, stores, strides = self.steady()
        if told:
            return _moving(loads, strides, told), _moving(stores, strides, told)
        if self._moving is None:
            self._moving = _moving(loads, strides, {}), _moving(stores, strides, {})
        return self._moving


def _moving(
    accesses: Sequence[_Access], strides: Mapping[str, Linear | None], told: Mapping[int, int]
) -> list[MovingAccess]:
    found = []
    for access in accesses:
        stride = _stride(access, strides)
        if stride is None and access.place[0] in told:
            stride = Linear(told[access.place[0]])
        if stride is not None and not stride.terms:
            terms = access.address.terms
            still = [name for name, factor in terms if factor == 1 and name not in strides]
            anchored = len(still) == 1 < len(terms) and not any(_FRESH in name for name, _ in terms)
            found.append(MovingAccess(access.place[0], access.address, access.size, stride.constant, anchored))
    return found


def _needed(steps: Sequence[AddressStep]) -> set[str]:
    """The registers that addresses are made of, directly or through others."""
    needed = {name for step in steps for place in step.places for name, _ in place[1].terms}
    while True:
        more = {
            name
            for step in steps
            for register, value in step.writes
            if value is not None and register in needed
            for name, _ in value.terms
        }
        if more <= needed:
            return needed
        needed |= more


def _evaluated(value: Linear, registers: Mapping[str, Linear]) -> Linear:
    """The value with what the registers hold now."""
    if not any(name in registers for name, _ in value.terms):
        return value
    total = Linear(value.constant)
    for name, factor in value.terms:
        held = registers.get(name)
        total += (symbol(name) if held is None else held) * factor
    return total


def renamed_step(
    step: AddressStep, reference: MemoryReference, own: Mapping[str, str], scale: int, displacement: int, isa_name: str
) -> AddressStep:
    """What an instruction means for addresses that is like another one with one memory access, but for its registers
    and the constants of its address.

    Args:
        step: of the other; it gives no register a value that depends on others.
        reference: the memory reference of the other.
        own: the registers of the instruction by those of the other.
        scale, displacement: of its address; isa_name: its instruction set.
    """
    writes = tuple([(own.get(name, name), value) for name, value in step.writes])
    (number, _, size, read, written) = step.places[0]
    base = reference.base and own.get(reference.base, reference.base)
    index = reference.index and own.get(reference.index, reference.index)
    own_reference = MemoryReference(base, index, scale, displacement, None, reference.segment, size, read, written)
    isa = isa_of(isa_name)
    address = address_of(own_reference, symbols_of(isa_name).get, isa.registers.program_counter) or ZERO
    return AddressStep(((number, address, size, read, written),), writes)


def _steady_state(final: Mapping[str, Linear]) -> tuple[dict[str, Linear | None], dict[str, Linear]]:
    """What registers gain per pass (None: nothing constant), and those that are copies of others, in these others.

    Args:
        final: values after one pass in terms of the start of the pass, of the registers that the body writes.
    """
    strides: dict[str, Linear | None] = {}
    for name, value in final.items():
        gain = Linear(value.constant) if value.terms == ((name, 1),) else value - symbol(name)
        invariant = all(term not in final and _FRESH not in term for term, _ in gain.terms)
        strides[name] = gain if invariant else None
    derived: dict[str, Linear] = {}
    while True:
        before = len(derived)
        for name, value in final.items():
            if strides[name] is None and name not in derived:
                copied = _substitute(value, derived)
                gain_of_copy = _moves_by(copied, strides)
                if gain_of_copy is not None:
                    # it was copied in the pass before, when what it is made of was one stride behind
                    derived[name] = copied - gain_of_copy
        if len(derived) == before:
            return strides, derived


def _substitute(value: Linear, derived: Mapping[str, Linear]) -> Linear:
    for term, factor in value.terms:
        if term in derived:
            value = value + (derived[term] - symbol(term)) * factor
    return value


def _stride(access: _Access, strides: Mapping[str, Linear | None]) -> Linear | None:
    return _moves_by(access.address, strides)


def _moves_by(address: Linear, strides: Mapping[str, Linear | None]) -> Linear | None:
    """What the address gains per pass; None if that is not constant."""
    total = ZERO
    for term, factor in address.terms:
        stride = None if _FRESH in term else strides.get(term, ZERO)
        if stride is None:
            return None
        total += stride * factor
    return total


class _Values:
    """Numbers for what registers hold: equal numbers are equal values, and what is computed alike from equal values
    gets equal numbers.

    A value is a number and a displacement from it.
    """

    __slots__ = ("_apart", "_numbers", "_registers")

    def __init__(self, policy: MemoryPolicy, isa_name: str) -> None:
        self._numbers: dict[object, int] = {}
        self._registers: dict[str, tuple[int, int]] = {}
        registers = isa_of(isa_name).registers
        self._apart = {*registers.frame, registers.program_counter} if policy == "stack" else None

    def of(self, register: str | None) -> tuple[int, int]:
        """What a register holds."""
        if register is None:
            return 0, 0
        value = self._registers.get(register)
        if value is None:
            value = self._registers[register] = (
                self._number(register if self._apart is None or register in self._apart else "any"),
                0,
            )
        return value

    def address(self, reference: MemoryReference) -> object:
        """What an address is made of."""
        base, displacement = self.of(reference.base)
        index = self.of(reference.index) if reference.index else None
        scale = reference.scale if reference.index else 0
        return base, displacement + reference.displacement, index, scale, reference.symbol, reference.segment

    def execute(self, instruction: Instruction) -> None:
        """Give the registers that the instruction writes their new values."""
        isa, effect = isa_of(instruction.isa), own_effect(instruction)
        written = dict.fromkeys(written_addresses(instruction))
        results = {name: self._result(instruction, effect, place) for place, name in enumerate(written)}
        for name in instruction.implicit_writes:
            results.setdefault(name, (self._number(object()), 0))
        top = isa.registers.stack_pointer
        moved = dict(effect.registers).get(top) if isa.moves_stack(instruction) and not instruction.branch else None
        if moved is not None:
            number, displacement = self.of(top)
            results[top] = number, displacement + moved.constant
        self._registers |= results

    def _number(self, content: object) -> int:
        return self._numbers.setdefault(content, len(self._numbers) + 1)

    def _result(self, instruction: Instruction, effect: Effect, place: int) -> tuple[int, int]:
        """The value that the instruction writes to the `place`-th of its written registers."""
        operands = instruction.operands
        if effect.transfer == "copy" and effect.registers:
            return self.of(operands[-1].register)
        if effect.transfer == "address" and not instruction.memory[0].index:
            number, displacement = self.of(instruction.memory[0].base)
            return number, displacement + instruction.memory[0].displacement
        if instruction.flags_read or instruction.implicit_reads or any(r.read for r in instruction.memory):
            return self._number(object()), 0
        inputs = tuple(self._input(operand) for operand in operands)
        return self._number((instruction.mnemonic, place, inputs)), 0

    def _input(self, operand: Operand) -> object:
        """What the result takes of an operand: its width, and its value where it is read."""
        if operand.memory is not None:
            return self.address(operand.memory)
        return operand.kind, self.of(operand.register) if operand.read else operand.immediate


def _named_alike(instructions: Sequence[Instruction], policy: MemoryPolicy) -> Iterator[Forwarding]:
    """The forwardings of a second pass, by equal addresses.

    As in the peers: a load that begins elsewhere in the bytes of a store is none.
    """
    values = _Values(policy, instructions[0].isa)
    last: dict[object, tuple[tuple[int, int], int, int]] = {}  # store, its size and pass by address
    for number in range(2):
        for n, instruction in enumerate(instructions):
            places = [(k, r, values.address(r)) for k, r in enumerate(instruction.memory) if r.read or r.written]
            for k, reference, address in places:
                if reference.read and address in last and number:
                    store, size, before = last[address]
                    yield Forwarding(store, (n, k), number - before, reference.size_bytes <= size)
            last |= {address: ((n, k), r.size_bytes, number) for k, r, address in places if r.written}
            values.execute(instruction)
