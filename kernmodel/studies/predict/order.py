"""In which order compiled code executes a nest, where it executes several iterations of an outer loop at once."""

from __future__ import annotations

from collections.abc import Mapping

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import Note
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.jammed import Jam
from kernmodel.source.nest.sizes import trip_counts


def jam_of(loop: AssemblyLoop, nest: LoopNest, sizes: Mapping[str, int]) -> Jam | None:
    """How many iterations of which loop the code executes at once; None for one, or more than the loop has.

    `nest` is the one whose code it is: code of a blocked nest may execute several blocks at once, for which the nest
    as it stands has no loop, and no order of it that could be told (None).

    A pass that executes several iterations of the loop around the innermost one, with this unrolled entirely, has them
    at once, too: compilers jam loops before they unroll them.
    """
    along, copies = loop.along, loop.copies
    if along is None and loop.variable is not None and loop.variable in [each.variable for each in nest.loops[-2:-1]]:
        along, copies = loop.variable, float(loop.steps or 1)
    if along is None or copies <= 1 or copies != int(copies):
        return None
    if along not in [each.variable for each in nest.loops]:
        return None
    jam = Jam(along, int(copies))
    trips = dict(zip((each.variable for each in nest.loops), trip_counts(nest, sizes), strict=True))
    unrolled = loop.along is not None or loop.iterations_per_pass == copies * trips[nest.inner.variable]
    return jam if unrolled and trips[jam.along] >= jam.copies else None


def order_notes(loop: AssemblyLoop, jam: Jam | None) -> tuple[Note, ...]:
    """Whose order of execution the traffic is of, where the code executes several iterations at once."""
    if jam is not None:
        text = f"the traffic is that of the code, which executes {jam.copies} iterations of {jam.along} at once"
        return (Note("code-order", f"{text}; `traffic`, which knows no code, has that of the source", "assumption"),)
    if loop.along is None:
        return ()
    text = f"the traffic is that of the loops as the source writes them, one iteration of {loop.along} at a time"
    return (Note("source-order", text),)
