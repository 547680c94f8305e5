"""Which component of a block binds, and what kind of limit that is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from kernmodel.incore.answer.components import DIVIDER, FRONT_END, PIPELINE, PORTS, PRECEDENCE
from kernmodel.incore.engine.layout import EARLY_ENDS
from kernmodel.value_types import NamedTuple

BoundBy = Literal["throughput", "dependency", "front end", "scheduling"]

CLOSE = 0.01
"""Share of the prediction by which a bound may stay below it and still explain it: what the simulation loses now and
then where two limits meet tells a reader nothing."""

_ORDER = (PORTS, DIVIDER, PRECEDENCE, *FRONT_END)
"""Of components that reach the prediction together, the first one names it."""


class Verdict(NamedTuple):
    """What binds: the component that names the prediction, and the kind of limit."""

    component: str
    bound_by: BoundBy


def reaches(cycles: float, prediction: float) -> bool:
    """Whether a bound explains the prediction."""
    return cycles > 0 and cycles >= prediction * (1 - CLOSE)


def reaching(applied: Mapping[str, float], prediction: float) -> list[str]:
    """Those of the components that count which reach the prediction, front to back."""
    least = prediction * (1 - CLOSE)
    return [name for name, cycles in applied.items() if 0 < cycles >= least]


def verdict_of(found: Collection[str], prediction: float, stalls: Callable[[], Mapping[str, float] | None]) -> Verdict:
    """The verdict on a block, from the components that reach the prediction, the largest of all that count, and what
    gives the stalls of the simulation.

    Where the simulation takes longer than every bound, the front end binds if the renamer most often stands still for
    want of µops, else the scheduling of µops.
    """
    for name in _ORDER:
        if name in found:
            return Verdict(name, _kind(name))
    stalled = stalls() if prediction else None
    if stalled is None:
        return Verdict(PORTS, "throughput")
    still = {name: share for name, share in stalled.items() if name not in EARLY_ENDS}
    starved = max(still, key=still.__getitem__, default="") == "front end" and still["front end"] > 0
    return Verdict(PIPELINE, "front end" if starved else "scheduling")


def binding_of(found: Sequence[str]) -> tuple[str, ...]:
    """Of the components that reach the prediction, those that explain it; the pipeline, which is no bound, only where
    no other does."""
    if len(found) > 1 and PIPELINE in found:
        return tuple([name for name in found if name != PIPELINE])
    return tuple(found)


def _kind(name: str) -> BoundBy:
    if name == PRECEDENCE:
        return "dependency"
    return "throughput" if name in (PORTS, DIVIDER) else "front end"
