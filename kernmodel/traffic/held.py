"""What is found again in a cache, in a few words: by the layer conditions that hold, or by counts of a simulation.

Light on purpose: importing this module does not load sympy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernmodel.traffic.model import LayerCondition, Traffic

SYMBOLIC = "layer conditions"
"""The method of traffic that was not simulated."""


def strongest(conditions: Iterable[LayerCondition]) -> LayerCondition | None:
    """The strongest condition that holds, None if none does (conditions come weakest first)."""
    return max((c for c in conditions if c.holds), key=lambda c: c.required, default=None)


def strongest_in(traffic: Traffic, cache: str) -> LayerCondition | None:
    """The strongest condition that holds in a cache; None if none does, and of simulated traffic."""
    return strongest(condition for condition in traffic.conditions if condition.cache == cache)


def carriers(condition: LayerCondition) -> str | None:
    """The loops that carry the reuses of a condition ("j", "sweep"), None if no loop does."""
    return ", ".join(dict.fromkeys(reuse.carried_by for reuse in condition.reuses)) or None


def reuse_in(traffic: Traffic, cache: str) -> str | None:
    """The loops that carry the strongest reuse that holds in a cache; of simulated traffic, the share of hits; None
    if there is none."""
    if traffic.method == SYMBOLIC:
        holding = strongest_in(traffic, cache)
        return carriers(holding) if holding else None
    level = next((level for level in traffic.levels if level.level == cache), None)
    if level is None or not level.loads + level.stores:
        return None
    return f"hits {(level.load_hits + level.store_hits) / (level.loads + level.stores):.0%}"
