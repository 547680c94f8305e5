"""Issue: the renamer takes µops from the queue, hands them ports and sends them on (Facile, section 4.7)."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.incore.front_end.model import Issuing, Unit


def issue_bound(units: Sequence[Unit], core: Issuing, synchronisations: int = 0) -> float:
    """Issue: n / i for n µops (fused domain, after unlamination) and issue width i (Facile, section 4.7).

    `synchronisations` are µops that the stack engine adds; Facile has none.
    """
    return (sum(unit.slots for unit in units) + synchronisations) / core.issue_width
