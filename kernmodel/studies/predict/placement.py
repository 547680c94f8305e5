"""What the address of a block is worth: between what its prediction lies where it is unknown, and what aligning buys.

Front ends fetch and cache aligned lines of code, so that the same loop may take one cycle per pass at one address and
two at another. Linked code has its address; an object file knows it modulo the alignment of the section; of a listing
or of bytes nothing is known.
"""

from __future__ import annotations

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
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass

CAUSE = "address of the code"
MATTERS = 0.005
"""Predictions that differ by less than this share are the same."""
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
    """

    interval: Interval | None
    aligned: float
    aligning_helps: bool


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
    places = range(at % known, CODE_ALIGNMENT, known)
    aligned, *others = predictions_at(loop, core, settings, (0, *(place for place in places if place != at)))
    low, high = min((prediction, *others)), max((prediction, *others))
    interval = None
    if high - low > MATTERS * high:
        assumed = f"first byte at {at} modulo {CODE_ALIGNMENT}"
        interval = Interval(low, high, CAUSE, assumed)
    return Placement(interval, aligned, high - aligned > MATTERS * high)


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


def placement_notes(found: Placement, file: str) -> tuple[Note, ...]:
    """The interval as an assumption, for answers that use the in-core time as one of several."""
    if found.interval is None:
        return ()
    low, high = found.interval.low, found.interval.high
    text = (
        f"the address of the loop is not known ({found.interval.assumed} is taken): in the core it takes {low:.2f} to "
        f"{high:.2f} cycles per pass; `-falign-loops={CODE_ALIGNMENT}` makes it {found.aligned:.2f}"
    )
    return (Note("code-address", text, "assumption", Location(file)),)
