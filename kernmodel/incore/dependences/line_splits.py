"""Loads that cross cache lines: how often they do in a loop over arrays that begin at cache lines.

Addresses that differ by a constant cannot all be aligned. Where an index moves along a base that the loop leaves alone,
the base is taken for the start of an array at a cache line, and the index for whole vectors. Of other sets of such
loads the alignment is taken that costs least. What a split load costs is a figure of the core, by size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from kernmodel.incore.dependences.addresses import MovingLoad, address_step, moving_loads
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.core_parameters import LoadParameters
from kernmodel.isa.model import Instruction

_DATA_PATH = "D"


def split_loads(instructions: Sequence[Instruction], parameters: LoadParameters) -> dict[int, float]:
    """By instruction, the share of the passes in which its load crosses lines; 0 is left out.

    Args:
        instructions: the block, a loop body; parameters: of the core, with its cache line.
    """
    costs, line = parameters.splits, parameters.line_bytes
    if line is None:
        return {}
    if not any(reference.read and reference.size_bytes in costs for i in instructions for reference in i.memory):
        return {}
    alike: dict[object, list[MovingLoad]] = {}
    for load in moving_loads([address_step(i) for i in instructions]):
        if load.size in costs:
            alike.setdefault(load.address.terms, []).append(load)
    shares: dict[int, float] = {}
    for loads in alike.values():
        starts = (0,) if loads[0].anchored else range(line)
        found = min((_shares(loads, start, line) for start in starts), key=lambda shares: _cost(loads, shares, costs))
        shares |= {load.instruction: share for load, share in zip(loads, found, strict=True) if share}
    return shares


def _shares(loads: Sequence[MovingLoad], start: int, line: int) -> list[float]:
    """The share of passes in which each load is split if what their addresses share is `start` modulo a line."""
    found = []
    for load in loads:
        step = gcd(load.stride, line)
        places = range((start + load.address.constant) % step, line, step)
        found.append(sum(place + load.size > line for place in places) / len(places))
    return found


def _cost(loads: Sequence[MovingLoad], shares: Sequence[float], costs: Mapping[int, float]) -> float:
    return sum(share * costs[load.size] for load, share in zip(loads, shares, strict=True))


def with_splits(
    uses: Sequence[tuple[PortUse, ...]],
    rows: Sequence[InstructionData | None],
    instructions: Sequence[Instruction],
    parameters: LoadParameters,
) -> tuple[tuple[PortUse, ...], ...]:
    """The port usage of a loop body where split loads take all their ports for as long as the figures say."""
    found, costs = list(uses), parameters.splits
    for number, share in split_loads(instructions, parameters).items():
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
