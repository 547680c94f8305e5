"""Where the accesses of a compiled loop begin at the sizes of a point, by what the source says of them.

The code says where its accesses begin for the sizes that it was compiled with. Points that share code have other sizes:
their rows begin elsewhere in cache lines. And where a compiler counts addresses by what a loop inside left in a
register, the code does not say how the loop further out moves them. So each access of the code is matched once with a
reference of the source, at the sizes that it was compiled with; what the source says of that reference then holds at
all sizes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise, product

from kernmodel.code.model import AddressStream, AssemblyLoop, StreamStart
from kernmodel.isa import isa_of
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.counting import numeric_loops, put_in
from kernmodel.value_types import NamedTuple

STATIC = "&"
"""Before the name of a static array, as the address analysis writes it."""
POINTED = "*"
"""Before the name of an array that is reached by a pointer, where it is known which one it is."""
_MOST = 256
"""Ways of giving arrays to pointers that are tried."""


class Reference(NamedTuple):
    """A reference of the innermost body of the source, with bytes counted from the start of its array.

    Attributes:
        first: where it points when the nest begins.
        stride: bytes that it moves per step of the innermost loop.
        rows: of each loop around, from within, the bytes that it moves per step, and the steps where they are always
            as many.
    """

    array: str
    written: bool
    first: int
    stride: int
    rows: tuple[tuple[int, int | None], ...]


class Origin(NamedTuple):
    """Which reference of the source an access of the code is.

    Attributes:
        stream: its number among the streams of the loop.
        reference: number in `references`; behind: bytes from there (later iterations of the same pass).
        base: what its address is counted from.
    """

    stream: int
    reference: int
    behind: int
    base: str


def references(nest: LoopNest, sizes: Mapping[str, int]) -> tuple[Reference, ...]:
    """The references of the innermost body whose addresses are affine."""
    first: dict[str, int] = {}
    steps: list[int | None] = []
    for loop in numeric_loops(nest.loops, sizes):
        values = loop.values(first)
        first[loop.variable] = values.start
        steps.append(None if loop.uses else len(values))
    found = []
    for access in nest.accesses:
        if access.depth < len(nest.loops) or access.indirect:
            continue
        size = nest.arrays[access.array].element.size_bytes
        moved = [
            int(put_in(factor, sizes, ())) * loop.step * size
            for factor, loop in zip(access.coefficients, nest.loops, strict=True)
        ]
        start = int(access.offset.value({**sizes, **first})) * size
        rows = tuple(zip(moved[-2::-1], steps[-2::-1], strict=True))
        found.append(Reference(access.array, access.kind == "write", start, moved[-1], rows))
    return tuple(found)


def origins(loop: AssemblyLoop, nest: LoopNest, sizes: Mapping[str, int]) -> tuple[Origin, ...]:
    """Which reference of the source each moving access of the code is; empty where that is not clear for all of them.

    Args:
        sizes: that the code was compiled with.
    """
    if loop.variable is not None or loop.steps is None:
        return ()
    known, steps = references(nest, sizes), loop.steps
    arguments = isa_of(loop.isa).registers.arguments
    groups: dict[str, list[int]] = defaultdict(list)
    for number, stream in enumerate(loop.streams):
        if stream.stride_bytes != 0 and stream.reference.size_bytes:  # prefetches have no size
            if stream.start is None or stream.stride_bytes is None:
                return ()
            groups[stream.start.base].append(number)
    fits: dict[str, dict[str, tuple[Origin, ...]]] = {}
    for base, group in groups.items():
        streams = [(number, loop.streams[number]) for number in group]
        begins = base.startswith(STATIC) or base in arguments
        arrays = [base[1:]] if base.startswith(STATIC) else nest.arrays
        found = ((array, _fit(streams, begins, [*_of(known, array)], steps)) for array in arrays)
        fits[base] = {array: fit for array, fit in found if fit}
    owners = _owners(fits, arguments, nest, {one.array for one in known})
    if len(owners) < len(groups):
        return ()
    return tuple(origin for base, array in owners.items() for origin in fits[base][array])


def at_sizes(
    loop: AssemblyLoop, matched: Iterable[Origin], nest: LoopNest, sizes: Mapping[str, int]
) -> tuple[AddressStream, ...]:
    """The streams of the loop, beginning where the source says at these sizes."""
    known, streams = references(nest, sizes), list(loop.streams)
    for one in matched:
        found = known[one.reference]
        start = StreamStart(one.base, found.first + one.behind, found.rows)
        streams[one.stream] = replace(streams[one.stream], start=start)
    return tuple(streams)


def _of(known: Sequence[Reference], array: str) -> Iterator[tuple[int, Reference]]:
    """The references of an array, with their numbers."""
    return ((number, one) for number, one in enumerate(known) if one.array == array)


def _fit(
    streams: Sequence[tuple[int, AddressStream]], begins: bool, own: Sequence[tuple[int, Reference]], steps: int
) -> tuple[Origin, ...]:
    """Which of the references of an array accesses by one base are; empty where they are not, or it may be several.

    Args:
        begins: whether the array begins where the base points.
    """
    lead = min(stream.start.offset for _, stream in streams if stream.start)
    found: dict[int, list[tuple[Origin, ...]]] = defaultdict(list)
    for shift in {0} if begins else {one.first - lead for _, one in own}:
        matched = tuple(_matched(streams, shift, own, steps))
        if len(matched) == len(streams):
            found[len({one.reference for one in matched if not one.behind})].append(matched)
    best = found[max(found)] if found else []
    return best[0] if len(best) == 1 else ()


def _matched(
    streams: Sequence[tuple[int, AddressStream]], shift: int, own: Sequence[tuple[int, Reference]], steps: int
) -> Iterator[Origin]:
    """Of each access that is one of these references, which; `shift` bytes lie between the base and the array."""
    for number, stream in streams:
        start, size = stream.start, stream.reference.size_bytes
        if start is None:
            continue
        behind = {
            start.offset + shift - one.first: place
            for place, one in own
            if one.written == stream.reference.written
            and one.stride * steps == stream.stride_bytes
            and _same_rows(start, one.rows)
        }
        least = min((by for by in behind if 0 <= by < (stream.stride_bytes or 0) and by % size == 0), default=None)
        if least is not None:
            base = start.base if start.base.startswith(STATIC) else POINTED + own[0][1].array
            yield Origin(number, behind[least], least, base)


def _same_rows(start: StreamStart, rows: Sequence[tuple[int, int | None]]) -> bool:
    """Whether the code moves an address from row to row as the source does; it may not say so of loops further out.

    What a loop before left in a register is no place in the array: it may have executed the first iterations, up to
    where the array is aligned.
    """
    if len(start.rows) != len(rows) or ("#" in start.base and not rows):
        return False
    for level, ((code, _), (source, _)) in enumerate(zip(start.rows, rows, strict=True)):
        if code != source and (code or not level or "#" not in start.base):
            return False
    return True


def _owners(
    fits: Mapping[str, Mapping[str, tuple[Origin, ...]]],
    arguments: Sequence[str],
    nest: LoopNest,
    referenced: Set[str],
) -> dict[str, str]:
    """The array at each base, where there is one way only: pointers that are handed over come in the order of the
    parameters, every array that is referenced has a base, and other values point into arrays that have no other
    base."""
    handed = sorted((base for base in fits if base in arguments), key=arguments.index)
    order = {name: (array.location.line or 0, array.location.column or 0) for name, array in nest.arrays.items()}
    found = {base: base[1:] for base in fits if base.startswith(STATIC) and base[1:] in fits[base]}
    elsewhere = {array for base in fits if base not in handed for array in fits[base]}
    ways = []
    for number, arrays in enumerate(product(*(fits[base] for base in handed))):
        if number >= _MOST:
            return {}
        if all(order[one] < order[other] for one, other in pairwise(arrays)) and elsewhere.union(arrays) >= referenced:
            ways.append(arrays)
    if len(ways) != 1:
        return {}
    found |= dict(zip(handed, ways[0], strict=True))
    taken = set(found.values())
    for base in fits:
        if base not in found:
            own = [array for array in fits[base] if array not in taken] or list(fits[base])
            if len(own) == 1:
                found[base] = own[0]
    return found
