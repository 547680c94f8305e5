"""What code moves that executes several iterations of an outer loop at once (unroll-and-jam, vector lanes).

An array that the outer loop does not index, as the `y` of `y[i] += A[j][i] * x[j]` over j, is loaded and stored once
for all iterations that a pass executes of it. gcc 12 makes two of j at once, clang 19 one: with A in memory and y in L2
a line of A takes 9.2 and 11.8 cycles on a Zen 4 host, where a line from memory beside half a line of L2 takes 9.4 and
beside a whole one 11.9.
"""

from __future__ import annotations

from dataclasses import replace

from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.source.model import LoopNest
from kernmodel.traffic.conditional import with_shares
from kernmodel.traffic.model import Traffic


def jammed_traffic(traffic: Traffic, nest: LoopNest, machine: Machine, along: str | None, copies: float) -> Traffic:
    """The traffic of code that executes so many iterations of the loop `along` at once.

    Lines of arrays that other references share between these iterations, and which cache serves them, stay as the
    source's order of loops has them.
    """
    variables = [loop.variable for loop in nest.loops]
    if along not in variables or copies <= 1:
        return traffic
    number = variables.index(along)
    moving = {access.array for access in nest.accesses if access.moves(nest.loops, number)}
    touched = {access.array: 1.0 if access.array in moving else 1 / copies for access in nest.accesses}
    modified = {access.array: touched[access.array] for access in nest.accesses if access.kind == "write"}
    found = with_shares(traffic, machine, touched, modified)
    if [path.lines for path in found.paths] == [path.lines for path in traffic.paths]:
        return traffic
    once = ", ".join(array for array, share in touched.items() if share < 1)
    copies_of = f"the {copies:g} iterations that the code executes at once"
    text = f"{along} does not index {once}: its lines move once for {copies_of}"
    return replace(found, notes=(*found.notes, Note("jammed-lines", text, "assumption")))
