"""What the loop finder is told of the source: plain values of a loop nest, so `assembly` need not know `source`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kernmodel.assembly.match import ExpectedIndirect, OuterLoop, choose_loop
from kernmodel.assembly.model import AssemblyLoop, ExpectedAccess, Listing
from kernmodel.source.model import LoopNest
from kernmodel.source.sizes import trip_counts
from kernmodel.source.strides import access_strides, jumping_accesses


@dataclass(frozen=True, slots=True)
class Expectation:
    """Evidence by which the compiled loop of a kernel is recognised; the fields are `choose_loop`'s arguments.

    Attributes:
        expected: the accesses of the innermost body, per iteration of the innermost loop.
        indirect: those of them that an index array places anew in each iteration.
        outer: the accesses inside each other loop, per step of that loop.
        work: floating-point operations per iteration by kind.
        trip_count: iterations of the innermost loop where they are the same in every execution.
        function: the C function.
    """

    expected: tuple[ExpectedAccess, ...]
    indirect: tuple[ExpectedIndirect, ...]
    outer: tuple[OuterLoop, ...]
    work: Mapping[str, int]
    trip_count: int | None
    function: str | None


def expectation(nest: LoopNest, sizes: Mapping[str, int]) -> Expectation:
    """What the source says at these sizes."""
    work = Counter[str]()
    for flops in nest.flops:
        work[flops.operation] += flops.count
    trips = trip_counts(nest, sizes)[-1]
    loops = [
        OuterLoop(loop.variable, _accesses(nest, sizes, number), _indirect(nest, number))
        for number, loop in enumerate(nest.loops)
    ]
    return Expectation(
        expected=loops[-1].expected,
        indirect=loops[-1].indirect,
        outer=tuple(loops[:-1]),
        work=dict(work),
        trip_count=int(trips) if trips == int(trips) else None,
        function=nest.function,
    )


def _accesses(nest: LoopNest, sizes: Mapping[str, int], loop: int) -> tuple[ExpectedAccess, ...]:
    return tuple(
        ExpectedAccess(access.array, nest.arrays[access.array].element.size_bytes, stride, access.kind == "write")
        for access, stride in access_strides(nest, sizes, loop)
    )


def _indirect(nest: LoopNest, loop: int) -> tuple[ExpectedIndirect, ...]:
    return tuple(
        ExpectedIndirect(access.array, nest.arrays[access.array].element.size_bytes, access.kind == "write")
        for access in jumping_accesses(nest, loop)
    )


def find_loop(
    listing: Listing,
    told: Expectation,
    *,
    loop: int | None = None,
    lines: tuple[int, int] | None = None,
    region: tuple[int, int] | None = None,
) -> AssemblyLoop:
    """The loop of `listing` that executes the kernel; `loop`, `lines`, `region` choose by hand, as in `choose_loop`."""
    return choose_loop(
        listing,
        told.expected,
        indirect=told.indirect,
        outer=told.outer,
        work=told.work,
        trip_count=told.trip_count,
        function=told.function,
        loop=loop,
        lines=lines,
        region=region,
    )
