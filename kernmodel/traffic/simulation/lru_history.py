"""What a nest touched before a place in it, line by line in the order of the last touches: a short way to warm caches.

Executing everything that came before is too long where much is computed on little data. A cache with LRU replacement
holds what was touched last, however often; so it is enough to touch every line once, in the order of its last touch:
loops that do not move a reference stand at their last iteration, and others advance by a line at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from kernmodel.cachesim.model import Form, Program, ProgramLoop, ProgramReference
from kernmodel.cachesim.programs import bound_value, trips
from kernmodel.traffic.simulation.bounds import plain_bound, shifted_bound
from kernmodel.traffic.simulation.work import Work
from kernmodel.value_types import dataclass

Range = tuple[int, int]

_GRAIN = 1 / 64
"""References nearer than this share of what all caches hold touch the same lines at about the same time."""


@dataclass(frozen=True, slots=True)
class _Group:
    """References that move alike within a segment.

    Attributes:
        movers: the loops that move them, also by moving the bounds of an inner loop that does.
        shifts: whether the loop of the segment takes them to other lines, rather than to more or fewer of the same.
        grows: whether it never takes them to fewer, so that its last iteration touches what those before it have.
        narrow: the loop that advances them by the smallest part of a line, and how many iterations that a line has.
        loops: those of a program that touches them, in which that of the segment is still to be put.
    """

    movers: frozenset[int]
    shifts: bool
    grows: bool
    references: tuple[ProgramReference, ...]
    narrow: tuple[int, int] | None
    loops: tuple[ProgramLoop, ...]


def history(work: Work, values: Sequence[int], cached_bytes: float, reach: float) -> tuple[Program, ...]:
    """Programs that touch what the nest touched last before an iteration of one of its outer loops, oldest first.

    Args:
        work: the nest.
        values: the iteration: of the outermost loops, down to the one that it is an iteration of.
        cached_bytes: what all caches hold.
        reach: how many times as much to go back; the nest's previous sweep is where it goes on.
    """
    lines = reach * cached_bytes / work.nest.line_bytes
    found: list[Program] = []
    for program, covered in _newest_first(work, tuple(values), cached_bytes):
        found.append(program)
        lines -= covered
        if lines <= 0:
            break
    return tuple(reversed(found))


def _newest_first(work: Work, values: tuple[int, ...], cached_bytes: float) -> Iterator[tuple[Program, float]]:
    """Programs and the lines that they touch: what this execution of the loops has done, then the previous sweep."""
    loops = work.program.loops
    for loop in reversed(range(len(values))):
        first = bound_value(loops[loop].start, values[:loop])
        yield from _iterations(work, values[:loop], loop, (first, values[loop]), cached_bytes)
    yield from _iterations(work, (), 0, (values[0], bound_value(loops[0].stop, ())), cached_bytes)


def _iterations(
    work: Work, outer: tuple[int, ...], loop: int, span: Range, cached_bytes: float
) -> Iterator[tuple[Program, float]]:
    """Some iterations of a loop: the last one in detail, before it those references that the loop moves."""
    loops = work.program.loops
    step = loops[loop].step
    count = trips(*span, step)
    if not count:
        return
    last = span[0] + (count - 1) * step
    segment = _Segment(work, outer, cached_bytes)
    if loop + 1 < len(loops):
        inner, around = loops[loop + 1], (*outer, last)
        whole = bound_value(inner.start, around), bound_value(inner.stop, around)
        yield from _iterations(work, around, loop + 1, whole, cached_bytes)
    else:
        yield from segment.programs((last, last + step), moving=False)
    for piece in _pieces(span[0], last, step):
        yield from segment.programs(piece, moving=True)


def _pieces(first: int, stop: int, step: int) -> Iterator[Range]:
    """A range of iterations from its end on, in pieces that double: within one, references that move differently come
    one after the other."""
    size = 1
    while count := trips(first, stop, step):
        begin = stop - min(size, count) * step
        yield begin, stop
        stop, size = begin, 2 * size


class _Segment:
    """A loop with the loops around it standing still."""

    def __init__(self, work: Work, outer: tuple[int, ...], cached_bytes: float) -> None:
        self.work = work
        self.outer = outer
        self.loop = len(outer)
        self.line_bytes = work.nest.line_bytes
        self.grain = max(self.line_bytes, int(cached_bytes * _GRAIN))
        self.groups = self._groups()

    def programs(self, piece: Range, *, moving: bool) -> Iterator[tuple[Program, float]]:
        """Some iterations: of all references, or only of those that the loop moves."""
        step = self.work.program.loops[self.loop].step
        count = trips(*piece, step)
        around = self._trips(piece[0] + count // 2 * step)
        for group in reversed(self.groups):
            if self.loop in group.movers:
                repeated = count if group.shifts else 1
                executed = (piece[1] - step, piece[1]) if group.grows else piece
                yield self._program(group, executed), repeated * self._lines(group, around)
            elif not moving:
                yield self._program(group, piece), self._lines(group, around)

    def _groups(self) -> list[_Group]:
        """The references by how they move; of those to one array that follow one another closely, one."""
        groups: dict[tuple[frozenset[int], bool], list[tuple[str, ProgramReference]]] = {}
        trips = self._trips(bound_value(self.work.program.loops[self.loop].start, self.outer))
        for numeric, reference in zip(self.work.nest.references, self.work.program.references, strict=True):
            if reference.kind == "stream":
                continue
            movers, array = self._movers(reference), numeric.access.array
            known = groups.setdefault((movers, self._shifts(reference, movers)), [])
            alike = (
                number
                for number, (other, kept) in enumerate(known)
                if array == other and self._same_lines(kept, reference, movers, trips)
            )
            place = next(alike, None)
            if place is None:
                known.append((array, reference))
            elif reference.kind == "store":
                known[place] = array, reference
        return [self._group(*moves, [reference for _, reference in found]) for moves, found in groups.items()]

    def _group(self, movers: frozenset[int], shifts: bool, found: Sequence[ProgramReference]) -> _Group:
        depth, narrow = len(self.work.program.loops), self._narrow(movers, found)
        references = tuple(replace(each, depth=depth, place="before") for each in found)
        grows = not shifts and self._grows(movers)
        return _Group(movers, shifts, grows, references, narrow, self._loops(movers, narrow))

    def _same_lines(
        self, one: ProgramReference, other: ProgramReference, movers: frozenset[int], trips: Sequence[int]
    ) -> bool:
        """Whether two references to an array touch the same lines at about the same time, but for those at the ends.

        They do if what lies between them is made up of whole steps of the loops that move them, and a rest within the
        run of neighbouring lines that the loops with the smallest steps make.
        """
        if one.address.coefficients != other.address.coefficients or one.indirections != other.indirections:
            return False
        first, second = one.address.constant, other.address.constant
        if first // self.grain != second // self.grain:
            return False
        loops = self.work.program.loops
        moves = ((abs(one.address.coefficients[loop] * loops[loop].step), trips[loop]) for loop in movers)
        rest, run, steps = abs(first - second), one.size_bytes, []
        for stride, count in sorted(move for move in moves if move[0]):
            if stride <= max(run, self.line_bytes):
                run += stride * (count - 1)
            else:
                steps.append(stride)
        for stride in reversed(steps):
            rest = min(rest % stride, -rest % stride)
        return rest < run

    def _trips(self, value: int) -> tuple[int, ...]:
        """Iterations of every loop, of those further in where the variable of this one has a value."""
        own = self.work.trips_at(self.loop, self.outer)
        inner = self.work.trips_within((*self.outer, value))
        return (*(1 for _ in self.outer), own, *inner)

    def _movers(self, reference: ProgramReference) -> frozenset[int]:
        forms = _forms(reference)
        depth = len(self.work.program.loops)
        found = {loop for loop in range(self.loop, depth) if any(form.coefficients[loop] for form in forms)}
        for inner in reversed(range(self.loop, depth)):
            if inner in found:
                found |= {outer for outer in range(self.loop, inner) if self.work.depends(inner, outer)}
        return frozenset(found)

    def _shifts(self, reference: ProgramReference, movers: frozenset[int]) -> bool:
        starts = (self.work.program.loops[inner].start for inner in movers if inner > self.loop)
        forms = [form for start in starts for group in start.groups for form in group]
        return any(form.coefficients[self.loop] for form in (*forms, *_forms(reference)))

    def _grows(self, movers: frozenset[int]) -> bool:
        """Whether no loop further in ends earlier in a later iteration."""
        loops = self.work.program.loops
        ends = (
            (form.coefficients[self.loop], loops[inner].step)
            for inner in movers
            if inner > self.loop
            for group in loops[inner].stop.groups
            for form in group
        )
        return all(moved * step * loops[self.loop].step >= 0 for moved, step in ends)

    def _stride(self, references: Sequence[ProgramReference], loop: int) -> int:
        """Bytes by which a loop moves the fastest of these references; beyond a line if a table decides."""
        step = abs(self.work.program.loops[loop].step)
        if any(each.position.coefficients[loop] for reference in references for each in reference.indirections):
            return self.line_bytes
        return step * max(abs(reference.address.coefficients[loop]) for reference in references)

    def _narrow(self, movers: frozenset[int], references: Sequence[ProgramReference]) -> tuple[int, int] | None:
        strides = [(self._stride(references, loop), loop) for loop in movers]
        stride, loop = min(((s, loop) for s, loop in strides if s), default=(self.line_bytes, -1))
        return (loop, self.line_bytes // stride) if stride * 2 <= self.line_bytes else None

    def _lines(self, group: _Group, around: Sequence[int]) -> float:
        """Lines that a group touches in one iteration of the loop (a part of a line where several share it)."""
        narrow = group.narrow
        count = float(self._streams(group, around))
        for loop in group.movers:
            count *= around[loop] if loop > self.loop else 1
            count /= narrow[1] if narrow is not None and narrow[0] == loop else 1
        return count

    def _streams(self, group: _Group, around: Sequence[int]) -> int:
        """How many of the references of a group run through memory that the others do not reach."""
        starts = sorted(reference.address.constant for reference in group.references)
        travel = self.line_bytes + max(
            (self._stride(group.references, loop) * around[loop] for loop in group.movers), default=0
        )
        return 1 + sum(after - before > travel for before, after in pairwise(starts))

    def _loops(self, movers: frozenset[int], narrow: tuple[int, int] | None) -> tuple[ProgramLoop, ...]:
        loops = []
        for number, loop in enumerate(self.work.program.loops):
            if number < self.loop:
                loops.append(self._constant((self.outer[number], self.outer[number] + loop.step), loop.step))
            elif number > self.loop and number not in movers:
                loops.append(ProgramLoop(shifted_bound(loop.stop, -loop.step), loop.stop, loop.step))
            else:
                loops.append(loop)
            if narrow is not None and narrow[0] == number:
                loops[-1] = replace(loops[-1], step=loop.step * narrow[1])
        return tuple(loops)

    def _program(self, group: _Group, piece: Range) -> Program:
        own, loops = self.loop, group.loops
        return Program((*loops[:own], self._constant(piece, loops[own].step), *loops[own + 1 :]), group.references)

    def _constant(self, piece: Range, step: int) -> ProgramLoop:
        still = (0,) * len(self.work.program.loops)
        return ProgramLoop(plain_bound(Form(piece[0], still)), plain_bound(Form(piece[1], still)), step)


def _forms(reference: ProgramReference) -> tuple[Form, ...]:
    """What the address of a reference depends on."""
    return (reference.address, *(each.position for each in reference.indirections))
