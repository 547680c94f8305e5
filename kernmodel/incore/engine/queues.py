"""Which schedulers the operations of a cycle go to where these are assigned together.

AMD's cores from Zen 3 on have a scheduler for each ALU, called queue here, and dispatch says which one an operation
waits in. What a cycle dispatches is assigned as a whole, by the rule that docs/front-end.md describes and
`benchmarks/alu_places.py` shows on the host: each operation gets a queue of its own, those with the fewest entries, but
for a few that may share one.
This is the plain form of it; `native/queues.c` does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations


def assigned(
    wanted: Sequence[int], branches: Sequence[bool], entries: Sequence[int], beside: int = -1, narrow: int = 0
) -> tuple[int, ...] | None:
    """Queues of the operations of a cycle, in their order; None where they do not fit into one.

    Args:
        wanted: bits of the queues that each may go to.
        branches: whether each is a branch with a unit of its own beside an ALU.
        entries: that each queue holds.
        beside: the queue that may get two of a cycle, where one to three of them may go to it and to one other alone;
            -1 for none. It does where the operations do not fit otherwise.
        narrow: bits of queues; of the operations that may go to these alone a cycle has two at most, and two that may
            go to the same one alone both go there.
    """
    few = [k for k, queues in enumerate(wanted) if not queues & ~narrow]
    if len(few) > 2:
        return None
    doubled = len(few) == 2 and wanted[few[0]] == wanted[few[1]] and wanted[few[0]].bit_count() == 1
    second = few[1] if doubled else len(wanted)
    rest = [*wanted[:second], *wanted[second + 1 :]]
    jumps = [*branches[:second], *branches[second + 1 :]]
    found = _apart(rest, entries)
    if found is None and beside >= 0:
        found = _beside(rest, jumps, entries, beside)
    if found is None or not doubled:
        return found
    return (*found[:second], wanted[second].bit_length() - 1, *found[second:])


def _apart(wanted: Sequence[int], entries: Sequence[int]) -> tuple[int, ...] | None:
    """No two the same: those with the fewest entries in all, of these the first ones, and of their orders the first
    that the operations allow."""
    if len(wanted) > len(entries):
        return None
    every = permutations(range(len(entries)), len(wanted))
    fitting = (own for own in every if all(queues >> q & 1 for q, queues in zip(own, wanted, strict=True)))
    return min(fitting, key=lambda own: (sum(entries[q] for q in own), sorted(own), own), default=None)


def _beside(
    wanted: Sequence[int], branches: Sequence[bool], entries: Sequence[int], beside: int
) -> tuple[int, ...] | None:
    """One of those that may go to `beside` and one other queue alone is the second one there, the rest go elsewhere. Of
    two branches among five the second one is one too many for it: what comes fifth goes to the other queue, then."""
    few = [k for k, queues in enumerate(wanted) if queues >> beside & 1 and queues.bit_count() == 2]
    if not 1 <= len(few) <= 3 or len(wanted) > len(entries) + 1:
        return None
    other = (wanted[few[-1]] & ~(1 << beside)).bit_length() - 1
    if len(wanted) > len(entries) and sum(branches[k] for k in few) == 2:
        first = _apart(wanted[:-1], entries) if wanted[-1] >> other & 1 else None
        return None if first is None else (*first, other)
    doubled = few[-1] if entries[beside] > entries[other] else few[0]
    bound = few if len(few) < 3 else []
    rest = [1 << other if k in bound else queues for k, queues in enumerate(wanted) if k != doubled]
    found = _apart(rest, entries)
    return None if found is None else (*found[:doubled], beside, *found[doubled:])
