"""Where the arrays of a kernel lie, and what that is worth: vector accesses that cross cache lines take longer.

The compiled code says where each access begins: so many bytes from an argument of the function or from a static array,
and so many further with each pass of the loops around. What it does not say is where the arrays begin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import gcd, prod

from kernmodel.code.model import AddressStream, AssemblyLoop, StreamStart, Way
from kernmodel.errors import Location, Note, UsageError
from kernmodel.incore.dependences.line_splits import NO_PAGES, Places, crossing_passes
from kernmodel.incore.engine.layout import PHASES
from kernmodel.incore.model import InCore
from kernmodel.isa import isa_of
from kernmodel.source.model import LoopNest
from kernmodel.studies.predict.row_starts import POINTED, STATIC
from kernmodel.uncertainty import MATTERS
from kernmodel.value_types import dataclass

_STATIC_ALIGNMENT = 16
"""Of static arrays of 16 bytes and more (System V ABI of x86-64, section 3.1.2)."""
_MOST = 64
"""Layouts up to which all are tried."""

Bases = Mapping[str, int]
"""Where each array begins, modulo a cache line, by the base that the code addresses it from."""


@dataclass(frozen=True, slots=True)
class ArrayPlaces:
    """Where the arrays of a loop may lie.

    Attributes:
        taken: what the prediction takes; assumed: the same in words.
        others: what else may be, as far as it matters: all, or those with the fewest and with the most crossings.
    """

    taken: Places
    assumed: str
    others: tuple[Places, ...]


def array_places(
    loop: AssemblyLoop,
    nest: LoopNest,
    line: int,
    align: int | None,
    offsets: Mapping[str, int],
    *,
    in_page: Mapping[int, int] | None = None,
) -> ArrayPlaces:
    """Where the arrays of a loop may lie.

    Args:
        line: bytes of a cache line.
        align: bytes at multiples of which all arrays begin, None: as the code says.
        offsets: of arrays by name, where they begin modulo a line (as `refuse_misplaced` lets them).
        in_page: by instruction, where its access begins in a page, where that may matter and arrays probably lie so.

    Raises:
        UsageError: `offsets` names an array that the code does not show.
    """
    owners = _owners(loop, nest)
    _refuse_unknown(offsets, owners)
    base = (align or 0) % line
    element = min((array.element.size_bytes for array in nest.arrays.values()), default=line) or line
    taken = {name: offsets.get(array, base) % line for name, array in owners.items()}
    free = {name: _alignment(nest, name, array, align) for name, array in owners.items() if array not in offsets}
    for name in _nameless(loop, owners):  # which array it is matters little: its accesses lie as they do to one another
        taken[name], free[name] = base, max(align or element, 1)
    may = {name: range(taken[name] % min(known, line), line, min(known, line)) for name, known in free.items()}

    strides = {s.instruction: s.stride_bytes for s in loop.streams if s.stride_bytes and s.reference.size_bytes}

    def at(bases: Bases, rest: int, page: Mapping[int, int] = NO_PAGES) -> Places:
        return Places(rest, _starts(loop.streams, bases, line), strides, page)

    rest = range(base % min(align or element, line), line, min(align or element, line))
    layouts = dict.fromkeys((tuple(bases.items()), base) for bases in _layouts(loop, taken, may, line))
    if any(s.stride_bytes and s.reference.size_bytes and not _placed(s.start, taken) for s in loop.streams):
        layouts |= dict.fromkeys((bases, shift) for bases, _ in tuple(layouts)[:_MOST] for shift in rest)
    chosen = tuple(layouts)[: 2 * _MOST]
    pages = (NO_PAGES, in_page) if in_page else (NO_PAGES,)
    others = tuple(at(dict(bases), shift, page) for page in pages for bases, shift in chosen)
    return ArrayPlaces(at(taken, base, in_page or NO_PAGES), _words(offsets, base, line, bool(in_page)), others)


def places_around(
    loop: AssemblyLoop, nest: LoopNest, line: int, align: int | None, offsets: Mapping[str, int]
) -> dict[Way, Places]:
    """Where the accesses of the straight-line code around a loop lie, with the arrays where `array_places` takes them;
    ways of which nothing is known are missing. A pass is one of the loop around.

    Args: as of `array_places`.
    """
    ways, found = loop.around.ways if loop.around else (), {}
    seen = replace(loop, streams=(*loop.streams, *(stream for way in ways for stream in way.streams)))
    base, owners = (align or 0) % line, _owners(seen, nest)
    taken = {name: offsets.get(array, base) % line for name, array in owners.items()}
    taken |= dict.fromkeys(_nameless(seen, owners), base)
    for way in ways:
        moving = [stream for stream in way.streams if stream.stride_bytes and stream.reference.size_bytes]
        if starts := _starts(moving, taken, line):
            found[way] = Places(base, starts, {stream.instruction: stream.stride_bytes or 0 for stream in moving})
    return found


def aliasing_notes(
    places: ArrayPlaces | None, taken: InCore, elsewhere: Sequence[InCore], file: str
) -> tuple[Note, ...]:
    """That loads wait for stores to other addresses, where the arrays are taken to lie so, and what that costs.

    Args:
        taken: the analysis with the arrays there; elsewhere: where they are the least and the most in the way.
    """
    least = min((one.prediction for one in elsewhere), default=taken.prediction)
    if not (places and places.taken.in_page) or taken.prediction - least < MATTERS * taken.prediction:
        return ()
    text = (
        "large arrays are taken to begin at the same place of a page, where loads wait for stores whose addresses have "
        f"the same last 12 bits: {taken.prediction:.2f} cycles per pass in the core, {least:.2f} where arrays begin "
        "some lines apart"
    )
    return (Note("store-aliasing", text, "assumption", Location(file)),)


def _words(offsets: Mapping[str, int], base: int, line: int, mapped: bool) -> str:
    rest = f"arrays at {base} modulo {line}" if base else "arrays at cache lines"
    rest += ", all at the same place of a page" if mapped else ""
    return ", ".join([*(f"{name} at {offset % line} modulo {line}" for name, offset in offsets.items()), rest])


def _refuse_unknown(offsets: Mapping[str, int], owners: Mapping[str, str]) -> None:
    for name in offsets:
        if name not in owners.values():
            what = f"the assembly does not show which of its accesses are those of {name}"
            raise UsageError(what, where="--array-offset", todo="give one alignment for all arrays with --data-align")


def _owners(loop: AssemblyLoop, nest: LoopNest) -> dict[str, str]:
    """The array that lies at each base of the code: a name of the listing, or an argument, in the order of parameters;
    empty where that is not clear."""
    starts = [(stream.start.base, stream.reference.written) for stream in loop.streams if stream.start is not None]
    found = {base: base[1:] for base, _ in starts if base[:1] in (STATIC, POINTED) and base[1:] in nest.arrays}
    arguments = isa_of(loop.isa).registers.arguments
    bases = sorted({base for base, _ in starts if base in arguments}, key=arguments.index)
    names = sorted((n for n in nest.arrays if n not in found.values()), key=lambda name: _declared(nest, name))
    if len(bases) != len(names):
        return found
    stored = {base for base, written in starts if written}
    given = {access.array for access in nest.writes()}
    if any(base in stored and name not in given for base, name in zip(bases, names, strict=True)):
        return found
    return found | dict(zip(bases, names, strict=True))


def _nameless(loop: AssemblyLoop, owners: Mapping[str, str]) -> list[str]:
    """Arguments from which accesses go on and of which it is not clear whose array they are."""
    arguments = isa_of(loop.isa).registers.arguments
    bases = {stream.start.base for stream in loop.streams if stream.start is not None}
    return [name for name in arguments if name in bases and name not in owners]


def _declared(nest: LoopNest, name: str) -> tuple[int, int]:
    place = nest.arrays[name].location
    return place.line or 0, place.column or 0


def _alignment(nest: LoopNest, base: str, array: str, align: int | None) -> int:
    """Bytes at multiples of which an array begins for certain; of what a function is given, the size of an element."""
    element = nest.arrays[array].element.size_bytes
    if align is not None:
        return max(align, 1)
    return max(element, _STATIC_ALIGNMENT) if base[:1] == STATIC else element


def _placed(start: StreamStart | None, bases: Bases) -> bool:
    return start is not None and start.base in bases


def _starts(moving: Iterable[AddressStream], bases: Bases, line: int) -> dict[int, tuple[int, ...]]:
    """By instruction, where its access begins modulo a line, each time that the loop is entered."""
    streams = [(s.instruction, s.start) for s in moving if s.start is not None and s.start.base in bases]
    if not streams:
        return {}
    rows = _rows([start for _, start in streams], line)
    return {
        number: tuple([_address(start, bases[start.base], row) % line for row in rows]) for number, start in streams
    }


def _address(start: StreamStart, base: int, row: Sequence[int]) -> int:
    return base + start.offset + sum(step * done for (step, _), done in zip(start.rows, row, strict=True))


def _rows(starts: Sequence[StreamStart], line: int) -> list[tuple[int, ...]]:
    """Passes done of the loops around, from within, for as many entries as it takes until all places come again."""
    counts: list[int] = []
    for level, (_, passes) in enumerate(starts[0].rows):
        period = max(line // gcd(start.rows[level][0], line) for start in starts)
        room = PHASES // prod(counts)
        counts.append(max(1, min(period, period if passes is None else passes, room)))
    return list(product(*map(range, counts)))


def _layouts(loop: AssemblyLoop, taken: Bases, may: Mapping[str, Sequence[int]], line: int) -> Iterator[Bases]:
    """What is to be tried: all layouts, or where those are many, each array with the fewest and the most crossings."""
    if prod(len(places) for places in may.values()) <= _MOST:
        for places in product(*may.values()):
            yield {**taken, **dict(zip(may, places, strict=True))}
        return

    def crossings(name: str) -> Callable[[int], int]:
        return lambda place: _crossings(loop, {name: place}, line)

    yield {**taken, **{name: min(places, key=crossings(name)) for name, places in may.items()}}
    yield {**taken, **{name: max(places, key=crossings(name)) for name, places in may.items()}}
    for shift in range(line):
        if all(shift in places for places in may.values()):
            yield {**taken, **dict.fromkeys(may, shift)}


def _crossings(loop: AssemblyLoop, bases: Bases, line: int) -> int:
    """Crossings of lines and of their halves by the accesses of these bases, in 64 passes."""
    starts = _starts(loop.streams, bases, line)
    return sum(
        crossing_passes(
            starts[stream.instruction], stream.stride_bytes or 0, stream.reference.size_bytes, block
        ).bit_count()
        for stream in loop.streams
        if stream.instruction in starts
        for block in (line, line // 2)
    )
