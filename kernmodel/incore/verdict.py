"""Which component of a block binds, and what kind of limit that is."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kernmodel.incore.bounds import DIVIDER, FRONT_END, PIPELINE, PORTS, PRECEDENCE, Bounds

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


def verdict_of(bounds: Bounds) -> Verdict:
    """The verdict on a block.

    Where the simulation takes longer than every bound, the front end binds if the renamer most often stands still for
    want of µops, else the scheduling of µops.
    """
    applied, prediction = bounds.applied, bounds.prediction
    for name in _ORDER:
        if name in applied and reaches(applied[name], prediction):
            return Verdict(name, _kind(name))
    simulated = bounds.simulated
    if simulated is None or not prediction:
        return Verdict(PORTS, "throughput")
    stalls = simulated.stalls
    starved = max(stalls, key=stalls.__getitem__, default="") == "front end" and stalls["front end"] > 0
    return Verdict(PIPELINE, "front end" if starved else "scheduling")


def binding_of(bounds: Bounds) -> tuple[str, ...]:
    """The components that explain the prediction, front to back; the pipeline, which is no bound, only where none
    does."""
    applied, prediction = bounds.applied, bounds.prediction
    found = tuple(name for name, c in applied.items() if name != PIPELINE and reaches(c, prediction))
    return found or tuple(name for name, c in applied.items() if reaches(c, prediction))


def _kind(name: str) -> BoundBy:
    if name == PRECEDENCE:
        return "dependency"
    return "throughput" if name in (PORTS, DIVIDER) else "front end"
