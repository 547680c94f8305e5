"""The nest as code executes it that takes several iterations of an outer loop at once (unroll-and-jam, vector lanes).

Of two iterations of j at once, the nest

    for (int j = 1; j < M - 1; ++j)
        for (int i = 0; i < N; ++i)
            b[j][i] = a[j][i] + a[j + 1][i];

becomes

    for (int j = 1; j < M - 2; j += 2)
        for (int i = 0; i < N; ++i)
            { b[j][i] = a[j][i] + a[j + 1][i]; b[j + 1][i] = a[j + 1][i] + a[j + 2][i]; }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernmodel.formulas.formula import pushed_in, variable
from kernmodel.source.model import Access, Loop, LoopNest, Operations
from kernmodel.value_types import NamedTuple


class Jam(NamedTuple):
    """That code executes `copies` iterations of the loop over `along` at once."""

    along: str
    copies: int


def jammed(nest: LoopNest, jam: Jam) -> LoopNest | None:
    """The nest of which an iteration executes as many iterations of the loop `jam.along`.

    References that several of these iterations share appear once: the compiler keeps their values in registers.
    Iterations that are left at the end of the loop are left out, so that there are none of a loop that has fewer.

    Returns:
        None where the iterations of that loop are not alike: bounds of loops in it depend on it, or an index array
        says where its accesses go.
    """
    number = next((number for number, loop in enumerate(nest.loops[:-1]) if loop.variable == jam.along), None)
    if number is None or any(jam.along in loop.bounded_by for loop in nest.loops[number + 1 :]):
        return None
    if any(access.jumps(jam.along) for access in nest.accesses):
        return None
    return replace(
        nest,
        loops=(*nest.loops[:number], _in_larger_steps(nest.loops[number], jam.copies), *nest.loops[number + 1 :]),
        accesses=tuple(moved for _, moved in copies_of(nest, jam)),
        operations=_repeated(nest.operations, jam.copies),
    )


def in_order(nest: LoopNest, jam: Jam | None) -> LoopNest:
    """The jammed nest; the nest itself without a jam, or where it cannot be jammed so."""
    return nest if jam is None else jammed(nest, jam) or nest


def copies_of(nest: LoopNest, jam: Jam) -> Iterator[tuple[Access, Access]]:
    """The accesses of the jammed nest in the order of execution, each behind the reference of the source that it is."""
    number, seen = [loop.variable for loop in nest.loops].index(jam.along), set()
    for copy in range(jam.copies):
        for access in nest.accesses:
            moved = _moved(access, nest.loops[number], copy) if copy and access.depth > number else access
            key = moved.array, moved.kind, moved.index, moved.depth, moved.after_inner
            if key not in seen:
                seen.add(key)
                yield access, moved


def _in_larger_steps(loop: Loop, copies: int) -> Loop:
    """The loop, which ends before iterations that fill no step."""
    return replace(loop, step=loop.step * copies, stop=pushed_in(loop.stop - (copies - 1) * loop.step))


def _moved(access: Access, loop: Loop, copy: int) -> Access:
    """The access in the iteration that is `copy` steps further."""
    ahead = {loop.variable: variable(loop.variable) + copy * loop.step}
    index = tuple(part.substitute(ahead) for part in access.index)
    if index == access.index:
        return access
    text = access.array + "".join(f"[{part}]" for part in index).replace(" ", "")
    return replace(access, index=index, offset=access.offset.substitute(ahead), text=text)


def _repeated(operations: Operations, copies: int) -> Operations:
    flops = tuple(replace(each, count=each.count * copies) for each in operations.flops)
    return replace(operations, flops=flops, updates=operations.updates and operations.updates * copies)
