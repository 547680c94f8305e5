"""What the loop finder is told of the source: plain values of a loop nest, so `code` need not know `source`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from kernmodel.code.balance import ExpectedOperation, ExpectedWork, WholeLoops
from kernmodel.code.match import Expectation, ExpectedIndirect, OuterLoop
from kernmodel.code.model import ExpectedAccess
from kernmodel.source.model import Access, LoopNest
from kernmodel.source.nest.sizes import trip_counts
from kernmodel.source.nest.strides import access_strides, first_offset, jumping_accesses
from kernmodel.source.nest.whole_loops import WholeStep, whole_steps


def expectation(nest: LoopNest, sizes: Mapping[str, int], flags: Collection[str] = ()) -> Expectation:
    """What the source says at these sizes; `flags`: of the compiler, as far as known."""
    trips = [int(trips) if trips == int(trips) else None for trips in trip_counts(nest, sizes)]
    inner = len(nest.loops) - 1
    return Expectation(
        expected=_accesses(nest, sizes, inner),
        indirect=_indirect(nest, inner),
        outer=tuple(loop for number in range(inner) for loop in _outer(nest, sizes, number, trips[number])),
        work=_work(nest, flags),
        variable=nest.inner.variable,
        trip_count=trips[inner],
        function=nest.function,
    )


def _outer(nest: LoopNest, sizes: Mapping[str, int], loop: int, trip_count: int | None) -> Iterator[OuterLoop]:
    """What accesses do per step of an outer loop, wherever the code has the loops within it; and what they do where a
    step executes loops that begin further at each."""
    variable, indirect = nest.loops[loop].variable, _indirect(nest, loop)
    whole: list[WholeStep] = []
    moving: list[WholeStep] = []
    for step in whole_steps(nest, sizes, loop):
        (moving if step.ahead else whole).append(step)
    yield OuterLoop(variable, _accesses(nest, sizes, loop), indirect, tuple(map(_whole, whole)), trip_count)
    for step in moving:
        accesses = _accesses(nest, sizes, loop, step)
        yield OuterLoop(variable, accesses, indirect, (_whole(step),), trip_count, exchangeable=False)


def _whole(step: WholeStep) -> WholeLoops:
    return WholeLoops(step.variables, step.points, step.alike)


_REASSOCIATE = frozenset({"-Ofast", "-ffast-math", "-fassociative-math", "-funsafe-math-optimizations"})


def reassociates(flags: Collection[str]) -> bool:
    """Whether a compiler with these flags may reorder floating-point arithmetic."""
    return not _REASSOCIATE.isdisjoint(flags)


def _work(nest: LoopNest, flags: Collection[str]) -> ExpectedWork:
    total = Counter[str]()
    for flops in nest.operations.flops:
        for kind in ("add", "mul") if flops.operation == "fma" else (flops.operation,):
            total[kind] += flops.count
    distinct = (
        ExpectedOperation(kind, operation.variables, operation.by_literal)
        for operation in nest.operations.distinct
        for kind in (("add", "mul") if operation.operation == "fma" else (operation.operation,))
        if kind not in ("compare", "function")
    )
    return ExpectedWork(
        total=dict(total),
        distinct=tuple(distinct),
        reductions=len(nest.operations.reductions),
        conversions=nest.operations.conversions,
        complex_products=nest.operations.complex_products,
        open_ended=total["function"] > 0,
        reassociated=reassociates(flags),
    )


def _accesses(
    nest: LoopNest, sizes: Mapping[str, int], loop: int, step: WholeStep | None = None
) -> tuple[ExpectedAccess, ...]:
    """What the accesses do per step of a loop; where that executes a `step` of others, these begin with it."""
    # nearest first: of loops that a compiler may have jammed, which alike explain the code, that counts
    others = [number for number in reversed(range(len(nest.loops))) if number != loop]
    moved = {number: dict(access_strides(nest, sizes, number)) for number in others}
    first, ahead = (step.first, step.ahead) if step else ({}, {})

    def begins_further(access: Access) -> int:
        return sum(by * (moved[n].get(access) or 0) for n in others if (by := ahead.get(nest.loops[n].variable, 0)))

    return tuple(
        ExpectedAccess(
            access.array,
            nest.bytes_of(access),
            stride + begins_further(access),
            access.kind == "write",
            offset_bytes=first_offset(nest, sizes, access, first),
            others=tuple((nest.loops[n].variable, moved[n].get(access)) for n in others if access.depth > n),
            count=access.count,
        )
        for access, stride in access_strides(nest, sizes, loop)
    )


def _indirect(nest: LoopNest, loop: int) -> tuple[ExpectedIndirect, ...]:
    return tuple(
        ExpectedIndirect(access.array, nest.bytes_of(access), access.kind == "write")
        for access in jumping_accesses(nest, loop)
    )
