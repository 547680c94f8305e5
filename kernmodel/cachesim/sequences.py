"""The access sequences of cases files, each by its formula (docs/cache-simulation.md).

Where the addresses are affine a sequence is a `Program`, whose addresses the compiled engine generates; the
pseudo-random one is a trace in blocks.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from kernmodel.cachesim.model import Form, Program, ProgramBound, ProgramLoop, ProgramReference
from kernmodel.cachesim.trace_file import LARGEST_ACCESS, Trace
from kernmodel.limits import SIMULATED_ACCESSES
from kernmodel.schema.entry import Entry
from kernmodel.schema.fields import suggest
from kernmodel.value_types import dataclass

_MOST = 2**61
_BLOCK = 1 << 16
_END_OF_MEMORY = 2**62


@dataclass(frozen=True, slots=True)
class AccessSequence:
    """Accesses by a formula.

    Attributes:
        kind: a key of `KINDS`.
        parameters: value of each parameter of the kind.
    """

    kind: str
    parameters: Mapping[str, int]

    @property
    def accesses(self) -> int:
        """Number of accesses."""
        return KINDS[self.kind].accesses(self.parameters)

    def parts(self) -> Iterator[Program | Trace]:
        """The accesses in order, as programs and traces to run."""
        if self.accesses:
            yield from KINDS[self.kind].parts(self.parameters)


Numbers = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kind of sequence: its default (None: it must be given) and its range."""

    default: int | None = None
    least: int = 1
    most: int = _MOST


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of sequence.

    Attributes:
        parameters: by name.
        accesses: number of accesses.
        end: the first address above all that it touches.
        parts: the accesses.
    """

    parameters: Mapping[str, Parameter]
    accesses: Callable[[Numbers], int]
    end: Callable[[Numbers], int]
    parts: Callable[[Numbers], Iterator[Program | Trace]]


_ELEMENT = Parameter(8, most=LARGEST_ACCESS)
_OFFSET = Parameter(0, least=0)


def _nest(*ranges: range) -> tuple[ProgramLoop, ...]:
    """Loops with fixed bounds, outermost first."""

    def bound(value: int) -> ProgramBound:
        return ProgramBound("max", ((Form(value, (0,) * len(ranges)),),))

    return tuple(ProgramLoop(bound(values.start), bound(values.stop), values.step) for values in ranges)


def _stencil(numbers: Numbers) -> Iterator[Program]:
    """Loads of the four neighbours in `a`, store to `b`."""
    rows, columns, size = numbers["M"], numbers["N"], numbers["element"]

    def touch(*, row: int, column: int, store: bool = False) -> ProgramReference:
        first = (row * columns + column + (rows * columns if store else 0)) * size + numbers["offset"]
        return ProgramReference("store" if store else "load", size, Form(first, (columns * size, size)), 2)

    loads = (touch(row=row, column=column) for row, column in ((0, -1), (0, 1), (-1, 0), (1, 0)))
    loops = _nest(range(1, rows - 1), range(1, columns - 1))
    yield Program(loops, (*loads, touch(row=0, column=0, store=True)))


def _streams(numbers: Numbers) -> Iterator[Program]:
    """Loads of the first streams, store to the one after them."""
    size, loads = numbers["element"], numbers["loads"]
    apart = numbers["n"] * size + numbers["pad"]
    references = tuple(
        ProgramReference(
            "load" if stream < loads else "store", size, Form(numbers["offset"] + stream * apart, (size,)), 1
        )
        for stream in range(loads + 1)
    )
    yield Program(_nest(range(0, numbers["n"], numbers["step"])), references)


def _columns(numbers: Numbers) -> Iterator[Program]:
    """Loads of a matrix column by column."""
    size = numbers["element"]
    address = Form(numbers["offset"], (size, numbers["N"] * size))
    loops = _nest(range(numbers["N"]), range(numbers["M"]))
    yield Program(loops, (ProgramReference("load", size, address, 2),))


def _lcg(numbers: Numbers) -> Iterator[Trace]:
    """Pseudo-random accesses of a linear congruential generator."""
    addresses = _lcg_addresses(numbers)
    for first in range(0, numbers["count"], _BLOCK):
        block = array("Q", islice(addresses, min(_BLOCK, numbers["count"] - first)))
        kinds = array("B", bytes(len(block)))
        every = numbers["store_every"]
        if every:
            for place in range(-first % every, len(block), every):
                kinds[place] = 1
        yield Trace(kinds, block, array("Q", [numbers["size"]]) * len(block))


def _lcg_addresses(numbers: Numbers) -> Iterator[int]:
    state, extent, size, offset = (numbers[name] for name in ("seed", "range", "size", "offset"))
    while True:
        state = (1103515245 * state + 12345) % 2**31
        yield (state >> 3) % extent * size + offset


KINDS: Mapping[str, Kind] = {
    "stencil2d5": Kind(
        {"M": Parameter(), "N": Parameter(), "element": _ELEMENT, "offset": _OFFSET},
        lambda p: 5 * max(0, p["M"] - 2) * max(0, p["N"] - 2),
        lambda p: p["offset"] + 2 * p["M"] * p["N"] * p["element"],
        _stencil,
    ),
    "streams": Kind(
        {
            "n": Parameter(),
            "loads": Parameter(least=0, most=10_000),
            "element": _ELEMENT,
            "step": Parameter(1),
            "pad": Parameter(0, least=0),
            "offset": _OFFSET,
        },
        lambda p: (p["loads"] + 1) * len(range(0, p["n"], p["step"])),
        lambda p: p["offset"] + (p["loads"] + 1) * (p["n"] * p["element"] + p["pad"]),
        _streams,
    ),
    "columns": Kind(
        {"M": Parameter(), "N": Parameter(), "element": _ELEMENT, "offset": _OFFSET},
        lambda p: p["M"] * p["N"],
        lambda p: p["offset"] + p["M"] * p["N"] * p["element"],
        _columns,
    ),
    "lcg": Kind(
        {
            "count": Parameter(),
            "range": Parameter(),
            "seed": Parameter(least=0),
            "store_every": Parameter(0, least=0),
            "size": _ELEMENT,
            "offset": _OFFSET,
        },
        lambda p: p["count"],
        lambda p: p["offset"] + p["range"] * p["size"],
        _lcg,
    ),
}
"""The kinds of sequences by name."""


def read_sequence(entry: Entry) -> AccessSequence:
    """The sequence that a mapping with `kind` and parameters describes.

    Raises:
        InputError: an unknown kind or parameter, a parameter that is missing or out of range, more accesses than
            anybody waits for, or addresses that leave 62 bits.
    """
    entries = entry.mapping()
    if "kind" not in entries:
        raise entry.error("has no kind", f"use one of {', '.join(KINDS)}")
    name = entries.pop("kind").text()
    if name not in KINDS:
        raise entry.error(f"the sequence {name!r} is unknown", suggest(name, KINDS))
    kind = KINDS[name]
    for key, value in entries.items():
        if key not in kind.parameters:
            raise value.error(f"is no parameter of {name}", suggest(key, kind.parameters))
    numbers = {key: _number(entry, entries.get(key), key, value) for key, value in kind.parameters.items()}
    sequence = AccessSequence(name, numbers)
    if SIMULATED_ACCESSES.exceeded(sequence.accesses):
        todo = SIMULATED_ACCESSES.todo("take smaller parameters")
        raise entry.error(f"has {sequence.accesses:,} accesses", todo)
    if kind.end(numbers) > _END_OF_MEMORY:
        raise entry.error("has addresses that leave 62 bits", "take smaller parameters")
    return sequence


def _number(sequence: Entry, entry: Entry | None, name: str, parameter: Parameter) -> int:
    if entry is not None and not entry.is_null:
        return entry.integer(parameter.least, parameter.most)
    if parameter.default is None:
        raise sequence.error(f"has no {name}", f"give {name}")
    return parameter.default
