"""The front end as a whole: which components a block uses, and what each of them allows (Facile, sections 4.1, 4.2)."""

from __future__ import annotations

from kernmodel.incore.front_end.decode import decode_bound
from kernmodel.incore.front_end.dsb import dsb_bound, erratum_branches
from kernmodel.incore.front_end.fusion import fuses_at, units_at
from kernmodel.incore.front_end.issue import issue_bound
from kernmodel.incore.front_end.lsd import fits_lsd, lsd_bound
from kernmodel.incore.front_end.mixed import mixed_bound
from kernmodel.incore.front_end.model import FrontEndBlock, FrontEndBounds, Notion, Path, Unit
from kernmodel.incore.front_end.predecode import predecode_bound
from kernmodel.incore.tables.core_parameters import FrontEndParameters


def front_end(block: FrontEndBlock, core: FrontEndParameters, notion: Notion, offset: int = 0) -> FrontEndBounds:
    """The bounds of all front-end components for a block whose first byte has the address `offset`.

    Unrolled code is predecoded and decoded (equation 1). A loop is, too, if the JCC erratum concerns it; else it comes
    from the LSD where that is on and the loop fits; else from the DSB (equation 3).
    """
    units = units_at(block, core, offset)
    erratum = erratum_branches(units, core, offset) if notion == "loop" else ()
    path = _path(units, core, notion, erratum)
    decoders = path == "decoders"
    return FrontEndBounds(
        notion=notion,
        offset=offset,
        path=path,
        predecode=predecode_bound(block, core, notion, offset) if decoders else None,
        decode=decode_bound(units, core) if decoders else None,
        dsb=dsb_bound(units, block.length, core) if path == "DSB" else None,
        lsd=lsd_bound(units, core) if path == "LSD" else None,
        mixed=mixed_bound(block, units, core, offset, erratum) if erratum else None,
        issue=issue_bound(units, core),
        issue_synchronised=issue_bound(units, core, block.synchronisations),
        erratum=erratum,
        fused=tuple(block.units[pair.place].number for pair in block.pairs if fuses_at(pair, core, offset)),
    )


def _path(units: tuple[Unit, ...], core: FrontEndParameters, notion: Notion, erratum: tuple[int, ...]) -> Path:
    if notion == "unrolled" or erratum:
        return "decoders"
    return "LSD" if fits_lsd(units, core) else "DSB"
