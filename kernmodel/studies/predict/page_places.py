"""Where the accesses of a compiled loop begin within a page, if all arrays begin at the same place of one.

The GNU C library maps a block from 128 KiB on by itself (mallopt(3), M_MMAP_THRESHOLD), 16 bytes behind the start of a
page: so large arrays all begin alike. Which access of the code is which of the source follows from where the code says
that it begins; of code that does not say it, from the rows: accesses by one base register span as many bytes as a row
of references in the source does. Rows that span as much are taken in the order of the source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod

from kernmodel.code.model import AddressStream, AssemblyLoop, ExpectedAccess
from kernmodel.incore.dependences.false_stores import ALIASED_BYTES
from kernmodel.isa import isa_of
from kernmodel.source.model import LoopNest
from kernmodel.studies.predict.expectation import expectation
from kernmodel.studies.predict.row_starts import POINTED
from kernmodel.traffic.simulation.array_layout import MAPPED_BYTES
from kernmodel.value_types import NamedTuple

_GAP = 64
"""Bytes between references of one array beyond which they are of different rows."""


class _Row(NamedTuple):
    """Accesses side by side: whether they are stores, and the bytes from where they begin that a pass touches."""

    written: bool
    span: int


def page_starts(loop: AssemblyLoop, nest: LoopNest, sizes: Mapping[str, int]) -> dict[int, int]:
    """By instruction, where its access begins in the first pass, modulo 4096 and counted from where all arrays begin.

    Accesses of which that is not known are missing, and all where an array is no mapping of its own.
    """
    moving = [s for s in loop.streams if (s.stride_bytes or 0) > 0 and not s.reference.symbol]
    if loop.iterations_per_pass is None or not _mapped(nest, sizes):
        return {}
    begins = [stream.start for stream in moving]
    arguments = isa_of(loop.isa).registers.arguments
    told = [s for s in begins if s is not None and (s.base in arguments or s.base.startswith(POINTED))]
    if told and len(told) == len(moving) and len({start.rows for start in told}) == 1:
        return {s.instruction: start.offset % ALIASED_BYTES for s, start in zip(moving, told, strict=True)}
    expected = [access for access in expectation(nest, sizes).expected if access.stride_bytes > 0]
    return dict(_by_rows(moving, expected, loop.iterations_per_pass))


def _by_rows(
    streams: Sequence[AddressStream], expected: Sequence[ExpectedAccess], iterations: float
) -> Iterator[tuple[int, int]]:
    """The same by rows that span as much."""
    wanted: dict[_Row, list[int]] = defaultdict(list)
    for accesses in _source_rows(expected):
        first, last = accesses[0], accesses[-1]
        span = last.offset_bytes + int(last.stride_bytes * iterations) - first.offset_bytes
        wanted[_Row(first.written, span)].append(first.offset_bytes)
    found: dict[_Row, list[list[AddressStream]]] = defaultdict(list)
    for group in _code_rows(streams):
        begin = min(s.reference.displacement for s in group)
        end = max(s.reference.displacement + s.reference.size_bytes for s in group)
        found[_Row(group[0].reference.written, end - begin)].append(group)
    for row, groups in found.items():
        if len(wanted[row]) == len(groups):
            for start, group in zip(wanted[row], groups, strict=True):
                begin = min(s.reference.displacement for s in group)
                for one in group:
                    yield one.instruction, (start + one.reference.displacement - begin) % ALIASED_BYTES


def _source_rows(expected: Sequence[ExpectedAccess]) -> list[list[ExpectedAccess]]:
    """References of one array side by side, ascending; rows in the order of the source."""
    kinds: dict[tuple[str, bool, int], list[ExpectedAccess]] = defaultdict(list)
    for access in expected:
        kinds[access.array, access.written, access.stride_bytes].append(access)
    rows = []
    for own in kinds.values():
        ordered = sorted(own, key=lambda access: access.offset_bytes)
        rows.append(ordered[:1])
        for before, access in pairwise(ordered):
            if access.offset_bytes - before.offset_bytes > _GAP:
                rows.append([])
            rows[-1].append(access)
    return sorted(rows, key=lambda row: min(map(expected.index, row)))


def _code_rows(streams: Sequence[AddressStream]) -> Iterable[list[AddressStream]]:
    """Loads, and stores, by the registers that address them, in the order of the code."""
    rows: dict[object, list[AddressStream]] = defaultdict(list)
    for stream in streams:
        own = stream.reference
        rows[own.base, own.index, own.scale, own.written].append(stream)
    return rows.values()


def _mapped(nest: LoopNest, sizes: Mapping[str, int]) -> bool:
    """Whether each array that is as large as its declaration says is a mapping of its own."""
    arrays = [array for array in nest.arrays.values() if array.shape]
    return len(arrays) > 1 and all(
        array.element.size_bytes * prod(int(extent.value(sizes)) for extent in array.shape) >= MAPPED_BYTES
        for array in arrays
    )
