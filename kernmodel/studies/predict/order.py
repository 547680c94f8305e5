"""In which order compiled code executes a nest, where it executes several iterations of an outer loop at once."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import Note
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.jammed import Jam
from kernmodel.source.nest.sizes import trip_counts


def jam_of(loop: AssemblyLoop, nest: LoopNest, sizes: Mapping[str, int]) -> Jam | None:
    """How many iterations of which loop the code executes at once; None for one, or more than the loop has.

    `nest` is the one whose code it is: code of a blocked nest may execute several blocks at once, for which the nest
    as it stands has no loop, and no order of it that could be told (None).

    A pass that executes several iterations of a loop, with all loops within it unrolled entirely, has them at once,
    too: compilers jam loops before they unroll them.
    """
    along, copies = loop.along, loop.copies
    trips = dict(zip((each.variable for each in nest.loops), trip_counts(nest, sizes), strict=True))
    if along is None and loop.variable in trips and loop.variable != nest.inner.variable:
        within = list(trips)[list(trips).index(loop.variable) + 1 :]
        if loop.iterations_per_pass == (loop.steps or 1) * prod(trips[name] for name in within):
            along, copies = loop.variable, float(loop.steps or 1)
    if along is None or along not in trips or copies <= 1 or copies != int(copies):
        return None
    return Jam(along, int(copies)) if trips[along] >= copies else None


def order_notes(loop: AssemblyLoop, jam: Jam | None) -> tuple[Note, ...]:
    """Whose order of execution the traffic is of, where the code executes several iterations at once."""
    if jam is not None:
        text = f"the traffic is that of the code, which executes {jam.copies} iterations of {jam.along} at once"
        return (Note("code-order", f"{text}; `traffic`, which knows no code, has that of the source", "assumption"),)
    if loop.along is None:
        return ()
    text = f"the traffic is that of the loops as the source writes them, one iteration of {loop.along} at a time"
    return (Note("source-order", text),)
