"""Loads that cross cache lines: how often they do in a loop over arrays that begin at cache lines.

Addresses that differ by a constant cannot all be aligned. Where an index moves along a base that the loop leaves alone,
the base is taken for the start of an array at a cache line, and the index for whole vectors. Of other sets of such
loads the alignment is taken that costs least. What a split load costs is a figure of the core, by size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from kernmodel.incore.dependences.addresses import AddressStep, MovingLoad, moving_loads
from kernmodel.incore.model import PortUse
from kernmodel.incore.tables.core_parameters import LoadParameters
from kernmodel.isa.model import Instruction

_DATA_PATH = "D"


def split_loads(steps: Sequence[AddressStep], parameters: LoadParameters) -> dict[int, float]:
    """By instruction, the share of the passes in which its load crosses lines; 0 is left out.

    Args:
        steps: of the instructions of the block, a loop body; parameters: of the core, with its cache line.
    """
    costs, line = parameters.splits, parameters.line_bytes
    if line is None:
        return {}
    alike: dict[object, list[MovingLoad]] = {}
    for load in moving_loads(steps):
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


def split_cycles(uses: Sequence[PortUse], instruction: Instruction, costs: Mapping[int, float]) -> tuple[float, ...]:
    """Per port use of an instruction, the cycles that it grows by where the load crosses lines.

    Uses of load ports, with which load data paths go, take all their ports for as long as the figures say.
    """
    size = next((r.size_bytes for r in instruction.memory if r.read), 0) if costs else 0
    if size not in costs:
        return (0.0,) * len(uses)
    paths = {frozenset(use.ports) for use in uses}
    split = {use: frozenset(port + _DATA_PATH for port in use.ports) in paths for use in uses}
    return tuple([costs[size] * len(use.ports) - 1.0 if split[use] else 0.0 for use in uses])


def may_split(instruction: Instruction, costs: Mapping[int, float]) -> bool:
    """Whether the instruction loads so many bytes that it takes longer across lines."""
    return any(reference.read and reference.size_bytes in costs for reference in instruction.memory)
