"""How many bytes each reference of a nest walks through contiguously before it jumps: the run of a stream.

Hardware follows a stream of neighbouring lines ahead of the loads. Where the walk jumps, the stream starts anew, so
that lines of short runs take longer than the bandwidth says (`machine.model.TransferPath.restart_cycles`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import TYPE_CHECKING

from kernmodel.source.nest.sizes import trip_counts

if TYPE_CHECKING:
    from kernmodel.machine.model import TransferPath
    from kernmodel.source.model import Access, LoopNest
    from kernmodel.traffic.model import Traffic

Runs = Mapping[tuple[str, str], tuple[float, ...]]
"""Bytes of a run by array and reference (as written), of each of the copies of a reference that code executes at once;
each has the same share of the lines. References without neighbouring lines one after the other (a stride beyond a line,
an index array) are missing: they have no runs."""


def contiguous_runs(nest: LoopNest, sizes: Mapping[str, int], line_bytes: int) -> Runs:
    """The runs of all references at these sizes; of loops whose length changes, at their mean length.

    A run goes on from row to row where no more than `BRIDGED_BYTES` are left out between them. Where the next row of a
    reference begins at the end of the row of another one, the hardware that follows this one has its first lines under
    way: of two rows at once one starts anew, and none where they are so short that both are followed as one
    (`ONE_STREAM_BYTES`). Such a run has no end.
    """
    trips = trip_counts(nest, sizes)
    found: dict[tuple[str, str], tuple[float, ...]] = {}
    walks: dict[tuple[str, tuple[int, ...]], list[tuple[Access, float]]] = {}
    for access in nest.accesses:
        strides = strides_of(nest, access, sizes)
        if strides is None:
            continue
        run, step = _run(strides, trips, nest.arrays[access.array].element.size_bytes, line_bytes)
        if run is not None:
            found[access.array, access.text] = (run,)
            walks.setdefault((access.array, (*strides, step)), []).append((access, run))
    for (array, (*_, step)), alike in walks.items():
        element = nest.arrays[array].element.size_bytes
        for access, _ in alike if step else ():
            for other, run in alike:
                beyond = _bytes_between(access, other, element, sizes) - run
                follows = 0 <= beyond + step <= BRIDGED_BYTES
                if follows or (run <= ONE_STREAM_BYTES and 0 <= beyond <= BRIDGED_BYTES):
                    found[array, access.text] = (inf,)
    return found


BRIDGED_BYTES = 256
"""What rows may leave out between them without that their streams start anew: hardware fetches ahead beyond what is
left out. Measured on a guest with Zen 4 (2026-11-29, gcc 12, `b[i] += a[j][i] * s`, a from memory): of rows of 2 KiB,
between which 64, 128, 192, 256, 384, 512 and 1024 bytes are left out, a line takes 7.2, 6.5, 7.7, 7.1, 19.2, 22.4 and
22.4 cycles; with `b[j][i] = a[j][i] * s` 13.8, 16.9, 17.9, 17.7, 18.5, 43.5 and 43.6."""

ONE_STREAM_BYTES = 512
"""Length of neighbouring rows that are walked at once without that their streams start anew. Measured on a guest with
Zen 4 (2026-11-29, gcc 12, `b[j][i] = (a[j+1][i] + a[j][i]) * s` from memory, two rows at once): rows of 320, 480, 512,
560, 592, 640 and 720 bytes take 14.4, 15.7, 20.4, 20.0, 23.1, 30.8 and 33.8 cycles a line, one row at a time 16."""


def _bytes_between(access: Access, other: Access, element: int, sizes: Mapping[str, int]) -> float:
    """By how many bytes an access is behind another that walks alike; not a number where that differs."""
    apart = access.offset - other.offset
    return float(apart.value(sizes)) * element if apart.of_sizes else nan


def strides_of(nest: LoopNest, access: Access, sizes: Mapping[str, int]) -> list[int] | None:
    """Bytes by which a step of each loop moves a reference, also by moving the start of a loop further in; None if an
    index array decides."""
    if access.indirect:
        return None
    element = nest.arrays[access.array].element.size_bytes
    moved = [int(coefficient.value(sizes)) for coefficient in access.coefficients]
    for number in reversed(range(len(nest.loops))):
        outer = nest.loops[number]
        for inner in range(number + 1, len(nest.loops)):
            if outer.variable in nest.loops[inner].start.free_symbols:
                moved[number] += moved[inner]
    return [stride * loop.step * element for stride, loop in zip(moved, nest.loops, strict=True)]


def _run(strides: Sequence[int], trips: Sequence[float], element: int, line_bytes: int) -> tuple[float | None, int]:
    """Bytes of a run, from the innermost loop outward, and by how many the loop that ends it moves on (0: none does);
    None where the walk is not one of neighbouring lines."""
    run, moved = float(element), False
    for stride, count in zip(reversed(strides), reversed(trips), strict=True):
        if count <= 1 or (not stride and not moved):
            continue
        step = abs(stride)
        if not moved and step > line_bytes:
            return None, 0
        if not step or step > run + max(line_bytes, BRIDGED_BYTES):
            return run, stride
        run, moved = step * (count - 1) + run, True
    return run, 0


def restart_cycles(path: TransferPath, traffic: Traffic, runs: Runs) -> float:
    """Cycles per unit of work that the lines served by the outer level of a path take because their runs are short: of
    streams that begin their runs together, as many as the lines of the busiest of them go into all of theirs."""
    if not path.run_length:
        return 0.0
    short = []
    for row in traffic.accesses:
        copies = runs.get((row.array, row.access), ())
        lines = row.served_by.get(path.outer, 0.0) / max(1, len(copies))
        short += [(lines, run) for run in copies if lines and path.restart_cycles(run)]
    streams = sum(lines for lines, _ in short) / max((lines for lines, _ in short), default=1.0)
    return sum(lines * path.restart_cycles(run, streams) for lines, run in short)


def shortest_run(traffic: Traffic, runs: Runs, level: str) -> tuple[float, str] | None:
    """The shortest run whose lines a level serves, in bytes, and its reference; None if no runs come from there."""
    served = (row for row in traffic.accesses if row.served_by.get(level, 0.0) >= _SEEN)
    found = [(min(runs[row.array, row.access]), row.access) for row in served if (row.array, row.access) in runs]
    return min(found, key=lambda pair: pair[0], default=None)


_SEEN = 0.005
"""Lines per unit of work that two digits show."""
