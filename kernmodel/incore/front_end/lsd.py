"""The loop stream detector (LSD): replays a loop from the instruction decode queue (Facile, section 4.6)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from kernmodel.incore.front_end.model import Unit
from kernmodel.incore.tables.core_parameters import FrontEndParameters


def fits_lsd(units: Sequence[Unit], core: FrontEndParameters) -> bool:
    """Whether the LSD is on and the decoded µops of the loop fit into the instruction decode queue (equation 3)."""
    return core.lsd and sum(unit.decoded for unit in units) <= core.idq_uops


def lsd_bound(units: Sequence[Unit], core: FrontEndParameters) -> float:
    """LSD: cycles per pass to replay a loop that `fits_lsd`.

    ⌈n · u / i⌉ / u for n µops (fused domain, before unlamination, with those of the microcode sequencer), issue width
    i, and the u copies that the LSD makes of the loop: the last µop of one round and the first of the next do not go
    together (Facile, section 4.6).
    """
    uops = sum(unit.decoded + unit.microcoded for unit in units)
    copies = core.lsd_copies.get(uops, 1)
    return ceil(uops * copies / core.issue_width) / copies
