"""The decoded stream buffer (DSB, µop cache) and what keeps code out of it (Facile, sections 4.2 and 4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from kernmodel.incore.front_end.model import Unit
from kernmodel.incore.tables.core_parameters import FrontEndParameters


def dsb_bound(units: Sequence[Unit], length: int, core: FrontEndParameters, branches: int = 1) -> float:
    """DSB: cycles per execution to fetch the µops of a loop of `length` bytes from the DSB.

    n / w for n µops (fused domain, before unlamination, without those of the microcode sequencer) and a width of w
    µops per cycle; ⌈n / w⌉ for a loop shorter than a block of the DSB: behind the branch nothing more of that block is
    fetched in the same cycle (Facile, section 4.5). A core that takes several branches per cycle goes on behind them.
    """
    uops = sum(unit.decoded for unit in units)
    if branches > 1:
        return max(uops / core.dsb_width, 1 / branches)
    return float(ceil(uops / core.dsb_width)) if length < core.dsb_bytes else uops / core.dsb_width


def erratum_branches(units: Sequence[Unit], core: FrontEndParameters, offset: int) -> tuple[int, ...]:
    """The branches (index of the instruction, of the first one of a pair) that the JCC erratum concerns.

    Those that cross or end at a boundary of 32 bytes, a macro-fused pair taken as one; the code around them is not kept
    in the DSB (Intel, Mitigations for Jump Conditional Code Erratum, 2019; Facile, section 4.2).
    """
    size = core.jcc_bytes
    if size is None:
        return ()
    return tuple(
        unit.number for unit in units if unit.branch and (offset + unit.start) // size != (offset + unit.end) // size
    )
