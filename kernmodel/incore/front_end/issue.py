"""Issue: the renamer takes µops from the queue, hands them ports and sends them on (Facile, section 4.7)."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.incore.engine.layout import Entry
from kernmodel.incore.front_end.model import Issuing, Unit


def issue_bound(units: Sequence[Unit], core: Issuing) -> float:
    """Issue: n / i for n µops (fused domain, after unlamination) and issue width i (Facile, section 4.7)."""
    return sum(unit.slots for unit in units) / core.issue_width


def entries_bound(entries: Sequence[Entry], width: int, most: int, first: int, rounds: int | None) -> float:
    """Cycles per pass in which the renamer issues all µops, where Facile's n / i lets it split what goes together.

    The µops of one entry of the queue that unlaminates issue in one cycle, and the end of a round of the LSD ends a
    group (uiCA, ICS 2022, section 4.1.4).

    Args:
        entries: of the queue, per pass; width: µops per cycle.
        most: unlaminated entries that a group takes; first: number of its first entries that they must be among.
        rounds: passes in a round of the LSD, None where no round ends a group.
    """
    taken = groups = 0  # slots of the current group; groups that are full
    queued = unlaminated = 0  # entries of the current group
    begun: dict[tuple[int, int, int], tuple[int, int]] = {}
    passes = 0
    while True:
        state = (taken, queued, unlaminated)
        if state in begun and rounds is None:
            earlier, full = begun[state]
            return (groups - full) / (passes - earlier)
        begun[state] = (passes, groups)
        for slots, together, _ in entries:
            barred = unlaminated >= most or queued >= first
            if taken and together and (barred or taken + together > width >= together):
                taken, queued, unlaminated, groups = 0, 0, 0, groups + 1
            full, taken = divmod(taken + slots, width)
            groups += full
            queued, unlaminated = (queued, unlaminated) if not full else (0, 0)
            queued, unlaminated = queued + bool(taken), unlaminated + (bool(together) and taken > 0)
        passes += 1
        if passes == rounds:
            return (groups + bool(taken)) / rounds
