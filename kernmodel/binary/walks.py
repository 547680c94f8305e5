"""Walks through a function's control-flow graph whose steps are taken as often as they were counted.

Occurrences say how often each block ran and which block followed which, not in which order. A walk puts them in an
order: at each block the most frequent successor comes next until another one is due by its share, which is then taken.
Of nests with constant trip counts that is the order of the program; where trip counts or conditions vary it is an even
spread of them, which is said where it matters (docs/binaries.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field

from kernmodel.binary.occurrences import Occurrences
from kernmodel.binary.program import Function, Loop
from kernmodel.value_types import dataclass

_WHOLE = 1 - 1e-6
"""A successor is due when its shares add up to 1, rounding aside."""
_MOST_STEPS = 20_000
"""Blocks of one walk: a walk that does not come back is given up."""


class CountedFlow:
    """The counted control flow of a function: how often each edge is taken, and each loop is entered."""

    __slots__ = ("function", "inner", "loops", "occurrences", "successors")

    def __init__(self, function: Function, occurrences: Occurrences) -> None:
        self.function = function
        self.occurrences = occurrences
        self.loops: Mapping[int, Loop] = {loop.header: loop for loop in function.loops}
        self.inner: Mapping[int, Loop | None] = {
            block.address: function.loop_of(block.address) for block in function.blocks
        }
        self.successors: dict[int, dict[int, int]] = {block.address: {} for block in function.blocks}
        for (source, target), count in occurrences.edges.items():
            if count:
                self.successors.setdefault(source, {})[target] = count

    def count(self, address: int) -> int:
        """How often a block ran."""
        return self.occurrences.blocks.get(address, 0)

    def entries(self, loop: Loop) -> int:
        """How often a loop was entered from outside."""
        return self.occurrences.entries(self.function, loop)

    def trips(self, loop: Loop) -> float:
        """Mean passes of a loop each time that it is entered; 0 where it never is."""
        entered = self.entries(loop)
        return self.count(loop.header) / entered if entered else 0.0

    def exits(self, loop: Loop) -> tuple[tuple[int, int, int], ...]:
        """The edges that leave a loop, with how often each was taken."""
        return tuple(
            (source, target, count)
            for source in sorted(loop.blocks)
            for target, count in self.successors.get(source, {}).items()
            if target not in loop.blocks
        )

    def blocks_of(self, loop: Loop | None) -> frozenset[int]:
        """The blocks of a loop; of the whole function for None."""
        return frozenset(self.successors) if loop is None else loop.blocks

    def directly_in(self, loop: Loop | None) -> tuple[Loop, ...]:
        """The loops in a loop (in the function for None) that are in no other loop of it."""
        header = None if loop is None else loop.header
        return tuple(one for one in self.function.loops if one.parent == header)


@dataclass(frozen=True, slots=True)
class Walk:
    """Some iterations of a loop, or calls of the function, block by block.

    Attributes:
        steps: addresses of the blocks in the order in which they run; passes of long inner loops are left out, of which
            the first ones and the last ones are there.
        iterations: of the loop, or calls.
        recorded: of each step its number in the recorded run that it was taken from; () where none was.
        whole: how often each block ran in these iterations, with the passes that were left out; left_out: these, by the
            header of the outermost loop that they are of. Both of recorded walks.
    """

    steps: tuple[int, ...]
    iterations: int
    recorded: tuple[int, ...] = ()
    whole: Mapping[int, int] = field(default_factory=dict)
    left_out: Mapping[int, int] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[int]:
        """How often each block is in the steps."""
        return Counter(self.steps)


class Walker:
    """Walks through one loop of a function, or all of it, one iteration after the other.

    Args:
        flow: of the function.
        loop: that is walked; None: the function, from its entry to its return.
        kept: passes of a loop inside that are kept each time that it is entered, by its header.
    """

    def __init__(self, flow: CountedFlow, loop: Loop | None, kept: Mapping[int, int]) -> None:
        self._flow = flow
        self._loop = loop
        self._inside = flow.blocks_of(loop)
        self._start = flow.function.entry if loop is None else loop.header
        self._kept = kept
        self._due: dict[tuple[int, int], float] = {}
        self._visit: dict[int, int] = {}

    def walk(self, instructions: int, iterations: int) -> Walk | None:
        """Iterations until their blocks have so many instructions, or at most so many iterations.

        Returns:
            None where the counts do not lead back to the start.
        """
        lengths = {block.address: len(block.instructions) for block in self._flow.function.blocks}
        steps: list[int] = []
        done = length = 0
        while done < iterations and length < instructions:
            for address in self._iteration():
                steps.append(address)
                length += lengths.get(address, 0)
                if len(steps) > _MOST_STEPS:
                    return None
            done += 1
        return Walk(tuple(steps), done)

    def _iteration(self) -> Iterator[int]:
        """The blocks of one iteration."""
        at: int | None = self._start
        before: int | None = None
        while at is not None:
            self._enter(at, before)
            yield at
            before, at = at, self._next(at)
            if at == self._start or at not in self._inside:
                return

    def _enter(self, at: int, before: int | None) -> None:
        """Count the passes of the loop that a block heads, and leave out those beyond the ones that are kept."""
        loop = self._flow.loops.get(at)
        if loop is None or at == self._start:
            return
        again = before is not None and before in loop.blocks
        self._visit[at] = self._visit.get(at, 0) + 1 if again else 1
        if self._visit[at] >= self._kept.get(at, 1 << 30):
            self._leave_out(loop)

    def _leave_out(self, loop: Loop) -> None:
        """Go on to the last passes before the loop is left."""
        headed = self._flow.count(loop.header)
        exits = self._flow.exits(loop)
        if not headed or not exits:
            return
        gains = {(source, target): count / headed for source, target, count in exits}
        passes = int(min((1 - self._due.get(edge, 0.0)) / gain for edge, gain in gains.items())) - 1
        if passes > 0:
            for edge, gain in gains.items():
                self._due[edge] = self._due.get(edge, 0.0) + passes * gain

    def _next(self, at: int) -> int | None:
        """The block that comes next, None behind a return."""
        choices = self._flow.successors.get(at, {})
        if len(choices) < 2:
            return next(iter(choices), None)
        total = sum(choices.values())
        usual = max(choices, key=lambda target: choices[target])
        chosen, most = usual, _WHOLE
        for target, count in choices.items():
            if target == usual:
                continue
            due = self._due[at, target] = self._due.get((at, target), 0.0) + count / total
            if due >= most:
                chosen, most = target, due
        if chosen != usual:
            self._due[at, chosen] -= 1
        return chosen
