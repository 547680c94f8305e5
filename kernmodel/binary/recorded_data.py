"""What the recorded addresses of a walk say of its loads and stores: which store feeds which load, and what crosses
lines.

A load reads what the k-th latest execution of a store wrote; in the walk, from which passes may have been left out, it
is taken to be the k-th latest one, too. So chains through memory go on from one end of the walk to its beginning, as
those through registers do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from kernmodel.binary.recorded_run import RecordedRun
from kernmodel.binary.walks import Walk
from kernmodel.incore.dependences.addresses import Forwarding
from kernmodel.incore.dependences.line_splits import Lines
from kernmodel.isa.counting import TracedAccess
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple

_BEFORE = 512
"""Accesses before a stretch of the run that are looked at for stores that feed its loads."""
_NEAR = 128
"""Stores since: those before are in the first cache (of no core in the house does the buffer hold more)."""


class BlockedLoad(NamedTuple):
    """A load that waits until stores have reached the cache.

    Attributes:
        load: number of the instruction in the trace.
        stores: those behind the load before it that waited so, up to the one that wrote some of its bytes.
    """

    load: int
    stores: tuple[int, ...]


class TraceData(NamedTuple):
    """What the recorded addresses say of the accesses of a trace.

    Attributes:
        links: which stores feed which loads, by numbers of the instructions in the trace.
        loads_across, stores_across: instructions whose loads, and whose stores, cross what makes them take longer.
        alone: those that store from general-purpose registers to another line than the stores before and behind.
        stores: all instructions that store, in order.
    """

    links: tuple[Forwarding, ...]
    loads_across: frozenset[int]
    stores_across: frozenset[int]
    alone: frozenset[int] = frozenset()
    stores: tuple[int, ...] = ()

    def blocked_in_turn(self, window: int) -> tuple[BlockedLoad, ...]:
        """Loads that wait one after the other, each for a store that wrote some of its bytes only and is younger than
        the one before: stores reach the cache in order, and none before all that is older is complete.

        Args:
            window: instructions that the core has in flight; stores further back have reached the cache.
        """
        found: list[BlockedLoad] = []
        latest = -1
        blocked = (link for link in self.links if not link.whole and not link.passes)
        for load, store in sorted((link.load[0], link.store[0]) for link in blocked):
            if store > latest and load - store < window:
                older = bisect_left(self.stores, latest), bisect_right(self.stores, store)
                found.append(BlockedLoad(load, self.stores[slice(*older)]))
                latest = load
        return tuple(found)


class _ForwardedLoad(NamedTuple):
    """A load at a step of the run: the instruction, the store that wrote its bytes last, how many executions of that
    store were since, and whether it wrote all of them."""

    step: int
    address: int
    store: int
    since: int
    whole: bool


def trace_data(
    run: RecordedRun, walk: Walk, code: Mapping[int, Sequence[Instruction]], lines: Lines | None
) -> TraceData:
    """What the recorded addresses say of the accesses of a walk.

    Args:
        walk: from the run.
        code: the instructions of each block that are in the trace, by its address.
        lines: what takes longer to cross, None where nothing is known.
    """
    trace = [instruction for address in walk.steps for instruction in code[address]]
    numbers = list(_numbers(walk, code))
    links = tuple(_links(run, walk, trace, numbers))
    stores = tuple(number for number, one in enumerate(trace) if any(memory.written for memory in one.memory))
    if lines is None:
        return TraceData(links, frozenset(), frozenset(), stores=stores)
    return TraceData(links, *_across(run, walk, numbers, lines), _alone(run, walk, trace, numbers, lines), stores)


def _numbers(walk: Walk, code: Mapping[int, Sequence[Instruction]]) -> Iterator[dict[int, int]]:
    """Of each step of a walk, the numbers in the trace of its instructions, by their addresses."""
    first = 0
    for address in walk.steps:
        yield {instruction.address: number for number, instruction in enumerate(code[address], first)}
        first += len(code[address])


def _links(
    run: RecordedRun, walk: Walk, trace: Sequence[Instruction], numbers: Sequence[Mapping[int, int]]
) -> Iterator[Forwarding]:
    """Which stores of a trace feed which of its loads."""
    executed: dict[int, list[int]] = {}
    for number, instruction in enumerate(trace):
        if any(one.written for one in instruction.memory):
            executed.setdefault(instruction.address, []).append(number)
    for position, fed in _feeding(run, walk.recorded):
        load, stores = numbers[position].get(fed.address), executed.get(fed.store)
        if load is not None and stores:
            passes, at = divmod(bisect_left(stores, load) - 1 - fed.since, len(stores))
            store = stores[at]
            places = (store, _reference(trace[store], False)), (load, _reference(trace[load], True))
            yield Forwarding(*places, -passes, fed.whole)


def _across(
    run: RecordedRun, walk: Walk, numbers: Sequence[Mapping[int, int]], lines: Lines
) -> tuple[frozenset[int], frozenset[int]]:
    """The instructions of a trace whose loads, and whose stores, cross what makes them take longer."""
    found: dict[str, set[int]] = {"load": set(), "store": set()}
    for position, access, place in _accesses(run, walk.recorded):
        number = numbers[position].get(access.address)
        block = lines.of_load(access.size) if access.kind == "load" else lines.of_store(access.size)
        if number is not None and block and place % block + min(access.size, block) > block:
            found[access.kind].add(number)
    return frozenset(found["load"]), frozenset(found["store"])


def _alone(
    run: RecordedRun,
    walk: Walk,
    trace: Sequence[Instruction],
    numbers: Sequence[Mapping[int, int]],
    lines: Lines,
) -> frozenset[int]:
    """The instructions of a trace whose store from a general-purpose register goes to the cache by itself."""
    stores: list[tuple[int, int]] = []
    for position, access, place in _accesses(run, walk.recorded):
        number = numbers[position].get(access.address)
        if access.kind == "store" and number is not None:
            general = not trace[number].vector_bytes
            stores.append((number, place // lines.line_bytes if general else -1))
    around = zip(stores[-1:] + stores[:-1], stores, stores[1:] + stores[:1], strict=True)
    return frozenset(
        number for before, (number, line), behind in around if line >= 0 and line not in (before[1], behind[1])
    )


def _reference(instruction: Instruction, read: bool) -> int:
    """The number of the first memory reference that is read, or written."""
    return next(n for n, one in enumerate(instruction.memory) if (one.read if read else one.written))


def _accesses(run: RecordedRun, steps: Sequence[int]) -> Iterator[tuple[int, TracedAccess, int]]:
    """The accesses of steps of a run: position of the step, what it is, its address."""
    for position, step in enumerate(steps):
        first, end = run.firsts[step : step + 2].tolist()
        for number, place in zip(run.numbers[first:end].tolist(), run.places[first:end].tolist(), strict=True):
            yield position, run.kinds[number], place


def _feeding(run: RecordedRun, steps: Sequence[int]) -> Iterator[tuple[int, _ForwardedLoad]]:
    """The loads of steps of a run that read what was stored just before, with the positions of their steps."""
    begin = 0
    while begin < len(steps):
        end = begin + 1
        while end < len(steps) and steps[end] == steps[end - 1] + 1:
            end += 1
        for fed in _stretch(run, steps[begin], steps[end - 1] + 1):
            yield begin + fed.step - steps[begin], fed
        begin = end


def _stretch(run: RecordedRun, first: int, end: int) -> Iterator[_ForwardedLoad]:
    """As `_feeding`, for steps that follow one another without a gap."""
    begin = max(0, int(run.firsts[first]) - _BEFORE)
    bound, last = int(run.firsts[first]), int(run.firsts[end])
    writers: dict[int, tuple[int, int, int]] = {}
    executed: dict[int, int] = {}
    stores = 0
    numbers, places = run.numbers[begin:last].tolist(), run.places[begin:last].tolist()
    bounds = run.firsts[first + 1 : end + 1].tolist()
    step = first
    for number, (kind, place) in enumerate(zip(numbers, places, strict=True), begin):
        access = run.kinds[kind]
        while number >= bounds[step - first]:
            step += 1
        touched = range(place, place + access.size)
        if access.kind == "store":
            stores += 1
            count = executed[access.address] = executed.get(access.address, 0) + 1
            for byte in touched:
                writers[byte] = stores, access.address, count
        elif number >= bound:
            wrote = {writers.get(byte) for byte in touched}
            latest = max((one for one in wrote if one is not None), default=None)
            if latest is not None and stores - latest[0] < _NEAR:
                yield _ForwardedLoad(step, access.address, latest[1], executed[latest[1]] - latest[2], len(wrote) == 1)
