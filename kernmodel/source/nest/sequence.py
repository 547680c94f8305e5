"""Loop nests that are executed one after the other, as a tree of the loops that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile

from kernmodel.source.model import LoopNest
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Body:
    """What is executed in one iteration of a loop, or of nothing: the whole sequence.

    Attributes:
        depth: loops around it, which all nests in it share.
        parts: in the order of execution: nests by their number in the sequence, and loops that several nests share.
    """

    depth: int
    parts: tuple[int | Body, ...]

    def numbers(self) -> Iterator[int]:
        """The nests in it, in order."""
        for part in self.parts:
            yield from (part,) if isinstance(part, int) else part.numbers()


@dataclass(frozen=True, slots=True)
class NestSequence:
    """Nests that are executed one after the other, again and again.

    Attributes:
        nests: in the order of execution.
        names: how messages call them.
        root: the same as a tree.
    """

    nests: tuple[LoopNest, ...]
    names: tuple[str, ...]
    root: Body

    def bodies(self, number: int) -> tuple[Body, ...]:
        """The bodies around a nest, the whole sequence first."""
        found = [self.root]
        while True:
            inner = next((p for p in found[-1].parts if isinstance(p, Body) and number in p.numbers()), None)
            if inner is None:
                return tuple(found)
            found.append(inner)


def sequence_of(nests: Sequence[LoopNest], names: Sequence[str], common: Sequence[int]) -> NestSequence:
    """The sequence of nests of which each has so many outer loops in common with the one before it."""
    return NestSequence(tuple(nests), tuple(names), _body(0, range(len(nests)), common))


def _body(depth: int, numbers: Sequence[int], common: Sequence[int]) -> Body:
    parts: list[int | Body] = []
    place = 0
    while place < len(numbers):
        joined = takewhile(lambda number: common[number] > depth, numbers[place + 1 :])
        group = (numbers[place], *joined)
        parts.append(group[0] if len(group) == 1 else _body(depth + 1, group, common))
        place += len(group)
    return Body(depth, tuple(parts))
