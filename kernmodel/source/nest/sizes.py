"""Numbers for the sizes of a nest, checked against its loops and arrays, and the iteration counts they give."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise
from math import prod

from kernmodel.errors import SourceError, UsageError
from kernmodel.formulas.formula import ZERO, total, variable
from kernmodel.patterns import pattern
from kernmodel.source.model import ALWAYS, ROW_LENGTH, Access, Array, IndirectIndex, Loop, LoopNest
from kernmodel.source.nest.affine import nonnegative
from kernmodel.source.nest.counting import (
    NumericLoop,
    TooManyValues,
    count_iterations,
    index_range,
    numeric_loops,
    put_in,
)
from kernmodel.source.text import without_comments
from kernmodel.value_types import dataclass

_LIMIT = 2**63


def sizes_of(nest: LoopNest, defines: Mapping[str, int]) -> dict[str, int]:
    """The value of every size symbol: `defines` first, else the default of the source; checked.

    An index that stands under no condition is checked against the extents over exactly the iterations that the loops
    execute, unless bounds depend on one another so deeply that this would enumerate more than 100,000 values; then it
    is not checked.

    Raises:
        SourceError: a size without value or below 1, an unknown name, sizes that overflow 63 bits, a loop that executes
            no iteration, an index outside of its array.
    """
    refuse_unknown(nest, defines)
    sizes = {}
    for name in nest.symbols:
        value = defines.get(name, nest.defaults.get(name))
        if value is None:
            raise SourceError(
                f"macro or parameter {name} has no value",
                where=nest.file,
                todo=f"give -D {name}=…, for example -D {name}=1000" if name != ROW_LENGTH else "give --row-length N",
            )
        if value < 1:
            raise SourceError(
                f"the size {name} is {value}", where=f"-D {name}={value}", todo="give a positive whole number"
            )
        sizes[name] = value
    loops = numeric_loops(nest.loops, sizes)
    _check_arrays(nest, sizes)
    _check_iterations(nest, loops, sizes)
    _check_indices(nest, loops, sizes)
    _check_computed(nest, loops, sizes)
    return sizes


def refuse_unknown(nest: LoopNest, defines: Mapping[str, int]) -> None:
    """Refuse names that the source does not have, and other steps of loops than the nest was read with.

    Raises:
        SourceError: there is one.
    """
    variables = {loop.variable for loop in nest.loops}
    for name, value in defines.items():
        if name in variables:
            what = f"{name} is the variable of a loop, which takes all its values"
            raise UsageError(what, where=f"-D {name}={value}", todo="give the sizes that bound the loop")
        fixed = nest.defaults.get(name) if name not in nest.symbols else None
        if fixed is not None and fixed != value:
            raise SourceError(
                f"{name} is the step of a loop, or an exponent, and was read as {fixed}, not {value}",
                where=f"-D {name}={value}",
                todo=f"read the kernel with {name}={value}",
            )
        if name not in nest.symbols and not re.search(rf"\b{re.escape(name)}\b", nest.text):
            known = sorted({*nest.symbols, *nest.defaults})
            near = get_close_matches(name, known, n=3) or known
            hint = f"its sizes are {', '.join(near)}" if near else "it has no sizes"
            raise SourceError(f"{nest.name} has no macro or parameter {name}", where=f"-D {name}={value}", todo=hint)


_CONDITION = pattern(r"^[ \t]*#[ \t]*(?:el)?if\b((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)


def deciding_names(nest: LoopNest, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names whose value decides what the source says: a loop steps by it, or an `#if` asks for it.

    Another value needs the kernel to be read anew (`load_kernel`); all other sizes are symbols of the nest.
    """
    asked = set(re.findall(r"[A-Za-z_]\w*", " ".join(_CONDITION.findall(without_comments(nest.text)))))
    return tuple(name for name in names if name not in nest.symbols or name in asked or name in nest.counted_at)


def _given(sizes: Mapping[str, int]) -> str:
    """The sizes for a message: " at N=4, M=4", nothing if there are none."""
    return f" at {', '.join(f'{name}={value}' for name, value in sizes.items())}" if sizes else ""


def _check_arrays(nest: LoopNest, sizes: Mapping[str, int]) -> None:
    for array in nest.arrays.values():
        extents = shape_of(array, sizes)
        if any(extent < 1 for extent in extents):
            listed = "".join(f"[{extent}]" for extent in extents)
            raise SourceError(
                f"{array.name}{listed} has no element{_given(sizes)}", where=array.location, todo="give larger sizes"
            )
        if prod(extents) * array.element.size_bytes >= _LIMIT:
            raise _overflow(f"the array {array.name}", sizes, nest)


