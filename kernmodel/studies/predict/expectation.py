"""What the loop finder is told of the source: plain values of a loop nest, so `code` need not know `source`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from kernmodel.code.balance import ExpectedOperation, ExpectedWork
from kernmodel.code.match import Expectation, ExpectedIndirect, OuterLoop
from kernmodel.code.model import ExpectedAccess
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import trip_counts
from kernmodel.source.nest.strides import access_strides, first_offset, jumping_accesses


def expectation(nest: LoopNest, sizes: Mapping[str, int], flags: Collection[str] = ()) -> Expectation:
    """What the source says at these sizes; `flags`: of the compiler, as far as known."""
    trips = trip_counts(nest, sizes)[-1]
    loops = [
        OuterLoop(loop.variable, _accesses(nest, sizes, number), _indirect(nest, number))
        for number, loop in enumerate(nest.loops)
    ]
    return Expectation(
        expected=loops[-1].expected,
        indirect=loops[-1].indirect,
        outer=tuple(loops[:-1]),
        work=_work(nest, flags),
        variable=nest.inner.variable,
        trip_count=int(trips) if trips == int(trips) else None,
        function=nest.function,
    )


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


def _accesses(nest: LoopNest, sizes: Mapping[str, int], loop: int) -> tuple[ExpectedAccess, ...]:
    # nearest first: of loops that a compiler may have jammed, which alike explain the code, that counts
    others = [number for number in reversed(range(len(nest.loops))) if number != loop]
    moved = {number: dict(access_strides(nest, sizes, number)) for number in others}
    return tuple(
        ExpectedAccess(
            access.array,
            nest.bytes_of(access),
            stride,
            access.kind == "write",
            offset_bytes=first_offset(nest, sizes, access),
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
