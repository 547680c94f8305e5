"""Regions that the user marked for analysis: bytes of IACA, comments of OSACA and llvm-mca, line numbers.

A region is a half-open range of indices into the listing's instructions. The comments stand alone on a
line or after an instruction, in any comment style: `# LLVM-MCA-BEGIN name`, `// OSACA-BEGIN`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kernmodel.errors import AssemblyError, Location
from kernmodel.isa import isa_of
from kernmodel.isa.assembler import is_data
from kernmodel.isa.model import Instruction, Listing
from kernmodel.patterns import pattern
from kernmodel.value_types import dataclass

Region = tuple[int, int]

_COMMENT = pattern(r"(?:#|//|;|/\*)[\s#/;*]*(OSACA|LLVM-MCA)-(BEGIN|END)\b[ \t]*([^\s*]*)")
_IACA_START, _IACA_END = 111, 222


@dataclass(frozen=True, slots=True)
class _Mark:
    """One marker comment: `tool` OSACA or LLVM-MCA, where, whether it begins a region, and the region's name."""

    tool: str
    line: int
    begins: bool
    name: str


def marked_region(listing: Listing, text: str, name: str | None = None) -> Region | None:
    """The region marked in a listing, None without markers.

    Args:
        listing: the decoded listing.
        text: its text, "" if it was decoded from an object (then only IACA's bytes can be found).
        name: which of several llvm-mca regions.

    Raises:
        AssemblyError: a marker without its counterpart, a region without instructions, several regions and no `name`,
            or no region of that name.
    """
    lines = text.splitlines()
    regions = {**_comment_regions(listing, lines), **_iaca_regions(listing)}
    if name is not None and name not in regions:
        raise AssemblyError(f"has no marked region {name!r}", where=listing.file, todo=_instead_of_it(regions, text))
    if not regions:
        return None
    if name is None and len(regions) > 1:
        known = ", ".join(key or "(without a name)" for key in regions)
        todo = f"choose one, or leave one pair of markers: {known}"
        raise AssemblyError(f"has {len(regions)} marked regions", where=listing.file, todo=todo)
    first, end = regions[name] if name is not None else next(iter(regions.values()))
    return _without_padding(listing, lines, first, end), end


def _instead_of_it(regions: Mapping[str, Region], text: str) -> str:
    """What to do where no region has the name that was asked for."""
    named = ", ".join(filter(None, regions))
    if named:
        return f"choose one of: {named}"
    if regions:
        return "its only region has no name: give none"
    comments = ", LLVM-MCA-BEGIN and LLVM-MCA-END in comments" if text else ""
    return f"it has no marked regions: put markers around the code (IACA's{comments}), or choose a function of it"


def instructions_on(listing: Listing, first: int, last: int) -> Region | None:
    """The instructions on lines `first` to `last` (1-based, inclusive), None if there are none."""
    inside = [index for index, item in enumerate(listing.instructions) if first <= item.line <= last]
    return (inside[0], inside[-1] + 1) if inside else None


def _without_padding(listing: Listing, lines: list[str], first: int, end: int) -> int:
    """The first instruction of a region that is not the padding of an alignment directive after the marker."""
    isa = isa_of(listing.isa)
    for index in range(first, end):
        item = listing.instructions[index]
        if not (isa.is_padding(item) and 0 < item.line <= len(lines) and is_data(lines[item.line - 1])):
            return index
    return first


def _comment_regions(listing: Listing, lines: list[str]) -> dict[str, Region]:
    """The regions between marker comments, by name."""
    regions: dict[str, Region] = {}
    pending: dict[tuple[str, str], _Mark] = {}
    for mark in _marks(lines):
        key = (mark.tool, mark.name)
        if mark.begins:
            pending[key] = mark
            continue
        start = pending.pop(key, None)
        if start is None:
            raise _unpaired(listing, mark, "BEGIN")
        region = instructions_on(listing, start.line + 1, mark.line)
        if region is None:
            todo = "put the markers around the instructions of the loop"
            raise AssemblyError("the marked region is empty", where=Location(listing.file, start.line), todo=todo)
        regions[_free_name(mark, regions)] = region
    for start in pending.values():
        raise _unpaired(listing, start, "END")
    return regions


def _free_name(mark: _Mark, regions: dict[str, Region]) -> str:
    """The region's name; regions that share one are told apart by the line of their end."""
    return mark.name if mark.name not in regions else f"{mark.name}:{mark.line}"


def _unpaired(listing: Listing, mark: _Mark, missing: str) -> AssemblyError:
    """The error for a marker without its counterpart."""
    here = "BEGIN" if mark.begins else "END"
    what = f"{mark.tool}-{here} has no {mark.tool}-{missing}"
    name = f" {mark.name}" if mark.name else ""
    todo = f"add {mark.tool}-{missing}{name}"
    return AssemblyError(what, where=Location(listing.file, mark.line), todo=todo)


def _marks(lines: list[str]) -> list[_Mark]:
    """The marker comments of a text, in order."""
    found = (
        (number, _COMMENT.search(line))
        for number, line in enumerate(lines, start=1)
        if "-BEGIN" in line or "-END" in line
    )
    return [_Mark(match[1], number, match[2] == "BEGIN", match[3]) for number, match in found if match]


def _iaca_regions(listing: Listing) -> dict[str, Region]:
    """The regions between IACA's markers; all but the first are named by their number."""
    regions: dict[str, Region] = {}
    start: int | None = None
    isa = isa_of(listing.isa)
    for index, item in enumerate(listing.instructions):
        number, width = isa.marker(listing.instructions, index)
        if number == _IACA_START:
            start = index + width
        elif number == _IACA_END:
            if start is None:
                raise _iaca_error(listing, item, "IACA's end marker has no start marker")
            if start == index:
                raise _iaca_error(listing, item, "the marked region is empty")
            regions["IACA" if not regions else f"IACA:{len(regions) + 1}"] = (start, index)
            start = None
    if start is not None:
        raise _iaca_error(listing, listing.instructions[start - 1], "IACA's start marker has no end marker")
    return regions


def _iaca_error(listing: Listing, item: Instruction, what: str) -> AssemblyError:
    """The error for IACA's markers at `item`."""
    where = item.place_in(listing.file)
    return AssemblyError(what, where=where, todo="put both markers around the instructions of the loop")


_FILE = pattern(r'^\s*\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]*)"')
_LOCATION = pattern(r"^\s*\.loc\s+(\d+)\s+(\d+)")


def lines_of_source(text: str, file: str) -> dict[int, int]:
    """The line of the source `file` by line of a listing, from `.loc` directives; empty without them.

    Lines that come from other files are left out.
    """
    names: dict[str, str] = {}
    found: dict[int, int] = {}
    current: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if ".file" in line and (match := _FILE.match(line)):
            names[match[1]] = match[2]
        elif ".loc" in line and (match := _LOCATION.match(line)):
            own = Path(names.get(match[1], "")).name == Path(file).name
            current = int(match[2]) if own and match[2] != "0" else None
        elif current is not None:
            found[number] = current
    return found
