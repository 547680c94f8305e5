"""Rows of different lengths that a compiler unrolls entirely: a pass of the code over the outer loop is a whole row.

Of a triangular nest with few columns, gcc makes one loop over the rows whose body has a block for every length, and
jumps out where the row ends. The body is that of the longest row; others execute the part of it that they need.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from kernmodel.errors import Location, Note
from kernmodel.source.nest.sizes import trip_counts
from kernmodel.source.nest.trip_counts import lengths
from kernmodel.source.nest.whole_loops import whole_steps

if TYPE_CHECKING:
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.source.model import LoopNest

WHOLE_ROWS = "whole-rows"
"""Code of the note that a pass executes whole rows of different lengths."""

_FITS = frozenset({"bytes-per-pass", "operations-per-pass", "loops-exchanged", "outer-loop-unrolled"})
"""Notes on how a pass fits so many iterations, which say nothing where rows differ."""


def with_whole_rows(loop: AssemblyLoop, nest: LoopNest, sizes: Mapping[str, int]) -> AssemblyLoop:
    """The loop with the iterations of the longest row in a pass, where a pass executes whole rows that differ.

    It does if those within it were found to be executed entirely, or if it has no loop within it, and as many around it
    in the code as in the source. A row is all that a step of the loop executes.
    """
    variables = [one.variable for one in nest.loops]
    around = None if loop.around is None else bool(loop.around.ways) + len(loop.around.outer)
    if loop.variable is None or loop.variable == variables[-1]:
        return loop
    place = variables.index(loop.variable)
    if around != place and loop.whole != tuple(variables[place + 1 :]):
        return loop
    longest, mean = row_lengths(nest, sizes, loop.variable)
    if longest - mean < 1e-6:
        return loop
    names = " and ".join(variables[place + 1 :])
    text = (
        f"the compiler unrolled the loop over {names}: a pass executes a whole row, of up to {longest} "
        f"iterations and {mean:.4g} on average; of the cycles of all blocks a row is taken to need the same share"
    )
    kept = tuple(note for note in loop.notes if note.code not in _FITS)
    where = Location(loop.file, loop.instructions[0].line or None)
    return replace(
        loop,
        iterations_per_pass=float(longest * (loop.steps or 1)),
        notes=(*kept, Note(WHOLE_ROWS, text, "warning", where)),
    )


def row_lengths(nest: LoopNest, sizes: Mapping[str, int], variable: str) -> tuple[int, float]:
    """The iterations of the innermost loop in the longest step of the loop over `variable`, and their mean."""
    place = [loop.variable for loop in nest.loops].index(variable)
    rows = list(whole_steps(nest, sizes, place))
    if len(rows) < len(nest.loops) - 1 - place:  # longer than compilers unroll
        return 0, 0.0
    if place < len(nest.loops) - 2:
        return len(rows[-1].points), prod(trip_counts(nest, sizes)[place + 1 :])
    return len(rows[-1].points), sum(length * share for length, share in lengths(nest, sizes))
