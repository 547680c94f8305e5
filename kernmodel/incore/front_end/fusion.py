"""Macro-fusion: a compare, test or arithmetic instruction and the conditional jump behind it become one µop."""

from __future__ import annotations

from kernmodel.incore.front_end.model import FrontEndBlock, Pair, Unit
from kernmodel.incore.tables.core_parameters import FrontEndParameters


def fuse(first: Unit, jump: Unit) -> Unit:
    """The unit of a macro-fused pair: it is decoded and issued as its first instruction, and branches."""
    return first._replace(end=jump.end, branch=True, ends_group=True)


def fuses_at(pair: Pair, core: FrontEndParameters, offset: int) -> bool:
    """Whether the pair fuses in a block that starts at address `offset`: not if its jump starts a new line.

    The two instructions then come in different fetches (uiCA, ICS 2022; the pairs themselves are uops.info's).
    """
    return (offset + pair.jump) % core.fusion_line_bytes != 0


def units_at(block: FrontEndBlock, core: FrontEndParameters, offset: int) -> tuple[Unit, ...]:
    """The units of the block at address `offset`: its pairs taken apart where they do not fuse there."""
    broken = {pair.place: pair.apart for pair in block.pairs if not fuses_at(pair, core, offset)}
    if not broken:
        return block.units
    units: list[Unit] = []
    for place, unit in enumerate(block.units):
        units += broken.get(place, (unit,))
    return tuple(units)
