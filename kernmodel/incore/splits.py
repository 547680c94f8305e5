"""Loads that cross cache lines: how often they must in a loop, whatever its data are aligned to.

Addresses that differ by a constant cannot all be aligned. Of each set of such loads the alignment is taken that costs
least; loads that cannot be compared are taken to be aligned. What a split load costs is a figure of the core, by size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from kernmodel.assembly.model import Instruction
from kernmodel.incore.addresses import address_step, moving_loads
from kernmodel.incore.model import InstructionData, Parameters, PortUse
from kernmodel.units import parse_quantity

KEYS = {32: "split 256-bit load", 64: "split 512-bit load"}
"""Keys of `Parameters.extra` by bytes: cycles for which a load across lines takes all load ports that it can use."""
_LINE = 64
_DATA_PATH = "D"


def split_figures(parameters: Parameters) -> dict[int, float]:
    """Cycles that a load across lines takes, by its bytes, where the core has a figure of it.

    Raises:
        UnitError: a figure is no time.
    """
    given = {size: parameters.extra[key] for size, key in KEYS.items() if key in parameters.extra}
    return {size: parse_quantity(value, "cycles", where=parameters.name) for size, value in given.items()}


def split_loads(instructions: Sequence[Instruction], costs: Mapping[int, float]) -> dict[int, float]:
    """By instruction, the share of the passes in which its load crosses lines; 0 is left out.

    Args:
        instructions: the block, a loop body; costs: by bytes, as of `split_figures`.
    """
    if not any(reference.read and reference.size_bytes in costs for i in instructions for reference in i.memory):
        return {}
    alike: dict[object, list[tuple[int, int, int, int]]] = {}
    for number, address, size, stride in moving_loads([address_step(i) for i in instructions]):
        if size in costs:
            alike.setdefault(address.terms, []).append((number, address.constant, size, stride))
    shares: dict[int, float] = {}
    for loads in alike.values():
        found = min((_shares(loads, start) for start in range(_LINE)), key=lambda shares: _cost(loads, shares, costs))
        shares |= {number: share for (number, *_), share in zip(loads, found, strict=True) if share}
    return shares


def _shares(loads: Sequence[tuple[int, int, int, int]], start: int) -> list[float]:
    """The share of passes in which each load is split if the common part of their addresses is `start` modulo a line."""
    found = []
    for _, constant, size, stride in loads:
        step = gcd(stride, _LINE)
        places = range((start + constant) % step, _LINE, step)
        found.append(sum(place + size > _LINE for place in places) / len(places))
    return found


def _cost(loads: Sequence[tuple[int, int, int, int]], shares: Sequence[float], costs: Mapping[int, float]) -> float:
    return sum(share * costs[size] for (_, _, size, _), share in zip(loads, shares, strict=True))


def with_splits(
    uses: Sequence[tuple[PortUse, ...]],
    rows: Sequence[InstructionData | None],
    instructions: Sequence[Instruction],
    costs: Mapping[int, float],
) -> tuple[tuple[PortUse, ...], ...]:
    """The port usage of a loop body where split loads take all their ports for as long as the figures say."""
    found = list(uses)
    for number, share in split_loads(instructions, costs).items():
        row = rows[number]
        size = next((r.size_bytes for r in instructions[number].memory if r.read), 0)
        if row is not None and size in costs:
            found[number] = tuple(_split(use, uses[number], share, costs[size]) for use in uses[number])
    return tuple(found)


def _split(use: PortUse, all_uses: Sequence[PortUse], share: float, cycles: float) -> PortUse:
    """A use of load ports (those with a data path) in so many passes for so many cycles on all of them."""
    paths = {port + _DATA_PATH for port in use.ports}
    if not any(paths == set(other.ports) for other in all_uses):
        return use
    return PortUse(use.ports, use.cycles + share * (cycles * len(use.ports) - 1.0))
