"""Which store of a loop feeds which load: addresses as linear expressions of the registers at the start of a pass.

The body is executed once symbolically; what a register gains from one pass to the next says how each address moves. A
load depends on the latest earlier store, in this pass or a previous one, whose bytes provably overlap its own.

Assumed: index arithmetic does not wrap around (32-bit included), and addresses that cannot be compared (different
symbols, unrelated base registers) differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kernmodel.assembly.model import Instruction, MemoryReference, Operand
from kernmodel.assembly.symbolic import ZERO, Linear, symbol

_FRESH = "@"  # marks symbols that stand for something that the body computes anew in every pass
_COPIES = frozenset({"mov", "movsxd"})
_WIDE = frozenset({"r32", "r64"})
_STACK_SIGN = {"push": -1, "pop": 1}


class Forwarding(NamedTuple):
    """A load that reads what a store wrote.

    Attributes:
        store, load: (instruction, number of its memory reference).
        passes: passes of the loop from the store to the load.
        whole: whether the store wrote all the bytes that the load reads; else the core cannot forward them.
    """

    store: tuple[int, int]
    load: tuple[int, int]
    passes: int
    whole: bool


class _Access(NamedTuple):
    place: tuple[int, int]
    address: Linear
    stride: Linear | None
    size: int


def forwardings(instructions: Sequence[Instruction]) -> tuple[tuple[Forwarding, ...], bool]:
    """All store-to-load dependencies of the loop body, and whether some addresses could not be compared."""
    references = [reference for instruction in instructions for reference in instruction.memory]
    if not any(r.written for r in references) or not any(r.read for r in references):
        return (), False
    loads, stores = _accesses(instructions)
    found: list[Forwarding] = []
    compared = True
    for load in loads:
        sources = [(store, _distances(store, load)) for store in stores]
        compared &= all(distances is not None for _, distances in sources)
        found += _latest(load, [(store, passes) for store, distances in sources for passes in distances or ()])
    return tuple(found), not compared


def _latest(load: _Access, candidates: list[tuple[_Access, tuple[int, int]]]) -> Iterator[Forwarding]:
    """The stores that wrote the bytes of the load last, of those (store, (passes, offset)) that overlap it."""
    everything = (1 << load.size) - 1
    missing = everything
    for store, (passes, offset) in sorted(candidates, key=lambda c: (c[1][0], (-c[0].place[0], -c[0].place[1]))):
        written = ((1 << store.size) - 1) << offset if offset >= 0 else ((1 << store.size) - 1) >> -offset
        if written & missing:
            yield Forwarding(store.place, load.place, passes, whole=written & everything == everything)
            missing &= ~written
        if not missing:
            return


def _distances(store: _Access, load: _Access) -> list[tuple[int, int]] | None:
    """Passes from store to load in which they overlap, with the offset of the store in the load; None if unknown."""
    first = 0 if store.place[0] < load.place[0] else 1
    comparable = load.address.terms == store.address.terms
    if load.stride is None or load.stride != store.stride:
        # they may meet in this pass; in later ones nothing is known of them
        apart = load.address.constant - store.address.constant
        return [(0, -apart)] if comparable and first == 0 and _overlap(apart, store, load) else None
    if load.stride.terms:
        passes = _solve(load.address - store.address, load.stride)
        if passes is None:
            return [] if comparable else None
        apart = (load.address - store.address + load.stride * passes).constant
        return [(passes, -apart)] if passes >= first and _overlap(apart, store, load) else []
    if not comparable:
        return None
    apart = load.address.constant - store.address.constant
    return list(_constant_distances(apart, load.stride.constant, first, store, load))


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
    """The passes p ≥ first with overlap at distance apart + p × stride (for a stride of 0 the first one)."""
    if stride == 0:
        if _overlap(apart, store, load):
            yield first, -apart
        return
    low, high = sorted(((store.size - apart) / stride, (-load.size - apart) / stride))
    for passes in range(max(first, int(low)), int(high) + 1 if high >= 0 else 0):
        if _overlap(apart + passes * stride, store, load):
            yield passes, -(apart + passes * stride)


def _accesses(instructions: Sequence[Instruction]) -> tuple[list[_Access], list[_Access]]:
    """Loads and stores with their addresses in the steady state and how these move per pass."""
    registers: dict[str, Linear] = {}
    places: list[tuple[tuple[int, int], MemoryReference, Linear]] = []
    for number, instruction in enumerate(instructions):
        for k, reference in enumerate(instruction.memory):
            if (reference.read or reference.written) and not _is_gather(reference):
                places.append(((number, k), reference, _address(reference, registers)))
        _execute(instruction, number, registers)
    strides, derived = _steady_state(registers)
    loads: list[_Access] = []
    stores: list[_Access] = []
    for place, reference, raw in places:
        address = _substitute(raw, derived)
        access = _Access(place, address, _moves_by(address, strides), reference.size_bytes)
        if reference.read:
            loads.append(access)
        if reference.written:
            stores.append(access)
    return loads, stores


def _is_gather(reference: MemoryReference) -> bool:
    return reference.index is not None and "mm" in reference.index


def _address(reference: MemoryReference, registers: Mapping[str, Linear]) -> Linear:
    address = Linear(reference.displacement)
    if reference.symbol:
        address += symbol("&" + reference.symbol)
    if reference.segment:
        address += symbol(reference.segment + ":")
    if reference.base and reference.base != "rip":
        address += registers.get(reference.base) or symbol(reference.base)
    if reference.index:
        address += (registers.get(reference.index) or symbol(reference.index)) * reference.scale
    return address


def _execute(instruction: Instruction, number: int, registers: dict[str, Linear]) -> None:
    """Update the values of the general-purpose registers; what is not linear becomes a fresh symbol."""
    value = _result(instruction, registers)
    stack = registers.get("rsp") or symbol("rsp")
    for operand in instruction.operands:
        if operand.written and operand.register and operand.kind[0] == "r":
            registers[operand.register] = value or symbol(f"{operand.register}{_FRESH}{number}")
            value = None
    for name in instruction.implicit_writes:
        registers[name] = symbol(f"{name}{_FRESH}{number}")
    if instruction.mnemonic in _STACK_SIGN and "rsp" in instruction.implicit_writes:
        registers["rsp"] = stack + Linear(_STACK_SIGN[instruction.mnemonic] * instruction.memory[-1].size_bytes)


def _result(instruction: Instruction, registers: Mapping[str, Linear]) -> Linear | None:
    """The linear value that the instruction writes to its first operand, None if it is none."""
    operands = instruction.operands
    if not operands or operands[0].kind not in _WIDE or not operands[0].written:
        return None
    name = instruction.mnemonic
    if name == "lea" and operands[1].memory is not None:
        return _address(operands[1].memory, registers)
    if name in ("xor", "sub") and instruction.same_register:
        return ZERO
    values = [_value(operand, registers) for operand in operands]
    return _arithmetic(name, values)


def _arithmetic(name: str, values: Sequence[Linear | None]) -> Linear | None:
    first = values[0]
    last = values[-1]
    if name in _COPIES:
        return last
    if first is None or last is None:
        return None
    if name == "add":
        return first + last
    if name == "sub":
        return first - last
    if name in ("inc", "dec"):
        return first + Linear(1 if name == "inc" else -1)
    if name in ("shl", "sal") and not last.terms and 0 <= last.constant < 64:
        return first * (1 << last.constant)
    return None


def _value(operand: Operand, registers: Mapping[str, Linear]) -> Linear | None:
    if operand.register is not None and operand.kind in _WIDE:
        return registers.get(operand.register) or symbol(operand.register)
    return None if operand.immediate is None else Linear(_signed(operand))


def _signed(operand: Operand) -> int:
    """The immediate as a signed number; those of 32-bit operations may come as unsigned patterns."""
    value = operand.immediate or 0
    return value - (1 << 32) if operand.kind != "i64" and value >> 31 == 1 else value


def _steady_state(final: Mapping[str, Linear]) -> tuple[dict[str, Linear | None], dict[str, Linear]]:
    """What registers gain per pass (None: nothing constant), and those that are copies of others, in these others.

    Args:
        final: values after one pass in terms of the start of the pass, of the registers that the body writes.
    """
    strides: dict[str, Linear | None] = {}
    for name, value in final.items():
        gain = value - symbol(name)
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


def _moves_by(address: Linear, strides: Mapping[str, Linear | None]) -> Linear | None:
    """What the address gains per pass; None if that is not constant."""
    total = ZERO
    for term, factor in address.terms:
        stride = None if _FRESH in term else strides.get(term, ZERO)
        if stride is None:
            return None
        total += stride * factor
    return total
