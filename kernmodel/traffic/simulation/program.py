"""A loop nest with numbers for its sizes, as a program that the cache simulator executes.

References that the innermost loops do not move are held in a register while these run: read before them, written after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from kernmodel.cachesim.model import Form, Program, ProgramLoop, ProgramReference
from kernmodel.errors import InputError, Location, UnsupportedKernelError
from kernmodel.source.model import Access, Loop, LoopNest
from kernmodel.source.nest.counting import NumericLoop, numeric_loops
from kernmodel.source.nest.sizes import shape_of
from kernmodel.traffic.options import StoreMode
from kernmodel.traffic.simulation.bounds import Interval, bound_of, bound_range, form_of, form_range, shifted
from kernmodel.traffic.simulation.index_arrays import IndirectValues
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class NumericReference:
    """An array reference in numbers.

    Attributes:
        access: the reference of the source.
        reference: the same for the simulator, its address in bytes from the start of the array.
        span: least and greatest byte from the start of the array that it may touch.
        held_from: the outermost of the innermost loops that do not move it (its depth if there is none).
    """

    access: Access
    reference: ProgramReference
    span: Interval
    held_from: int


@dataclass(frozen=True, slots=True)
class NumericNest:
    """A nest with numbers for its sizes.

    Attributes:
        nest: where it comes from.
        sizes: the value of every size symbol.
        loops: for the simulator, outermost first.
        counted: the same loops for counting iterations.
        references: in the order of execution.
        extents: bytes of each array as declared, 0 where no extent is.
        line_bytes: length of a cache line.
    """

    nest: LoopNest
    sizes: Mapping[str, int]
    loops: tuple[ProgramLoop, ...]
    counted: tuple[NumericLoop, ...]
    references: tuple[NumericReference, ...]
    extents: Mapping[str, int]
    line_bytes: int

    @property
    def touched_bytes(self) -> int:
        """Bytes of memory between the first and the last touched of each array, added up."""
        spans: dict[str, list[Interval]] = {}
        for each in self.references:
            spans.setdefault(each.access.array, []).append(each.span)
        return sum(max(high for _, high in found) - min(low for low, _ in found) + 1 for found in spans.values())


def numeric_nest(
    nest: LoopNest, sizes: Mapping[str, int], line_bytes: int, stores: StoreMode, values: IndirectValues
) -> NumericNest:
    """Put numbers in.

    Args:
        nest: the loop nest.
        sizes: a value for every size symbol of the nest.
        line_bytes: length of a cache line.
        stores: "nt" makes stores streaming stores.
        values: where index arrays point.

    Raises:
        InputError: a size is missing.
        UnsupportedKernelError: an index or a bound that is not affine in the loop variables.
    """
    missing = sorted(set(nest.symbols) - set(sizes))
    if missing:
        raise InputError(f"no value for {missing[0]}", where=nest.file, todo=f"give one with -D {missing[0]}=…")
    symbols = tuple(loop.variable for loop in nest.loops)
    loops = tuple(_loop(loop, symbols, sizes) for loop in nest.loops)
    ranges = variable_ranges(loops)
    extents = {name: declared_bytes(nest, name, sizes) for name in nest.arrays}
    references = tuple(_reference(nest, access, sizes, ranges, stores, values) for access in nest.accesses)
    return NumericNest(nest, dict(sizes), loops, numeric_loops(nest.loops, sizes), references, extents, line_bytes)


def program_of(nest: NumericNest, bases: Mapping[str, int]) -> Program:
    """The program of a nest whose arrays start at these addresses."""
    pairs = ((item.reference, bases[item.access.array]) for item in nest.references)
    return Program(nest.loops, tuple(replace(one, address=shifted(one.address, base)) for one, base in pairs))


def _loop(loop: Loop, variables: Sequence[str], sizes: Mapping[str, int]) -> ProgramLoop:
    start, stop = (bound_of(bound, variables, sizes) for bound in (loop.start, loop.stop))
    if start is None or stop is None:
        raise _not_affine(f"the bounds of loop {loop.variable} are", loop.location)
    return ProgramLoop(start, stop, loop.step)


def _not_affine(what: str, where: Location) -> UnsupportedKernelError:
    todo = "write it as a sum of constants times loop variables"
    return UnsupportedKernelError(f"{what} not affine in the loop variables", where=where, todo=todo)


def variable_ranges(loops: Sequence[ProgramLoop]) -> tuple[Interval, ...]:
    """Least and greatest value of each loop variable (bounds of them, where loops depend on one another)."""
    ranges: list[Interval] = []
    for loop in loops:
        start, stop = bound_range(loop.start, ranges), bound_range(loop.stop, ranges)
        ends = (start[0], stop[1] - 1) if loop.step > 0 else (stop[0] + 1, start[1])
        ranges.append((ends[0], max(ends)))
    return tuple(ranges)


def declared_bytes(nest: LoopNest, name: str, sizes: Mapping[str, int]) -> int:
    """Bytes of an array as declared, 0 where no extent is."""
    array = nest.arrays[name]
    return prod(shape_of(array, sizes)) * array.element.size_bytes if array.shape else 0


def _reference(
    nest: LoopNest,
    access: Access,
    sizes: Mapping[str, int],
    ranges: Sequence[Interval],
    stores: StoreMode,
    values: IndirectValues,
) -> NumericReference:
    element = nest.arrays[access.array].element.size_bytes
    symbols = [loop.variable for loop in nest.loops]
    picked = [index.name for index in access.indirect]
    form = form_of(access.offset, [*symbols, *picked], sizes)
    if form is None:
        raise _not_affine(f"index {access.text} is", access.location)
    depth = len(symbols)
    pitches = [coefficient * element for coefficient in form.coefficients[depth:]]
    indirections = values.of(nest, access, pitches, sizes, ranges)
    held = held_from(access, nest.loops)
    address = Form(form.constant * element, tuple(c * element for c in form.coefficients[:depth]))
    low, high = form_range(address, ranges)
    for indirection in indirections:
        ends = (0, indirection.scale * (indirection.extent - 1))
        low, high = low + min(ends), high + max(ends)
    after = access.kind == "write" if held < access.depth else access.after_inner
    reference = ProgramReference(
        kind="load" if access.kind == "read" else "stream" if stores == "nt" else "store",
        size_bytes=element,
        address=address,
        depth=held,
        place="after" if after and held < depth else "before",
        indirections=indirections,
    )
    return NumericReference(access, reference, (low, high + element - 1), held)


def held_from(access: Access, loops: Sequence[Loop]) -> int:
    """The outermost of the innermost loops that do not move an access: it stays in a register while they run."""
    depth = access.depth
    while depth and not access.moves(loops, depth - 1):
        depth -= 1
    return depth
