"""How the accesses advance with the inner loop: the evidence by which the compiled loop is recognised."""

from __future__ import annotations

from collections.abc import Mapping

from kernmodel.source.model import Access, LoopNest
from kernmodel.source.nest.counting import put_in


def access_strides(nest: LoopNest, sizes: Mapping[str, int], loop: int = -1) -> tuple[tuple[Access, int], ...]:
    """The accesses inside a loop of the nest, each with the bytes by which it advances per step of that loop.

    The stride is coefficient × step × element size: negative for downward loops, 0 for an element that stays. Accesses
    that jump with that loop, because their index is read anew from an index array, have no stride and are left out:
    `jumping_accesses`. `loop` is an index into `nest.loops`; by default it is the innermost loop.
    """
    variable = nest.loops[loop].variable
    return tuple(
        (
            access,
            int(put_in(access.coefficients[loop], sizes, ()))
            * nest.loops[loop].step
            * nest.arrays[access.array].element.size_bytes,
        )
        for access in _inside(nest, loop)
        if not access.jumps(variable)
    )


def first_offset(nest: LoopNest, sizes: Mapping[str, int], access: Access, values: Mapping[str, int]) -> int:
    """Bytes from the start of its array to the element that an access touches where loop variables have these values,
    the others 0."""
    variables = (*(loop.variable for loop in nest.loops), *(entry.name for entry in access.indirect))
    offset = put_in(access.offset.substitute({**dict.fromkeys(variables, 0), **values}), sizes, ())
    return int(offset) * nest.arrays[access.array].element.size_bytes


def jumping_accesses(nest: LoopNest, loop: int = -1) -> tuple[Access, ...]:
    """The accesses inside a loop of the nest whose index is read from an index array anew at each step of that loop."""
    return tuple(access for access in _inside(nest, loop) if access.jumps(nest.loops[loop].variable))


def _inside(nest: LoopNest, loop: int) -> tuple[Access, ...]:
    enclosing = loop % len(nest.loops)
    return tuple(access for access in nest.accesses if access.depth > enclosing)


def updates_per_iteration(nest: LoopNest) -> float | None:
    """Lattice updates per inner iteration: as many as the kernel says, else one where an iteration writes to an element
    of its own, however many arrays it writes.

    None for kernels that update no lattice, such as reductions.
    """
    if nest.operations.updates is not None:
        return nest.operations.updates or None
    writes = (access for access in nest.writes() if access.depth == len(nest.loops))
    return 1.0 if any(access.moves(nest.loops) for access in writes) else None
