"""What the address of a block is worth: between what its prediction lies where it is unknown, and what aligning buys.

Front ends fetch and cache aligned lines of code, so that the same loop may take one cycle per pass at one address and
two at another. Linked code has its address; an object file, and a listing with the directives of a compiler, know it
modulo the alignment of the section; of bytes nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import Location, Note
from kernmodel.incore.core import (
    CODE_ALIGNMENT,
    Core,
    Settings,
    notion_of,
    offset_of,
    predictions_at,
    predictions_placed,
)
from kernmodel.incore.dependences.line_splits import Places, costs_of_lines
from kernmodel.uncertainty import MATTERS, Interval
from kernmodel.value_types import dataclass

CAUSE = "address of the code"
_ELEMENT_BYTES = 8
"""At multiples of which arrays begin of which nothing is known: elements of this size are aligned by every ABI."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What the address of a block is worth.

    Attributes:
        interval: of the prediction, over all addresses that the block may get; None where its address is known, or
            makes no difference.
        aligned: cycles per pass with its first byte at a multiple of 64.
        aligning_helps: whether that is less than what it takes at its address, or at some that it may get.
        known: bytes modulo which its address is known, at most 64.
        ends: addresses modulo 64 at which it takes least and most; empty without an interval.
    """

    interval: Interval | None
    aligned: float
    aligning_helps: bool
    known: int
    ends: tuple[int, ...] = ()


def placement(loop: AssemblyLoop, core: Core, settings: Settings, prediction: float) -> Placement:
    """What the address of the block is worth on a core.

    Args:
        loop: the block, `loop.alignment` says what is known of its address.
        core: with these settings opened.
        settings: an offset among them is its address.
        prediction: cycles per pass at the address that the analysis took.

    Raises:
        InstructionTableError: as the analysis of the block.
    """
    at = offset_of(loop, settings)
    known = CODE_ALIGNMENT if settings.offset is not None else min(loop.alignment, CODE_ALIGNMENT)
    if core.model.units is None:  # nothing that reads code by lines
        return Placement(None, prediction, False, known)
    others = [place for place in range(at % known, CODE_ALIGNMENT, known) if place != at]
    aligned, *elsewhere = predictions_at(loop, core, settings, (0, *others))
    found = {at: prediction, **dict(zip(others, elsewhere, strict=True))}
    ends = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    low, high = (found[place] for place in ends)
    helps = high - aligned > MATTERS * high
    if high - low <= MATTERS * high:
        return Placement(None, aligned, helps, known)
    interval = Interval(low, high, CAUSE, f"first byte at {at} modulo {CODE_ALIGNMENT}")
    return Placement(interval, aligned, helps, known, ends)


def array_notes(loop: AssemblyLoop, core: Core, settings: Settings, prediction: float) -> tuple[Note, ...]:
    """What the addresses of arrays may change, for loops that move an index along bases that they leave alone, all of
    which are taken to lie alike: at multiples of as many bytes as are known, else of a double's."""
    align, notion = settings.data_align, notion_of(loop, settings)
    if settings.port_model == "even" or notion != "loop" or not costs_of_lines(core.parameters):
        return ()
    layouts = [Places(base) for base in range(0, CODE_ALIGNMENT, align or _ELEMENT_BYTES)]
    found = [prediction, *predictions_placed(loop, core, settings, layouts)]
    low, high = min(found), max(found)
    if high - low <= MATTERS * high:
        return ()
    text = (
        f"arrays that begin at multiples of {align or _ELEMENT_BYTES} bytes: {low:.2f} to {high:.2f} cycles per pass "
        f"({settings.places.base} modulo {CODE_ALIGNMENT} is taken{'' if align else '; --data-align says where'})"
    )
    return (Note("array-addresses", text, "assumption", Location(loop.file)),)


def placement_notes(found: Placement, file: str, at: Callable[[int], float]) -> tuple[Note, ...]:
    """The interval as an assumption, for answers that use the in-core time as one of several.

    Args:
        at: T_ECM with the first byte at an address modulo 64, in cy/CL.
    """
    if found.interval is None:
        return ()
    low, high = found.interval.low, found.interval.high
    known = "not known" if found.known == 1 else f"known modulo {found.known} only"
    text = (
        f"the address of the loop is {known} ({found.interval.assumed} is taken): in the core it takes {low:.2f} to "
        f"{high:.2f} cycles per pass"
    )
    aligned = f"; `-falign-loops={CODE_ALIGNMENT}` makes it {found.aligned:.2f}"
    least, most = sorted(map(at, found.ends))
    if most - least > MATTERS * most:
        text += f", T_ECM is {least:.2f} to {most:.2f} cy/CL"
        aligned += f", T_ECM {at(0):.2f}"
    return (Note("code-address", text + aligned * found.aligning_helps, "assumption", Location(file)),)
