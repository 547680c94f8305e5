"""Which component of a block binds, and what kind of limit that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from kernmodel.incore.answer.components import DIVIDER, FRONT_END, PIPELINE, PORTS, PRECEDENCE
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


def verdict_of(
    applied: Mapping[str, float], prediction: float, stalls: Callable[[], Mapping[str, float] | None]
) -> Verdict:
    """The verdict on a block, from the components that count, the largest of them, and what gives the stalls of the
    simulation.

    Where the simulation takes longer than every bound, the front end binds if the renamer most often stands still for
    want of µops, else the scheduling of µops.
    """
    for name in _ORDER:
        if name in applied and reaches(applied[name], prediction):
            return Verdict(name, _kind(name))
    found = stalls() if prediction else None
    if found is None:
        return Verdict(PORTS, "throughput")
    starved = max(found, key=found.__getitem__, default="") == "front end" and found["front end"] > 0
    return Verdict(PIPELINE, "front end" if starved else "scheduling")


def binding_of(applied: Mapping[str, float], prediction: float) -> tuple[str, ...]:
    """The components that explain the prediction, front to back; the pipeline, which is no bound, only where none
    does."""
    found = [name for name, cycles in applied.items() if reaches(cycles, prediction)]
    if len(found) > 1 and PIPELINE in found:
        found.remove(PIPELINE)
    return tuple(found)


def _kind(name: str) -> BoundBy:
    if name == PRECEDENCE:
        return "dependency"
    return "throughput" if name in (PORTS, DIVIDER) else "front end"
