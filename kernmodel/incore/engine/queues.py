"""Which schedulers the operations of a cycle go to where these are assigned together.

AMD's cores from Zen 3 on have a scheduler for each ALU, called queue here, and dispatch says which one an operation
waits in. What a cycle dispatches is assigned as a whole, by the rule that docs/front-end.md describes and
`benchmarks/alu_places.py` shows on the host: each operation gets a queue of its own, those with the fewest entries.
This is the plain form of it; `native/queues.c` does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations


def assigned(
    wanted: Sequence[int], branches: Sequence[bool], entries: Sequence[int], beside: int = -1
) -> tuple[int, ...] | None:
    """Queues of the operations of a cycle, in their order; None where they do not fit into one.

    Args:
        wanted: bits of the queues that each may go to.
        branches: whether each is a branch with a unit of its own beside an ALU.
        entries: that each queue holds.
        beside: the queue that may get two of five operations, where one or two of them may go to it and to one other
            alone; -1 for none.
    """
    if len(wanted) == len(entries) + 1:
        return None if beside < 0 else _five(wanted, branches, entries, beside)
    return _apart(wanted, entries)


def _apart(wanted: Sequence[int], entries: Sequence[int]) -> tuple[int, ...] | None:
    """No two the same: those with the fewest entries in all, of these the first ones, and of their orders the first
    that the operations allow."""
    if len(wanted) > len(entries):
        return None
    every = permutations(range(len(entries)), len(wanted))
    fitting = (own for own in every if all(queues >> q & 1 for q, queues in zip(own, wanted, strict=True)))
    return min(fitting, key=lambda own: (sum(entries[q] for q in own), sorted(own), own), default=None)


def _five(
    wanted: Sequence[int], branches: Sequence[bool], entries: Sequence[int], beside: int
) -> tuple[int, ...] | None:
    """One of those that may go to `beside` and one other queue alone is the second one there, the rest go elsewhere. Of
    two branches the second one is one too many for it: what comes fifth goes to the other queue, then."""
    few = [k for k, queues in enumerate(wanted) if queues >> beside & 1 and queues.bit_count() == 2]
    if not 1 <= len(few) <= 2:
        return None
    other = (wanted[few[-1]] & ~(1 << beside)).bit_length() - 1
    if sum(branches[k] for k in few) == 2:
        first = _apart(wanted[:-1], entries) if wanted[-1] >> other & 1 else None
        return None if first is None else (*first, other)
    doubled = few[-1] if entries[beside] > entries[other] else few[0]
    rest = [1 << other if k in few else queues for k, queues in enumerate(wanted) if k != doubled]
    found = _apart(rest, entries)
    return None if found is None else (*found[:doubled], beside, *found[doubled:])
