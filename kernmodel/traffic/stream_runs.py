"""How many bytes each reference of a nest walks through contiguously before it jumps: the run of a stream.

Hardware follows a stream of neighbouring lines ahead of the loads. Where the walk jumps, the stream starts anew, so
that lines of short runs take longer than the bandwidth says (`machine.model.TransferPath.restart_cycles`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel.source.nest.sizes import trip_counts

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine, TransferPath
    from kernmodel.source.model import Access, LoopNest
    from kernmodel.traffic.model import Traffic

Runs = Mapping[tuple[str, str], float]
"""Bytes of a run by array and reference (as written). References without neighbouring lines one after the other (a
stride beyond a line, an index array) are missing: they have no runs."""


def contiguous_runs(nest: LoopNest, sizes: Mapping[str, int], line_bytes: int) -> Runs:
    """The runs of all references at these sizes; of loops whose length changes, at their mean length.

    A run goes on from row to row where the next row begins within a line of the end of the last one.
    """
    trips = trip_counts(nest, sizes)
    found: dict[tuple[str, str], float] = {}
    for access in nest.accesses:
        strides = strides_of(nest, access, sizes)
        run = (
            None if strides is None else _run(strides, trips, nest.arrays[access.array].element.size_bytes, line_bytes)
        )
        if run is not None:
            found[access.array, access.text] = run
    return found


def runs_of(nest: LoopNest, sizes: Mapping[str, int], machine: Machine) -> Runs | None:
    """The runs, where the machine knows what short ones cost; else None."""
    known = any(path.run_length for path in machine.paths)
    return contiguous_runs(nest, sizes, machine.line_bytes) if known else None


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


def _run(strides: Sequence[int], trips: Sequence[float], element: int, line_bytes: int) -> float | None:
    """Bytes of a run, from the innermost loop outward; None where the walk is not one of neighbouring lines."""
    run, moved = float(element), False
    for stride, count in zip(reversed(strides), reversed(trips), strict=True):
        if count <= 1 or (not stride and not moved):
            continue
        step = abs(stride)
        if not moved and step > line_bytes:
            return None
        if not step or step > run + line_bytes:
            break
        run, moved = step * (count - 1) + run, True
    return run


def restart_cycles(path: TransferPath, traffic: Traffic, runs: Runs) -> float:
    """Cycles per unit of work that the lines served by the outer level of a path take because their runs are short."""
    return sum(
        row.served_by.get(path.outer, 0.0) * path.restart_cycles(runs[row.array, row.access])
        for row in traffic.accesses
        if (row.array, row.access) in runs
    )


def shortest_run(traffic: Traffic, runs: Runs, level: str) -> tuple[float, str] | None:
    """The shortest run whose lines a level serves, in bytes, and its reference; None if no runs come from there."""
    served = (row for row in traffic.accesses if row.served_by.get(level, 0.0) >= _SEEN)
    found = [(runs[row.array, row.access], row.access) for row in served if (row.array, row.access) in runs]
    return min(found, key=lambda pair: pair[0], default=None)


_SEEN = 0.005
"""Lines per unit of work that two digits show."""
