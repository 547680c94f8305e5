"""Walks through a recorded run: some iterations of a loop as they were, from several places of the run.

As in `walks` passes in the middle of long visits of inner loops are left out. Iterations that leave the loop are left
out where there are others: what leaving costs is in the walk of the loop around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel.binary.program import Loop
from kernmodel.binary.recorded_run import CALL, RecordedRun
from kernmodel.binary.walks import CountedFlow, Walk
from kernmodel.value_types import NamedTuple

if TYPE_CHECKING:
    from kernmodel.binary.recorded_run import Numbers

_PLACES = 12
"""Of the run, from which iterations are taken: at multiples of the golden ratio, which are as good as evenly spread and
in step with no row of the program."""
_GOLDEN = 0.6180339887498949
_LAST = 2
"""Passes kept at the end of a visit: that of the exit, and the one before."""


class _Stretch(NamedTuple):
    """Iterations from one place: the steps that are kept of them, how many they are, how often each block ran in them,
    and passes that were left out, by the header of their loop."""

    steps: list[int]
    iterations: int
    whole: Counter[int]
    left_out: Counter[int]


class RecordedWalker:
    """Takes walks from a recorded run of a function."""

    def __init__(self, flow: CountedFlow, run: RecordedRun) -> None:
        self._flow, self._run = flow, run
        self._lengths = {block.address: len(block.instructions) for block in flow.function.blocks}
        self._passes = self._visits()

    def walk(self, loop: Loop | None, kept: Mapping[int, int], instructions: int, most: int) -> Walk | None:
        """A walk of some iterations of a loop; calls of the function for None.

        Args:
            kept: passes of inner loops, by their headers, that are kept of each visit at least.
            instructions: that the iterations from one place have, if there are so many; most: in all.

        Returns:
            None where nothing of it was recorded, or an iteration is too long.
        """
        begins, ends = self._iterations(loop)
        stretches: list[_Stretch] = []
        length = 0
        for place in range(min(_PLACES, len(begins))):
            first = int((place + 1) * _GOLDEN % 1 * len(begins))
            one = self._stretch(begins[first:], ends[first:], kept, instructions)
            length += self._length(one.steps)
            if length > most:
                break
            stretches.append(one)
        if len({tuple(self._run.steps[one.steps].tolist()) for one in stretches}) == 1:
            del stretches[1:]
        if not stretches:
            return None
        recorded = [step for one in stretches for step in one.steps]
        addresses = self._run.steps[recorded].tolist()
        whole = sum((one.whole for one in stretches), Counter[int]())
        left_out = sum((one.left_out for one in stretches), Counter[int]())
        done = sum(one.iterations for one in stretches)
        return Walk(tuple(addresses), done, tuple(recorded), whole, left_out)

    def _stretch(self, begins: Numbers, ends: Numbers, kept: Mapping[int, int], instructions: int) -> _Stretch:
        """Iterations with so many instructions."""
        steps: list[int] = []
        whole, left_out = Counter[int](), Counter[int]()
        done = length = 0
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            one = self._kept(begin, end, kept, left_out)
            whole.update(self._run.steps[begin:end].tolist())
            steps += one
            done += 1
            length += self._length(one)
            if length >= instructions:
                break
        return _Stretch(steps, done, whole, left_out)

    def _length(self, steps: Sequence[int]) -> int:
        """Instructions of steps."""
        return sum(self._lengths.get(address, 0) for address in self._run.steps[list(steps)].tolist())

    def _iterations(self, loop: Loop | None) -> tuple[Numbers, Numbers]:
        """The first step of each iteration, and the one behind its last."""
        import numpy

        steps = self._run.steps
        if loop is None:
            calls = numpy.flatnonzero(steps == CALL)
            begins, ends = calls[:-1] + 1, calls[1:]
        else:
            heads = numpy.flatnonzero(steps == loop.header)
            bounds = numpy.flatnonzero((steps == loop.header) | ~numpy.isin(steps, list(loop.blocks)))
            behind = numpy.searchsorted(bounds, heads, side="right")
            whole = behind < len(bounds)
            begins, ends = heads[whole], bounds[behind[whole]]
            again = steps[ends] == loop.header
            if again.any():
                begins, ends = begins[again], ends[again]
        learnt = begins >= self._run.begun
        return (begins[learnt], ends[learnt]) if learnt.any() else (begins, ends)

    def _visits(self) -> tuple[Numbers, Numbers]:
        """Of each step that begins a pass of a loop, the number of the pass in its visit, and the step that begins the
        last passes of that visit."""
        import numpy

        steps = self._run.steps
        passes, lasts = numpy.zeros(len(steps), dtype=numpy.int64), numpy.zeros(len(steps), dtype=numpy.int64)
        for loop in self._flow.function.loops:
            heads = numpy.flatnonzero(steps == loop.header)
            if not len(heads):
                continue
            outside = numpy.cumsum(~numpy.isin(steps, list(loop.blocks)))[heads]
            firsts = numpy.flatnonzero(numpy.diff(outside, prepend=-1))
            visit = numpy.searchsorted(firsts, numpy.arange(len(heads)), side="right") - 1
            behind = numpy.append(firsts[1:], len(heads))
            passes[heads] = numpy.arange(len(heads)) - firsts[visit]
            lasts[heads] = heads[numpy.maximum(behind - _LAST, firsts)[visit]]
        return passes, lasts

    def _kept(self, begin: int, end: int, kept: Mapping[int, int], left_out: Counter[int]) -> list[int]:
        """The steps of an iteration without passes in the middle of long visits of inner loops, which are counted."""
        passes, lasts = self._passes
        steps, at = [], begin
        while at < end:
            header = int(self._run.steps[at])
            most = kept.get(header) if at != begin else None
            if most is not None and passes[at] >= most and lasts[at] > at:
                last = int(lasts[at])
                left_out[header] += int(passes[last] - passes[at])
                at = last
            steps.append(at)
            at += 1
        return steps
