"""How the iterations of a divided loop fall to threads, and how much of the work each of them has.

The chunks are those of OpenMP 5.2, 11.5.3: static without a chunk size gives each thread one block of nearly the same
length, with one, chunks in turn; dynamic and guided ones go to the thread that is free first, which is known here
because iterations take as long as their number of inner iterations says.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod

from kernmodel.source.model import LoopNest, Parallel
from kernmodel.source.nest.counting import Environment, NumericLoop, iterations_inside, numeric_loops
from kernmodel.value_types import dataclass

MOST_ITERATIONS = 100_000
"""Iterations of a divided loop whose inner iterations are counted one by one."""
MOST_EXECUTIONS = 64
"""Executions of a divided loop that are looked at, evenly spread."""


@dataclass(frozen=True, slots=True)
class Division:
    """A divided loop on some threads.

    Attributes:
        threads: how many.
        iterations: of the divided loops in one execution (the mean of several); most: those of the thread that has the
            most work; idle: threads without any.
        balance: work of a thread on average over that of the busiest, 0 to 1; None where it cannot be counted.
        shares: the work of each thread in every execution that was looked at, in any unit; none where it cannot be
            counted.
    """

    threads: int
    iterations: float
    most: float
    idle: float
    balance: float | None
    shares: tuple[tuple[float, ...], ...] = ()


def division(nest: LoopNest, parallel: Parallel, sizes: Mapping[str, int], threads: int) -> Division:
    """How the work of a nest falls to threads at these sizes."""
    loops = numeric_loops(nest.loops, sizes)
    executions = list(_executions(loops, parallel, threads))
    if not executions:
        return Division(threads, 0, 0, threads, 1.0)
    count = len(executions)
    shares = tuple(one.shares for one in executions) if all(one.shares for one in executions) else ()
    busiest = sum(map(max, shares))
    return Division(
        threads,
        sum(one.iterations for one in executions) / count,
        sum(one.most for one in executions) / count,
        sum(one.idle for one in executions) / count,
        sum(map(sum, shares)) / threads / busiest if busiest else None,
        shares,
    )


@dataclass(frozen=True, slots=True)
class _Execution:
    iterations: int
    most: int
    idle: int
    shares: tuple[float, ...] = ()


def _executions(loops: Sequence[NumericLoop], parallel: Parallel, threads: int) -> Iterator[_Execution]:
    """One execution of the divided loops after the other; evenly spread ones of many."""
    divided = loops[parallel.loop : parallel.loop + parallel.collapse]
    inside = {name for loop in loops[parallel.loop :] for name in loop.uses}
    deciding = [loop for loop in loops[: parallel.loop] if _decides(loop, loops[: parallel.loop], inside)]
    for environment in _environments(deciding, {}, max(1, int(MOST_EXECUTIONS ** (1 / max(1, len(deciding)))))):
        if divided[0].values(environment):
            yield _execution(loops, divided, parallel, environment, threads)


def _decides(loop: NumericLoop, outer: Sequence[NumericLoop], inside: set[str]) -> bool:
    """Whether the variable of an outer loop decides bounds further in."""
    return loop.variable in inside or any(loop.variable in other.uses for other in outer)


def _environments(loops: Sequence[NumericLoop], known: Environment, most: int) -> Iterator[Environment]:
    if not loops:
        yield known
        return
    values = loops[0].values(known)
    apart = max(1, -(-len(values) // most))
    for value in values[apart // 2 :: apart]:
        yield from _environments(loops[1:], known | {loops[0].variable: value}, most)


def _execution(
    loops: Sequence[NumericLoop],
    divided: Sequence[NumericLoop],
    parallel: Parallel,
    environment: Environment,
    threads: int,
) -> _Execution:
    depth = parallel.loop + len(divided)
    variables = {loop.variable for loop in divided}
    alike = not any(variables & loop.uses for loop in loops[parallel.loop :])
    if alike:
        count = prod(len(loop.values(environment)) for loop in divided)
        return _of_chunks(None, count, parallel, threads)
    weights = []
    for place in _environments(divided, environment, MOST_ITERATIONS + 1):
        weights.append(iterations_inside(loops, depth, place))
        if len(weights) > MOST_ITERATIONS:
            count = prod(len(loop.values(environment)) for loop in divided)
            return _Execution(count, -(-count // threads), max(0, threads - count))
    return _of_chunks(weights, len(weights), parallel, threads)


def _of_chunks(weights: Sequence[int] | None, count: int, parallel: Parallel, threads: int) -> _Execution:
    """The shares of threads; `weights`: inner iterations of each, None: all have as many."""
    if weights is None and parallel.chunk is None and parallel.schedule != "guided":
        each, more = divmod(count, threads)  # in one block each, or one by one
        alike = (float(each + 1),) * more + (float(each),) * (threads - more)
        return _Execution(count, each + bool(more), max(0, threads - count), alike)
    before = list(accumulate(weights, initial=0)) if weights is not None else range(count + 1)
    shares = [[0.0, 0.0] for _ in range(threads)]
    for thread, first, end in _chunks(before, count, parallel, threads):
        shares[thread][0] += before[end] - before[first]
        shares[thread][1] += end - first
    idle = sum(share[1] == 0 for share in shares)
    return _Execution(count, int(max(shares)[1]), idle, tuple(share[0] for share in shares))


def _chunks(before: Sequence[int], count: int, parallel: Parallel, threads: int) -> Iterator[tuple[int, int, int]]:
    """Thread, first iteration and end of each chunk; `before` are the inner iterations before an iteration."""
    if parallel.schedule in (None, "static"):
        if parallel.chunk is None:
            each, more = divmod(count, threads)
            ends = [thread * each + min(thread, more) for thread in range(threads + 1)]
            yield from ((thread, ends[thread], ends[thread + 1]) for thread in range(threads))
            return
        for number, first in enumerate(range(0, count, parallel.chunk)):
            yield number % threads, first, min(count, first + parallel.chunk)
        return
    least = parallel.chunk or 1
    free = [(0.0, thread) for thread in range(threads)]
    first = 0
    while first < count:
        length = max(least, -(-(count - first) // threads)) if parallel.schedule == "guided" else least
        end = min(count, first + length)
        busy, thread = heapq.heappop(free)
        heapq.heappush(free, (busy + before[end] - before[first], thread))
        yield thread, first, end
        first = end