def shape_of(array: Array, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The extents of an array in elements, outermost first; () where none is declared."""
    return tuple(int(extent.value(sizes)) for extent in array.shape)


def declared_bytes(nest: LoopNest, sizes: Mapping[str, int]) -> int | None:
    """Bytes of all arrays together; None where the extents of one are not declared."""
    arrays = nest.arrays.values()
    if not all(array.shape for array in arrays):
        return None
    return sum(array.element.size_bytes * prod(shape_of(array, sizes)) for array in arrays)


def _overflow(what: str, sizes: Mapping[str, int], nest: LoopNest) -> SourceError:
    return SourceError(
        f"sizes overflow: {what} is beyond 2^63{_given(sizes)}", where=nest.file, todo="give smaller sizes"
    )


def _check_iterations(nest: LoopNest, loops: tuple[NumericLoop, ...], sizes: Mapping[str, int]) -> None:
    total = _count(nest, loops)
    if total >= _LIMIT:
        raise _overflow("the number of iterations", sizes, nest)
    if total:
        return
    executed = [_count(nest, loops[: k + 1]) for k in range(len(loops))]
    idle = nest.loops[executed.index(0)]
    raise SourceError(
        f"the loop over {idle.variable} executes no iteration{_given(sizes)} (from {idle.start} to before {idle.stop})",
        where=idle.location,
        todo="give larger sizes",
    )


def _count(nest: LoopNest, loops: tuple[NumericLoop, ...]) -> int:
    try:
        return count_iterations(loops)
    except OverflowError as error:
        raise _overflow("a trip count", {}, nest) from error
    except TooManyValues as error:
        raise SourceError(
            "the loop bounds depend on one another so deeply that the iterations cannot be counted",
            where=nest.loops[0].location,
            todo="give smaller sizes",
        ) from error


@dataclass(frozen=True, slots=True)
class _Place:
    """A dimension of an access whose index is affine in the loop variables: Σ coefficient × variable + constant."""

    access: Access
    dimension: int
    coefficients: tuple[tuple[str, int], ...]
    constant: int
    extent: int


def _check_indices(nest: LoopNest, loops: tuple[NumericLoop, ...], sizes: Mapping[str, int]) -> None:
    places = list(_places(nest, sizes))
    if any(loop.uses for loop in loops):
        # a proof costs nothing beside the enumeration that the exact range of a dependent nest needs
        places = _unproven(places, _sized_loops(nest, sizes))
    ranges: dict[tuple[object, ...], tuple[int, int] | None] = {}
    for place in places:
        key = (place.coefficients, place.access.depth)
        if key not in ranges:
            ranges[key] = _moving_range(dict(place.coefficients), loops[: place.access.depth])
        moving = ranges[key]
        if moving is not None:
            _check_range(place, (moving[0] + place.constant, moving[1] + place.constant), sizes)


def _always_executed(access: Access) -> bool:
    """Whether no condition keeps an access from places outside of its array (`if (i > 0) a[i] = b[i - 1];`)."""
    return access.share >= 1 and access.guard == ALWAYS


def _computed_range(
    entry: IndirectIndex, access: Access, nest: LoopNest, loops: tuple[NumericLoop, ...], sizes: Mapping[str, int]
) -> tuple[int, int] | None:
    """Smallest and largest value of a quotient or remainder; None where it is not known.

    Raises:
        SourceError: what is divided is negative somewhere, where C rounds the other way.
    """
    variables = [loop.variable for loop in nest.loops[: access.depth]]
    parts = put_in(entry.position, sizes, variables).linear(variables)
    named = {symbol: int(factor) for symbol, factor in parts[0].items()} if parts is not None else {}
    found = None if parts is None else _moving_range(named, loops[: access.depth])
    if parts is None or found is None:
        return None
    low, high = (end + int(parts[1]) for end in found)
    if low < 0:
        what = f"what {entry.text} divides runs from {low} to {high}{_given(sizes)}: C rounds negative quotients up"
        todo = "add a multiple of the divisor, as in (i - 1 + n) % n"
        raise SourceError(what, where=access.location, todo=todo)
    divisor = int(put_in(entry.divisor, sizes, ()))
    low, high = low // divisor, high // divisor
    modulus = high + 1 if entry.modulus is None else int(put_in(entry.modulus, sizes, ()))
    return (low, high) if high < modulus else (0, modulus - 1)


def _check_computed(nest: LoopNest, loops: tuple[NumericLoop, ...], sizes: Mapping[str, int]) -> None:
    """The indices that are a quotient or a remainder and a constant."""
    for access in filter(_always_executed, nest.accesses):
        extents = shape_of(nest.arrays[access.array], sizes) if access.indirect else ()
        for entry in access.indirect:
            found = None if entry.array else _computed_range(entry, access, nest, loops, sizes)
            for k, (index, extent) in enumerate(zip(access.index, extents, strict=False)):
                parts = None if found is None else index.linear([entry.name])
                if found is None or parts is None or not parts[1].of_sizes:
                    continue
                factor, constant = (int(put_in(part, sizes, ())) for part in (parts[0].get(entry.name, ZERO), parts[1]))
                ends = [factor * end + constant for end in found]
                _check_range(_Place(access, k, (), constant, extent), (min(ends), max(ends)), sizes)


def _places(nest: LoopNest, sizes: Mapping[str, int]) -> Iterator[_Place]:
    shapes = {name: shape_of(array, sizes) for name, array in nest.arrays.items()}
    for access in filter(_always_executed, nest.accesses):
        extents = shapes[access.array]
        unknown = {entry.name for entry in access.indirect}
        variables = [loop.variable for loop in nest.loops[: access.depth]]
        for k, (index, extent) in enumerate(zip(access.index, extents, strict=False)):
            if index.free_symbols & unknown:
                continue
            parts = put_in(index, sizes, variables).linear(variables)
            if parts is not None:
                factors = sorted(((symbol, int(factor)) for symbol, factor in parts[0].items()), key=str)
                yield _Place(access, k, tuple(factors), int(parts[1]), extent)


def _unproven(places: Sequence[_Place], loops: tuple[Loop, ...]) -> list[_Place]:
    """The indices not proven to stay inside; of those that differ in the constant alone the extremes decide."""
    alike: dict[tuple[object, ...], list[_Place]] = {}
    for place in places:
        alike.setdefault((place.coefficients, place.extent, place.access.depth), []).append(place)
    proven: set[int] = set()
    for group in alike.values():
        one, around = group[0], loops[: group[0].access.depth]
        moving = total(variable(name).scaled(factor) for name, factor in one.coefficients)
        low, high = min(place.constant for place in group), max(place.constant for place in group)
        if nonnegative(moving + low, around) and nonnegative(one.extent - 1 - high - moving, around):
            proven.update(map(id, group))
    return [place for place in places if id(place) not in proven]


def _sized_loops(nest: LoopNest, sizes: Mapping[str, int]) -> tuple[Loop, ...]:
    """The loops with numbers for the sizes."""
    outer = [loop.variable for loop in nest.loops]
    return tuple(
        replace(loop, start=put_in(loop.start, sizes, outer), stop=put_in(loop.stop, sizes, outer))
        for loop in nest.loops
    )


def _moving_range(coefficients: Mapping[str, int], loops: tuple[NumericLoop, ...]) -> tuple[int, int] | None:
    try:
        return index_range(coefficients, 0, loops)
    except TooManyValues:
        return None


def _check_range(place: _Place, found: tuple[int, int], sizes: Mapping[str, int]) -> None:
    access, dimension, (low, high) = place.access, place.dimension, found
    if low >= 0 and high < place.extent:
        return
    which = (
        f"index {dimension + 1} ({access.index[dimension]})"
        if len(access.index) > 1
        else f"the index {access.index[0]}"
    )
    raise SourceError(
        f"{access.text} is out of bounds: {which} runs from {low} to {high}, but {access.array} has 0 to "
        f"{place.extent - 1} there{_given(sizes)}",
        where=access.location,
        todo="mend the loop bounds or the shape of the array",
    )


def iterations_per_sweep(nest: LoopNest, sizes: Mapping[str, int]) -> int:
    """Inner iterations of one execution of the whole nest: exact also for triangular and tiled nests and any step.

    Raises:
        SourceError: bounds that depend on one another too deeply to be counted.
    """
    return _count(nest, numeric_loops(nest.loops, sizes))


def trip_counts(nest: LoopNest, sizes: Mapping[str, int]) -> tuple[float, ...]:
    """Per loop, outermost first, its iterations averaged over its executions (0 where it is never reached)."""
    loops = numeric_loops(nest.loops, sizes)
    bodies = [1, *(_count(nest, loops[: k + 1]) for k in range(len(loops)))]
    return tuple(inner / outer if outer else 0.0 for outer, inner in pairwise(bodies))
