"""Loops of which only a part is kept out of the DSB: not in Facile, which then decodes the whole loop.

The JCC erratum bars lines of code, not loops: the other lines still come from the DSB (Intel, Mitigations for Jump
Conditional Code Erratum, 2019). On Skylake both halves of a 64-byte line must be kept for either to be used (uiCA, ICS
2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import ceil

from kernmodel.incore.front_end.decode import decode_bound
from kernmodel.incore.front_end.model import FrontEndBlock, Unit
from kernmodel.incore.front_end.predecode import fetch_cycles
from kernmodel.incore.tables.core_parameters import FrontEndParameters


def mixed_bound(
    block: FrontEndBlock, units: Sequence[Unit], core: FrontEndParameters, offset: int, erratum: Sequence[int]
) -> float:
    """Cycles per pass of a loop whose lines with branches of `erratum` are decoded, the others fetched from the DSB.

    The stretches follow one another, so their times add up: ⌈n / w⌉ for n µops from a DSB of width w, max{Predec, Dec}
    of the stretch for the decoders.
    """
    barred = _barred_lines(units, core, offset, frozenset(erratum))
    cycles = fetch_cycles(block, core, "loop", offset)
    total = 0.0
    for decoded, stretch in groupby(units, lambda unit: (offset + unit.start) // core.dsb_line_bytes in barred):
        members = tuple(stretch)
        if decoded:
            members = (*members[:-1], members[-1]._replace(ends_group=True))
            total += max(_fetch(members, cycles, core, offset), decode_bound(members, core))
        else:
            total += ceil(sum(unit.decoded for unit in members) / core.dsb_width)
    return total


def _fetch(stretch: Sequence[Unit], cycles: Sequence[int], core: FrontEndParameters, offset: int) -> int:
    """Cycles of the predecoder for the fetched blocks of the stretch; `cycles` are those of the whole pass."""
    size = core.predecode_bytes
    first = offset // size
    begin = (offset + stretch[0].start) // size - first
    return sum(cycles[begin : (offset + stretch[-1].end - 1) // size - first + 1])


def _barred_lines(
    units: Sequence[Unit], core: FrontEndParameters, offset: int, erratum: frozenset[int]
) -> frozenset[int]:
    """The lines that hold a byte of a branch of `erratum`."""
    size = core.dsb_line_bytes
    return frozenset(
        line
        for unit in units
        if unit.number in erratum
        for line in range((offset + unit.start) // size, (offset + unit.end - 1) // size + 1)
    )
